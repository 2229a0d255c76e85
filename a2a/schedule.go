package a2a

import (
	"container/heap"
	"context"
	"time"
)

// action is what is next for an exchange.
type action uint8

const (
	actNone      action = iota
	actSettle           // show a settled state, its grace is over
	actEcho             // show a question taken for an echo
	actIdle             // its last reader has gone: is the stream worth its place?
	actDrop             // nobody has come back for it
	actPoll             // GetTask
	actSubscribe        // SubscribeToTask
)

// hot reports whether somebody waits for the task.
func (x *exchange) hot(now time.Time) bool {
	return x.waiters > 0 || now.Before(x.hotUntil)
}

// goesOn reports whether the task may change without its caller: it works, or
// waits for a login done elsewhere, or has yet to take an answer. A question may be answered by others, so
// such a task is still looked at, but rarely.
func (x *exchange) goesOn() bool {
	s := x.state()
	return !s.Settled() || s == StateAuthRequired || len(x.echoes) > 0
}

// plan returns what is to be done next and when; actNone for nothing. It is
// computed anew whenever something changes and when its time comes, so a plan
// that is out of date does no harm.
func (x *exchange) plan(now time.Time) (time.Time, action) {
	var at time.Time
	act := actNone
	if x.gone || x.done {
		return at, act
	}
	consider := func(t time.Time, a action) {
		if act == actNone || t.Before(at) {
			at, act = t, a
		}
	}
	if !x.graceAt.IsZero() {
		consider(x.graceAt, actSettle)
	}
	if len(x.echoes) > 0 {
		consider(x.echoUntil, actEcho)
	}
	if x.watches == 0 && !x.cancelSent {
		consider(x.wantedUntil(), actDrop)
	}
	if x.taskID == "" || x.poll != nil || x.cancelSent || !x.graceAt.IsZero() {
		return at, act
	}
	hot := x.hot(now) && x.goesOn()
	if x.src != nil {
		// A subscription may stay without its first snapshot, too.
		if hot && (x.src.open || !x.src.send) {
			consider(latest(x.heard, x.lastTry).Add(x.f.o.Silence), actPoll)
		}
		if x.waiters == 0 && x.src.open && !x.idleSeen {
			consider(x.hotUntil, actIdle)
		}
		return at, act
	}
	quiet, noStreams := x.f.pauses()
	if hot && x.cur != nil && x.fails == 0 && x.f.o.MaxStreams > 0 {
		consider(latest(x.streamAt, quiet, noStreams), actSubscribe)
	}
	consider(latest(x.pollAt(now, hot), quiet), actPoll)
	return at, act
}

// pollAt returns when GetTask is due for a task without a stream.
func (x *exchange) pollAt(now time.Time, hot bool) time.Time {
	o := &x.f.o
	if x.lastTry.IsZero() {
		// A short wait lets a cancel or refresh that follows at once do the
		// asking.
		if x.hot(now) {
			return x.born
		}
		return x.born.Add(o.Grace)
	}
	var wait time.Duration
	switch {
	case x.fails > 0 && x.fails <= 3:
		wait = o.PollMin << x.fails
	case x.fails > 0 && hot:
		wait = o.PollMax
	case x.fails > 0:
		// Twice within LostAfter, so that a lost task is found in time.
		wait = min(o.IdleMax, o.LostAfter/2)
	case hot:
		wait = x.backoff
	case x.waiters > 0:
		wait = o.IdleMin
	default:
		wait = min(max(x.lastTry.Sub(x.asked)/2, o.IdleMin), o.IdleMax)
	}
	return x.lastTry.Add(time.Duration(float64(wait) * x.jitter))
}

// pollSoon makes the next poll due now.
func (x *exchange) pollSoon(now time.Time) {
	x.lastTry = time.Time{}
	x.born = now.Add(-x.f.o.Grace)
}

// replan puts the exchange on the schedule by its plan.
func (x *exchange) replan(now time.Time) {
	at, act := x.plan(now)
	x.f.setDue(x, at, act != actNone)
}

// step does what is due for the exchange; it does not block.
func (x *exchange) step() {
	x.mu.Lock()
	defer x.unlock()
	now := time.Now()
	at, act := x.plan(now)
	if act == actNone || at.After(now) {
		x.f.setDue(x, at, act != actNone)
		return
	}
	switch act {
	case actSettle:
		x.settle(now)
	case actEcho:
		x.endEcho()
	case actIdle:
		x.idleSeen = true
		s := x.src
		x.later(func() { x.f.trimIdle(s) })
	case actDrop:
		x.dropIfUnused(now)
		return
	case actPoll:
		if !x.f.takePoll(x, x.hot(now)) {
			return
		}
		x.startPoll(true)
	case actSubscribe:
		x.gather()
		x.startSubscribe(now)
	}
	x.replan(now)
}

func (x *exchange) startSubscribe(now time.Time) {
	s := x.f.newSource(x, false)
	x.src = s
	// The place is taken outside the lock, for it may need to look at others.
	x.later(func() {
		if x.f.takeSlot(s) {
			if !x.f.start(func() { x.f.runSubscribe(s) }) {
				x.f.freeSlot(s)
				s.stop()
			}
			return
		}
		x.mu.Lock()
		defer x.unlock()
		s.stop()
		if x.src == s {
			x.src = nil
			x.streamAt = now.Add(x.f.o.PollMax)
			x.replan(now)
		}
	})
}

