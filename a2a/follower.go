package a2a

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// FollowerOptions is what a Follower is made of. Only Upstream is required;
// zero fields take the defaults stated.
type FollowerOptions struct {
	// Alias names the agent in errors and the log.
	Alias string
	// Upstream returns the client to talk through, as Agent.Upstream does. It
	// is called for every piece of upstream work, so that a changed card or a
	// recovered agent is noticed; it may be called concurrently.
	Upstream func(context.Context) (Upstream, error)

	// MaxStreams bounds the upstream streams open at once (64). A send or a
	// reader beyond it is served by polling.
	MaxStreams int
	// MaxConcurrent is that of the client, 0 for none. Streams leave one of its
	// places free, so that sends and polls get through; with a single place
	// there are no streams.
	MaxConcurrent int
	// IdleStreams bounds those among them that are kept for tasks nobody waits
	// for (8): an open stream brings news at once but holds a connection, and
	// an idle task that is polled ever more rarely costs next to nothing.
	IdleStreams int
	// MaxPolls bounds the scheduled GetTask requests in flight at once (32), of
	// which a quarter may be for tasks that nobody waits for.
	MaxPolls int

	// PollFirst is the wait before the first poll of a task that a unary send
	// has just started (200 ms); from there the wait grows to PollMax.
	PollFirst time.Duration
	// PollMin and PollMax bound the wait between two polls of a task somebody
	// waits for (500 ms, 5 s).
	PollMin, PollMax time.Duration
	// IdleMin and IdleMax bound the wait between two polls of a task nobody
	// waits for (10 s, 10 min): half the time since somebody last asked.
	IdleMin, IdleMax time.Duration
	// Silence is how long an open stream may say nothing while somebody waits
	// before one GetTask looks whether the task settled unsaid (30 s).
	Silence time.Duration
	// Grace is how long a stream may still bring a Task snapshot or an
	// artifact after a state that settles the task (250 ms).
	Grace time.Duration
	// Echo is how long the question that a message answers is taken for an
	// echo, when the agent shows it again after the message (5 s).
	Echo time.Duration

	// LostAfter is how long an agent may be out of reach before its task is
	// lost (5 min).
	LostAfter time.Duration
	// Refusals and RefusalSpan say when a task is lost that GetTask refuses
	// with another error than TaskNotFound: so many times in a row (3) over
	// at least this time (2 s).
	Refusals    int
	RefusalSpan time.Duration

	// SendTimeout bounds a unary send (1 h), CallTimeout a GetTask or
	// CancelTask (60 s).
	SendTimeout time.Duration
	CallTimeout time.Duration
	// AbandonWait is how long an abandoned send is kept open to learn the id
	// of the task to cancel (2 min).
	AbandonWait time.Duration

	// TaskBytes bounds the content gathered of one task (64 MiB).
	TaskBytes int64
	// IdleBytes bounds the content that is kept of a task without watches
	// (256 KiB), ContentBytes that of all tasks which nobody has read lately
	// (32 MiB): the longest unread goes first. What is dropped is asked for
	// again when a reader comes (Snapshot.Partial).
	IdleBytes, ContentBytes int64
	// HistoryLength limits the history that GetTask asks for; nil does not.
	HistoryLength *int
	// UnaryBlocking sends a unary message as its request says. By default it
	// is sent with ReturnImmediately and then polled, so that the task's id is
	// known early: without it there is no handle, no progress and no cancel,
	// and proxies cut long answers.
	UnaryBlocking bool

	// Logger gets debug lines about streams and lost tasks; nil is silent.
	Logger *slog.Logger
	// Observe is told how the counts change, by differences that may be added
	// up in any order; nil is nobody. It must not block.
	Observe func(FollowerCounts)
}

// FollowerCounts counts what a Follower keeps, or by how much it changed.
type FollowerCounts struct {
	// Watches is the open watches, Tasks the exchanges and tasks followed,
	// Streams the upstream streams in use.
	Watches, Tasks, Streams int
}

func orDuration(v, def time.Duration) time.Duration {
	if v <= 0 {
		return def
	}
	return v
}

func orInt(v, def int) int {
	if v <= 0 {
		return def
	}
	return v
}

