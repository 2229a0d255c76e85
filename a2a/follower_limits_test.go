package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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
		var readers sync.WaitGroup
		for i := range 40 {
			w := joinTask(t, f, fmt.Sprint("t", i))
			all = append(all, w)
			readers.Go(func() { _, _ = w.Next(t.Context(), 0) })
		}
		readers.Wait()
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

// Tasks that nobody waits for take a quarter of the polls, and leave the rest to
// whoever comes to wait.
func TestIdlePollsAreFewer(t *testing.T) {
	following(t, false, func(o *FollowerOptions) { o.MaxPolls = 8 }, func(t *testing.T, a *agentFake, f *Follower) {
		var mu sync.Mutex
		busy, most := 0, 0
		a.onGet = func(id string) (*Task, error) {
			mu.Lock()
			busy++
			most = max(most, busy)
			mu.Unlock()
			time.Sleep(10 * time.Second)
			mu.Lock()
			busy--
			mu.Unlock()
			return taskNews(id, StateWorking, "").Task, nil
		}
		var all []*Watch
		for i := range 20 {
			all = append(all, joinTask(t, f, fmt.Sprint("t", i)))
		}
		time.Sleep(time.Minute)
		mu.Lock()
		if most != 2 {
			t.Errorf("%d polls at once for tasks that nobody waits for, want 2", most)
		}
		mu.Unlock()
		hot := joinTask(t, f, "hot")
		waitFor(t, hot, 11*time.Second, "the task", inState(StateWorking))
		for _, w := range append(all, hot) {
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

// Of the streams whose readers have gone only a few are kept; a reader that
// comes back has its stream again.
func TestIdleStreamsAreBounded(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.IdleStreams = 2 }, func(t *testing.T, a *agentFake, f *Follower) {
		var held []*Watch
		for i := range 10 {
			id := fmt.Sprint("t", i)
			a.put(id, StateWorking, "")
			w := joinTask(t, f, id)
			defer w.Close()
			held = append(held, w)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			for seq := uint64(0); ctx.Err() == nil; {
				s, _ := w.Next(ctx, seq)
				seq = s.Seq
			}
			cancel()
		}
		time.Sleep(time.Minute)
		if n := a.openStreams(); n != 2 {
			t.Errorf("%d streams without a reader, want 2", n)
		}
		back := held[0]
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			_, _ = back.Next(ctx, back.Now().Seq)
		}()
		time.Sleep(10 * time.Second)
		if n := a.openStreams(); n != 2 && n != 3 {
			t.Errorf("%d streams with one reader, want it among 2 or 3", n)
		}
		a.put("t0", StateCompleted, "")
		<-waited
		cancel()
		if !isDone(back.Now()) {
			t.Errorf("the reader saw %+v", back.Now())
		}
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

// TestAtEnd: the end of a kept task is told once to each key, though nobody
// watches; that of one which is forgotten before is not.
func TestAtEnd(t *testing.T) {
	for name, end := range map[string]func(*agentFake){
		"completed": func(a *agentFake) { a.put("t1", StateCompleted, "done") },
		"lost":      (*agentFake).forget,
		"never":     func(*agentFake) {},
	} {
		t.Run(name, func(t *testing.T) {
			following(t, false, nil, func(t *testing.T, a *agentFake, f *Follower) {
				a.put("t1", StateWorking, "")
				var told [3]atomic.Int32
				tell := func(i int) func(context.Context) { return func(context.Context) { told[i].Add(1) } }
				w := joinTask(t, f, "t1")
				waitFor(t, w, time.Second, "the task", inState(StateWorking))
				w.AtEnd("a", tell(0))
				w.AtEnd("a", tell(1))
				w.Keep(time.Hour)
				w.Close()
				w.AtEnd("b", tell(2)) // too late
				time.Sleep(time.Minute)
				if told[1].Load() != 0 {
					t.Error("told before the end")
				}
				end(a)
				time.Sleep(2 * time.Hour)
				want := int32(1)
				if name == "never" {
					want = 0
				}
				if told[0].Load() != 0 || told[1].Load() != want || told[2].Load() != 0 {
					t.Errorf("told %d, %d, %d times", told[0].Load(), told[1].Load(), told[2].Load())
				}
				if name == "completed" {
					w = joinTask(t, f, "t1")
					waitFor(t, w, time.Second, "the end", isDone)
					w.AtEnd("a", tell(0))
					synctest.Wait()
					w.Close()
					if told[0].Load() != 1 {
						t.Error("not told of an end that had come before")
					}
				}
			})
		})
	}
}

// TestAtEndOfAForgottenTask: a task that its agent does not know any more has
// ended, also where a message in the middle of it is taken as its answer.
func TestAtEndOfAForgottenTask(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		st.push(taskNews("t1", StateWorking, ""))
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		var told atomic.Int32
		w.AtEnd("a", func(context.Context) { told.Add(1) })
		st.push(Event{Message: fakeMessage("hi")})
		synctest.Wait()
		a.forget()
		if s := waitFor(t, w, time.Hour, "the end", isDone); s.Message == nil || s.Lost {
			t.Errorf("snapshot: %s", describeSnapshot(s))
		}
		synctest.Wait()
		if n := told.Load(); n != 1 {
			t.Errorf("told %d times", n)
		}
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

// A reader that is about to come back keeps its stream.
func TestReaderBetweenTwoSnapshots(t *testing.T) {
	following(t, true, func(o *FollowerOptions) { o.MaxStreams = 1 }, func(t *testing.T, a *agentFake, f *Follower) {
		streams := streamsOf(a)
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		st := <-streams
		time.Sleep(time.Minute)
		go st.push(taskNews("t1", StateWorking, ""))
		waitFor(t, w, time.Second, "the task", inState(StateWorking))
		a.onSend = func(context.Context, SendRequest) (Event, error) {
			return Event{Task: a.put("t2", StateCompleted, "")}, nil
		}
		other := sendTo(t, f, askTask(""))
		defer other.Close()
		waitFor(t, other, time.Second, "the end", isDone)
		if st.isClosed() || a.count("send") != 1 {
			t.Errorf("the stream is closed: %v, %d unary sends", st.isClosed(), a.count("send"))
		}
	})
}

// A refused stream gives its place back at once.
func TestRefusedStreamTakesNoPlace(t *testing.T) {
	following(t, true, nil, func(t *testing.T, a *agentFake, f *Follower) {
		a.set("stream", fakeError(CodeUnsupportedOperation, "no streams"))
		a.onSend = func(context.Context, SendRequest) (Event, error) {
			time.Sleep(time.Minute)
			return Event{Message: fakeMessage("hi")}, nil
		}
		w := sendTo(t, f, askTask(""))
		defer w.Close()
		time.Sleep(time.Second)
		if c := f.Counts(); c.Streams != 0 {
			t.Errorf("counts %+v", c)
		}
		waitFor(t, w, 2*time.Minute, "the message", isDone)
	})
}

// With a client that makes few requests at once, streams never take all of its
// places: neither those that somebody reads nor those that nobody waits for
// keep a poll or another send out.
func TestStreamsLeaveAPlace(t *testing.T) {
	for _, places := range []int{1, 2, 3} {
		agent := newScriptedAgent(t, nil)
		release := make(chan struct{})
		agent.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var rpc struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params struct {
					ID      string `json:"id"`
					Message struct {
						MessageID string `json:"messageId"`
					} `json:"message"`
				} `json:"params"`
			}
			if err := json.NewDecoder(r.Body).Decode(&rpc); err != nil {
				t.Error(err)
			}
			seen := seenRequest{ID: string(rpc.ID)}
			working := func(id string) string {
				return `{"task":{"id":"` + id + `","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}`
			}
			switch rpc.Method {
			case "SendStreamingMessage", "SubscribeToTask":
				sseReply(w, seen, working(or(rpc.Params.ID, "t-"+rpc.Params.Message.MessageID)))
				select {
				case <-release:
				case <-r.Context().Done():
				}
			case "SendMessage":
				reply(w, seen, working("t-"+rpc.Params.Message.MessageID))
			default:
				reply(w, seen, `{"id":"`+rpc.Params.ID+`","status":{"state":"TASK_STATE_WORKING"}}`)
			}
		})
		c := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.MaxConcurrent = places })
		f := NewFollower(FollowerOptions{Alias: "acme", MaxConcurrent: places, Upstream: func(context.Context) (Upstream, error) { return c, nil }})
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = f.Run(ctx) })
		<-f.Started()
		var kept []*Watch
		for range 6 { // each is watched, and then left alone
			w := sendTo(t, f, askTask(""))
			soon, cancel := context.WithTimeout(ctx, 10*time.Second)
			s, err := w.Next(soon, 0)
			cancel()
			if err != nil || !inState(StateWorking)(s) {
				t.Fatalf("%d places, send %d: %v: %s", places, len(kept), err, describeSnapshot(s))
			}
			kept = append(kept, w)
			if n := f.Counts().Streams; n >= places {
				t.Errorf("%d streams with %d places", n, places)
			}
			direct, cancel := context.WithTimeout(ctx, 10*time.Second)
			if _, err := c.GetTask(direct, s.Task.ID, nil); err != nil {
				t.Errorf("%d places: a poll does not get through: %v", places, err)
			}
			cancel()
		}
		for _, w := range kept {
			w.Close()
		}
		stop()
		close(release)
		running.Wait()
	}
}
