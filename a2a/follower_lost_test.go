package a2a

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLost(t *testing.T) {
	refusal := fakeError(-32603, "database is down")
	tests := []struct {
		name        string
		err         *Error
		least, most time.Duration
		polls       int
		trouble     string
	}{
		{"task not found", fakeNotFound(), 0, 6 * time.Second, 2, ""},
		{"refused three times", refusal, 2 * time.Second, 12 * time.Second, 4,
			"the agent does not tell how the task stands (database is down (code -32603)); trying again"},
		{"no connection", refusedDial(), 5 * time.Minute, 6 * time.Minute, 20,
			"the agent cannot be reached (connection refused by 127.0.0.1:9101); trying again"},
		{"no A2A", &Error{Cause: CauseProtocol, Message: "HTML instead of JSON"}, 5 * time.Minute, 6 * time.Minute, 20,
			"the agent does not tell how the task stands (HTML instead of JSON); trying again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
				a.put("t1", StateWorking, "")
				w := joinTask(t, f, "t1")
				defer w.Close()
				waitFor(t, w, time.Second, "the task", inState(StateWorking))
				a.set("get", tt.err)
				start := time.Now()
				var trouble string
				s := waitFor(t, w, 10*time.Minute, "the loss", func(s Snapshot) bool {
					if s.Trouble != "" {
						trouble = s.Trouble
						if s.Done || s.Lost || s.Err != nil || !inState(StateWorking)(s) {
							t.Errorf("in trouble: %s", describeSnapshot(s))
						}
					}
					return s.Done
				})
				took := time.Since(start)
				if took < tt.least || took > tt.most || a.count("get") < tt.polls {
					t.Errorf("lost after %v and %d polls, want %v to %v", took, a.count("get"), tt.least, tt.most)
				}
				var e *Error
				if !s.Lost || !errors.As(s.Err, &e) || e.Message != tt.err.Message || s.Trouble != "" || s.Task == nil {
					t.Errorf("snapshot: %s", describeSnapshot(s))
				}
				if trouble != tt.trouble {
					t.Errorf("trouble %q, want %q", trouble, tt.trouble)
				}
				// A later look starts anew: the agent may have come back.
				a.set("get", nil)
				again := joinTask(t, f, "t1")
				defer again.Close()
				if s := waitFor(t, again, time.Second, "the task", inState(StateWorking)); s.Lost || s.Seq != 1 {
					t.Errorf("looked at again: %s", describeSnapshot(s))
				}
			})
		})
	}
}

// Two refusals, then an answer: the count starts anew.
func TestRefusalsInARow(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		n := 0
		a.onGet = func(string) (*Task, error) {
			if n++; n%3 != 0 {
				return nil, fakeError(-32603, "hiccup")
			}
			return taskNews("t1", StateWorking, "").Task, nil
		}
		w := joinTask(t, f, "t1")
		defer w.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		var s Snapshot
		var err error
		for err == nil {
			if s, err = w.Next(ctx, s.Seq); s.Done {
				t.Fatalf("snapshot: %s after %d polls", describeSnapshot(s), n)
			}
		}
	})
}

func TestNetworkCut(t *testing.T) {
	for _, idle := range []bool{false, true} {
		for _, streaming := range []bool{false, true} {
			for _, minutes := range []int{4, 12} {
				t.Run(fmt.Sprintf("idle=%v,streaming=%v,minutes=%d", idle, streaming, minutes), func(t *testing.T) {
					following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
						testNetworkCut(t, a, f, idle, minutes)
					})
				})
			}
		}
	}
}

