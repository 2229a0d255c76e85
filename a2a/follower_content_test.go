package a2a

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// held is what a follower counts as content, and what it really has.
func held(f *Follower) (counted, real int64) {
	f.mu.Lock()
	counted = f.content
	all := make([]*exchange, 0, len(f.tasks))
	for _, x := range f.tasks {
		all = append(all, x)
	}
	f.mu.Unlock()
	for _, x := range all {
		x.mu.Lock()
		if x.agg != nil {
			real += x.agg.size
		}
		x.unlock()
	}
	return counted, real
}

// keptStream is a task whose stream goes on and whose reader has left.
func keptStream(t *testing.T, a *agentFake, f *Follower) *streamFake {
	t.Helper()
	streams := streamsOf(a)
	w := sendTo(t, f, askTask(""))
	st := <-streams
	a.put("t1", StateWorking, "")
	st.push(taskNews("t1", StateWorking, ""))
	waitFor(t, w, time.Second, "the task", inState(StateWorking))
	w.Keep(15 * time.Minute)
	w.Close()
	return st
}

func noted(s Snapshot, words string) bool {
	return strings.Contains(strings.Join(s.Notes, "\n"), words)
}

func refresh(t *testing.T, w *Watch) Snapshot {
	t.Helper()
	s, err := w.Refresh(t.Context())
	if err != nil {
		t.Error(err)
	}
	return s
}

// An agent that appends for ever to a task nobody follows costs next to
// nothing, and whoever comes has what the agent kept.
func TestEndlessStreamFollowedByNobody(t *testing.T) {
	whole := strings.Repeat("0123456789abcdef", 64)
	tests := []struct {
		name  string
		keeps bool // the agent returns by GetTask what it streamed
		note  string
	}{
		{"the agent keeps it", true, ""},
		{"the gateway alone had it", false, "bytes of the task's content were dropped while nobody read the task, and the agent does not return them"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			edit := func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }
			following(t, true, edit, func(t *testing.T, a *agentFake, f *Follower) {
				st := keptStream(t, a, f)
				var all strings.Builder
				for range 1000 {
					st.push(artifactNews("t1", "a", whole, true))
					all.WriteString(whole)
				}
				synctest.Wait()
				if counted, real := held(f); real > 8<<10 || counted > 8<<10 {
					t.Fatalf("%d bytes are held, %d counted", real, counted)
				}
				if tt.keeps {
					a.mu.Lock()
					a.tasks["t1"].Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: all.String()}}}}
					a.mu.Unlock()
				}
				w := joinTask(t, f, "t1")
				if s := w.Now(); !s.Partial || !inState(StateWorking)(s) || !noted(s, "1024000 bytes") {
					t.Errorf("before the agent is asked: partial %v, %s", s.Partial, describeSnapshot(s))
				}
				s := refresh(t, w)
				if tt.keeps && artifactText(s) != all.String() || s.Partial {
					t.Errorf("%d bytes came, partial %v", len(artifactText(s)), s.Partial)
				}
				if (tt.note != "") != noted(s, "dropped") || !noted(s, tt.note) {
					t.Errorf("notes %q", s.Notes)
				}
				go a.put("t1", StateCompleted, "")
				waitFor(t, w, time.Minute, "the end", isDone)
				w.Close()
			})
		})
	}
}

// Little is kept: agents that stream an artifact and do not return it later
// lose nothing.
func TestLittleContentStays(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		st := keptStream(t, a, f)
		st.push(artifactNews("t1", "a", strings.Repeat("x", 100<<10), true))
		time.Sleep(time.Minute)
		w := joinTask(t, f, "t1")
		defer w.Close()
		if s := w.Now(); s.Partial || len(artifactText(s)) != 100<<10 {
			t.Errorf("partial %v, %d bytes", s.Partial, len(artifactText(s)))
		}
		st.push(statusNews("t1", StateCompleted, ""))
		st.end(io.EOF)
	})
}

// Streams without GetTask: the stream stays, so the task is not lost, and the
// state comes by it.
func TestDroppedContentWithoutGetTask(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		a.set("get", fakeError(codeMethodNotFound, "no such method"))
		st := keptStream(t, a, f)
		st.push(artifactNews("t1", "a", strings.Repeat("x", 100<<10), true))
		synctest.Wait()
		w := joinTask(t, f, "t1")
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s, err := w.Refresh(ctx)
		if err == nil || s.Done || !s.Partial {
			t.Errorf("%v, %s", err, describeSnapshot(s))
		}
		for seq := s.Seq; ctx.Err() == nil; {
			s, _ = w.Next(ctx, seq)
			seq = s.Seq
		}
		if n := a.count("get"); n > 5 {
			t.Errorf("%d GetTasks within 10 s", n)
		}
		st.push(statusNews("t1", StateCompleted, "done"))
		s = waitFor(t, w, time.Minute, "the end", isDone)
		if !inState(StateCompleted)(s) || !noted(s, "102400 bytes") {
			t.Errorf("%s", describeSnapshot(s))
		}
	})
}

