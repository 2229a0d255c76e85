package a2a

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func sendTo(t *testing.T, f *Follower, req SendRequest) *Watch {
	t.Helper()
	w, err := f.Send(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func joinTask(t *testing.T, f *Follower, id string) *Watch {
	t.Helper()
	w, err := f.Task(context.Background(), id, "c1")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// streamsOf makes the agent's streams for sends available to the test.
func streamsOf(a *agentFake) <-chan *streamFake {
	ch := make(chan *streamFake, 16)
	a.onStream = func(_ SendRequest, st *streamFake) { ch <- st }
	return ch
}

func TestSendOutsideRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFollower(FollowerOptions{Alias: "acme"})
		check := func(when string, want Cause) {
			t.Helper()
			_, err := f.Send(context.Background(), askTask(""))
			_, err2 := f.Task(context.Background(), "t1", "")
			for _, err := range []error{err, err2} {
				var e *Error
				if !errors.As(err, &e) || e.Cause != want || e.Agent != "acme" {
					t.Errorf("%s: error %#v, want a *Error with cause %s", when, err, want)
				}
			}
		}
		check("before Run", CauseUnavailable)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		if err := f.Run(ctx); err == nil {
			t.Error("a second Run returned no error")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		check("after Run", CauseCanceled)
	})
}

func TestSendWithDoneContext(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var e *Error
		if _, err := f.Send(ctx, askTask("")); !errors.As(err, &e) || e.Cause != CauseCanceled {
			t.Errorf("error %v", err)
		}
		if _, err := f.Task(context.Background(), "", "c1"); !errors.As(err, &e) || e.Cause != CauseProtocol {
			t.Errorf("an empty task id: error %v", err)
		}
		synctest.Wait()
		if n := a.count(""); n != 0 {
			t.Errorf("%d calls reached the agent", n)
		}
	})
}

func TestDirectMessage(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.onStream = func(_ SendRequest, st *streamFake) {
				st.push(Event{Message: fakeMessage("hello"), Notes: []string{"odd"}})
			}
			a.onSend = func(context.Context, SendRequest) (Event, error) {
				return Event{Message: fakeMessage("hello"), Notes: []string{"odd"}}, nil
			}
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			s := waitFor(t, w, time.Second, "the message", isDone)
			if s.Message == nil || messageText(s.Message) != "hello" || s.Task != nil || s.Err != nil || s.Seq != 1 {
				t.Errorf("snapshot: %s", describeSnapshot(s))
			}
			if len(s.Notes) != 1 || s.Notes[0] != "odd" {
				t.Errorf("notes %q", s.Notes)
			}
			// What is done stays so, and does not make a reader hang.
			again, err := w.Next(context.Background(), s.Seq)
			if err != nil || again.Seq != s.Seq {
				t.Errorf("after the end: %v, %v", again.Seq, err)
			}
		})
	}
}

func TestUnarySend(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.onSend = func(context.Context, SendRequest) (Event, error) {
			return Event{Task: a.put("t1", StateSubmitted, "")}, nil
		}
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		go func() {
			time.Sleep(20 * time.Second)
			a.put("t1", StateWorking, "half")
			time.Sleep(20 * time.Second)
			a.put("t1", StateCompleted, "done")
		}()
		start := time.Now()
		s := waitFor(t, w, time.Minute, "the end", isDone)
		if took := time.Since(start); took < 40*time.Second || took > 46*time.Second {
			t.Errorf("the end was seen after %v", took)
		}
		if !inState(StateCompleted)(s) || s.Progress != "half" || len(s.Notes) != 0 {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		if !a.last("send").ReturnImmediately {
			t.Error("the unary send was blocking")
		}
		checkBackoff(t, append([]time.Time{start}, a.times("get")...), 150*time.Millisecond, 6*time.Second)
		if n := a.count("get"); n < 10 || n > 25 {
			t.Errorf("%d polls in 40 s", n)
		}
	})
}

// checkBackoff asserts bounds on the waits between polls.
func checkBackoff(t *testing.T, at []time.Time, least, most time.Duration) {
	t.Helper()
	for i := 1; i < len(at); i++ {
		if d := at[i].Sub(at[i-1]); d < least || d > most {
			t.Errorf("wait %d between polls is %v, want %v to %v", i, d, least, most)
		}
	}
}

