package a2a_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/fixtures"
)

// TestMovedOnEveryWire: an agent that comes back with other interfaces has the
// next message, which still went to the old one, done once, and is asked for
// its card once.
func TestMovedOnEveryWire(t *testing.T) {
	t.Parallel()
	rpc10 := fixtures.Options{Bindings: []a2a.Binding{a2a.JSONRPC}}
	rest10 := fixtures.Options{Bindings: []a2a.Binding{a2a.REST}}
	rpc03 := fixtures.Options{Bindings: []a2a.Binding{a2a.JSONRPC}, Versions: []a2a.Version{a2a.V03}}
	rest03 := fixtures.Options{Bindings: []a2a.Binding{a2a.REST}, Versions: []a2a.Version{a2a.V03}}
	unary := func(o fixtures.Options) fixtures.Options {
		o.Unary = true
		return o
	}
	for name, tt := range map[string]struct{ from, to fixtures.Options }{
		"JSON-RPC to 0.3":               {rpc10, rpc03},
		"JSON-RPC back from 0.3":        {rpc03, rpc10},
		"REST to 0.3":                   {rest10, rest03},
		"REST back from 0.3":            {rest03, rest10},
		"JSON-RPC to REST":              {rpc10, rest10},
		"REST to JSON-RPC":              {rest10, rpc10},
		"JSON-RPC to REST 0.3":          {rpc10, rest03},
		"without streams":               {unary(rpc10), unary(rpc03)},
		"REST without streams":          {unary(rest10), unary(rest03)},
		"streams to none":               {rpc10, unary(rpc03)},
		"REST streams to none":          {rest10, unary(rest03)},
		"no streams to REST with these": {unary(rpc10), rest10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.from.CardMaxAge, tt.to.CardMaxAge = time.Hour, time.Hour
			before, after := fixtures.New(tt.from), fixtures.New(tt.to)
			defer before.Close()
			defer after.Close()
			var now atomic.Pointer[fixtures.Agent]
			now.Store(before)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) }))
			defer server.Close()
			f, end := followed(t, server.URL)
			defer end()
			for i, agent := range []*fixtures.Agent{before, after, after} {
				now.Store(agent)
				id := a2a.NewMessageID()
				w, err := f.Send(t.Context(), a2a.SendRequest{Message: a2a.Message{
					MessageID: id, Role: a2a.RoleUser, Parts: []a2a.Part{{Kind: a2a.PartText, Text: "early 0.1 hello"}},
				}})
				if err != nil {
					t.Fatal(err)
				}
				s := await(t, w, 20*time.Second, ended)
				w.Close()
				if s.Err != nil || !strings.Contains(words(s), "hello") {
					t.Errorf("message %d: %q, %v, notes %q", i+1, words(s), s.Err, s.Notes)
				}
				if n := agent.Executions(id); n != 1 {
					t.Errorf("message %d was done %d times", i+1, n)
				}
			}
			cards := 0
			for _, r := range after.Requests() {
				if r.Path == fixtures.PathCard || r.Path == fixtures.PathOldCard {
					cards++
				}
			}
			if cards != 1 {
				t.Errorf("%d requests for the new card, want 1", cards)
			}
			for _, c := range before.Complaints() {
				t.Errorf("the agent complains: %s", c)
			}
		})
	}
}

// followed is the follower of the agent at url, at work until end.
func followed(t *testing.T, url string) (f *a2a.Follower, end func()) {
	t.Helper()
	agent, err := a2a.NewAgent(a2a.AgentConfig{Alias: "demo", URL: url, EmptyStreamFallback: true})
	if err != nil {
		t.Fatal(err)
	}
	f = a2a.NewFollower(a2a.FollowerOptions{Alias: "demo", Upstream: agent.Upstream})
	ctx, stop := context.WithCancel(context.Background())
	ran, looked := make(chan error, 1), make(chan error, 1)
	go func() { looked <- agent.Run(ctx) }()
	go func() { ran <- f.Run(ctx) }()
	<-f.Started()
	return f, func() {
		stop()
		for _, done := range []chan error{ran, looked} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		agent.Close()
	}
}
