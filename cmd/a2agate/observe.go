package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"a2agate/a2a"
	"a2agate/internal/telemetry"
	"a2agate/server"
	"a2agate/tools"
)

// observation is told what happens in the gateway, and makes metrics, traces
// and the log of it. Its methods may be called concurrently.
type observation struct {
	log     *slog.Logger
	agents  *slog.Logger // of the kind agents
	metrics *telemetry.Metrics
	// tracing is nil where no traces are wanted. It is set before the gateway
	// runs.
	tracing *telemetry.Tracing
}

// newObservation returns the observation of g, whose parts it asks when the
// metrics are read.
func newObservation(g *gateway) *observation {
	return &observation{
		log: g.log, agents: telemetry.OfKind(g.log, telemetry.KindAgents),
		metrics: telemetry.NewMetrics(version, telemetry.Now{
			Handles: g.countHandles,
			Waiting: func() int { return g.atHand().Waiting },
			Listens: func() int { return g.atHand().Listens },
			Agents:  g.agentStates,
		}),
	}
}

// handlesPatience bounds the question to the store, which may be another
// machine's.
const handlesPatience = time.Second

func (g *gateway) countHandles() (int, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), handlesPatience)
	defer cancel()
	n, err := g.handles.Len(ctx)
	return n, err == nil
}

func (g *gateway) agentStates() map[string]string {
	states := map[string]string{}
	for _, m := range g.fleet.list() {
		states[m.alias()] = string(m.agent.Status().State)
	}
	return states
}

// traceTo begins to send traces where the environment asks for it. The
// function it returns delivers what is left.
func (o *observation) traceTo(ctx context.Context, getenv func(string) (string, bool)) (end func(), err error) {
	options, wanted, err := telemetry.TraceOptionsFromEnv(getenv)
	if err != nil {
		return nil, usageError{err}
	}
	if !wanted {
		return func() {}, nil
	}
	options.Version, options.Log = version, o.log
	if o.tracing, err = telemetry.NewTracing(ctx, options); err != nil {
		return nil, err
	}
	o.log.Info("sending traces", "to", options.Endpoint)
	return func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracePatience)
		defer cancel()
		if err := o.tracing.Shutdown(last); err != nil {
			o.log.Warn("the last traces are not delivered", "err", err)
		}
	}, nil
}

// tracePatience is how long the last traces have to be delivered.
const tracePatience = 3 * time.Second

// edge puts the observation on the hooks of the edge.
func (o *observation) edge(options *server.Options) {
	options.Observe, options.Refused = o.request, o.metrics.Refused
	if options.Routes == nil {
		options.Routes = map[string]http.Handler{}
	}
	options.Routes["/metrics"] = unrestricted(o.metrics.Handler())
	options.Trace = o.trace
}

// pipe puts the observation on the hooks of a pipe.
func (o *observation) pipe(options *server.StdioOptions) {
	options.Observe, options.Trace = o.request, o.trace
}

// atHand counts the work of the edge that is in use.
func (g *gateway) atHand() server.Counts {
	if counts := g.pipeCounts.Load(); counts != nil {
		return (*counts)()
	}
	return g.server.Counts()
}

// request is told of an MCP request that is over.
func (o *observation) request(x server.Exchange) {
	code := x.Code
	if x.Status == http.StatusTooManyRequests {
		code = telemetry.OverLimit
	}
	o.metrics.Request(x.Method, string(x.Revision), code, x.Duration)
	level := slog.LevelDebug
	if x.Method == "tools/call" {
		level = slog.LevelInfo
	}
	ctx := telemetry.WithRequest(context.Background(), x.Request)
	if !o.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", x.Method), slog.String("principal", x.Principal), slog.String("revision", string(x.Revision)),
	}
	if x.Status != 0 { // of HTTP
		attrs = append(attrs, slog.Int("status", x.Status))
	}
	attrs = append(attrs, slog.Float64("ms", millis(x.Duration)))
	if r := x.Request; r.Outcome != "" {
		attrs = append(attrs, slog.String("tool", r.Tool), slog.String("agent", r.Agent), slog.String("outcome", r.Outcome))
	}
	if x.Code != 0 {
		attrs = append(attrs, slog.Int("code", x.Code))
	}
	o.log.LogAttrs(ctx, level, "request", attrs...)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Observe is told of a tool call that is over.
