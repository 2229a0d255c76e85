package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"a2agate/a2a"
	"a2agate/config"
	"a2agate/handles"
	"a2agate/internal/telemetry"
	"a2agate/server"
	"a2agate/tasksext"
	"a2agate/tools"
	"a2agate/translate"
)

// gateway is every part of a running gateway, put together.
type gateway struct {
	// cfg is the configuration that the gateway was started with; what of a
	// later one is in force is the reloader's to know.
	cfg    *config.Config
	log    *slog.Logger
	levels *telemetry.Levels
	// inbound is nil where nobody has to say who they are.
	inbound  *inbound
	observed *observation
	handles  *handles.Table
	fleet    *fleet
	pins     *pins
	tools    *tools.Service
	tasks    *tasksext.Service
	server   *server.Server
	status   *statusPage
	debug    *debugServer
	// address is where the gateway listens; set before it serves.
	address net.Addr
	// reloads is nil where there is no file to keep to.
	reloads atomic.Pointer[reloader]
	// certificate is nil without tls.
	certificate *certificate
	// pipeCounts is nil but over stdio.
	pipeCounts atomic.Pointer[func() server.Counts]
	// public is publicUrl as it is in force.
	public atomic.Pointer[string]
	// problems are those of the cards that the operator has been told of.
	problems problems
	// follows take a new configuration while the gateway runs.
	follows []follower
}

// follower is a part that takes a new configuration while the gateway runs.
type follower struct {
	// keys are the settings that are the part's; those that nobody takes and
	// that are not live wait for a restart.
	keys []string
	take func(*config.Config)
}

// newGateway puts a gateway together. It opens the store and nothing else: no
// listener, no agent is called before run.
func newGateway(ctx context.Context, cfg *config.Config, log *slog.Logger, levels *telemetry.Levels) (*gateway, error) {
	g := &gateway{cfg: cfg, log: log, levels: levels}
	g.public.Store(&cfg.PublicURL)
	var err error
	if cfg.TLS.CertFile != "" {
		if g.certificate, err = newCertificate(cfg.TLS, log); err != nil {
			return nil, err
		}
	}
	if g.pins, err = newPins(pinPath(cfg), log); err != nil {
		return nil, err
	}
	if g.inbound, err = newInbound(cfg, log); err != nil {
		return nil, err
	}
	if g.inbound != nil {
		g.follows = append(g.follows, follower{[]string{"auth"}, g.inbound.follow})
	}
	g.observed = newObservation(g)
	if g.handles, err = openHandles(ctx, cfg, log); err != nil {
		return nil, err
	}
	g.status = newStatusPage(g)
	g.fleet = &fleet{log: log, observed: g.observed, pins: g.pins, changed: g.refresh}
	g.tasks, err = tasksext.New(tasksext.Options{
		Handles: g.handles, Follow: g.fleet.follow, Title: g.fleet.title, Logger: log,
		Present: func(ctx context.Context, e handles.Entry, tool string, s a2a.Snapshot) translate.Result {
			return g.tools.Present(ctx, e, tool, s)
		},
	})
	if err != nil {
		return nil, errors.Join(err, g.handles.Close())
	}
	if g.tools, err = tools.New(g.toolOptions(cfg, nil)); err != nil {
		return nil, errors.Join(err, g.handles.Close())
	}
	options := g.serverOptions()
	g.observed.edge(&options)
	if err = g.status.add(&options); err == nil {
		g.server, err = server.New(options)
	}
	if err != nil {
		return nil, errors.Join(err, g.handles.Close())
	}
	return g, nil
}

// toolOptions is what of a configuration is for the tools. What stands for
// other parts too is taken from the configuration that they were made with.
func (g *gateway) toolOptions(cfg *config.Config, agents []tools.AgentEntry) tools.Options {
	profiles := map[string][]string{}
	for _, p := range cfg.Profiles {
		profiles[p.Name] = p.Agents
	}
	return tools.Options{
		Agents: agents, Handles: g.handles, HandleTTL: g.cfg.HandleTTL,
		Wait:   tools.Wait{WithProgress: cfg.Wait.WithProgress, Without: cfg.Wait.Without, TaskGrace: cfg.Wait.TaskGrace},
		Limits: tools.Limits{ResultChars: cfg.Limits.ResultChars, MediaBytes: int(cfg.Limits.MediaBytes), CardBytes: int(cfg.Limits.CardBytes)},
		Expose: exposures(cfg.Expose), ToolPrefix: cfg.ToolPrefix, ParamHeaders: g.cfg.ParamHeaders,
		Structured: translate.StructuredPolicy(cfg.StructuredContent), Profiles: profiles, Tasks: g.tasks,
		Observer: observers{g.status, g.observed},
	}
}

func (g *gateway) serverOptions() server.Options {
	cfg := g.cfg
	edge := edgeSettings(cfg)
	options := server.Options{
		CoreOptions: server.CoreOptions{
			Caller: g.tools, Catalogues: g.tools, Prompts: g.tools, Resources: g.tools, Completions: g.tools,
			Tasks: tasks{g.tasks}, Version: version, ParamHeaders: cfg.ParamHeaders, Private: cfg.Auth.Enabled(), Log: g.log,
		},
		Guard: edge.Guard, Limits: edge.Limits, Pace: edge.Pace,
	}
	if g.inbound != nil {
		options.Authenticate, options.WellKnown = g.inbound.authenticate, g.inbound.wellKnown()
	}
	return options
}

