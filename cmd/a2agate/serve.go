package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
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
an agent's address, its alias the last path segment, else the first part of
the host's name, or address and port. Without, it reads --config, else
agents.json, a2a.json or .vscode/a2a.json here.

The file and what it names are watched: a change takes effect when it is
saved, or on SIGHUP. A broken file changes nothing.

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
			for _, a := range cfg.Agents {
				if err := itself(cfg, a); err != nil && a.Enabled {
					return fmt.Errorf("agents.%s: %w", a.Alias, err)
				}
			}
			start := startup{cfg: cfg}
			if cfg.Path != "" {
				start.reload = flags.reloading(p, cfg)
			}
			return serve(c.Context(), p, start)
		},
	}
	c.Flags().StringVarP(&flags.config, "config", "c", "", "configuration file, JSON with comments")
	c.Flags().StringVarP(&flags.listen, "listen", "l", "", "host:port (default 127.0.0.1:8931); port 0 picks a free one")
	c.Flags().BoolVar(&flags.insecure, "insecure", false, "allow a listener that others can reach without auth")
	return c
}

// startup is what serve starts with.
type startup struct {
	cfg *config.Config
	// reload reads the configuration again; nil where there is no file.
	reload func() (*config.Config, error)
	// extra, where not nil, prints more after the banner.
	extra func(w io.Writer, program, url string)
}

// serve runs a gateway until ctx is done.
func serve(ctx context.Context, p process, start startup) error {
	log, levels := newLogger(p.err, start.cfg.Log)
	g, err := newGateway(ctx, start.cfg, log, levels)
	if err != nil {
		return err
	}
	endTraces, err := g.observed.traceTo(ctx, p.getenv)
	if err != nil {
		return errors.Join(err, g.close())
	}
	defer endTraces()
	agents, stopAgents := context.WithCancel(context.WithoutCancel(ctx))
	ln, err := g.open(agents)
	if err != nil {
		stopAgents()
		return errors.Join(err, g.close())
	}
	defer ln.Close()
	again, noMore := hangups() // before anybody can know that it runs
	defer noMore()
	url := g.endpoint(ln.Addr())
	say := voice{w: p.err, log: log, records: start.cfg.Log.Format == config.FormatJSON}
	say.listening(url, ln.Addr(), start.cfg.PublicURL != "")
	var side sync.WaitGroup
	side.Go(func() {
		going := settle(ctx, g.fleet)
		if going && !say.records {
			printBanner(p.err, g.fleet, url, start.cfg)
		}
		// What start-up left, the compiled schemas of libraries above all, is
		// most of the heap of a gateway that nobody calls.
		debug.FreeOSMemory()
		if going && !say.records && start.extra != nil && ctx.Err() == nil {
			start.extra(p.err, p.name, url)
		}
	})
	side.Go(func() { g.follow(ctx, start.reload, again) })
	ended := cutOnSecondSignal(ctx, say, g)
	err = g.run(ctx, ln, stopAgents)
	ended()
	side.Wait()
	return err
}

// voice is how a running gateway speaks to the operator beside its log: in
// lines for people, or in records where the log is one of records, so that
// nothing else is on stderr.
type voice struct {
	w       io.Writer
	log     *slog.Logger
	records bool
}

// listening says where the gateway is reached, and where it listens when that
// is another address.
func (v voice) listening(url string, at net.Addr, public bool) {
	if v.records {
		v.log.Info("listening", "url", url, "address", at.String(), "version", version)
		return
	}
	address := ""
	if public {
		address = fmt.Sprintf(" (%s)", at)
	}
	fmt.Fprintf(v.w, "a2agate %s: listening on %s%s\n", version, url, address)
}

// serving says that a gateway without a listener runs.
func (v voice) serving(agents int) {
	if v.records {
		v.log.Info("serving on standard input and output", "agents", agents, "version", version)
		return
	}
	fmt.Fprintf(v.w, "a2agate %s: serving %s on standard input and output\n", version, counted(agents, "agent"))
}

// draining says that the gateway has begun to shut down.
func (v voice) draining() {
	if v.records {
		v.log.Info("shutting down", "note", "calls in flight are answered; interrupt again to stop at once")
		return
	}
	fmt.Fprintln(v.w, "a2agate: shutting down, calls in flight are answered; interrupt again to stop at once")
}

// open opens the listeners and sends the agents on their way.
func (g *gateway) open(agents context.Context) (net.Listener, error) {
	ln, err := net.Listen("tcp", g.cfg.Listen)
	if err != nil {
		return nil, listenError("listen", g.cfg.Listen, err)
	}
	g.address = ln.Addr()
	g.followEdge()
	if g.cfg.DebugListen != "" {
		if g.debug, err = newDebugServer(g.cfg.DebugListen, g.levels, g.log); err != nil {
			return nil, errors.Join(err, ln.Close())
		}
		g.log.Info("debug listener", "address", g.debug.ln.Addr().String())
	}
	err = g.fleet.start(agents, g.cfg)
	if err == nil {
		err = g.tools.SetAgents(g.fleet.entries())
	}
	if err != nil {
		if g.debug != nil {
			err = errors.Join(err, g.debug.ln.Close())
		}
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// follow keeps to the configuration file until ctx is done.
func (g *gateway) follow(ctx context.Context, load func() (*config.Config, error), again <-chan os.Signal) {
	if load != nil {
		r := newReloader(g, load, g.log)
		g.reloads.Store(r)
		r.run(ctx, again)
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			g.log.Warn("there is nothing to reload but the agents' cards: the gateway was started without a file")
			g.fleet.recheck()
		}
	}
}

// cutOnSecondSignal says that the drain has begun, and cuts it short when a
// second interrupt comes. The function it returns ends it and waits.
func cutOnSecondSignal(ctx context.Context, say voice, g *gateway) (end func()) {
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
		say.draining()
		select {
		case <-again:
			g.server.Cut()
			<-over
		case <-over:
		}
	}()
	return func() { close(over); <-done }
}
