package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/config"
	"a2agate/fixtures"
	"a2agate/handles"
	"a2agate/internal/web"
	"a2agate/server"
	"a2agate/tools"
)

// statusWorld is a running gateway with agents that can go down and return.
type statusWorld struct {
	t    *testing.T
	g    *gateway
	base string // without a slash at the end
}

// runningAgent is a fixture agent on an address that it keeps.
type runningAgent struct {
	t       *testing.T
	addr    string
	options fixtures.Options
	stop    func()
}

func newRunningAgent(t *testing.T, o fixtures.Options) *runningAgent {
	a := &runningAgent{t: t, addr: "127.0.0.1:0", options: o}
	a.start()
	t.Cleanup(func() { a.stop() })
	return a
}

func (a *runningAgent) start() {
	a.t.Helper()
	ln, err := net.Listen("tcp", a.addr)
	if err != nil {
		a.t.Fatal(err)
	}
	a.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serveAgent(ctx, ln, fixtures.New(a.options)) }()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			a.t.Errorf("agent: %v", err)
		}
	})
}

// newStatusWorld runs a gateway whose server change may alter.
func newStatusWorld(t *testing.T, cfg *config.Config, change func(*statusPage, *server.Options)) *statusWorld {
	t.Helper()
	log, level := newLogger(io.Discard, cfg.Log)
	g, err := newGateway(context.Background(), cfg, log, level)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		o := g.serverOptions()
		change(g.status, &o)
		if err := g.status.add(&o); err != nil {
			t.Fatal(err)
		}
		if g.server, err = server.New(o); err != nil {
			t.Fatal(err)
		}
	}
	agents, stopAgents := context.WithCancel(context.Background())
	ln, err := g.open(agents)
	if err != nil {
		stopAgents()
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.run(ctx, ln, stopAgents) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("gateway: %v", err)
		}
	})
	waitForStates(ctx, g.fleet.list(), 10*time.Second)
	return &statusWorld{t: t, g: g, base: "http://" + ln.Addr().String()}
}

func configOf(t *testing.T, urls ...string) *config.Config {
	t.Helper()
	cfg, err := config.FromURLs(urls)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen = "127.0.0.1:0"
	return cfg
}

// exposing makes every agent of a configuration show itself in these ways.
func exposing(cfg *config.Config, ways ...config.Exposure) *config.Config {
	for i := range cfg.Agents {
		cfg.Agents[i].Expose = ways
	}
	return cfg
}

// status reads /api/status as the holder of a token.
func (w *statusWorld) status(token string) web.Status {
	w.t.Helper()
	code, body := w.get("/api/status", token, "*/*")
	var s web.Status
	if err := json.Unmarshal([]byte(body), &s); err != nil || code != 200 {
		w.t.Fatalf("%d %s: %v", code, body, err)
	}
	return s
}

