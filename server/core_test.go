package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/internal/schematest"
	"a2agate/tools"
	"a2agate/translate"
)

// An outcome that the wire cannot carry is an internal error, not an empty
// answer.
func TestOutcomeForTheWrongWire(t *testing.T) {
	for name, o := range map[string]translate.Outcome{
		"nothing":                {},
		"a task, undeclared":     {Task: &translate.TaskInfo{ID: "tk_1"}},
		"input required, legacy": {InputRequired: &translate.InputRequired{RequestState: "x"}},
	} {
		s := newServer(t, func(context.Context, tools.Call, tools.Sink) translate.Outcome { return o }, nil)
		r := modernPost(callWithToken(""))
		if strings.Contains(name, "legacy") {
			r = legacyPost(legacyCall(""), "2025-11-25")
		}
		if w := do(s, r); code(t, w) != -32603 {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
}

// The shapes of the other outcomes.
func TestOutcomes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		name, caps string
		outcome    translate.Outcome
		status     int
		want       string
	}{
		{"task", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`,
			translate.Outcome{Task: &translate.TaskInfo{ID: "tk_1", Status: translate.TaskWorking, Created: at, Updated: at, TTL: time.Hour, PollInterval: 2 * time.Second}},
			200, `"resultType":"task","taskId":"tk_1"`},
		{"input required", `{"elicitation":{}}`,
			translate.Outcome{InputRequired: &translate.InputRequired{RequestState: "rs_1", Asks: []translate.Ask{{Key: "answer", Message: "Which?", Schema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}}}`)}}}},
			200, `"resultType":"input_required"`},
		{"missing capability", `{}`,
			translate.Outcome{Err: missingTasks()}, 400, `"code":-32021`},
		{"unknown state", `{}`,
			translate.Outcome{Err: &translate.Error{Code: -32602, Message: "the request state is unknown"}}, 200, `"code":-32602`},
		{"a code of A2A", `{}`,
			translate.Outcome{Err: &translate.Error{Code: -32001, Message: "no such task"}}, 200, `"code":-32603,"message":"no such task"`},
		{"internal", `{}`,
			translate.Outcome{Err: &translate.Error{Code: -32603, Message: "lost"}}, 200, `"code":-32603`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, func(context.Context, tools.Call, tools.Sink) translate.Outcome { return tt.outcome }, nil)
			w := do(s, modernPost(modernBodyWith("1", "tools/call", callTool, metaOf(tt.caps, ""))))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if schematest.Available() {
				schematest.Message(t, "2026-07-28", "tools/call", w.Body.Bytes())
			}
		})
	}
}

