package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"a2agate/fixtures"
)

// read reads a path of the gateway.
func (g *gate) read(t *testing.T, path string) (int, string) {
	t.Helper()
	headers := map[string]string{}
	if g.token != "" {
		headers["Authorization"] = "Bearer " + g.token
	}
	return g.with(t, path, "", headers)
}

// TestCallsOverALimitAreNoInternalErrors: a caller that is too busy is no
// fault of the gateway's, whatever the code that it is told.
func TestCallsOverALimitAreNoInternalErrors(t *testing.T) {
	t.Parallel()
	g := newInnerGate(t, `{"agents":{"gone":{"url":"http://127.0.0.1:1"}},"limits":{"callsPerSecond":0.001},"log":{"level":"error"}}`, nil)
	g.call(t, "a2a_discover", `{}`)
	resp, err := g.post(t.Context(), "/mcp", "tools/call", "a2a_discover", `"name":"a2a_discover","arguments":{}`, "")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("HTTP %d", resp.StatusCode)
	}
	_, text := g.read(t, "/metrics")
	if want := `a2agate_requests_total{code="429",method="tools/call",revision="2026-07-28"} 1`; !strings.Contains(text, want) {
		t.Errorf("missing: %s", want)
	}
	if strings.Contains(text, `code="-32603"`) {
		t.Error("counted as an internal error")
	}
}

