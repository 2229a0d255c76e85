package tasksext

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"a2agate/fixtures"
	"a2agate/handles"
	"a2agate/translate"
)

func TestQuestionIsAskedAndAnswered(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("worksask 1 size")
		c := w.call(id)
		d := w.until(c, translate.TaskInputRequired)
		if keys(d) != "answer" || !strings.Contains(d.Asks[0].Message, "size") {
			t.Fatalf("asks %+v", d.Asks)
		}
		if again := w.get(c); keys(again) != keys(d) {
			t.Errorf("the question's keys changed from %q to %q", keys(d), keys(again))
		}
		w.update(c, `{"nobody":{"ignored":true}}`)
		if got := w.get(c); got.Status != translate.TaskInputRequired {
			t.Fatalf("an unknown key made the task %s", got.Status)
		}
		w.update(c, `{"answer":{"action":"accept","content":{"answer":"large"}}}`)
		if got := w.get(c); got.Status == translate.TaskInputRequired {
			t.Errorf("an answered question is still open")
		}
		if r := w.result(w.until(c, translate.TaskCompleted)); !strings.Contains(r.text(), "size = large") || r.IsError {
			t.Errorf("result %+v", r)
		}
		// Late answers are acknowledged and reach nobody.
		sent := w.calls("SendStreamingMessage") + w.calls("SendMessage")
		w.update(c, `{"answer":{"action":"accept","content":{"answer":"small"}}}`)
		if n := w.calls("SendStreamingMessage") + w.calls("SendMessage"); n != sent {
			t.Errorf("a late answer reached the agent")
		}
	})
}

// Keys are never used twice in a task's life.
func TestSecondQuestionHasNewKeys(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("ask2 size")
		c := w.call(id)
		first := keys(w.until(c, translate.TaskInputRequired))
		w.update(c, `{"`+first+`":{"action":"accept","content":{"answer":"large"}}}`)
		second := keys(w.until(c, translate.TaskInputRequired))
		if first == second {
			t.Fatalf("both questions have the key %q", first)
		}
		w.update(c, `{"`+first+`":{"action":"accept","content":{"answer":"again"}}}`)
		if got := keys(w.get(c)); got != second {
			t.Errorf("an answered key was taken again: open %q", got)
		}
		w.update(c, `{"`+second+`":{"action":"accept","content":{"answer":"blue"}}}`)
		if r := w.result(w.until(c, translate.TaskCompleted)); !strings.Contains(r.text(), "blue") {
			t.Errorf("result %+v", r)
		}
	})
}

func TestPartialAnswersAreHeld(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("askmulti")
		c := w.call(id)
		d := w.until(c, translate.TaskInputRequired)
		if keys(d) != "name confirm" {
			t.Fatalf("keys %q", keys(d))
		}
		before := w.calls("SendStreamingMessage")
		w.update(c, `{"confirm":{"action":"accept","content":{"confirm":true}}}`)
		if d = w.get(c); keys(d) != "name" || d.Status != translate.TaskInputRequired {
			t.Fatalf("after one answer: %s %q", d.Status, keys(d))
		}
		if w.calls("SendStreamingMessage") != before {
			t.Error("half an answer reached the agent")
		}
		w.update(c, `{"name":{"action":"accept","content":{"name":"Ann"}}}`)
		if r := w.result(w.until(c, translate.TaskCompleted)); !strings.Contains(r.text(), "Ann") {
			t.Errorf("result %+v", r)
		}
	})
}

func TestAnswersThatAreNotTaken(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("askform")
		c := w.call(id)
		key := keys(w.until(c, translate.TaskInputRequired))
		for name, tc := range map[string]struct{ responses, part string }{
			"not an object":    {`[]`, "inputResponses is not an object"},
			"null":             {`null`, "inputResponses is not an object"},
			"no action":        {`{"` + key + `":{}}`, "action"},
			"unknown action":   {`{"` + key + `":{"action":"maybe"}}`, "maybe"},
			"no content":       {`{"` + key + `":{"action":"accept"}}`, "content"},
			"wrong type":       {`{"` + key + `":{"action":"accept","content":{"bags":"many"}}}`, "bags"},
			"entry not object": {`{"` + key + `":7}`, "not an object"},
		} {
			fault := w.svc.Update(t.Context(), c, json.RawMessage(tc.responses))
			if fault == nil || fault.Code != translate.CodeInvalidParams || !strings.Contains(fault.Message, tc.part) {
				t.Errorf("%s: got %v, want -32602 with %q", name, fault, tc.part)
			}
		}
		if d := w.get(c); d.Status != translate.TaskInputRequired || keys(d) != key {
			t.Errorf("a refused answer left %s %q", d.Status, keys(d))
		}
	})
}

