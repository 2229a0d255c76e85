package a2a

import (
	"context"
	"errors"
	"io"
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

// A connection can only be used again when its stream has been read to the
// end.
func TestStreamIsReadToItsEnd(t *testing.T) {
	for _, ends := range []bool{true, false} {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			st := <-streams
			st.push(Event{Message: fakeMessage("hello")}, Event{Message: fakeMessage("and more")})
			waitFor(t, w, time.Second, "the message", isDone)
			w.Close()
			if ends {
				st.end(io.EOF)
			}
			synctest.Wait()
			if st.isClosed() != ends {
				t.Errorf("the stream ends: %v, is closed: %v", ends, st.isClosed())
			}
			if left := st.left(); left != 0 {
				t.Errorf("%d events were not read", left)
			}
			time.Sleep(300 * time.Millisecond)
			if !st.isClosed() {
				t.Error("the stream is still open")
			}
		})
	}
}

func TestStreamToTheEnd(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""))
		s := waitFor(t, w, time.Second, "the first state", inState(StateWorking))
		if s.Seq != 1 {
			t.Errorf("the first snapshot has Seq %d", s.Seq)
		}
		st.push(statusNews("t1", StateWorking, "Looking…"))
		s = waitFor(t, w, time.Second, "the progress", func(s Snapshot) bool { return s.Progress == "Looking…" })
		seq := s.Seq
		st.push(statusNews("t1", StateWorking, "Looking…")) // the same again
		synctest.Wait()
		if got := w.Now().Seq; got != seq {
			t.Errorf("a duplicate raised Seq from %d to %d", seq, got)
		}
		st.push(artifactNews("t1", "a1", "Acme sent it.", false), statusNews("t1", StateCompleted, "Acme sent it."))
		full := taskNews("t1", StateCompleted, "Acme sent it.")
		full.Task.Artifacts = []Artifact{{ArtifactID: "a1", Parts: []Part{{Kind: PartText, Text: "Acme sent it."}}}}
		st.push(full)
		st.end(io.EOF)
		start := time.Now()
		s = waitFor(t, w, time.Second, "the end", isDone)
		if took := time.Since(start); took != 0 {
			t.Errorf("a clean end took %v to be shown", took)
		}
		if artifactText(s) != "Acme sent it." || s.Err != nil || len(s.Notes) != 0 || s.Progress != "Looking…" {
			t.Errorf("snapshot: %s, text %q", describeSnapshot(s), artifactText(s))
		}
		if a.count("get") != 0 || a.count("subscribe") != 0 {
			t.Errorf("calls: %+v", a.calls)
		}
	})
}

func TestTerminalStateOnOpenStream(t *testing.T) {
	tests := []struct {
		name  string
		after func(st *streamFake)
		took  time.Duration
		text  string
	}{
		{"nothing more", func(*streamFake) {}, 250 * time.Millisecond, ""},
		{"the stream ends", func(st *streamFake) { st.end(io.EOF) }, 0, ""},
		{"the stream breaks", func(st *streamFake) { st.end(&Error{Cause: CauseReset, Message: "reset"}) }, 0, ""},
		{"a richer snapshot", func(st *streamFake) {
			time.Sleep(100 * time.Millisecond)
			ev := taskNews("t1", StateCompleted, "")
			ev.Task.Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: "rich"}}}}
			st.push(ev)
		}, 100 * time.Millisecond, "rich"},
		{"an artifact", func(st *streamFake) {
			time.Sleep(100 * time.Millisecond)
			st.push(artifactNews("t1", "a", "late", false))
		}, 250 * time.Millisecond, "late"},
		{"another state", func(st *streamFake) { st.push(statusNews("t1", StateWorking, "")) }, 250 * time.Millisecond, ""},
		{"another end", func(st *streamFake) { st.push(statusNews("t1", StateFailed, "")) }, 250 * time.Millisecond, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
				streams := streamsOf(a)
				w := sendTo(t, f, askTask(""))
				defer w.Close()
				st := <-streams
				start := time.Now()
				st.push(taskNews("t1", StateWorking, ""), statusNews("t1", StateCompleted, ""))
				go tt.after(st)
				s := waitFor(t, w, time.Second, "the end", isDone)
				if took := time.Since(start); took != tt.took {
					t.Errorf("shown after %v, want %v", took, tt.took)
				}
				if odd := strings.HasPrefix(tt.name, "another"); odd != (len(s.Notes) == 1) {
					t.Errorf("notes %q", s.Notes)
				}
				if !inState(StateCompleted)(s) || artifactText(s) != tt.text {
					t.Errorf("snapshot: %s, text %q", describeSnapshot(s), artifactText(s))
				}
				st.push(statusNews("t1", StateFailed, "")) // too late
				time.Sleep(300 * time.Millisecond)
				if !st.isClosed() {
					t.Error("the stream is still open")
				}
				synctest.Wait()
				if now := w.Now(); now.Seq != s.Seq || !inState(StateCompleted)(now) {
					t.Errorf("the end changed: %s", describeSnapshot(now))
				}
			})
		})
	}
}

