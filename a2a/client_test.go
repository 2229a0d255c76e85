package a2a

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// each runs a test over both versions and both bindings.
func each(t *testing.T, f func(t *testing.T, v Version, b Binding)) {
	for _, v := range []Version{V10, V03} {
		for _, b := range []Binding{JSONRPC, REST} {
			t.Run(fmt.Sprintf("%s over %s", v, b), func(t *testing.T) { f(t, v, b) })
		}
	}
}

// respond writes a result in the binding's envelope.
func respond(w http.ResponseWriter, r seenRequest, result string) {
	if r.RPC != "" {
		reply(w, r, result)
		return
	}
	w.Header().Set("Content-Type", "application/a2a+json")
	fmt.Fprint(w, result)
}

// A send's answer is a task or a message, whatever shape it comes in
// (specification 1.0.1, 3.1.1).
func TestSend(t *testing.T) {
	each(t, func(t *testing.T, v Version, b Binding) {
		answer := ""
		var agent *scriptedAgent
		agent = newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { respond(w, r, answer) })
		c := agent.client(v, b)
		for _, tt := range []struct{ answer, want string }{
			{taskWorking, "task:WORKING"},
			{bareCompleted, "task:COMPLETED"},
			{`{"kind":"task","id":"t1","contextId":"c1","status":{"state":"input-required"}}`, "task:INPUT_REQUIRED"},
			{`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}`, "message"},
			{`{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"x"}]}`, "message"},
			{statusDone, "task:COMPLETED"},
			{textDelta, "task:SUBMITTED"},
			{`{"task":{"id":"t1"}}`, "task:UNSPECIFIED"},
		} {
			answer = tt.answer
			ev, err := c.Send(testContext(t), hello())
			if err != nil || kinds([]Event{ev}) != tt.want {
				t.Errorf("%s: %q, %v", tt.answer, kinds([]Event{ev}), err)
			}
		}
	})
}

// GetTask, CancelTask and their errors (specification 1.0.1, 3.1.3, 3.1.5).
func TestTaskOperations(t *testing.T) {
	each(t, func(t *testing.T, v Version, b Binding) {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			cancel := strings.Contains(strings.ToLower(r.RPC+r.URI), "cancel")
			switch {
			case strings.Contains(r.Body+r.URI, "gone") && b == REST:
				w.WriteHeader(404)
				fmt.Fprint(w, `{"error":{"code":404,"status":"NOT_FOUND","message":"no such task"}}`)
			case strings.Contains(r.Body, "gone"):
				replyError(w, r, CodeTaskNotFound, "no such task")
			case strings.Contains(r.Body+r.URI, "done") && cancel && b == REST:
				w.WriteHeader(400)
				fmt.Fprint(w, `{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"too late","details":[{"reason":"TASK_NOT_CANCELABLE"}]}}`)
			case strings.Contains(r.Body, "done") && cancel:
				replyError(w, r, CodeTaskNotCancelable, "too late")
			case cancel:
				respond(w, r, `{"id":"t1","status":{"state":"TASK_STATE_WORKING"}}`)
			default:
				respond(w, r, `{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"history":[{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}],"frob":1}`)
			}
		})
		c := agent.client(v, b)
		two := 2
		task, err := c.GetTask(testContext(t), "t1", &two)
		if err != nil || task.Status.State != StateCompleted || len(task.History) != 1 {
			t.Errorf("get: %+v %v", task, err)
		}
		if r := agent.requests()[0]; !strings.Contains(r.Body+r.URI, "istoryLength") {
			t.Errorf("no historyLength in %s %s", r.URI, r.Body)
		}
		task, err = c.CancelTask(testContext(t), "t1")
		if err != nil || task.Status.State != StateWorking {
			t.Errorf("cancel that takes its time: %+v %v", task, err)
		}
		_, err = c.CancelTask(testContext(t), "done")
		if e := wantError(t, err, CauseAgent); e.Code != CodeTaskNotCancelable || e.Op != "cancel" {
			t.Errorf("%+v", e)
		}
		_, err = c.GetTask(testContext(t), "gone", nil)
		if e := wantError(t, err, CauseAgent); e.Code != CodeTaskNotFound || e.Message != "no such task" || e.Op != "get" {
			t.Errorf("%+v", e)
		}
		for _, f := range []func() error{
			func() error { _, err := c.GetTask(testContext(t), "", nil); return err },
			func() error { _, err := c.CancelTask(testContext(t), ""); return err },
		} {
			wantError(t, f(), CauseInvalid)
		}
	})
}

