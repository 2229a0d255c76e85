// Command a2agate is an HTTP gateway that shows A2A agents as MCP tools.
//
// "a2agate serve URL" is all that one agent needs; "a2agate demo" brings an
// agent along. Every subcommand has a file of its own here; wire.go is the
// only place that knows every package.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"a2agate/config"
)

// version is set by the linker.
var version = "dev"

// gcPercent is the collector's pace where GOGC does not set one. What a call
// leaves behind is many times what a gateway keeps, so at the usual pace of 100
// a busy one collects a heap of a few MiB dozens of times a second.
const gcPercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(context.Background(), os.Args[1:], process{
		name: os.Args[0],
		in:   os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.LookupEnv, getwd: os.Getwd,
	}))
}

// process is what a subcommand may touch of the process it runs in.
type process struct {
	// name is the program as it was started.
	name     string
	in       io.Reader
	out, err io.Writer
	getenv   func(string) (string, bool)
	getwd    func() (string, error)
}

// exitError ends the program with a code and without a further word: what
// there was to say has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// run is main without os.Exit: it returns the exit code. 1 is a failure of
// what was asked for, 2 a misuse of the command line.
func run(ctx context.Context, args []string, p process) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCommand(p)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	default:
		printError(p.err, err)
		var usage usageError
		if errors.As(err, &usage) {
			return 2
		}
		return 1
	}
}

// printError prints an error: one line, or a heading and a line for each
// problem of a configuration.
func printError(w io.Writer, err error) {
	var problems *config.Error
	if !errors.As(err, &problems) || len(problems.Problems) < 2 {
		fmt.Fprintf(w, "a2agate: %v\n", err)
		return
	}
	fmt.Fprintf(w, "a2agate: %s\n", counted(len(problems.Problems), "problem"))
	for _, problem := range problems.Problems {
		fmt.Fprintf(w, "  %s\n", problem)
	}
}

// counted is a number of things, in words.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// usageError is a misuse of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func rootCommand(p process) *cobra.Command {
	root := &cobra.Command{
		Use:   "a2agate",
		Short: "Shows A2A agents as MCP tools",
		Long: `a2agate is an HTTP gateway that shows A2A agents as MCP tools.

Point it at one agent or fifty, add one entry to the MCP configuration of
Claude Code, Cursor, VS Code or any other MCP client, and the model can
discover agents, send them messages, follow long tasks and cancel them.`,
		Example: `  a2agate demo
  a2agate serve http://127.0.0.1:9101
  a2agate serve --config agents.json
  a2agate call a2a_discover '{}'`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          onlyCommands,
		RunE:          showHelp,
	}
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetVersionTemplate("a2agate {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		serveCommand(p), demoCommand(p), agentCommand(p), checkCommand(p), doctorCommand(p), callCommand(p), acceptCommand(p), versionCommand(p),
		installCommand(p), stdioCommand(p), genCommand(p),
	)
	completeCompletion(root)
	return root
}
