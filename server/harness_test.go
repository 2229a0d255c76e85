package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.uber.org/goleak"

	"a2agate/tools"
	"a2agate/translate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// callFunc is a Caller.
type callFunc func(ctx context.Context, c tools.Call, sink tools.Sink) translate.Outcome

func (f callFunc) Call(ctx context.Context, c tools.Call, sink tools.Sink) translate.Outcome {
	return f(ctx, c, sink)
}

// says is a Caller's plain answer.
func says(text string) translate.Outcome {
	return translate.Outcome{Result: &translate.Result{Content: []mcp.Content{mcp.NewTextContent(text)}}}
}

// echo answers with what it was called with.
func echo(_ context.Context, c tools.Call, _ tools.Sink) translate.Outcome {
	o := says(c.Tool + " " + string(c.Arguments))
	o.Result.Structured = json.RawMessage(`{"principal":"` + c.Principal + `"}`)
	return o
}

// fakeCatalogues holds the catalogue of each view, with resources that can be
// watched.
type fakeCatalogues struct {
	mu       sync.Mutex
	cats     map[tools.View]*tools.Catalogue
	scopes   map[tools.View]map[string]bool
	versions map[string]string
	subs     map[chan struct{}]bool
}

func newCatalogues(cat *tools.Catalogue) *fakeCatalogues {
	return &fakeCatalogues{cats: map[tools.View]*tools.Catalogue{{}: cat}, subs: map[chan struct{}]bool{}}
}

func (f *fakeCatalogues) Catalogue(v tools.View) *tools.Catalogue {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cats[v]
}

func (f *fakeCatalogues) Scope(v tools.View) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scopes[v]
}

func (f *fakeCatalogues) ResourceVersion(_ tools.View, uri string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.versions[uri]
	return v, ok
}

func (f *fakeCatalogues) Changed() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subs[c] = true
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, c)
	}
}

// change swaps what change makes of the state and wakes everybody.
func (f *fakeCatalogues) change(change func(f *fakeCatalogues)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
	for c := range f.subs {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (f *fakeCatalogues) subscribers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs)
}

var yes, no = true, false

// basicCatalogue has three tools, a prompt, a resource and a template.
func basicCatalogue() *tools.Catalogue {
	return &tools.Catalogue{
		Instructions: "One agent: Invoice Helper.",
		Tools: []tools.Tool{
			{Name: "a2a_send_message", Title: "Ask an agent", Description: "Send a message.",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"agent":{"type":"string"},"text":{"type":"string"}}}`),
				Annotations: mcp.ToolAnnotation{OpenWorldHint: &yes},
				Meta:        []translate.MetaEntry{{Key: "anthropic/alwaysLoad", Value: json.RawMessage("true")}}},
			{Name: "a2a_discover", Title: "Find agents", Description: "List agents.",
				InputSchema:  json.RawMessage(`{"type":"object"}`),
				OutputSchema: json.RawMessage(`{"type":"object"}`),
				Annotations:  mcp.ToolAnnotation{ReadOnlyHint: &yes, DestructiveHint: &no}},
			{Name: "invoice_helper", Title: "Invoice Helper", Description: "Ask the agent.", Agent: "invoice_helper",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"}}}`)},
		},
		Prompts: []tools.Prompt{{Name: "invoice_helper_ask", Title: "Ask", Description: "Ask about an invoice.",
			Arguments: []mcp.PromptArgument{{Name: "text", Title: "Text", Description: "What to ask.", Required: true}}}},
		Resources: []tools.Resource{{URI: "a2a://agents/invoice_helper/card", Name: "invoice_helper card", Title: "Invoice Helper", MIMEType: "application/json"}},
		Templates: []tools.Resource{{URI: "a2a://tasks/{taskHandle}/artifacts/{artifactId}", Name: "artifact", Description: "One artifact."}},
	}
}

// fakePrompts, resources and completions for the delegated methods.
type fakeContents struct{}