// TestMetricsOfAGateway: what happens in a gateway is counted, under labels
// that nobody outside can choose.
func TestMetricsOfAGateway(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	g := newInnerGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q},"gone":{"url":"http://127.0.0.1:1"}},"log":{"level":"error"}}`, agent.url), nil)
	g.call(t, "a2a_send_message", `{"agent":"demo","text":"echo hello"}`)
	g.call(t, "a2a_send_message", `{"agent":"demo","text":"slow 3600","blocking":false}`)
	g.call(t, "a2a_send_message", `{"agent":"gone","text":"hello"}`)
	g.call(t, "a2a_send_message", `{"agent":"nobody-knows-this","text":"hello"}`)
	g.refused(t, "made_up_tool", "{}")
	if _, err := g.ask(t.Context(), "made/up", "", "", ""); err != nil {
		t.Fatal(err)
	}
	l := g.listen(t)
	status, text := g.read(t, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for _, line := range []string{
		`a2agate_calls_total{agent="demo",outcome="result",tool="a2a_send_message"} 2`,
		`a2agate_calls_total{agent="gone",outcome="tool_error",tool="a2a_send_message"} 1`,
		`a2agate_calls_total{agent="none",outcome="tool_error",tool="a2a_send_message"} 1`,
		`a2agate_requests_total{code="0",method="tools/call",revision="2026-07-28"} 4`,
		`a2agate_requests_total{code="-32602",method="tools/call",revision="2026-07-28"} 1`,
		`a2agate_requests_total{code="-32601",method="other",revision="2026-07-28"} 1`,
		`a2agate_upstream_requests_total{agent="demo",cause="none",op="card"}`,
		`a2agate_upstream_requests_total{agent="gone",cause="dial",op="card"}`,
		`a2agate_followed_tasks{agent="demo"} 1`,
		`a2agate_agents{state="ready"} 1`, `a2agate_agents{state="down"} 1`,
		`a2agate_agent_ready{agent="demo"} 1`, `a2agate_agent_ready{agent="gone"} 0`,
		`a2agate_listens 1`, `a2agate_build_info{`, `a2agate_handles `, `a2agate_call_duration_seconds_bucket{tool="a2a_send_message",le="+Inf"}`,
		"go_goroutines ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(text, `a2agate_handles 0`) {
		t.Error("no handles are counted")
	}
	for _, word := range []string{"made", "nobody-knows-this", "hello"} {
		if strings.Contains(text, word) {
			t.Errorf("%q has become a label", word)
		}
	}
	l.cancel()
	foreign, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(g.url, "/mcp")+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Host = "evil.example.com"
	resp, err := g.client.Do(foreign)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a foreign Host reads the metrics: %s", resp.Status)
	}
	if _, text := g.read(t, "/metrics"); !strings.Contains(text, `a2agate_refused_total{status="421"} 1`) {
		t.Error("the foreign Host is not counted")
	}
}

// TestMetricsAreForTheWhole: who may see some agents only may not read what is
// about all of them.
func TestMetricsAreForTheWhole(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	for token, want := range map[string]int{"ann-token": 200, "carl-token": 403, "dora-token": 403, "": 401} {
		w.token = token
		if status, body := w.read(t, "/metrics"); status != want || status != 200 && strings.Contains(body, "legal") {
			t.Errorf("%q: %d, want %d", token, status, want)
		}
	}
}

// logLine is a line of the JSON log.
type logLine struct {
	Level, Msg, Kind, Request                       string
	Method, Tool, Agent, Outcome, Principal, Op, To string
	Code, Status                                    int
	Raw, Shape                                      string
}

func logLines(t *testing.T, log string) []logLine {
	t.Helper()
	var lines []logLine
	for text := range strings.Lines(log) {
		if !strings.HasPrefix(text, "{") {
			continue // the banner
		}
		var l logLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		lines = append(lines, l)
	}
	return lines
}

// TestLogOfCalls: each call is one line with the id of its request, and what
// goes to the agent for it has the same id; contents show at the last debug
// level only, levels can be changed while the gateway runs.
func TestLogOfCalls(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{BearerToken: "agents-secret-token"})
	g := newInnerGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,"auth":{"type":"bearer","token":"agents-secret-token"}}},"log":{"format":"json"}}`, agent.url), nil)
	set := func(query string) {
		r := httptest.NewRequest(http.MethodPut, "/debug/log?"+query, nil)
		w := httptest.NewRecorder()
		g.inner.levels.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	const words = "very private words"
	for n := range 6 {
		set(fmt.Sprintf("level=%d&kind=agents", n))
		from := len(g.log.String())
		g.call(t, "a2a_send_message", `{"text":"echo `+words+`"}`)
		id := regexp.MustCompile(`"msg":"request".*"request":"([^"]+)"`).FindStringSubmatch(g.log.String()[from:])[1]
		mine := regexp.MustCompile(`"msg":"agent call".*"request":"` + id + `"`)
		if n > 0 { // the stream may end after the call
			until(t, "the request to the agent is logged", func() bool { return mine.MatchString(g.log.String()[from:]) })
		}
		log := g.log.String()[from:]
		seen := map[string]int{}
		for _, l := range logLines(t, log) {
			seen[l.Msg]++
			switch {
			case l.Msg == "request":
				if l.Request != id || l.Kind != "calls" || l.Level != "INFO" || l.Method != "tools/call" || l.Tool != "a2a_send_message" || l.Agent != "demo" || l.Outcome != "result" || l.Principal != "local" || l.Status != 200 {
					t.Errorf("level %d: %+v", n, l)
				}
			case l.Kind != "agents":
				t.Errorf("level %d: %+v", n, l)
			}
		}
		if seen["request"] != 1 {
			t.Errorf("level %d: %d lines for the call", n, seen["request"])
		}
		if (seen["agent call"] > 0) != (n >= 1) || (seen["agent answer"] > 0) != (n >= 2) || (seen["agent request body"] > 0) != (n >= 3) {
			t.Errorf("level %d: %v", n, seen)
		}
		for _, l := range logLines(t, log) {
			if l.Msg == "agent request" && l.Method == http.MethodPost && l.Request != id {
				t.Errorf("level %d: the request to the agent has the id %q, its call %q", n, l.Request, id)
			}
		}
		if has := strings.Contains(log, words); has != (n == 5) {
			t.Errorf("level %d: contents in the log: %t\n%s", n, has, log)
		}
		if strings.Contains(log, "agents-secret-token") {
			t.Errorf("level %d: the credential is in the log\n%s", n, log)
		}
	}
	set("level=error")
	from := len(g.log.String())
	g.call(t, "a2a_send_message", `{"text":"echo quiet"}`)
	set("level=debug&kind=reads")
	g.tools(t, "/mcp")
	lines := logLines(t, g.log.String()[from:])
	if len(lines) != 1 || lines[0].Method != "tools/list" || lines[0].Kind != "reads" {
		t.Errorf("%+v", lines)
	}
}

// TestDebugLevelFromEnv: A2A_DEBUG_LEVEL wins over the file, and what is no
// level is refused by name.
func TestDebugLevelFromEnv(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{"": "", "0": "", "3": "", "6": `A2A_DEBUG_LEVEL "6"`, "all": `A2A_DEBUG_LEVEL "all"`, "-1": `A2A_DEBUG_LEVEL "-1"`} {
		cfg := configOf(t, "http://127.0.0.1:1")
		cfg.Log.Debug = 1
		err := debugFromEnv(cfg, func(name string) (string, bool) { return v, name == "A2A_DEBUG_LEVEL" })
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", v, err, want)
		case want == "" && err != nil:
			t.Errorf("%q: %v", v, err)
		}
		if level := map[string]int{"": 1, "0": 0, "3": 3}[v]; want == "" && cfg.Log.Debug != level {
			t.Errorf("%q: level %d", v, cfg.Log.Debug)
		}
	}
}

