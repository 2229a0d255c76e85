package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// seenRequest is one request as the scripted agent received it.
type seenRequest struct {
	Method, URI, Body string
	Header            http.Header
	RPC               string // JSON-RPC method
	ID                string // JSON-RPC id
	MessageID         string
}

// scriptedAgent is an agent whose answers the test writes. It records what it
// received and counts executions: how often a message was accepted.
type scriptedAgent struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	seen     []seenRequest
	executed map[string]int // by messageId
}

// newScriptedAgent serves answer, which gets each request with its body read.
func newScriptedAgent(t testing.TB, answer func(w http.ResponseWriter, r seenRequest)) *scriptedAgent {
	t.Helper()
	a := &scriptedAgent{t: t, executed: map[string]int{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("request body: %v", err)
		}
		s := seenRequest{Method: r.Method, URI: r.RequestURI, Body: string(body), Header: r.Header}
		var rpc struct {
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Message struct {
				MessageID string `json:"messageId"`
			} `json:"message"`
			Params struct {
				Message struct {
					MessageID string `json:"messageId"`
				} `json:"message"`
			} `json:"params"`
		}
		if len(body) > 0 {
			if err := json.Unmarshal(body, &rpc); err != nil {
				t.Errorf("request body is not JSON: %v: %s", err, body)
			}
		}
		s.RPC, s.ID, s.MessageID = rpc.Method, string(rpc.ID), or(rpc.Message.MessageID, rpc.Params.Message.MessageID)
		a.mu.Lock()
		a.seen = append(a.seen, s)
		a.mu.Unlock()
		answer(w, s)
	}))
	t.Cleanup(a.Close)
	return a
}

// execute counts the message of r as run.
func (a *scriptedAgent) execute(r seenRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.executed[r.MessageID]++
}

func (a *scriptedAgent) requests() []seenRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]seenRequest(nil), a.seen...)
}

// trail is what was asked, in order: JSON-RPC methods, or method and path.
func (a *scriptedAgent) trail() []string {
	var trail []string
	for _, r := range a.requests() {
		if r.RPC != "" {
			trail = append(trail, r.RPC)
		} else {
			trail = append(trail, r.Method+" "+r.URI)
		}
	}
	return trail
}

// client returns a Client of the agent over one interface.
func (a *scriptedAgent) client(v Version, b Binding, edit ...func(*ClientOptions)) *Client {
	a.t.Helper()
	o := ClientOptions{
		Alias: "alpha", Streaming: true, EmptyStreamFallback: true,
		Interfaces: []Interface{{URL: a.URL + "/a2a", Version: v, Binding: b}},
		HTTP:       a.Client(),
	}
	for _, e := range edit {
		e(&o)
	}
	c, err := NewClient(o)
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// reply writes a JSON-RPC result.
func reply(w http.ResponseWriter, r seenRequest, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

// replyError writes a JSON-RPC error.
func replyError(w http.ResponseWriter, r seenRequest, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, r.ID, code, message)
}

// sseReply writes results as JSON-RPC events.
func sseReply(w http.ResponseWriter, r seenRequest, results ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, result := range results {
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", r.ID, result)
		w.(http.Flusher).Flush()
	}
}

// hangUp breaks the connection.
func hangUp() { panic(http.ErrAbortHandler) }

const (
	taskWorking   = `{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}`
	taskCompleted = `{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}`
	bareCompleted = `{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}`
	statusDone    = `{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}`
	textDelta     = `{"artifactUpdate":{"taskId":"t1","contextId":"c1","append":true,"artifact":{"artifactId":"a1","parts":[{"text":"x"}]}}}`
)

// hello is a message to send.
func hello() SendRequest {
	return SendRequest{Message: Message{MessageID: NewMessageID(), Role: RoleUser, Parts: []Part{{Kind: PartText, Text: "hello"}}}}
}

// drain reads a stream to its end.
func drain(s EventStream) (events []Event, err error) {
	defer s.Close()
	for {
		ev, err := s.Next()
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, ev)
	}
}

// testContext ends well before the test would.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// wantError asserts that err is a *Error that may leave the package: it has a
// cause and its message is one clean line.
func wantError(t testing.TB, err error, cause Cause) *Error {
	t.Helper()
	e, ok := err.(*Error)
	if !ok {
		t.Fatalf("got %T %v, want *Error with cause %s", err, err, cause)
	}
	if e.Cause != cause {
		t.Errorf("cause %q, want %q (%s)", e.Cause, cause, e.Message)
	}
	if e.Message == "" || strings.ContainsAny(e.Message, "\n\r\t\x1b<>") || len(e.Message) > 1500 {
		t.Errorf("message is not one plain line: %q", e.Message)
	}
	for _, chain := range []string{"Post \"", "Get \"", "dial tcp", "net/http", "read tcp", "goroutine", "EOF"} {
		if strings.Contains(e.Message, chain) {
			t.Errorf("message shows Go's own words: %q", e.Message)
		}
	}
	if e.Agent != "alpha" || e.Op == "" {
		t.Errorf("agent %q, op %q", e.Agent, e.Op)
	}
	return e
}
