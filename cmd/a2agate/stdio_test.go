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
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"a2agate/fixtures"
)

// stdioClient speaks to "a2agate stdio" through pipes, as the client that
// started it would.
type stdioClient struct {
	t      *testing.T
	in     *io.PipeWriter
	lines  chan map[string]any // every line of its output, decoded
	errs   *output
	exited chan int
	stop   context.CancelFunc
}

// startStdio runs "a2agate stdio" with an agent, or with a configuration that
// config writes for the agent's URL; everything has ended when the test has.
func startStdio(t *testing.T, config func(agent string) (path string)) *stdioClient {
	t.Helper()
	return startStdioWith(t, map[string]string{}, config)
}

func startStdioWith(t *testing.T, env map[string]string, config func(agent string) (path string)) *stdioClient {
	t.Helper()
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, running) }) // the last of all
	agent := fixtures.New(fixtures.Options{})
	srv := httptest.NewServer(agent)
	in, write := io.Pipe()
	read, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &stdioClient{t: t, in: write, lines: make(chan map[string]any, 10_000), errs: newOutput(), exited: make(chan int, 1), stop: cancel}
	sh := shell{dir: t.TempDir(), env: env}
	args := []string{"stdio", "demo=" + srv.URL}
	if config != nil {
		args = []string{"stdio", "--config", config(srv.URL)}
	}
	go func() {
		c.exited <- run(ctx, args, sh.process(in, out, c.errs))
		_ = out.Close()
		_ = in.Close()
	}()
	go func() {
		defer close(c.lines)
		sc := bufio.NewScanner(read)
		sc.Buffer(nil, 16<<20)
		for sc.Scan() {
			var v any
			if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
				t.Errorf("a line that is no message: %q", sc.Text())
			}
			m, ok := v.(map[string]any)
			if !ok {
				m = map[string]any{"batch": v}
			}
			c.lines <- m
		}
	}()
	t.Cleanup(func() {
		_ = write.Close()
		cancel()
		for range c.lines {
		}
		agent.Close()
		srv.Close()
	})
	return c
}

func (c *stdioClient) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// answer waits for the answer to a request, and returns the notifications
// before it.
func (c *stdioClient) answer(id any) (answer map[string]any, before []map[string]any) {
	c.t.Helper()
	for m := range c.lines {
		if m["method"] == nil && fmt.Sprint(m["id"]) == fmt.Sprint(id) {
			return m, before
		}
		before = append(before, m)
	}
	c.t.Fatalf("no answer to %v; stderr:\n%s", id, c.errs)
	return nil, nil
}

// end closes the input and returns the exit code.
func (c *stdioClient) end() int {
	c.t.Helper()
	_ = c.in.Close()
	return <-c.exited
}

const stdioMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func stdioCall(id any, text, meta string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":"a2a_send_message","arguments":{"text":%q},%s}}`, id, text, meta)
}

func textOf(m map[string]any) string { return fmt.Sprint(m["result"]) }

