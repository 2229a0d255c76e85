package tasksext

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
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
