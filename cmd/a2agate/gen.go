package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// genCommand writes what packages bring along beside the program. It is for
// whoever makes packages, so it is hidden.
func genCommand(p process) *cobra.Command {
	c := &cobra.Command{
		Use:    "gen",
		Short:  "Write man pages and shell completions for packages",
		Hidden: true,
		Args:   onlyCommands,
		RunE:   showHelp,
	}
	one := func(use, short string, write func(root *cobra.Command, dir string) error) *cobra.Command {
		return &cobra.Command{
			Use: use + " DIR", Short: short, Example: "  a2agate gen " + use + " out", Args: func(c *cobra.Command, args []string) error {
				if len(args) != 1 {
					return usageError{fmt.Errorf("gen %s takes one folder; see '%s --help'", use, c.CommandPath())}
				}
				return nil
			},
			RunE: func(_ *cobra.Command, args []string) error {
				if err := os.MkdirAll(args[0], 0o755); err != nil {
					return err
				}
				return write(rootCommand(p), args[0])
			},
		}
	}
	c.AddCommand(
		one("man", "Write a man page for each command", writeMan),
		one("completions", "Write completions for bash, zsh, fish and PowerShell", writeCompletions),
	)
	return c
}

// manDate stands on the man pages; it changes when they are read through, not
// with every build.
var manDate = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)

func writeMan(root *cobra.Command, dir string) error {
	root.DisableAutoGenTag = true
	if c, _, err := root.Find([]string{"completion"}); err == nil && c != root {
		root.RemoveCommand(c) // packages bring the completions along
	}
	return doc.GenManTree(root, &doc.GenManHeader{Title: "A2AGATE", Section: "1", Date: &manDate, Source: "a2agate", Manual: "a2agate"}, dir)
}

func writeCompletions(root *cobra.Command, dir string) error {
	for name, write := range map[string]func(path string) error{
		"a2agate.bash": func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"_a2agate":     root.GenZshCompletionFile,
		"a2agate.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
		"a2agate.ps1":  root.GenPowerShellCompletionFileWithDesc,
	} {
		if err := write(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
