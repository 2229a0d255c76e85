package a2a

import "time"

// firstAnswer takes an event of a send whose task is not known yet.
func (x *exchange) firstAnswer(s *source, ev Event, from via) {
	id := eventTaskID(ev)
	switch {
	case ev.Message != nil:
		for _, n := range ev.Notes {
			x.note("%s", n)
		}
		x.message = ev.Message
		x.publish()
		x.weigh()
	case id == "":
		if len(x.held) < maxHeld {
			x.held = append(x.held, ev)
		}
		if ev.Task != nil || ev.Status != nil {
			x.note("the agent gave the task no id, so it cannot be followed")
		}
		x.apply(ev, from)
	default:
		if x.answers != "" && id != x.answers {
			x.note("the agent answered with another task than the one the message was for")
		}
		x.accept(s, id, ev, from)
	}
}

// maxHeld bounds the events kept until the task's id is known; what they
// brought is folded all the same.
const maxHeld = 256

// accept joins x with the task id the agent answered with: x becomes the
// exchange of that task, or goes into the one that follows it already.
func (x *exchange) accept(s *source, id string, ev Event, from via) {
	var old *exchange
	for {
		y := x.f.claim(id, x, old)
		if y == nil {
			break
		}
		y.mu.Lock()
		if y.gone || y.done {
			// A task that had ended keeps its end; what comes now is new.
			y.unlock()
			old = y
			continue
		}
		x.goInto(y, s, ev, from)
		x.later(y.unlock)
		return
	}
	x.taskID = id
	if asked := x.f.recallQuestion(id); old == nil {
		x.hideEcho(x, s, asked)
	}
	x.sender, x.held = nil, nil
	if from != viaStream {
		x.backoff = x.f.o.PollFirst
	}
	x.apply(ev, from)
	x.startPendingCancel()
}

// hideEcho keeps the question that the message answers from the sender's
// watch, now on y, in case the agent shows it once more before it goes on.
func (x *exchange) hideEcho(y *exchange, s *source, question *Status) {
	if w := x.sender; w != nil && question != nil && y.taskID == x.answers && !s.definite {
		w.echo = question
		y.echoes = append(y.echoes, w)
		y.echoUntil = time.Now().Add(x.f.o.Echo)
	}
}

// endEcho shows a hidden question after all: nothing else came.
func (x *exchange) endEcho() {
	if len(x.echoes) == 0 {
		return
	}
	for _, w := range x.echoes {
		w.echo = nil
	}
	x.echoes, x.echoUntil = nil, time.Time{}
	x.broadcast()
}

// passEcho lifts the hiding from watches that the published status answers.
func (x *exchange) passEcho() {
	if len(x.echoes) == 0 || x.shown == nil {
		return
	}
	kept := x.echoes[:0]
	for _, w := range x.echoes {
		if w.echo != nil && sameStatus(*w.echo, x.shown.Status) {
			kept = append(kept, w)
		} else {
			w.echo = nil
		}
	}
	x.echoes = kept
}

// goInto moves the send x into y, which follows the task already. Both locks
// are held. y's own stream gives way: the send's answer is the newer word.
func (x *exchange) goInto(y *exchange, s *source, ev Event, from via) {
	now := time.Now()
	if w := x.sender; w != nil {
		w.shift = int64(x.ver) + 1 - int64(y.ver)
		if w.onChange != nil {
			y.listeners = append(y.listeners, w)
			x.later(w.onChange)
		}
		if y.state().Interrupted() {
			question := y.cur.Status
			x.hideEcho(y, s, &question)
		}
	}
	x.sender = nil
	x.into = y
	y.watches += x.watches
	y.keepUntil, y.cancelBy = latest(y.keepUntil, x.keepUntil), latest(y.cancelBy, x.cancelBy)
	for key, fn := range x.atEnd {
		y.addEnd(key, fn)
	}
	y.asked = now
	y.epoch++
	y.stopSource()
	y.src, x.src = s, nil
	s.x.Store(y)
	if from != viaStream {
		y.backoff = x.f.o.PollFirst
	}
	y.graceAt = time.Time{}
	y.gather()
	for _, n := range x.notes {
		y.note("%s", n)
	}
	for _, h := range x.held {
		y.apply(h, from)
	}
	y.apply(ev, from)
	y.takeCancel(x)
	x.held, x.watches, x.listeners = nil, 0, nil
	x.gone = true
	x.weigh()
	x.later(func() { x.f.count(FollowerCounts{Tasks: -1}) })
	x.broadcast()
	y.replan(now)
}
