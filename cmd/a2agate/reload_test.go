package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"a2agate/config"
	"a2agate/fixtures"
)

// reloaded is what the log says after each change that is in force.
const reloaded = `msg="configuration reloaded"`

// Only what has changed is touched: the other agents are not even asked.
func TestReloadTouchesChangedAgentsOnly(t *testing.T) {
	t.Parallel()
	one, two := newAgentServer(t, fixtures.Options{}), newAgentServer(t, fixtures.Options{})
	file := func(header string) string {
		return fmt.Sprintf(`{"agents":{"one":{"url":%q,"headers":{"X-Team":%q}},"two":{"url":%q}}}`, one.url, header, two.url)
	}
	g := newGate(t, file("a"))
	g.ready(t)
	before := len(two.Requests())
	if before == 0 {
		t.Fatal("the second agent was never asked")
	}
	g.edit(t, file("b"), reloaded)
	g.logged(t, `changed=\[one\]`, 1)
	g.call(t, "a2a_send_message", `{"agent":"one","text":"echo hi"}`)
	if got := one.Calls("SendStreamingMessage")[0].Header.Get("X-Team"); got != "b" {
		t.Errorf("the changed header is %q", got)
	}
	if after := len(two.Requests()); after != before {
		t.Errorf("the unchanged agent was asked %d times more", after-before)
	}
	// Another order of agents is no difference.
	g.edit(t, fmt.Sprintf(`{"agents":{"two":{"url":%q},"one":{"url":%q,"headers":{"X-Team":"b"}}}}`, two.url, one.url), reloaded)
	if after := len(two.Requests()); after != before {
		t.Errorf("another order asked the agent %d times more", after-before)
	}
}

// A reload of one agent in a file of fifty costs one agent.
func TestReloadOfOneInFifty(t *testing.T) {
	t.Parallel()
	agents := newAgentFarm(t, 50)
	g := newGate(t, agents.file(""))
	g.ready(t)
	before := agents.requests()
	g.edit(t, agents.file(`,"timeoutSeconds":7`), reloaded)
	after := agents.requests()
	for i := range after {
		if asked := after[i] - before[i]; i == 0 && asked != 1 || i != 0 && asked != 0 {
			t.Errorf("agent %d was asked %d times", i, asked)
		}
	}
}

// agentFarm is many agents on one server.
type agentFarm struct {
	agents []*fixtures.Agent
	base   string
}

func newAgentFarm(t *testing.T, n int) *agentFarm {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	f := &agentFarm{base: s.URL}
	for i := range n {
		at := fmt.Sprintf("/a%d", i)
		skills := make([]fixtures.Skill, 6)
		for j := range skills {
			skills[j] = fixtures.Skill{
				ID: fmt.Sprintf("skill%d", j), Name: fmt.Sprintf("Skill %d", j), Tags: []string{"test"},
				Description: fmt.Sprintf("Does what skill %d of agent %d does.", j, i),
			}
		}
		a := fixtures.New(fixtures.Options{Name: fmt.Sprintf("Agent %d", i), BaseURL: s.URL + at, NoDemoSkills: true, Skills: skills})
		f.agents = append(f.agents, a)
		mux.Handle(at+"/", http.StripPrefix(at, a))
	}
	t.Cleanup(func() {
		for _, a := range f.agents {
			a.Close()
		}
		s.Close()
	})
	return f
}

// file configures all, the first one with more.
func (f *agentFarm) file(more string) string {
	var entries []string
	for i := range f.agents {
		entries = append(entries, fmt.Sprintf(`"agent%d":{"url":"%s/a%d"%s}`, i, f.base, i, more))
		more = ""
	}
	return `{"agents":{` + strings.Join(entries, ",") + `}}`
}

func (f *agentFarm) requests() []int {
	counts := make([]int, len(f.agents))
	for i, a := range f.agents {
		counts[i] = len(a.Requests())
	}
	return counts
}

// A call in flight finishes on the agent that it began with.
func TestReloadLeavesCallsInFlight(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	began, release := agent.hold()
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, agent.url))
	g.ready(t)
	answer := make(chan answered, 1)
	go func() {
		a, err := g.ask(context.Background(), "tools/call", "a2a_send_message", `"name":"a2a_send_message","arguments":{"text":"hold"}`, "")
		if err != nil {
			t.Error(err)
		}
		answer <- a
	}()
	<-began
	other := newAgentServer(t, fixtures.Options{Name: "Other"})
	g.edit(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, other.url), reloaded)
	if name := g.agents(t)["demo"].Name; name != "Other" {
		t.Errorf("after the reload the agent is %q", name)
	}
	g.edit(t, fmt.Sprintf(`{"agents":{"another":{"url":%q}}}`, other.url), reloaded)
	release()
	a := <-answer
	if !strings.Contains(string(a.Result), "let go") || strings.Contains(string(a.Result), `"isError":true`) {
		t.Errorf("the call ended with %s %+v", a.Result, a.Error)
	}
}