func TestInterruptedOnOpenStream(t *testing.T) {
	for _, state := range []State{StateInputRequired, StateAuthRequired} {
		t.Run(string(state), func(t *testing.T) {
			following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
				streams := streamsOf(a)
				w := sendTo(t, f, askTask(""))
				defer w.Close()
				st := <-streams
				start := time.Now()
				st.push(taskNews("t1", StateWorking, ""), statusNews("t1", state, "Sign in at https://login.acme.test/"))
				s := waitFor(t, w, time.Second, "the question", inState(state))
				if took := time.Since(start); took != 250*time.Millisecond {
					t.Errorf("shown after %v", took)
				}
				if s.Done || s.Progress != "Sign in at https://login.acme.test/" {
					t.Errorf("snapshot: %s", describeSnapshot(s))
				}
				time.Sleep(90 * time.Second)
				if st.isClosed() {
					t.Fatal("the stream was closed")
				}
				st.push(statusNews("t1", StateWorking, "thanks"), statusNews("t1", StateCompleted, ""))
				st.end(io.EOF)
				s = waitFor(t, w, time.Second, "the end", isDone)
				if !inState(StateCompleted)(s) || s.Progress != "thanks" {
					t.Errorf("snapshot: %s", describeSnapshot(s))
				}
			})
		})
	}
}

func TestBrokenStreamIsJoinedAgain(t *testing.T) {
	for _, end := range []error{io.EOF, &Error{Cause: CauseReset, Message: "connection reset by 127.0.0.1:9101"}, fakeError(-32603, "internal")} {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			streams := streamsOf(a)
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			st := <-streams
			a.put("t1", StateWorking, "half way")
			st.push(taskNews("t1", StateWorking, ""))
			waitFor(t, w, time.Second, "the first state", inState(StateWorking))
			go func() {
				st.end(end)
				time.Sleep(5 * time.Second)
				a.put("t1", StateCompleted, "")
			}()
			s := waitFor(t, w, 10*time.Second, "the end", isDone)
			if s.Err != nil || !inState(StateCompleted)(s) || s.Progress != "half way" {
				t.Errorf("snapshot: %s", describeSnapshot(s))
			}
			if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "following went on") {
				t.Errorf("notes %q", s.Notes)
			}
			if a.count("subscribe") != 1 || a.count("stream") != 1 || a.count("send") != 0 {
				t.Errorf("%d subscribes, %d streams, %d sends", a.count("subscribe"), a.count("stream"), a.count("send"))
			}
		})
	}
}