func (fakeContents) GetPrompt(_ context.Context, _ tools.View, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	switch args["text"] {
	case "":
		return nil, &translate.Error{Code: translate.CodeInvalidParams, Message: `prompt "invoice_helper_ask" needs the argument "text"`}
	case "fail":
		return nil, io.ErrUnexpectedEOF
	case "panic":
		panic("a prompt went wrong")
	}
	return &mcp.GetPromptResult{Description: name, Messages: []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("Ask: " + args["text"] + " <&>")}}}, nil
}

func (fakeContents) ReadResource(_ context.Context, principal string, _ tools.View, uri string) ([]mcp.ResourceContents, error) {
	if strings.Contains(uri, "gone") {
		return nil, fmt.Errorf("reading: %w", &translate.Error{Code: translate.CodeInvalidParams, Message: "it is gone"})
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: "for " + principal}}, nil
}

func (fakeContents) Complete(_ context.Context, _ tools.View, prompt, template, argument, value string, earlier map[string]string) (*mcp.Completion, error) {
	if argument == "many" {
		return &mcp.Completion{Values: make([]string, 150)}, nil
	}
	return &mcp.Completion{Values: []string{prompt + template + "/" + argument + "=" + value + earlier["a"]}}, nil
}

// fakeTasks knows the tasks it was given, each of one principal.
type fakeTasks struct {
	mu      sync.Mutex
	tasks   map[string]*fakeTask
	watches map[*fakeWatch]bool
}

type fakeTask struct {
	principal string
	status    translate.TaskStatus
	inputs    string
}

func newTasks() *fakeTasks {
	return &fakeTasks{watches: map[*fakeWatch]bool{}, tasks: map[string]*fakeTask{
		"tk_1": {principal: Local, status: translate.TaskWorking},
		"tk_2": {principal: "someone", status: translate.TaskWorking},
	}}
}

func (f *fakeTasks) find(c TaskCall) (*fakeTask, *translate.Error) {
	t := f.tasks[c.TaskID]
	if t == nil || t.principal != c.Principal {
		return nil, &translate.Error{Code: translate.CodeInvalidParams, Message: "unknown task " + c.TaskID}
	}
	return t, nil
}

func (f *fakeTasks) info(id string, t *fakeTask) translate.DetailedTask {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return translate.DetailedTask{TaskInfo: translate.TaskInfo{ID: id, Status: t.status, Created: at, Updated: at, TTL: 24 * time.Hour, PollInterval: 2 * time.Second}}
}

func (f *fakeTasks) Get(_ context.Context, dst []byte, c TaskCall, meta []translate.MetaEntry) ([]byte, *translate.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, err := f.find(c)
	if err != nil {
		return dst, err
	}
	return translate.AppendDetailedTask(dst, f.info(c.TaskID, t), translate.Rev20260728, meta), nil
}

func (f *fakeTasks) Update(_ context.Context, c TaskCall) *translate.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, err := f.find(c)
	if err == nil {
		t.inputs = string(c.InputResponses)
	}
	return err
}

func (f *fakeTasks) Cancel(_ context.Context, c TaskCall) *translate.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.find(c)
	return err
}

func (f *fakeTasks) Watch(c TaskCall, ids []string) TaskWatch {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &fakeWatch{f: f, wake: make(chan struct{}, 1), due: map[string]bool{}}
	for _, id := range ids {
		if t := f.tasks[id]; t != nil && t.principal == c.Principal {
			w.ids = append(w.ids, id)
			w.due[id] = true
		}
	}
	f.watches[w] = true
	return w
}