// A call that waits for its agent's first card finishes, too.
func TestReloadLeavesCallsThatWaitForACard(t *testing.T) {
	t.Parallel()
	agent := fixtures.New(fixtures.Options{})
	asked, show := make(chan struct{}, 10), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			asked <- struct{}{}
			select {
			case <-show:
			case <-r.Context().Done():
			}
		}
		agent.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { agent.Close(); s.Close() })
	file := `{"agents":{"demo":{"url":%q}}%s}`
	g := newGate(t, fmt.Sprintf(file, s.URL, ""))
	<-asked
	answer := make(chan answered, 1)
	go func() {
		a, err := g.ask(context.Background(), "tools/call", "a2a_send_message", `"name":"a2a_send_message","arguments":{"text":"echo hi"}`, "")
		if err != nil {
			t.Error(err)
		}
		answer <- a
	}()
	// The call is on its way when another one has been answered after it.
	g.call(t, "a2a_discover", "{}")
	g.edit(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,"timeoutSeconds":9}}}`, s.URL), reloaded)
	close(show)
	if a := <-answer; !strings.Contains(string(a.Result), `"text":"hi"`) {
		t.Errorf("the call ended with %s %+v", a.Result, a.Error)
	}
}

// An MCP task goes on over reloads of its agent.
func TestReloadLeavesTasksRunning(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	began, release := agent.hold()
	file := func(header string) string {
		return fmt.Sprintf(`{"agents":{"demo":{"url":%q,"tasks":"required","headers":{"X-Team":%q}}}}`, agent.url, header)
	}
	g := newGate(t, file("a"))
	g.ready(t)
	task := g.callWith(t, "a2a_send_message", `{"text":"hold"}`, tasksCapability).TaskID
	if task == "" {
		t.Fatal("the call became no task")
	}
	<-began
	status := func() string {
		a, err := g.ask(t.Context(), "tasks/get", task, fmt.Sprintf(`"taskId":%q`, task), tasksCapability)
		if err != nil || a.Error != nil {
			t.Fatalf("tasks/get: %v %+v", err, a.Error)
		}
		var d struct {
			Status string `json:"status"`
			Result toolResult
		}
		if err := json.Unmarshal(a.Result, &d); err != nil {
			t.Fatal(err)
		}
		return d.Status + " " + d.Result.text()
	}
	for _, header := range []string{"b", "c"} {
		g.edit(t, file(header), reloaded)
		if got := status(); !strings.HasPrefix(got, "working") {
			t.Fatalf("after a reload the task is %q", got)
		}
		// It is followed through the new client.
		until(t, "the agent is asked with the new header", func() bool {
			return slices.ContainsFunc(agent.Requests(), func(q fixtures.Request) bool {
				return (q.RPCMethod == "GetTask" || q.RPCMethod == "SubscribeToTask") && q.Header.Get("X-Team") == header
			})
		})
	}
	g.edit(t, fmt.Sprintf(`{"agents":{"another":{"url":%q}}}`, agent.url), reloaded)
	if got := status(); !strings.HasPrefix(got, "working") {
		t.Fatalf("without its agent the task is %q", got)
	}
	release()
	until(t, "the task ends", func() bool { return !strings.HasPrefix(status(), "working") })
	if got := status(); !strings.HasPrefix(got, "completed") || !strings.Contains(got, "let go") {
		t.Errorf("the task ended as %q", got)
	}
}

// A broken file changes nothing and says where it is broken.
func TestReloadOfABrokenFile(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	good := fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, agent.url)
	g := newGate(t, good)
	g.ready(t)
	const kept = `msg="configuration not reloaded, the last good one stays in force"`
	g.edit(t, "{\n  \"agents\": {\"demo\": {\"ur\": 7}},\n  \"port\": \"x\"\n}", kept)
	g.logged(t, `agents.json:2:23: agents.demo.ur: `, 1)
	g.logged(t, `agents.json:3:11: port: `, 1)
	if state := g.agents(t)["demo"].State; state != "ready" {
		t.Errorf("with a broken file the agent is %s", state)
	}
	if n := len(agent.Requests()); n != 1 {
		t.Errorf("the agent was asked %d times", n)
	}
	page := g.get(t, "/api/status")
	if !strings.Contains(page, "The configuration file is not in force, the last good one is: ") || !strings.Contains(page, "agents.json:2:23: agents.demo.ur") {
		t.Errorf("the status does not tell: %s", page)
	}
	// A token file that is missing is what the file waits for.
	g.edit(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,"auth":{"type":"bearer","token":"${file:token}"}}}}`, agent.url), kept)
	write(t, filepath.Join(g.dir, "token"), "s3cr3t\n")
	g.logged(t, reloaded, 1)
	if page := g.get(t, "/api/status"); strings.Contains(page, "not in force") {
		t.Errorf("the status still tells of a problem: %s", page)
	}
	// A file that is gone for a while.
	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	g.logged(t, kept+` problem="the file \\"[^"]*agents.json\\" does not exist`, 1)
	g.says(t, "a2a_discover", "{}", "demo")
	g.edit(t, good, reloaded)
	if strings.Contains(g.log.String(), "s3cr3t") {
		t.Error("the token is in the log")
	}
}