// Of many tasks that are watched and not read the longest unread lose their
// content, and have it again when somebody asks.
func TestContentOfAllTasksIsBounded(t *testing.T) {
	for _, end := range []State{StateWorking, StateCompleted} {
		edit := func(o *FollowerOptions) { o.ContentBytes = 64 << 10 }
		following(t, false, edit, func(t *testing.T, a *agentFake, f *Follower) {
			const tasks, size = 20, 10 << 10
			var all []*Watch
			for i := range tasks {
				id := fmt.Sprint("t", i)
				a.put(id, end, "")
				a.mu.Lock()
				a.tasks[id].Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: strings.Repeat("x", size)}}}}
				a.mu.Unlock()
				w := joinTask(t, f, id)
				defer w.Close()
				refresh(t, w)
				all = append(all, w)
				time.Sleep(linger + time.Second)
			}
			time.Sleep(time.Minute)
			if counted, real := held(f); real > 64<<10 || counted > 64<<10 {
				t.Errorf("%d bytes are held, %d counted", real, counted)
			}
			if s := all[0].Now(); !s.Partial || !inState(end)(s) || artifactText(s) != "" {
				t.Errorf("the longest unread: partial %v, %s", s.Partial, describeSnapshot(s))
			}
			if s := all[tasks-1].Now(); s.Partial || len(artifactText(s)) != size {
				t.Errorf("the latest read: partial %v, %d bytes", s.Partial, len(artifactText(s)))
			}
			before := all[0].Now()
			s := refresh(t, all[0])
			if s.Partial || len(artifactText(s)) != size || noted(s, "dropped") || s.Seq <= before.Seq {
				t.Errorf("asked for again: partial %v, %d bytes, %s", s.Partial, len(artifactText(s)), describeSnapshot(s))
			}
		})
	}
}

// What somebody waits for is never dropped, however much it is.
func TestContentBeingReadStays(t *testing.T) {
	edit := func(o *FollowerOptions) { o.ContentBytes, o.IdleBytes = 8<<10, 8<<10 }
	following(t, true, edit, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""))
		go func() {
			for range 100 {
				st.push(artifactNews("t1", "a", strings.Repeat("x", 1<<10), true))
				time.Sleep(time.Second)
			}
			st.push(statusNews("t1", StateCompleted, ""))
			st.end(io.EOF)
		}()
		s := waitFor(t, w, 5*time.Minute, "the end", isDone)
		if s.Partial || len(artifactText(s)) != 100<<10 {
			t.Errorf("partial %v, %d bytes", s.Partial, len(artifactText(s)))
		}
	})
}

// A message to a task whose content was dropped: its stream begins without the
// content, so GetTask has the last word.
func TestAnswerToATaskWithoutContent(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		st := keptStream(t, a, f)
		text := strings.Repeat("x", 20<<10)
		a.put("t1", StateInputRequired, "more?")
		st.push(artifactNews("t1", "a", text, false), statusNews("t1", StateInputRequired, "more?"))
		time.Sleep(time.Second)
		if _, real := held(f); real > 8<<10 {
			t.Errorf("%d bytes are held", real)
		}
		streams := streamsOf(a)
		w := sendTo(t, f, askTask("t1"))
		defer w.Close()
		st = <-streams
		a.put("t1", StateCompleted, "")
		a.mu.Lock()
		a.tasks["t1"].Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: text + "and more"}}}}
		a.mu.Unlock()
		st.push(statusNews("t1", StateWorking, ""), artifactNews("t1", "a", "and more", true), statusNews("t1", StateCompleted, ""))
		st.end(io.EOF)
		s := waitFor(t, w, time.Minute, "the end", isDone)
		if artifactText(s) != text+"and more" || s.Partial || noted(s, "dropped") {
			t.Errorf("%d bytes, partial %v, %s", len(artifactText(s)), s.Partial, describeSnapshot(s))
		}
	})
}

// An answer that nobody came for and that there is no task to ask for again.
func TestUnreadMessagesAreBounded(t *testing.T) {
	following(t, false, func(o *FollowerOptions) { o.ContentBytes = 16 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		a.onSend = func(context.Context, SendRequest) (Event, error) {
			return Event{Message: fakeMessage(strings.Repeat("x", 10<<10))}, nil
		}
		var all []*Watch
		for range 4 {
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			all = append(all, w)
			time.Sleep(linger + time.Second)
		}
		time.Sleep(10 * time.Second)
		if s := all[0].Now(); !s.Done || s.Message != nil || s.Err == nil || !strings.Contains(s.Err.Error(), "ask the agent again") {
			t.Errorf("the longest unread: %s", describeSnapshot(s))
		}
		if s := all[3].Now(); s.Message == nil {
			t.Errorf("the latest: %s", describeSnapshot(s))
		}
	})
}

// A cancel's answer is no whole task: what it lacks is asked for.
func TestCancelOfATaskWithoutContent(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		st := keptStream(t, a, f)
		text := strings.Repeat("x", 20<<10)
		st.push(artifactNews("t1", "a", text, true))
		a.mu.Lock()
		a.tasks["t1"].Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: text}}}}
		a.mu.Unlock()
		a.onCancel = func(id string) (*Task, error) { return taskNews(id, StateCanceled, "").Task, nil }
		synctest.Wait()
		w := joinTask(t, f, "t1")
		defer w.Close()
		s, err := w.Cancel(t.Context())
		if err != nil || !inState(StateCanceled)(s) || noted(s, "does not return") {
			t.Errorf("%v, %s", err, describeSnapshot(s))
		}
		a.onGetTask(func(id string) (*Task, error) {
			task := taskNews(id, StateCanceled, "").Task
			task.Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: text}}}}
			return task, nil
		})
		if s = refresh(t, w); s.Partial || artifactText(s) != text {
			t.Errorf("partial %v, %d bytes", s.Partial, len(artifactText(s)))
		}
	})
}
