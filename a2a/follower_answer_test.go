package a2a

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// The answer to a question joins the task that is followed already.
func TestAnswerToAQuestion(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		for _, watched := range []bool{true, false} {
			for _, echo := range []bool{true, false} {
				t.Run(fmt.Sprintf("streaming=%v,watched=%v,echo=%v", streaming, watched, echo), func(t *testing.T) {
					following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
						testAnswer(t, a, f, watched, echo)
					})
				})
			}
		}
	}
}

func testAnswer(t *testing.T, a *agentFake, f *Follower, watched, echo bool) {
	a.put("t1", StateInputRequired, "which year?")
	first := joinTask(t, f, "t1")
	waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
	if watched {
		defer first.Close()
	} else {
		first.Close()
	}
	streams := streamsOf(a)
	next := func(s State, text string) Event {
		return Event{Task: a.put("t1", s, text)}
	}
	a.onSend = func(context.Context, SendRequest) (Event, error) {
		if echo {
			return taskNews("t1", StateInputRequired, "which year?"), nil
		}
		return next(StateWorking, ""), nil
	}
	w := sendTo(t, f, askTask("t1"))
	defer w.Close()
	if f.Counts().Tasks > 2 {
		t.Errorf("counts %+v", f.Counts())
	}
	seen := make(chan Snapshot, 1)
	go func() {
		seen <- waitFor(t, w, time.Minute, "the outcome", func(s Snapshot) bool {
			if inState(StateInputRequired)(s) && messageText(s.Task.Status.Message) == "which year?" {
				t.Errorf("the old question came as the outcome: %s", describeSnapshot(s))
			}
			return inState(StateInputRequired)(s) || s.Done
		})
	}()
	time.Sleep(100 * time.Millisecond)
	if s := w.Now(); s.Task != nil && s.Task.Status.State == StateInputRequired {
		t.Errorf("the old question shows: %s", describeSnapshot(s))
	}
	push := func(Event) {}
	if a.Streams() {
		st := <-streams
		push = func(ev Event) { st.push(ev) }
		if echo {
			push(taskNews("t1", StateInputRequired, "which year?"))
		}
	}
	time.Sleep(time.Second)
	push(next(StateWorking, "on it"))
	time.Sleep(time.Second)
	push(next(StateInputRequired, "which month?"))
	s := <-seen
	if messageText(s.Task.Status.Message) != "which month?" || s.Seq == 0 || len(s.Notes) != 0 {
		t.Errorf("outcome: %s", describeSnapshot(s))
	}
	if watched {
		got := waitFor(t, first, time.Second, "the new question", func(s Snapshot) bool {
			return inState(StateInputRequired)(s) && messageText(s.Task.Status.Message) == "which month?"
		})
		if got.Task != s.Task {
			t.Error("the two watches do not share the task")
		}
		if c := f.Counts(); c.Tasks != 1 || c.Watches != 2 {
			t.Errorf("counts %+v", c)
		}
	}
}

// An agent that asks the very same again is believed after a while.
func TestSameQuestionAgain(t *testing.T) {
	for _, ends := range []bool{true, false} {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateInputRequired, "which year?")
			first := joinTask(t, f, "t1")
			defer first.Close()
			waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
			listening := make(chan struct{})
			a.onStream = func(_ SendRequest, st *streamFake) {
				<-listening
				st.push(taskNews("t1", StateInputRequired, "which year?"))
				if ends {
					st.end(io.EOF)
				}
			}
			changed := make(chan struct{}, 8)
			w := sendTo(t, f, askTask("t1"))
			defer w.Close()
			w.OnChange(func() { changed <- struct{}{} })
			close(listening)
			start := time.Now()
			waitFor(t, w, time.Minute, "the question", inState(StateInputRequired))
			took := time.Since(start)
			if ends && took > time.Second || !ends && took != 5*time.Second {
				t.Errorf("shown after %v", took)
			}
			synctest.Wait()
			if len(changed) == 0 {
				t.Error("the listener was not told")
			}
		})
	}
}

// A failed answer is the answer's trouble, not the task's.
func TestFailedAnswerLeavesTheTask(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateInputRequired, "which year?")
		first := joinTask(t, f, "t1")
		defer first.Close()
		s := waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
		a.set("stream", fakeError(-32602, "bad"))
		w := sendTo(t, f, askTask("t1"))
		defer w.Close()
		if s := waitFor(t, w, time.Second, "the error", isDone); errorCode(s.Err) != -32602 || s.Lost {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		if now := first.Now(); now.Seq != s.Seq {
			t.Errorf("the task: %s", describeSnapshot(now))
		}
	})
}

// The agent may answer in a direct message, or in a new task.
func TestAnswerElsewhere(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateInputRequired, "which year?")
		first := joinTask(t, f, "t1")
		defer first.Close()
		waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
		a.onStream = func(_ SendRequest, st *streamFake) {
			st.push(Event{Message: fakeMessage("I did not understand")})
		}
		w := sendTo(t, f, askTask("t1"))
		defer w.Close()
		if s := waitFor(t, w, time.Second, "the message", isDone); s.Message == nil || s.Task != nil {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		a.onStream = func(_ SendRequest, st *streamFake) { st.push(taskNews("t2", StateInputRequired, "which year?")) }
		w2 := sendTo(t, f, askTask("t1"))
		defer w2.Close()
		if s := waitFor(t, w2, time.Second, "the task", inState(StateInputRequired)); s.Task.ID != "t2" || len(s.Notes) != 1 {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
	})
}