func (w *statusWorld) get(path, token, accept string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequest(http.MethodGet, w.base+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// call calls a tool and returns the result as JSON.
func (w *statusWorld) call(token, tool, arguments string) string {
	w.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequest(http.MethodPost, w.base+"/mcp", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": tool, "Authorization": "Bearer " + token,
	} {
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func aliases(s web.Status) []string {
	var list []string
	for _, a := range s.Agents {
		list = append(list, a.Alias)
	}
	return list
}

func TestStatus(t *testing.T) {
	t.Parallel()
	agent := newRunningAgent(t, fixtures.Options{})
	w := newStatusWorld(t, configOf(t, "demo=http://"+agent.addr, "gone=http://127.0.0.1:1"), nil)
	began := time.Now()
	w.call("", "a2a_send_message", `{"agent":"demo","text":"echo secret words"}`)
	w.call("", "a2a_send_message", `{"agent":"gone","text":"secret words"}`)
	if out := w.call("", "a2a_send_message", `{"agent":"demo","text":"slow 3600","blocking":false}`); !strings.Contains(out, "tk_") {
		t.Fatalf("no task: %s", out)
	}
	s := w.status("")
	if got := aliases(s); !slices.Equal(got, []string{"demo", "gone"}) {
		t.Fatalf("agents %v", got)
	}
	demo, gone := s.Agents[0], s.Agents[1]
	if demo.State != "ready" || demo.Version != "1.0" || demo.Binding != "JSONRPC" || len(demo.Skills) < 3 || demo.URL == "" || demo.Since.IsZero() {
		t.Errorf("%+v", demo)
	}
	if gone.State != "down" || gone.Reason == "" {
		t.Errorf("%+v", gone)
	}
	if len(s.Tools) != 4 || s.Tools[0].Title == "" || len(s.Tools[0].InputSchema) == 0 {
		t.Errorf("tools %+v", s.Tools)
	}
	if s.Endpoint != w.base+"/mcp" || s.Gateway != version || s.Principal != "" || len(s.Clients) == 0 {
		t.Errorf("%+v", s)
	}
	var outcomes []string
	for _, c := range s.Calls {
		outcomes = append(outcomes, c.Tool+" "+c.Agent+" "+c.Outcome)
		if c.At.Before(began.Add(-time.Second)) || c.Millis < 0 || c.Millis > time.Since(began).Milliseconds() {
			t.Errorf("%+v", c)
		}
	}
	if want := []string{"a2a_send_message demo result", "a2a_send_message gone tool_error", "a2a_send_message demo result"}; !slices.Equal(outcomes, want) {
		t.Errorf("calls %q", outcomes)
	}
	if s.Tasks.Open != 1 || s.Tasks.List[0].Agent != "demo" || !strings.HasSuffix(s.Tasks.List[0].Handle, "…") {
		t.Errorf("tasks %+v", s.Tasks)
	}
	for _, path := range []string{"/", "/api/status"} {
		if code, body := w.get(path, "", "text/html"); code != 200 || strings.Contains(body, "secret") {
			t.Errorf("%s: %d, contents %t", path, code, strings.Contains(body, "secret"))
		}
	}
}

// TestTaskLeavesThePageWhenItEnds: nobody has to ask for a task that was sent
// off for the page to know that it has ended.
func TestTaskLeavesThePageWhenItEnds(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	began, release := agent.hold()
	g := newInnerGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"log":{"level":"error"}}`, agent.url), nil)
	sent := g.call(t, "a2a_send_message", `{"text":"hold","blocking":false}`).envelope()
	<-began
	running := func() bool {
		e, err := g.inner.handles.Peek(t.Context(), handles.KindTask, sent.Task, "local")
		if err != nil {
			t.Fatal(err)
		}
		return e.Running
	}
	if !running() {
		t.Fatal("the task is over before its end")
	}
	release()
	until(t, "the handle settles", func() bool { return !running() })
}

// byToken knows the holders of three tokens.
func byToken(r *http.Request) (server.Identity, *server.Denied) {
	switch token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); token {
	case "all":
		return server.Identity{Principal: "all"}, nil
	case "narrow":
		return server.Identity{}, &server.Denied{Status: http.StatusForbidden, Reason: "the token lacks a scope"}
	case "a", "b":
		return server.Identity{Principal: token, View: tools.View{Agents: token}}, nil
	}
	return server.Identity{}, &server.Denied{Challenge: "Bearer", Reason: "this gateway does not know the token"}
}

// A caller sees its own agents, tools, calls and tasks, and nobody else's.
func TestStatusOfEachPrincipal(t *testing.T) {
	t.Parallel()
	a := newRunningAgent(t, fixtures.Options{Name: "First agent"})
	b := newRunningAgent(t, fixtures.Options{Name: "Second agent"})
	cfg := exposing(configOf(t, "a=http://"+a.addr, "b=http://"+b.addr), "generic", "agents")
	cfg.Auth.Tokens = []config.Token{{Name: "all", SHA256: sha256.Sum256([]byte("all"))}}
	w := newStatusWorld(t, cfg, func(_ *statusPage, o *server.Options) { o.Authenticate = byToken })
	for _, token := range []string{"a", "b", "all"} {
		agent := strings.Replace(token, "all", "b", 1)
		if out := w.call(token, "a2a_send_message", `{"agent":"`+agent+`","text":"slow 3600","blocking":false}`); !strings.Contains(out, "tk_") {
			t.Fatalf("no task: %s", out)
		}
	}
	for token, want := range map[string]struct{ sees, hidden, agent string }{
		"a": {"a", "Second agent", "a"}, "b": {"b", "First agent", "b"}, "all": {"a b", "nothing hidden", "b"},
	} {
		s := w.status(token)
		if got := strings.Join(aliases(s), " "); got != want.sees {
			t.Errorf("%s sees the agents %s", token, got)
		}
		if len(s.Calls) != 1 || s.Calls[0].Agent != want.agent || s.Tasks.Open != 1 || s.Tasks.List[0].Agent != want.agent {
			t.Errorf("%s sees calls %v, tasks %v", token, s.Calls, s.Tasks)
		}
		if s.Principal != token {
			t.Errorf("%s is %q", token, s.Principal)
		}
		var exposed []string
		for _, tool := range s.Tools {
			if tool.Agent != "" {
				exposed = append(exposed, tool.Agent)
			}
		}
		if got := strings.Join(exposed, " "); got != want.sees {
			t.Errorf("%s sees the tools of %s", token, got)
		}
		for _, path := range []string{"/", "/api/status"} {
			if code, body := w.get(path, token, "text/html"); code != 200 || strings.Contains(body, want.hidden) {
				t.Errorf("%s of %s: %d, shows %q: %t", path, token, code, want.hidden, strings.Contains(body, want.hidden))
			}
		}
	}
	if code, body := w.get("/", "", "text/html"); code != 401 || !strings.Contains(body, "<form id=\"signin\"") || strings.Contains(body, "First agent") {
		t.Errorf("without a token: %d %s", code, body)
	}
	if code, body := w.get("/api/status", "wrong", "text/html"); code != 401 || !strings.Contains(body, `"jsonrpc"`) {
		t.Errorf("with a wrong token: %d %s", code, body)
	}
}

// The words of the page know every state of an agent.
func TestStatusTones(t *testing.T) {
	t.Parallel()
	page := func(state a2a.AgentState) string {
		pages, err := web.New(web.Options{Status: func(*http.Request) web.Status {
			return web.Status{Agents: []web.Agent{{Alias: "x", State: string(state)}}}
		}})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		pages.Page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Body.String()
	}
	for state, tone := range map[a2a.AgentState]string{
		a2a.AgentReady: "good", a2a.AgentConnecting: "wait", a2a.AgentAuthRequired: "bad", a2a.AgentNotACard: "bad",
		a2a.AgentInvalidCard: "bad", a2a.AgentBlockedOrigin: "bad", a2a.AgentNoInterface: "bad", a2a.AgentDown: "bad",
	} {
		if body := page(state); !strings.Contains(body, `<span class="state `+tone+`">`) || strings.Contains(body, `">`+string(state)+"<") && strings.Contains(string(state), "_") {
			t.Errorf("%s is not shown in words and as %s", state, tone)
		}
	}
}

// The address to copy is one that reaches the gateway from where the page is
// read.
func TestStatusEndpoint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		public, certificate string
		addr                net.Addr
		want                string
	}{
		{"", "", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8931}, "http://127.0.0.1:8931/mcp"},
		{"", "", &net.TCPAddr{IP: net.IPv4zero, Port: 8931}, "http://gateway.lan:8931/mcp"},
		{"", "cert.pem", &net.TCPAddr{IP: net.IPv6unspecified, Port: 8931}, "https://gateway.lan:8931/mcp"},
		{"https://a.example/gw", "", &net.TCPAddr{IP: net.IPv4zero, Port: 8931}, "https://a.example/gw/mcp"},
		{"", "", nil, "http://gateway.lan:8931/mcp"},
	} {
		p := &statusPage{g: &gateway{cfg: &config.Config{TLS: config.TLS{CertFile: tt.certificate}}, address: tt.addr}}
		p.g.public.Store(&tt.public)
		r := httptest.NewRequest(http.MethodGet, "http://gateway.lan:8931/", nil)
		if got := p.endpoint(r); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// A file that is not in force shows to those who see every agent.
func TestStatusNotices(t *testing.T) {
	t.Parallel()
	g := &gateway{}
	p := &statusPage{g: g}
	if got := p.notices(); got != nil {
		t.Errorf("without a file: %q", got)
	}
	r := &reloader{}
	g.reloads.Store(r)
	if got := p.notices(); got != nil {
		t.Errorf("all is well: %q", got)
	}
	r.status = reloadStatus{Problem: "agents.json:3: no", Restart: []string{"listen", "auth"}}
	if got := strings.Join(p.notices(), "\n"); !strings.Contains(got, "agents.json:3: no") || !strings.Contains(got, "listen, auth") {
		t.Errorf("%q", got)
	}
}

// One walk over the store serves all, a slow store is asked rarely, and what
// it could not say is "at least".
func TestOpenTasks(t *testing.T) {
	t.Parallel()
	table, err := handles.New(handles.Options{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	everything := func(string) bool { return true }
	for i := range shownTasks + 5 {
		if _, err := table.Task(ctx, "p", "demo", "", "task-"+string(rune('a'+i)), true); err != nil {
			t.Fatal(err)
		}
	}
	for agent, running := range map[string]bool{"other": true, "done": false} {
		if _, err := table.Task(ctx, "p", agent, "", "x", running); err != nil {
			t.Fatal(err)
		}
	}
	room, err := table.Reserve(ctx, "p", "other", 0) // of a send under way: no task yet
	if err != nil {
		t.Fatal(err)
	}
	defer room.Release(ctx)
	o := openTasks{table: table}
	if got := o.of(ctx, "p", everything); got.Open != shownTasks+6 || len(got.List) != shownTasks || got.More {
		t.Errorf("%d open, %d shown, more %t", got.Open, len(got.List), got.More)
	}
	if got := o.of(ctx, "p", func(alias string) bool { return alias == "other" }); got.Open != 1 || got.List[0].Agent != "other" {
		t.Errorf("%+v", got)
	}
	if got := o.of(ctx, "q", everything); got.Open != 0 || got.List != nil {
		t.Errorf("somebody else's: %+v", got)
	}
	if _, err := table.Task(ctx, "q", "demo", "", "new", true); err != nil {
		t.Fatal(err)
	}
	if got := o.of(ctx, "q", everything); got.Open != 0 {
		t.Errorf("the store was walked twice within %s", tasksPause)
	}
	o.next = time.Time{}
	gone, cancel := context.WithCancel(ctx)
	cancel() // the one who asks has left: the walk is for others too
	if got := o.of(gone, "q", everything); got.Open != 1 {
		t.Errorf("after a while: %+v", got)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
}
