package a2a

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func errorCode(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestCancel(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateWorking, "")
			w := joinTask(t, f, "t1")
			defer w.Close()
			s, err := w.Cancel(context.Background())
			if err != nil || !inState(StateCanceled)(s) || !s.Done {
				t.Errorf("%s, %v", describeSnapshot(s), err)
			}
			if s, err = w.Cancel(context.Background()); err != nil || !inState(StateCanceled)(s) {
				t.Errorf("the second time: %s, %v", describeSnapshot(s), err)
			}
			time.Sleep(time.Minute)
			if a.count("cancel") != 1 || a.count("get") != 0 {
				t.Errorf("%d cancels, %d GetTasks", a.count("cancel"), a.count("get"))
			}
		})
	}
}

func TestCancelsAtOnceShareOne(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		a.slow(time.Second)
		var wg sync.WaitGroup
		for i := range 10 {
			w := joinTask(t, f, "t1")
			wg.Go(func() {
				if i%3 == 2 {
					w.Abandon()
					return
				}
				s, err := w.Cancel(context.Background())
				if err != nil || !inState(StateCanceled)(s) {
					t.Errorf("%s, %v", describeSnapshot(s), err)
				}
				w.Close()
			})
		}
		wg.Wait()
		if n := a.count("cancel"); n != 1 {
			t.Errorf("%d cancels", n)
		}
	})
}

func TestCancelBeforeTheIDIsKnown(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := w.Cancel(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		got := make(chan Snapshot, 1)
		go func() {
			s, err := w.Cancel(context.Background())
			if err != nil {
				t.Error(err)
			}
			got <- s
		}()
		synctest.Wait()
		if a.count("cancel") != 0 {
			t.Error("cancelled before the id was known")
		}
		a.put("t1", StateWorking, "")
		st.push(taskNews("t1", StateWorking, ""))
		if s := <-got; !inState(StateCanceled)(s) {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		if n := a.count("cancel"); n != 1 {
			t.Errorf("%d cancels", n)
		}
	})
}

func TestNothingToCancel(t *testing.T) {
	tests := []struct {
		name string
		end  func(st *streamFake)
		code int
		err  bool
	}{
		{"a message", func(st *streamFake) { st.push(Event{Message: fakeMessage("hi")}) }, 0, false},
		{"a failed send", func(st *streamFake) { st.end(io.EOF) }, 0, false},
		{"completed", func(st *streamFake) { st.push(taskNews("", StateCompleted, "")); st.end(io.EOF) }, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
				streams := streamsOf(a)
				w := sendTo(t, f, askTask(""))
				defer w.Close()
				st := <-streams
				got := make(chan error, 1)
				go func() {
					_, err := w.Cancel(context.Background())
					got <- err
				}()
				synctest.Wait()
				tt.end(st)
				if err := <-got; err != nil {
					t.Errorf("error %v", err)
				}
				time.Sleep(time.Minute)
				if a.count("cancel") != 0 {
					t.Error("CancelTask was sent")
				}
			})
		})
	}
}

func TestCancelOfAnEndedTask(t *testing.T) {
	for _, state := range []State{StateCompleted, StateFailed, StateRejected} {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", state, "")
			w := joinTask(t, f, "t1")
			defer w.Close()
			// Nothing is known yet: the agent says no, and then why.
			if _, err := w.Cancel(context.Background()); errorCode(err) != CodeTaskNotCancelable {
				t.Errorf("error %v", err)
			}
			waitFor(t, w, time.Second, "the end", inState(state))
			if s, err := w.Cancel(context.Background()); errorCode(err) != CodeTaskNotCancelable || !inState(state)(s) {
				t.Errorf("%s, %v", describeSnapshot(s), err)
			}
			if n := a.count("cancel"); n != 1 {
				t.Errorf("%d cancels", n)
			}
		})
	}
}

// A refused cancel changes nothing: the task is followed on.
func TestRefusedCancel(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateWorking, "")
			a.onCancel = func(string) (*Task, error) { return nil, fakeError(CodeTaskNotCancelable, "too late") }
			w := joinTask(t, f, "t1")
			defer w.Close()
			waitFor(t, w, time.Second, "the task", inState(StateWorking))
			for range 2 {
				s, err := w.Cancel(context.Background())
				if errorCode(err) != CodeTaskNotCancelable || s.Done || s.Err != nil {
					t.Errorf("%s, %v", describeSnapshot(s), err)
				}
			}
			if n := a.count("cancel"); n != 2 {
				t.Errorf("%d cancels for two explicit wishes", n)
			}
			go func() {
				time.Sleep(10 * time.Second)
				a.put("t1", StateCompleted, "")
			}()
			waitFor(t, w, 20*time.Second, "the end", isDone)
		})
	}
}

