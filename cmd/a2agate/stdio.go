package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"a2agate/config"
	"a2agate/server"
)

func stdioCommand(p process) *cobra.Command {
	flags := fileFlags{insecure: true} // nobody can reach it from outside
	c := &cobra.Command{
		Use:   "stdio [URL | NAME=URL]…",
		Short: "Run the gateway for the one client that started it",
		Long: `Serves MCP on standard input and output, for clients that only start
processes: the same tools, agents and configuration as serve, but no listener.
Logs go to standard error.

It ends when its input ends, after answering what is in flight. auth, listen
and tls of the file are not used: whoever starts it is the one caller. Where
the file names a debugListen, metrics are served there too. Handles
live as long as the process, unless the file names a store; one of type file
belongs to one process at a time.`,
		Example: `  a2agate stdio http://127.0.0.1:9101
  a2agate stdio --config agents.json
  claude mcp add a2a -- a2agate stdio --config agents.json`,
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := flags.load(p, args)
			if err != nil {
				return err
			}
			start := startup{cfg: forStdio(cfg)}
			if cfg.Path != "" {
				reload := flags.reloading(p, cfg)
				start.reload = func() (*config.Config, error) {
					cfg, err := reload()
					if err != nil {
						return nil, err
					}
					return forStdio(cfg), nil
				}
			}
			return serveStdio(c.Context(), p, start)
		},
	}
	c.Flags().StringVarP(&flags.config, "config", "c", "", "configuration file, JSON with comments")
	return c
}

// forStdio takes out of a configuration what is about a listener.
func forStdio(cfg *config.Config) *config.Config {
	cfg.Auth, cfg.TLS = config.Inbound{}, config.TLS{}
	cfg.Listen, cfg.PublicURL, cfg.AllowedHosts, cfg.AllowedOrigins, cfg.TrustedProxies = "", "", nil, nil, nil
	return cfg
}

// serveStdio runs a gateway for the client at the streams of the process,
// until its input or ctx ends.
func serveStdio(ctx context.Context, p process, start startup) error {
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
	if err = g.fleet.start(agents, g.cfg); err == nil {
		err = g.tools.SetAgents(g.fleet.entries())
	}
	if err != nil {
		stopAgents()
		return errors.Join(err, g.close())
	}
	g.openPipeDebug()
	again, noMore := hangups()
	defer noMore()
	following, unfollow := context.WithCancel(ctx)
	var side sync.WaitGroup
	side.Go(func() { g.follow(following, start.reload, again) })
	voice{w: p.err, log: log, records: start.cfg.Log.Format == config.FormatJSON}.serving(len(g.fleet.list()))
	options := server.StdioOptions{
		Limits: server.Limits{BodyBytes: g.cfg.Limits.BodyBytes},
		Pace:   server.Pace{FirstByte: g.cfg.Wait.FirstByte, KeepAlive: g.cfg.Wait.Progress},

		Counting: func(counts func() server.Counts) { g.pipeCounts.Store(&counts) },
	}
	g.observed.pipe(&options)
	err = g.behind(ctx, func() error { return g.server.Core().ServeStdio(ctx, p.in, p.out, options) }, stopAgents)
	unfollow()
	side.Wait()
	return err
}

// openPipeDebug opens the debug listener beside a pipe. Another process with
// the same file may have its address: then this one does without.
func (g *gateway) openPipeDebug() {
	if g.cfg.DebugListen == "" {
		return
	}
	d, err := newDebugServer(g.cfg.DebugListen, g.levels, g.log)
	if err != nil {
		g.log.Warn("no debug listener", "err", err)
		return
	}
	d.metrics = g.observed.metrics.Handler()
	g.debug = d
	g.log.Info("debug listener", "address", d.ln.Addr().String())
}
