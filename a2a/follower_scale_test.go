package a2a

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// crowdFake is many working tasks, without the memory of agentFake.
type crowdFake struct {
	streaming bool
	gets      atomic.Int64
	subs      atomic.Int64
}

func (c *crowdFake) Streams() bool { return c.streaming }

func (c *crowdFake) task(id string) *Task {
	return &Task{ID: id, ContextID: "c1", Status: statusOf(StateWorking, "")}
}

func (c *crowdFake) GetTask(_ context.Context, id string, _ *int) (*Task, error) {
	c.gets.Add(1)
	return c.task(id), nil
}

func (c *crowdFake) Send(_ context.Context, req SendRequest) (Event, error) {
	return Event{Task: c.task("task-" + req.Message.MessageID)}, nil
}

func (c *crowdFake) Stream(ctx context.Context, req SendRequest) (EventStream, error) {
	st := &streamFake{ctx: ctx, more: make(chan struct{}, 1)}
	st.push(Event{Task: c.task("task-" + req.Message.MessageID)})
	return st, nil
}

func (c *crowdFake) Subscribe(ctx context.Context, id string) (EventStream, error) {
	c.subs.Add(1)
	st := &streamFake{ctx: ctx, more: make(chan struct{}, 1)}
	st.push(Event{Task: c.task(id)})
	return st, nil
}

func (c *crowdFake) CancelTask(context.Context, string) (*Task, error) {
	return nil, fakeError(CodeTaskNotCancelable, "no")
}

// crowd is followers that run, and what ends them.
type crowd struct {
	agents    []*crowdFake
	followers []*Follower
	end       func()
}

func newCrowd(tb testing.TB, agents int, streaming bool) *crowd {
	c := &crowd{}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range agents {
		a := &crowdFake{streaming: streaming}
		f := NewFollower(FollowerOptions{Alias: fmt.Sprint("agent", i), Upstream: func(context.Context) (Upstream, error) { return a, nil }})
		c.agents, c.followers = append(c.agents, a), append(c.followers, f)
		wg.Go(func() {
			if err := f.Run(ctx); err != nil {
				tb.Error(err)
			}
		})
		for f.running("test") != nil {
			runtime.Gosched()
		}
	}
	c.end = func() { stop(); wg.Wait() }
	return c
}

// join follows n tasks of each agent.
func (c *crowd) join(tb testing.TB, n int) []*Watch {
	var all []*Watch
	for i, f := range c.followers {
		for j := range n {
			w, err := f.Task(context.Background(), fmt.Sprintf("task-%d-%d", i, j), "c1")
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, w)
		}
	}
	return all
}

func (c *crowd) gets() int64 {
	var n int64
	for _, a := range c.agents {
		n += a.gets.Load()
	}
	return n
}

