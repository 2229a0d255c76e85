package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func textPart(s string) Part { return Part{Kind: PartText, Text: s} }

// piece is an artifact update of task t1.
func piece(id string, app, last bool, parts ...Part) Event {
	return Event{Artifact: &ArtifactUpdate{TaskID: "t1", ContextID: "c1", Append: app, LastChunk: last, Artifact: Artifact{ArtifactID: id, Parts: parts}}}
}

func status(state State, id, text string) Event {
	u := &StatusUpdate{TaskID: "t1", ContextID: "c1", Status: Status{State: state}}
	if text != "" {
		u.Status.Message = &Message{MessageID: id, Role: RoleAgent, Parts: []Part{textPart(text)}}
	}
	return Event{Status: u}
}

func taskEvent(state State, artifacts ...Artifact) Event {
	return Event{Task: &Task{ID: "t1", ContextID: "c1", Status: Status{State: state}, Artifacts: artifacts}}
}

func fold(t *testing.T, events ...Event) *Aggregate {
	t.Helper()
	a := NewAggregate(0)
	for i, ev := range events {
		if err := a.Add(ev); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	return a
}

// show writes a task's artifacts in short: id[part|part].
func show(task *Task) string {
	var out []string
	for _, a := range task.Artifacts {
		var parts []string
		for _, p := range a.Parts {
			parts = append(parts, p.Text+string(p.Data)+p.URL+p.Base64)
		}
		out = append(out, a.ArtifactID+"["+strings.Join(parts, "|")+"]")
	}
	return strings.Join(out, " ")
}

// Pieces make artifacts as the specification says, and what does not fit is
// taken leniently and noted (specification 1.0.1, 4.2.2).
func TestAggregateArtifacts(t *testing.T) {
	data := func(s string) Part { return Part{Kind: PartData, Data: json.RawMessage(s)} }
	named := textPart("n")
	named.Filename = "f.txt"
	tests := []struct {
		name   string
		events []Event
		want   string
		notes  int
		unsure bool
	}{
		{"create and append", []Event{piece("a", false, false, textPart("one ")), piece("a", true, false, textPart("two ")), piece("a", true, true, textPart("three"))}, "a[one two three]", 0, false},
		{"replace", []Event{piece("a", false, false, textPart("one")), piece("a", false, false, textPart("two"))}, "a[two]", 0, false},
		{"interleaved", []Event{piece("a", false, false, textPart("1")), piece("b", false, false, textPart("x")), piece("a", true, false, textPart("2")), piece("b", true, false, textPart("y"))}, "a[12] b[xy]", 0, false},
		{"other kinds keep the list", []Event{piece("a", false, false, textPart("1")), piece("a", true, false, data(`{"k":1}`)), piece("a", true, false, textPart("2")), piece("a", true, false, textPart("3"))}, `a[1|{"k":1}|23]`, 0, false},
		{"several parts in a piece", []Event{piece("a", false, false, textPart("1"), textPart("2")), piece("a", true, false, textPart("3"), data("4"), textPart("5"))}, "a[1|23|4|5]", 0, false},
		{"a named part stays its own", []Event{piece("a", false, false, textPart("1")), piece("a", true, false, named), piece("a", true, false, textPart("2"))}, "a[1|n|2]", 0, false},
		{"unknown id", []Event{piece("a", true, false, textPart("late")), piece("a", true, false, textPart(" on"))}, "a[late on]", 1, true},
		{"after the last piece", []Event{piece("a", false, true, textPart("1")), piece("a", true, true, textPart("2"))}, "a[12]", 1, false},
		{"the last piece replaces", []Event{piece("a", false, false, textPart("1")), piece("a", true, false, textPart("2")), piece("a", false, true, textPart("2"))}, "a[2]", 1, true},
		{"empty id", []Event{piece("", false, false, textPart("1")), piece("", true, false, textPart("2"))}, "[12]", 0, false},
		{"before the task", []Event{piece("a", false, false, textPart("1")), taskEvent(StateWorking), piece("a", true, false, textPart("2"))}, "a[12]", 0, false},
		{"bare snapshot keeps ours", []Event{taskEvent(StateWorking), piece("a", false, false, textPart("1")), taskEvent(StateCompleted)}, "a[1]", 0, false},
		{"snapshot with artifacts replaces", []Event{piece("a", false, false, textPart("1")), taskEvent(StateCompleted, Artifact{ArtifactID: "b", Parts: []Part{textPart("all")}})}, "b[all]", 0, false},
		{"snapshot, then pieces go on", []Event{taskEvent(StateWorking, Artifact{ArtifactID: "a", Parts: []Part{textPart("1")}}), piece("a", true, false, textPart("2"))}, "a[12]", 0, false},
		{"duplicate snapshots", []Event{taskEvent(StateWorking, Artifact{ArtifactID: "a", Parts: []Part{textPart("1")}}), taskEvent(StateWorking, Artifact{ArtifactID: "a", Parts: []Part{textPart("1")}})}, "a[1]", 0, false},
		{"another task's piece", []Event{taskEvent(StateWorking), {Artifact: &ArtifactUpdate{TaskID: "t2", Artifact: Artifact{ArtifactID: "a", Parts: []Part{textPart("x")}}}}}, "", 1, false},
		{"another task's snapshot", []Event{taskEvent(StateWorking), {Task: &Task{ID: "t2", Artifacts: []Artifact{{ArtifactID: "a"}}}}}, "", 1, false},
		{"no task id means this task", []Event{taskEvent(StateWorking), {Artifact: &ArtifactUpdate{Artifact: Artifact{ArtifactID: "a", Parts: []Part{textPart("x")}}}}}, "a[x]", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := fold(t, tt.events...)
			task := a.Task()
			if task.ID != "t1" || task.ContextID != "c1" || show(task) != tt.want {
				t.Errorf("task %s: %s, want %s", task.ID, show(task), tt.want)
			}
			if len(task.Notes) != tt.notes || a.Unsure() != tt.unsure {
				t.Errorf("notes %q, unsure %v", task.Notes, a.Unsure())
			}
			if task.Status.State == "" {
				t.Error("no state")
			}
		})
	}
}

