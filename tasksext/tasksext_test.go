package tasksext

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/fixtures"
	"a2agate/handles"
	"a2agate/translate"
)

// How each way of ending shows (tasks extension 3.2, 3.3).
func TestEnds(t *testing.T) {
	tests := map[string]struct {
		command string
		status  translate.TaskStatus
		text    string
		isError bool
	}{
		"completed":   {"slow 5 abc", translate.TaskCompleted, "", false},
		"failed":      {"fail no paper", translate.TaskCompleted, "no paper", true},
		"unspecified": {"unspecified", translate.TaskCompleted, "TASK_STATE_UNSPECIFIED", true},
		"rejected":    {"reject no room", translate.TaskCompleted, "no room", true},
		"canceled":    {"cancelme", translate.TaskCancelled, "", false},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		tc := tests[name]
		for _, unary := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inWorld(t, fixtures.Options{Unary: unary}, func(w *world) {
					t := w.t
					id := w.start(tc.command)
					d := w.until(w.call(id), tc.status)
					if tc.status == translate.TaskCompleted {
						r := w.result(d)
						if r.IsError != tc.isError || !strings.Contains(r.text(), tc.text) {
							t.Errorf("result %s", d.ResultJSON)
						}
					}
					again := w.get(w.call(id))
					if again.Status != d.Status || string(again.ResultJSON) != string(d.ResultJSON) || !again.Updated.Equal(d.Updated) {
						t.Errorf("an ended task changed: %+v, then %+v", d, again)
					}
					if fault := w.svc.Cancel(t.Context(), w.call(id)); fault != nil {
						t.Errorf("cancel of an ended task: %v", fault)
					}
					if n := w.calls("CancelTask"); n != 0 {
						t.Errorf("%d CancelTask for an ended task", n)
					}
				})
			})
		}
	}
}

func TestWorkingTaskChangesNothingWhilePolled(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 60")
		time.Sleep(time.Second)
		first := w.get(w.call(id))
		time.Sleep(10 * time.Second)
		second := w.get(w.call(id))
		if second.Status != translate.TaskWorking || !second.Updated.Equal(first.Updated) || !second.Created.Equal(first.Created) {
			t.Errorf("first %+v, then %+v", first.TaskInfo, second.TaskInfo)
		}
		if second.TTL < 24*time.Hour {
			t.Errorf("ttl %s of a working task, want a day at least", second.TTL)
		}
	})
}

func TestCancelReachesTheAgentOnce(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 600")
		for range 2 {
			if fault := w.svc.Cancel(t.Context(), w.call(id)); fault != nil {
				t.Fatal(fault)
			}
		}
		w.until(w.call(id), translate.TaskCancelled)
		if n := w.calls("CancelTask"); n != 1 {
			t.Errorf("%d CancelTask, want 1", n)
		}
	})
}

// A refused cancel leaves the task as it is.
func TestRefusedCancelGoesOn(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("refusecancel 20")
		if fault := w.svc.Cancel(t.Context(), w.call(id)); fault != nil {
			t.Fatal(fault)
		}
		if d := w.get(w.call(id)); d.Status != translate.TaskWorking {
			t.Fatalf("after a refused cancel the task is %s", d.Status)
		}
		if r := w.result(w.until(w.call(id), translate.TaskCompleted)); r.IsError {
			t.Errorf("result %+v", r)
		}
	})
}

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

// failed is for a task that cannot be reached any more, with the agent's code
// in data and never as the code.
func TestLostTaskFails(t *testing.T) {
	for command, code := range map[string]string{"vanish": "-32001", "protoerror": "-32603"} {
		t.Run(command, func(t *testing.T) {
			inWorld(t, fixtures.Options{Unary: true}, func(w *world) {
				t := w.t
				id := w.start(command)
				d := w.until(w.call(id), translate.TaskFailed)
				if d.Err == nil || d.Err.Code != translate.CodeInternal || !strings.Contains(string(d.Err.Data), code) || d.ResultJSON != nil {
					t.Errorf("error %+v", d.Err)
				}
				time.Sleep(10 * time.Minute)
				if again := w.get(w.call(id)); again.Status != translate.TaskFailed {
					t.Errorf("a failed task became %s", again.Status)
				}
			})
		})
	}
}

