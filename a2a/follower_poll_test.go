package a2a

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestJoinedTask(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateWorking, "at it")
			w := joinTask(t, f, "t1")
			defer w.Close()
			s := waitFor(t, w, time.Second, "the task", inState(StateWorking))
			if s.Seq != 1 || s.Progress != "at it" {
				t.Errorf("snapshot: %s", describeSnapshot(s))
			}
			if n := a.count("get"); n != 1 {
				t.Errorf("%d GetTasks", n)
			}
			go func() {
				time.Sleep(15 * time.Second)
				a.put("t1", StateCompleted, "")
			}()
			waitFor(t, w, 25*time.Second, "the end", isDone)
			if subs, gets := a.count("subscribe"), a.count("get"); streaming && (subs != 1 || gets != 1) || !streaming && (subs != 0 || gets < 4) {
				t.Errorf("%d subscribes, %d GetTasks", subs, gets)
			}
			late := joinTask(t, f, "t1")
			defer late.Close()
			if s := late.Now(); !s.Done || s.Seq != 1 {
				t.Errorf("joined after the end: %s", describeSnapshot(s))
			}
		})
	}
}

func TestReadersShareOneStream(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		following(t, streaming, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", StateWorking, "")
			const readers = 50
			var wg sync.WaitGroup
			for range readers {
				wg.Go(func() {
					w := joinTask(t, f, "t1")
					defer w.Close()
					waitFor(t, w, time.Minute, "the end", isDone)
				})
			}
			time.Sleep(10 * time.Second)
			if c := f.Counts(); c.Watches != readers || c.Tasks != 1 {
				t.Errorf("counts %+v", c)
			}
			a.put("t1", StateCompleted, "")
			wg.Wait()
			if n := a.count(""); streaming && n != 2 || !streaming && n > 12 {
				t.Errorf("%d calls for %d readers", n, readers)
			}
		})
	}
}

func TestTwoReadersOfOneWatch(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { waitFor(t, w, time.Minute, "the end", isDone) })
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := w.Next(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a reader with a deadline got %v", err)
		}
		st.push(taskNews("t1", StateWorking, ""), taskNews("t1", StateCompleted, ""))
		st.end(io.EOF)
		wg.Wait()
	})
}

func TestReaderOfAClosedWatch(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		st := <-streams
		got := make(chan error, 1)
		go func() {
			_, err := w.Next(context.Background(), 0)
			got <- err
		}()
		synctest.Wait()
		w.Close()
		w.Close()
		if err := <-got; !errors.As(err, new(*Error)) {
			t.Errorf("the reader got %v", err)
		}
		synctest.Wait()
		if !st.isClosed() {
			t.Error("the stream is still open")
		}
	})
}

// An idle task costs ever fewer requests, and none is asked for too soon.
func TestIdleTaskIsPolledEverMoreRarely(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		defer w.Close()
		var perHour []int
		before := 0
		for range 3 {
			time.Sleep(time.Hour)
			n := a.count("")
			perHour = append(perHour, n-before)
			before = n
		}
		if perHour[0] < 10 || perHour[0] > 25 {
			t.Errorf("%d requests in the first hour", perHour[0])
		}
		if perHour[2] < 4 || perHour[2] > 9 {
			t.Errorf("%d requests in the third hour", perHour[2])
		}
		if a.count("subscribe") != 0 {
			t.Error("a task nobody waits for was subscribed to")
		}
		// Somebody asks: the answer comes at once, and often afterwards.
		a.put("t1", StateWorking, "news")
		waitFor(t, w, time.Second, "the news", func(s Snapshot) bool { return s.Progress == "news" })
	})
}

func TestIdleTaskSettles(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		changes := make(chan Snapshot, 8)
		w.OnChange(func() { changes <- w.Now() })
		time.Sleep(time.Hour)
		if s := <-changes; !inState(StateWorking)(s) {
			t.Errorf("first change: %s", describeSnapshot(s))
		}
		a.put("t1", StateCompleted, "")
		time.Sleep(15 * time.Minute)
		if s := <-changes; !s.Done {
			t.Errorf("second change: %s", describeSnapshot(s))
		}
		if len(changes) != 0 {
			t.Errorf("%d more changes of a task that changed twice", len(changes))
		}
		n := a.count("")
		time.Sleep(time.Hour)
		if a.count("") != n {
			t.Error("a task that has ended is still polled")
		}
		w.Close()
	})
}

