package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"a2agate/a2a"
	"a2agate/fixtures"
)

func agentCommand(p process) *cobra.Command {
	var (
		listen   string
		unary    bool
		versions []string
		bindings []string
	)
	c := &cobra.Command{
		Use:   "agent",
		Short: "Run the scripted demo agent alone",
		Long: `Runs a scripted A2A agent without a model: the first word of a message is its
command. Send it "help" for the list. It is what demo brings along, and what
the tests are run against.`,
		Example: `  a2agate agent
  a2agate agent --listen 127.0.0.1:0 --no-streaming
  a2agate agent --protocol 0.3 --binding JSONRPC`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			options := fixtures.Options{Unary: unary}
			for _, v := range versions {
				if v != string(a2a.V10) && v != string(a2a.V03) {
					return usageError{fmt.Errorf("--protocol %q is neither 1.0 nor 0.3", v)}
				}
				options.Versions = append(options.Versions, a2a.Version(v))
			}
			for _, b := range bindings {
				if b != string(a2a.JSONRPC) && b != string(a2a.REST) {
					return usageError{fmt.Errorf("--binding %q is neither JSONRPC nor HTTP+JSON", b)}
				}
				options.Bindings = append(options.Bindings, a2a.Binding(b))
			}
			ln, err := net.Listen("tcp", listen)
			if err != nil {
				return listenError("--listen", listen, err)
			}
			agent := fixtures.New(options)
			fmt.Fprintf(p.out, "agent: http://%s\n", ln.Addr())
			return serveAgent(c.Context(), ln, agent)
		},
	}
	c.Flags().StringVarP(&listen, "listen", "l", "127.0.0.1:41241", "host:port; port 0 picks a free one")
	c.Flags().BoolVar(&unary, "no-streaming", false, "say in the card that the agent cannot stream")
	c.Flags().StringSliceVar(&versions, "protocol", nil, "A2A versions to speak, preferred first: 1.0, 0.3 (default 1.0)")
	c.Flags().StringSliceVar(&bindings, "binding", nil, "bindings to offer, preferred first: JSONRPC, HTTP+JSON (default both)")
	return c
}

// serveAgent serves the fixture agent until ctx is done and then closes it.
func serveAgent(ctx context.Context, ln net.Listener, agent *fixtures.Agent) error {
	srv := &http.Server{Handler: agent, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() { // waited for below
		<-ctx.Done()
		stopped <- srv.Close()
	}()
	err := srv.Serve(ln)
	agent.Close()
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// listenError words a listener that could not be opened.
func listenError(field, address string, err error) error {
	taken := errors.Is(err, syscall.EADDRINUSE)
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	if field == "listen" { // of the file, or its default
		if taken {
			return fmt.Errorf("%s %q: %w; a gateway may run there already; --listen takes another address, or port 0 for a free one", field, address, err)
		}
		return fmt.Errorf("%s %q: %w; --listen takes another address, or port 0 for a free one", field, address, err)
	}
	return fmt.Errorf("%s %q: %w; choose another address, or port 0 for a free one", field, address, err)
}