// edgeSettings are what of a configuration the HTTP edge goes by.
func edgeSettings(cfg *config.Config) server.Settings {
	var proxies []string
	for _, p := range cfg.TrustedProxies {
		proxies = append(proxies, p.String())
	}
	return server.Settings{
		Guard: server.GuardOptions{
			AllowedHosts: cfg.AllowedHosts, AllowedOrigins: cfg.AllowedOrigins, PublicURL: cfg.PublicURL, TrustedProxies: proxies,
		},
		Limits: server.Limits{
			BodyBytes: cfg.Limits.BodyBytes, Listens: cfg.Limits.Listens, ListensPerPrincipal: cfg.Limits.PrincipalListens,
			CallsPerSecond: cfg.Limits.CallsPerSecond, ConcurrentCalls: cfg.Limits.ConcurrentCalls,
		},
		Pace: server.Pace{FirstByte: cfg.Wait.FirstByte, KeepAlive: cfg.Wait.Progress},
	}
}

// followEdge lets the HTTP edge follow the configuration.
func (g *gateway) followEdge() {
	g.follows = append(g.follows, follower{
		[]string{
			"trustedProxies", "publicUrl", "allowedHosts", "allowedOrigins", "wait.firstByte", "wait.progress", "limits.bodyBytes",
			"limits.listens", "limits.principalListens", "limits.callsPerSecond", "limits.concurrentCalls",
		},
		func(cfg *config.Config) {
			if err := g.server.Reconfigure(edgeSettings(cfg)); err != nil { // config lets through what it does not
				g.log.Error("settings of the edge not reloaded, the last good ones stay in force", "problem", err)
				return
			}
			g.public.Store(&cfg.PublicURL)
		},
	})
}

// run serves on ln until ctx is done and what is in flight is answered. What
// is behind the edge and stopAgents are as for behind.
func (g *gateway) run(ctx context.Context, ln net.Listener, stopAgents func()) error {
	if g.certificate != nil {
		ln = tls.NewListener(ln, g.certificate.config())
	}
	return g.behind(ctx, func() error { return g.server.Serve(ctx, ln) }, stopAgents)
}

// behind runs the parts behind an edge while it serves, and then ends every
// part in turn, the agents last by stopAgents. It returns the first failure.
func (g *gateway) behind(ctx context.Context, serve func() error, stopAgents func()) error {
	// The parts behind the edge outlive it, so that calls in flight can end.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	for name, run := range map[string]func(context.Context) error{"handles": g.handles.Run, "tasks": g.tasks.Run} {
		parts.Go(func() {
			if err := run(inner); err != nil && !errors.Is(err, context.Canceled) {
				g.log.Error("part stopped", "part", name, "err", err)
			}
		})
	}
	if g.debug != nil {
		parts.Go(func() { g.debug.run(inner) })
	}
	err := serve()
	g.tools.Close()
	cancel()
	parts.Wait()
	stopAgents()
	return errors.Join(err, g.close())
}

// close waits for the agents, which have been stopped, and closes the store.
func (g *gateway) close() error {
	g.fleet.wait()
	return g.handles.Close()
}

// openHandles opens the handle table on the configured store.
func openHandles(ctx context.Context, cfg *config.Config, log *slog.Logger) (*handles.Table, error) {
	options := handles.Options{TTL: cfg.HandleTTL, Max: cfg.Limits.Handles, Logger: log}
	var err error
	switch cfg.Store.Type {
	case config.StoreFile:
		options.Store, err = handles.OpenFile(cfg.Store.Path, handles.Limits{Max: cfg.Limits.Handles}, log)
	case config.StoreRedis:
		handles.SetRedisLogger(log)
		options.Store, err = handles.OpenRedis(ctx, handles.RedisOptions{URL: cfg.Store.URL.Reveal()})
	case config.StoreMemory:
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return handles.New(options)
}

// tasks fits the tasks extension to the edge: the direction of imports keeps
// the two from naming each other.
type tasks struct{ s *tasksext.Service }

func taskCall(c server.TaskCall) tasksext.Call {
	return tasksext.Call{
		Principal: c.Principal, Agents: c.Agents, TaskID: c.TaskID,
		ElicitForm: c.Client.ElicitForm, ElicitURL: c.Client.ElicitURL,
	}
}

func (t tasks) Get(ctx context.Context, dst []byte, c server.TaskCall, meta []translate.MetaEntry) ([]byte, *translate.Error) {
	d, fault := t.s.Get(ctx, taskCall(c))
	if fault != nil {
		return dst, fault
	}
	return translate.AppendDetailedTask(dst, d, translate.Rev20260728, meta), nil
}

func (t tasks) Update(ctx context.Context, c server.TaskCall) *translate.Error {
	return t.s.Update(ctx, taskCall(c), c.InputResponses)
}

func (t tasks) Cancel(ctx context.Context, c server.TaskCall) *translate.Error {
	return t.s.Cancel(ctx, taskCall(c))
}

func (t tasks) Watch(c server.TaskCall, ids []string) server.TaskWatch {
	return taskWatch{t.s.Listen(taskCall(c), ids)}
}

type taskWatch struct{ *tasksext.Watch }

func (w taskWatch) Take() []json.RawMessage {
	var list []json.RawMessage
	for _, d := range w.Watch.Take(context.Background()) {
		list = append(list, translate.AppendTaskNotification(nil, d, translate.Rev20260728, nil))
	}
	return list
}