func TestUnaryBlockingOption(t *testing.T) {
	following(t, false, func(o *FollowerOptions) { o.UnaryBlocking = true }, func(t *testing.T, a *agentFake, f *Follower) {
		w := sendTo(t, f, askTask(""))
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		w.Close()
		if a.last("send").ReturnImmediately {
			t.Error("the send asked to return at once")
		}
	})
}

func TestUnaryTaskWithoutID(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.onSend = func(context.Context, SendRequest) (Event, error) { return taskNews("", StateWorking, ""), nil }
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		s := waitFor(t, w, time.Second, "the error", isDone)
		var e *Error
		if !errors.As(s.Err, &e) || e.Cause != CauseProtocol || s.Lost {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
	})
}

func TestSendFails(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.set("", refusedDial())
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			s := waitFor(t, w, time.Second, "the error", isDone)
			var e *Error
			if !errors.As(s.Err, &e) || e.Cause != CauseDial || e.Agent != "acme" || s.Lost || s.Task != nil {
				t.Errorf("snapshot: %s", describeSnapshot(s))
			}
			time.Sleep(time.Minute)
			if a.count("") != 1 {
				t.Errorf("%d calls", a.count(""))
			}
		})
	}
}

func TestAgentWithoutClient(t *testing.T) {
	gone := &Error{Cause: CauseUnavailable, Message: "no card"}
	following(t, true, func(o *FollowerOptions) {
		o.Upstream = func(context.Context) (Upstream, error) { return nil, gone }
	}, func(t *testing.T, a *agentFake, f *Follower) {
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		if s := waitFor(t, w, time.Second, "the error", isDone); !errors.As(s.Err, new(*Error)) || s.Err.Error() != "no card" {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		w2 := joinTask(t, f, "t1")
		defer w2.Close()
		s := waitFor(t, w2, time.Second, "the trouble", func(s Snapshot) bool { return s.Trouble != "" })
		if s.Trouble != "the agent cannot be reached (no card); trying again" {
			t.Errorf("trouble %q", s.Trouble)
		}
	})
}

func TestPanicInFolding(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""))
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		w.x.mu.Lock()
		w.x.agg = &Aggregate{known: true, id: "t1", limit: 1 << 20, artifacts: []*assembly{nil}, byID: map[string]int{"a": 0}}
		w.x.mu.Unlock()
		st.push(artifactNews("t1", "a", "x", true))
		s := waitFor(t, w, time.Second, "the error", isDone)
		var e *Error
		if !errors.As(s.Err, &e) || e.Cause != CauseProtocol || s.Lost {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		time.Sleep(300 * time.Millisecond)
		if !st.isClosed() {
			t.Error("the stream is still open")
		}
	})
}

func TestContentOverTheLimit(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.TaskBytes = 1 << 10 }, func(t *testing.T, a *agentFake, f *Follower) {
		a.onStream = func(_ SendRequest, st *streamFake) {
			st.push(taskNews("t1", StateWorking, ""), artifactNews("t1", "a", strings.Repeat("x", 2<<10), false))
		}
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		s := waitFor(t, w, time.Second, "the error", isDone)
		var e *Error
		if !errors.As(s.Err, &e) || e.Cause != CauseLimit || e.Agent != "acme" {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
	})
}

func TestShutdownWakesReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgentFake(t, true)
		f := NewFollower(FollowerOptions{Alias: "acme", Upstream: func(context.Context) (Upstream, error) { return a, nil }})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		(<-streams).push(taskNews("t1", StateWorking, ""))
		s := waitFor(t, w, time.Second, "the task", inState(StateWorking))
		got := make(chan error, 1)
		go func() {
			_, err := w.Next(context.Background(), s.Seq)
			got <- err
		}()
		a.slow(time.Hour)
		unanswered := sendTo(t, f, askTask(""))
		synctest.Wait()
		stop()
		var e *Error
		if err := <-got; !errors.As(err, &e) || e.Cause != CauseCanceled {
			t.Errorf("the reader got %v", err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, w := range []*Watch{w, unanswered} {
			if now := w.Now(); now.Done || now.Err != nil || len(now.Notes) != 0 {
				t.Errorf("the shutdown looks like the end: %s", describeSnapshot(now))
			}
		}
		unanswered.Close()
		if n := a.openStreams(); n != 0 {
			t.Errorf("%d streams left open", n)
		}
		w.Close()
	})
}
