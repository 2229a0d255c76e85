package a2a

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// flight is one request that several callers wait for. err may be read after
// done is closed.
type flight struct {
	done chan struct{}
	err  *Error
	// word is the exchange's when the request went out.
	word uint64
	// also are flights that end with this one.
	also []*flight
}

func newFlight() *flight { return &flight{done: make(chan struct{})} }

func (fl *flight) end(e *Error) {
	for _, o := range fl.also {
		o.end(e)
	}
	fl.err = e
	close(fl.done)
}

// startPoll asks for the task once; counted says that a place was taken for
// it. The exchange has no poll under way.
func (x *exchange) startPoll(counted bool) *flight {
	fl := newFlight()
	fl.word = x.word
	x.poll = fl
	id, epoch := x.taskID, x.epoch
	if !x.f.start(func() { x.runPoll(fl, id, epoch, counted) }) {
		x.poll = nil
		fl.end(x.f.ended("get"))
	}
	return fl
}

func (x *exchange) runPoll(fl *flight, id string, epoch uint64, counted bool) {
	f := x.f
	f.mu.Lock()
	base := f.ctx
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(WithTrace(base, x.trace), f.o.CallTimeout)
	defer cancel()
	var t *Task
	err := f.guarded("get", func() error {
		up, err := f.o.Upstream(ctx)
		if err != nil {
			return err
		}
		t, err = up.GetTask(ctx, id, f.o.HistoryLength)
		return err
	})
	switch {
	case err != nil:
	case t == nil:
		err = f.error(CauseProtocol, "get", "the agent answered without a task")
	case t.ID != "" && t.ID != id:
		err = f.error(CauseProtocol, "get", "the agent answered with another task")
	}
	x.polled(fl, epoch, t, f.outcome(ctx, "get", err))
	if counted {
		f.pollDone(x)
	}
}

// polled takes the answer to a GetTask.
func (x *exchange) polled(fl *flight, epoch uint64, t *Task, e *Error) {
	x.mu.Lock()
	defer x.unlock()
	now := time.Now()
	x.poll = nil
	x.lastTry = now
	x.roll()
	grace := !x.graceAt.IsZero()
	if e != nil && x.missed() {
		x.denied++
	}
	switch {
	case x.gone || x.f.stopping():
	case e == nil && x.overtaken(fl, t):
		if again := x.startPoll(false); x.poll == again {
			again.also = append(again.also, fl)
			x.replan(now)
			return
		}
	case x.done:
		if e == nil {
			x.restore(t)
		}
	case epoch != x.epoch:
		x.pollSoon(now)
	case e != nil && (x.streams() || grace && x.state().Terminal()):
		// As long as the stream stands, the task is not lost, nor is one that
		// is known to have ended.
	case e != nil:
		x.pollFailed(e, now)
	case x.streams() && !grace && !x.missed() && x.cur != nil && (!t.Status.State.Settled() || sameStatus(t.Status, x.cur.Status)):
		// The stream has the pieces of the artifacts; a snapshot in between
		// would make some of them count twice. That the task lives is enough.
		x.heardFrom(now)
	default:
		if x.streams() && t.Status.State.Terminal() {
			x.note("the agent's stream did not say that the task ended; GetTask did")
			x.stopSource()
		} else if x.missed() && !grace {
			x.stopSource() // its pieces would not fit to what GetTask brought
		}
		x.backoff = min(x.backoff*3/2, x.f.o.PollMax)
		x.apply(Event{Task: t}, viaGet)
	}
	if grace && !x.graceAt.IsZero() {
		x.publish()
	}
	x.replan(now)
	x.later(func() { fl.end(e) })
}

// overtaken reports whether t, an answer that is to bring dropped content, is
// older than the state which a stream has brought meanwhile.
func (x *exchange) overtaken(fl *flight, t *Task) bool {
	return x.missed() && x.cur != nil && fl.word != x.word && t.Status.State != x.state()
}

