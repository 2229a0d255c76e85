// Package telemetry is what an operator sees of a running gateway: its log
// with levels that can be changed while it runs, Prometheus metrics on a
// registry of their own, and OpenTelemetry traces when the standard variables
// ask for them. It takes plain values and keeps no contents: bodies are seen
// only by Tap, which shows their shape, and only at LevelRaw what is in them.
//
// The package imports nothing of this module and reads no environment; cmd
// fits it to the parts that report. What is off costs a comparison.
package telemetry

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync/atomic"
)

// Kind sorts what happens in the gateway, for the levels of the log. It is a
// closed set.
type Kind uint8

// The kinds.
const (
	KindGateway Kind = iota // everything that is none of the others
	KindCalls               // tools/call
	KindTasks               // tasks/*
	KindReads               // lists, discover, initialize, ping, prompts, resources, completion
	KindListens             // subscriptions/listen
	KindAgents              // what goes to the agents and comes from them
	kinds
)

var kindNames = [kinds]string{"gateway", "calls", "tasks", "reads", "listens", "agents"}

// String returns the name of the kind, as it stands in the log.
func (k Kind) String() string { return kindNames[k] }

// KindFromName returns the kind of a name.
func KindFromName(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name {
			return Kind(k), true
		}
	}
	return 0, false
}

// KindFromMethod returns the kind of an MCP method, known or not.
func KindFromMethod(method string) Kind {
	switch {
	case method == "tools/call":
		return KindCalls
	case method == "subscriptions/listen":
		return KindListens
	case strings.HasPrefix(method, "tasks/"):
		return KindTasks
	}
	return KindReads
}

// Request is what is known of one MCP request on its way, for the log, the
// metrics and the traces. It belongs to the goroutine of the request.
type Request struct {
	Kind Kind
	// Tool, Agent and Outcome are set when a tool call is over. Tool is "" for
	// a name that no tool has.
	Tool, Agent, Outcome string

	id     string
	prefix string
	number uint64
}

// ID names the request in the log and in the errors that callers see.
func (r *Request) ID() string {
	if r.id == "" && r.prefix != "" {
		r.id = r.prefix + "-" + strconv.FormatUint(r.number, 36)
	}
	return r.id
}

// NewRequest returns a Request with an id from elsewhere.
func NewRequest(id string, kind Kind) *Request { return &Request{id: id, Kind: kind} }

// Numbers gives requests their ids, unique among the replicas and restarts of
// a gateway. It may be used concurrently.
type Numbers struct {
	prefix string
	last   atomic.Uint64
}

// NewNumbers returns a Numbers with a random prefix.
func NewNumbers() *Numbers { return &Numbers{prefix: strings.ToLower(rand.Text()[:6])} }

// Number gives a request its id. It is written out only when it is asked for.
func (n *Numbers) Number(r *Request) {
	r.prefix, r.number, r.id = n.prefix, n.last.Add(1), ""
}

// Context is a context that carries a Request without a further allocation;
// it must not be copied once it is in use.
type Context struct {
	context.Context
	Request Request
}

type requestKey struct{}

// Value implements context.Context.
func (c *Context) Value(key any) any {
	if _, ok := key.(requestKey); ok {
		return &c.Request
	}
	return c.Context.Value(key)
}

// WithRequest returns a context that carries r.
func WithRequest(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// FromContext returns the Request of a context, nil where there is none.
func FromContext(ctx context.Context) *Request {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r
}