// footprint returns the bytes of heap and stack in use.
func footprint() (bytes int64, goroutines int) {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

// measureIdle follows 10,000 tasks over 50 agents and returns what each costs.
func measureIdle(tb testing.TB) (bytesPerTask int64, goroutines int) {
	const agents, each = 50, 200
	c := newCrowd(tb, agents, true)
	defer c.end()
	before, started := footprint()
	all := c.join(tb, each)
	for c.gets() < agents*each {
		runtime.Gosched()
	}
	after, now := footprint()
	for _, w := range all {
		if !inState(StateWorking)(w.Now()) {
			after, now = footprint()
		}
	}
	for _, w := range all {
		w.Close()
	}
	return (after - before) / (agents * each), now - started
}

// measureHot waits for 2,000 tasks of one agent and returns what each costs.
func measureHot(tb testing.TB) (bytesPerWait int64) {
	const waits = 2000
	c := newCrowd(tb, 1, true)
	defer c.end()
	before, _ := footprint()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var seen atomic.Int64
	for i := range waits {
		w, err := c.followers[0].Send(context.Background(), SendRequest{Message: Message{MessageID: fmt.Sprint(i)}})
		if err != nil {
			tb.Fatal(err)
		}
		wg.Go(func() {
			defer w.Close()
			var after uint64
			for {
				s, err := w.Next(ctx, after)
				if err != nil {
					return
				}
				if after == 0 {
					seen.Add(1)
				}
				after = s.Seq
			}
		})
	}
	for seen.Load() < waits {
		runtime.Gosched()
	}
	after, _ := footprint()
	cancel()
	wg.Wait()
	return (after - before) / waits
}

func TestIdleTasksAreCheap(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	bytes, goroutines := measureIdle(t)
	t.Logf("%d bytes a task, %d goroutines for 10,000 tasks", bytes, goroutines)
	if bytes > 8<<10 {
		t.Errorf("an idle task costs %d bytes, want at most 8 KiB", bytes)
	}
	if goroutines > 50 {
		t.Errorf("10,000 idle tasks over 50 agents cost %d goroutines", goroutines)
	}
}

func TestWaitsAreCheap(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	bytes := measureHot(t)
	t.Logf("%d bytes a wait", bytes)
	if bytes > 40<<10 {
		t.Errorf("a wait costs %d bytes, want at most 40 KiB", bytes)
	}
}

func BenchmarkIdleTask(b *testing.B) {
	for range b.N {
		bytes, goroutines := measureIdle(b)
		b.ReportMetric(float64(bytes), "B/task")
		b.ReportMetric(float64(goroutines), "goroutines")
	}
}

func BenchmarkWait(b *testing.B) {
	for range b.N {
		b.ReportMetric(float64(measureHot(b)), "B/wait")
	}
}

// A thousand tasks that nobody asks about: requests fall with time to a few an
// hour, and nothing else happens.
func TestIdleRequestsFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 10, true)
		all := c.join(t, 100)
		var spans []int64
		before := int64(0)
		for _, d := range []time.Duration{5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour} {
			time.Sleep(d)
			n := c.gets()
			spans = append(spans, (n-before)*int64(time.Hour)/int64(d)/1000)
			before = n
		}
		t.Logf("requests a task and hour: %v", spans)
		if spans[0] > 150 || spans[1] > spans[0]/2 || spans[2] > spans[1]/2 || spans[3] > 7 || spans[4] > 7 || spans[4] < 4 {
			t.Errorf("requests a task and hour: %v", spans)
		}
		for _, a := range c.agents {
			if a.subs.Load() != 0 {
				t.Fatal("an idle task was subscribed to")
			}
		}
		for _, w := range all {
			w.Close()
		}
		for _, f := range c.followers {
			checkEmpty(t, f)
		}
		c.end()
	})
}

// Progress is never lost and never comes after the answer.
func TestTenThousandCalls(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	const workers, each = 50, 200
	a := newAgentFake(t, true)
	var next atomic.Int64
	a.onStream = func(_ SendRequest, st *streamFake) {
		n := next.Add(1)
		id := fmt.Sprint("t", n)
		feed := func() {
			st.push(taskNews(id, StateSubmitted, ""))
			for i := range n % 7 {
				st.push(statusNews(id, StateWorking, fmt.Sprint("step ", i)))
			}
			st.push(statusNews(id, StateWorking, "last step"), artifactNews(id, "a", "answer", false), statusNews(id, StateCompleted, "done"))
			st.push(statusNews(id, StateWorking, "too late"))
			st.end(io.EOF)
		}
		if n%2 == 0 {
			feed()
		} else {
			go feed()
		}
	}
	f := NewFollower(FollowerOptions{Alias: "acme", MaxStreams: workers, Upstream: func(context.Context) (Upstream, error) { return a, nil }})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	for f.running("test") != nil {
		runtime.Gosched()
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				oneCall(t, f)
			}
		})
	}
	wg.Wait()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if c := f.Counts(); c != (FollowerCounts{}) {
		t.Errorf("left: %+v", c)
	}
	checkEmpty(t, f)
	if n := a.openStreams(); n != 0 {
		t.Errorf("%d streams left open", n)
	}
}

func oneCall(t *testing.T, f *Follower) {
	w, err := f.Send(context.Background(), askTask(""))
	if err != nil {
		t.Error(err)
		return
	}
	defer w.Close()
	var s Snapshot
	for !s.Done {
		next, err := w.Next(context.Background(), s.Seq)
		if err != nil {
			t.Error(err)
			return
		}
		if next.Seq <= s.Seq {
			t.Errorf("Seq went from %d to %d", s.Seq, next.Seq)
			return
		}
		s = next
	}
	if !inState(StateCompleted)(s) || s.Progress != "last step" || artifactText(s) != "answer" {
		t.Errorf("the last snapshot: %s, text %q", describeSnapshot(s), artifactText(s))
	}
	if now := w.Now(); now.Seq != s.Seq || now.Progress != s.Progress {
		t.Errorf("after the last: %s", describeSnapshot(now))
	}
}
