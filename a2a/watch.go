package a2a

import (
	"context"
	"time"
)

// linger is how long a reader that has just been given a snapshot still
// counts as waiting: it is about to come back.
const linger = 2 * time.Second

// Watch is one view on an exchange: what came of a send, or a followed task.
// It costs no goroutine. All methods may be called concurrently, also after
// Close. It must be closed.
type Watch struct {
	x *exchange // as opened; see lock

	// The rest is owned by the mu of the exchange that lock returns.
	closed bool
	// base is the exchange's version at which Seq is 0; shift keeps Seq
	// rising when the exchange went into another.
	base  uint64
	shift int64
	// echo is the question that the sent message answers, hidden until the
	// task shows something else (see hideEcho).
	echo     *Status
	onChange func()
}

// lock returns the exchange that the watch is on, locked.
func (w *Watch) lock() *exchange {
	x := w.x
	for {
		x.mu.Lock()
		if x.into == nil {
			return x
		}
		next := x.into
		x.mu.Unlock()
		x = next
	}
}

// snapshot returns what the watch shows of x, the zero Snapshot for nothing
// yet. x is locked.
func (w *Watch) snapshot(x *exchange) Snapshot {
	if !x.shows() || w.hides(x) {
		return Snapshot{Notes: x.notes}
	}
	s := Snapshot{
		Seq:      uint64(int64(x.ver) + w.shift - int64(w.base)),
		Task:     x.shown,
		Message:  x.message,
		Progress: x.progress,
		Trouble:  x.trouble,
		Lost:     x.lost,
		Done:     x.done,
		Notes:    x.notes,
	}
	if x.dropped != nil && x.shown != nil {
		s.Partial = true
		s.Notes = append(s.Notes[:len(s.Notes):len(s.Notes)], x.droppedNote())
	}
	if x.err != nil {
		s.Err = x.err
	}
	return s
}

// hides reports whether all there is to see is the question that the watch's
// own message answers.
func (w *Watch) hides(x *exchange) bool {
	return w.echo != nil && !x.done && (x.shown == nil || sameStatus(*w.echo, x.shown.Status))
}

// Now returns the latest snapshot, the zero Snapshot (but for notes) before
// anything is known. It asks nobody.
func (w *Watch) Now() Snapshot {
	x := w.lock()
	defer x.unlock()
	return w.snapshot(x)
}

// Next waits for the first snapshot whose Seq is greater than after and
// returns it; a slow reader misses those in between but never the last. At a
// snapshot that is Done it returns at once, whatever after is. While somebody
// waits in Next, the task is streamed or polled often.
//
// The error is ctx's own, or a *Error when the watch is closed or the follower
// ends; the snapshot is then the latest.
func (w *Watch) Next(ctx context.Context, after uint64) (Snapshot, error) {
	for {
		x := w.lock()
		s := w.snapshot(x)
		if s.Seq > after || s.Done {
			x.unlock()
			return s, nil
		}
		if w.closed {
			x.unlock()
			return s, x.f.error(CauseCanceled, "follow", "the watch is closed")
		}
		if x.changed == nil {
			x.changed = make(chan struct{})
		}
		changed := x.changed
		x.waiterComes(time.Now())
		x.unlock()

		var err error
		select {
		case <-changed:
		case <-ctx.Done():
			err = ctx.Err()
		case <-x.f.over:
			err = x.f.ended("follow")
		}
		x.mu.Lock()
		x.waiterGoes(time.Now())
		x.unlock()
		if err != nil {
			return w.lastWord(after, err)
		}
	}
}

// lastWord prefers a snapshot that came at the last moment to the error.
func (w *Watch) lastWord(after uint64, err error) (Snapshot, error) {
	s := w.Now()
	if s.Seq > after {
		return s, nil
	}
	return s, err
}

func (x *exchange) waiterComes(now time.Time) {
	was := x.hot(now)
	x.waiters++
	x.asked, x.wanted, x.idleSeen = now, true, false
	if !was && !x.gone {
		x.backoff = min(x.backoff, x.f.o.PollMin)
		x.replan(now)
	}
	if x.light() && x.src != nil && x.poll == nil && now.Sub(x.lastTry) >= x.f.o.PollMin && x.wantsRefresh(now) {
		x.startPoll(false)
	}
}

func (x *exchange) waiterGoes(now time.Time) {
	x.waiters--
	x.asked = now
	x.hotUntil = latest(x.hotUntil, now.Add(linger))
	if x.waiters == 0 && !x.idleSeen && x.streams() {
		x.replan(now) // its stream may be one too many by then
	}
}

// OnChange sets fn to be called after every change of what the watch shows,
// nil for none; it replaces an earlier one. fn runs without locks in the
// follower's goroutines and must not block; two calls may overlap, and one may
// still come while Close returns. It does not count as waiting: for tasks that
// nobody waits for it costs nothing, and changes are noticed as rarely as
// these are polled.
func (w *Watch) OnChange(fn func()) {
	x := w.lock()
	defer x.unlock()
	x.unlisten(w)
	w.onChange = fn
	if fn != nil && !w.closed {
		x.listeners = append(x.listeners, w)
	}
}