func TestDeclineEndsTheCallNotTheAgentsTask(t *testing.T) {
	for _, action := range []string{"decline", "cancel"} {
		t.Run(action, func(t *testing.T) {
			inWorld(t, fixtures.Options{}, func(w *world) {
				t := w.t
				id := w.start("ask size")
				c := w.call(id)
				w.until(c, translate.TaskInputRequired)
				w.update(c, `{"answer":{"action":"`+action+`"}}`)
				r := w.result(w.until(c, translate.TaskCompleted))
				if r.Structured.Status != "input_required" || r.Structured.Task != id || r.Structured.Note == "" || r.IsError {
					t.Errorf("result %+v", r)
				}
				if n := w.calls("CancelTask"); n != 0 {
					t.Errorf("%d CancelTask", n)
				}
			})
		})
	}
}

// A client that cannot be asked gets the question in the result.
func TestUndeclaredClientIsNeverAsked(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("worksask 1 size")
		c := Call{Principal: "ann", TaskID: id, ElicitURL: true}
		r := w.result(w.until(c, translate.TaskCompleted))
		if r.Structured.Status != "input_required" || !strings.Contains(r.text(), "size") || !strings.Contains(r.text(), id) {
			t.Errorf("result %+v", r)
		}
	})
}

func TestSecretsAreNeverAskedByForm(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("asksecret")
		if d := w.until(w.call(id), translate.TaskCompleted); len(d.Asks) != 0 || w.result(d).Structured.Status != "input_required" {
			t.Errorf("detail %+v", d)
		}
	})
}

// The login: asked by url where that was declared, and never a form; the MCP
// task of another client ends, and the real answer still comes to the handle.
func TestAuthRequired(t *testing.T) {
	t.Run("url declared", func(t *testing.T) {
		inWorld(t, fixtures.Options{}, func(w *world) {
			t := w.t
			id := w.start("auth 30")
			c := w.call(id)
			d := w.until(c, translate.TaskInputRequired)
			if len(d.Asks) != 1 || d.Asks[0].URL == "" || d.Asks[0].Schema != nil {
				t.Fatalf("asks %+v", d.Asks)
			}
			sent := w.calls("SendStreamingMessage")
			w.update(c, `{"`+keys(d)+`":{"action":"accept"}}`)
			if d := w.get(c); d.Status != translate.TaskWorking {
				t.Errorf("after consent the task is %s", d.Status)
			}
			if w.calls("SendStreamingMessage") != sent {
				t.Error("consent was sent as a message")
			}
			if r := w.result(w.until(c, translate.TaskCompleted)); r.IsError {
				t.Errorf("result %+v", r)
			}
		})
	})
	t.Run("not declared", func(t *testing.T) {
		inWorld(t, fixtures.Options{}, func(w *world) {
			t := w.t
			id := w.start("auth 30")
			c := Call{Principal: "ann", TaskID: id, ElicitForm: true}
			d := w.until(c, translate.TaskCompleted)
			if r := w.result(d); !r.IsError || r.Structured.Status != "auth_required" {
				t.Fatalf("result %+v", r)
			}
			time.Sleep(time.Minute)
			if again := w.get(c); string(again.ResultJSON) != string(d.ResultJSON) {
				t.Errorf("an ended MCP task changed to %s", again.ResultJSON)
			}
			entry, err := w.table.Lookup(t.Context(), handles.KindTask, id, "ann")
			if err != nil {
				t.Fatal(err)
			}
			watch, err := w.follower.Task(t.Context(), entry.TaskID, entry.ContextID)
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			snap, err := watch.Refresh(t.Context())
			if err != nil || snap.Task == nil || !snap.Task.Status.State.Terminal() {
				t.Errorf("the handle no longer follows the agent's task: %v %+v", err, snap.Task)
			}
		})
	})
}

// An answer that never reached the agent is asked for again, under a new key.
func TestAnswerThatDidNotArriveIsAskedForAgain(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("ask size")
		c := w.call(id)
		first := keys(w.until(c, translate.TaskInputRequired))
		w.agent.FailNext(1, fixtures.Outage{Op: "SendStreamingMessage", Status: 503})
		w.update(c, `{"`+first+`":{"action":"accept","content":{"answer":"large"}}}`)
		d := w.until(c, translate.TaskInputRequired)
		if keys(d) == first || !strings.Contains(d.StatusMessage, "did not reach") {
			t.Fatalf("asked again as %q: %q", keys(d), d.StatusMessage)
		}
		w.update(c, `{"`+keys(d)+`":{"action":"accept","content":{"answer":"large"}}}`)
		w.until(c, translate.TaskCompleted)
	})
}
