package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"a2agate/a2a"
	"a2agate/config"
)

// acceptPatience is how long accept waits for an agent's card.
const acceptPatience = 30 * time.Second

func acceptCommand(p process) *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "accept ALIAS…",
		Short: "Accept the changed card of a pinned agent",
		Long: `Fetches the cards of agents that are configured with "pin": true, says what has
changed of what they say to a model (names, descriptions, skills, schemas), and
accepts it. Addresses, versions and streaming are not held back. A running
gateway takes it over at once. What was accepted is kept in ` + pinName + ` beside the configuration.`,
		Example: `  a2agate accept billing
  a2agate accept billing travel --config agents.json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("accept takes the alias of a pinned agent; see '%s --help'", c.CommandPath())}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			flags.insecure = true // nothing listens
			cfg, err := flags.load(p, nil)
			if err != nil {
				return err
			}
			pins, err := newPins(pinPath(cfg), slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			for _, alias := range args {
				if err := acceptCard(c.Context(), p, cfg, pins, alias); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringVarP(&flags.config, "config", "c", "", "the file (default: agents.json, a2a.json, .vscode/a2a.json)")
	return c
}

// acceptCard accepts the card that an agent has now.
func acceptCard(ctx context.Context, p process, cfg *config.Config, pins *pins, alias string) error {
	agent, ok := cfg.Agent(alias)
	if !ok {
		return usageError{fmt.Errorf("there is no agent %q in %s", alias, cfg.Path)}
	}
	if !agent.Pin {
		return usageError{fmt.Errorf("agents.%s.pin is not set: nothing of that agent is held back", alias)}
	}
	card, err := fetchCard(ctx, cfg, *agent)
	if err != nil {
		return err
	}
	pinned, _ := pins.accepted(alias)
	switch {
	case pinned == nil:
		fmt.Fprintf(p.out, "%s: accepted: the first card, %q with %s\n", alias, oneLine(card.Name), counted(len(card.Skills), "skill"))
	case pinned.SHA256 == offerDigest(card):
		fmt.Fprintf(p.out, "%s: nothing to accept, the card says what was accepted\n", alias)
		return nil
	default:
		for _, change := range offerChanges(pinned.card, card) {
			fmt.Fprintf(p.out, "%s: accepted: %s\n", alias, change)
		}
	}
	return pins.accept(alias, card)
}

// fetchCard fetches an agent's card once.
func fetchCard(ctx context.Context, cfg *config.Config, agent config.Agent) (*a2a.Card, error) {
	options, err := agentConfig(agent)
	if err != nil {
		return nil, fmt.Errorf("agents.%s: %w", agent.Alias, err)
	}
	options.Limits = recipeOf(agent, cfg).limits
	a, err := a2a.NewAgent(options)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(ctx, acceptPatience)
	defer cancel()
	card, err := a.FetchCard(ctx)
	var coded *a2a.Error
	if errors.As(err, &coded) {
		return nil, fmt.Errorf("the card of %q cannot be had: %s; 'a2agate doctor %s' looks closer", agent.Alias, coded.Message, agent.Alias)
	}
	return card, err
}
