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

// endTask ends the task, so that it is not kept any longer.
func endTask(a *agentFake, w *Watch) {
	a.put("t1", StateCompleted, "")
	time.Sleep(time.Minute)
	_, _ = w.Refresh(context.Background())
	w.Close()
}

// A GetTask that asks for dropped content is overtaken by the stream: what the
// agent said later stands, and the content is asked for once more.
func TestDroppedContentAskedForWhileTheTaskGoesOn(t *testing.T) {
	text := strings.Repeat("x", 20<<10)
	for _, next := range []State{StateInputRequired, StateCompleted} {
		t.Run(string(next), func(t *testing.T) {
			following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
				st := keptStream(t, a, f)
				st.push(artifactNews("t1", "a", text, true))
				synctest.Wait()
				whole := func(s State) *Task {
					task := taskNews("t1", s, "").Task
					task.Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: text}}}}
					return task
				}
				slow := make(chan struct{}, 1)
				slow <- struct{}{}
				a.onGetTask(func(string) (*Task, error) {
					select {
					case <-slow: // what it was when it was asked
						time.Sleep(100 * time.Millisecond)
						return whole(StateWorking), nil
					default:
						return whole(next), nil
					}
				})
				w := joinTask(t, f, "t1")
				defer func() {
					a.onGetTask(nil)
					st.push(statusNews("t1", StateCompleted, ""))
					st.end(io.EOF)
					endTask(a, w)
				}()
				time.AfterFunc(50*time.Millisecond, func() {
					st.push(statusNews("t1", next, ""))
					if next.Terminal() {
						st.end(io.EOF)
					}
				})
				s := waitFor(t, w, 3*time.Second, "the state", inState(next))
				if s.Partial {
					s = refresh(t, w)
				}
				if s.Partial || artifactText(s) != text || !inState(next)(s) || noted(s, "ignored") || noted(s, "dropped") {
					t.Errorf("partial %v, %d bytes, %s", s.Partial, len(artifactText(s)), describeSnapshot(s))
				}
			})
		})
	}
}

// A task of many artifacts that is polled while nobody reads it has lost
// nothing when somebody does.
func TestManyArtifactsDroppedAndPolled(t *testing.T) {
	following(t, false, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		const artifacts, size = 3 * outlineArtifacts, 1 << 10
		a.put("t1", StateWorking, "")
		a.mu.Lock()
		for i := range artifacts {
			a.tasks["t1"].Artifacts = append(a.tasks["t1"].Artifacts,
				Artifact{ArtifactID: fmt.Sprint("a", i), Parts: []Part{{Kind: PartText, Text: strings.Repeat("x", size)}}})
		}
		a.mu.Unlock()
		w := joinTask(t, f, "t1")
		refresh(t, w)
		w.Keep(time.Hour)
		w.Close()
		before := a.count("get")
		time.Sleep(10 * time.Minute)
		if n := a.count("get") - before; n < 3 {
			t.Fatalf("%d polls, so this tests nothing", n)
		}
		w = joinTask(t, f, "t1")
		defer endTask(a, w)
		if s := w.Now(); !s.Partial || !noted(s, fmt.Sprint(artifacts*size, " bytes")) {
			t.Errorf("before the agent is asked: partial %v, notes %q", s.Partial, s.Notes)
		}
		if s := refresh(t, w); s.Partial || len(artifactText(s)) != artifacts*size || noted(s, "dropped") {
			t.Errorf("partial %v, %d bytes, notes %q", s.Partial, len(artifactText(s)), s.Notes)
		}
	})
}

// An agent that cannot return what was dropped is asked ever more rarely,
// however much its stream says to whoever waits.
func TestDroppedContentAskedForEverMoreRarely(t *testing.T) {
	for _, refreshes := range []bool{false, true} {
		droppedContentAskedForEverMoreRarely(t, refreshes)
	}
}

// refreshes has the reader ask at every change, as a listener to a task does.
func droppedContentAskedForEverMoreRarely(t *testing.T, refreshes bool) {
	following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		a.set("get", &Error{Cause: CauseLimit, Message: "the answer is larger than limits.replyBytes"})
		st := keptStream(t, a, f)
		st.push(artifactNews("t1", "a", strings.Repeat("x", 100<<10), true))
		synctest.Wait()
		w := joinTask(t, f, "t1")
		defer w.Close()
		before := a.count("get")
		go func() {
			for i := range 600 {
				st.push(statusNews("t1", StateWorking, fmt.Sprint("step ", i)))
				time.Sleep(100 * time.Millisecond)
			}
			st.push(statusNews("t1", StateCompleted, ""))
			st.end(io.EOF)
		}()
		s := waitFor(t, w, 2*time.Minute, "the end", func(s Snapshot) bool {
			if refreshes && s.Partial && !s.Done {
				_, _ = w.Refresh(t.Context())
			}
			return s.Done
		})
		if n := a.count("get") - before; n < 2 || n > 10 {
			t.Errorf("%d GetTasks within a minute", n)
		}
		if !s.Partial || !inState(StateCompleted)(s) {
			t.Errorf("partial %v, %s", s.Partial, describeSnapshot(s))
		}
	})
}