// ListTasks pages through; a 0.3 agent over JSON-RPC is not asked at all
// (specification 1.0.1, 3.1.4; 0.3.0, 7).
func TestListTasks(t *testing.T) {
	each(t, func(t *testing.T, v Version, b Binding) {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			if strings.Contains(r.Body+r.URI, "page2") {
				respond(w, r, `{"tasks":[{"id":"c","status":{"state":"TASK_STATE_WORKING"}}],"nextPageToken":""}`)
				return
			}
			respond(w, r, `{"tasks":[{"id":"a","status":{"state":"TASK_STATE_WORKING"}},{"id":"b","status":{"state":"TASK_STATE_FAILED"}}],"nextPageToken":"page2","totalSize":3,"pageSize":2}`)
		})
		c := agent.client(v, b)
		var ids []string
		req := ListRequest{ContextID: "c1", PageSize: 2}
		for {
			page, err := c.ListTasks(testContext(t), req)
			if v == V03 && b == JSONRPC {
				if e := wantError(t, err, CauseUnavailable); e.Code != CodeUnsupportedOperation || !e.Unsent || len(agent.requests()) != 0 {
					t.Errorf("%+v after %d requests", e, len(agent.requests()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range page.Tasks {
				ids = append(ids, task.ID)
			}
			if req.PageToken = page.NextPageToken; req.PageToken == "" {
				break
			}
		}
		if !reflect.DeepEqual(ids, []string{"a", "b", "c"}) {
			t.Errorf("%q", ids)
		}
	})
}

// The extended card and a raw method's result come byte for byte.
func TestRawResults(t *testing.T) {
	const card = "{\"z\": 1.0,  \"a\":[ \"\u00fc\" ],\"b\":9007199254740993}"
	each(t, func(t *testing.T, v Version, b Binding) {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { respond(w, r, card) })
		c := agent.client(v, b)
		got, err := c.ExtendedCard(testContext(t))
		if err != nil || string(got) != card {
			t.Errorf("%s %v", got, err)
		}
		raw, err := c.Query(testContext(t), "x/y", json.RawMessage(`{"q":1}`))
		if b == REST {
			if e := wantError(t, err, CauseUnavailable); !e.Unsent {
				t.Errorf("%+v", e)
			}
			return
		}
		if err != nil || string(raw) != card {
			t.Errorf("%s %v", raw, err)
		}
	})
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { replyError(w, r, -32601, "unknown") })
	_, err := agent.client(V10, JSONRPC).Query(testContext(t), "x/y", nil)
	if e := wantError(t, err, CauseAgent); e.Code != -32601 || len(agent.requests()) != 1 {
		t.Errorf("%+v, %q", e, agent.trail())
	}
	// A raw method goes to the JSON-RPC interface, wherever it is in the list.
	agent = newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { respond(w, r, `null`) })
	c := agent.client(V10, REST, func(o *ClientOptions) {
		o.Interfaces = append(o.Interfaces, Interface{URL: agent.URL + "/rpc", Version: V10, Binding: JSONRPC})
	})
	if raw, err := c.Query(testContext(t), "x/y", nil); err != nil || string(raw) != "null" || agent.requests()[0].URI != "/rpc" {
		t.Errorf("%s %v %q", raw, err, agent.trail())
	}
	if c.Chosen().Binding != REST {
		t.Error("a raw call changed the interface")
	}
}

// Extensions are asked for by the header of the version (specification
// 1.0.1, 3.2.6; 0.3.0 names the header X-A2A-Extensions).
func TestExtensions(t *testing.T) {
	each(t, func(t *testing.T, v Version, b Binding) {
		name, other := "A2A-Extensions", "X-A2A-Extensions"
		if v == V03 {
			name, other = other, name
		}
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			respond(w, r, taskCompleted)
		})
		c := agent.client(v, b, func(o *ClientOptions) { o.Extensions = []string{"urn:a", "urn:b", "urn:c"} })
		if _, err := c.Send(testContext(t), hello()); err != nil {
			t.Fatal(err)
		}
		h := agent.requests()[0].Header
		if h.Get(name) != "urn:a,urn:b,urn:c" || h.Get(other) != "" {
			t.Errorf("%v", h)
		}
	})
}

// An agent that answers a send with a stream is understood all the same.
func TestUnaryAnsweredByStream(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		if r.RPC == "GetTask" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: half\n\n")
			return
		}
		sseReply(w, r, taskWorking, textDelta, textDelta, statusDone)
	})
	c := agent.client(V10, JSONRPC)
	ev, err := c.Send(testContext(t), hello())
	if err != nil || ev.Task == nil || ev.Task.Status.State != StateCompleted || show(ev.Task) != "a1[xx]" || len(ev.Notes) == 0 {
		t.Errorf("%+v %v", ev, err)
	}
	_, err = c.GetTask(testContext(t), "t1", nil)
	if e := wantError(t, err, CauseProtocol); !strings.Contains(e.Message, "not JSON") {
		t.Errorf("%q", e.Message)
	}
}

// Notes on what was odd come with the answer.
func TestNotes(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		reply(w, r, `{"task":{"id":"t1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[null,{"artifactId":"a","parts":[{"raw":"?"}]}]}}`)
	})
	c := agent.client(V10, JSONRPC)
	task, err := c.GetTask(testContext(t), "t1", nil)
	if err != nil || len(task.Notes) != 2 {
		t.Errorf("%q %v", task.Notes, err)
	}
	ev, err := c.Send(testContext(t), hello())
	if err != nil || len(ev.Notes) != 2 || len(ev.Task.Notes) != 2 {
		t.Errorf("%q %v", ev.Notes, err)
	}
}
