package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"a2agate/a2a"
	"a2agate/config"
)

func checkCommand(p process) *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration and report every problem",
		Long: `Reads the configuration as serve would, with the certificates that it names,
and reports every problem at once with its place, the value and the remedy. It
asks no agent; doctor does.`,
		Example: `  a2agate check
  a2agate check agents.json`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usageError{fmt.Errorf("check takes one file, not %q too; see '%s --help'", args[1], c.CommandPath())}
			case len(args) == 1 && flags.config != "":
				return usageError{fmt.Errorf("the file is named twice, as %q and by --config; leave one of them out", args[0])}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				flags.config = args[0]
			}
			cfg, err := flags.load(p, nil)
			if err == nil {
				err = usable(cfg)
			}
			var problems *config.Error
			if errors.As(err, &problems) {
				fmt.Fprintln(p.err, problems.Error())
				return exitError(1)
			}
			if err != nil {
				return err
			}
			printChecked(p.out, cfg)
			noteSameAddress(p.err, cfg)
			return nil
		},
	}
	c.Flags().StringVarP(&flags.config, "config", "c", "", "the file (default: agents.json, a2a.json, .vscode/a2a.json)")
	c.Flags().BoolVar(&flags.insecure, "insecure", false, "allow a listener that others can reach without auth")
	return c
}

// usable loads what serve loads before it listens: the gateway's certificate
// and those of the agents that it runs, with their keys. The error is a *config.Error with every problem.
func usable(cfg *config.Config) error {
	data, err := os.ReadFile(cfg.Path)
	if err != nil {
		return err
	}
	var problems []config.Problem
	add := func(err error, keys ...string) {
		problem, _ := config.Locate(cfg.Path, data, oneLine(err.Error()), keys...)
		problems = append(problems, problem)
	}
	if cfg.TLS.CertFile != "" {
		if _, err := loadPair(cfg.TLS.CertFile, cfg.TLS.KeyFile); err != nil {
			add(err, "tls")
		}
	}
	for _, a := range cfg.Agents {
		if !a.Enabled {
			continue
		}
		if err := itself(cfg, a); err != nil {
			add(err, "agents", a.Alias)
			continue
		}
		options, err := agentConfig(a)
		if err == nil {
			var agent *a2a.Agent
			if agent, err = a2a.NewAgent(options); err == nil {
				agent.Close()
			}
		}
		if err != nil {
			add(err, "agents", a.Alias)
		}
	}
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	return nil
}

// printChecked says that a file is good, and what is in it.
func printChecked(w io.Writer, cfg *config.Config) {
	enabled := 0
	for _, a := range cfg.Agents {
		if a.Enabled {
			enabled++
		}
	}
	agents := counted(len(cfg.Agents), "agent")
	if enabled < len(cfg.Agents) {
		agents += fmt.Sprintf(" (%d enabled)", enabled)
	}
	fmt.Fprintf(w, "%s: ok, %s, listens on %s\n", cfg.Path, agents, cfg.Listen)
}

// noteSameAddress tells of agents that are one and the same as far as the file
// says: that is allowed, as their credentials can differ.
func noteSameAddress(w io.Writer, cfg *config.Config) {
	for _, group := range cfg.SameAddress() {
		fmt.Fprintf(w, "%s: note: agents.%s have one address; a caller sees the agent %d times\n", cfg.Path, strings.Join(group, " and agents."), len(group))
	}
}
