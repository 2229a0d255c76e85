package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"a2agate/fixtures"
)

// bridge is a gateway as the page about agent-bridges sets it up.
func bridge(t *testing.T) (*gate, agentServer) {
	t.Helper()
	agent := newAgentServer(t, fixtures.Options{})
	invoices := newAgentServer(t, fixtures.Options{Name: "Invoice Helper", NoDemoSkills: true, Skills: []fixtures.Skill{
		{ID: "ask", Name: "Ask", Description: "Answers a question about an invoice.", Tags: []string{"finance"}},
	}})
	g := newGate(t, fmt.Sprintf(`{"expose":["generic","query"],"agents":{"demo":{"url":%q},"invoices":{"url":%q}}}`, agent.url, invoices.url))
	g.ready(t)
	until(t, "the cards are known", func() bool { return g.agents(t)["invoices"].Name == "Invoice Helper" })
	return g, agent
}

func TestFromAgentBridge(t *testing.T) {
	tried(t, "from-agent-bridge.md", map[string]func(*testing.T){
		"http": func(t *testing.T) {
			g, _ := bridge(t)
			for _, path := range []string{"/mcp", "/mcp/"} {
				if n := len(g.tools(t, path)); n != 5 {
					t.Errorf("%d tools at %s, want 5", n, path)
				}
			}
		},
		"agent_list": func(t *testing.T) {
			g, _ := bridge(t)
			r := g.call(t, "a2a_discover", `{}`)
			list := r.Content[len(r.Content)-1].Text
			var shown struct {
				Agents []agentShown
				Total  int
			}
			if err := json.Unmarshal([]byte(list), &shown); err != nil || shown.Total != 2 || len(shown.Agents[1].Skills) != 1 || shown.Agents[1].Alias != "invoices" || list != string(r.Structured) {
				t.Errorf("%s (%v)", list, err)
			}
		},
		"skill_tags": func(t *testing.T) {
			g, _ := bridge(t)
			for _, arguments := range []string{`{"skillTags":["finance"]}`, `{"query":"invoice"}`} {
				if r := g.call(t, "a2a_discover", arguments); strings.Count(string(r.Structured), `"alias"`) != 1 || !strings.Contains(string(r.Structured), `"alias":"invoices"`) {
					t.Errorf("%s: %s", arguments, r.Structured)
				}
			}
		},
		"agent_info": func(t *testing.T) {
			g, agent := bridge(t)
			resp, err := http.Get(agent.url + fixtures.PathCard)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			card, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			r := g.says(t, "a2a_discover", `{"agent":"demo"}`, string(card))
			if !strings.Contains(r.text(), `Agent "Demo agent" (version 1.0.0)`) {
				t.Errorf("in words: %s", r.text())
			}
		},
		"agent_send": func(t *testing.T) {
			g, _ := bridge(t)
			if r := g.says(t, "a2a_send_message", `{"agent":"demo","text":"task hello"}`, "olleh"); r.envelope().Task == "" || r.envelope().Context == "" {
				t.Errorf("no handles: %s", r.Structured)
			}
		},
		"one-agent": func(t *testing.T) {
			g, agent := bridge(t)
			one := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, agent.url))
			one.says(t, "a2a_send_message", `{"text":"echo hi"}`, "hi")
			if r := g.call(t, "a2a_send_message", `{"text":"echo hi"}`); !r.IsError {
				t.Errorf("of two agents: %s", r.text())
			}
			task := g.call(t, "a2a_send_message", `{"agent":"demo","text":"task hello"}`).envelope().Task
			g.says(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, task), "olleh")
		},
		"blocking": func(t *testing.T) {
			g, agent := bridge(t)
			began, release := agent.hold()
			r := g.call(t, "a2a_send_message", `{"agent":"demo","text":"hold","blocking":false}`)
			if r.IsError || r.envelope().Status != "working" || r.envelope().Task == "" {
				t.Errorf("answers %s", r.text())
			}
			<-began
			release()
			g.says(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q,"waitSeconds":60}`, r.envelope().Task), "let go")
		},
		"timeout_seconds": func(t *testing.T) {
			g, agent := bridge(t)
			began, release := agent.hold()
			r := g.call(t, "a2a_send_message", `{"agent":"demo","text":"hold","timeoutSeconds":1}`)
			<-began
			if r.IsError || r.envelope().Status != "working" || r.envelope().Task == "" {
				t.Errorf("answers %s", r.text())
			}
			release()
			g.says(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q,"waitSeconds":60}`, r.envelope().Task), "let go")
			for _, seconds := range []int{0, 301} {
				if r := g.call(t, "a2a_send_message", fmt.Sprintf(`{"agent":"demo","text":"echo hi","timeoutSeconds":%d}`, seconds)); !r.IsError {
					t.Errorf("%d seconds: %s", seconds, r.text())
				}
			}
		},
		"context_id": func(t *testing.T) {
			g, agent := bridge(t)
			first := g.says(t, "a2a_send_message", `{"agent":"demo","text":"task one"}`, "eno")
			g.says(t, "a2a_send_message", fmt.Sprintf(`{"text":"task two","contextHandle":%q}`, first.envelope().Context), "owt")
			tasks := agent.Tasks()
			if len(tasks) != 2 || tasks[0].ContextID != tasks[1].ContextID {
				t.Fatalf("%d tasks, not in one context", len(tasks))
			}
			if strings.Contains(first.text()+string(first.Structured), tasks[0].ContextID) {
				t.Error("an id of A2A has left the gateway")
			}
		},
		"agent_query": func(t *testing.T) {
			g, agent := bridge(t)
			g.call(t, "a2a_send_message", `{"agent":"demo","text":"task hello"}`)
			id := agent.Tasks()[0].ID
			g.says(t, "a2a_query", fmt.Sprintf(`{"agent":"demo","method":"GetTask","params":{"id":%q}}`, id), `"TASK_STATE_COMPLETED"`)
			plain := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, agent.url))
			if _, on := plain.tools(t, "/mcp")["a2a_query"]; on {
				t.Error("a2a_query is on without being asked for")
			}
		},
		"agent_query-timeout": func(t *testing.T) {
			agent := newAgentServer(t, fixtures.Options{})
			g := newGate(t, fmt.Sprintf(`{"expose":["generic","query"],"agents":{"demo":{"url":%q,"timeoutSeconds":1}}}`, agent.url))
			g.ready(t)
			agent.FailNext(10, fixtures.Outage{Hang: true})
			if r := g.call(t, "a2a_query", `{"agent":"demo","method":"GetTask","params":{"id":"x"}}`); !r.IsError || !strings.Contains(r.text(), "did not answer within") {
				t.Errorf("answers %s", r.text())
			}
		},
		"unknown-agent": func(t *testing.T) {
			g, _ := bridge(t)
			for _, call := range [][2]string{
				{"a2a_send_message", `{"agent":"dmo","text":"x"}`}, {"a2a_discover", `{"agent":"dmo"}`}, {"a2a_query", `{"agent":"dmo","method":"GetTask"}`},
			} {
				if r := g.call(t, call[0], call[1]); !r.IsError || !strings.HasPrefix(r.text(), `unknown agent "dmo": `) || !strings.Contains(r.text(), `"demo"`) {
					t.Errorf("%s: %s", call[0], r.text())
				}
			}
		},
		"no-agents": func(t *testing.T) {
			code, _, stderr := shell{dir: t.TempDir()}.run(t.Context(), "serve")
			if code != 2 || !strings.HasPrefix(stderr, "a2agate: no agents: name an agent's URL, or a file with --config, or put an agents.json into ") {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		},
	})
}
