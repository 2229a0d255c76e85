package a2a

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// agentFake is an agent with a memory, as an Upstream. It complains about
// calls that no follower should make, and that streams are not closed once.
type agentFake struct {
	t testing.TB

	mu        sync.Mutex
	streaming bool
	tasks     map[string]*Task
	subs      map[string][]*streamFake
	opened    []*streamFake
	calls     []upstreamCall
	// fail makes the operation fail before any effect; "" is all of them.
	fail map[string]error
	// delay is how long each call takes.
	delay time.Duration

	// onSend answers unary sends, onStream opens streams for sends; either
	// runs without the lock. onCancel overrides what a cancel does.
	onSend   func(ctx context.Context, req SendRequest) (Event, error)
	onStream func(req SendRequest, st *streamFake)
	onCancel func(id string) (*Task, error)
	onGet    func(id string) (*Task, error)
	// noSnapshot leaves the first snapshot of a subscription out.
	noSnapshot bool
}

type upstreamCall struct {
	op, id string
	at     time.Time
	req    SendRequest
}

var _ Upstream = (*agentFake)(nil)

func newAgentFake(t testing.TB, streaming bool) *agentFake {
	a := &agentFake{t: t, streaming: streaming, tasks: map[string]*Task{}, subs: map[string][]*streamFake{}, fail: map[string]error{}}
	a.onSend = func(_ context.Context, req SendRequest) (Event, error) {
		return Event{Task: a.put("t1", StateWorking, "")}, nil
	}
	return a
}

// begin records a call and waits as long as the agent takes.
func (a *agentFake) begin(ctx context.Context, op, id string, req SendRequest) error {
	a.mu.Lock()
	a.calls = append(a.calls, upstreamCall{op, id, time.Now(), req})
	err, delay := a.fail[op], a.delay
	if err == nil {
		err = a.fail[""]
	}
	a.mu.Unlock()
	if op != "send" && op != "stream" && id == "" {
		a.t.Errorf("%s called with an empty task id", op)
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return &Error{Cause: CauseCanceled, Message: "cancelled", Err: ctx.Err()}
		}
	}
	return err
}

func (a *agentFake) Send(ctx context.Context, req SendRequest) (Event, error) {
	if err := a.begin(ctx, "send", "", req); err != nil {
		return Event{}, err
	}
	return a.onSend(ctx, req)
}

func (a *agentFake) Stream(ctx context.Context, req SendRequest) (EventStream, error) {
	if err := a.begin(ctx, "stream", "", req); err != nil {
		return nil, err
	}
	st := a.open(ctx)
	if a.onStream != nil {
		a.onStream(req, st)
	}
	return st, nil
}

func (a *agentFake) Subscribe(ctx context.Context, id string) (EventStream, error) {
	if err := a.begin(ctx, "subscribe", id, SendRequest{}); err != nil {
		return nil, err
	}
	a.mu.Lock()
	task := a.tasks[id]
	a.mu.Unlock()
	if task == nil {
		return nil, fakeNotFound()
	}
	if task.Status.State.Terminal() {
		return nil, fakeError(CodeUnsupportedOperation, "the task has ended")
	}
	st := a.open(ctx)
	if !a.noSnapshot {
		st.push(Event{Task: task})
	}
	a.join(id, st)
	return st, nil
}

func (a *agentFake) GetTask(ctx context.Context, id string, _ *int) (*Task, error) {
	if err := a.begin(ctx, "get", id, SendRequest{}); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if onGet := a.onGet; onGet != nil {
		a.mu.Unlock()
		defer a.mu.Lock()
		return onGet(id)
	}
	if t := a.tasks[id]; t != nil {
		return t, nil
	}
	return nil, fakeNotFound()
}

func (a *agentFake) CancelTask(ctx context.Context, id string) (*Task, error) {
	if err := a.begin(ctx, "cancel", id, SendRequest{}); err != nil {
		return nil, err
	}
	if a.onCancel != nil {
		return a.onCancel(id)
	}
	a.mu.Lock()
	t := a.tasks[id]
	a.mu.Unlock()
	if t == nil {
		return nil, fakeNotFound()
	}
	if t.Status.State.Terminal() {
		return nil, fakeError(CodeTaskNotCancelable, "the task has ended")
	}
	return a.put(id, StateCanceled, ""), nil
}

func (a *agentFake) Streams() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streaming
}

