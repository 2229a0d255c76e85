package a2a

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Every request to the agent goes through what is wrapped around the transport.
func TestWrapSeesCardsAndCalls(t *testing.T) {
	t.Parallel()
	var base string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"name":"x","supportedInterfaces":[{"url":"` + base + `/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`))
			return
		}
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}`))
	}))
	defer s.Close()
	base = s.URL
	var mu sync.Mutex
	var seen []string
	a, err := NewAgent(AgentConfig{Alias: "x", URL: s.URL, Wrap: func(next http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			seen = append(seen, r.Method+" "+r.URL.Path)
			mu.Unlock()
			return next.RoundTrip(r)
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	client, err := a.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.GetTask(t.Context(), "t", nil); err == nil {
		t.Error("no error")
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"GET /.well-known/agent-card.json", "POST /rpc"}; !slices.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
}

// Once Started is closed, Send and Task are taken.
func TestFollowerStarted(t *testing.T) {
	t.Parallel()
	f := NewFollower(FollowerOptions{Alias: "x", Upstream: func(context.Context) (Upstream, error) {
		return nil, &Error{Cause: CauseDial, Message: "nobody there", Unsent: true}
	}})
	select {
	case <-f.Started():
		t.Fatal("started before Run")
	default:
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	<-f.Started()
	w, err := f.Task(ctx, "t1", "c1")
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
