package telemetry

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := NewMetrics("1.2.3", Now{
		Handles: func() (int, bool) { return 7, true },
		Waiting: func() int { return 3 },
		Listens: func() int { return 2 },
		Agents:  func() map[string]string { return map[string]string{"billing": "ready", "legal": "down", "hr": "down"} },
	})
	m.Call("a2a_send_message", "billing", "result", 20*time.Millisecond)
	m.Call("a2a_send_message", "", "tool_error", time.Millisecond)
	m.Call("", "", "protocol_error", 0)
	m.Request("tools/call", "2026-07-28", 0, time.Millisecond)
	m.Request("no/such", "2026-07-28", -32601, time.Millisecond)
	m.Request("tools/call", "2026-07-28", OverLimit, time.Millisecond)
	m.Refused(401)
	m.Upstream(Upstream{Agent: "billing", Op: "send", Took: time.Millisecond})
	m.Upstream(Upstream{Agent: "billing", Op: "get", Cause: "timeout", Retry: 1, Fallback: "version"})
	m.Follow("billing", 2, 1, 1)
	m.Follow("billing", -1, 0, 0)
	m.Reload(false)
	text := scrape(t, m)
	for _, line := range []string{
		`a2agate_calls_total{agent="billing",outcome="result",tool="a2a_send_message"} 1`,
		`a2agate_calls_total{agent="none",outcome="tool_error",tool="a2a_send_message"} 1`,
		`a2agate_calls_total{agent="none",outcome="protocol_error",tool="none"} 1`,
		`a2agate_call_duration_seconds_count{tool="a2a_send_message"} 2`,
		`a2agate_requests_total{code="0",method="tools/call",revision="2026-07-28"} 1`,
		`a2agate_requests_total{code="-32601",method="other",revision="2026-07-28"} 1`,
		`a2agate_requests_total{code="429",method="tools/call",revision="2026-07-28"} 1`,
		`a2agate_refused_total{status="401"} 1`,
		`a2agate_upstream_requests_total{agent="billing",cause="none",op="send"} 1`,
		`a2agate_upstream_requests_total{agent="billing",cause="timeout",op="get"} 1`,
		`a2agate_upstream_retries_total{agent="billing",op="get"} 1`,
		`a2agate_upstream_fallbacks_total{agent="billing",fallback="version"} 1`,
		`a2agate_watches{agent="billing"} 1`,
		`a2agate_followed_tasks{agent="billing"} 1`,
		`a2agate_upstream_streams{agent="billing"} 1`,
		`a2agate_reloads_total{outcome="failed"} 1`,
		`a2agate_reloads_total{outcome="ok"} 0`,
		`a2agate_handles 7`, `a2agate_calls_waiting 3`, `a2agate_listens 2`,
		`a2agate_agents{state="ready"} 1`, `a2agate_agents{state="down"} 2`, `a2agate_agents{state="connecting"} 0`,
		`a2agate_agent_ready{agent="billing"} 1`, `a2agate_agent_ready{agent="legal"} 0`,
		`version="1.2.3"`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("missing: %s", line)
		}
	}
	m.Forget("billing")
	for line := range strings.Lines(scrape(t, m)) {
		if strings.Contains(line, `"billing"`) && !strings.Contains(line, "ready") && !strings.Contains(line, "watches") && !strings.Contains(line, "followed") && !strings.Contains(line, "streams") {
			t.Errorf("still there after the agent is gone: %s", line)
		}
	}
}

// TestForgottenAgentReturns: what is counted of an agent that is configured
// again shows again.
func TestForgottenAgentReturns(t *testing.T) {
	t.Parallel()
	m := NewMetrics("dev", Now{})
	for range 2 {
		m.Call("a2a_discover", "billing", "result", 0)
		m.Upstream(Upstream{Agent: "billing", Op: "send"})
		text := scrape(t, m)
		for _, line := range []string{
			`a2agate_calls_total{agent="billing",outcome="result",tool="a2a_discover"} 1`,
			`a2agate_upstream_requests_total{agent="billing",cause="none",op="send"} 1`,
		} {
			if !strings.Contains(text, line) {
				t.Errorf("missing: %s", line)
			}
		}
		m.Forget("billing")
	}
}

// TestLabelsAreClosed: whatever callers and agents say, the number of series
// stays bounded.
func TestLabelsAreClosed(t *testing.T) {
	t.Parallel()
	m := NewMetrics("dev", Now{})
	for i := range 5000 {
		v := fmt.Sprintf("made-up-%d", i)
		m.Call(v, "billing", v, 0)
		m.Request(v, v, i, 0)
		m.Refused(i)
		m.Upstream(Upstream{Agent: "billing", Op: v, Cause: v, Fallback: v})
	}
	text := scrape(t, m)
	series := func(name string) int { return strings.Count(text, "\n"+name+"{") }
	for name, most := range map[string]int{
		"a2agate_calls_total": maxTools + 1, "a2agate_requests_total": 3, "a2agate_refused_total": 201,
		"a2agate_upstream_requests_total": 1, "a2agate_upstream_fallbacks_total": 1,
	} {
		if n := series(name); n == 0 || n > most {
			t.Errorf("%s has %d series, want 1 to %d", name, n, most)
		}
	}
}

// TestOwnRegistries: two gateways in one process do not share a number.
func TestOwnRegistries(t *testing.T) {
	t.Parallel()
	a, b := NewMetrics("a", Now{}), NewMetrics("b", Now{})
	a.Reload(true)
	if strings.Contains(scrape(t, b), `a2agate_reloads_total{outcome="ok"} 1`) {
		t.Error("the registries are one")
	}
}

// TestNowWithoutSay leaves out what cannot be told.
func TestNowWithoutSay(t *testing.T) {
	t.Parallel()
	m := NewMetrics("dev", Now{Handles: func() (int, bool) { return 0, false }})
	if text := scrape(t, m); bytes.Contains([]byte(text), []byte("a2agate_handles")) {
		t.Error("handles are told although the store does not say")
	}
}

// TestNilMetrics: no metrics is a value like any other.
func TestNilMetrics(t *testing.T) {
	t.Parallel()
	var m *Metrics
	m.Call("a", "b", "result", 0)
	m.Request("ping", "", 0, 0)
	m.Refused(401)
	m.Upstream(Upstream{})
	m.Follow("a", 1, 1, 1)
	m.Reload(true)
	m.Forget("a")
}

func BenchmarkCall(b *testing.B) {
	m := NewMetrics("dev", Now{})
	b.ReportAllocs()
	for b.Loop() {
		m.Call("a2a_send_message", "billing", "result", time.Millisecond)
		m.Request("tools/call", "2026-07-28", 0, time.Millisecond)
		m.Upstream(Upstream{Agent: "billing", Op: "send", Took: time.Millisecond})
	}
}