// get reads a page of the gateway.
func (g *gate) get(t *testing.T, path string) string {
	t.Helper()
	resp, err := g.client.Get(strings.TrimSuffix(g.url, "/mcp") + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// Tokens in files and certificates are part of the configuration: by content.
func TestReloadOfWhatTheFileNames(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{BearerToken: "right-token"})
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	write(t, token, "wrong-token")
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,"auth":{"type":"bearer","token":"${file:%s}"}}}}`, agent.url, token))
	g.ready(t)
	if r := g.call(t, "a2a_send_message", `{"text":"echo hi"}`); !r.IsError {
		t.Fatalf("the wrong token is taken: %s", r.text())
	}
	write(t, token+".new", "right-token")
	rename(t, token+".new", token)
	g.logged(t, `changed=\[demo\]`, 1)
	if r := g.call(t, "a2a_send_message", `{"text":"echo hi"}`); r.IsError {
		t.Errorf("the new token is not used: %s", r.text())
	}
}

// Certificates are compared by content, secrets by value.
func TestRecipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"cert", "key", "ca"} {
		write(t, filepath.Join(dir, name), "1")
	}
	read := func(text string) (config.Agent, *config.Config) {
		cfg, err := config.Parse(filepath.Join(dir, "agents.json"), []byte(text), nil, os.ReadFile)
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Agents[0], cfg
	}
	const file = `{"agents":{"a":{"url":"https://x","auth":{"type":"mtls","certFile":"cert","keyFile":"key","caFile":"ca"}}}}`
	before := recipeOf(read(file))
	if !before.equal(recipeOf(read(file))) {
		t.Error("the same configuration differs")
	}
	for _, name := range []string{"cert", "key", "ca"} {
		write(t, filepath.Join(dir, name), "2")
		if now := recipeOf(read(file)); before.equal(now) {
			t.Errorf("another content of %s is no difference", name)
		}
		write(t, filepath.Join(dir, name), "1")
	}
	for name, other := range map[string]string{
		"token":  `{"agents":{"a":{"url":"https://x","auth":{"type":"bearer","token":"two"}}}}`,
		"limits": `{"limits":{"replyBytes":70000},"agents":{"a":{"url":"https://x","auth":{"type":"bearer","token":"one"}}}}`,
		"header": `{"agents":{"a":{"url":"https://x","auth":{"type":"bearer","token":"one"},"headers":{"X-A":"b"}}}}`,
	} {
		const one = `{"agents":{"a":{"url":"https://x","auth":{"type":"bearer","token":"one"}}}}`
		if recipeOf(read(one)).equal(recipeOf(read(other))) {
			t.Errorf("another %s is no difference", name)
		}
		if !recipeOf(read(other)).equal(recipeOf(read(other))) {
			t.Errorf("the same %s is a difference", name)
		}
	}
}

// Listeners hear of each real change once, and of nothing else.
func TestListChangedOncePerRealChange(t *testing.T) {
	t.Parallel()
	one, two := newAgentServer(t, fixtures.Options{}), newAgentServer(t, fixtures.Options{Name: "Second"})
	g := newGate(t, fmt.Sprintf(`{"agents":{"one":{"url":%q}}}`, one.url))
	g.ready(t)
	l := g.listen(t)
	const tools, prompts, resources = "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"
	await := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			got = append(got, l.next(t))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("heard %q, want %q", got, want)
		}
	}
	both := func(more string) string {
		return fmt.Sprintf(`{"agents":{"one":{"url":%q},"two":{"url":%q%s}}}`, one.url, two.url, more)
	}
	g.edit(t, both(""), reloaded) // an agent more
	await(tools, prompts, resources)
	g.edit(t, both(`,"timeoutSeconds":9`), reloaded)       // nothing that shows
	g.edit(t, both(`,"headers":{"X-Team":"a"}`), reloaded) // a client more, the same card
	g.edit(t, both(``), reloaded)                          //
	g.edit(t, both(`,"expose":["agents"]`), reloaded)      // a tool more
	await(tools)
	g.edit(t, both(`,"expose":["agents"],"timeoutSeconds":8`), reloaded) // the tool's agent is replaced, the tool is not
	two.UpdateSkills(func(list []fixtures.Skill) []fixtures.Skill {      // a changed card
		return append(list, fixtures.Skill{ID: "fresh", Name: "Fresh", Description: "Is new.", Tags: []string{"x"}})
	})
	g.call(t, "a2a_send_message", `{"agent":"two","text":"echo hi"}`) // after which the card is looked at again
	await(tools, prompts)
	g.edit(t, fmt.Sprintf(`{"agents":{"one":{"url":%q}}}`, one.url), reloaded) // an agent less
	await(tools, prompts, resources)
	if code := g.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if rest := l.rest(); len(rest) != 0 {
		t.Errorf("heard of more: %v", rest)
	}
}

// Profiles, exposure, prefixes, tokens, limits and times follow the file.
func TestReloadOfWhatCallersSee(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	file := func(more string) string {
		return fmt.Sprintf(`{"agents":{"one":{"url":%q},"two":{"url":%q}},"auth":{"tokens":[{"name":"ann","token":"ann-token"}%s}`, agent.url, agent.url, more)
	}
	g := newGate(t, file(`]}`))
	g.token = "ann-token"
	g.ready(t)
	reads := func(path, token string) int {
		t.Helper()
		g.token = token
		resp, err := g.post(t.Context(), path, "tools/list", "", "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if got := [2]int{reads("/mcp/p/first", "ann-token"), reads("/mcp", "bob-token")}; got != [2]int{404, 401} && got != [2]int{400, 401} {
		t.Errorf("before: %v", got)
	}
	g.edit(t, file(`,{"name":"bob","token":"bob-token","agents":["two"]}]},"profiles":{"first":{"agents":["one"]}},
		"expose":["generic","skills"],"toolPrefix":"do_","limits":{"resultChars":1000},"wait":{"without":"1s"}`), reloaded)
	if got := [2]int{reads("/mcp/p/first", "ann-token"), reads("/mcp", "bob-token")}; got != [2]int{200, 200} {
		t.Errorf("after: %v", got)
	}
	g.token = "bob-token"
	if agents := g.agents(t); len(agents) != 1 || agents["two"].Alias == "" {
		t.Errorf("the new token sees %v", agents)
	}
	g.token = "ann-token"
	until(t, "skills are tools", func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(g.tools(t, "/mcp"))), func(name string) bool { return strings.HasPrefix(name, "do_") })
	})
	if r := g.call(t, "a2a_send_message", `{"agent":"one","text":"kb 8"}`); len(r.text()) > 3000 {
		t.Errorf("a result has %d characters", len(r.text()))
	}
	_, release := agent.hold()
	defer release()
	if r := g.call(t, "a2a_send_message", `{"agent":"one","text":"hold"}`); r.envelope().Status != "working" {
		t.Errorf("after the new wait: %s", r.text())
	}
	g.edit(t, strings.Replace(file(`]}`), "ann", "eve", 2), reloaded)
	if got := [2]int{reads("/mcp", "ann-token"), reads("/mcp", "eve-token")}; got != [2]int{401, 200} {
		t.Errorf("a token that was taken out: %v", got)
	}
}

// What needs a restart is named, and stays as it was.
func TestReloadNamesWhatWaits(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	file := func(more string) string { return fmt.Sprintf(`{"agents":{"demo":{"url":%q}}%s}`, agent.url, more) }
	g := newGate(t, file(""))
	g.ready(t)
	g.edit(t, file(`,"store":{"type":"file","path":"handles.db"},"handleTtl":"1h","toolPrefix":"x_","log":{"level":"warn"}`), "take effect after a restart")
	g.logged(t, `changed" settings="\[handleTtl store\]"`, 1)
	if page := g.get(t, "/api/status"); !strings.Contains(page, "take effect after a restart: handleTtl, store") {
		t.Errorf("the status does not tell: %s", page)
	}
	// The log's level is warn now: what comes next is not told.
	before := g.log.String()
	write(t, g.file, file(`,"log":{"level":"info"}`))
	g.logged(t, reloaded, 1)
	if strings.Count(before, reloaded) > 1 {
		t.Errorf("logged:\n%s", before)
	}
	if page := g.get(t, "/api/status"); strings.Contains(page, "after a restart") {
		t.Errorf("the status still waits: %s", page)
	}
}
