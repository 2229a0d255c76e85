package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"a2agate/fixtures"
)

// The file of the tests below: two agents, five tokens. Nothing of what
// belongs to ann may be reached by anybody else, and who may see billing only
// may not learn that there is an agent legal.
func authConfig(billing, legal string) string {
	return fmt.Sprintf(`{
  "agents": {"billing": {"url": %q}, "legal": {"url": %q}},
  "expose": ["generic", "agents", "skills"],
  "profiles": {"team": {"agents": ["legal"]}, "both": {"agents": ["billing", "legal"]}},
  "auth": {"tokens": [
    {"name": "ann", "token": "ann-token"},
    {"name": "bob", "token": "bob-token"},
    {"name": "carl", "token": "carl-token", "agents": ["billing"]},
    {"name": "dora", "token": "dora-token", "profile": "team"}
  ]}
}`, billing, legal)
}

// authWorld is a gateway with the two agents.
type authWorld struct {
	*gate
	billing, legal agentServer
}

func newAuthWorld(t *testing.T) *authWorld {
	t.Helper()
	w := &authWorld{
		billing: newAgentServer(t, fixtures.Options{Name: "Billing desk", IDPrefix: "b"}),
		legal:   newAgentServer(t, fixtures.Options{Name: "Legal counsel", IDPrefix: "l"}),
	}
	w.gate = newGate(t, authConfig(w.billing.url, w.legal.url))
	w.token = "ann-token"
	w.ready(t)
	return w
}

// attempt is one request that somebody makes.
type attempt struct {
	// path is "/mcp" where it is "".
	path string
	// legacy is the protocol version of an old client, "" for the current wire.
	legacy, session string
	method, name    string
	params          string // the inside of the object
	capabilities    string
	// notification leaves the id out.
	notification bool
}

func (a attempt) String() string {
	return fmt.Sprintf("%s %s %s{%s}", a.path, a.method, a.legacy, a.params)
}

// with puts an identifier in the place of ID.
func (a attempt) with(id string) attempt {
	for _, field := range []*string{&a.path, &a.session, &a.name, &a.params} {
		*field = strings.ReplaceAll(*field, "ID", id)
	}
	return a
}

// make makes the request as the holder of a token and returns status and body.
// A stream that the gateway would keep open is read to its first event.
func (w *authWorld) make(t *testing.T, token string, a attempt) (int, string) {
	t.Helper()
	params := a.params
	if a.legacy == "" {
		if params != "" {
			params += ","
		}
		params += meta(a.capabilities)
	}
	id := `"id":1,`
	if a.notification {
		id = ""
	}
	path := a.path
	if path == "" {
		path = "/mcp"
	}
	ctx, cancel := context.WithTimeout(t.Context(), forever)
	defer cancel()
	body := fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":{%s}}`, id, a.method, params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(w.url, "/mcp")+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if a.legacy == "" {
		req.Header.Set("MCP-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", a.method)
		if a.name != "" {
			req.Header.Set("Mcp-Name", a.name)
		}
	} else {
		req.Header.Set("MCP-Protocol-Version", a.legacy)
		if a.session != "" {
			req.Header.Set("Mcp-Session-Id", a.session)
		}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	defer resp.Body.Close()
	if a.method == "subscriptions/listen" && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		first := make([]byte, 64<<10)
		n, err := resp.Body.Read(first)
		if err != nil && err != io.EOF {
			t.Fatalf("%v: %v", a, err)
		}
		return resp.StatusCode, string(first[:n])
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw = lastEvent(raw)
	}
	return resp.StatusCode, string(raw)
}

// secrets of ann, each of the kind by which attempts name it.
type belongings struct {
	context, running, done, artifact, mcpTask, state string
}

// tool makes the attempt of a tool call.
func tool(name, arguments, more string) attempt {
	return attempt{method: "tools/call", name: name, params: fmt.Sprintf(`"name":%q,"arguments":%s%s`, name, arguments, more)}
}

// asksForm is a client that takes forms.
const asksForm = `"elicitation":{"form":{}}`

