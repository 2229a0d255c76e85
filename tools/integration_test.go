package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"a2agate/a2a"
	"a2agate/fixtures"
)

// realAgent is a *a2a.Agent over HTTP with its follower, as the gateway runs
// it.
func realAgent(t *testing.T, alias string, handler http.Handler) (AgentEntry, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	agent, err := a2a.NewAgent(a2a.AgentConfig{Alias: alias, URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	follower := a2a.NewFollower(a2a.FollowerOptions{Alias: alias, Upstream: agent.Upstream})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = follower.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		agent.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return AgentEntry{Alias: alias, Agent: agent, Follow: follower}, server
}

// over is a Service over real agents.
func over(t *testing.T, edit func(*Options), entries ...AgentEntry) *gateway {
	t.Helper()
	return &gateway{t: t, svc: stubs(t, edit, entries...)}
}

// sendOver retries while the follower has not begun yet.
func (g *gateway) sendOver(arguments string) answerSeen {
	g.t.Helper()
	for {
		got := g.send(arguments)
		if !strings.Contains(got.first, "has not been started yet") {
			return got
		}
	}
}

func TestOverHTTP(t *testing.T) {
	for _, version := range []a2a.Version{a2a.V10, a2a.V03} {
		for _, binding := range []a2a.Binding{a2a.JSONRPC, a2a.REST} {
			for _, unary := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/unary=%v", version, binding, unary), func(t *testing.T) {
					agent := fixtures.New(fixtures.Options{Versions: []a2a.Version{version}, Bindings: []a2a.Binding{binding}, Unary: unary})
					t.Cleanup(agent.Close)
					entry, _ := realAgent(t, "demo", agent)
					g := over(t, func(o *Options) { o.Expose = []Exposure{ExposeGeneric, ExposeAgents, ExposeSkills} }, entry)
					wantEqual(t, "message", g.sendOver(`{"text":"echo hi"}`).first, "hi")
					got := g.send(`{"text":"task abc"}`)
					wantEqual(t, "task", got.first, "cba")
					got = g.send(`{"text":"ask size"}`)
					got = g.send(`{"taskHandle":"` + got.str("taskHandle") + `","text":"large"}`)
					wantEqual(t, "answer", got.first, "size = large")
					got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+got.str("taskHandle")+`"}`, nil))
					wantEqual(t, "status", got.str("status"), "completed")
					got = g.send(`{"text":"slow 60","blocking":false}`)
					got = g.seen(g.call(ToolCancel, `{"taskHandle":"`+got.str("taskHandle")+`"}`, nil))
					wantEqual(t, "status", got.str("status"), "cancelled")
					got = g.seen(g.call(ToolDiscover, `{"agent":"demo"}`, nil))
					wantText(t, got.first, "A2A "+string(version)+" over "+string(binding))
					if c := agent.Complaints(); len(c) > 0 {
						t.Errorf("%q", c)
					}
					// The card is known by now: the agent shows its skills.
					wake, stop := g.svc.Changed()
					defer stop()
					g.svc.Refresh()
					<-wake
					if c := g.svc.Catalogue(View{}); len(c.Prompts) == 0 {
						t.Error("no prompts")
					}
				})
			}
		}
	}
}

// Agents that have no usable card: named, listed, and never in the way.
func TestDeadAndOddAgents(t *testing.T) {
	page := func(status int, contentType, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	tests := []struct {
		alias   string
		handler http.Handler
		state   string
		text    string // after the address
	}{
		{"html", page(200, "text/html", "<html>Sign in</html>"), "not_a_card", ""},
		{"nothing", page(404, "text/plain", "no"), "", ""},
		{"login", page(401, "text/plain", "no"), "auth_required", ""},
		{"nameless", page(200, "application/json", `{"description":"x"}`), "invalid_card", ""},
		{"array", page(200, "application/json", `[]`), "invalid_card", ""},
		{"grpc", page(200, "application/json", `{"name":"G","supportedInterfaces":[{"url":"x.test:443","protocolBinding":"GRPC","protocolVersion":"1.0"}]}`), "no_interface", "GRPC"},
		{"huge", page(200, "application/json", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`), "", ""},
		{"broken", page(200, "application/json", `{"name":`), "", ""},
	}
	good := fixtures.New(fixtures.Options{})
	t.Cleanup(good.Close)
	entry, _ := realAgent(t, "good", good)
	entries := []AgentEntry{entry}
	for _, tt := range tests {
		e, server := realAgent(t, tt.alias, tt.handler)
		entries = append(entries, e)
		_ = server
	}
	down, server := realAgent(t, "down", http.NotFoundHandler())
	server.Close()
	entries = append(entries, down)
	g := over(t, nil, entries...)
	wantEqual(t, "the good one works", g.sendOver(`{"agent":"good","text":"echo hi"}`).first, "hi")
	for _, tt := range append(tests, tests[0]) {
		got := g.sendOver(`{"agent":"` + tt.alias + `","text":"echo hi"}`)
		wantEqual(t, tt.alias+": isError", got.IsError, true)
		wantText(t, got.first, tt.text)
		t.Logf("%s: %s", tt.alias, got.first)
		if strings.Contains(got.text, "<html") || strings.Contains(got.text, "Get \"") || len(got.text) > 1500 {
			t.Errorf("%s: not fit for a caller: %s", tt.alias, got.text)
		}
		card := g.seen(g.call(ToolDiscover, `{"agent":"`+tt.alias+`"}`, nil))
		wantEqual(t, tt.alias+": card is an error", card.IsError, tt.state != "no_interface")
		wantText(t, card.text, "http://127.0.0.1:")
	}
	got := g.sendOver(`{"agent":"down","text":"x"}`)
	wantEqual(t, "down: isError", got.IsError, true)
	wantText(t, got.first, "refused")
	var list struct {
		Agents []struct{ Alias, State, Reason, Since string }
	}
	raw := g.call(ToolDiscover, `{}`, nil).Result.Structured
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "listed", len(list.Agents), len(entries))
	for _, a := range list.Agents {
		for _, tt := range tests {
			if a.Alias == tt.alias && tt.state != "" {
				wantEqual(t, a.Alias, a.State, tt.state)
			}
		}
		wantEqual(t, a.Alias+": a reason unless ready", a.Reason == "", a.State == "ready")
	}
}
