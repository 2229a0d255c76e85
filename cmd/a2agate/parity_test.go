package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"a2agate/fixtures"
)

var parityRow = regexp.MustCompile("(?m)^\\| `([A-Za-z_-]+)` \\| (?:[^|]+) \\| (?:[^|]+) \\|$")

// tried holds a page to its tests: each row has one, each of them a row.
func tried(t *testing.T, page string, tests map[string]func(*testing.T)) {
	data, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "| test |")
	rows := parityRow.FindAllStringSubmatch(table, -1)
	if len(rows) < 10 || len(rows) != strings.Count(table, "\n| `") {
		t.Fatalf("%s has %d rows that can be read", page, len(rows))
	}
	for _, row := range rows {
		name := row[1]
		test, ok := tests[name]
		if !ok {
			t.Errorf("%s: nothing tries the row %q", page, name)
			continue
		}
		delete(tests, name)
		t.Run(name, test)
	}
	for name := range tests {
		t.Errorf("%s has no row for the test %q", page, name)
	}
}

// gateIn runs a command of the gateway in a folder, with an environment.
func gateIn(t *testing.T, dir string, env map[string]string, args ...string) *gate {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g := &gate{t: t, dir: dir, log: newOutput(), done: make(chan int, 1), client: &http.Client{Transport: &http.Transport{}}, cancel: cancel}
	p := shell{dir: dir, env: env}.process(strings.NewReader(""), io.Discard, g.log)
	go func() { g.done <- run(ctx, args, p) }()
	t.Cleanup(func() {
		if code := g.stop(); code != 0 {
			t.Errorf("the gateway ended with %d:\n%s", code, g.log)
		}
	})
	m := g.log.match(t, `listening on (\S+)|a2agate: (.*)\n`)
	if g.url = m[1]; g.url == "" {
		t.Fatalf("the gateway does not start: %s", m[2])
	}
	return g
}

// editorFolder is a project with a file as vscode-a2a has it.
func editorFolder(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, text)
	return dir
}

