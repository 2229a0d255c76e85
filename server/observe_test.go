package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/internal/telemetry"
	"a2agate/tools"
	"a2agate/translate"
)

// errorOf reads the JSON-RPC error of an answer.
func errorOf(t *testing.T, body []byte) (code int, requestID string) {
	t.Helper()
	var a struct {
		Error struct {
			Code int
			Data struct{ RequestID string }
		}
	}
	if err := json.Unmarshal(body, &a); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return a.Error.Code, a.Error.Data.RequestID
}

// TestInternalErrorsAreNamed: every -32603 has the id of the line in the log
// that tells more, and the log never says it to the caller.
func TestInternalErrorsAreNamed(t *testing.T) {
	for name, outcome := range map[string]translate.Outcome{
		"nothing that fits": {Task: &translate.TaskInfo{}},
		"panic":             {},
	} {
		var log bytes.Buffer
		s := newServer(t, func(context.Context, tools.Call, tools.Sink) translate.Outcome {
			if outcome.Task == nil {
				panic("a bug")
			}
			return outcome
		}, func(o *Options) { o.Log = telemetry.NewLogger(&log, true, telemetry.NewLevels(slog.LevelInfo)) })
		w := do(s, modernPost(modernBody("1", "tools/call", callTool)))
		code, id := errorOf(t, w.Body.Bytes())
		if code != translate.CodeInternal || id == "" {
			t.Errorf("%s: %s", name, w.Body)
		}
		var line struct{ Kind, Request string }
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v: %s", name, err, &log)
		}
		if line.Request != id || line.Kind != "calls" {
			t.Errorf("%s: the answer names %q, the log %q of kind %s", name, id, line.Request, line.Kind)
		}
	}
}

// TestInternalErrorKeepsData: the id stands beside what the error's data says
// already, and is put into no other error.
func TestInternalErrorKeepsData(t *testing.T) {
	id := func() string { return "r-1" }
	for _, tt := range []struct {
		code       int
		data, want string
	}{
		{translate.CodeInternal, "", `{"requestId":"r-1"}`},
		{translate.CodeInternal, "{}", `{"requestId":"r-1"}`},
		{translate.CodeInternal, `{ "a2aCode":-32001 }`, `{"requestId":"r-1","a2aCode":-32001}`},
		{translate.CodeInternal, `{"requestId":"other"}`, `{"requestId":"other"}`},
		{translate.CodeInternal, `[1]`, `[1]`},
		{translate.CodeInvalidParams, "", ""},
	} {
		e := &translate.Error{Code: tt.code}
		if tt.data != "" {
			e.Data = json.RawMessage(tt.data)
		}
		if got := withRequestID(e, id); string(got.Data) != tt.want {
			t.Errorf("%d %s: %s, want %s", tt.code, tt.data, got.Data, tt.want)
		}
		if string(e.Data) != tt.data {
			t.Errorf("the error itself was changed to %s", e.Data)
		}
	}
}