// An agent that goes on with a task that had ended: the end stays the end for
// those who saw it, and is not the outcome of the new message.
func TestMessageToAnEndedTask(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateCompleted, "")
		first := joinTask(t, f, "t1")
		defer first.Close()
		old := waitFor(t, first, time.Second, "the end", isDone)
		streams := streamsOf(a)
		w := sendTo(t, f, askTask("t1"))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""))
		s := waitFor(t, w, time.Second, "the task", inState(StateWorking))
		if s.Done || first.Now().Seq != old.Seq {
			t.Errorf("%s; the first: %s", describeSnapshot(s), describeSnapshot(first.Now()))
		}
		st.push(taskNews("t1", StateFailed, ""))
		st.end(io.EOF)
		waitFor(t, w, time.Second, "the end", inState(StateFailed))
		if !inState(StateCompleted)(first.Now()) {
			t.Errorf("the first: %s", describeSnapshot(first.Now()))
		}
	})
}

// Pieces must not be folded from the old and the new stream.
func TestAnswerTakesTheStreamOver(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		first := sendTo(t, f, askTask(""))
		defer first.Close()
		old := <-streams
		old.push(taskNews("t1", StateWorking, ""), artifactNews("t1", "a", "one ", false), statusNews("t1", StateInputRequired, "more?"))
		waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
		w := sendTo(t, f, askTask("t1"))
		defer w.Close()
		st := <-streams
		st.push(statusNews("t1", StateWorking, ""))
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		synctest.Wait()
		if !old.isClosed() {
			t.Error("the old stream is still open")
		}
		old.push(artifactNews("t1", "a", "two ", true))
		st.push(artifactNews("t1", "a", "two ", true), statusNews("t1", StateCompleted, ""))
		for _, w := range []*Watch{w, first} {
			if s := waitFor(t, w, time.Second, "the end", isDone); artifactText(s) != "one two " {
				t.Errorf("text %q", artifactText(s))
			}
		}
	})
}

// A GetTask that was on its way before the answer brings the old question.
func TestAnswerAgainstOldNews(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateInputRequired, "which year?")
		first := joinTask(t, f, "t1")
		defer first.Close()
		waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
		time.Sleep(time.Second)
		a.onGetTask(func(string) (*Task, error) {
			time.Sleep(3 * time.Second)
			return taskNews("t1", StateInputRequired, "which year?").Task, nil
		})
		got := make(chan Snapshot, 1)
		go func() {
			s, err := first.Refresh(context.Background())
			if err != nil {
				t.Error(err)
			}
			got <- s
		}()
		time.Sleep(time.Second)
		streams := streamsOf(a)
		w := sendTo(t, f, askTask("t1"))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""))
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		if s := <-got; !inState(StateWorking)(s) {
			t.Errorf("old news: %s", describeSnapshot(s))
		}
		st.push(statusNews("t1", StateCompleted, ""))
		waitFor(t, w, time.Second, "the end", isDone)
	})
}

// What came before the id was known belongs to the task that the id names.
func TestPiecesBeforeTheIDOfAFollowedTask(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateInputRequired, "which year?")
		first := joinTask(t, f, "t1")
		defer first.Close()
		waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
		streams := streamsOf(a)
		w := sendTo(t, f, askTask("t1"))
		defer w.Close()
		st := <-streams
		st.push(artifactNews("", "a", "early", false))
		s := waitFor(t, w, time.Second, "a piece", func(s Snapshot) bool { return artifactText(s) != "" })
		st.push(statusNews("t1", StateWorking, ""), statusNews("t1", StateCompleted, ""))
		for _, w := range []*Watch{w, first} {
			if s := waitFor(t, w, time.Second, "the end", isDone); artifactText(s) != "early" || s.Task.ID != "t1" {
				t.Errorf("%s, text %q", describeSnapshot(s), artifactText(s))
			}
		}
		if now := w.Now(); now.Seq <= s.Seq {
			t.Errorf("Seq went from %d to %d", s.Seq, now.Seq)
		}
	})
}

// The answer to a blocking send is what the agent made of the message.
func TestSameQuestionFromABlockingSend(t *testing.T) {
	following(t, false, func(o *FollowerOptions) { o.UnaryBlocking = true }, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateInputRequired, "which year?")
		first := joinTask(t, f, "t1")
		defer first.Close()
		waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
		a.onSend = func(context.Context, SendRequest) (Event, error) {
			return taskNews("t1", StateInputRequired, "which year?"), nil
		}
		w := sendTo(t, f, askTask("t1"))
		defer w.Close()
		waitFor(t, w, time.Second, "the question", inState(StateInputRequired))
	})
}