// fakeAzure puts a program into PATH that issues "token of RESOURCE".
func fakeAzure(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "az"), "#!/bin/sh\nprintf '{\"accessToken\":\"token-of-%s\",\"expires_on\":4102444800}' \"$4\"\n")
	if err := os.Chmod(filepath.Join(dir, "az"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// says calls an agent and wants its words.
func (g *gate) says(t *testing.T, tool, arguments, want string) toolResult {
	t.Helper()
	r := g.call(t, tool, arguments)
	if r.IsError || !strings.Contains(r.text(), want) {
		t.Errorf("%s %s answers %s, want %q in it", tool, arguments, r.text(), want)
	}
	return r
}

// authorized wants an agent that demands a bearer token to be served by this
// entry of the file.
func authorized(token, entry string) func(t *testing.T) {
	return func(t *testing.T) {
		fakeAzure(t)
		agent := newAgentServer(t, fixtures.Options{BearerToken: token})
		g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,%s}}}`, agent.url, entry))
		g.says(t, "a2a_send_message", `{"text":"echo hi"}`, "hi")
	}
}

func TestFromVSCodeA2A(t *testing.T) {
	tried(t, "from-vscode-a2a.md", map[string]func(*testing.T){
		"started-by-the-editor": startedByTheEditor,
		"agents-as-tools":       agentsAsTools,
		"file":                  filesOfEditors,
		"file-unchanged": func(t *testing.T) {
			const sample = "../../config/testdata/valid/vscode-a2a.json"
			code, stdout, stderr := shell{dir: t.TempDir(), env: map[string]string{"TOKEN": "t"}}.run(t.Context(), "check", sample)
			if code != 0 || !strings.Contains(stdout, ": ok, 6 agents") {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		},
		"live-reload":        liveReload,
		"card-path":          cardPaths,
		"discovery":          discoveryOrder,
		"unreachable-agents": unreachableAgents,
		"azure": func(t *testing.T) {
			t.Run("auth", authorized("token-of-api://mine", `"auth":{"type":"az_cli","resource":"api://mine"}`))
			t.Run("resource", authorized("token-of-api://mine", `"resource":"api://mine"`))
		},
		"azure-from-card":       azureFromCard,
		"bearer":                authorized("s3cr3t-token", `"auth":{"type":"bearer","token":"s3cr3t-token"}`),
		"api-key":               apiKeys,
		"client-credentials":    clientCredentials,
		"variables":             variables,
		"versions-and-bindings": TestEveryWireThroughTheGateway,
		"empty-stream":          emptyStreams,
		"conversation":          conversations,
		"input-required":        questions,
		"debug-levels":          debugLevels,
	})
}

// The process speaks MCP at its streams, and ends with its input.
func startedByTheEditor(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{})
	dir := editorFolder(t, ".vscode/a2a.json", fmt.Sprintf(`{"expose":["agents"],"agents":{"demo":{"url":%q}}}`, agent.url))
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"editor","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"demo","arguments":{"message":"echo hi"}}}
`)
	out, errs := newOutput(), newOutput()
	if code := run(t.Context(), []string{"stdio"}, shell{dir: dir}.process(in, out, errs)); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	lines := bufio.NewScanner(strings.NewReader(out.String()))
	var answers []string
	for lines.Scan() {
		var m struct {
			ID     int `json:"id"`
			Result struct {
				toolResult
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"result"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if m.ID != 0 {
			answers = append(answers, fmt.Sprintf("%d %s%s", m.ID, m.Result.ProtocolVersion, strings.SplitN(m.Result.text(), "\n", 2)[0]))
		}
	}
	slices.Sort(answers)
	if !slices.Equal(answers, []string{"1 2025-06-18", "2 hi"}) {
		t.Errorf("answers %q in\n%s", answers, out)
	}
}

func agentsAsTools(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{Name: "Travel Desk", Description: "Books trips.", NoDemoSkills: true, Skills: []fixtures.Skill{
		{ID: "book", Name: "Book", Description: "Books one trip.", Tags: []string{"x"}},
	}})
	g := newGate(t, fmt.Sprintf(`{"expose":["agents"],"agents":{"my-agent":{"url":%q}}}`, agent.url))
	until(t, "the card is known", func() bool { return g.tools(t, "/mcp")["my-agent"].Title == "Travel Desk" })
	tool := g.tools(t, "/mcp")["my-agent"]
	for _, want := range []string{"Travel Desk", "Books trips.", "Book: Books one trip."} {
		if !strings.Contains(tool.Description, want) {
			t.Errorf("no %q in %q", want, tool.Description)
		}
	}
	var schema struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(tool.InputSchema, &schema); err != nil ||
		schema.Properties["message"].Type != "string" || schema.Properties["start_fresh"].Type != "boolean" || !slices.Equal(schema.Required, []string{"message"}) {
		t.Errorf("schema %s (%v)", tool.InputSchema, err)
	}
	g.says(t, "my-agent", `{"message":"echo hi"}`, "hi")
}

func filesOfEditors(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{})
	text := fmt.Sprintf("{\n  // ours\n  \"agents\": { \"demo\": { \"url\": %q }, /* the last one */ },\n}\n", agent.url)
	for _, name := range []string{"a2a.json", ".vscode/a2a.json"} {
		g := gateIn(t, editorFolder(t, name, text), nil, "serve", "--listen", "127.0.0.1:0")
		g.says(t, "a2a_send_message", `{"text":"echo hi"}`, "hi")
	}
}