// TestTooManyCallsIsJSONRPC: on every wire a call too many is HTTP 429 with
// Retry-After and a JSON-RPC error with the request's id.
func TestTooManyCallsIsJSONRPC(t *testing.T) {
	s := newServer(t, echo, func(o *Options) { o.Limits.CallsPerSecond = 0.5 })
	for name, request := range map[string]func() *http.Request{
		"modern": func() *http.Request { return modernPost(modernBody("7", "tools/call", callTool)) },
		"legacy": func() *http.Request { return legacyPost(legacyCall(""), "2025-11-25") },
	} {
		do(s, request())
		w := do(s, request())
		code, id := errorOf(t, w.Body.Bytes())
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "2" || code != translate.CodeInternal || id == "" {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
		if !strings.Contains(w.Body.String(), `"id":`) {
			t.Errorf("%s: no request id: %s", name, w.Body)
		}
	}
}

// TestTrace: a request's trace begins with the caller's context, agents get
// that of its span, and it ends once, with what became of the request.
func TestTrace(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var begun []a2a.Trace
	var ended []Exchange
	var sent a2a.Trace
	s := newServer(t, func(_ context.Context, c tools.Call, _ tools.Sink) translate.Outcome {
		sent = c.Trace
		return says("x")
	}, func(o *Options) {
		o.Trace = func(_ string, in a2a.Trace) (a2a.Trace, func(Exchange)) {
			begun = append(begun, in)
			return a2a.Trace{Parent: "own"}, func(x Exchange) { ended = append(ended, x) }
		}
	})
	do(s, modernPost(modernBody("1", "tools/call", callTool), "Traceparent", caller, "Tracestate", "k=v"))
	if len(begun) != 1 || begun[0] != (a2a.Trace{Parent: caller, State: "k=v"}) || sent.Parent != "own" || sent.Request == "" {
		t.Errorf("began with %+v, agents get %+v", begun, sent)
	}
	if len(ended) != 1 || ended[0].Method != "tools/call" || ended[0].Status != 200 || ended[0].Request == nil || ended[0].Request.ID() != sent.Request {
		t.Errorf("ended with %+v", ended)
	}
	do(s, legacyPost(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"no/such"}]`, "2025-03-26"))
	if len(begun) != 3 || len(ended) != 3 || ended[1].Method != "ping" || ended[2].Code != translate.CodeMethodNotFound {
		t.Errorf("a batch of two: %d begun, ended with %+v", len(begun), ended[1:])
	}
}

// TestTraceIsNoHeaderInjection: what a caller puts into _meta reaches agents
// only where it is a trace context.
func TestTraceIsNoHeaderInjection(t *testing.T) {
	var sent a2a.Trace
	s := newServer(t, func(_ context.Context, c tools.Call, _ tools.Sink) translate.Outcome {
		sent = c.Trace
		return says("x")
	}, nil)
	for _, bad := range []string{`x\r\nAuthorization: Bearer y`, `00-zz`, ``} {
		w := do(s, modernPost(modernBodyWith("1", "tools/call", callTool, metaOf(`{}`, `,"traceparent":"`+bad+`","tracestate":"a\nb"`))))
		if w.Code != http.StatusOK || sent.Parent != "" || sent.State != "" {
			t.Errorf("%s: %d, agents get %+v", bad, w.Code, sent)
		}
	}
}

// TestRefused: refusals of the guard and of the authentication are told apart
// from requests, with Retry-After where they say so.
func TestRefused(t *testing.T) {
	var got []int
	seen := 0
	s := newServer(t, echo, func(o *Options) {
		o.Refused = func(status int) { got = append(got, status) }
		o.Observe = func(Exchange) { seen++ }
		o.Authenticate = func(r *http.Request) (Identity, *Denied) {
			if r.Header.Get("Authorization") == "" {
				return Identity{}, &Denied{Status: http.StatusServiceUnavailable, RetryAfter: 1500 * time.Millisecond, Reason: "not now"}
			}
			return Identity{Principal: "a"}, nil
		}
	})
	foreign := modernPost(modernBody("1", "tools/call", callTool))
	foreign.Host = "evil.example.com"
	do(s, foreign)
	w := do(s, modernPost(modernBody("1", "tools/call", callTool)))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "2" || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if len(got) != 2 || got[0] != http.StatusMisdirectedRequest || got[1] != http.StatusServiceUnavailable || seen != 0 {
		t.Errorf("refused %v, observed %d", got, seen)
	}
}

// TestCounts: what waits is counted while it waits.
func TestCounts(t *testing.T) {
	in, out := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(context.Context, tools.Call, tools.Sink) translate.Outcome {
		close(in)
		<-out
		return says("x")
	}, nil)
	done := make(chan struct{})
	go func() { defer close(done); do(s, modernPost(modernBody("1", "tools/call", callTool))) }()
	<-in
	if c := s.Counts(); c.Waiting != 1 || c.Listens != 0 {
		t.Errorf("%+v while a call waits", c)
	}
	close(out)
	<-done
	if c := s.Counts(); c.Waiting != 0 {
		t.Errorf("%+v when it is over", c)
	}
}

// TestStdioIsObserved: what a pipe brings is told of like what HTTP brings:
// each message once, with its kind, code and request id, its trace from _meta
// begun and ended, and the agents' requests under both.
func TestStdioIsObserved(t *testing.T) {
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var mu sync.Mutex
	var seen, ended []Exchange
	var begun []a2a.Trace
	var sent a2a.Trace
	inCall := ""
	s := newServer(t, func(ctx context.Context, c tools.Call, _ tools.Sink) translate.Outcome {
		sent, inCall = c.Trace, telemetry.FromContext(ctx).ID()
		return says("x")
	}, nil)
	keep := func(list *[]Exchange) func(Exchange) {
		return func(x Exchange) {
			mu.Lock()
			defer mu.Unlock()
			r := *x.Request
			x.Request = &r
			*list = append(*list, x)
		}
	}
	in := strings.Join([]string{
		modernBodyWith("1", "tools/call", callTool, metaOf(`{}`, `,"traceparent":"`+caller+`","tracestate":"k=v"`)),
		`{broken`,
		modernBodyWith("2", "tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"v9","io.modelcontextprotocol/clientCapabilities":{}}`),
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":3,"method":"no/such"}`,
		`[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"no/such"}]`,
		`[]`,
		modernBody("6", "subscriptions/listen", `"notifications":7`),
		`{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", 5<<20) + `"}`,
	}, "\n")
	err := s.Core().ServeStdio(t.Context(), strings.NewReader(in), io.Discard, StdioOptions{
		Observe: keep(&seen),
		Trace: func(_ string, in a2a.Trace) (a2a.Trace, func(Exchange)) {
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, in)
			return a2a.Trace{Parent: "own"}, keep(&ended)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	has := func(list []Exchange, method string, code int, kind telemetry.Kind) *Exchange {
		t.Helper()
		var found *Exchange
		for i, x := range list {
			if x.Method == method && x.Code == code {
				if found != nil {
					t.Errorf("%q %d is told twice", method, code)
				}
				found = &list[i]
			}
		}
		if found == nil || found.Request.Kind != kind || found.Request.ID() == "" || found.Principal != Local {
			t.Errorf("%q %d: %+v", method, code, found)
			return &Exchange{Request: &telemetry.Request{}}
		}
		return found
	}
	call := has(seen, "tools/call", 0, telemetry.KindCalls)
	if call.Tool == "" || call.Revision != translate.Rev20260728 || call.Request.ID() != inCall || sent.Request != inCall || sent.Parent != "own" {
		t.Errorf("the call is told as %+v with the id %q, agents get %+v", call, inCall, sent)
	}
	has(seen, "", translate.CodeParse, telemetry.KindReads)
	has(seen, "tools/list", translate.CodeUnsupportedVersion, telemetry.KindReads)
	has(seen, "notifications/initialized", 0, telemetry.KindReads)
	has(seen, "no/such", translate.CodeMethodNotFound, telemetry.KindReads)
	has(seen, "batch", 0, telemetry.KindReads)
	has(seen, "batch", translate.CodeInvalidRequest, telemetry.KindReads)
	has(seen, "subscriptions/listen", translate.CodeInvalidParams, telemetry.KindListens)
	has(seen, "", translate.CodeInvalidRequest, telemetry.KindReads)
	if len(seen) != 9 {
		t.Errorf("%d messages are told of, want 9: %+v", len(seen), seen)
	}
	// Of what was admitted there is a trace, of each message of a batch too.
	if len(begun) != 5 || len(ended) != 5 || begun[0] != (a2a.Trace{Parent: caller, State: "k=v"}) {
		t.Errorf("%d traces begun, %d ended, the first by %+v", len(begun), len(ended), begun)
	}
	has(ended, "tools/call", 0, telemetry.KindCalls)
	has(ended, "ping", 0, telemetry.KindReads)
	has(ended, "subscriptions/listen", translate.CodeInvalidParams, telemetry.KindListens)
}