// Names and metadata of a later piece complete the artifact.
func TestAggregateArtifactHead(t *testing.T) {
	first := piece("a", false, false, textPart("1"))
	first.Artifact.Artifact.Name, first.Artifact.Artifact.Metadata = "report", json.RawMessage(`{"a":1}`)
	second := piece("a", true, false, textPart("2"))
	second.Artifact.Artifact.Description = "about"
	third := piece("a", true, false, textPart("3"))
	third.Artifact.Artifact.Metadata, third.Artifact.Artifact.Extensions = json.RawMessage(`{"b":2}`), []string{"urn:x"}
	want := Artifact{ArtifactID: "a", Name: "report", Description: "about", Metadata: json.RawMessage(`{"b":2}`), Extensions: []string{"urn:x"}, Parts: []Part{textPart("123")}}
	if diff := cmp.Diff(want, fold(t, first, second, third).Task().Artifacts[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Status, progress and history: a superseded status message goes to the
// history once (specification 1.0.1, 3.7, 4.1.2).
func TestAggregateStatus(t *testing.T) {
	history := func(task *Task) string {
		var out []string
		for _, m := range task.History {
			out = append(out, m.MessageID)
		}
		return strings.Join(out, " ")
	}
	snapshot := func(state State, ids ...string) Event {
		ev := taskEvent(state)
		for _, id := range ids {
			ev.Task.History = append(ev.Task.History, Message{MessageID: id, Parts: []Part{textPart(id)}})
		}
		return ev
	}
	tests := []struct {
		name     string
		events   []Event
		state    State
		progress string
		message  string // id of the status message
		history  string
		notes    int
	}{
		{"superseded", []Event{status(StateWorking, "m1", "one"), status(StateWorking, "m2", "two"), status(StateCompleted, "m3", "three")}, StateCompleted, "three", "m3", "m1 m2", 0},
		{"final without message", []Event{status(StateWorking, "m1", "one"), status(StateCompleted, "", "")}, StateCompleted, "one", "", "m1", 0},
		{"duplicate status", []Event{status(StateWorking, "m1", "one"), status(StateWorking, "m1", "one"), status(StateWorking, "", "")}, StateWorking, "one", "m1", "", 0},
		{"without ids", []Event{status(StateWorking, "", "one"), status(StateWorking, "", "one"), status(StateWorking, "", "two")}, StateWorking, "two", "", "", 0},
		{"already in the agent's history", []Event{status(StateWorking, "m1", "one"), snapshot(StateWorking, "u1", "m1"), status(StateCompleted, "m2", "two")}, StateCompleted, "two", "m2", "u1 m1", 0},
		{"agent's history lacks ours", []Event{status(StateWorking, "m1", "one"), status(StateWorking, "m2", "two"), snapshot(StateCompleted, "u1")}, StateCompleted, "two", "", "u1 m1 m2", 0},
		{"snapshot without history keeps ours", []Event{snapshot(StateWorking, "u1"), taskEvent(StateCompleted)}, StateCompleted, "", "", "u1", 0},
		{"state missing", []Event{status(StateWorking, "m1", "one"), status("", "m2", "two")}, StateWorking, "two", "m2", "m1", 1},
		{"nothing before", []Event{status("", "m1", "one")}, StateSubmitted, "one", "m1", "", 1},
		{"no way back from a final state", []Event{status(StateCompleted, "m1", "one"), status(StateWorking, "m2", "two")}, StateCompleted, "one", "m1", "", 1},
		{"nor by a snapshot", []Event{status(StateFailed, "m1", "one"), taskEvent(StateWorking)}, StateFailed, "one", "m1", "", 1},
		{"interrupted and back", []Event{status(StateInputRequired, "m1", "which?"), status(StateWorking, "", "")}, StateWorking, "which?", "", "m1", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := fold(t, tt.events...)
			task := a.Task()
			id := ""
			if task.Status.Message != nil {
				id = task.Status.Message.MessageID
			}
			wantHistory := tt.history
			if tt.name == "without ids" {
				if len(task.History) != 1 {
					t.Errorf("history %v", task.History)
				}
				wantHistory, id = history(task), ""
			}
			if task.Status.State != tt.state || a.Progress() != tt.progress || id != tt.message || history(task) != wantHistory || len(task.Notes) != tt.notes {
				t.Errorf("state %s, progress %q, message %q, history %q, notes %q", task.Status.State, a.Progress(), id, history(task), task.Notes)
			}
		})
	}
}

func TestAggregateMessageAndMetadata(t *testing.T) {
	a := NewAggregate(0)
	if a.Task() != nil || a.Message() != nil || a.Progress() != "" || a.Notes() != nil {
		t.Error("an empty aggregate knows something")
	}
	m := &Message{MessageID: "m", Parts: []Part{textPart("hi")}}
	if err := a.Add(Event{Message: m, Notes: []string{"odd", "odd"}}); err != nil || a.Message() != m || a.Task() != nil {
		t.Errorf("%v %v", err, a.Message())
	}
	if !reflect.DeepEqual(a.Notes(), []string{"odd"}) {
		t.Errorf("notes %q", a.Notes())
	}
	up := status(StateWorking, "", "")
	up.Status.Metadata = json.RawMessage(`{"p":1}`)
	if got := fold(t, up).Task().Metadata; string(got) != `{"p":1}` {
		t.Errorf("metadata %s", got)
	}
	own := taskEvent(StateWorking)
	own.Task.Metadata = json.RawMessage(`{"own":1}`)
	if got := fold(t, own, up).Task().Metadata; string(got) != `{"own":1}` {
		t.Errorf("metadata %s", got)
	}
}

// A task that was handed out never changes, whatever is folded in afterwards,
// and it is the same until something changes.
func TestAggregateCopyOnWrite(t *testing.T) {
	named := textPart("own")
	named.Metadata = json.RawMessage(`{"x":1}`)
	shared := taskEvent(StateWorking, Artifact{ArtifactID: "a", Parts: append(make([]Part, 0, 8), textPart("s"))})
	events := []Event{
		shared,
		piece("a", true, false, textPart("1")),
		piece("a", true, false, textPart("2"), named, textPart("3")),
		status(StateWorking, "m1", "one"),
		piece("a", true, false, textPart("4")),
		piece("b", false, false, textPart("x")),
		piece("a", true, false, Part{Kind: PartData, Data: json.RawMessage(`1`)}),
		piece("a", true, false, textPart("5")),
		piece("b", true, false, textPart("y")),
		status(StateWorking, "m2", "two"),
		piece("a", false, false, textPart("new")),
		piece("a", true, false, textPart("er")),
		status(StateCompleted, "m3", "three"),
	}
	a := NewAggregate(0)
	var tasks []*Task
	var texts []string
	for _, ev := range events {
		if err := a.Add(ev); err != nil {
			t.Fatal(err)
		}
		task := a.Task()
		if a.Task() != task {
			t.Fatal("Task is not stable without a change")
		}
		tasks = append(tasks, task)
		texts = append(texts, dump(task))
	}
	for i, task := range tasks {
		if got := dump(task); got != texts[i] {
			t.Errorf("the task after event %d changed:\n%s\n%s", i, texts[i], got)
		}
	}
	if got := show(&Task{Artifacts: shared.Task.Artifacts}); got != "a[s]" || shared.Task.Artifacts[0].Parts[:2][1].Text != "" {
		t.Errorf("the event was changed: %s", got)
	}
	if got := show(tasks[len(tasks)-1]); got != "a[newer] b[xy]" {
		t.Errorf("in the end %s", got)
	}
}

func dump(task *Task) string {
	b, err := json.Marshal(task)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// The content kept is bounded; what was gathered before stays readable.
func TestAggregateLimit(t *testing.T) {
	for name, next := range map[string]func(i int) Event{
		"deltas":    func(i int) Event { return piece("a", true, false, textPart(strings.Repeat("x", 100))) },
		"parts":     func(i int) Event { return piece("a", true, false, Part{Kind: PartData, Data: json.RawMessage("1")}) },
		"artifacts": func(i int) Event { return piece(fmt.Sprint(i), false, false, textPart("x")) },
		"statuses":  func(i int) Event { return status(StateWorking, fmt.Sprint(i), "x") },
	} {
		a := NewAggregate(20000)
		var err error
		n := 0
		for ; err == nil && n < 100000; n++ {
			err = a.Add(next(n))
		}
		var e *Error
		if !errors.As(err, &e) || e.Cause != CauseLimit || n > 250 {
			t.Errorf("%s: %v after %d events", name, err, n)
		}
		if a.Task() == nil {
			t.Errorf("%s: the task is gone", name)
		}
	}
	// Replacing frees what was there.
	a := NewAggregate(25000)
	for i := range 1000 {
		if err := a.Add(piece("a", false, false, textPart(strings.Repeat("x", 10000)))); err != nil {
			t.Fatalf("replacement %d: %v", i, err)
		}
		if err := a.Add(taskEvent(StateWorking, Artifact{ArtifactID: "b", Parts: []Part{textPart(strings.Repeat("y", 10000))}})); err != nil {
			t.Fatalf("snapshot %d: %v", i, err)
		}
	}
	// Text joined counts as text, not as parts.
	a = NewAggregate(200000)
	for range 100000 {
		if err := a.Add(piece("a", true, false, textPart("x"))); err != nil {
			t.Fatal(err)
		}
	}
	a = NewAggregate(1 << 40)
	var err error
	for i := 0; err == nil && i <= maxArtifacts; i++ {
		err = a.Add(piece(fmt.Sprint(i), false, false, textPart("x")))
	}
	if err == nil {
		t.Error("no bound on artifacts")
	}
}

// Folding costs time in proportion to what comes, also when a task is taken
// after every event.
func TestAggregateLinear(t *testing.T) {
	run := func(n int, next func(i int) Event) time.Duration {
		a := NewAggregate(1 << 30)
		began := cpuTime()
		for i := range n {
			if err := a.Add(next(i)); err != nil {
				t.Fatal(err)
			}
			a.Task()
		}
		return cpuTime() - began
	}
	own := textPart("x")
	own.Metadata = json.RawMessage(`{}`)
	for name, next := range map[string]func(i int) Event{
		"deltas":   func(i int) Event { return piece("a", true, false, textPart("0123456789")) },
		"parts":    func(i int) Event { return piece("a", true, false, Part{Kind: PartData, Data: json.RawMessage("1")}) },
		"mixed":    func(i int) Event { return piece("a", true, false, [...]Part{own, textPart("y"), textPart("z")}[i%3]) },
		"statuses": func(i int) Event { return status(StateWorking, fmt.Sprint(i), "x") },
		"snapshots": func(i int) Event {
			return [...]Event{status(StateWorking, fmt.Sprint(i), "x"), {Task: &Task{ID: "t1", History: []Message{{MessageID: "u"}}}}}[i%2]
		},
	} {
		if spent := run(10000, next); spent > raceSlowdown*4*time.Second {
			t.Errorf("%s: 10000 events took %v", name, spent)
		}
	}
}

func BenchmarkAggregateDeltas(b *testing.B) {
	ev := piece("a", true, false, textPart("a word or two "))
	a := NewAggregate(1 << 40)
	for b.Loop() {
		if err := a.Add(ev); err != nil {
			b.Fatal(err)
		}
		a.Task()
	}
}
