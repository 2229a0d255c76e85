package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"a2agate/config"
)

func checkCommand(p process) *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration and report every problem",
		Long: `Reads the configuration as serve would, and reports every problem at once
with its place, the value and the remedy. It asks no agent; doctor does.`,
		Example: `  a2agate check
  a2agate check agents.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				flags.config = args[0]
			}
			cfg, err := flags.load(p, nil)
			var problems *config.Error
			if errors.As(err, &problems) {
				fmt.Fprintln(p.err, problems.Error())
				return exitError(1)
			}
			if err != nil {
				return err
			}
			enabled := 0
			for _, a := range cfg.Agents {
				if a.Enabled {
					enabled++
				}
			}
			fmt.Fprintf(p.out, "%s: ok, %d agents (%d enabled), listens on %s\n", cfg.Path, len(cfg.Agents), enabled, cfg.Listen)
			return nil
		},
	}
	c.Flags().StringVarP(&flags.config, "config", "c", "", "the file (default: agents.json, a2a.json, .vscode/a2a.json)")
	c.Flags().BoolVar(&flags.insecure, "insecure", false, "allow a listener that others can reach without auth")
	return c
}
