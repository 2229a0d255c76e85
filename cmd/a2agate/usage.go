package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// unknownCommand is a command that does not exist.
func unknownCommand(of *cobra.Command, name string) error {
	near := ""
	of.SuggestionsMinimumDistance = 2 // letters
	if list := of.SuggestionsFor(name); len(list) > 0 {
		near = fmt.Sprintf("did you mean %q? ", list[0])
	}
	return usageError{fmt.Errorf("unknown command %q; %ssee '%s --help'", name, near, of.CommandPath())}
}

// onlyCommands lets a command show its help, and takes no arguments that are no
// command of its own.
func onlyCommands(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return nil
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// invalidValue is how a flag's value is refused by the parser of flags.
var invalidValue = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?(--[\w-]+)" flag: (.*)$`)

// flagError words what is wrong with the flags of a command.
func flagError(c *cobra.Command, err error) error {
	words := err.Error()
	if m := invalidValue.FindStringSubmatch(words); m != nil {
		want := "a value for it"
		switch {
		case strings.Contains(m[3], "duration"):
			want = "a duration such as 30s or 5m"
		case strings.Contains(m[3], "ParseBool"):
			want = "true or false"
		}
		words = fmt.Sprintf("%s %s is not %s", m[2], m[1], want)
	}
	return usageError{fmt.Errorf("%s; see '%s --help'", words, c.CommandPath())}
}

// helpCommand is "help COMMAND", the same as "COMMAND --help".
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show what a command does",
		Long:  `Shows what a command does, its flags and examples, as COMMAND --help does.`,
		Example: `  a2agate help
  a2agate help serve`,
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			of, rest, err := c.Root().Find(args)
			var names []string
			if err == nil && len(rest) == 0 {
				for _, inner := range of.Commands() {
					if inner.IsAvailableCommand() {
						names = append(names, inner.Name()+"\t"+inner.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			switch {
			case err != nil && len(args) > 0:
				return unknownCommand(c.Root(), args[0])
			case err != nil:
				return err
			case len(rest) > 0:
				return unknownCommand(of, rest[0])
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// completeCompletion adds the command that prints completions, and to each of
// its shells what it lacks.
func completeCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == "completion" })
	if i < 0 {
		return
	}
	c := root.Commands()[i]
	c.Use, c.Short = "completion SHELL", "Print the completions for a shell"
	c.Long = `Prints what a shell needs to complete a2agate's commands and flags. The help of
each shell says where it belongs.`
	c.Example = `  a2agate completion bash
  a2agate completion zsh --help`
	c.Args, c.RunE = onlyCommands, showHelp
	for shell, example := range map[string]string{
		"bash":       "  a2agate completion bash >~/.local/share/bash-completion/completions/a2agate\n  source <(a2agate completion bash)",
		"zsh":        "  a2agate completion zsh >\"${fpath[1]}/_a2agate\"\n  source <(a2agate completion zsh)",
		"fish":       "  a2agate completion fish | source",
		"powershell": "  a2agate completion powershell | Out-String | Invoke-Expression",
	} {
		inner, _, err := c.Find([]string{shell})
		if err == nil && inner != c {
			inner.Args, inner.Example = noArgs, example
		}
	}
}