func liveReload(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{})
	dir := editorFolder(t, ".vscode/a2a.json", fmt.Sprintf(`{"expose":["agents"],"agents":{"one":{"url":%q}}}`, agent.url))
	g := gateIn(t, dir, nil, "serve", "--listen", "127.0.0.1:0")
	g.file = filepath.Join(dir, ".vscode", "a2a.json")
	g.ready(t)
	until(t, "the card is known", func() bool { return strings.Contains(g.tools(t, "/mcp")["one"].Description, "scripted") })
	l := g.listen(t)
	g.edit(t, fmt.Sprintf(`{"expose":["agents"],"agents":{"one":{"url":%q},"two":{"url":%q}}}`, agent.url, agent.url), reloaded)
	if m := l.next(t); m != "notifications/tools/list_changed" {
		t.Errorf("heard %s", m)
	}
	g.says(t, "two", `{"message":"echo hi"}`, "hi")
	liveReloadOnAPipe(t)
	g.edit(t, `{"agents":`, "configuration not reloaded, the last good one stays in force")
	g.says(t, "two", `{"message":"echo hi"}`, "hi")
}

// liveReloadOnAPipe is what an editor sees that has started the gateway.
func liveReloadOnAPipe(t *testing.T) {
	var path, entry string
	c := startStdio(t, func(agent string) string {
		path, entry = filepath.Join(t.TempDir(), "a2a.json"), fmt.Sprintf(`{"url":%q}`, agent)
		if err := os.WriteFile(path, []byte(`{"expose":["agents"],"agents":{"one":`+entry+`}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	c.answer(1)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.answer(2)
	if err := os.WriteFile(path, []byte(`{"expose":["agents"],"agents":{"one":`+entry+`,"two":`+entry+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for listed := false; !listed; {
		for m := range c.lines {
			if m["method"] == "notifications/tools/list_changed" {
				break
			}
		}
		c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		answer, _ := c.answer(3)
		listed = strings.Contains(fmt.Sprint(answer), "name:two") // the card's arrival is a change too
	}
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func cardPaths(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{CardPaths: []string{"/my/card.json"}})
	for _, entry := range []string{
		fmt.Sprintf(`"url":%q,"cardPath":"my/card.json"`, agent.url),
		fmt.Sprintf(`"url":%q,"cardPath":"%s/my/card.json"`, agent.url, agent.url),
		fmt.Sprintf(`"cardUrl":"%s/my/card.json"`, agent.url),
	} {
		g := newGate(t, `{"agents":{"demo":{`+entry+`}}}`)
		g.says(t, "a2a_send_message", `{"text":"echo hi"}`, "hi")
	}
}

func discoveryOrder(t *testing.T) {
	var asked []string
	var mu sync.Mutex
	agent := fixtures.New(fixtures.Options{CardPaths: []string{fixtures.PathOldCard}})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			mu.Lock()
			asked = append(asked, r.URL.Path)
			mu.Unlock()
		}
		agent.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { agent.Close(); s.Close() })
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":"%s/team/"}}}`, s.URL))
	g.says(t, "a2a_send_message", `{"text":"echo hi"}`, "hi")
	mu.Lock()
	defer mu.Unlock()
	want := []string{"/team/.well-known/agent-card.json", "/team/.well-known/agent.json", "/.well-known/agent-card.json", "/.well-known/agent.json"}
	if len(asked) < 4 || !slices.Equal(asked[:4], want) {
		t.Errorf("asked for %q, want %q first", asked, want)
	}
}

func unreachableAgents(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{})
	g := newGate(t, fmt.Sprintf(`{"expose":["generic","agents"],"agents":{"demo":{"url":%q},"dead":{"url":%q}}}`, agent.url, deadPort(t)))
	g.logged(t, `level=WARN msg="agent not ready" agent=dead state=down`, 1)
	if dead := g.agents(t)["dead"]; dead.State != "down" || !strings.Contains(dead.Reason, "nothing listens there") {
		t.Errorf("listed as %+v", dead)
	}
	if r := g.call(t, "dead", `{"message":"x"}`); !r.IsError {
		t.Errorf("a call to it answers %s", r.text())
	}
	g.says(t, "demo", `{"message":"echo hi"}`, "hi")
}

func azureFromCard(t *testing.T) {
	fakeAzure(t)
	const card = `{"name":"Azure","supportedInterfaces":[{"url":"http://HOST/a2a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
		"securitySchemes":{"aad":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"https://login.example.com/token","scopes":{"api://from-card/.default":"all"}}}}}},
		"securityRequirements":[{"schemes":{"aad":{"list":["api://from-card/.default"]}}}]}`
	var mu sync.Mutex
	var got []string
	url := served(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, strings.ReplaceAll(card, "HOST", r.Host))
			return
		}
		mu.Lock()
		got = append(got, r.Header.Get("Authorization"))
		mu.Unlock()
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}}`)
	})(t)
	for _, auth := range []string{`,"auth":{"type":"az_cli"}`, ``} {
		g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q%s}}}`, url, auth))
		g.says(t, "a2a_send_message", `{"text":"x"}`, "hi")
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"Bearer token-of-api://from-card", ""}; !slices.Equal(got, want) {
		t.Errorf("tokens %q, want %q", got, want)
	}
}