// set changes a task and tells those who watch it.
func (f *fakeTasks) set(id string, s translate.TaskStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks[id].status = s
	for w := range f.watches {
		w.due[id] = true
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

type fakeWatch struct {
	f    *fakeTasks
	ids  []string
	wake chan struct{}
	due  map[string]bool
}

func (w *fakeWatch) Accepted() []string    { return w.ids }
func (w *fakeWatch) Wake() <-chan struct{} { return w.wake }

func (w *fakeWatch) Take() (out []json.RawMessage) {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	for _, id := range w.ids {
		if w.due[id] {
			out = append(out, translate.AppendTaskNotification(nil, w.f.info(id, w.f.tasks[id]), translate.Rev20260728, nil))
		}
	}
	clear(w.due)
	return out
}

func (w *fakeWatch) Close() {
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	delete(w.f.watches, w)
}

// newServer makes a Server with everything wired to fakes; change may alter
// the options.
func newServer(t testing.TB, call callFunc, change func(o *Options)) *Server {
	t.Helper()
	o := Options{CoreOptions: CoreOptions{
		Caller: call, Catalogues: newCatalogues(basicCatalogue()),
		Prompts: fakeContents{}, Resources: fakeContents{}, Completions: fakeContents{}, Tasks: newTasks(),
		Version: "1.2.3", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// metaOf is the _meta of a modern request with these client capabilities and
// further members.
func metaOf(caps, more string) string {
	m := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + caps
	return m + more + `}`
}

// modernBody is a request of the modern wire; params are the members of
// params besides _meta.
func modernBody(id, method, params string) string {
	return modernBodyWith(id, method, params, metaOf("{}", ""))
}

func modernBodyWith(id, method, params, meta string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + meta + `}}`
}

// post makes a POST with the headers every client sends.
func post(body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8931/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// modernPost adds the headers that mirror a modern body.
func modernPost(body string, headers ...string) *http.Request {
	r := post(body, "MCP-Protocol-Version", "2026-07-28")
	mirror(r.Header, body)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// mirror sets Mcp-Method and Mcp-Name from a body.
func mirror(h http.Header, body string) {
	var m struct {
		Method string
		Params struct{ Name, URI, TaskID string }
	}
	_ = json.Unmarshal([]byte(body), &m) // a broken body has no headers to mirror
	if m.Method != "" {
		h.Set("Mcp-Method", m.Method)
	}
	switch {
	case strings.HasPrefix(m.Method, "tasks/"):
		h.Set("Mcp-Name", m.Params.TaskID)
	case m.Method == "resources/read":
		h.Set("Mcp-Name", m.Params.URI)
	case m.Method == "tools/call" || m.Method == "prompts/get":
		h.Set("Mcp-Name", m.Params.Name)
	}
}

func legacyPost(body, rev string, headers ...string) *http.Request {
	r := post(body)
	if rev != "" {
		r.Header.Set("MCP-Protocol-Version", rev)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// do serves one request in memory.
func do(s *Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// wire is a JSON-RPC message as a test reads it.
type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func decode(t testing.TB, raw []byte) wire {
	t.Helper()
	var m wire
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, raw)
	}
	return m
}

// code is the error code of a JSON answer, 0 for a result.
func code(t testing.TB, w *httptest.ResponseRecorder) int {
	t.Helper()
	if m := decode(t, w.Body.Bytes()); m.Error != nil {
		return m.Error.Code
	}
	return 0
}

// initialize does the legacy handshake and returns the session id.
func initialize(t testing.TB, s *Server, rev, caps string) string {
	t.Helper()
	w := do(s, post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+rev+`","capabilities":`+caps+`,"clientInfo":{"name":"t","version":"1"}}}`))
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d %q %s", w.Code, id, w.Body)
	}
	return id
}

// annotatedTool mirrors two arguments in headers.
func annotatedTool() tools.Tool {
	return tools.Tool{Name: "annotated", Description: "A tool with header arguments.", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"agent":{"type":"string","x-mcp-header":"Agent"},"n":{"type":"integer","x-mcp-header":"Count"},` +
			`"deep":{"type":"object","properties":{"on":{"type":"boolean","x-mcp-header":"On"}}}}}`)}
}