// own makes everything that ann can own.
func (w *authWorld) own(t *testing.T) (b belongings, began <-chan struct{}, release func()) {
	t.Helper()
	began, release = w.billing.hold()
	running := w.call(t, "a2a_send_message", `{"agent":"billing","text":"hold","blocking":false}`).envelope()
	<-began
	done := w.call(t, "a2a_send_message", `{"agent":"billing","text":"text the secret of ann"}`)
	b = belongings{context: running.Context, running: running.Task, done: done.envelope().Task}
	var artifacts struct {
		Artifacts []struct{ ArtifactID string } `json:"artifacts"`
	}
	if err := json.Unmarshal(done.Structured, &artifacts); err != nil || len(artifacts.Artifacts) == 0 {
		t.Fatalf("no artifact: %s", done.Structured)
	}
	b.artifact = artifacts.Artifacts[0].ArtifactID
	b.mcpTask = w.callWith(t, "a2a_send_message", `{"agent":"billing","text":"slow 3600"}`, tasksCapability).TaskID
	asked, err := w.ask(t.Context(), "tools/call", "a2a_send_message", question, asksForm)
	if err != nil {
		t.Fatal(err)
	}
	var required struct {
		RequestState string `json:"requestState"`
	}
	if err := json.Unmarshal(asked.Result, &required); err != nil {
		t.Fatal(err)
	}
	b.state = required.RequestState
	for name, v := range map[string]string{"context": b.context, "running": b.running, "done": b.done, "task": b.mcpTask, "state": b.state} {
		if v == "" {
			t.Fatalf("ann has no %s", name)
		}
	}
	return b, began, release
}

// question is a call that the agent answers with a question.
const question = `"name":"a2a_send_message","arguments":{"agent":"billing","text":"ask the colour"}`

// attacks are all ways to name something of somebody else, ID in its place.
func attacks(b belongings) map[string][]attempt {
	listen := func(filter string) attempt {
		return attempt{method: "subscriptions/listen", params: `"notifications":` + filter, capabilities: tasksCapability}
	}
	task := func(method, more string) attempt {
		return attempt{method: method, name: "ID", params: `"taskId":"ID"` + more, capabilities: tasksCapability}
	}
	legacy := func(a attempt) attempt { a.legacy = "2025-11-25"; return a }
	resource := attempt{method: "resources/read", name: "a2a://tasks/ID/artifacts/" + b.artifact, params: `"uri":"a2a://tasks/ID/artifacts/` + b.artifact + `"`}
	onTask := []attempt{
		tool("a2a_get_task", `{"taskHandle":"ID"}`, ""),
		tool("a2a_get_task", `{"taskHandle":"ID","waitSeconds":1}`, ""),
		tool("a2a_get_task", `{"taskHandle":"ID","historyLength":5}`, ""),
		tool("a2a_get_task", `{"agent":"billing","taskHandle":"ID"}`, ""),
		tool("a2a_get_task", `{"taskHandle":"ID","artifactId":"`+b.artifact+`","offset":0}`, ""),
		tool("a2a_cancel_task", `{"taskHandle":"ID"}`, ""),
		tool("a2a_cancel_task", `{"agent":"billing","taskHandle":"ID"}`, ""),
		tool("a2a_send_message", `{"taskHandle":"ID","text":"echo stolen"}`, ""),
		tool("a2a_send_message", `{"agent":"billing","taskHandle":"ID","text":"echo stolen","blocking":false}`, ""),
		task("tasks/get", ""), task("tasks/cancel", ""), task("tasks/update", `,"inputResponses":{"answer":{"action":"accept","content":{"answer":"red"}}}`),
		listen(`{"taskIds":["ID"]}`), listen(`{"taskIds":["ID","ID"],"toolsListChanged":true}`),
		listen(`{"resourceSubscriptions":["a2a://tasks/ID/artifacts/` + b.artifact + `"]}`),
		resource, legacy(resource),
		{method: "completion/complete", params: `"ref":{"type":"ref/resource","uri":"a2a://tasks/{taskHandle}/artifacts/{artifactId}"},"argument":{"name":"taskHandle","value":"ID"}`},
		{method: "completion/complete", params: `"ref":{"type":"ref/resource","uri":"a2a://tasks/{taskHandle}/artifacts/{artifactId}"},"argument":{"name":"artifactId","value":""},"context":{"arguments":{"taskHandle":"ID"}}`},
		legacy(tool("a2a_get_task", `{"taskHandle":"ID"}`, "")),
		legacy(tool("a2a_cancel_task", `{"taskHandle":"ID"}`, "")),
		legacy(tool("a2a_send_message", `{"taskHandle":"ID","text":"echo stolen"}`, "")),
	}
	answers := `,"inputResponses":{"answer":{"action":"accept","content":{"answer":"red"}}},"requestState":"ID"`
	return map[string][]attempt{
		"tk_": onTask,
		"cx_": {
			tool("a2a_send_message", `{"contextHandle":"ID","text":"echo stolen"}`, ""),
			tool("a2a_send_message", `{"agent":"billing","contextHandle":"ID","text":"echo stolen","blocking":false}`, ""),
			tool("a2a_get_task", `{"taskHandle":"ID"}`, ""),
			legacy(tool("a2a_send_message", `{"contextHandle":"ID","text":"echo stolen"}`, "")),
		},
		"rs_": {
			{method: "tools/call", name: "a2a_send_message", params: question + answers, capabilities: asksForm},
			{method: "tools/call", name: "a2a_send_message", params: question + `,"inputResponses":{},"requestState":"ID"`, capabilities: asksForm},
			{method: "tools/call", name: "billing", params: `"name":"billing","arguments":{"message":"ask the colour"}` + answers, capabilities: asksForm},
			tool("a2a_get_task", `{"taskHandle":"ID"}`, ""),
			task("tasks/get", ""), task("tasks/update", `,"inputResponses":{"answer":{"action":"accept","content":{"answer":"red"}}}`),
		},
	}
}

