package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"a2agate/tools"
	"a2agate/translate"
)

// tasksExtension is the key of the tasks extension among the capabilities.
const tasksExtension = "io.modelcontextprotocol/tasks"

// delegation travels in the context of HandleMessage: who asks, and the error
// that a handler wants to give in its own words.
type delegation struct {
	req *Request
	err error
	// prompt are the arguments of a prompts/get with what its client has been
	// asked for; nil are those of the request.
	prompt map[string]string
}

type delegationKey struct{}

func delegated(ctx context.Context) *delegation {
	d, _ := ctx.Value(delegationKey{}).(*delegation)
	return d
}

// delegate makes the message of the result that mcp-go makes of a request. mcp-go gets a
// message put together anew of what was parsed here, so the two cannot read
// it differently.
func (c *Core) delegate(ctx context.Context, req *Request) ([]byte, failure) {
	snap, f := c.snapshot(req)
	if !f.failed() {
		f = c.checkTarget(req, snap)
	}
	if f.failed() {
		return nil, f
	}
	ask, prompt, f := c.askPrompt(req)
	if f.failed() {
		return nil, f
	}
	if ask != nil {
		in := translate.InputRequired{Asks: []translate.Ask{*ask}}
		return translate.AppendInputRequired(response(req.ID), in, req.Revision, c.meta(req.Revision)), failure{}
	}
	result, f := c.handleMessage(ctx, req, snap, prompt)
	if f.failed() {
		return nil, f
	}
	return c.encode(ctx, req, result)
}

// checkTarget checks that what the request names exists in the catalogue.
func (c *Core) checkTarget(req *Request, snap *snapshot) failure {
	switch req.Method {
	case "prompts/get":
		name, ok := stringValue(req.P.Name)
		if !ok {
			return malformed("prompts/get: params.name must be a string")
		}
		for i := range snap.cat.Prompts {
			if snap.cat.Prompts[i].Name == name {
				return failure{}
			}
		}
		return refuse(translate.CodeInvalidParams, "unknown prompt %q", name)
	case "resources/read":
		if _, ok := stringValue(req.P.URI); !ok {
			return malformed("resources/read: params.uri must be a string")
		}
	case "completion/complete":
		if !isObject(req.P.Ref) {
			return malformed("completion/complete: params.ref must be an object")
		}
	}
	return failure{}
}

func (c *Core) handleMessage(ctx context.Context, req *Request, snap *snapshot, prompt map[string]string) (any, failure) {
	d := &delegation{req: req, prompt: prompt}
	ctx = context.WithValue(ctx, delegationKey{}, d)
	ctx = mcpserver.WithSupportedProtocolVersions(ctx, supportedNames())
	msg := append([]byte(`{"jsonrpc":"2.0","id":1,"method":`), translate.AppendString(nil, req.Method)...)
	if req.Params != nil {
		msg = append(msg, `,"params":`...)
		msg = append(msg, req.Params...)
	}
	msg = append(msg, '}')
	switch resp := snap.server(c).HandleMessage(ctx, msg).(type) {
	case mcp.JSONRPCResponse:
		return resp.Result, failure{}
	case mcp.JSONRPCError:
		return nil, c.delegateError(ctx, req, d, resp.Error)
	}
	return nil, refuse(translate.CodeInternal, "internal error: no answer to %s", req.Method)
}

// delegateError puts mcp-go's error into the words and codes of this gateway:
// mcp-go's texts hold Go types, its -32600 is a matter of params, and its
// missing resource lacks the uri (MCP 2026-07-28, resources).
func (c *Core) delegateError(ctx context.Context, req *Request, d *delegation, e mcp.JSONRPCErrorDetails) failure {
	var own *translate.Error
	switch {
	case errors.As(d.err, &own):
		f := failure{err: own}
		if req.Method == "resources/read" && own.Code == translate.CodeInvalidParams && own.Data == nil {
			f.err = missingResource(req, own.Message)
		}
		return f
	case d.err == nil && req.Method == "resources/read" && (e.Code == mcp.RESOURCE_NOT_FOUND || e.Code == mcp.INVALID_PARAMS):
		return failure{err: missingResource(req, "there is no such resource; resources/list and resources/templates/list have all")}
	case d.err != nil:
		c.o.Log.ErrorContext(ctx, "request failed", "method", req.Method, "error", d.err)
		return refuse(translate.CodeInternal, "internal error: see the gateway's log")
	case e.Code == mcp.INVALID_REQUEST || e.Code == mcp.INVALID_PARAMS || e.Code == mcp.PARSE_ERROR:
		return malformed("%s: params do not have the shape that the specification gives them", req.Method)
	}
	c.o.Log.ErrorContext(ctx, "request failed", "method", req.Method, "code", e.Code, "error", e.Message)
	return refuse(translate.CodeInternal, "internal error: see the gateway's log")
}

