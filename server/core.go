package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"a2agate/a2a"
	"a2agate/internal/telemetry"
	"a2agate/tools"
	"a2agate/translate"
)

// CoreOptions is what a Core is made of. Caller and Catalogues are needed;
// what is nil of the others is neither advertised nor served.
type CoreOptions struct {
	Caller      Caller
	Catalogues  Catalogues
	Prompts     Prompts
	Resources   Resources
	Completions Completions
	Tasks       Tasks
	// Name and Version are the serverInfo ("a2agate").
	Name, Version string
	// ListTTL is how long a client may keep a list (60 s).
	ListTTL time.Duration
	// Private marks lists as belonging to one caller: set it where
	// authentication filters them.
	Private bool
	// ParamHeaders leaves x-mcp-header annotations in tool schemas, and then
	// checks the headers; without it they are taken out.
	ParamHeaders bool
	// Log is told of panics and of tools that had to be left out; nil is
	// slog.Default.
	Log *slog.Logger
}

// Core answers MCP requests of every served revision and knows no transport.
// Its methods may be called concurrently.
type Core struct {
	o          CoreOptions
	serverInfo []translate.MetaEntry // the _meta of modern results
	snapshots  snapshots
	numbers    *telemetry.Numbers
}

// NewCore makes a Core.
func NewCore(o CoreOptions) *Core {
	if o.Name == "" {
		o.Name = "a2agate"
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.ListTTL == 0 {
		o.ListTTL = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	info := append([]byte(`{"name":`), translate.AppendString(nil, o.Name)...)
	info = append(info, `,"version":`...)
	info = append(translate.AppendString(info, o.Version), '}')
	c := &Core{o: o, numbers: telemetry.NewNumbers(), serverInfo: []translate.MetaEntry{{Key: metaServerInfo, Value: info}}}
	c.snapshots.views = make(map[tools.View]*snapshot)
	return c
}

// Request is one JSON-RPC request, freed of its transport.
type Request struct {
	*Envelope
	Revision  translate.Revision
	Principal string
	View      tools.View
	Client    tools.ClientCapabilities
	Trace     a2a.Trace
	// Sink takes the progress and the questions of a tools/call; nil drops
	// progress and asks nothing.
	Sink tools.Sink
	// Headers looks up Mcp-Param-* headers; nil on transports without headers,
	// where nothing is checked.
	Headers ParamHeaders
	// NewSession makes the id that a legacy initialize hands out, which
	// Answer.Session then says; nil for none.
	NewSession func(translate.Revision, tools.ClientCapabilities) string
	// Announces says that a legacy client hears of changed lists without asking,
	// as over a pipe. Over HTTP no stream could carry that.
	Announces bool
}

// ParamHeaders looks up request headers by name.
type ParamHeaders interface {
	ParamHeader(name string) (value string, present bool)
}

// Answer is the answer to one Request.
type Answer struct {
	// Message is the complete JSON-RPC response.
	Message []byte
	// Code is the code of the JSON-RPC error, 0 for a result.
	Code int
	// Shape says that the request itself was malformed, as opposed to
	// something in it that does not exist.
	Shape bool
	// Session is the session id that initialize made, "" for none.
	Session string
}

// failure is an error on its way to becoming an Answer.
type failure struct {
	err   *translate.Error
	shape bool
}

func (f failure) failed() bool { return f.err != nil }

// refuse says that something the request names does not exist or cannot be.
func refuse(code int, format string, args ...any) failure {
	return failure{err: &translate.Error{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// malformed says that the request itself has the wrong shape.
func malformed(format string, args ...any) failure {
	return failure{err: &translate.Error{Code: translate.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}, shape: true}
}

func notFound(name string) failure {
	return refuse(translate.CodeMethodNotFound, "method %q does not exist here", name)
}

// Handle answers one request. It never panics: a panic below it becomes -32603
// with an id that the log has too.
func (c *Core) Handle(ctx context.Context, req *Request) (a Answer) {
	ctx = c.numbered(ctx, req)
	defer func() {
		if p := recover(); p != nil {
			a = Answer{Code: translate.CodeInternal, Message: c.panicked(ctx, req, p)}
		}
	}()
	f := c.admit(req)
	if f.failed() {
		return failed(ctx, req.ID, f)
	}
	a.Message, a.Session, f = c.result(ctx, req)
	if f.failed() {
		return failed(ctx, req.ID, f)
	}
	a.Message = append(a.Message, '}')
	return a
}

// buffers hold messages while they are written. A call that waits for its
// agent holds none.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// maxPooled keeps one large answer from staying in memory for ever.
const maxPooled = 256 << 10

// recycle takes back the message of an answer that has been written.
func recycle(msg []byte) {
	if cap(msg) <= maxPooled {
		buffers.Put(&msg)
	}
}

// response begins the message of a result; the result and a brace are to
// follow.
func response(id json.RawMessage) []byte {
	dst := (*buffers.Get().(*[]byte))[:0]
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(dst, `,"result":`...)
}

func (c *Core) panicked(ctx context.Context, req *Request, p any) []byte {
	id := requestID(ctx)
	c.o.Log.ErrorContext(ctx, "panic while answering", "method", req.Method, "requestId", id, "panic", p, "stack", string(debug.Stack()))
	return errorResponse(req.ID, &translate.Error{
		Code:    translate.CodeInternal,
		Message: "internal error, request " + id + ": see the gateway's log",
		Data:    json.RawMessage(`{"requestId":"` + id + `"}`),
	})
}

// failed makes the answer of an error. A code that MCP does not know here, such
// as one of A2A's, never leaves (MCP 2026-07-28, basic, error codes).
func failed(ctx context.Context, id json.RawMessage, f failure) Answer {
	switch f.err.Code {
	case translate.CodeParse, translate.CodeInvalidRequest, translate.CodeMethodNotFound, translate.CodeInvalidParams, translate.CodeInternal,
		translate.CodeHeaderMismatch, translate.CodeMissingCapability, translate.CodeUnsupportedVersion:
	default:
		own := *f.err
		own.Code = translate.CodeInternal
		f.err = &own
	}
	f.err = withRequestID(f.err, func() string { return requestID(ctx) })
	return Answer{Message: errorResponse(id, f.err), Code: f.err.Code, Shape: f.shape}
}

// errorResponse is a JSON-RPC error response; id nil leaves the id out.
func errorResponse(id json.RawMessage, e *translate.Error) []byte {
	dst := []byte(`{"jsonrpc":"2.0"`)
	if id != nil {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id...)
	}
	dst = append(dst, `,"error":`...)
	return append(translate.AppendError(dst, e), '}')
}

// exists reports whether the method is served on this revision.
func (c *Core) exists(name string, rev translate.Revision) (method, bool) {
	m, ok := methods[name]
	if !ok || rev.Modern() && !m.modern || !rev.Modern() && !m.legacy {
		return m, false
	}
	switch m.feature {
	case featPrompts:
		return m, c.o.Prompts != nil
	case featResources:
		return m, c.o.Resources != nil
	case featCompletions:
		return m, c.o.Completions != nil
	case featTasks:
		return m, c.o.Tasks != nil
	}
	return m, true
}

// admit makes the checks that stand between the headers and the handler (MCP
// 2026-07-28: method, then capability, then the shape of params).
func (c *Core) admit(req *Request) failure {
	m, ok := c.exists(req.Method, req.Revision)
	if !ok {
		return notFound(req.Method)
	}
	if m.feature == featTasks && !req.Client.Tasks {
		return failure{err: missingTasks()}
	}
	if req.paramsBad {
		return malformed("params must be an object")
	}
	if req.metaBad {
		return malformed("params._meta must be an object")
	}
	if t := req.Meta.ProgressToken; t != nil && !validID(t) {
		return malformed("params._meta.progressToken must be a string or an integer")
	}
	if l := req.Meta.LogLevel; l != nil && req.Revision.Modern() && !logLevels[string(unquoteBytes(l))] {
		return malformed("params._meta[%q] must be one of debug, info, notice, warning, error, critical, alert, emergency", metaLogLevel)
	}
	return failure{}
}

var logLevels = map[string]bool{"debug": true, "info": true, "notice": true, "warning": true,
	"error": true, "critical": true, "alert": true, "emergency": true}

// missingTasks is -32021 for the tasks extension.
func missingTasks() *translate.Error {
	return &translate.Error{
		Code:    translate.CodeMissingCapability,
		Message: `this needs the client capability extensions["` + tasksExtension + `"] on the request`,
		Data:    json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
	}
}

// result makes the message of an admitted request but for its last brace.
func (c *Core) result(ctx context.Context, req *Request) (msg []byte, session string, f failure) {
	if methods[req.Method].slow {
		ctx = a2a.WithTrace(ctx, req.Trace) // for what is asked of agents on the way
	}
	switch req.Method {
	case "tools/call":
		msg, f = c.callTool(ctx, req)
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		msg, f = c.list(req)
	case "tasks/get", "tasks/update", "tasks/cancel":
		msg, f = c.task(ctx, req)
	case "ping":
		msg = append(response(req.ID), '{', '}')
	case "initialize":
		return c.initialize(ctx, req)
	case "subscriptions/listen":
		f = refuse(translate.CodeInvalidRequest, "subscriptions/listen needs a stream")
	default:
		msg, f = c.delegate(ctx, req)
	}
	return msg, "", f
}

// snapshot returns what the caller's view is made of now.
func (c *Core) snapshot(req *Request) (*snapshot, failure) {
	s := c.snapshots.of(c, req.View)
	if s == nil {
		return nil, refuse(translate.CodeInvalidParams, "there is no profile %q", req.View.Profile)
	}
	return s, failure{}
}

func (c *Core) callTool(ctx context.Context, req *Request) ([]byte, failure) {
	name, ok := stringValue(req.P.Name)
	if !ok {
		return nil, malformed("tools/call: params.name must be a string")
	}
	snap, f := c.snapshot(req)
	if f.failed() {
		return nil, f
	}
	tool, ok := snap.tools[name]
	if !ok {
		return nil, refuse(translate.CodeInvalidParams, "%s", tools.UnknownTool(name, snap.names()))
	}
	call, f := c.call(req, name)
	if f.failed() {
		return nil, f
	}
	if tool.headers != nil && req.Headers != nil && req.Revision.Modern() {
		if e := checkParamHeaders(tool.headers, call.Arguments, req.Headers); e != nil {
			return nil, failure{err: e}
		}
	}
	sink := req.Sink
	if sink == nil {
		sink = silent{}
	}
	if n, ok := sink.(agentNamer); ok && tool.agent != "" {
		n.Agent(tool.agent)
	}
	return c.outcome(ctx, req, c.o.Caller.Call(ctx, call, sink))
}

// call makes the Call of a tools/call, checking the shape of its params.
func (c *Core) call(req *Request, name string) (tools.Call, failure) {
	call := tools.Call{
		Principal: req.Principal,
		Agents:    c.o.Catalogues.Scope(req.View),
		Tool:      name,
		Arguments: req.P.Arguments,
		Client:    req.Client,
		Progress:  req.Meta.ProgressToken != nil,
		Trace:     req.Trace,
	}
	if a := req.P.Arguments; a != nil && !isObject(a) {
		return call, malformed("tools/call: params.arguments must be an object")
	}
	if !req.Revision.Modern() {
		call.Client.MidCallOnly = true
		return call, failure{}
	}
	if r := req.P.InputResponses; r != nil {
		if !isObject(r) {
			return call, malformed("tools/call: params.inputResponses must be an object")
		}
		call.InputResponses = r
	}
	if r := req.P.RequestState; r != nil {
		v, ok := stringValue(r)
		if !ok {
			return call, malformed("tools/call: params.requestState must be a string")
		}
		call.RequestState = &v
	}
	return call, failure{}
}

// outcome makes the message of what a call came to.
func (c *Core) outcome(ctx context.Context, req *Request, o translate.Outcome) ([]byte, failure) {
	meta := c.meta(req.Revision)
	switch {
	case o.Err != nil:
		return nil, failure{err: o.Err}
	case o.Result != nil:
		return translate.AppendResult(response(req.ID), *o.Result, req.Revision, meta), failure{}
	case o.InputRequired != nil && req.Revision.Modern():
		return translate.AppendInputRequired(response(req.ID), *o.InputRequired, req.Revision, meta), failure{}
	case o.Task != nil && req.Client.Tasks:
		return translate.AppendTask(response(req.ID), *o.Task, meta), failure{}
	}
	c.o.Log.ErrorContext(ctx, "a tool call came to nothing that this client can take", "tool", string(req.P.Name), "revision", req.Revision)
	return nil, refuse(translate.CodeInternal, "internal error: the call came to nothing that this client can take")
}

// meta is the _meta of results on a revision.
func (c *Core) meta(rev translate.Revision) []translate.MetaEntry {
	if rev.Modern() {
		return c.serverInfo
	}
	return nil
}

// task serves tasks/*; the extension has been found declared.
func (c *Core) task(ctx context.Context, req *Request) ([]byte, failure) {
	id, ok := stringValue(req.P.TaskID)
	if !ok {
		return nil, malformed("%s: params.taskId must be a string", req.Method)
	}
	call := TaskCall{Principal: req.Principal, Agents: c.o.Catalogues.Scope(req.View), TaskID: id, Client: req.Client}
	switch req.Method {
	case "tasks/get":
		out, err := c.o.Tasks.Get(ctx, response(req.ID), call, c.serverInfo)
		return out, failure{err: err}
	case "tasks/update":
		if !isObject(req.P.InputResponses) {
			return nil, malformed("tasks/update: params.inputResponses must be an object")
		}
		call.InputResponses = req.P.InputResponses
		if err := c.o.Tasks.Update(ctx, call); err != nil {
			return nil, failure{err: err}
		}
	default:
		if err := c.o.Tasks.Cancel(ctx, call); err != nil {
			return nil, failure{err: err}
		}
	}
	dst := append(response(req.ID), `{"resultType":"complete","_meta":`...)
	return append(translate.AppendMeta(dst, c.serverInfo), '}'), failure{}
}

// list makes the message of a list, which was written when its snapshot was made.
func (c *Core) list(req *Request) ([]byte, failure) {
	if cur := req.P.Cursor; cur != nil && !isNull(cur) {
		if _, ok := stringValue(cur); !ok {
			return nil, malformed("%s: params.cursor must be a string", req.Method)
		}
		return nil, refuse(translate.CodeInvalidParams, "%s: unknown cursor %s: this server answers with one page and gives out no cursors",
			req.Method, bytes.ToValidUTF8(cur[:min(len(cur), 80)], nil))
	}
	snap, f := c.snapshot(req)
	if f.failed() {
		return nil, f
	}
	return append(response(req.ID), snap.list(c, req.Method, req.Revision)...), failure{}
}

// silent is the Sink of a caller that hears nothing before the answer.
type silent struct{}

func (silent) Progress(string) {}

func (silent) Ask(context.Context, []translate.Ask) (map[string]translate.Answer, bool, error) {
	return nil, false, nil
}

// agentNamer is a Sink that wants to know which agent works, for its own
// words while the agent is silent.
type agentNamer interface{ Agent(name string) }