func TestCancelOfAForgottenTask(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		w := joinTask(t, f, "t1")
		defer w.Close()
		if _, err := w.Cancel(context.Background()); errorCode(err) != CodeTaskNotFound {
			t.Errorf("error %v", err)
		}
		s := waitFor(t, w, time.Second, "the loss", isDone)
		if !s.Lost {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		if _, err := w.Cancel(context.Background()); errorCode(err) != CodeTaskNotFound {
			t.Errorf("after the loss: error %v", err)
		}
	})
}

// An agent may go on for a while after it has accepted a cancel.
func TestCancelTakesTime(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateWorking, "")
			a.onCancel = func(id string) (*Task, error) { return a.put(id, StateWorking, "stopping"), nil }
			w := joinTask(t, f, "t1")
			defer w.Close()
			s, err := w.Cancel(context.Background())
			if err != nil || s.Done {
				t.Errorf("%s, %v", describeSnapshot(s), err)
			}
			time.Sleep(10 * time.Second)
			a.put("t1", StateCanceled, "")
			time.Sleep(6 * time.Second)
			if s := w.Now(); !inState(StateCanceled)(s) {
				t.Errorf("nobody waits, but somebody cancelled: %s", describeSnapshot(s))
			}
			if n := a.count("cancel"); n != 1 {
				t.Errorf("%d cancels", n)
			}
		})
	}
}

// A GetTask that was on its way when the task was cancelled brings old news.
func TestCancelAgainstOldNews(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.onGet = func(string) (*Task, error) {
			time.Sleep(5 * time.Second)
			return taskNews("t1", StateWorking, "old news").Task, nil
		}
		a.onCancel = func(string) (*Task, error) { return taskNews("t1", StateWorking, "stopping").Task, nil }
		w := joinTask(t, f, "t1")
		defer w.Close()
		go func() { _, _ = w.Refresh(context.Background()) }()
		time.Sleep(time.Second)
		if s, err := w.Cancel(context.Background()); err != nil || s.Progress != "stopping" {
			t.Errorf("%s, %v", describeSnapshot(s), err)
		}
		time.Sleep(4500 * time.Millisecond)
		if s := w.Now(); s.Progress != "stopping" {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		w.Close()
		time.Sleep(time.Minute)
	})
}

func TestCancelAgainstCompletion(t *testing.T) {
	for delay := range 20 {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			st := <-streams
			a.put("t1", StateWorking, "")
			a.join("t1", st)
			st.push(taskNews("t1", StateWorking, ""))
			waitFor(t, w, time.Second, "the task", inState(StateWorking))
			a.slow(50 * time.Millisecond)
			go func() {
				time.Sleep(time.Duration(delay) * 10 * time.Millisecond)
				a.mu.Lock()
				over := a.tasks["t1"].Status.State.Terminal()
				a.mu.Unlock()
				if !over {
					a.put("t1", StateCompleted, "")
				}
			}()
			time.Sleep(100 * time.Millisecond)
			s, err := w.Cancel(context.Background())
			if !s.Done {
				s = waitFor(t, w, time.Second, "the end", isDone)
			}
			switch {
			case inState(StateCanceled)(s) && err == nil:
			case inState(StateCompleted)(s) && errorCode(err) == CodeTaskNotCancelable:
			default:
				t.Errorf("%s, %v", describeSnapshot(s), err)
			}
			time.Sleep(time.Minute)
			if now := w.Now(); now.Seq != s.Seq {
				t.Errorf("%s became %s", describeSnapshot(s), describeSnapshot(now))
			}
			if n := a.count("cancel"); n > 1 {
				t.Errorf("%d cancels", n)
			}
		})
	}
}