// missingResource is the error of a resource that cannot be read.
func missingResource(req *Request, message string) *translate.Error {
	uri, _ := stringValue(req.P.URI)
	data := translate.AppendString([]byte(`{"uri":`), uri)
	return &translate.Error{Code: translate.CodeInvalidParams, Message: message, Data: append(data, '}')}
}

// encode makes the message of a result of mcp-go.
func (c *Core) encode(ctx context.Context, req *Request, result any) ([]byte, failure) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(result); err != nil {
		c.o.Log.ErrorContext(ctx, "result cannot be encoded", "method", req.Method, "error", err)
		return nil, refuse(translate.CodeInternal, "internal error: see the gateway's log")
	}
	return append(response(req.ID), bytes.TrimSpace(buf.Bytes())...), failure{}
}

// initialize makes the message that answers the handshake of the legacy wires. The version and the
// capabilities are put right here: mcp-go echoes versions that are not served
// and announces to legacy clients what only the modern wire has.
func (c *Core) initialize(ctx context.Context, req *Request) (msg []byte, session string, f failure) {
	asked, ok := stringValue(req.P.ProtocolVersion)
	if !ok {
		return nil, "", malformed("initialize: params.protocolVersion must be a string")
	}
	rev := negotiate(asked)
	snap, f := c.snapshot(req)
	if f.failed() {
		return nil, "", f
	}
	raw, f := c.handleMessage(ctx, req, snap, nil)
	if f.failed() {
		return nil, "", f
	}
	result, ok := raw.(mcp.InitializeResult)
	if !ok {
		return nil, "", refuse(translate.CodeInternal, "internal error: initialize came to %T", raw)
	}
	result.ProtocolVersion = string(rev)
	result.Capabilities = legacyCapabilities(result.Capabilities, req.Announces)
	if req.NewSession != nil {
		session = req.NewSession(rev, legacyClient(req.P.Capabilities, rev))
	}
	msg, f = c.encode(ctx, req, result)
	return msg, session, f
}

// legacyCapabilities takes out what a legacy client cannot use: the extensions
// and resource subscriptions, and list_changed where nothing carries it.
func legacyCapabilities(in mcp.ServerCapabilities, announces bool) mcp.ServerCapabilities {
	in.Extensions = nil
	if in.Tools != nil {
		t := *in.Tools
		t.ListChanged = announces
		in.Tools = &t
	}
	if in.Prompts != nil {
		p := *in.Prompts
		p.ListChanged = announces
		in.Prompts = &p
	}
	if in.Resources != nil {
		r := *in.Resources
		r.ListChanged, r.Subscribe = announces, false
		in.Resources = &r
	}
	return in
}

func supportedNames() []string {
	names := make([]string, len(supported))
	for i, r := range supported {
		names[i] = string(r)
	}
	return names
}

// server returns the mcp-go server of the snapshot, made at first use. It is
// immutable and holds everything but tools: tools/list and tools/call never
// reach it.
func (s *snapshot) server(c *Core) *mcpserver.MCPServer {
	s.once.Do(func() { s.mcp = c.newMCPServer(s) })
	return s.mcp
}