func TestStdioBothEras(t *testing.T) {
	c := startStdio(t, nil)
	c.send(`{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{%s}}`, stdioMeta)
	if a, _ := c.answer("d"); !strings.Contains(textOf(a), "2026-07-28") {
		t.Errorf("server/discover: %v", a)
	}
	c.send("%s", stdioCall(1, "task modern", stdioMeta))
	if a, _ := c.answer(1); !strings.Contains(textOf(a), "nredom") {
		t.Errorf("modern: %v", a)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	if a, _ := c.answer(2); !strings.Contains(textOf(a), "protocolVersion:2025-11-25") {
		t.Errorf("initialize: %v", a)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send("%s", stdioCall(3, "progress 2 1", `"_meta":{"progressToken":"p"}`))
	if a, before := c.answer(3); a["error"] != nil || len(before) == 0 || before[0]["method"] != "notifications/progress" {
		t.Errorf("progress: %v before %v", before, a)
	}
	c.send("%s", stdioCall(4, "ask size", `"_meta":{}`))
	question := <-c.lines
	if question["method"] != "elicitation/create" {
		t.Fatalf("a question that does not come: %v", question)
	}
	c.send(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"answer":"large"}}}`, question["id"])
	if a, _ := c.answer(4); !strings.Contains(textOf(a), "= large") {
		t.Errorf("answered: %v", a)
	}
	if code := c.end(); code != 0 {
		t.Errorf("exit %d:\n%s", code, c.errs)
	}
}

func TestStdioManyAtOnce(t *testing.T) {
	c := startStdio(t, nil)
	const calls = 60
	for i := range calls {
		c.send("%s", stdioCall(i, fmt.Sprintf("task %d%s", i, strings.Repeat("x", 500*i)), stdioMeta))
	}
	got := map[string]int{}
	for range calls {
		m := <-c.lines
		if m["error"] != nil {
			t.Errorf("%v", m)
		}
		got[fmt.Sprint(m["id"])]++
	}
	if len(got) != calls {
		t.Errorf("%d ids answered, want %d", len(got), calls)
	}
	if code := c.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestStdioCancelAndEnd(t *testing.T) {
	c := startStdio(t, nil)
	c.send("%s", stdioCall(1, "slow 300", `"_meta":{"progressToken":1}`))
	if m := <-c.lines; m["method"] != "notifications/progress" {
		t.Fatalf("%v", m)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"changed my mind"}}`)
	c.send("%s", stdioCall(2, "slow 1 then done", stdioMeta))
	_ = c.in.Close()
	if a, _ := c.answer(2); !strings.Contains(textOf(a), "then done") {
		t.Errorf("in flight at the end: %v", a)
	}
	select {
	case code := <-c.exited:
		if code != 0 {
			t.Errorf("exit %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("does not end:\n%s", c.errs)
	}
}

func TestStdioBadInput(t *testing.T) {
	c := startStdio(t, nil)
	for _, line := range []string{
		`{"jsonrpc":`, "\x00\xff", `[]`, `"text"`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"id":{},"jsonrpc":"2.0","method":"ping"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 5<<20) + `"}`,
	} {
		c.send("%s", line)
		m := <-c.lines
		if e, ok := m["error"].(map[string]any); (!ok || e["message"] == "") && m["batch"] == nil {
			t.Errorf("%.40q: %v", line, m)
		}
	}
	c.send("\r\n  \r") // blank lines are nothing
	c.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	if a, before := c.answer(9); a["result"] == nil || len(before) != 0 {
		t.Errorf("after all that: %v, before it %v", a, before)
	}
	if code := c.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestStdioReload holds that a client over stdio hears of a changed file. What
// is about a listener in it does not matter.
func TestStdioReload(t *testing.T) {
	var path, agent string
	file := func(expose string) string {
		return fmt.Sprintf(`{"listen":"0.0.0.0:8931","auth":{"tokens":[{"name":"n","token":"0123456789abcdef0123"}]},"agents":{"demo":{"url":%q,"expose":[%s]}}}`, agent, expose)
	}
	c := startStdio(t, func(url string) string {
		path, agent = filepath.Join(t.TempDir(), "agents.json"), url
		write(t, path, file(`"generic"`))
		return path
	})
	c.send(`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, stdioMeta)
	if m := <-c.lines; m["method"] != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%v", m)
	}
	write(t, path, file(`"generic","agents"`))
	if m := <-c.lines; m["method"] != "notifications/tools/list_changed" {
		t.Errorf("%v", m)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{%s}}`, stdioMeta)
	if a, _ := c.answer(2); !strings.Contains(textOf(a), "name:demo ") {
		t.Errorf("the new tool is missing: %v", a)
	}
	if code := c.end(); code != 0 {
		t.Errorf("exit %d:\n%s", code, c.errs)
	}
}

// TestStdioSignal holds that an interrupt ends it though the input stays open.
func TestStdioSignal(t *testing.T) {
	c := startStdio(t, nil)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	c.answer(1)
	c.stop()
	select {
	case code := <-c.exited:
		if code != 0 {
			t.Errorf("exit %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("does not end")
	}
}

func TestStdioMisuse(t *testing.T) {
	t.Parallel()
	sh := shell{dir: t.TempDir(), env: map[string]string{}}
	if code, out, errs := sh.run(t.Context(), "stdio"); code != 2 || out != "" || !strings.Contains(errs, "no agents") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// TestStdioIsObserved: over stdio too each call is one line of the log, its
// request is a span of the caller's trace, metrics can be read; all of it
// beside the output, which holds messages only (startStdio checks that).
func TestStdioIsObserved(t *testing.T) {
	var mu sync.Mutex
	var delivered bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&delivered, r.Body)
	}))
	c := startStdioWith(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}, func(url string) string {
		path := filepath.Join(t.TempDir(), "agents.json")
		write(t, path, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"debugListen":"127.0.0.1:0","log":{"format":"json","debug":1}}`, url))
		return path
	})
	t.Cleanup(collector.Close) // before it is looked whether all has ended
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	c.send("%s", stdioCall(1, "echo private words", strings.TrimSuffix(stdioMeta, "}")+`,"traceparent":"`+caller+`"}`))
	c.answer(1)
	until(t, "the call is logged", func() bool { return strings.Contains(c.errs.String(), `"msg":"request"`) })
	var call logLine
	for _, l := range logLines(t, c.errs.String()) {
		if l.Msg == "request" {
			call = l
		}
	}
	if call.Method != "tools/call" || call.Kind != "calls" || call.Tool != "a2a_send_message" || call.Agent != "demo" || call.Outcome != "result" || call.Request == "" || call.Status != 0 {
		t.Errorf("the call is logged as %+v", call)
	}
	until(t, "the request to the agent is logged under the same id", func() bool {
		return regexp.MustCompile(`"msg":"agent call".*"request":"` + call.Request + `"`).MatchString(c.errs.String())
	})
	c.send(`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{},%s}}`, stdioMeta)
	if m := <-c.lines; m["method"] != "notifications/subscriptions/acknowledged" {
		t.Fatalf("%v", m)
	}
	c.send("%s", stdioCall(2, "slow 3600", stdioMeta))
	address := regexp.MustCompile(`"msg":"debug listener".*"address":"([^"]+)"`).FindStringSubmatch(c.errs.String())[1]
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	metrics := func() string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	until(t, "the second call is counted as waiting", func() bool { return strings.Contains(metrics(), "a2agate_calls_waiting 1\n") })
	text := metrics()
	for _, line := range []string{
		`a2agate_calls_total{agent="demo",outcome="result",tool="a2a_send_message"} 1`,
		`a2agate_requests_total{code="0",method="tools/call",revision="2026-07-28"} 1`,
		"a2agate_listens 1\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("missing: %s", line)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	if code := c.end(); code != 0 {
		t.Errorf("exit %d:\n%s", code, c.errs)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, part := range []string{"tools/call a2a_send_message", "a2agate.request"} {
		if !bytes.Contains(delivered.Bytes(), []byte(part)) {
			t.Errorf("no %q in the traces", part)
		}
	}
	if strings.Contains(c.errs.String(), "private words") {
		t.Error("contents are in the log")
	}
}

// TestStdioWithoutItsDebugListener: two clients start two processes with one
// file; the second does without the address that the first has.
func TestStdioWithoutItsDebugListener(t *testing.T) {
	taken := httptest.NewServer(http.NotFoundHandler())
	c := startStdio(t, func(url string) string {
		path := filepath.Join(t.TempDir(), "agents.json")
		write(t, path, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"debugListen":%q}`, url, taken.Listener.Addr()))
		return path
	})
	t.Cleanup(taken.Close)
	c.send("%s", stdioCall(1, "echo hello", stdioMeta))
	if a, _ := c.answer(1); !strings.Contains(textOf(a), "hello") {
		t.Errorf("%v", a)
	}
	if code := c.end(); code != 0 || !strings.Contains(c.errs.String(), "no debug listener") {
		t.Errorf("exit %d:\n%s", code, c.errs)
	}
}