func TestRefresh(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		ctx := context.Background()
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		defer w.Close()
		s, err := w.Refresh(ctx)
		if err != nil || !inState(StateWorking)(s) || a.count("get") != 1 {
			t.Fatalf("%s, %v after %d GetTasks", describeSnapshot(s), err, a.count("get"))
		}
		a.put("t1", StateWorking, "more")
		if s, _ = w.Refresh(ctx); s.Progress != "" || a.count("get") != 1 {
			t.Errorf("a word of this moment was asked for again: %s", describeSnapshot(s))
		}
		time.Sleep(300 * time.Millisecond)
		a.slow(time.Second)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if s, err := w.Refresh(ctx); err != nil || s.Progress != "more" {
					t.Errorf("%s, %v", describeSnapshot(s), err)
				}
			})
		}
		wg.Wait()
		if n := a.count("get"); n != 2 {
			t.Errorf("%d GetTasks, want 2", n)
		}
		time.Sleep(300 * time.Millisecond)
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if _, err := w.Refresh(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller with a deadline got %v", err)
		}
		time.Sleep(2 * time.Second)
		a.slow(0)
		a.set("get", refusedDial())
		var e *Error
		s, err = w.Refresh(ctx)
		if !errors.As(err, &e) || e.Cause != CauseDial || s.Trouble == "" || s.Done {
			t.Errorf("%s, %v", describeSnapshot(s), err)
		}
		a.set("get", nil)
		time.Sleep(time.Minute)
		a.put("t1", StateCompleted, "")
		if s, err = w.Refresh(ctx); err != nil || !s.Done {
			t.Errorf("%s, %v", describeSnapshot(s), err)
		}
		n := a.count("get")
		if s, err = w.Refresh(ctx); err != nil || !s.Done || a.count("get") != n {
			t.Errorf("after the end: %s, %v, %d more GetTasks", describeSnapshot(s), err, a.count("get")-n)
		}
	})
}

func TestRefreshLeavesAStreamAlone(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		if _, err := w.Refresh(context.Background()); err != nil {
			t.Error(err)
		}
		(<-streams).push(taskNews("t1", StateWorking, ""))
		time.Sleep(time.Minute)
		if s, err := w.Refresh(context.Background()); err != nil || !inState(StateWorking)(s) {
			t.Errorf("%s, %v", describeSnapshot(s), err)
		}
		if n := a.count("get"); n != 0 {
			t.Errorf("%d GetTasks", n)
		}
	})
}

// An open stream that does not say that the task settled is looked behind.
func TestSilentStream(t *testing.T) {
	for _, state := range []State{StateCompleted, StateInputRequired} {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.onStream = func(_ SendRequest, st *streamFake) {
				st.push(taskNews("t1", StateWorking, ""), artifactNews("t1", "a", "one ", true))
			}
			a.put("t1", StateWorking, "")
			w := sendTo(t, f, askTask(""))
			defer w.Close()
			go func() {
				time.Sleep(95 * time.Second)
				a.put("t1", state, "hm")
			}()
			s := waitFor(t, w, 2*time.Minute+time.Second, "the state", inState(state))
			if n := a.count("get"); n < 3 || n > 4 {
				t.Errorf("%d GetTasks in two silent minutes", n)
			}
			if artifactText(s) != "one " {
				t.Errorf("text %q", artifactText(s))
			}
		})
	}
}

// A snapshot in the middle of a stream must not make pieces count twice.
func TestPollBesideAStreamDoesNotDoubleText(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""), artifactNews("t1", "a", "one ", false))
		waitFor(t, w, time.Second, "a piece", func(s Snapshot) bool { return artifactText(s) != "" })
		a.onGetTask(func(string) (*Task, error) {
			ev := taskNews("t1", StateWorking, "")
			ev.Task.Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: "one two "}}}}
			return ev.Task, nil
		})
		go func() {
			time.Sleep(40 * time.Second)
			st.push(artifactNews("t1", "a", "two ", true), taskNews("t1", StateCompleted, ""))
			st.end(io.EOF)
		}()
		s := waitFor(t, w, time.Minute, "the end", isDone)
		if artifactText(s) != "one two " {
			t.Errorf("text %q", artifactText(s))
		}
		if a.count("get") == 0 {
			t.Error("the poll that the test is about did not happen")
		}
	})
}

// A subscription that starts without a snapshot may have missed pieces.
func TestDoubtfulStreamIsChecked(t *testing.T) {
	for _, broken := range []bool{false, true} {
		following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.noSnapshot = true
			a.put("t1", StateWorking, "")
			w := joinTask(t, f, "t1")
			defer w.Close()
			waitFor(t, w, time.Second, "the task", inState(StateWorking))
			go func() {
				time.Sleep(3 * time.Second)
				a.mu.Lock()
				a.tasks["t1"].Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: "all of it"}}}}
				a.mu.Unlock()
				if broken {
					a.set("get", refusedDial())
				}
				a.put("t1", StateCompleted, "")
			}()
			s := waitFor(t, w, 3500*time.Millisecond, "the end", isDone)
			if want := map[bool]string{false: "all of it"}[broken]; artifactText(s) != want || s.Err != nil {
				t.Errorf("%s, text %q, want %q", describeSnapshot(s), artifactText(s), want)
			}
		})
	}
}

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