func (x *exchange) unlisten(w *Watch) {
	for i, o := range x.listeners {
		if o == w {
			x.listeners = append(x.listeners[:i:i], x.listeners[i+1:]...)
			return
		}
	}
}

// Refresh asks the agent once how the task stands and returns what is known
// then. It asks nobody when a stream brings every change anyway, when the last
// word is younger than the grace, when nothing more will come, or when no task
// id is known; callers at the same time share one request.
//
// The error is the *Error of that GetTask, beside the snapshot that says what
// it means (Trouble, Lost), or ctx's own. Content that was dropped
// (Snapshot.Partial) is asked for in any case, but ever more rarely where the
// agent has not returned it.
func (w *Watch) Refresh(ctx context.Context) (Snapshot, error) {
	x := w.lock()
	now := time.Now()
	x.asked, x.wanted = now, true
	fl := x.poll
	if fl == nil && x.wantsRefresh(now) {
		fl = x.startPoll(false)
		x.replan(now)
	}
	s := w.snapshot(x)
	x.unlock()
	if fl == nil {
		return s, nil
	}
	return w.await(ctx, fl)
}

func (x *exchange) wantsRefresh(now time.Time) bool {
	lacks := x.lacks() && (x.denied == 0 || now.Sub(x.lastTry) >= x.askAgain())
	if x.gone || x.taskID == "" || !lacks && (x.done || x.streams()) {
		return false
	}
	quiet, _ := x.f.pauses()
	return (lacks || now.Sub(x.heard) >= x.f.o.Grace) && !now.Before(quiet)
}

// await waits for a request that somebody has under way.
func (w *Watch) await(ctx context.Context, fl *flight) (Snapshot, error) {
	var err error
	select {
	case <-fl.done:
		if fl.err != nil {
			err = fl.err
		}
	case <-ctx.Done():
		err = ctx.Err()
	case <-w.x.f.over:
		err = w.x.f.ended("follow")
	}
	return w.Now(), err
}

// Cancel asks the agent to cancel the task, on somebody's explicit wish, and
// returns what is known after its answer; the task may still be working then
// and is followed on. At most one CancelTask is under way for a task, shared
// by all who ask meanwhile; a later Cancel asks again unless the task has
// ended. When the agent has not named the task yet, the request goes out as
// soon as it has, even if ctx ends before. There is nothing to cancel, and no
// error, when the agent answered with a Message.
//
// The error is the *Error of the CancelTask (TaskNotCancelable for a task that
// is known to have ended otherwise), or ctx's own.
func (w *Watch) Cancel(ctx context.Context) (Snapshot, error) {
	x := w.lock()
	if x.done || x.gone {
		s := w.snapshot(x)
		err := x.cancelVerdict()
		x.unlock()
		return s, err
	}
	fl := x.wantCancel()
	x.replan(time.Now())
	x.unlock()
	return w.await(ctx, fl)
}

// Abandon is for a caller who went away before anybody was given a handle: the
// task is cancelled once in the background, unless a cancel has been accepted
// before, and the watch is closed. Where the agent has not named the task yet
// it is waited for, for a limited time.
func (w *Watch) Abandon() {
	x := w.lock()
	defer x.unlock()
	if w.closed {
		return
	}
	if !x.done && !x.cancelled {
		x.wantCancel()
	}
	w.closeOn(x)
}

// Keep lets the exchange be followed, rarely, for up to d after the last watch
// on it has been closed, or until it ends.
func (w *Watch) Keep(d time.Duration) {
	x := w.lock()
	defer x.unlock()
	if !w.closed {
		x.keepUntil = latest(x.keepUntil, time.Now().Add(d))
	}
}

// AtEnd has fn called once, in a goroutine that the follower's Run waits for,
// when the task has ended or is lost; at once where that is so already, and
// never where the exchange is forgotten before (see Keep). It outlives the
// watch, and takes the place of an earlier one of the same key. ctx ends with
// FollowerOptions.CallTimeout and with the follower.
func (w *Watch) AtEnd(key string, fn func(ctx context.Context)) {
	x := w.lock()
	defer x.unlock()
	if w.closed {
		return
	}
	x.addEnd(key, fn)
	x.tellEnd()
}

// Close gives the watch up. With the last one the exchange is forgotten: its
// stream is closed, and the agent, which is not told, works on. Close may be
// called more than once.
func (w *Watch) Close() {
	x := w.lock()
	defer x.unlock()
	if !w.closed {
		w.closeOn(x)
	}
}

func (w *Watch) closeOn(x *exchange) {
	w.closed = true
	x.unlisten(w)
	x.release()
	x.broadcast()
	x.later(func() { x.f.count(FollowerCounts{Watches: -1}) })
}
