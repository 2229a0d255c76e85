package server

import (
	"bytes"
	"context"
	"strings"
	"time"

	"a2agate/a2a"
	"a2agate/internal/telemetry"
	"a2agate/translate"
)

// Counts is how much a Server has to do at one moment.
type Counts struct {
	// Waiting is the requests that wait for their answer, Listens the open
	// subscriptions/listen streams.
	Waiting, Listens int
}

// Counts returns what the server has to do now.
func (s *Server) Counts() Counts {
	s.listens.mu.Lock()
	defer s.listens.mu.Unlock()
	return Counts{Waiting: s.active.len(), Listens: s.listens.total}
}

func (p *pipe) counts() Counts {
	return Counts{Waiting: p.active.len(), Listens: int(p.listens.Load())}
}

// TraceFunc begins the trace of one MCP request. It returns the trace context
// that goes on to agents, and what is to be called when the request is over,
// or nil. in is valid or empty. It is called concurrently.
type TraceFunc func(method string, in a2a.Trace) (out a2a.Trace, end func(Exchange))

// trace is the trace context of the request for those behind the edge: that
// of its span, where there are spans, else the caller's own.
func (x *exchange) trace() a2a.Trace {
	t := x.callersTrace()
	if x.s.o.Trace != nil {
		t, x.endTrace = x.s.o.Trace(x.env.Method, t)
	}
	if methods[x.env.Method].slow {
		t.Request = x.ctx.Request.ID()
	}
	return t
}

// callersTrace is the header's trace context, else that of _meta.
func (x *exchange) callersTrace() a2a.Trace {
	if v := headerValue(x.r.Header, "Traceparent"); v != "" {
		return validTrace(v, strings.Join(x.r.Header["Tracestate"], ","))
	}
	return x.env.trace()
}

// trace is the trace context in _meta.
func (e *Envelope) trace() a2a.Trace {
	parent, ok := stringValue(e.Meta.TraceParent)
	if !ok || parent == "" {
		return a2a.Trace{}
	}
	state, _ := stringValue(e.Meta.TraceState)
	return validTrace(parent, state)
}

// validTrace drops what is no trace context, for agents get it as headers.
func validTrace(parent, state string) a2a.Trace {
	t := telemetry.ValidTrace(telemetry.Trace{Parent: parent, State: state})
	return a2a.Trace{Parent: t.Parent, State: t.State}
}

// toolNamed is the tool that a message calls, "" where it calls none.
func (e *Envelope) toolNamed() string {
	if e.Method != "tools/call" {
		return ""
	}
	name, _ := stringValue(e.P.Name)
	return name
}

// begin notes what the request is about, for the log.
func (x *exchange) begin() { x.ctx.Request.Kind = telemetry.KindFromMethod(x.env.Method) }

// record is what is told of the request when it is over.
func (x *exchange) record(status, code int, streamed bool) Exchange {
	return Exchange{
		Method: x.env.Method, Tool: x.env.toolNamed(), Principal: x.id.Principal, Revision: x.req.Revision,
		Status: status, Code: code, Streamed: streamed, Duration: time.Since(x.start), Request: &x.ctx.Request,
	}
}

func (x *exchange) observe(status, code int, streamed bool) {
	x.traced(status, code, streamed)
	if x.s.o.Observe != nil {
		x.s.o.Observe(x.record(status, code, streamed))
	}
}

// traced ends the trace of the request, if one was begun.
func (x *exchange) traced(status, code int, streamed bool) {
	if x.endTrace != nil {
		x.endTrace(x.record(status, code, streamed))
		x.endTrace = nil
	}
}

// pipeWatch is the observation of one message on a pipe. It belongs to the
// goroutine of the message.
type pipeWatch struct {
	p *pipe
	// ctx tells who the request is; its life is set where one is begun.
	ctx      telemetry.Context
	env      *Envelope
	start    time.Time
	endTrace func(Exchange) // nil without a trace
}

// watch begins the observation of a message; e has no method where it was not
// legible.
func (p *pipe) watch(e *Envelope) *pipeWatch {
	w := &pipeWatch{p: p, env: e, start: time.Now()}
	w.ctx.Context = p.base
	w.ctx.Request.Kind = telemetry.KindFromMethod(e.Method)
	p.c.numbers.Number(&w.ctx.Request)
	return w
}

// trace begins the trace of a request, as exchange.trace does.
func (w *pipeWatch) trace() a2a.Trace {
	t := w.env.trace()
	if w.p.o.Trace != nil {
		t, w.endTrace = w.p.o.Trace(w.env.Method, t)
	}
	if methods[w.env.Method].slow {
		t.Request = w.ctx.Request.ID()
	}
	return t
}

func (w *pipeWatch) record(rev translate.Revision, code int) Exchange {
	return Exchange{
		Method: w.env.Method, Tool: w.env.toolNamed(), Principal: w.p.o.Principal, Revision: rev,
		Code: code, Duration: time.Since(w.start), Request: &w.ctx.Request,
	}
}

// traced ends the trace of the request, if one was begun.
func (w *pipeWatch) traced(rev translate.Revision, code int) {
	if w.endTrace != nil {
		w.endTrace(w.record(rev, code))
		w.endTrace = nil
	}
}

// over says that the message has been dealt with.
func (w *pipeWatch) over(rev translate.Revision, code int) {
	w.traced(rev, code)
	if w.p.o.Observe != nil {
		w.p.o.Observe(w.record(rev, code))
	}
}

// turnedAway tells of a request that was refused by its headers alone.
func (s *Server) turnedAway(status int) {
	if s.o.Refused != nil {
		s.o.Refused(status)
	}
}

// numbered returns ctx with an id for the request, where it has none: HTTP
// numbers its requests itself.
func (c *Core) numbered(ctx context.Context, req *Request) context.Context {
	if telemetry.FromContext(ctx) != nil {
		return ctx
	}
	own := &telemetry.Context{Context: ctx}
	own.Request.Kind = telemetry.KindFromMethod(req.Method)
	c.numbers.Number(&own.Request)
	return own
}

// requestID names the request that ctx belongs to, in the log and in answers;
// ctx is numbered.
func requestID(ctx context.Context) string {
	if r := telemetry.FromContext(ctx); r != nil {
		return r.ID()
	}
	return ""
}

// withRequestID puts the id into the data of an internal error, so that a
// caller can name what the log tells about it. The data of others stays as it
// is.
func withRequestID(e *translate.Error, id func() string) *translate.Error {
	if e.Code != translate.CodeInternal || e.Data != nil && !isObject(e.Data) {
		return e
	}
	if v, _ := lookup(e.Data, "requestId"); v != nil {
		return e
	}
	own := *e
	data := translate.AppendString([]byte(`{"requestId":`), id())
	if e.Data != nil {
		text := bytes.TrimSpace(e.Data)
		if rest := bytes.TrimSpace(text[1 : len(text)-1]); len(rest) > 0 {
			data = append(append(data, ','), rest...)
		}
	}
	own.Data = append(data, '}')
	return &own
}