func TestAbandon(t *testing.T) {
	t.Run("a task", func(t *testing.T) {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			st := <-streams
			a.put("t1", StateWorking, "")
			st.push(taskNews("t1", StateWorking, ""))
			waitFor(t, w, time.Second, "the task", inState(StateWorking))
			w.Abandon()
			w.Abandon()
			w.Close()
			synctest.Wait()
			if a.count("cancel") != 1 || !st.isClosed() {
				t.Errorf("%d cancels, stream closed: %v", a.count("cancel"), st.isClosed())
			}
		})
	})
	t.Run("before the id is known", func(t *testing.T) {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			st := <-streams
			w.Abandon()
			time.Sleep(30 * time.Second)
			a.put("t1", StateWorking, "")
			st.push(taskNews("t1", StateWorking, ""))
			synctest.Wait()
			if a.count("cancel") != 1 || !st.isClosed() {
				t.Errorf("%d cancels, stream closed: %v", a.count("cancel"), st.isClosed())
			}
		})
	})
	t.Run("and the id never comes", func(t *testing.T) {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			st := <-streams
			w.Abandon()
			time.Sleep(3 * time.Minute)
			if a.count("cancel") != 0 || !st.isClosed() {
				t.Errorf("%d cancels, stream closed: %v", a.count("cancel"), st.isClosed())
			}
		})
	})
	t.Run("a message comes", func(t *testing.T) {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			st := <-streams
			w.Abandon()
			st.push(Event{Message: fakeMessage("hi")})
			synctest.Wait()
			if a.count("cancel") != 0 {
				t.Errorf("%d cancels", a.count("cancel"))
			}
		})
	})
	t.Run("after a cancel", func(t *testing.T) {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateWorking, "")
			a.onCancel = func(id string) (*Task, error) { return a.put(id, StateWorking, ""), nil }
			w := joinTask(t, f, "t1")
			if _, err := w.Cancel(context.Background()); err != nil {
				t.Error(err)
			}
			w.Abandon()
			synctest.Wait()
			if n := a.count("cancel"); n != 1 {
				t.Errorf("%d cancels", n)
			}
		})
	})
	t.Run("others go on", func(t *testing.T) {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateWorking, "")
			w, other := joinTask(t, f, "t1"), joinTask(t, f, "t1")
			defer other.Close()
			w.Abandon()
			waitFor(t, other, time.Second, "the end", inState(StateCanceled))
		})
	})
}

// A cancel in flight outlives the follower's work for a moment.
func TestCancelAtShutdown(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			a := newAgentFake(t, true)
			f := NewFollower(FollowerOptions{Alias: "acme", Upstream: func(context.Context) (Upstream, error) { return a, nil }})
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- f.Run(ctx) }()
			synctest.Wait()
			a.put("t1", StateWorking, "")
			w := joinTask(t, f, "t1")
			a.slow(takes)
			w.Abandon()
			synctest.Wait()
			start := time.Now()
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > cancelGrace {
				t.Errorf("the end took %v", took)
			}
			a.mu.Lock()
			state := a.tasks["t1"].Status.State
			a.mu.Unlock()
			if done := takes < cancelGrace; (state == StateCanceled) != done {
				t.Errorf("a cancel that takes %v left the task %s", takes, state)
			}
		})
	}
}

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
			a.onStream = func(_ SendRequest, st *streamFake) {
				st.push(taskNews("t1", StateInputRequired, "which year?"))
				if ends {
					st.end(io.EOF)
				}
			}
			changed := make(chan struct{}, 8)
			w := sendTo(t, f, askTask("t1"))
			defer w.Close()
			w.OnChange(func() { changed <- struct{}{} })
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

func TestCancelOfAnAnswer(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateInputRequired, "which year?")
		first := joinTask(t, f, "t1")
		defer first.Close()
		waitFor(t, first, time.Second, "the question", inState(StateInputRequired))
		streams := streamsOf(a)
		w := sendTo(t, f, askTask("t1"))
		st := <-streams
		a.slow(time.Second)
		var wg sync.WaitGroup
		for _, w := range []*Watch{w, first} {
			wg.Go(func() {
				if s, err := w.Cancel(context.Background()); err != nil || !inState(StateCanceled)(s) {
					t.Errorf("%s, %v", describeSnapshot(s), err)
				}
			})
		}
		synctest.Wait()
		st.push(taskNews("t1", StateWorking, ""))
		wg.Wait()
		w.Close()
		if n := a.count("cancel"); n != 1 {
			t.Errorf("%d cancels", n)
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