func apiKeys(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{APIKey: "s3cr3t-key"})
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,"auth":{"type":"apikey","key":"s3cr3t-key","header":"X-API-Key"}}}}`, agent.url))
	g.says(t, "a2a_send_message", `{"text":"echo hi"}`, "hi")
}

func clientCredentials(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{BearerToken: "issued"})
	var mu sync.Mutex
	issued := 0
	endpoint := served(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		issued++
		token := "issued"
		if issued == 1 {
			token = "withdrawn" // the agent will not take it
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
	})(t)
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,"auth":{"type":"oauth2","clientId":"gateway","clientSecret":"s","tokenUrl":%q,"scopes":["api://x/.default"]}}}}`, agent.url, endpoint))
	for range 3 {
		g.says(t, "a2a_send_message", `{"text":"echo hi"}`, "hi")
	}
	mu.Lock()
	defer mu.Unlock()
	if issued != 2 {
		t.Errorf("%d tokens were asked for, want 2: one, and one after the 401", issued)
	}
}

func variables(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{BearerToken: "from-env", APIKey: "from-file"})
	dir := editorFolder(t, "key", "from-file\n")
	write(t, filepath.Join(dir, "a2a.json"), `{"agents":{"one":{"url":"${env:AGENT}","auth":{"type":"bearer","token":"${env:TOKEN}"}},"two":{"url":"${env:AGENT}","auth":{"type":"apikey","key":"${file:key}"}}}}`)
	env := map[string]string{"AGENT": agent.url, "TOKEN": "from-env"}
	g := gateIn(t, dir, env, "serve", "--listen", "127.0.0.1:0")
	for _, alias := range []string{"one", "two"} {
		g.says(t, "a2a_send_message", fmt.Sprintf(`{"agent":%q,"text":"echo hi"}`, alias), "hi")
	}
	code, _, stderr := shell{dir: dir, env: map[string]string{"AGENT": agent.url}}.run(t.Context(), "check")
	if code != 1 || !strings.Contains(stderr, "agents.one.auth.token: ${env:TOKEN}: the environment variable TOKEN is not set") {
		t.Errorf("without the variable: exit code %d, %s", code, stderr)
	}
}

