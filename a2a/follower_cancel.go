package a2a

import (
	"context"
	"time"
)

// cancelWatch is how long a task is looked at often after a cancel was
// accepted, for the state that it leads to.
const cancelWatch = 30 * time.Second

// wantCancel returns the flight of the one CancelTask under way for the
// exchange, starting it where there is none. Without a task id it waits until
// the agent has named the task.
func (x *exchange) wantCancel() *flight {
	fl := x.cancel
	if fl == nil {
		fl = newFlight()
		x.cancel, x.cancelBy = fl, time.Now().Add(x.f.o.AbandonWait)
		x.startPendingCancel()
	}
	return fl
}

// startPendingCancel sends the CancelTask that is wanted, once the id is known.
func (x *exchange) startPendingCancel() {
	if x.cancel == nil || x.cancelSent || x.taskID == "" || x.done || x.gone {
		return
	}
	x.cancelSent = true
	fl, id := x.cancel, x.taskID
	if !x.f.start(func() { x.runCancel(fl, id) }) {
		x.cancelSent = false
		x.endCancel(x.f.ended("cancel"))
	}
}

// endCancel answers those who wait for a cancel.
func (x *exchange) endCancel(e *Error) {
	if fl := x.cancel; fl != nil {
		x.cancel = nil
		x.later(func() { fl.end(e) })
	}
}

// takeCancel lets the wish to cancel x hold for x's task, followed by this
// exchange; both locks are held.
func (x *exchange) takeCancel(from *exchange) {
	fl := from.cancel
	if fl == nil {
		return
	}
	from.cancel = nil
	switch {
	case x.done:
		from.later(func() { fl.end(nil) })
	case x.cancel == nil:
		x.cancel = fl
		x.startPendingCancel()
	default:
		x.cancel.also = append(x.cancel.also, fl)
	}
}

func (x *exchange) runCancel(fl *flight, id string) {
	f := x.f
	f.mu.Lock()
	base := f.hangup
	f.mu.Unlock()
	ctx, stop := context.WithTimeout(WithTrace(base, x.trace), f.o.CallTimeout)
	defer stop()
	var t *Task
	err := f.guarded("cancel", func() error {
		up, err := f.o.Upstream(ctx)
		if err != nil {
			return err
		}
		t, err = up.CancelTask(ctx, id)
		return err
	})
	x.cancelAnswered(fl, t, f.outcome(ctx, "cancel", err))
}

// cancelAnswered takes the answer to a CancelTask. A refusal changes nothing
// but that the task is looked at now: it may just have ended.
func (x *exchange) cancelAnswered(fl *flight, t *Task, e *Error) {
	x.mu.Lock()
	defer x.unlock()
	now := time.Now()
	x.cancelSent = false
	if x.cancel == fl {
		x.endCancel(e)
	}
	if !x.done && !x.gone {
		x.epoch++
		switch {
		case e != nil:
			x.pollSoon(now)
		case t != nil && (!x.streams() || t.Status.State.Terminal()):
			x.cancelled = true
			x.lastTry = now
			x.apply(Event{Task: t}, viaCall)
		default:
			x.cancelled = true
		}
		if x.watches > 0 {
			x.backoff = x.f.o.PollMin
			x.hotUntil = latest(x.hotUntil, now.Add(cancelWatch))
		}
	}
	x.dropIfUnused(now)
	x.replan(now)
}

// cancelVerdict is the answer to a cancel of an exchange that is over.
func (x *exchange) cancelVerdict() error {
	switch state := x.state(); {
	case !x.done:
		return x.f.error(CauseCanceled, "cancel", "the watch is closed")
	case x.err != nil:
		return x.err
	case x.message != nil || state == StateCanceled:
		return nil
	default:
		e := x.f.error(CauseAgent, "cancel", "the task has already ended ("+stateWord(state)+") and cannot be cancelled")
		e.Code, e.Reason = CodeTaskNotCancelable, "TASK_NOT_CANCELABLE"
		return e
	}
}

// stateWord is a terminal state in a word of running text.
func stateWord(s State) string {
	switch s {
	case StateCompleted:
		return "completed"
	case StateFailed:
		return "failed"
	case StateRejected:
		return "rejected"
	}
	return string(s)
}