// put sets a task's state, tells the subscribers, and returns the task.
func (a *agentFake) put(id string, s State, text string) *Task {
	a.mu.Lock()
	old := a.tasks[id]
	t := &Task{ID: id, ContextID: "c1", Status: statusOf(s, text)}
	if old != nil {
		t.Artifacts = old.Artifacts
	}
	a.tasks[id] = t
	subs := slices.Clone(a.subs[id])
	a.mu.Unlock()
	for _, st := range subs {
		st.push(statusNews(id, s, text))
		if s.Terminal() {
			st.end(io.EOF)
		}
	}
	return t
}

// forget makes the agent lose its memory, as a restart does, and cuts streams.
func (a *agentFake) forget() {
	a.mu.Lock()
	a.tasks = map[string]*Task{}
	a.mu.Unlock()
	a.cut(&Error{Cause: CauseReset, Message: "connection reset by 127.0.0.1:9101"})
}

// cut ends all open streams with err.
func (a *agentFake) cut(err error) {
	a.mu.Lock()
	opened := slices.Clone(a.opened)
	a.subs = map[string][]*streamFake{}
	a.mu.Unlock()
	for _, st := range opened {
		st.end(err)
	}
}

func (a *agentFake) set(op string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail[op] = err
}

func (a *agentFake) join(id string, st *streamFake) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subs[id] = append(a.subs[id], st)
}

func (a *agentFake) open(ctx context.Context) *streamFake {
	st := &streamFake{ctx: ctx, more: make(chan struct{}, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = append(a.opened, st)
	return st
}

// slow makes each call take d from now on.
func (a *agentFake) slow(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay = d
}

// onGetTask sets what GetTask answers; tests that set it before anybody polls
// may write onGet itself.
func (a *agentFake) onGetTask(fn func(id string) (*Task, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onGet = fn
}

// count returns how often an operation was called, any of them for "".
func (a *agentFake) count(op string) int { return len(a.times(op)) }

func (a *agentFake) times(op string) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var at []time.Time
	for _, c := range a.calls {
		if c.op == op || op == "" {
			at = append(at, c.at)
		}
	}
	return at
}

// last returns the latest request of a send.
func (a *agentFake) last(op string) SendRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range slices.Backward(a.calls) {
		if c.op == op {
			return c.req
		}
	}
	a.t.Fatalf("no %s was called", op)
	return SendRequest{}
}

// streams returns how many streams are open, and complains about those closed
// twice.
func (a *agentFake) openStreams() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for i, st := range a.opened {
		st.mu.Lock()
		switch {
		case st.closed == 0:
			n++
		case st.closed > 1:
			a.t.Errorf("stream %d was closed %d times", i, st.closed)
		}
		st.mu.Unlock()
	}
	return n
}

// streamFake is a stream that a test feeds.
type streamFake struct {
	ctx  context.Context
	more chan struct{}

	mu     sync.Mutex
	events []Event
	err    error
	closed int
}

func (s *streamFake) push(evs ...Event) {
	s.mu.Lock()
	if s.err == nil {
		s.events = append(s.events, evs...)
	}
	s.mu.Unlock()
	s.tell()
}

func (s *streamFake) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.tell()
}

func (s *streamFake) tell() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *streamFake) Next() (Event, error) {
	for {
		s.mu.Lock()
		if len(s.events) > 0 {
			ev := s.events[0]
			s.events = s.events[1:]
			s.mu.Unlock()
			return ev, nil
		}
		err := s.err
		if s.closed > 0 {
			err = errors.New("read on a closed stream")
		}
		s.mu.Unlock()
		if err != nil {
			return Event{}, err
		}
		select {
		case <-s.more:
		case <-s.ctx.Done():
			return Event{}, &Error{Cause: CauseCanceled, Message: "cancelled", Err: s.ctx.Err()}
		}
	}
}

func (s *streamFake) Close() {
	s.mu.Lock()
	s.closed++
	s.mu.Unlock()
	s.tell()
}

func (s *streamFake) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed > 0
}

// left returns how many events nobody has read.
func (s *streamFake) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events)
}

func fakeError(code int, msg string) *Error {
	return &Error{Cause: CauseAgent, Code: code, Message: msg}
}

func fakeNotFound() *Error { return fakeError(CodeTaskNotFound, "task not found") }