// Unknown, foreign and plain handles are refused in the same words.
func TestOnlyTheOwnerSeesATask(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 60")
		plain, err := w.table.Task(t.Context(), "ann", "demo", "c", "other", true)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]Call{
			"unknown":            {Principal: "ann", TaskID: "tk_aaaaaaaaaaaaaaaaaaaaaaaaaa"},
			"foreign":            {Principal: "bob", TaskID: id},
			"plain handle":       {Principal: "ann", TaskID: plain.Handle},
			"malformed":          {Principal: "ann", TaskID: "no such thing"},
			"outside the agents": {Principal: "ann", TaskID: id, Agents: map[string]bool{"other": true}},
		} {
			_, fault := w.svc.Get(t.Context(), c)
			wantFault(t, fault, translate.CodeInvalidParams, "unknown task")
			wantFault(t, w.svc.Update(t.Context(), c, json.RawMessage(`{}`)), translate.CodeInvalidParams, "unknown task")
			wantFault(t, w.svc.Cancel(t.Context(), c), translate.CodeInvalidParams, "unknown task")
			if got := w.svc.Listen(c, []string{c.TaskID}); len(got.Accepted()) != 0 {
				t.Errorf("%s: listen accepted %v", name, got.Accepted())
				got.Close()
			}
		}
		if n := w.calls("CancelTask"); n != 0 {
			t.Errorf("%d CancelTask", n)
		}
	})
}

// A task keeps its life through a restart, its open question included.
func TestRestartKeepsTheRecord(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("ask2 size")
		c := w.call(id)
		before := w.until(c, translate.TaskInputRequired)
		for _, r := range w.svc.all() {
			r.close()
		}
		w.svc = w.newService()
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { defer close(ran); _ = w.svc.Run(ctx) }()
		defer func() { stop(); <-ran }()

		after := w.until(c, translate.TaskInputRequired)
		if keys(after) != keys(before) || !after.Created.Equal(before.Created) {
			t.Errorf("before %+v, after %+v", before, after)
		}
		w.update(c, `{"`+keys(after)+`":{"action":"accept","content":{"answer":"large"}}}`)
		second := keys(w.until(c, translate.TaskInputRequired))
		if second == keys(before) {
			t.Errorf("the key %q was used again after the restart", second)
		}
		w.update(c, `{"`+second+`":{"action":"accept","content":{"answer":"blue"}}}`)
		w.until(c, translate.TaskCompleted)
	})
}

// The record goes with its handle.
func TestExpiredTaskIsForgotten(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 1")
		w.until(w.call(id), translate.TaskCompleted)
		time.Sleep(20 * time.Minute)
		if n := w.svc.Len(); n != 0 {
			t.Errorf("%d records are left", n)
		}
		_, fault := w.svc.Get(t.Context(), w.call(id))
		wantFault(t, fault, translate.CodeInvalidParams, id)
		if counts := w.follower.Counts(); counts.Watches != 0 || counts.Tasks != 0 {
			t.Errorf("the follower still has %+v", counts)
		}
	})
}

// An unwatched task does not expire while it works, and settles unseen.
func TestUnwatchedTaskOutlivesItsCaller(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 600")
		time.Sleep(9 * time.Minute)
		if d := w.get(w.call(id)); d.Status != translate.TaskWorking {
			t.Fatalf("the task is %s", d.Status)
		}
		time.Sleep(5 * time.Minute)
		if d := w.get(w.call(id)); d.Status != translate.TaskCompleted {
			t.Errorf("the task is %s", d.Status)
		}
	})
}

func TestListenShowsEveryStateOnce(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("worksask 5 size")
		c := w.call(id)
		listen := w.svc.Listen(c, []string{id, "tk_aaaaaaaaaaaaaaaaaaaaaaaaaa", id})
		defer listen.Close()
		if got := listen.Accepted(); len(got) != 1 || got[0] != id {
			t.Fatalf("accepted %v", got)
		}
		var seen []string
		next := func() Detail {
			t.Helper()
			select {
			case <-listen.Wake():
			case <-time.After(time.Minute):
				t.Fatalf("nothing came after %v", seen)
			}
			list := listen.Take(t.Context())
			if len(list) == 0 {
				return Detail{}
			}
			d := list[0]
			shown := fmt.Sprintf("%s %q %s", d.Status, d.StatusMessage, keys(d))
			if len(seen) > 0 && seen[len(seen)-1] == shown {
				t.Errorf("shown twice: %s", shown)
			}
			seen = append(seen, shown)
			return d
		}
		if d := next(); d.Status != translate.TaskWorking {
			t.Fatalf("first %s", d.Status)
		}
		for d := next(); d.Status != translate.TaskInputRequired; d = next() {
			continue
		}
		w.update(c, `{"answer":{"action":"accept","content":{"answer":"large"}}}`)
		for d := next(); d.Status != translate.TaskCompleted; d = next() {
			continue
		}
		synctest.Wait()
		select {
		case <-listen.Wake():
			if more := listen.Take(t.Context()); len(more) != 0 {
				t.Errorf("after the end came %+v", more)
			}
		default:
		}
	})
}

