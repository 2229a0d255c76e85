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

// A stream that breaks is looked after soon, however long nobody has asked.
func TestStreamOfAnIdleTaskBreaks(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""))
		time.Sleep(3 * time.Hour)
		if n := a.count(""); n != 1 {
			t.Errorf("%d calls beside an open stream", n)
		}
		a.put("t1", StateCompleted, "")
		st.end(io.EOF)
		time.Sleep(15 * time.Second)
		if s := w.Now(); !s.Done {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
	})
}

// A login done elsewhere lets the agent go on by itself, so a reader sees it
// soon; for an answer by somebody else the agent is asked rarely.
func TestPollsOfInterruptedTasks(t *testing.T) {
	tests := []struct {
		state       State
		least, most int
	}{
		{StateAuthRequired, 12, 40},
		{StateInputRequired, 3, 9},
	}
	for _, tt := range tests {
		following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
			a.put("t1", tt.state, "hm")
			w := joinTask(t, f, "t1")
			defer w.Close()
			s := waitFor(t, w, time.Second, "the question", inState(tt.state))
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if s, err := w.Next(ctx, s.Seq); err == nil {
				t.Errorf("snapshot: %s", describeSnapshot(s))
			}
			if n := a.count("get"); n < tt.least || n > tt.most {
				t.Errorf("%s: %d polls in a minute", tt.state, n)
			}
			a.put("t1", StateCompleted, "")
			waitFor(t, w, 15*time.Second, "the end", isDone)
		})
	}
}