func (c *Core) newMCPServer(s *snapshot) *mcpserver.MCPServer {
	scope := mcp.CacheScopePublic
	if c.o.Private {
		scope = mcp.CacheScopePrivate
	}
	opts := []mcpserver.ServerOption{
		mcpserver.WithToolCapabilities(true),
		mcpserver.WithCacheHints(c.o.ListTTL.Milliseconds(), scope),
		// What one caller may read is not for a shared cache.
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesRead, 0, mcp.CacheScopePrivate),
	}
	if s.cat.Instructions != "" {
		opts = append(opts, mcpserver.WithInstructions(s.cat.Instructions))
	}
	if c.o.Prompts != nil {
		opts = append(opts, mcpserver.WithPromptCapabilities(true))
	}
	if c.o.Resources != nil {
		_, watched := c.o.Catalogues.(ResourceVersions)
		opts = append(opts, mcpserver.WithResourceCapabilities(watched, true))
	}
	if c.o.Completions != nil {
		done := completer{c: c.o.Completions, view: s.view}
		opts = append(opts, mcpserver.WithCompletions(),
			mcpserver.WithPromptCompletionProvider(done), mcpserver.WithResourceCompletionProvider(done))
	}
	if c.o.Tasks != nil {
		opts = append(opts, mcpserver.WithExtensions(map[string]any{tasksExtension: struct{}{}}))
	}
	m := mcpserver.NewMCPServer(c.o.Name, c.o.Version, opts...)
	c.addPrompts(m, s)
	c.addResources(m, s)
	return m
}

func (c *Core) addPrompts(m *mcpserver.MCPServer, s *snapshot) {
	if c.o.Prompts == nil || len(s.cat.Prompts) == 0 {
		return
	}
	handle := func(ctx context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		d := delegated(ctx)
		args := r.Params.Arguments
		if d.prompt != nil {
			args = d.prompt
		}
		res, err := c.o.Prompts.GetPrompt(ctx, s.view, r.Params.Name, args)
		d.err = err
		return res, err
	}
	list := make([]mcpserver.ServerPrompt, len(s.cat.Prompts))
	for i, p := range s.cat.Prompts {
		list[i] = mcpserver.ServerPrompt{Prompt: mcp.Prompt{Name: p.Name}, Handler: handle}
	}
	m.AddPrompts(list...)
}

func (c *Core) addResources(m *mcpserver.MCPServer, s *snapshot) {
	if c.o.Resources == nil {
		return
	}
	handle := func(ctx context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		d := delegated(ctx)
		res, err := c.o.Resources.ReadResource(ctx, d.req.Principal, s.view, r.Params.URI)
		d.err = err
		return res, err
	}
	for _, r := range s.cat.Resources {
		m.AddResource(mcp.Resource{URI: r.URI, Name: r.Name}, handle)
	}
	for _, r := range s.cat.Templates {
		if err := addTemplate(m, r, handle); err != nil {
			c.o.Log.Error("resource template left out", "template", r.URI, "error", err)
		}
	}
}

// addTemplate guards against mcp-go's panic on a template that is none.
func addTemplate(m *mcpserver.MCPServer, r tools.Resource, h mcpserver.ResourceTemplateHandlerFunc) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not an RFC 6570 template: %v", p)
		}
	}()
	m.AddResourceTemplate(mcp.NewResourceTemplate(r.URI, r.Name), h)
	return nil
}

// completer is the Completions of one view, as mcp-go wants it.
type completer struct {
	c    Completions
	view tools.View
}

func (p completer) CompletePromptArgument(ctx context.Context, name string, a mcp.CompleteArgument, earlier mcp.CompleteContext) (*mcp.Completion, error) {
	return p.complete(ctx, name, "", a, earlier)
}

func (p completer) CompleteResourceArgument(ctx context.Context, uri string, a mcp.CompleteArgument, earlier mcp.CompleteContext) (*mcp.Completion, error) {
	return p.complete(ctx, "", uri, a, earlier)
}

func (p completer) complete(ctx context.Context, prompt, template string, a mcp.CompleteArgument, earlier mcp.CompleteContext) (*mcp.Completion, error) {
	d := delegated(ctx)
	res, err := p.c.Complete(ctx, p.view, prompt, template, a.Name, a.Value, earlier.Arguments)
	d.err = err
	if res != nil && len(res.Values) > maxCompletions {
		cut := *res
		cut.Values, cut.HasMore = res.Values[:maxCompletions], true
		cut.Total = max(res.Total, len(res.Values))
		res = &cut
	}
	return res, err
}

// maxCompletions is the most that one answer may carry (MCP, completion).
const maxCompletions = 100
