package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestStart: every upstream request is told of before it is made and after,
// carries the trace context that it was given in between, and is made with the
// context that it was given.
func TestStart(t *testing.T) {
	t.Parallel()
	type key struct{}
	var mu sync.Mutex
	var started, over []Exchange
	var given []Trace
	var sent []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sent = append(sent, r.Header.Get("Traceparent")+" "+r.Header.Get("Tracestate"))
		mu.Unlock()
		var call struct{ ID, Method json.RawMessage }
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &call)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`, call.ID)
	}))
	t.Cleanup(srv.Close)
	c, err := NewClient(ClientOptions{
		Alias: "x", Interfaces: []Interface{{URL: srv.URL, Binding: JSONRPC, Version: V10}},
		HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Context().Value(key{}) == nil {
				t.Error("the request is made without the context of Start")
			}
			return http.DefaultTransport.RoundTrip(r)
		})},
		Start: func(ctx context.Context, x Exchange, tr Trace) (context.Context, Trace, func(Exchange)) {
			mu.Lock()
			defer mu.Unlock()
			started, given = append(started, x), append(given, tr)
			return context.WithValue(ctx, key{}, 1), Trace{Parent: "own-" + x.Op, State: "s"}, func(x Exchange) {
				mu.Lock()
				defer mu.Unlock()
				over = append(over, x)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	own := Trace{Parent: "send's", Request: "r-1"}
	if _, err := c.Send(WithTrace(t.Context(), Trace{Parent: "context's"}), SendRequest{Message: Message{MessageID: "m", Role: RoleUser, Parts: []Part{{Kind: PartText, Text: "hi"}}}, Trace: own}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetTask(WithTrace(t.Context(), Trace{Parent: "context's"}), "t", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CancelTask(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, want := range []struct {
		op    string
		given Trace
	}{{"send", own}, {"get", Trace{Parent: "context's"}}, {"cancel", Trace{}}} {
		if started[i].Op != want.op || started[i].Status != 0 || given[i] != want.given {
			t.Errorf("%d began as %+v with %+v", i, started[i], given[i])
		}
		if over[i].Op != want.op || over[i].Status != 200 || over[i].Duration <= 0 {
			t.Errorf("%d ended as %+v", i, over[i])
		}
		if sent[i] != "own-"+want.op+" s" {
			t.Errorf("%d: the agent got %q", i, sent[i])
		}
	}
	if len(started) != 3 || len(over) != 3 {
		t.Errorf("%d began, %d ended", len(started), len(over))
	}
}