// What the Caller is given of a request.
func TestCallIsFilled(t *testing.T) {
	var got tools.Call
	cats := newCatalogues(basicCatalogue())
	cats.scopes = map[tools.View]map[string]bool{{}: {"invoice_helper": true}}
	s := newServer(t, func(_ context.Context, c tools.Call, _ tools.Sink) translate.Outcome {
		got = c
		return says("x")
	}, func(o *Options) { o.Catalogues = cats })
	body := modernBodyWith("1", "tools/call", callTool+`,"inputResponses":{"a":{"action":"accept"}},"requestState":"rs_1"`,
		metaOf(`{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":null}}`, `,"progressToken":1,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"k=v"`))
	if w := do(s, modernPost(body)); w.Code != 200 {
		t.Fatalf("%s", w.Body)
	}
	if got.Principal != Local || !got.Agents["invoice_helper"] || got.Tool != "invoice_helper" || string(got.Arguments) != `{"message":"hi"}` ||
		got.Client != (tools.ClientCapabilities{ElicitForm: true, ElicitURL: true, Tasks: true}) || !got.Progress ||
		string(got.InputResponses) != `{"a":{"action":"accept"}}` || got.RequestState == nil || *got.RequestState != "rs_1" ||
		got.Trace.Parent != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" || got.Trace.State != "k=v" {
		t.Errorf("%+v", got)
	}
	do(s, modernPost(body, "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "Tracestate", "h=1"))
	if got.Trace.Parent != "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00" || got.Trace.State != "h=1" {
		t.Errorf("the header's trace: %+v", got.Trace)
	}
	do(s, legacyPost(legacyCall(`,"inputResponses":{},"requestState":5`), "2025-11-25"))
	if got.InputResponses != nil || got.RequestState != nil || got.Client != (tools.ClientCapabilities{MidCallOnly: true}) {
		t.Errorf("a legacy call has no MRTR: %+v", got)
	}
}

func TestClientCapabilities(t *testing.T) {
	type caps = tools.ClientCapabilities
	for raw, want := range map[string]caps{
		`{}`:                                   {},
		`{"elicitation":{}}`:                   {ElicitForm: true},
		`{"elicitation":{"form":{}}}`:          {ElicitForm: true},
		`{"elicitation":{"url":{}}}`:           {ElicitURL: true},
		`{"elicitation":{"form":{},"url":{}}}`: {ElicitForm: true, ElicitURL: true},
		`{"elicitation":null}`:                 {},
		`{"elicitation":true}`:                 {},
		`{"extensions":{}}`:                    {},
		`{"tasks":{}}`:                         {},
		`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`:           {Tasks: true},
		`{"roots":{},"extensions":{"other/ext":{}},"sampling":{"x":1}}`: {},
	} {
		if got := modernClient(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %+v, want %+v", raw, got, want)
		}
	}
	both := json.RawMessage(`{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
	for rev, want := range map[translate.Revision]caps{
		translate.Rev20250326: {}, translate.Rev20250618: {ElicitForm: true}, translate.Rev20251125: {ElicitForm: true, ElicitURL: true},
	} {
		if got := legacyClient(both, rev); got != want {
			t.Errorf("%s: %+v, want %+v", rev, got, want)
		}
	}
	// 2025-06-18 knows no modes: whoever declares elicitation takes a form.
	if got := legacyClient(json.RawMessage(`{"elicitation":{"url":{}}}`), translate.Rev20250618); got != (caps{ElicitForm: true}) {
		t.Errorf("url on 2025-06-18: %+v", got)
	}
}

func TestAccept(t *testing.T) {
	for v, want := range map[string][2]bool{
		"application/json, text/event-stream": {true, true}, "application/json": {true, false}, "text/event-stream": {false, true},
		"*/*": {true, true}, "text/html": {true, true}, "": {true, true}, "APPLICATION/JSON;q=0.9": {true, false},
		"application/json;q=0, text/event-stream": {false, true}, "text/*": {false, true}, "application/json;q=0.5": {true, false},
	} {
		if j, e := accepts([]string{v}); j != want[0] || e != want[1] {
			t.Errorf("%q: %v %v", v, j, e)
		}
	}
	if j, e := accepts(nil); !j || !e {
		t.Error("no Accept takes both")
	}
}

// Core needs no transport: without a Sink a call is simply not heard of before
// its answer.
func TestCoreAlone(t *testing.T) {
	asked := true
	s := newServer(t, func(ctx context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
		sink.Progress("x")
		_, asked, _ = sink.Ask(ctx, []translate.Ask{formAsk})
		return says("done")
	}, nil)
	handle := func(view tools.View, body string) Answer {
		env, err := ParseEnvelope([]byte(body), 0)
		if err != nil {
			t.Fatal(err)
		}
		return s.Core().Handle(t.Context(), &Request{Envelope: env, Revision: translate.Rev20260728, Principal: Local, View: view})
	}
	if a := handle(tools.View{}, callWithToken("1")); a.Code != 0 || !strings.Contains(string(a.Message), "done") || asked {
		t.Errorf("%+v %v", a, asked)
	}
	for _, body := range []string{callWithToken("1"), modernBody("1", "tools/list", ""), modernBody("1", "server/discover", "")} {
		if a := handle(tools.View{Profile: "nope"}, body); a.Code != -32602 || !strings.Contains(string(a.Message), "nope") {
			t.Errorf("%s: %s", body, a.Message)
		}
	}
	if a := handle(tools.View{}, modernBody("1", "subscriptions/listen", "")); a.Code != -32600 {
		t.Errorf("%s", a.Message)
	}
}

// Principals that have been idle are forgotten before there are too many.
func TestMeterForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meter{of: map[string]*meterEntry{}}
		l := Limits{ConcurrentCalls: 1}
		m.take("busy", l)
		for i := range maxMeters - 1 {
			p := fmt.Sprint(i)
			m.take(p, l)
			m.release(p)
		}
		time.Sleep(2 * time.Minute)
		m.take("new", l)
		if len(m.of) != 2 || m.of["busy"] == nil {
			t.Errorf("%d remembered", len(m.of))
		}
	})
}

// Nothing is read as a session that was not made with this very key.
func FuzzSession(f *testing.F) {
	id := newSessions(nil).mint("p", translate.Rev20251125, tools.ClientCapabilities{ElicitForm: true})
	for _, v := range []string{id, "", "v1.", "v1.a.b", id[:len(id)-1], id + "=", strings.ToUpper(id)} {
		f.Add(v)
	}
	s := newSessions(nil)
	f.Fuzz(func(t *testing.T, v string) {
		if s.read("p", v) != (session{}) {
			t.Errorf("%q was read as a session", v)
		}
		accepts([]string{v})
		normalOrigin(v)
	})
}
