package a2a

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// source is one send or stream in flight that brings news of an exchange. One
// goroutine reads it; anybody may stop it. Only the source that its exchange
// points to is listened to: pieces of an artifact must not be folded twice.
type source struct {
	// x is the exchange the news is for. Written by the reading goroutine
	// only, when a send turns out to belong to a followed task.
	x atomic.Pointer[exchange]
	// send says that this is the answer to a message, not a subscription.
	send   bool
	ctx    context.Context
	cancel context.CancelFunc
	// evicted says that another stream needed the place.
	evicted atomic.Bool
	// definite says that the answer is the agent's outcome, not what it held
	// before it looked at the message: a blocking unary send.
	definite bool

	mu      sync.Mutex
	stream  EventStream
	stopped bool
	// The rest is owned by exchange.mu.
	open   bool // the agent has accepted: events may come
	inHand bool // one of its events is being folded
	opened time.Time
	news   int // events that came
}

func (f *Follower) newSource(x *exchange, send bool) *source {
	s := &source{send: send}
	f.mu.Lock()
	ctx := f.ctx
	f.mu.Unlock()
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.x.Store(x)
	return s
}

// stop ends the source; it may be called more than once and without a stream.
func (s *source) stop() {
	s.cancel()
	s.mu.Lock()
	st := s.stream
	s.stream, s.stopped = nil, true
	s.mu.Unlock()
	if st != nil {
		st.Close()
	}
}

// attach hands the open stream over; false when the source was stopped first.
func (s *source) attach(st EventStream) bool {
	s.mu.Lock()
	ok := !s.stopped
	if ok {
		s.stream = st
	}
	s.mu.Unlock()
	if !ok {
		st.Close()
	}
	return ok
}

// runSend sends the message and reads what comes of it: by stream where the
// agent offers one and a place is free, else by a unary send.
func (f *Follower) runSend(s *source, req *SendRequest) {
	defer s.stop()
	defer f.freeSlot(s)
	if st := f.begin(s, req); st != nil {
		f.read(s, st)
	}
}

// begin sends the message and returns the stream of what comes of it, nil where
// there is nothing to read any more. It is apart from runSend for the sake of
// the stack that an open stream keeps.
func (f *Follower) begin(s *source, req *SendRequest) EventStream {
	var up Upstream
	err := f.guarded("send", func() (err error) {
		up, err = f.o.Upstream(s.ctx)
		return err
	})
	if err != nil {
		s.x.Load().sendFailed(s, f.wrap("send", err))
		return nil
	}
	if up.Streams() && f.streamsOffered(time.Now()) && f.takeSlot(s) {
		var st EventStream
		err := f.guarded("send", func() (err error) {
			st, err = up.Stream(s.ctx, *req)
			return err
		})
		if err == nil {
			s.x.Load().opened(s)
			if !s.attach(st) {
				return nil
			}
			return st
		}
		e := f.wrap("send", err)
		if !refusesStreams(e) {
			if e.Code == CodeUnsupportedOperation && req.Message.TaskID == "" {
				f.pauseStreams() // perhaps it means streams: the next message goes without
			}
			s.x.Load().sendFailed(s, e)
			return nil
		}
		f.freeSlot(s)
		if req.Message.TaskID == "" {
			f.pauseStreams()
		}
		s.x.Load().sendNote("the agent refused to stream; the message was sent without")
	}
	f.sendUnary(s, up, *req)
	return nil
}

func (f *Follower) sendUnary(s *source, up Upstream, req SendRequest) {
	if !f.o.UnaryBlocking {
		req.ReturnImmediately = true
	}
	s.definite = !req.ReturnImmediately
	ctx, cancel := context.WithTimeout(s.ctx, f.o.SendTimeout)
	defer cancel()
	var ev Event
	err := f.guarded("send", func() (err error) {
		ev, err = up.Send(ctx, req)
		return err
	})
	if err != nil {
		s.x.Load().sendFailed(s, f.outcome(ctx, "send", err))
		return
	}
	if s.deliver(ev, viaCall) {
		s.ended(nil)
	}
}