func TestBrokenStreamsEndInPolling(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		a.put("t1", StateWorking, "")
		st.push(taskNews("t1", StateWorking, ""))
		a.set("subscribe", &Error{Cause: CauseReset, Message: "reset"})
		st.end(io.EOF)
		go func() {
			time.Sleep(20 * time.Second)
			a.put("t1", StateCompleted, "")
		}()
		s := waitFor(t, w, 30*time.Second, "the end", isDone)
		if !inState(StateCompleted)(s) {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		if n := a.count("subscribe"); n < 1 || n > 2 {
			t.Errorf("%d subscribes in 20 s, want one or two", n)
		}
		if n := a.count("get"); n < 4 || n > 14 {
			t.Errorf("%d polls in 20 s", n)
		}
	})
}

func TestStreamEndsWithoutTaskID(t *testing.T) {
	tests := []struct {
		name   string
		events []Event
		end    error
		cause  Cause
	}{
		{"nothing", nil, io.EOF, CauseEmptyStream},
		{"reset before the first event", nil, &Error{Cause: CauseReset, Message: "reset"}, CauseReset},
		{"error event first", nil, fakeError(-32603, "internal"), CauseAgent},
		{"a state without id", []Event{statusNews("", StateWorking, "on it")}, io.EOF, CauseTruncated},
		{"a task without id", []Event{taskNews("", StateWorking, "")}, &Error{Cause: CauseReset, Message: "reset"}, CauseTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
				a.onStream = func(_ SendRequest, st *streamFake) {
					st.push(tt.events...)
					st.end(tt.end)
				}
				w := sendTo(t, f, askTask(""))
				defer w.Close()
				s := waitFor(t, w, time.Minute, "the error", isDone)
				var e *Error
				if !errors.As(s.Err, &e) || e.Cause != tt.cause || s.Lost {
					t.Errorf("snapshot: %s", describeSnapshot(s))
				}
				time.Sleep(time.Minute)
				if n := a.count(""); n != 1 {
					t.Errorf("%d calls, want the one stream: a message is never sent again", n)
				}
			})
		})
	}
}

func TestTasksWithoutIDAreNotShared(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		one, two := sendTo(t, f, askTask("")), sendTo(t, f, askTask(""))
		defer one.Close()
		defer two.Close()
		first, second := <-streams, <-streams
		first.push(artifactNews("", "a", "alpha", false), statusNews("", StateCompleted, ""))
		second.push(artifactNews("", "a", "beta", false), statusNews("", StateInputRequired, "which?"))
		s1 := waitFor(t, one, time.Second, "an end", isDoneOrAsks)
		s2 := waitFor(t, two, time.Second, "an end", isDoneOrAsks)
		if got := artifactText(s1) + artifactText(s2); got != "alphabeta" && got != "betaalpha" {
			t.Errorf("texts %q and %q", artifactText(s1), artifactText(s2))
		}
		second.end(io.EOF)
		time.Sleep(time.Minute)
		for _, s := range []Snapshot{one.Now(), two.Now()} {
			if s.Err != nil {
				t.Errorf("snapshot: %s", describeSnapshot(s))
			}
		}
	})
}

func isDoneOrAsks(s Snapshot) bool { return s.Done || inState(StateInputRequired)(s) }

func TestArtifactBeforeTask(t *testing.T) {
	for _, id := range []string{"t1", ""} {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.onStream = func(_ SendRequest, st *streamFake) {
				st.push(artifactNews(id, "a", "early", false), taskNews("t1", StateWorking, ""), statusNews("t1", StateCompleted, ""))
				st.end(io.EOF)
			}
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			s := waitFor(t, w, time.Second, "the end", isDone)
			if artifactText(s) != "early" || s.Task.ID != "t1" || s.Err != nil {
				t.Errorf("snapshot: %s, text %q", describeSnapshot(s), artifactText(s))
			}
		})
	}
}