func (o *observation) Observe(ctx context.Context, r tools.CallRecord) {
	o.metrics.Call(r.Tool, r.Agent, r.Outcome, r.Duration)
	if t := telemetry.FromContext(ctx); t != nil {
		t.Tool, t.Agent, t.Outcome = r.Tool, r.Agent, r.Outcome
	}
}

// trace begins the trace of an MCP request.
func (o *observation) trace(method string, in a2a.Trace) (a2a.Trace, func(server.Exchange)) {
	if o.tracing == nil {
		return in, nil
	}
	out, end := o.tracing.Request(method, telemetry.Trace{Parent: in.Parent, State: in.State})
	return a2a.Trace{Parent: out.Parent, State: out.State, Request: in.Request}, func(x server.Exchange) {
		end(telemetry.RequestEnd{Revision: string(x.Revision), Status: x.Status, Code: x.Code, Request: x.Request})
	}
}

// start is told of a request to an agent before it is made.
func (o *observation) start(ctx context.Context, x a2a.Exchange, t a2a.Trace) (context.Context, a2a.Trace, func(a2a.Exchange)) {
	ctx = telemetry.WithRequest(ctx, telemetry.NewRequest(t.Request, telemetry.KindAgents))
	out, ended := o.tracing.Upstream(telemetry.UpstreamStart{
		Agent: x.Alias, Op: x.Op, Version: string(x.Version), Binding: string(x.Binding), Retry: x.Retry, Fallback: x.Fallback,
	}, telemetry.Trace{Parent: t.Parent, State: t.State})
	t.Parent, t.State = out.Parent, out.State
	return ctx, t, func(x a2a.Exchange) {
		if ended != nil {
			ended(x.Status, string(x.Cause))
		}
		o.upstream(ctx, x)
	}
}

// upstream is told of a request to an agent that is over.
func (o *observation) upstream(ctx context.Context, x a2a.Exchange) {
	o.metrics.Upstream(telemetry.Upstream{
		Agent: x.Alias, Op: x.Op, Cause: string(x.Cause), Fallback: x.Fallback, Retry: x.Retry, Took: x.Duration,
	})
	if !o.agents.Enabled(ctx, telemetry.LevelFlow) {
		return
	}
	attrs := []slog.Attr{
		slog.String("agent", x.Alias), slog.String("op", x.Op), slog.String("version", string(x.Version)),
		slog.String("binding", string(x.Binding)), slog.Int("status", x.Status), slog.Float64("ms", millis(x.Duration)),
	}
	if x.Cause != "" {
		attrs = append(attrs, slog.String("cause", string(x.Cause)))
	}
	if x.Fallback != "" {
		attrs = append(attrs, slog.String("fallback", x.Fallback))
	}
	if x.Retry > 0 {
		attrs = append(attrs, slog.Int("retry", x.Retry))
	}
	o.agents.LogAttrs(ctx, telemetry.LevelFlow, "agent call", attrs...)
}

// follow is told how the numbers of what is followed of an agent change.
func (o *observation) follow(alias string) func(a2a.FollowerCounts) {
	return func(d a2a.FollowerCounts) { o.metrics.Follow(alias, d.Watches, d.Tasks, d.Streams) }
}

// around is put around the transport of an agent: it shows what goes through
// it where the log is to show that, and counts the requests for cards, which
// no client makes.
func (o *observation) around(alias string, next http.RoundTripper) http.RoundTripper {
	return &cardCounter{next: telemetry.Tap{Log: o.agents}.Around(alias, next), o: o, alias: alias}
}

type cardCounter struct {
	next  http.RoundTripper
	o     *observation
	alias string
}

// CloseIdleConnections hands on what http.Client asks of its transport.
func (c *cardCounter) CloseIdleConnections() {
	if i, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		i.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (c *cardCounter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || telemetry.FromContext(req.Context()) != nil {
		return c.next.RoundTrip(req)
	}
	began := time.Now()
	resp, err := c.next.RoundTrip(req)
	x := a2a.Exchange{Alias: c.alias, Op: "card", Duration: time.Since(began)}
	switch {
	case err != nil:
		x.Cause = a2a.Cause(telemetry.CauseOf(err))
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		x.Status, x.Cause = resp.StatusCode, a2a.CauseAuth
	case resp.StatusCode >= 400:
		x.Status, x.Cause = resp.StatusCode, a2a.CauseHTTP
	default:
		x.Status = resp.StatusCode
	}
	c.o.upstream(req.Context(), x)
	return resp, err
}