func testNetworkCut(t *testing.T, a *agentFake, f *Follower, idle bool, minutes int) {
	a.put("t1", StateWorking, "")
	w := joinTask(t, f, "t1")
	defer w.Close()
	waitFor(t, w, time.Second, "the task", inState(StateWorking))
	if idle {
		time.Sleep(10 * time.Second)
	} else {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			var after uint64
			for {
				s, err := w.Next(ctx, after)
				if err != nil || s.Done {
					return
				}
				after = s.Seq
			}
		}()
		time.Sleep(10 * time.Second)
	}
	a.set("", refusedDial())
	a.cut(&Error{Cause: CauseReset, Message: "connection reset"})
	time.Sleep(time.Minute)
	if s := w.Now(); !strings.HasPrefix(s.Trouble, "the agent cannot be reached (connection refused by 127.0.0.1:9101)") {
		t.Errorf("after a minute: %s", describeSnapshot(s))
	}
	time.Sleep(time.Duration(minutes-1) * time.Minute)
	a.set("", nil)
	time.Sleep(3 * time.Minute)
	s := w.Now()
	if lost := minutes > 5; s.Lost != lost {
		t.Errorf("after %d minutes: %s", minutes, describeSnapshot(s))
	} else if !lost && (s.Trouble != "" || s.Done) {
		t.Errorf("after %d minutes: %s", minutes, describeSnapshot(s))
	}
	if minutes < 5 {
		a.put("t1", StateCompleted, "")
		waitFor(t, w, 6*time.Second, "the end", isDone)
	}
}

func TestAgentRestarts(t *testing.T) {
	t.Run("and forgets", func(t *testing.T) {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			a.put("t1", StateWorking, "")
			(<-streams).push(taskNews("t1", StateWorking, ""))
			waitFor(t, w, time.Second, "the task", inState(StateWorking))
			a.forget()
			s := waitFor(t, w, 5*time.Second, "the loss", isDone)
			var e *Error
			if !s.Lost || !errors.As(s.Err, &e) || e.Code != CodeTaskNotFound {
				t.Errorf("snapshot: %s", describeSnapshot(s))
			}
		})
	})
	t.Run("and remembers", func(t *testing.T) {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			a.put("t1", StateWorking, "")
			(<-streams).push(taskNews("t1", StateWorking, ""))
			waitFor(t, w, time.Second, "the task", inState(StateWorking))
			a.set("", refusedDial())
			a.cut(&Error{Cause: CauseReset, Message: "connection reset"})
			waitFor(t, w, 5*time.Second, "the trouble", func(s Snapshot) bool { return s.Trouble != "" })
			go func() {
				time.Sleep(20 * time.Second)
				a.set("", nil)
			}()
			waitFor(t, w, 30*time.Second, "the recovery", func(s Snapshot) bool { return s.Trouble == "" && !s.Done })
			a.put("t1", StateCompleted, "")
			waitFor(t, w, 6*time.Second, "the end", isDone)
		})
	})
}

func TestRetryAfter(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		defer w.Close()
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		a.set("get", &Error{Cause: CauseHTTP, HTTPStatus: 429, RetryAfter: 7 * time.Second, Message: "too many requests"})
		s := waitFor(t, w, time.Minute, "the trouble", func(s Snapshot) bool { return s.Trouble != "" })
		if s.Trouble != "the agent asks to be called less often; trying again in 7 s" {
			t.Errorf("trouble %q", s.Trouble)
		}
		n := a.count("get")
		if _, err := w.Refresh(context.Background()); err != nil || a.count("get") != n {
			t.Errorf("asked again within the rest: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
		defer cancel()
		if s, err := w.Next(ctx, s.Seq); err == nil {
			t.Fatalf("news: %s", describeSnapshot(s))
		}
		at := a.times("get")
		checkBackoff(t, at[n-1:], 7*time.Second, 8*time.Second)
		a.set("get", nil)
		waitFor(t, w, 8*time.Second, "the recovery", func(s Snapshot) bool { return s.Trouble == "" })
	})
}

func TestSlowAgent(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		a.slow(20 * time.Second)
		w := joinTask(t, f, "t1")
		defer w.Close()
		go func() {
			time.Sleep(50 * time.Second)
			a.put("t1", StateCompleted, "")
		}()
		waitFor(t, w, 2*time.Minute, "the end", isDone)
		if n := a.count("get"); n > 5 {
			t.Errorf("%d GetTasks to an agent that takes 20 s for one", n)
		}
	})
	// One that never answers is out of reach.
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.slow(time.Hour)
		w := joinTask(t, f, "t1")
		defer w.Close()
		s := waitFor(t, w, 10*time.Minute, "the loss", isDone)
		if !s.Lost {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
	})
}