// What has changed between a wake and its taking is shown by the taking, and
// the wake of the change itself has nothing more to show.
func TestListenTakesAChangeOnce(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 5 abc")
		synctest.Wait() // SUBMITTED shows as working too
		listen := w.svc.Listen(w.call(id), []string{id})
		defer listen.Close()
		var shown []string
		take := func() {
			for _, d := range listen.Take(t.Context()) {
				shown = append(shown, string(d.Status))
			}
		}
		take()
		synctest.Wait()
		take() // the same state, seen by the listener's own goroutine
		time.Sleep(time.Minute)
		take()
		synctest.Wait()
		take()
		if want := []string{"working", "completed"}; !slices.Equal(shown, want) {
			t.Errorf("shown %v, want %v", shown, want)
		}
	})
}

// The ttl of a task that has just ended is that of its handle from now on, not
// of the work that is over.
func TestTTLOfAnEndedTask(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 5 abc")
		c := w.call(id)
		if d := w.get(c); d.TTL < 24*time.Hour {
			t.Errorf("ttl %s while it works", d.TTL)
		}
		w.agent.Restart(false) // the end is found out by the read
		first := w.until(c, translate.TaskCompleted)
		if again := w.get(c); first.TTL != again.TTL || first.TTL > time.Hour {
			t.Errorf("ttl %s at the end, then %s", first.TTL, again.TTL)
		}
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

// Replicas that share a store agree on a task: on the keys of its questions, on
// what has been answered, and on its end.
func TestReplicasAgree(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		one, other := w.svc, w.newService()
		w.run(other.Run)
		on := func(s *Service) { w.svc = s }

		id := w.start("ask2 size")
		c := w.call(id)
		on(other)
		first := keys(w.until(c, translate.TaskInputRequired))
		w.update(c, `{"`+first+`":{"action":"accept","content":{"answer":"large"}}}`)
		second := keys(w.until(c, translate.TaskInputRequired))
		on(one)
		if got := keys(w.until(c, translate.TaskInputRequired)); got != second || got == first {
			t.Errorf("asked under %q here, under %q there, %q before", got, second, first)
		}
		// A late answer to what was answered elsewhere goes nowhere.
		sent := w.calls("SendStreamingMessage")
		w.update(c, `{"`+first+`":{"action":"accept","content":{"answer":"small"}}}`)
		if n := w.calls("SendStreamingMessage"); n != sent {
			t.Errorf("%d messages after a late answer, %d before", n, sent)
		}
		w.update(c, `{"`+second+`":{"action":"decline"}}`)
		end := w.get(c)
		on(other)
		if got := w.get(c); got.Status != translate.TaskCompleted || string(got.ResultJSON) != string(end.ResultJSON) || !got.Updated.Equal(end.Updated) {
			t.Errorf("ended as %+v here, as %+v there", end, got)
		}
	})
}

// A task that ended with a question goes on under the same handle when a call
// answers it; every replica follows.
func TestTaskBeginsAnew(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		one, other := w.svc, w.newService()
		w.run(other.Run)
		id := w.start("ask size")
		c := w.call(id)
		c.ElicitForm, c.ElicitURL = false, false
		for _, s := range []*Service{one, other} {
			w.svc = s
			if got := w.result(w.until(c, translate.TaskCompleted)); got.Structured.Status != "input_required" {
				t.Errorf("ended with %+v", got)
			}
		}
		entry, err := w.table.Lookup(t.Context(), handles.KindTask, id, "ann")
		if err != nil {
			t.Fatal(err)
		}
		if again := w.goOn(entry, "large"); again != id {
			t.Fatalf("handle %s, was %s", again, id)
		}
		for _, s := range []*Service{other, one} {
			w.svc = s
			if got := w.result(w.until(c, translate.TaskCompleted)); got.Structured.Status != "completed" || !strings.Contains(got.text(), "size = large") {
				t.Errorf("ended with %+v", got)
			}
		}
	})
}
