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
		{"unsupported operation, in other words", fakeError(CodeUnsupportedOperation, "Streaming is not supported by the agent"), true},
		{"unsupported operation that may be about the message", fakeError(CodeUnsupportedOperation, "this operation is not supported"), false},
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
					next := sendTo(t, f, askTask("")) // one that may have meant streams gets the next message without
					defer next.Close()
					waitFor(t, next, time.Minute, "an end", isDone)
					if unary := tt.err.Code == CodeUnsupportedOperation; (a.count("send") == 1) != unary {
						t.Errorf("the next message went out unary %d times", a.count("send"))
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
		if s.Message == nil || s.Task != nil || s.Lost || s.Err != nil {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
	})
}