func TestWrongTaskInAnswerToPoll(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.onGet = func(string) (*Task, error) { return taskNews("t9", StateCompleted, "").Task, nil }
		w := joinTask(t, f, "t1")
		defer w.Close()
		s := waitFor(t, w, time.Second, "the trouble", func(s Snapshot) bool { return s.Trouble != "" })
		if s.Task != nil || s.Done {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		a.onGetTask(func(string) (*Task, error) {
			task := taskNews("", StateCompleted, "").Task
			task.ContextID = ""
			return task, nil
		})
		s = waitFor(t, w, 10*time.Second, "the end", isDone)
		if s.Task.ID != "t1" || s.Task.ContextID != "c1" {
			t.Errorf("ids %q and %q were not filled in", s.Task.ID, s.Task.ContextID)
		}
	})
}

// The gateway's own limits are no reason to lose a task, and an id that cannot
// be asked for is no reason to go on asking.
func TestOwnErrorsOfPolls(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		a.set("get", &Error{Cause: CauseBusy, Message: "all places taken"})
		w := joinTask(t, f, "t1")
		defer w.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
		defer cancel()
		s, err := w.Next(ctx, 0)
		for err == nil && !s.Done {
			s, err = w.Next(ctx, s.Seq)
		}
		if s.Done || s.Trouble != "too many calls to the agent at once; trying again" {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		a.set("get", &Error{Cause: CauseInvalid, Message: "no such id"})
		if s := waitFor(t, w, 6*time.Second, "the loss", isDone); !s.Lost {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
	})
}

// Refusals count by number and by time.
func TestRefusalsTooSoonOrTooFew(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		defer w.Close()
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		time.Sleep(time.Second)
		a.set("get", fakeError(-32603, "hiccup"))
		for range 5 {
			if s, err := w.Refresh(context.Background()); err == nil || s.Done {
				t.Errorf("%s, %v", describeSnapshot(s), err)
			}
		}
		a.set("get", nil)
		if s, err := w.Refresh(context.Background()); err != nil || s.Trouble != "" {
			t.Errorf("%s, %v", describeSnapshot(s), err)
		}
		a.set("get", fakeError(-32603, "hiccup"))
		a.slow(5 * time.Second)
		n := a.count("get")
		waitFor(t, w, time.Minute, "the loss", isDone)
		if n = a.count("get") - n; n < 3 {
			t.Errorf("lost after %d refusals", n)
		}
	})
}

// A task nobody asks about is lost in time as well.
func TestIdleTaskIsLostInTime(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		defer w.Close()
		time.Sleep(3 * time.Hour)
		a.set("", refusedDial())
		for w.Now().Trouble == "" {
			time.Sleep(time.Second)
		}
		start := time.Now()
		for !w.Now().Done {
			time.Sleep(time.Second)
		}
		if took := time.Since(start); !w.Now().Lost || took < 5*time.Minute || took > 9*time.Minute {
			t.Errorf("after %v: %s", took, describeSnapshot(w.Now()))
		}
	})
}

// Some agents answer SubscribeToTask on a task that has ended, or whose stream
// has, as if they did not know it, although GetTask does: such a task is not
// lost.
func TestSubscribeNotFoundIsNotLost(t *testing.T) {
	for _, ends := range []bool{true, false} {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateWorking, "on it")
			a.set("subscribe", fakeNotFound())
			w := joinTask(t, f, "t1")
			defer w.Close()
			waitFor(t, w, 10*time.Second, "the work", inState(StateWorking))
			if !ends {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
				defer cancel()
				if s, err := w.Next(ctx, w.Now().Seq); err == nil {
					t.Errorf("snapshot: %s", describeSnapshot(s))
				}
				if a.count("subscribe") < 2 || a.count("get") < 10 {
					t.Errorf("%d subscriptions, %d polls", a.count("subscribe"), a.count("get"))
				}
			}
			a.put("t1", StateCompleted, "done")
			s := waitFor(t, w, 10*time.Second, "the end", isDone)
			if s.Lost || s.Err != nil || !inState(StateCompleted)(s) {
				t.Errorf("snapshot: %s", describeSnapshot(s))
			}
		})
	}
}

// A task without an id whose first word is its last one is an answer.
func TestUnaryTaskWithoutIDThatHasEnded(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.onSend = func(context.Context, SendRequest) (Event, error) { return taskNews("", StateCompleted, "done"), nil }
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		s := waitFor(t, w, time.Second, "the answer", isDone)
		if s.Err != nil || !inState(StateCompleted)(s) || s.Task.ID != "" {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		if a.count("") != 1 {
			t.Errorf("%d calls", a.count(""))
		}
	})
}