// Messages of the agent that come, and go, while a task is without its content
// are missed as those before are.
func TestMessagesThatCameWhileNobodyRead(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
			st := keptStream(t, a, f)
			st.push(artifactNews("t1", "a", strings.Repeat("x", 10<<10), true))
			for i := range 3 {
				st.push(statusNews("t1", StateWorking, fmt.Sprint("finding ", i)))
			}
			st.push(statusNews("t1", StateWorking, "writing it up"))
			synctest.Wait()
			a.put("t1", StateWorking, "writing it up")
			a.mu.Lock()
			a.tasks["t1"].Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: strings.Repeat("x", 10<<10)}}}}
			if keeps {
				for i := range 3 {
					a.tasks["t1"].History = append(a.tasks["t1"].History, *fakeMessage(fmt.Sprint("finding ", i)))
				}
			}
			a.mu.Unlock()
			w := joinTask(t, f, "t1")
			defer endTask(a, w)
			s := refresh(t, w)
			if s.Partial || noted(s, "earlier messages of the task were dropped") == keeps {
				t.Errorf("the agent keeps them: %v; partial %v, notes %q", keeps, s.Partial, s.Notes)
			}
		})
	}
}

// A long message in a task's status is cut where its content is dropped: it is
// had again, or said to be cut.
func TestLongStatusMessageDropped(t *testing.T) {
	text := strings.Repeat("y", 100<<10)
	for _, keeps := range []bool{true, false} {
		following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
			st := keptStream(t, a, f)
			st.push(statusNews("t1", StateInputRequired, text))
			time.Sleep(time.Second)
			if counted, _ := held(f); counted > 8<<10 {
				t.Fatalf("%d bytes are held", counted)
			}
			shown := ""
			if keeps {
				shown = text
			}
			a.put("t1", StateInputRequired, shown)
			w := joinTask(t, f, "t1")
			defer endTask(a, w)
			s := refresh(t, w)
			got := ""
			if s.Task.Status.Message != nil {
				got = messageText(s.Task.Status.Message)
			}
			if s.Partial || keeps != (got == text) || keeps == noted(s, "dropped while nobody read") {
				t.Errorf("the agent keeps it: %v; partial %v, %d bytes, notes %q", keeps, s.Partial, len(got), s.Notes)
			}
		})
	}
}

// A stream that is joined without the content brings what comes; a reader who
// asks has the rest at once, not only when the task settles.
func TestDroppedContentBehindABareStream(t *testing.T) {
	text := strings.Repeat("x", 20<<10)
	following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		st := keptStream(t, a, f)
		st.push(artifactNews("t1", "a", text, true))
		synctest.Wait()
		st.end(&Error{Cause: CauseReset, Message: "connection reset"})
		time.Sleep(time.Second)
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		defer w.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for seq := w.Now().Seq; ctx.Err() == nil; {
			s, _ := w.Next(ctx, seq)
			seq = s.Seq
		}
		if a.openStreams() != 1 {
			t.Fatalf("%d streams are open, so this tests nothing", a.openStreams())
		}
		a.mu.Lock()
		a.tasks["t1"].Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: text}}}}
		a.mu.Unlock()
		if s := refresh(t, w); s.Partial || artifactText(s) != text || noted(s, "dropped") {
			t.Errorf("partial %v, %d bytes, notes %q", s.Partial, len(artifactText(s)), s.Notes)
		}
		go a.put("t1", StateCompleted, "")
		waitFor(t, w, time.Minute, "the end", isDone)
	})
}

// While all that is held is being read, there is nothing to drop: it is looked
// for now and then, not after each event.
func TestContentThatAllIsReadIsLookedAtRarely(t *testing.T) {
	var c trimClock
	now, looks := time.Now(), 0
	for range 1000 {
		if c.due(now, true) {
			looks++
			c.at = now.Add(linger) // still too much
		}
		now = now.Add(10 * time.Millisecond)
	}
	if looks < 30 || looks > 41 {
		t.Errorf("%d looks within 10 s", looks)
	}
	if c.at = (time.Time{}); c.due(now.Add(time.Hour), false) {
		t.Error("a look that nobody asked for")
	}
	if !c.due(now.Add(time.Hour), true) {
		t.Error("the first look has to wait")
	}
}

// A stream says that a task has ended, and GetTask, which is to bring what was
// dropped, no longer knows it: the task has ended, it is not lost.
func TestEndedTaskThatGetTaskDoesNotKnow(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.IdleBytes = 8 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		st := keptStream(t, a, f)
		st.push(artifactNews("t1", "a", strings.Repeat("x", 20<<10), true))
		synctest.Wait()
		a.onGetTask(func(string) (*Task, error) { return nil, fakeNotFound() })
		w := joinTask(t, f, "t1")
		defer w.Close()
		time.AfterFunc(time.Second, func() {
			st.push(statusNews("t1", StateCompleted, "done"))
			st.end(io.EOF)
		})
		s := waitFor(t, w, time.Minute, "the end", isDone)
		if !inState(StateCompleted)(s) || s.Lost || s.Err != nil || !s.Partial || !noted(s, "20480 bytes") {
			t.Errorf("partial %v, %s", s.Partial, describeSnapshot(s))
		}
	})
}