func TestEventsOfAnotherTask(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.onStream = func(_ SendRequest, st *streamFake) {
			st.push(taskNews("t1", StateWorking, ""), statusNews("t2", StateFailed, "not me"), artifactNews("t2", "a", "not mine", false),
				taskNews("t2", StateFailed, ""), statusNews("t1", StateCompleted, ""))
			st.end(io.EOF)
		}
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		s := waitFor(t, w, time.Second, "the end", isDone)
		if !inState(StateCompleted)(s) || artifactText(s) != "" || s.Progress != "" {
			t.Errorf("snapshot: %s, text %q", describeSnapshot(s), artifactText(s))
		}
		if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "another task") {
			t.Errorf("notes %q", s.Notes)
		}
	})
}

func TestRefusedStreamIsSentUnary(t *testing.T) {
	tests := []struct {
		name  string
		err   *Error
		unary bool
	}{
		{"unsupported operation", fakeError(CodeUnsupportedOperation, "no streams"), true},
		{"method not found", fakeError(-32601, "no such method"), true},
		{"no such route", &Error{Cause: CauseHTTP, HTTPStatus: 405, Message: "405"}, true},
		{"server error", &Error{Cause: CauseHTTP, HTTPStatus: 502, Message: "502"}, false},
		{"reset", &Error{Cause: CauseReset, Message: "reset"}, false},
		{"invalid params", fakeError(-32602, "bad"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
				a.set("stream", tt.err)
				a.onSend = func(context.Context, SendRequest) (Event, error) {
					return Event{Task: a.put("t1", StateCompleted, "")}, nil
				}
				req := askTask("")
				w := sendTo(t, f, req)
				defer w.Close()
				s := waitFor(t, w, time.Minute, "an end", isDone)
				if !tt.unary {
					var e *Error
					if !errors.As(s.Err, &e) || e.Cause != tt.err.Cause || a.count("send") != 0 {
						t.Errorf("snapshot: %s; %d sends", describeSnapshot(s), a.count("send"))
					}
					return
				}
				if !inState(StateCompleted)(s) || len(s.Notes) != 1 {
					t.Errorf("snapshot: %s", describeSnapshot(s))
				}
				if got := a.last("send"); got.Message.MessageID != req.Message.MessageID {
					t.Errorf("the message was sent as %q, then as %q", req.Message.MessageID, got.Message.MessageID)
				}
				// It is remembered for a while.
				again := sendTo(t, f, askTask(""))
				defer again.Close()
				waitFor(t, again, time.Minute, "an end", isDone)
				if a.count("stream") != 1 || a.count("send") != 2 {
					t.Errorf("%d streams, %d sends", a.count("stream"), a.count("send"))
				}
				a.set("stream", nil)
				a.onStream = func(_ SendRequest, st *streamFake) { st.push(taskNews("t2", StateCompleted, "")) }
				time.Sleep(11 * time.Minute)
				later := sendTo(t, f, askTask(""))
				defer later.Close()
				waitFor(t, later, time.Minute, "an end", isDone)
				if a.count("stream") != 2 {
					t.Error("streams were never tried again")
				}
			})
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

func TestMessageInMidTask(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.onStream = func(_ SendRequest, st *streamFake) {
			st.push(taskNews("t1", StateWorking, ""), Event{Message: fakeMessage("by the way")}, statusNews("t1", StateCompleted, ""))
			st.end(io.EOF)
		}
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		s := waitFor(t, w, time.Second, "the end", isDone)
		if s.Message != nil || !inState(StateCompleted)(s) || len(s.Notes) != 1 {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
	})
	// An agent that keeps no tasks answers like this.
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.onStream = func(_ SendRequest, st *streamFake) {
			st.push(taskNews("t1", StateWorking, ""), Event{Message: fakeMessage("the answer")})
			st.end(io.EOF)
		}
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		s := waitFor(t, w, time.Minute, "the end", isDone)
		if s.Message == nil || s.Lost || s.Err != nil {
			t.Errorf("snapshot: %s", describeSnapshot(s))
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
