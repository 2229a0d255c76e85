package a2a

import (
	"context"
	"errors"
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
			time.Sleep(time.Second)
			if s := w.Now(); !inState(state)(s) {
				t.Errorf("after a refused cancel nobody looked why: %s", describeSnapshot(s))
			}
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