// TestLevelsOnTheDebugListener: the levels are on the debug listener, and only there.
func TestLevelsOnTheDebugListener(t *testing.T) {
	t.Parallel()
	log := newOutput()
	logger, levels := newLogger(log, configOf(t, "http://127.0.0.1:1").Log)
	d, err := newDebugServer("127.0.0.1:0", levels, logger)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { defer close(done); d.run(ctx) }()
	defer func() { cancel(); <-done }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+d.ln.Addr().String()+"/debug/log?level=2&kind=agents", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"agents":"2"`) {
		t.Errorf("%s %s", resp.Status, body)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestTraces: a request and what it asks of agents are spans of the caller's
// trace; the agent learns of its own span, also in polls; nothing is sent
// where the environment does not ask for it.
func TestTraces(t *testing.T) {
	t.Parallel()
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var mu sync.Mutex
	var delivered bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/v1/traces" {
			t.Errorf("a delivery to %s", r.URL.Path)
		}
		_, _ = io.Copy(&delivered, r.Body)
	}))
	t.Cleanup(collector.Close)
	agent := newAgentServer(t, fixtures.Options{Unary: true})
	g := newInnerGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, agent.url), map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL})
	agent.ForgetRecord()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a2a_send_message","arguments":{"text":"slow: 700 private words"},` + meta("") + `}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
		"Mcp-Name": "a2a_send_message", "Traceparent": caller, "Tracestate": "vendor=1",
	} {
		req.Header.Set(name, v)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	spans := map[string]bool{}
	polls := 0
	for _, r := range agent.Requests() {
		got := r.Header.Get("Traceparent")
		if r.RPCMethod == "" {
			continue // a look at the card is nobody's request
		}
		if len(got) != len(caller) || got[:36] != caller[:36] || got[36:52] == caller[36:52] || r.Header.Get("Tracestate") != "vendor=1" || spans[got] {
			t.Errorf("%s: traceparent %q, tracestate %q", r.RPCMethod, got, r.Header.Get("Tracestate"))
		}
		spans[got] = true
		if r.RPCMethod == "GetTask" {
			polls++
		}
	}
	if len(spans) < 2 || polls == 0 {
		t.Errorf("%d requests to the agent, %d of them polls", len(spans), polls)
	}
	g.cancel() // delivers what is left
	mu.Lock()
	defer mu.Unlock()
	for _, part := range []string{"tools/call a2a_send_message", "a2a send", "a2a get", "a2agate.request"} {
		if !bytes.Contains(delivered.Bytes(), []byte(part)) {
			t.Errorf("no %q in what was delivered", part)
		}
	}
	if bytes.Contains(delivered.Bytes(), []byte("private words")) {
		t.Error("contents are in a span")
	}
}

// TestDownAgentFailsFast: through the gateway, calls to an agent that is down
// are answered at once with the reason and since when, others are not held up,
// and it is used again as soon as it is back.
func TestDownAgentFailsFast(t *testing.T) {
	t.Parallel()
	agent := newRunningAgent(t, fixtures.Options{})
	other := newAgentServer(t, fixtures.Options{})
	g := newInnerGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":"http://%s"},"other":{"url":%q}},"log":{"level":"error"}}`, agent.addr, other.url), nil)
	say := func() toolResult { return g.call(t, "a2a_send_message", `{"agent":"demo","text":"echo hello"}`) }
	if r := say(); r.IsError {
		t.Fatalf("%s", r.text())
	}
	agent.stop()
	// A connection that was kept breaks first; the next attempt cannot connect.
	var r toolResult
	for range 4 {
		began := time.Now()
		r = say()
		if took := time.Since(began); !r.IsError || took > 10*time.Second {
			t.Fatalf("after %v: %s", took, r.text())
		}
	}
	if !strings.Contains(r.text(), "down since 20") || !strings.Contains(r.text(), "could not connect") && !strings.Contains(r.text(), "refused the connection") {
		t.Errorf("%q does not say since when and why", r.text())
	}
	if r := g.call(t, "a2a_send_message", `{"agent":"other","text":"echo hello"}`); r.IsError {
		t.Errorf("the other agent: %s", r.text())
	}
	agent.start()
	until(t, "the agent is used again", func() bool { return !say().IsError })
}