func (o FollowerOptions) withDefaults() FollowerOptions {
	o.MaxStreams = orInt(o.MaxStreams, 64)
	if o.MaxConcurrent > 0 {
		o.MaxStreams = min(o.MaxStreams, o.MaxConcurrent-1)
	}
	o.IdleStreams = orInt(o.IdleStreams, 8)
	o.MaxPolls = orInt(o.MaxPolls, 32)
	o.PollFirst = orDuration(o.PollFirst, 200*time.Millisecond)
	o.PollMin = orDuration(o.PollMin, 500*time.Millisecond)
	o.PollMax = orDuration(o.PollMax, 5*time.Second)
	o.IdleMin = orDuration(o.IdleMin, 10*time.Second)
	o.IdleMax = orDuration(o.IdleMax, 10*time.Minute)
	o.Silence = orDuration(o.Silence, 30*time.Second)
	o.Grace = orDuration(o.Grace, 250*time.Millisecond)
	o.Echo = orDuration(o.Echo, 5*time.Second)
	o.LostAfter = orDuration(o.LostAfter, 5*time.Minute)
	o.Refusals = orInt(o.Refusals, 3)
	o.RefusalSpan = orDuration(o.RefusalSpan, 2*time.Second)
	o.SendTimeout = orDuration(o.SendTimeout, time.Hour)
	o.CallTimeout = orDuration(o.CallTimeout, time.Minute)
	o.AbandonWait = orDuration(o.AbandonWait, 2*time.Minute)
	if o.IdleBytes <= 0 {
		o.IdleBytes = 256 << 10
	}
	if o.ContentBytes <= 0 {
		o.ContentBytes = 32 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

const (
	// cancelGrace is how long Run waits at its end for CancelTask requests in
	// flight: an agent must not work on for a caller who has gone.
	cancelGrace = 2 * time.Second
	// streamPause is how long an agent that refused streams is not asked for
	// one again.
	streamPause = 10 * time.Minute
)

type runState uint8

const (
	runNew runState = iota
	runOn
	runOver
)

// Follower keeps up with the exchanges and tasks of one agent: one upstream
// stream or one poll a task, shared by all who wait for it. One scheduler
// with a heap of due times serves every task that has no stream, so a task
// nobody asks about costs its state and a request every few minutes.
//
// Locks: an exchange's mu comes before the Follower's mu, and an exchange
// without a task id before the one that already follows the task. No lock is
// held over upstream work or callbacks.
type Follower struct {
	o       FollowerOptions
	wake    chan struct{} // capacity 1: the scheduler's head has changed
	started chan struct{} // closed when Run has begun
	over    chan struct{} // closed when Run ends: readers stop waiting

	mu sync.Mutex // guards everything below; never held over a call
	// state says whether work may start; run counts the goroutines, which
	// Run waits for and which only start adds to while the state is runOn.
	state  runState
	run    sync.WaitGroup
	ctx    context.Context // of sends, streams and polls
	hangup context.Context // of CancelTask: outlives ctx by cancelGrace
	// tasks has the exchanges whose task id is known, never under "".
	tasks map[string]*exchange
	due   dueHeap
	// polls counts scheduled GetTask requests in flight; ready holds the
	// exchanges that wait for one to end, those with readers first.
	polls  int
	cold   int // those among polls for tasks that nobody waits for
	grants uint
	ready  [2][]*exchange
	// sources are the streams that use up MaxStreams.
	sources map[*source]struct{}
	// quietUntil is when an agent that asked for rest may be polled again.
	quietUntil time.Time
	// noStreams is until when the agent is taken to offer no streams.
	noStreams time.Time
	questions questionMemory
	// content is the bytes that the exchanges in heavy hold; trim asks the
	// scheduler to drop some.
	content int64
	heavy   map[*exchange]struct{}
	trim    bool
	counts  FollowerCounts
}

var _ Follow = (*Follower)(nil)

// NewFollower returns a Follower that starts to work when Run is called.
func NewFollower(o FollowerOptions) *Follower {
	return &Follower{
		o:       o.withDefaults(),
		wake:    make(chan struct{}, 1),
		started: make(chan struct{}),
		over:    make(chan struct{}),
		tasks:   map[string]*exchange{},
		sources: map[*source]struct{}{},
	}
}

// Run does the follower's work until ctx is done, then ends its streams and
// requests, gives CancelTask requests in flight two seconds more, and returns
// when every goroutine has ended. It may be called once; a second call
// returns a *Error at once.
func (f *Follower) Run(ctx context.Context) error {
	work, stop := context.WithCancel(ctx)
	defer stop()
	hangup, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	f.mu.Lock()
	if f.state != runNew {
		f.mu.Unlock()
		return f.error(CauseUnavailable, "follow", "the follower has been run before")
	}
	f.state, f.ctx, f.hangup = runOn, work, hangup
	f.mu.Unlock()
	close(f.started)

	f.schedule(work)

	f.mu.Lock()
	f.state = runOver
	open := make([]*source, 0, len(f.sources))
	for s := range f.sources {
		open = append(open, s)
	}
	f.mu.Unlock()
	close(f.over)
	stop()
	for _, s := range open {
		s.stop()
	}
	late := time.AfterFunc(cancelGrace, cut)
	defer late.Stop()
	f.run.Wait()
	return nil
}

// Started returns a channel that is closed once Run has begun: before that
// Send and Task are refused.
func (f *Follower) Started() <-chan struct{} { return f.started }

// start runs fn in a goroutine that Run waits for; false when the follower
// does not run.
func (f *Follower) start(fn func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != runOn {
		return false
	}
	f.run.Go(fn)
	return true
}

// running returns nil, or the *Error of a follower that is not at work.
func (f *Follower) running(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.state {
	case runNew:
		return f.error(CauseUnavailable, op, "the follower of the agent has not been started yet")
	case runOver:
		return f.ended(op)
	}
	return nil
}

// stopping reports whether Run is coming to its end: what fails from now on
// says nothing about tasks. It may be called only on behalf of an exchange,
// none of which is older than ctx.
func (f *Follower) stopping() bool { return f.ctx.Err() != nil }

func (f *Follower) ended(op string) *Error {
	return f.error(CauseCanceled, op, "the gateway is shutting down; the agent may work on")
}

func (f *Follower) error(cause Cause, op, message string) *Error {
	return &Error{Cause: cause, Agent: f.o.Alias, Op: op, Message: message}
}

// Send implements Follow. It returns a *Error at once only when ctx is
// already done or the follower does not run; nothing was sent then.
//
// The watch shows what comes after the agent took the message: a question
// that an earlier message of the same task had led to is never its outcome.
// A unary send goes out as FollowerOptions.UnaryBlocking says.
func (f *Follower) Send(ctx context.Context, req SendRequest) (*Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, f.wrap("send", err)
	}
	if err := f.running("send"); err != nil {
		return nil, err
	}
	if req.Trace == (Trace{}) {
		req.Trace = traceFromContext(ctx)
	}
	x := newExchange(f)
	x.trace = req.Trace
	w := &Watch{x: x}
	x.sender, x.answers, x.watches = w, req.Message.TaskID, 1
	src := f.newSource(x, true)
	x.src = src
	f.count(FollowerCounts{Watches: 1, Tasks: 1})
	if !f.start(func() { f.runSend(src, &req) }) {
		w.Close()
		return nil, f.ended("send")
	}
	return w, nil
}

// Task implements Follow. The context id may be empty; it fills in where the
// agent leaves it out of the task.
func (f *Follower) Task(ctx context.Context, taskID, contextID string) (*Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, f.wrap("get", err)
	}
	if taskID == "" {
		return nil, f.error(CauseProtocol, "get", "the agent gave the task no id, so it cannot be followed")
	}
	if err := f.running("get"); err != nil {
		return nil, err
	}
	for {
		x := f.find(taskID, contextID)
		x.mu.Lock()
		if x.gone {
			x.unlock()
			continue
		}
		w := &Watch{x: x, base: x.ver}
		if x.shows() {
			w.base--
		}
		x.watches++
		x.asked, x.wanted = time.Now(), true
		x.replan(x.asked)
		x.unlock()
		f.count(FollowerCounts{Watches: 1})
		return w, nil
	}
}

