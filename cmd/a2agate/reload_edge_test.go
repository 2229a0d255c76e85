package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"a2agate/fixtures"
)

// Under which names, for which pages and how often the gateway may be called
// follows the file.
func TestReloadOfTheEdge(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	file := func(more string) string { return fmt.Sprintf(`{"agents":{"demo":{"url":%q}}%s}`, agent.url, more) }
	g := newGate(t, file(""))
	g.ready(t)
	status := func(host, origin string, size int) int {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta("") + `}}` + strings.Repeat(" ", size)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]string{"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list", "Origin": origin} {
			if v != "" {
				req.Header.Set(name, v)
			}
		}
		if host != "" {
			req.Host = host
		}
		resp, err := g.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	check := func(what string, want ...int) {
		t.Helper()
		got := []int{
			status("gate.example.com", "", 0), status("public.example.com", "", 0), status("", "https://app.example.com", 0), status("", "https://public.example.com", 0),
			status("", "", 70_000), // a body of that size
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("before", 421, 421, 403, 403, 200)
	g.edit(t, file(`,"allowedHosts":["gate.example.com"],"allowedOrigins":["https://app.example.com"],"publicUrl":"https://public.example.com","limits":{"bodyBytes":65536,"callsPerSecond":0.001}`), reloaded)
	check("after", 200, 200, 200, 200, 413)
	g.logged(t, `reloaded".* settings="\[publicUrl allowedHosts allowedOrigins limits.bodyBytes limits.callsPerSecond\]"`, 1)
	if page := g.get(t, "/api/status"); !strings.Contains(page, `"endpoint":"https://public.example.com/mcp"`) || strings.Contains(page, "after a restart") {
		t.Errorf("%.500s", page)
	}
	g.call(t, "a2a_discover", "{}")
	resp, err := g.post(t.Context(), "/mcp", "tools/call", "a2a_discover", `"name":"a2a_discover","arguments":{}`, "")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a second call: %s", resp.Status)
	}
	g.edit(t, file(""), reloaded)
	check("taken back", 421, 421, 403, 403, 200)
}

// A token that is taken out of the file, or is for something else, loses the
// streams that it has open; others keep theirs, also through other changes.
func TestReloadEndsTheListensOfARevokedToken(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	const ann, bob, carl = `{"name":"ann","token":"ann-token"}`, `{"name":"bob","token":"bob-token"}`, `{"name":"carl","token":"carl-token","agents":["one"]}`
	file := func(more string, tokens ...string) string {
		return fmt.Sprintf(`{"agents":{"one":{"url":%q},"two":{"url":%q}},"auth":{"tokens":[%s]}%s}`, agent.url, agent.url, strings.Join(tokens, ","), more)
	}
	g := newGate(t, file("", ann, bob, carl))
	g.token = "ann-token"
	g.ready(t)
	streams := map[string]*listening{}
	for _, name := range []string{"ann", "bob", "carl"} {
		g.token = name + "-token"
		streams[name] = g.listen(t)
	}
	g.token = "bob-token"
	g.edit(t, file(`,"wait":{"without":"5s"}`, ann, bob, carl), reloaded)
	g.edit(t, file(`,"wait":{"without":"5s"}`, bob, strings.Replace(carl, "one", "two", 1)), reloaded)
	for _, name := range []string{"ann", "carl"} {
		if got := streams[name].next(t); got != "" {
			t.Errorf("the stream of %s goes on with %q", name, got)
		}
	}
	g.edit(t, file(`,"expose":["generic","skills"]`, bob), reloaded)
	if got := streams["bob"].next(t); !strings.HasSuffix(got, "list_changed") {
		t.Errorf("bob hears %q", got)
	}
}
