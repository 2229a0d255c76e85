package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"a2agate/fixtures"
)

// agentServer is a scripted agent with its address.
type agentServer struct {
	*fixtures.Agent
	url string
}

// newAgentServer serves a scripted agent until the test ends.
func newAgentServer(t testing.TB, opt fixtures.Options) agentServer {
	t.Helper()
	a := fixtures.New(opt)
	s := httptest.NewServer(a)
	t.Cleanup(func() { a.Close(); s.Close() })
	return agentServer{a, s.URL}
}

// hold makes the agent answer the command "hold" when release is called, and
// tells when it has begun.
func (a agentServer) hold() (began <-chan struct{}, release func()) {
	begun, free := make(chan struct{}, 100), make(chan struct{})
	a.OnCommand("hold", func(ctx context.Context, turn *fixtures.Turn) error {
		if err := turn.Working("Holding."); err != nil {
			return err
		}
		begun <- struct{}{}
		select {
		case <-free:
			return turn.Complete(fixtures.Text("let go"))
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return begun, func() { close(free) }
}

// gate is a whole gateway that runs in this process.
type gate struct {
	t      testing.TB
	dir    string
	file   string
	url    string // with /mcp
	log    *output
	client *http.Client
	cancel context.CancelFunc
	done   chan int
	token  string
	// inner is the gateway itself, where it does not run as a command.
	inner *gateway
}

// newGate runs serve on a configuration until the test ends, by itself or by
// stop.
func newGate(t *testing.T, cfg string, flags ...string) *gate {
	t.Helper()
	g := &gate{t: t, dir: t.TempDir(), log: newOutput(), done: make(chan int, 1), client: &http.Client{Transport: &http.Transport{}}}
	g.file = filepath.Join(g.dir, "agents.json")
	write(t, g.file, cfg)
	g.start(t, flags...)
	return g
}

func (g *gate) start(t *testing.T, flags ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	args := append([]string{"serve", "--config", g.file, "--listen", "127.0.0.1:0"}, flags...)
	p := shell{dir: g.dir}.process(strings.NewReader(""), io.Discard, g.log)
	done := g.done
	go func() { done <- run(ctx, args, p) }()
	t.Cleanup(func() {
		if code := g.stop(); code != 0 {
			t.Errorf("the gateway ended with %d:\n%s", code, g.log)
		}
	})
	m := g.log.match(t, `listening on (\S+)|a2agate: (.*)\n`)
	if g.url = m[1]; g.url == "" {
		t.Fatalf("the gateway does not start: %s", m[2])
	}
}

// stop ends the gateway as an interrupt does, once, and returns its exit code.
func (g *gate) stop() int {
	g.cancel()
	g.client.CloseIdleConnections()
	code, ok := <-g.done
	if ok {
		close(g.done)
	}
	return code
}

// logged waits until a pattern has been logged n times.
func (g *gate) logged(t *testing.T, pattern string, n int) {
	t.Helper()
	g.log.match(t, `(?s)`+strings.Repeat(`.*`+pattern, n))
}

// edit replaces the configuration and waits until the gateway has looked at it.
func (g *gate) edit(t *testing.T, cfg, pattern string) {
	t.Helper()
	n := strings.Count(g.log.String(), pattern)
	write(t, g.file+".new", cfg)
	rename(t, g.file+".new", g.file)
	g.logged(t, pattern, n+1)
}

// meta is what each request says of its client.
func meta(extra string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{` + extra + `}}`
}

// post sends a request of the current revision; params is the inside of the
// object.
func (g *gate) post(ctx context.Context, path, method, name, params, capabilities string) (*http.Response, error) {
	if params != "" {
		params += ","
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta(capabilities))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(g.url, "/mcp")+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", method)
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	if g.token != "" {
		req.Header.Set("Authorization", "Bearer "+g.token)
	}
	return g.client.Do(req)
}

// answered is a JSON-RPC answer.
type answered struct {
	Status int             `json:"-"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// ask sends a request and reads its answer, JSON or stream.
func (g *gate) ask(ctx context.Context, method, name, params, capabilities string) (answered, error) {
	resp, err := g.post(ctx, "/mcp", method, name, params, capabilities)
	if err != nil {
		return answered{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answered{}, err
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw = lastEvent(raw)
	}
	a := answered{Status: resp.StatusCode}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("%s: %q: %w", resp.Status, raw, err)
	}
	return a, nil
}

// lastEvent is the data of the last event of a stream.
func lastEvent(stream []byte) (data []byte) {
	for line := range bytes.Lines(stream) {
		if rest, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			data = bytes.TrimSpace(rest)
		}
	}
	return data
}

// toolResult is a tool's result as a client reads it.
type toolResult struct {
	ResultType string `json:"resultType"`
	IsError    bool   `json:"isError"`
	Content    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	TaskID     string          `json:"taskId"`
}

// text is all texts of a result, a line each.
func (r toolResult) text() string {
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n")
}

// envelope is the structured half of a result.
func (r toolResult) envelope() (e struct {
	Status  string `json:"status"`
	Task    string `json:"taskHandle"`
	Context string `json:"contextHandle"`
	Text    string `json:"text"`
}) {
	_ = json.Unmarshal(r.Structured, &e) // the zero value says that there is none
	return e
}

const tasksCapability = `"extensions":{"io.modelcontextprotocol/tasks":{}}`

// call calls a tool; an error of the protocol fails the test.
func (g *gate) call(t *testing.T, tool, arguments string) toolResult {
	t.Helper()
	return g.callWith(t, tool, arguments, "")
}

func (g *gate) callWith(t *testing.T, tool, arguments, capabilities string) toolResult {
	t.Helper()
	a, err := g.ask(t.Context(), "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments), capabilities)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	if a.Error != nil {
		t.Fatalf("%s %s: %d %s", tool, arguments, a.Error.Code, a.Error.Message)
	}
	var r toolResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// refused calls a tool and returns the error of the protocol.
func (g *gate) refused(t *testing.T, tool, arguments string) string {
	t.Helper()
	a, err := g.ask(t.Context(), "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments), "")
	if err != nil {
		t.Fatal(err)
	}
	if a.Error == nil {
		t.Fatalf("%s %s is no protocol error: %s", tool, arguments, a.Result)
	}
	return fmt.Sprintf("%d %s", a.Error.Code, a.Error.Message)
}

// listedTool is a tool as tools/list has it.
type listedTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// tools lists the tools at a path, by name.
func (g *gate) tools(t *testing.T, path string) map[string]listedTool {
	t.Helper()
	resp, err := g.post(t.Context(), path, "tools/list", "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var a struct {
		Result struct {
			Tools []listedTool `json:"tools"`
		} `json:"result"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("tools/list at %s: %s %v", path, resp.Status, err)
	}
	tools := map[string]listedTool{}
	for _, tool := range a.Result.Tools {
		tools[tool.Name] = tool
	}
	return tools
}

// agents are the states of a2a_discover, by alias.
func (g *gate) agents(t *testing.T) map[string]agentShown {
	t.Helper()
	var list struct {
		Agents []agentShown `json:"agents"`
	}
	if err := json.Unmarshal(g.call(t, "a2a_discover", "{}").Structured, &list); err != nil {
		t.Fatal(err)
	}
	agents := map[string]agentShown{}
	for _, a := range list.Agents {
		agents[a.Alias] = a
	}
	return agents
}

type agentShown struct {
	Alias, Name, Description, State, Reason string
	Skills                                  []struct{ ID, Name, Description string }
}

// until asks again until f is content.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	giveUp := time.After(forever)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-giveUp:
			t.Fatalf("%s: never", what)
		}
	}
}

// ready waits until every agent has a state.
func (g *gate) ready(t *testing.T) {
	t.Helper()
	until(t, "the agents are looked for", func() bool {
		for _, a := range g.agents(t) {
			if a.State == "connecting" {
				return false
			}
		}
		return true
	})
}

// listening is an open subscriptions/listen stream.
type listening struct {
	// methods are the notifications as they come; closed at the end.
	methods chan string
	cancel  context.CancelFunc
}

// listen opens a stream for the changes of lists, and returns when it is
// acknowledged.
func (g *gate) listen(t *testing.T) *listening {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := g.post(ctx, "/mcp", "subscriptions/listen", "",
		`"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`, "")
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	l := &listening{methods: make(chan string, 1000), cancel: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(l.methods)
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var m struct {
				Method string `json:"method"`
			}
			if json.Unmarshal([]byte(data), &m) == nil && m.Method != "" {
				l.methods <- m.Method
			}
		}
	}()
	t.Cleanup(func() { cancel(); resp.Body.Close(); <-done })
	if m := l.next(t); m != "notifications/subscriptions/acknowledged" {
		t.Fatalf("the stream begins with %q", m)
	}
	return l
}

// next waits for a notification, "" at the end of the stream.
func (l *listening) next(t *testing.T) string {
	t.Helper()
	select {
	case m := <-l.methods:
		return m
	case <-time.After(forever):
		t.Fatal("no notification")
		return ""
	}
}

// rest counts the notifications until the stream ends.
func (l *listening) rest() map[string]int {
	counts := map[string]int{}
	for m := range l.methods {
		counts[m]++
	}
	return counts
}