func TestPollsInFlightAreBounded(t *testing.T) {
	following(t, false, func(o *FollowerOptions) { o.MaxPolls = 4 }, func(t *testing.T, a *agentFake, f *Follower) {
		a.slow(time.Second)
		var mu sync.Mutex
		busy, most := 0, 0
		a.onGet = func(id string) (*Task, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy--
			mu.Unlock()
			return taskNews(id, StateWorking, "").Task, nil
		}
		var all []*Watch
		for i := range 40 {
			all = append(all, joinTask(t, f, fmt.Sprint("t", i)))
		}
		time.Sleep(25 * time.Second)
		mu.Lock()
		if most > 4 {
			t.Errorf("%d polls at once", most)
		}
		mu.Unlock()
		for i, w := range all {
			if !inState(StateWorking)(w.Now()) {
				t.Errorf("task %d was not polled within 25 s", i)
			}
			w.Close()
		}
		time.Sleep(time.Minute)
	})
}

func TestStreamsAreBounded(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.MaxStreams = 3 }, func(t *testing.T, a *agentFake, f *Follower) {
		var wg sync.WaitGroup
		for i := range 10 {
			id := fmt.Sprint("t", i)
			a.put(id, StateWorking, "")
			wg.Go(func() {
				w := joinTask(t, f, id)
				defer w.Close()
				waitFor(t, w, time.Minute, "the end", isDone)
			})
		}
		time.Sleep(20 * time.Second)
		if n := a.openStreams(); n != 3 || f.Counts().Streams != 3 {
			t.Errorf("%d streams, counted %d", n, f.Counts().Streams)
		}
		for i := range 10 {
			a.put(fmt.Sprint("t", i), StateCompleted, "")
		}
		wg.Wait()
	})
}

// A send beyond the limit takes the place of a stream nobody waits for, else
// it goes out unary.
func TestSendNeedsAStream(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.MaxStreams = 1 }, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		idle := sendTo(t, f, askTask(""))
		defer idle.Close()
		first := <-streams
		a.put("t1", StateWorking, "")
		first.push(taskNews("t1", StateWorking, ""))
		waitFor(t, idle, time.Second, "the task", inState(StateWorking))
		time.Sleep(time.Minute)
		busy := sendTo(t, f, askTask(""))
		defer busy.Close()
		second := <-streams
		synctest.Wait()
		if !first.isClosed() {
			t.Error("the idle stream kept its place")
		}
		if s := idle.Now(); len(s.Notes) != 0 || s.Done {
			t.Errorf("the idle task: %s", describeSnapshot(s))
		}
		second.push(taskNews("t2", StateWorking, ""))
		done := make(chan Snapshot)
		go func() { done <- waitFor(t, busy, time.Minute, "the end", isDone) }()
		synctest.Wait()
		a.onSend = func(context.Context, SendRequest) (Event, error) {
			return Event{Task: a.put("t3", StateCompleted, "")}, nil
		}
		third := sendTo(t, f, askTask(""))
		defer third.Close()
		waitFor(t, third, time.Second, "the end", isDone)
		if a.count("send") != 1 || second.isClosed() {
			t.Errorf("%d unary sends; the stream in use is closed: %v", a.count("send"), second.isClosed())
		}
		second.push(statusNews("t2", StateCompleted, ""))
		<-done
		a.put("t1", StateCompleted, "")
		waitFor(t, idle, 10*time.Second, "the idle task's end", isDone)
	})
}

func TestReaderComesWhileTheStreamBreaks(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		for i := range 20 {
			id := fmt.Sprint("t", i)
			a.onStream = func(_ SendRequest, st *streamFake) { st.push(taskNews(id, StateWorking, "")) }
			a.put(id, StateWorking, "")
			w := sendTo(t, f, askTask(""))
			time.Sleep(time.Minute)
			done := make(chan Snapshot)
			go a.cut(io.EOF)
			go func() { done <- waitFor(t, w, time.Minute, "the end", isDone) }()
			time.Sleep(2 * time.Second)
			a.put(id, StateCompleted, "")
			<-done
			w.Close()
		}
	})
}