// schedule steps each exchange when it is due, until ctx is done.
func (f *Follower) schedule(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var now []*exchange
	var trim trimClock
	for {
		if trim.due(time.Now(), f.takeTrim()) {
			trim.at = f.trimContent(time.Now())
		}
		var wait time.Duration
		now, wait = f.takeDue(now[:0])
		for i, x := range now {
			x.step()
			now[i] = nil
		}
		if len(now) > 0 && ctx.Err() == nil {
			continue
		}
		if !trim.at.IsZero() {
			wait = min(wait, time.Until(trim.at))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-timer.C:
		}
	}
}

// takeDue takes the exchanges that are due off the heap, a bounded number at
// a time, and returns how long to wait for the next where there are none.
func (f *Follower) takeDue(into []*exchange) ([]*exchange, time.Duration) {
	const batch = 64
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := time.Hour
	for len(f.due) > 0 && len(into) < batch {
		x := f.due[0]
		if wait = time.Until(x.entry.at); wait > 0 {
			break
		}
		heap.Pop(&f.due)
		into = append(into, x)
	}
	return into, wait
}

// setDue puts x on the schedule, moves it there, or takes it off.
func (f *Follower) setDue(x *exchange, at time.Time, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !on {
		f.due.remove(x)
		return
	}
	if x.entry.place > 0 && x.entry.at.Equal(at) {
		return
	}
	x.entry.at = at
	if x.entry.place > 0 {
		heap.Fix(&f.due, x.entry.place-1)
	} else {
		heap.Push(&f.due, x)
	}
	if f.due[0] == x {
		f.poke()
	}
}

// poke wakes the scheduler.
func (f *Follower) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// takePoll takes one of the places for polls, or queues x until one is free.
func (f *Follower) takePoll(x *exchange, hot bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case x.entry.granted:
		x.entry.granted = false
		return true
	case f.polls < f.o.MaxPolls && (hot || f.cold < f.maxCold()):
		f.take(x, !hot)
		return true
	case !x.entry.queued:
		x.entry.queued = true
		line := 1
		if hot {
			line = 0
		}
		f.ready[line] = append(f.ready[line], x)
	}
	return false
}

// maxCold bounds the polls at once for tasks that nobody waits for: each may
// cost a connection, which stays for a while.
func (f *Follower) maxCold() int { return max(1, f.o.MaxPolls/4) }

// take counts a place for polls as x's; mu is held.
func (f *Follower) take(x *exchange, cold bool) {
	f.polls++
	if x.entry.cold = cold; cold {
		f.cold++
	}
}

// giveBack takes it back; mu is held.
func (f *Follower) giveBack(x *exchange) {
	f.polls--
	if x.entry.cold {
		x.entry.cold = false
		f.cold--
	}
}

// pollDone frees x's place for polls and serves those in line.
func (f *Follower) pollDone(x *exchange) {
	for x = f.nextInLine(x, true); x != nil; x = f.nextInLine(x, false) {
		x.step()
	}
}

// coldShare is how many grants of a place go by until one goes first to a task
// that nobody waits for.
const coldShare = 8

// nextInLine takes the next exchange that waits for a place, nil for none, and
// gives it one. served is the one whose poll is over, else the one before,
// whose place is taken back if it did not need it any more. In between nobody
// finds a place free: one that polls while it waits in line would be counted
// wrong.
func (f *Follower) nextInLine(served *exchange, over bool) *exchange {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case over:
		f.giveBack(served)
	case served.entry.granted:
		served.entry.granted = false
		f.giveBack(served)
	}
	if f.polls >= f.o.MaxPolls {
		return nil
	}
	f.grants++
	for i := range f.ready {
		if f.grants%coldShare == 0 {
			i = len(f.ready) - 1 - i
		}
		q := f.ready[i]
		if len(q) == 0 || i == 1 && f.cold >= f.maxCold() {
			continue
		}
		x := q[0]
		q[0] = nil
		if f.ready[i] = q[1:]; len(q) == 1 {
			f.ready[i] = nil
		}
		x.entry.queued, x.entry.granted = false, true
		f.take(x, i == 1)
		return x
	}
	return nil
}

// pauses returns until when the agent is neither polled nor asked for streams.
func (f *Follower) pauses() (quiet, noStreams time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.quietUntil, f.noStreams
}

// dueEntry is an exchange's place on the schedule.
type dueEntry struct {
	at     time.Time
	place  int  // index in the heap + 1; 0 is not there
	queued bool // in Follower.ready
	// granted says that a place for a poll is counted for it already.
	granted bool
	cold    bool // that place counts among Follower.cold
	// weight is the bytes of content held, as counted in Follower.content.
	weight int64
}

// dueHeap orders exchanges by due time.
type dueHeap []*exchange

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].entry.at.Before(h[j].entry.at) }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].entry.place, h[j].entry.place = i+1, j+1
}

// Push implements heap.Interface.
func (h *dueHeap) Push(v any) {
	x := v.(*exchange)
	*h = append(*h, x)
	x.entry.place = len(*h)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	x.entry.place = 0
	return x
}

func (h *dueHeap) remove(x *exchange) {
	if x.entry.place > 0 {
		heap.Remove(h, x.entry.place-1)
	}
}

func latest(times ...time.Time) time.Time {
	var t time.Time
	for _, u := range times {
		if u.After(t) {
			t = u
		}
	}
	return t
}