func refusedDial() *Error {
	return &Error{Cause: CauseDial, Message: "connection refused by 127.0.0.1:9101", Unsent: true}
}

func statusOf(s State, text string) Status {
	st := Status{State: s}
	if text != "" {
		st.Message = fakeMessage(text)
	}
	return st
}

func fakeMessage(text string) *Message {
	return &Message{MessageID: "m-" + text, Role: RoleAgent, Parts: []Part{{Kind: PartText, Text: text}}}
}

func taskNews(id string, s State, text string) Event {
	return Event{Task: &Task{ID: id, ContextID: "c1", Status: statusOf(s, text)}}
}

func statusNews(id string, s State, text string) Event {
	return Event{Status: &StatusUpdate{TaskID: id, ContextID: "c1", Status: statusOf(s, text)}}
}

func artifactNews(id, artifact, text string, more bool) Event {
	return Event{Artifact: &ArtifactUpdate{TaskID: id, ContextID: "c1", Append: more,
		Artifact: Artifact{ArtifactID: artifact, Parts: []Part{{Kind: PartText, Text: text}}}}}
}

func askTask(taskID string) SendRequest {
	return SendRequest{Message: Message{MessageID: NewMessageID(), TaskID: taskID, Role: RoleUser,
		Parts: []Part{{Kind: PartText, Text: "do it"}}}}
}

// following runs test in fake time with a running follower of the agent. When
// test is over, all watches must have been closed, and nothing may be left.
func following(t *testing.T, streaming bool, edit func(*FollowerOptions), test func(t *testing.T, a *agentFake, f *Follower)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := newAgentFake(t, streaming)
		o := FollowerOptions{Alias: "acme", Upstream: func(context.Context) (Upstream, error) { return a, nil }}
		if edit != nil {
			edit(&o)
		}
		f := NewFollower(o)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		defer stop()
		synctest.Wait()
		test(t, a, f)
		time.Sleep(time.Second) // streams are read to their end
		if c := f.Counts(); c != (FollowerCounts{}) {
			t.Errorf("with all watches closed, the follower still has %+v", c)
		}
		checkEmpty(t, f)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if n := a.openStreams(); n != 0 {
			t.Errorf("%d streams were left open", n)
		}
	})
}

// checkEmpty asserts that the follower holds nothing.
func checkEmpty(t testing.TB, f *Follower) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.tasks) != 0 || len(f.due) != 0 || len(f.sources) != 0 || f.polls != 0 || f.cold != 0 || f.content != 0 || len(f.heavy) != 0 {
		t.Errorf("left in the follower: %d tasks (%v), %d due, %d streams, %d polls (%d cold), %d bytes of %d",
			len(f.tasks), slices.Collect(maps.Keys(f.tasks)), len(f.due), len(f.sources), f.polls, f.cold, f.content, len(f.heavy))
	}
}

// waitFor reads snapshots until ok, for at most d of fake time.
func waitFor(t *testing.T, w *Watch, d time.Duration, what string, ok func(Snapshot) bool) Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	s := w.Now()
	for !ok(s) {
		next, err := w.Next(ctx, s.Seq)
		if err != nil {
			t.Errorf("waiting for %s: %v; last snapshot: %s", what, err, describeSnapshot(next))
			return next
		}
		if next.Seq <= s.Seq {
			t.Errorf("waiting for %s: Seq went from %d to %d: %s", what, s.Seq, next.Seq, describeSnapshot(next))
		}
		s = next
	}
	return s
}

func inState(want State) func(Snapshot) bool {
	return func(s Snapshot) bool { return s.Task != nil && s.Task.Status.State == want }
}

func isDone(s Snapshot) bool { return s.Done }

func describeSnapshot(s Snapshot) string {
	state := State("none")
	if s.Task != nil {
		state = s.Task.Status.State
	}
	return fmt.Sprintf("seq %d, state %s, message %v, progress %q, trouble %q, err %v, lost %v, done %v, notes %q",
		s.Seq, state, s.Message != nil, s.Progress, s.Trouble, s.Err, s.Lost, s.Done, s.Notes)
}

// artifactText joins the text parts of a snapshot's artifacts.
func artifactText(s Snapshot) string {
	var out string
	if s.Task != nil {
		for _, a := range s.Task.Artifacts {
			for _, p := range a.Parts {
				out += p.Text
			}
		}
	}
	return out
}