func TestAnswersTwice(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		full := taskNews("t1", StateCompleted, "")
		full.Task.Artifacts = []Artifact{{ArtifactID: "a", Parts: []Part{{Kind: PartText, Text: "answer"}}}}
		a.onStream = func(_ SendRequest, st *streamFake) {
			st.push(taskNews("t1", StateWorking, ""), taskNews("t1", StateWorking, ""), full, full, full)
			st.end(io.EOF)
		}
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		s := waitFor(t, w, time.Second, "the end", isDone)
		synctest.Wait()
		if now := w.Now(); now.Seq != s.Seq || artifactText(now) != "answer" || s.Seq > 2 {
			t.Errorf("snapshot: %s, text %q", describeSnapshot(now), artifactText(now))
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

func TestKeep(t *testing.T) {
	following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		w.Keep(time.Hour)
		w.Close()
		time.Sleep(30 * time.Minute)
		if f.Counts().Tasks != 1 {
			t.Fatal("the kept task was dropped")
		}
		n := a.count("")
		again := joinTask(t, f, "t1")
		if s := again.Now(); !inState(StateWorking)(s) || s.Seq != 1 || a.count("") != n {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		again.Close()
		time.Sleep(31 * time.Minute)
	})
}

func TestCountsAreObserved(t *testing.T) {
	var mu sync.Mutex
	var sum FollowerCounts
	following(t, true, func(o *FollowerOptions) {
		o.Observe = func(d FollowerCounts) {
			mu.Lock()
			defer mu.Unlock()
			sum.Watches += d.Watches
			sum.Tasks += d.Tasks
			sum.Streams += d.Streams
		}
	}, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		(<-streams).push(taskNews("t1", StateWorking, ""))
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		w2 := joinTask(t, f, "t1")
		if want := (FollowerCounts{Watches: 2, Tasks: 1, Streams: 1}); sum != want || f.Counts() != want {
			t.Errorf("observed %+v, counts %+v", sum, f.Counts())
		}
		w.Close()
		w2.Close()
		synctest.Wait()
		if sum != (FollowerCounts{}) {
			t.Errorf("observed %+v at the end", sum)
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

// A subscription that never brings its first snapshot does not hide the task.
func TestSubscriptionWithoutAnAnswer(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.put("t1", StateWorking, "")
		w := joinTask(t, f, "t1")
		defer w.Close()
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		a.slow(time.Hour)
		go func() {
			time.Sleep(10 * time.Second)
			a.slow(0) // the subscription hangs on
			a.put("t1", StateCompleted, "")
		}()
		waitFor(t, w, 2*time.Minute, "the end", isDone)
		if n := a.count("subscribe"); n != 1 {
			t.Errorf("%d subscribes", n)
		}
	})
}

// An agent whose client panics harms nobody else.
func TestPanicInTheClient(t *testing.T) {
	following(t, true, func(o *FollowerOptions) {
		o.Upstream = func(context.Context) (Upstream, error) { panic("a bug") }
	}, func(t *testing.T, a *agentFake, f *Follower) {
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		var e *Error
		if s := waitFor(t, w, time.Second, "the error", isDone); !errors.As(s.Err, &e) || e.Cause != CauseProtocol {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		w2 := joinTask(t, f, "t1")
		defer w2.Close()
		waitFor(t, w2, time.Second, "the trouble", func(s Snapshot) bool { return s.Trouble != "" })
		if _, err := w2.Cancel(context.Background()); !errors.As(err, &e) || e.Cause != CauseProtocol {
			t.Errorf("error %v", err)
		}
	})
}

// A shutdown leaves nobody waiting for a cancel or a refresh.
func TestShutdownWakesCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgentFake(t, true)
		f := NewFollower(FollowerOptions{Alias: "acme", Upstream: func(context.Context) (Upstream, error) { return a, nil }})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		unnamed := sendTo(t, f, askTask(""))
		named := joinTask(t, f, "t1")
		a.slow(time.Hour)
		got := make(chan error, 2)
		go func() {
			_, err := unnamed.Cancel(context.Background())
			got <- err
		}()
		go func() {
			_, err := named.Refresh(context.Background())
			got <- err
		}()
		synctest.Wait()
		stop()
		for range 2 {
			var e *Error
			if err := <-got; !errors.As(err, &e) || e.Cause != CauseCanceled {
				t.Errorf("error %v", err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := named.Refresh(context.Background()); err == nil {
			t.Error("a refresh after the end returned no error")
		}
		if _, err := named.Cancel(context.Background()); err == nil {
			t.Error("a cancel after the end returned no error")
		}
		unnamed.Abandon()
		named.Close()
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

// While a stream stands, a poll beside it that fails means nothing.
func TestStreamOutweighsFailedPolls(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""))
		s := waitFor(t, w, time.Second, "the task", inState(StateWorking))
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if s, err := w.Next(ctx, s.Seq); err == nil {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		if a.count("get") < 3 {
			t.Errorf("%d polls", a.count("get"))
		}
		st.push(statusNews("t1", StateCompleted, ""))
		waitFor(t, w, time.Second, "the end", isDone)
	})
}