func emptyStreams(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{})
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q},"strict":{"url":%q,"emptyStreamFallback":false}}}`, agent.url, agent.url))
	g.says(t, "a2a_send_message", `{"agent":"demo","text":"emptystream"}`, "not streamed")
	ids := map[string]int{}
	for _, method := range []string{"SendStreamingMessage", "SendMessage"} {
		calls := agent.Calls(method)
		if len(calls) != 1 {
			t.Fatalf("%d calls of %s, want 1", len(calls), method)
		}
		var body struct {
			Params struct {
				Message struct {
					MessageID string `json:"messageId"`
				} `json:"message"`
			} `json:"params"`
		}
		if err := json.Unmarshal(calls[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		ids[body.Params.Message.MessageID]++
	}
	if len(ids) != 1 {
		t.Errorf("sent under the ids %v, want one", ids)
	}
	if r := g.call(t, "a2a_send_message", `{"agent":"strict","text":"emptystream"}`); !r.IsError || !strings.Contains(r.text(), "stream") {
		t.Errorf("switched off: %s", r.text())
	}
}

func conversations(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{})
	g := newGate(t, fmt.Sprintf(`{"expose":["agents"],"agents":{"demo":{"url":%q}}}`, agent.url))
	first := strings.Split(g.says(t, "demo", `{"message":"context"}`, "").text(), "\n")[0]
	second := strings.Split(g.says(t, "demo", `{"message":"context"}`, "").text(), "\n")[0]
	fresh := strings.Split(g.says(t, "demo", `{"message":"context","start_fresh":true}`, "").text(), "\n")[0]
	id := func(s string) string {
		return regexp.MustCompile(`ctx-[a-z0-9]+-[0-9]+|context-[a-z0-9]+-[0-9]+`).FindString(s)
	}
	if id(first) == "" || id(first) != id(second) || id(fresh) == id(first) || first == second {
		t.Errorf("first %q, then %q, fresh %q", first, second, fresh)
	}
}

func questions(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{})
	g := newGate(t, fmt.Sprintf(`{"expose":["agents"],"agents":{"demo":{"url":%q}}}`, agent.url))
	if r := g.says(t, "demo", `{"message":"ask size"}`, "size"); r.envelope().Status != "input_required" {
		t.Errorf("status %q", r.envelope().Status)
	}
	g.says(t, "demo", `{"message":"large"}`, "large")
	if n := len(agent.Tasks()); n != 1 {
		t.Errorf("the agent has %d tasks, want one", n)
	}
}

func debugLevels(t *testing.T) {
	agent := newAgentServer(t, fixtures.Options{BearerToken: "s3cr3t-token"})
	said := func(level string, viaEnv bool) string {
		env, more := map[string]string{}, `,"log":{"debug":`+level+`}`
		if viaEnv {
			env["A2A_DEBUG_LEVEL"], more = level, ""
		}
		dir := editorFolder(t, "a2a.json", fmt.Sprintf(`{"agents":{"demo":{"url":%q,"auth":{"type":"bearer","token":"s3cr3t-token"}}}%s}`, agent.url, more))
		g := gateIn(t, dir, env, "serve", "--listen", "127.0.0.1:0")
		g.says(t, "a2a_send_message", `{"text":"task hello"}`, "olleh")
		g.stop()
		return g.log.String()
	}
	least := 0
	for _, level := range []string{"0", "1", "2", "3", "4", "5"} {
		for _, viaEnv := range []bool{true, false} {
			log := said(level, viaEnv)
			if strings.Contains(log, "s3cr3t") {
				t.Errorf("a credential shows at level %s", level)
			}
			if shows := strings.Contains(log, "olleh"); shows != (level == "5") {
				t.Errorf("level %s shows contents: %t\n%s", level, shows, log)
			}
			if viaEnv {
				if lines := strings.Count(log, "kind=agents"); lines < least {
					t.Errorf("level %s says %d lines, the one before %d", level, lines, least)
				} else {
					least = lines
				}
			}
		}
	}
	code, _, stderr := shell{dir: t.TempDir(), env: map[string]string{"A2A_DEBUG_LEVEL": "6"}}.run(t.Context(), "serve", agent.url)
	if code != 2 || stderr != "a2agate: A2A_DEBUG_LEVEL \"6\" is not a number from 0 to 5\n" {
		t.Errorf("a level that is none: exit code %d, %s", code, stderr)
	}
}