// refusesStreams reports whether the agent certainly did not execute a stream
// request because it does not stream. UnsupportedOperation has other meanings
// too, and comes of agents that had begun: it must name the stream.
func refusesStreams(e *Error) bool {
	switch {
	case e.Code == codeMethodNotFound:
		return true
	case e.Code == CodeUnsupportedOperation:
		return strings.Contains(strings.ToLower(e.Message), "stream")
	case e.Cause == CauseHTTP:
		return e.HTTPStatus == 404 || e.HTTPStatus == 405 || e.HTTPStatus == 501
	}
	return false
}

// codeMethodNotFound is JSON-RPC's.
const codeMethodNotFound = -32601

func (f *Follower) pauseStreams() {
	f.mu.Lock()
	f.noStreams = time.Now().Add(streamPause)
	f.mu.Unlock()
}

func (f *Follower) streamsOffered(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !now.Before(f.noStreams)
}

// runSubscribe joins the stream of a followed task.
func (f *Follower) runSubscribe(s *source) {
	defer s.stop()
	defer f.freeSlot(s)
	x := s.x.Load()
	var st EventStream
	err := f.guarded("subscribe", func() error {
		up, err := f.o.Upstream(s.ctx)
		if err == nil && up.Streams() {
			st, err = up.Subscribe(WithTrace(s.ctx, x.trace), x.id())
		}
		return err
	})
	if err != nil {
		x.subscribeFailed(s, f.wrap("subscribe", err))
		return
	}
	if st == nil {
		f.pauseBriefly(x, s)
		return
	}
	x.opened(s)
	if s.attach(st) {
		f.read(s, st)
	}
}

// pauseBriefly lets the exchange poll because its agent does not stream.
func (f *Follower) pauseBriefly(x *exchange, s *source) {
	x.mu.Lock()
	defer x.unlock()
	if x.src == s {
		now := time.Now()
		x.src = nil
		x.streamAt = now.Add(f.o.Silence)
		x.replan(now)
	}
}

// read folds the stream's events until it ends or nobody needs it.
func (f *Follower) read(s *source, st EventStream) {
	for {
		ev, err := f.next(st)
		if err != nil {
			s.ended(err)
			return
		}
		if !s.deliver(ev, viaStream) {
			f.drain(s, st)
			return
		}
	}
}

// drain reads a stream whose last word has been taken to its end, if that
// comes within the grace: only then can its connection be used again. The
// goroutine is read's, and the timer ends with it.
func (f *Follower) drain(s *source, st EventStream) {
	late := time.AfterFunc(f.o.Grace, s.stop)
	defer late.Stop()
	for err := error(nil); err == nil; {
		_, err = f.next(st)
	}
}

func (x *exchange) id() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.taskID
}

// sendNote adds a note before an answer has come.
func (x *exchange) sendNote(line string) {
	x.mu.Lock()
	defer x.unlock()
	x.note("%s", line)
}

// opened marks the stream as accepted by the agent.
func (x *exchange) opened(s *source) {
	x.mu.Lock()
	defer x.unlock()
	if x.src == s {
		s.open, s.opened = true, time.Now()
		x.replan(s.opened)
	}
}

// sendFailed ends an exchange whose message did not get an answer. The
// message is never sent again: the agent may have acted on it. A shutdown is
// not an end: what became of the message is not known then.
func (x *exchange) sendFailed(s *source, e *Error) {
	x.mu.Lock()
	defer x.unlock()
	if x.src == s && !x.f.stopping() {
		x.src = nil
		x.fail(e)
	}
}