// madeUp is an identifier of a kind that was never given out.
func madeUp(r *rand.Rand, kind string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	b := []byte(kind)
	for range 26 {
		b = append(b, letters[r.IntN(len(letters))])
	}
	return string(b)
}

// requestIDs differ with every request.
var requestIDs = regexp.MustCompile(`"requestId":"[^"]*"`)

// anonymous is an answer without the identifier that was asked for.
func anonymous(answer, id string) string {
	return requestIDs.ReplaceAllString(strings.ReplaceAll(answer, id, "ID"), `"requestId":"R"`)
}

// TestSecondPrincipalReachesNothing: over all methods, on both wires, what
// belongs to ann answers everybody else exactly as what does not exist; no
// attempt reaches the agent, and ann finds all as she left it.
func TestSecondPrincipalReachesNothing(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	b, _, release := w.own(t)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	type step struct {
		token, kind, id string
		attempt         attempt
	}
	var steps []step
	owned := map[string][]string{"tk_": {b.running, b.done, b.mcpTask}, "cx_": {b.context}, "rs_": {b.state}}
	for kind, list := range attacks(b) {
		for _, a := range list {
			for _, id := range owned[kind] {
				for _, token := range []string{"bob-token", "carl-token", "dora-token"} {
					steps = append(steps, step{token, kind, id, a})
				}
			}
		}
	}
	r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	if len(steps) < 150 {
		t.Fatalf("only %d attempts", len(steps))
	}
	before := len(w.billing.AllExecutions())
	for _, s := range steps {
		unknown := madeUp(r, s.kind)
		wantStatus, want := w.make(t, s.token, s.attempt.with(unknown))
		status, got := w.make(t, s.token, s.attempt.with(s.id))
		if status != wantStatus || anonymous(got, s.id) != anonymous(want, unknown) {
			t.Errorf("%s: %v\nann's:   %d %s\nunknown: %d %s", s.token, s.attempt, status, got, wantStatus, want)
		}
		if strings.Contains(got, "secret of ann") {
			t.Errorf("%s: %v shows what is ann's: %s", s.token, s.attempt, got)
		}
	}
	if n := len(w.billing.AllExecutions()); n != before {
		t.Errorf("the agent got %d messages", n-before)
	}
	if len(w.billing.Calls("CancelTask")) != 0 {
		t.Error("the agent was asked to cancel")
	}

	// Ann finds everything as she left it.
	for _, id := range []string{b.running, b.mcpTask} {
		if e := w.call(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, id)).envelope(); e.Status != "working" {
			t.Errorf("%s is %q", id, e.Status)
		}
	}
	if text := w.call(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, b.done)).text(); !strings.Contains(text, "secret of ann") {
		t.Errorf("the task that is done says %q", text)
	}
	_, answer := w.make(t, "ann-token", attempt{
		method: "tools/call", name: "a2a_send_message", capabilities: asksForm,
		params: question + `,"inputResponses":{"answer":{"action":"accept","content":{"answer":"red"}}},"requestState":"` + b.state + `"`,
	})
	if !strings.Contains(answer, "red") || strings.Contains(answer, `"error"`) {
		t.Errorf("ann cannot answer any more: %s", answer)
	}
	release()
	if e := w.call(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q,"waitSeconds":60}`, b.running)).envelope(); e.Status != "completed" {
		t.Errorf("the task that was held is %q", e.Status)
	}
}

// TestAgentToolsKeepContextsApart: the tool of an agent goes on with the
// caller's own last conversation, never with another's.
func TestAgentToolsKeepContextsApart(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	say := func(token string) string {
		w.token = token
		return w.call(t, "billing", `{"message":"context"}`).text()
	}
	ann, bob := say("ann-token"), say("bob-token")
	again := say("ann-token")
	id := func(text string) string {
		return regexp.MustCompile(`ctx-[a-z0-9-]+|context-[a-zA-Z0-9-]+`).FindString(text)
	}
	if id(ann) == "" || id(ann) != id(again) || id(ann) == id(bob) {
		t.Errorf("ann %q, bob %q, ann again %q", ann, bob, again)
	}
}

// TestNobodyWithoutToken: without a good token every path and method but the
// probes is 401, on every wire, and nothing is learned from it.
func TestNobodyWithoutToken(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	base := strings.TrimSuffix(w.url, "/mcp")
	for _, token := range []string{"", "wrong", "ann-toke", "ann-token2", "Ann-token"} {
		for _, a := range []attempt{
			{method: "tools/list"}, {method: "server/discover"}, {method: "no/such"}, {method: "tools/list", path: "/mcp/p/team"}, {method: "tools/list", path: "/mcp/p/nosuch"},
			tool("a2a_discover", "{}", ""), {legacy: "2025-11-25", method: "initialize", params: `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`},
			{legacy: "2025-03-26", method: "ping"}, {method: "subscriptions/listen", params: `"notifications":{}`},
			{method: "notifications/cancelled", legacy: "2025-11-25", notification: true},
		} {
			if status, body := w.make(t, token, a); status != http.StatusUnauthorized || strings.Contains(body, "billing") {
				t.Errorf("%q %v: %d %s", token, a, status, body)
			}
		}
		for _, path := range []string{"/metrics", "/api/status", "/"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", "text/html")
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			resp, err := w.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized || bytes.Contains(body, []byte("billing")) || resp.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%q GET %s: %d %v %s", token, path, resp.StatusCode, resp.Header, body)
			}
		}
	}
}

// TestSubsets: whoever may see some agents learns nothing of the others from
// any method; what is theirs works, and what is not is as if it did not exist.
func TestSubsets(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	for _, who := range []struct{ token, path, sees, hides string }{
		{"carl-token", "/mcp", "billing", "legal"},
		{"carl-token", "/mcp/p/both", "billing", "legal"},
		{"dora-token", "/mcp", "legal", "billing"},
		{"dora-token", "/mcp/p/team", "legal", "billing"},
		{"ann-token", "/mcp/p/team", "legal", "billing"},
	} {
		name := who.token + who.path
		for _, a := range []attempt{
			{method: "tools/list"}, {method: "prompts/list"}, {method: "resources/list"}, {method: "resources/templates/list"}, {method: "server/discover"},
			tool("a2a_discover", "{}", ""), tool("a2a_discover", `{"query":"counsel desk billing legal"}`, ""),
			tool("a2a_send_message", `{"agent":"HIDDEN","text":"echo hello"}`, ""),
			tool("a2a_discover", `{"agent":"HIDDEN"}`, ""),
			{method: "completion/complete", params: `"ref":{"type":"ref/resource","uri":"a2a://agents/{alias}/card"},"argument":{"name":"alias","value":""}`},
			{method: "tools/list", legacy: "2025-06-18"},
			{method: "initialize", legacy: "2025-11-25", params: `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`},
		} {
			a.path = who.path
			a.params = strings.ReplaceAll(a.params, "HIDDEN", "nosuch")
			status, got := w.make(t, who.token, a)
			if status != http.StatusOK || strings.Contains(strings.ToLower(got), who.hides) {
				t.Errorf("%s %v: %d shows %s: %s", name, a, status, who.hides, got)
			}
		}
		// What is hidden answers as what does not exist.
		for _, a := range []attempt{
			tool("a2a_send_message", `{"agent":"ID","text":"echo hello"}`, ""), tool("a2a_discover", `{"agent":"ID"}`, ""),
			tool("a2a_get_task", `{"agent":"ID","taskHandle":"tk_aaaaaaaaaaaaaaaaaaaaaaaaaa"}`, ""),
			tool("ID", `{"message":"hello"}`, ""), tool("ID_echo", `{"text":"hello"}`, ""),
			{method: "prompts/get", name: "ID_echo", params: `"name":"ID_echo","arguments":{"text":"x"}`},
			{method: "resources/read", name: "a2a://agents/ID/card", params: `"uri":"a2a://agents/ID/card"`},
			{method: "completion/complete", params: `"ref":{"type":"ref/prompt","name":"ID_echo"},"argument":{"name":"text","value":""}`},
		} {
			a.path = who.path
			other := "zz" + who.hides[2:] // of the same length and as near to nothing
			wantStatus, want := w.make(t, who.token, a.with(other))
			status, got := w.make(t, who.token, a.with(who.hides))
			if status != wantStatus || anonymous(got, who.hides) != anonymous(want, other) {
				t.Errorf("%s %v\nhidden:  %d %s\nunknown: %d %s", name, a, status, got, wantStatus, want)
			}
		}
		a := tool("a2a_send_message", fmt.Sprintf(`{"agent":%q,"text":"echo hello"}`, who.sees), "")
		a.path = who.path
		if _, got := w.make(t, who.token, a); !strings.Contains(got, "hello") || strings.Contains(got, `"isError":true`) {
			t.Errorf("%s cannot use %s: %s", name, who.sees, got)
		}
	}
	// A profile that the token is not held to does not exist for it.
	if status, _ := w.make(t, "dora-token", attempt{method: "tools/list", path: "/mcp/p/both"}); status != http.StatusNotFound {
		t.Errorf("dora at another profile: %d", status)
	}
	if n := w.legal.ExecutionsOf("echo hello") + w.billing.ExecutionsOf("echo hello"); n != 5 {
		t.Errorf("the agents got %d messages, want those of the five who may", n)
	}
}

// TestOwnHandleOutsideTheProfile: a handle does not open what the path hides.
func TestOwnHandleOutsideTheProfile(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	b, _, release := w.own(t)
	defer release()
	for kind, list := range attacks(b) {
		for _, a := range list {
			if a.capabilities == asksForm || a.method == "completion/complete" {
				continue // names no handle, or is about the tool
			}
			a.path = "/mcp/p/team"
			id := map[string]string{"tk_": b.done, "cx_": b.context, "rs_": b.state}[kind]
			unknown := madeUp(rand.New(rand.NewPCG(1, 2)), kind)
			wantStatus, want := w.make(t, "ann-token", a.with(unknown))
			status, got := w.make(t, "ann-token", a.with(id))
			if status != wantStatus || anonymous(got, id) != anonymous(want, unknown) {
				t.Errorf("%v\nown:     %d %s\nunknown: %d %s", a, status, got, wantStatus, want)
			}
		}
	}
}

// TestCallersTokenStaysHere: no request to an agent carries what a caller has
// shown to the gateway, in headers, path or body.
func TestCallersTokenStaysHere(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	w.call(t, "a2a_send_message", `{"agent":"billing","text":"echo hello"}`)
	w.call(t, "a2a_send_message", `{"agent":"billing","text":"meta"}`)
	w.call(t, "a2a_discover", `{"agent":"billing"}`)
	w.callWith(t, "billing", `{"message":"slow 3600"}`, tasksCapability)
	requests := w.billing.Requests()
	if !slices.ContainsFunc(requests, func(r fixtures.Request) bool { return strings.Contains(string(r.Body), "echo hello") }) {
		t.Fatal("the agent was not asked")
	}
	for _, r := range requests {
		if text := fmt.Sprint(r.Header, r.Path, string(r.Body)); strings.Contains(text, "ann") || r.Header.Get("Authorization") != "" {
			t.Errorf("the agent got %s", text)
		}
	}
	if log := w.log.String(); strings.Contains(log, "ann-token") {
		t.Errorf("the token is in the log:\n%s", log)
	}
}