// find returns the exchange of a task, a new one where there is none.
func (f *Follower) find(taskID, contextID string) *exchange {
	f.mu.Lock()
	if x := f.tasks[taskID]; x != nil {
		f.mu.Unlock()
		return x
	}
	x := newExchange(f)
	x.taskID, x.contextID = taskID, contextID
	f.tasks[taskID] = x
	f.mu.Unlock()
	f.count(FollowerCounts{Tasks: 1})
	return x
}

// claim makes x the exchange of the task id unless another one is; that one
// is returned. old is taken for dead.
func (f *Follower) claim(id string, x, old *exchange) *exchange {
	f.mu.Lock()
	defer f.mu.Unlock()
	if y := f.tasks[id]; y != nil && y != old && y != x {
		return y
	}
	f.tasks[id] = x
	return nil
}

// forget takes x out of the index of tasks and off the schedule.
func (f *Follower) forget(x *exchange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x.taskID != "" && f.tasks[x.taskID] == x {
		delete(f.tasks, x.taskID)
	}
	f.due.remove(x)
}

// Counts returns what the follower keeps at the moment.
func (f *Follower) Counts() FollowerCounts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts
}

func (f *Follower) count(d FollowerCounts) {
	f.mu.Lock()
	f.counts.Watches += d.Watches
	f.counts.Tasks += d.Tasks
	f.counts.Streams += d.Streams
	f.mu.Unlock()
	if f.o.Observe != nil {
		f.o.Observe(d)
	}
}
