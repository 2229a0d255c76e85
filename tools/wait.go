package tools

import (
	"context"
	"errors"
	"time"

	"a2agate/a2a"
	"a2agate/translate"
)

// ending is why a wait ended.
type ending int

const (
	// endSettled: what was waited for is there.
	endSettled ending = iota
	// endTask: the grace is over and the call becomes an MCP task.
	endTask
	// endBudget: the time is used up, or the gateway stops; the agent works on.
	endBudget
	// endGone: the caller has gone.
	endGone
)

// wait is one wait for a watch.
type wait struct {
	watch *a2a.Watch
	// until says when what is known is enough.
	until func(a2a.Snapshot) bool
	// deadline ends the wait.
	deadline time.Time
	// becomes says whether the call may become an MCP task now that grace has
	// passed; nil for calls that never do.
	becomes func(a2a.Snapshot) bool
	grace   time.Time
	// progress is told of every change that does not end the wait.
	progress func(string)
	// first runs once, when the first snapshot is there or the wait ends.
	first func()
}

// run waits. Progress is reported from the calling goroutine only, and never
// for the snapshot that is returned as settled.
func (w *wait) run(ctx context.Context) (a2a.Snapshot, ending) {
	if w.first != nil {
		defer func() { w.firstOnce() }()
	}
	snap := w.watch.Now()
	shown := uint64(0)
	for {
		if snap.Seq > 0 {
			w.firstOnce()
		}
		if w.until(snap) {
			return snap, endSettled
		}
		if ctx.Err() != nil {
			if gone(ctx) {
				return snap, endGone
			}
			return snap, endBudget
		}
		now := time.Now()
		graceOver := w.becomes != nil && !now.Before(w.grace)
		if graceOver && w.becomes(snap) {
			return snap, endTask
		}
		if !now.Before(w.deadline) {
			return snap, endBudget
		}
		if snap.Seq > shown {
			shown = snap.Seq
			w.report(snap)
		}
		next := w.deadline
		if w.becomes != nil && !graceOver && w.grace.Before(next) {
			next = w.grace
		}
		var waits bool
		if snap, waits = w.next(ctx, snap, next); !waits {
			return snap, endBudget
		}
	}
}

// next waits for a change until at the latest. waits is false when waiting
// brings nothing any more, because the follower has ended.
func (w *wait) next(ctx context.Context, snap a2a.Snapshot, at time.Time) (now a2a.Snapshot, waits bool) {
	bounded, cancel := context.WithDeadline(ctx, at)
	defer cancel()
	changed, err := w.watch.Next(bounded, snap.Seq)
	return changed, err == nil || bounded.Err() != nil || w.until(changed)
}

func (w *wait) firstOnce() {
	if w.first != nil {
		w.first()
		w.first = nil
	}
}

func (w *wait) report(snap a2a.Snapshot) {
	if w.progress == nil {
		return
	}
	text := snap.Progress
	if snap.Trouble != "" {
		text = snap.Trouble
	}
	w.progress(translate.CutRunes(translate.CleanName(text), 200))
}

// gone reports whether the caller has given up, see Service.Call.
func gone(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled)
}

// settled says that waiting longer brings nothing by itself. AUTH_REQUIRED is
// waited through: an agent may go on by itself after the login (A2A 7.6.2).
func settled(s a2a.Snapshot) bool {
	if s.Done || s.Err != nil {
		return true
	}
	if s.Task == nil {
		return false
	}
	st := s.Task.Status.State
	return st.Settled() && st != a2a.StateAuthRequired
}

// known says that there is anything to answer with: for calls that do not
// wait for the agent to finish.
func known(s a2a.Snapshot) bool {
	return s.Task != nil || s.Message != nil || s.Err != nil || s.Done
}

// asks says that the agent waits for its caller's words.
func asks(s a2a.Snapshot) bool {
	return s.Err == nil && s.Task != nil && s.Task.Status.State == a2a.StateInputRequired
}