// pollFailed counts a failed GetTask towards the loss of the task: TaskNotFound
// or an id that cannot be asked for, at once; refusals, three times over two
// seconds; no connection, for five minutes.
func (x *exchange) pollFailed(e *Error, now time.Time) {
	o := &x.f.o
	if e.Cause == CauseCanceled {
		return
	}
	if e.Code == CodeTaskNotFound || e.Cause == CauseInvalid {
		x.lose(e)
		return
	}
	x.fails++
	switch {
	case e.RetryAfter > 0 || e.HTTPStatus == 429:
		wait := x.f.quiet(now, e.RetryAfter)
		x.cut(now, e.HTTPStatus != 429)
		x.tell(fmt.Sprintf("the agent asks to be called less often; trying again in %d s", int(wait.Round(time.Second)/time.Second)))
	case e.Cause == CauseBusy:
		x.tell("too many calls to the agent at once; trying again")
	case e.Cause == CauseAgent:
		x.cutSince, x.cuts = time.Time{}, 0
		if x.refusals++; x.refusals == 1 {
			x.refused = now
		}
		if x.refusals >= o.Refusals && now.Sub(x.refused) >= o.RefusalSpan {
			x.lose(e)
			return
		}
		x.tell(troubleOf(e))
	case e.Cause == CauseLimit:
		// More than is read in one answer: the agent is there, and so is the task.
		x.cut(now, false)
		x.tell(troubleOf(e))
	default:
		x.cut(now, true)
		if x.cuts > 2 && now.Sub(x.cutSince) >= o.LostAfter {
			x.lose(e)
			return
		}
		x.tell(troubleOf(e))
	}
}

// troubleOf says in words what a failed GetTask means for the moment.
func troubleOf(e *Error) string {
	what := "the agent does not tell how the task stands"
	switch e.Cause {
	case CauseDial, CauseDNS, CauseTLS, CauseReset, CauseTimeout, CauseUnavailable:
		what = "the agent cannot be reached"
	}
	return what + " (" + e.Error() + "); trying again"
}

// cut counts a try without a connection; an agent that answers, however
// unhelpfully, is there.
func (x *exchange) cut(now time.Time, counts bool) {
	if !counts {
		x.cutSince, x.cuts = time.Time{}, 0
		return
	}
	if x.cuts++; x.cuts == 1 {
		x.cutSince = now
	}
}

// tell publishes what stands in the way.
func (x *exchange) tell(trouble string) {
	if x.trouble != trouble {
		x.trouble = trouble
		x.publish()
	}
}

// quiet keeps all polls of this agent back for a while and returns how long.
func (f *Follower) quiet(now time.Time, wait time.Duration) time.Duration {
	wait = min(max(wait, f.o.PollMax), f.o.IdleMax)
	f.mu.Lock()
	defer f.mu.Unlock()
	if until := now.Add(wait); until.After(f.quietUntil) {
		f.quietUntil = until
	}
	return f.quietUntil.Sub(now)
}

// wrap makes any error a *Error; nil stays nil.
func (f *Follower) wrap(op string, err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		if e == nil {
			return nil
		}
		if e.Agent == "" || e.Op == "" {
			c := *e
			c.Agent, c.Op = or(e.Agent, f.o.Alias), or(e.Op, op)
			e = &c
		}
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return f.wrapAs(CauseCanceled, op, "the call was cancelled", err)
	case errors.Is(err, context.DeadlineExceeded):
		return f.wrapAs(CauseTimeout, op, "the agent did not answer in time", err)
	}
	return f.wrapAs(CauseProtocol, op, "the agent's answer could not be read", err)
}

// guarded runs work on an agent's behalf. A panic becomes a *Error: one
// agent's odd answer must not end the process.
func (f *Follower) guarded(op string, work func() error) (err error) {
	defer f.recovered(op, &err)
	return work()
}

// next is EventStream.Next, guarded. An open stream waits in it.
func (f *Follower) next(st EventStream) (ev Event, err error) {
	defer f.recovered("stream", &err)
	return st.Next()
}

// recovered, deferred, ends a panic in *err.
func (f *Follower) recovered(op string, err *error) {
	if p := recover(); p != nil {
		f.o.Logger.Error("panic over an agent's answer", "agent", f.o.Alias, "op", op, "panic", p, "stack", string(debug.Stack()))
		*err = f.error(CauseProtocol, op, "the agent's answer could not be read")
	}
}

// outcome is wrap for a call under a deadline of our own, which is no caller's
// cancellation.
func (f *Follower) outcome(ctx context.Context, op string, err error) *Error {
	e := f.wrap(op, err)
	if e != nil && e.Cause == CauseCanceled && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return f.wrapAs(CauseTimeout, op, "the agent did not answer in time", err)
	}
	return e
}

func (f *Follower) wrapAs(cause Cause, op, message string, err error) *Error {
	e := f.error(cause, op, message)
	e.Err = err
	return e
}
