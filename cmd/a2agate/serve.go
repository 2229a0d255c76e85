package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"a2agate/config"
)

func serveCommand(p process) *cobra.Command {
	var flags fileFlags
	c := &cobra.Command{
		Use:   "serve [URL | NAME=URL]…",
		Short: "Run the gateway",
		Long: `Runs the gateway until it is interrupted. With URLs it needs no file: each is
an agent's address, its alias the last path segment or the host. Without, it
reads --config, else agents.json, a2a.json or .vscode/a2a.json here.

The first interrupt drains: calls in flight are answered. A second one cuts
that short.`,
		Example: `  a2agate serve http://127.0.0.1:9101
  a2agate serve billing=https://agents.example.com/billing
  a2agate serve --config agents.json --listen 127.0.0.1:0`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := flags.load(p, args)
			if err != nil {
				return err
			}
			return serve(c.Context(), p, cfg, nil)
		},
	}
	c.Flags().StringVarP(&flags.config, "config", "c", "", "configuration file, JSON with comments")
	c.Flags().StringVarP(&flags.listen, "listen", "l", "", "host:port (default 127.0.0.1:8931); port 0 picks a free one")
	c.Flags().BoolVar(&flags.insecure, "insecure", false, "allow a listener that others can reach without auth")
	return c
}

// serve runs a gateway on cfg until ctx is done. extra, where not nil, prints
// more after the banner.
func serve(ctx context.Context, p process, cfg *config.Config, extra func(w io.Writer, url string)) error {
	log := newLogger(p.err, cfg.Log)
	g, err := newGateway(ctx, cfg, log)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return listenError("listen", cfg.Listen, err)
	}
	defer ln.Close()
	if cfg.DebugListen != "" {
		if g.debug, err = newDebugServer(cfg.DebugListen, log); err != nil {
			return err
		}
	}
	agents, stopAgents := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAgents()
	if err := g.fleet.start(agents, cfg.Agents); err != nil {
		return err
	}
	if err := g.tools.SetAgents(g.fleet.entries()); err != nil {
		return err
	}
	url := gatewayURL(ln.Addr(), cfg)
	fmt.Fprintf(p.err, "a2agate %s: listening on %s\n", version, url)
	banner := make(chan struct{})
	go func() { // waited for below
		defer close(banner)
		printBanner(ctx, p.err, g.fleet, url, cfg)
		if extra != nil && ctx.Err() == nil {
			extra(p.err, url)
		}
	}()
	ended := cutOnSecondSignal(ctx, p.err, g)
	err = g.run(ctx, ln, stopAgents)
	ended()
	<-banner
	return err
}

// cutOnSecondSignal says that the drain has begun, and cuts it short when a
// second interrupt comes. The function it returns ends it and waits.
func cutOnSecondSignal(ctx context.Context, w io.Writer, g *gateway) (end func()) {
	again := make(chan os.Signal, 2)
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // end waits for it
		defer close(done)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		// Registered only now: the first signal belongs to ctx.
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(again)
		fmt.Fprintln(w, "a2agate: shutting down, calls in flight are answered; interrupt again to stop at once")
		select {
		case <-again:
			g.server.Cut()
			<-over
		case <-over:
		}
	}()
	return func() { close(over); <-done }
}

// newLogger makes the log of a configuration.
func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	var level slog.Level
	switch cfg.Level {
	case config.LevelDebug:
		level = slog.LevelDebug
	case config.LevelInfo:
		level = slog.LevelInfo
	case config.LevelError:
		level = slog.LevelError
	case config.LevelWarn:
		level = slog.LevelWarn
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == config.FormatJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