// subscribeFailed goes over to polling; the poll says what is wrong.
func (x *exchange) subscribeFailed(s *source, e *Error) {
	x.mu.Lock()
	defer x.unlock()
	if x.src != s || x.f.stopping() {
		return
	}
	now := time.Now()
	x.src = nil
	switch {
	case s.evicted.Load():
	case e.Code == CodeUnsupportedOperation, refusesStreams(e):
		x.streamAt = now.Add(streamPause)
		if e.Code != CodeUnsupportedOperation {
			x.f.pauseStreams()
		}
	default:
		x.brokeOff(now)
	}
	x.pollSoon(now)
	x.replan(now)
}

// brokeOff counts a stream that failed; after two in a row the task is polled
// for a while.
func (x *exchange) brokeOff(now time.Time) {
	x.breaks++
	if x.breaks > 2 {
		x.breaks = 0
		x.streamAt = now.Add(time.Minute)
		return
	}
	x.streamAt = now.Add(time.Duration(float64(x.f.o.PollMin) * float64(x.breaks) * x.jitter))
	x.roll()
}

// deliver hands one event to the exchange; false when the source is no longer
// needed.
func (s *source) deliver(ev Event, from via) bool {
	x := s.x.Load()
	x.mu.Lock()
	defer x.unlock()
	if x.src != s {
		return false
	}
	now := time.Now()
	s.news++
	s.open, s.inHand = true, true
	defer func() { s.inHand = false }()
	if s.send && x.taskID == "" {
		x.firstAnswer(s, ev, from)
	} else {
		if !s.send && s.news == 1 && ev.Task == nil {
			x.doubt = true
		}
		if s.news > 1 || ev.Task == nil {
			x.breaks = 0
		}
		x.apply(ev, from)
	}
	y := s.x.Load()
	if y == x {
		x.replan(now)
	}
	return y.src == s // y, where it is another, stays locked until x is not
}

// ended says that the source will bring no more; err is nil after a unary
// answer, io.EOF at a clean end.
func (s *source) ended(err error) {
	x := s.x.Load()
	x.mu.Lock()
	defer x.unlock()
	if x.src != s || x.f.stopping() {
		return
	}
	x.src = nil
	now := time.Now()
	if x.done || x.gone {
		return
	}
	if !x.graceAt.IsZero() {
		x.settle(now)
	}
	switch state := x.state(); {
	case x.done:
	case x.taskID == "":
		x.endedWithoutID(err)
	case err == nil, s.evicted.Load():
		x.lastTry = now
	case state.Settled():
		x.endEcho()
		x.lastTry = now
	default:
		x.endEcho()
		x.cutShort(s, err, now)
	}
	x.replan(now)
}

// endedWithoutID ends an exchange that has no task to ask for.
func (x *exchange) endedWithoutID(err error) {
	if x.state().Interrupted() {
		return
	}
	e := new(Error)
	switch {
	case err == nil:
		x.fail(x.f.error(CauseProtocol, "send", "the agent gave the task no id, so it cannot be followed"))
	case x.cur == nil && errors.Is(err, io.EOF):
		x.fail(x.f.error(CauseEmptyStream, "send", "the agent's stream ended without an answer"))
	case x.cur == nil && errors.As(err, &e):
		x.fail(e)
	default:
		x.fail(x.f.wrapAs(CauseTruncated, "send", "the agent's stream ended before the task had an id or an end; the message was not sent again", err))
	}
}

// cutShort goes on after a stream that ended before the task did: by joining
// it again, else by polling.
func (x *exchange) cutShort(s *source, err error, now time.Time) {
	if errors.Is(err, io.EOF) {
		x.note("the agent's stream ended before the task did; following went on")
	} else {
		x.note("the agent's stream broke (%s); following went on", x.f.wrap("stream", err).Message)
	}
	x.f.o.Logger.Debug("stream cut short", "agent", x.f.o.Alias, "cause", string(x.f.wrap("stream", err).Cause))
	if now.Sub(s.opened) > 2*x.f.o.IdleMin {
		x.breaks = 0
	}
	x.brokeOff(now)
	x.lastTry = now
	if x.asked.Before(now) {
		x.asked = now
	}
}
