package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"a2agate/a2a"
	"a2agate/fixtures"
)

// words are what a caller reads of an answer, with what differs from run to
// run taken out.
func (g *gate) words(answer string) string {
	for _, pair := range [][2]string{
		{`tk_[a-z0-9]{26}`, "tk_HANDLE"}, {`cx_[a-z0-9]{26}`, "cx_HANDLE"}, {`127\.0\.0\.1:[0-9]+`, "AGENT"},
		{`within [0-9.]+m?s`, "within TIME"}, {`since [0-9TZ:.-]+ \([^)]*\)`, "since TIME"},
		{`request [a-z0-9-]+`, "request ID"}, {`task-[a-z0-9]+-[0-9]+`, "TASK"},
	} {
		answer = regexp.MustCompile(pair[0]).ReplaceAllString(answer, pair[1])
	}
	return strings.TrimSpace(answer) + "\n"
}

// outcome calls a tool and puts what comes of it in words.
func (g *gate) outcome(t *testing.T, tool, arguments string) string {
	t.Helper()
	a, err := g.ask(t.Context(), "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments), "")
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	if a.Error != nil {
		return g.words(fmt.Sprintf("HTTP %d, JSON-RPC error %d: %s", a.Status, a.Error.Code, a.Error.Message))
	}
	var r toolResult
	if err := json.Unmarshal(a.Result, &r); err != nil {
		t.Fatal(err)
	}
	kind := "result"
	if r.IsError {
		kind = "isError"
	}
	return g.words(kind + ": " + r.text())
}

// raw posts a body as it is, with the headers of a call.
func (g *gate) raw(t *testing.T, contentType, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", "a2a_send_message")
	resp, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return g.words(resp.Status + "\n" + string(text))
}

// Whatever comes in, from callers or from agents, the answer says what is
// wrong and what to do, in these words; and the gateway lives on.
func TestBadInput(t *testing.T) {
	t.Parallel()
	golden := openGolden(t, "testdata/badinput.txtar")
	stream, unary := newAgentServer(t, fixtures.Options{}), newAgentServer(t, fixtures.Options{Unary: true})
	grpc := answering(cardWith(`{"url":"grpc.example.com:443","protocolBinding":"GRPC","protocolVersion":"1.0"}`), "", "", 200)(t)
	noCard := answering(`{"description":"x"}`, "", "", 200)(t)
	login := served(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>Please log in</html>")
	})(t)
	plain := answering(plainCard, "text/plain", "hello, this is no JSON", 200)(t)
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q},"unary":{"url":%q},"dead":{"url":%q},"grpc":{"url":%q},"broken":{"url":%q},"login":{"url":%q},"plain":{"url":%q}}}`,
		stream.url, unary.url, deadPort(t), grpc, noCard, login, plain))
	g.ready(t)

	send := func(agent, text string) string {
		return g.outcome(t, "a2a_send_message", fmt.Sprintf(`{"agent":%q,"text":%q}`, agent, text))
	}
	done := g.call(t, "a2a_send_message", `{"agent":"demo","text":"task x"}`).envelope()
	if done.Task == "" || done.Context == "" {
		t.Fatalf("no handles: %+v", done)
	}
	var names []string
	is := func(name, got string) {
		t.Helper()
		names = append(names, name)
		golden.check(t, name, got)
	}

	is("agent down at start", send("dead", "echo hi"))
	is("agent that shows a login page", send("login", "echo hi"))
	is("agent with a card that is none", send("broken", "echo hi"))
	is("agent without a usable interface", send("grpc", "echo hi"))
	is("agent answers HTML", send("unary", "html"))
	is("agent answers HTML to a stream call", send("demo", "html"))
	is("agent answers another type", send("plain", "echo hi"))
	is("agent answers broken JSON", send("unary", "badjson"))
	is("agent answers truncated JSON", send("unary", "cutjson"))
	is("agent cuts the stream", send("demo", "cutstream 0"))
	is("agent ends the stream in mid-event", send("demo", "halfevent 0"))
	is("agent breaks the connection", send("demo", "failbefore"))
	is("agent answers another request", send("unary", "wrongid"))
	is("agent answers with an error", send("demo", "error -32005"))

	stream.Down(true)
	is("agent down later", send("demo", "echo hi"))
	is("agent still down", send("demo", "echo hi"))
	stream.Down(false)
	until(t, "the agent is back", func() bool { return strings.Contains(send("demo", "echo hi"), "result: hi") })

	is("wrong content type", g.raw(t, "text/plain", `{}`))
	is("body of 5 MB", g.raw(t, "application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a2a_send_message","arguments":{"text":"`+strings.Repeat("x", 5<<20)+`"},`+meta("")+`}}`))
	is("deep nesting", g.raw(t, "application/json", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a2a_send_message","arguments":{"data":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`},`+meta("")+`}}`))
	is("malformed JSON", g.raw(t, "application/json", `{"jsonrpc":"2.0","id":1,`))
	is("not JSON", g.raw(t, "application/json", `hello`))
	is("repeated key", g.raw(t, "application/json", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`))
	is("no id that can be", g.raw(t, "application/json", `{"jsonrpc":"2.0","id":null,"method":"tools/call"}`))

	is("unknown tool", g.outcome(t, "a2a_sned_message", `{}`))
	is("missing argument", g.outcome(t, "a2a_get_task", `{}`))
	is("nothing to send", g.outcome(t, "a2a_send_message", `{"agent":"demo"}`))
	is("wrong type of argument", g.outcome(t, "a2a_send_message", `{"agent":"demo","text":7}`))
	is("unknown argument", g.outcome(t, "a2a_send_message", `{"agent":"demo","text":"x","txt":"y"}`))
	is("argument out of range", g.outcome(t, "a2a_send_message", `{"agent":"demo","text":"x","timeoutSeconds":301}`))
	is("arguments are no object", g.outcome(t, "a2a_send_message", `[]`))
	is("no agent named", g.outcome(t, "a2a_send_message", `{"text":"x"}`))
	is("unknown alias", g.outcome(t, "a2a_send_message", `{"agent":"dmo","text":"x"}`))
	is("unknown alias in discover", g.outcome(t, "a2a_discover", `{"agent":"unari"}`))

	is("unknown handle", g.outcome(t, "a2a_get_task", `{"taskHandle":"tk_aaaaaaaaaaaaaaaaaaaaaaaaaa"}`))
	is("no handle at all", g.outcome(t, "a2a_get_task", `{"taskHandle":"17"}`))
	is("context in place of a task", g.outcome(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, done.Context)))
	is("handle of another agent", g.outcome(t, "a2a_send_message", fmt.Sprintf(`{"agent":"unary","text":"x","contextHandle":%q}`, done.Context)))
	is("task of another agent", g.outcome(t, "a2a_cancel_task", fmt.Sprintf(`{"agent":"unary","taskHandle":%q}`, done.Task)))
	is("message to an ended task", g.outcome(t, "a2a_send_message", fmt.Sprintf(`{"text":"echo x","taskHandle":%q}`, done.Task)))

	short := newGate(t, fmt.Sprintf(`{"handleTtlMs":1,"agents":{"demo":{"url":%q}}}`, stream.url))
	gone := short.call(t, "a2a_send_message", `{"text":"task x"}`).envelope()
	until(t, "the handle expires", func() bool {
		return !strings.HasPrefix(short.outcome(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, gone.Task)), "result")
	})
	is("expired handle", short.outcome(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, gone.Task)))

	golden.close(t)
	if slices.Sort(names); len(slices.Compact(names)) != len(golden.asked) {
		t.Error("two cases have one name")
	}
	// It lives on, and nothing was executed twice.
	if got := send("demo", "echo still here"); !strings.HasPrefix(got, "result: still here\n") {
		t.Errorf("afterwards: %s", got)
	}
	for _, a := range []agentServer{stream, unary} {
		for id, n := range a.AllExecutions() {
			if n != 1 {
				t.Errorf("message %s was executed %d times", id, n)
			}
		}
	}
}

// What is somebody else's is unknown, in the same words.
func TestForeignHandle(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"auth":{"tokens":[{"name":"ann","token":"ann-token"},{"name":"bob","token":"bob-token"}]}}`, agent.url))
	g.token = "ann-token"
	done := g.call(t, "a2a_send_message", `{"text":"task x"}`).envelope()
	own := g.outcome(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, done.Task))
	g.token = "bob-token"
	foreign := g.outcome(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, done.Task))
	unknown := g.outcome(t, "a2a_get_task", `{"taskHandle":"tk_aaaaaaaaaaaaaaaaaaaaaaaaaa"}`)
	if !strings.HasPrefix(own, "result") || foreign != unknown || strings.HasPrefix(foreign, "result") {
		t.Errorf("own: %sforeign: %sunknown: %s", own, foreign, unknown)
	}
}

// Agents of both versions and bindings are told apart by their cards alone.
func TestEveryWireThroughTheGateway(t *testing.T) {
	t.Parallel()
	var entries []string
	for i, v := range []a2a.Version{a2a.V10, a2a.V03} {
		for j, b := range []a2a.Binding{a2a.JSONRPC, a2a.REST} {
			agent := newAgentServer(t, fixtures.Options{Versions: []a2a.Version{v}, Bindings: []a2a.Binding{b}})
			entries = append(entries, fmt.Sprintf(`"w%d%d":{"url":%q}`, i, j, agent.url))
		}
	}
	g := newGate(t, `{"agents":{`+strings.Join(entries, ",")+`}}`)
	for _, alias := range []string{"w00", "w01", "w10", "w11"} {
		if r := g.call(t, "a2a_send_message", fmt.Sprintf(`{"agent":%q,"text":"task hello"}`, alias)); r.IsError || !strings.Contains(r.text(), "olleh") {
			t.Errorf("%s: %s", alias, r.text())
		}
	}
}
