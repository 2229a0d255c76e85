package a2a

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// maxArrivalNotes bounds what a Snapshot says about how an answer arrived.
const maxArrivalNotes = 16

// exchange is one send, one followed task, or both: the exchange of a new
// task becomes its followed task when the id arrives. A send to a task that is
// followed already is moved into that exchange with its first answer.
//
// What readers see is what publish last made of it: a state that settles the
// task is folded into cur at once, and shown after the grace.
type exchange struct {
	f *Follower

	mu sync.Mutex // guards everything below except entry

	// after runs when mu is released (see unlock).
	after []func()

	taskID, contextID string
	// trace is that of the request that began the exchange; assigned once.
	trace Trace
	// answers is the task id that the message was sent to, sender its watch
	// until the agent's first answer; both empty for a joined task.
	answers string
	sender  *Watch
	// into is where a send to a followed task went; set once.
	into *exchange
	// held are events without a task id, folded again when the id is known
	// and belongs to an exchange that exists.
	held []Event

	agg *Aggregate // nil before the first event
	// dropped is the content that was given up and not had again, nil for none.
	dropped *outline
	wanted  bool  // somebody has asked since
	denied  int   // GetTasks that did not bring it, in a row
	cur     *Task // as folded
	shown   *Task // as published
	message *Message
	aside   *Message // a message in the middle of a task's stream
	// progress, trouble, err, lost, done, notes are as in Snapshot.
	progress, trouble string
	err               *Error
	lost, done        bool
	notes             []string

	// ver counts publications, word the changes of the status; shownWord is
	// the word last published.
	ver, word, shownWord uint64
	changed              chan struct{} // closed by publish; nil without readers
	listeners            []*Watch      // watches with an OnChange function
	atEnd                map[string]func(context.Context)

	// echoes are the watches that do not see an old question before
	// echoUntil (see hideEcho).
	echoes    []*Watch
	echoUntil time.Time

	watches   int
	waiters   int
	hotUntil  time.Time // a reader that comes back until then never left
	idleSeen  bool      // the stream has been looked at since the last reader left
	asked     time.Time // when somebody last wanted to know
	keepUntil time.Time // Keep
	// cancelBy is until when a cancel waits for the task's id after all have
	// gone.
	cancelBy time.Time
	gone     bool // dropped: nobody may join any more

	src      *source   // the send or stream that brings news, nil without
	graceAt  time.Time // when a settled state is shown, zero for none
	doubt    bool      // the stream began without a snapshot: GetTask decides
	checked  bool      // GetTask has been asked for the sake of doubt
	breaks   int       // streams in a row that broke without news
	streamAt time.Time // not before then is a stream opened

	poll *flight // a GetTask under way
	// epoch rises when a newer word than that of a request in flight has
	// come; the answer to an older request is dropped.
	epoch    uint64
	born     time.Time
	heard    time.Time     // the agent's last word
	lastTry  time.Time     // the end of the last poll, well or not
	backoff  time.Duration // of polls while somebody waits
	jitter   float64
	fails    int       // polls in a row without an answer
	refusals int       // answered with an error
	refused  time.Time // the first of these
	cutSince time.Time // no connection since
	cuts     int

	cancel     *flight // an explicit or pending CancelTask
	cancelled  bool    // the agent has accepted one
	cancelSent bool    // cancel is on its way

	entry dueEntry // owned by Follower.mu
}

func newExchange(f *Follower) *exchange {
	now := time.Now()
	x := &exchange{f: f, born: now, asked: now, backoff: f.o.PollMin}
	x.roll()
	return x
}

// roll draws the factor that keeps polls of many tasks apart.
func (x *exchange) roll() { x.jitter = 0.8 + 0.4*rand.Float64() }

// unlock releases mu and then runs what was put off until no lock is held.
func (x *exchange) unlock() {
	after := x.after
	x.after = nil
	x.mu.Unlock()
	for _, fn := range after {
		fn()
	}
}

func (x *exchange) later(fn func()) { x.after = append(x.after, fn) }

// shows reports whether anything has been published.
func (x *exchange) shows() bool { return x.ver > 0 }

func (x *exchange) state() State {
	if x.cur == nil {
		return ""
	}
	return x.cur.Status.State
}

// note adds a line to Snapshot.Notes; earlier snapshots keep theirs.
func (x *exchange) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	for _, n := range x.notes {
		if n == line {
			return
		}
	}
	if len(x.notes) < maxArrivalNotes {
		x.notes = append(x.notes[:len(x.notes):len(x.notes)], line)
	}
}

// publish makes what is known visible and wakes the readers.
func (x *exchange) publish() {
	if x.done || x.gone {
		return
	}
	x.shown, x.shownWord, x.graceAt = x.cur, x.word, time.Time{}
	x.ver++
	x.passEcho()
	if x.message != nil || x.err != nil || x.state().Terminal() {
		x.finish()
	}
	x.broadcast()
}

// broadcast wakes all readers and listeners.
func (x *exchange) broadcast() {
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
	for _, w := range x.listeners {
		fn := w.onChange
		x.later(fn)
	}
}

// finish ends all upstream work for an exchange whose last word is out.
func (x *exchange) finish() {
	x.done = true
	x.trouble = ""
	x.held, x.aside = nil, nil
	x.stopSource()
	x.tellEnd()
	if !x.cancelSent {
		x.endCancel(nil)
	}
	if x.err != nil || x.message != nil {
		x.f.forget(x)
	}
	if now := time.Now(); x.watches > 0 {
		x.replan(now)
	} else {
		x.drop()
	}
}

func (x *exchange) addEnd(key string, fn func(context.Context)) {
	if x.atEnd == nil {
		x.atEnd = map[string]func(context.Context){}
	}
	x.atEnd[key] = fn
}

// tellEnd calls what waits for the end of the task, once that has come.
func (x *exchange) tellEnd() {
	if !x.done || len(x.atEnd) == 0 {
		return
	}
	forgotten := x.taskID != "" && x.message != nil // see lose
	if !x.lost && !forgotten && !x.state().Terminal() {
		return
	}
	tell, f := x.atEnd, x.f
	x.atEnd = nil
	f.start(func() {
		ctx, cancel := context.WithTimeout(f.ctx, f.o.CallTimeout)
		defer cancel()
		for _, fn := range tell {
			fn(ctx)
		}
	})
}

// fail ends the exchange without an answer.
func (x *exchange) fail(e *Error) {
	if x.done {
		return
	}
	x.err = e
	x.publish()
}

// lose ends the exchange whose task can no longer be reached.
func (x *exchange) lose(e *Error) {
	if x.done {
		return
	}
	x.f.o.Logger.Debug("task lost", "agent", x.f.o.Alias, "cause", string(e.Cause), "reason", e.Error())
	if x.aside != nil {
		x.note("the agent no longer knows the task; its message in the middle of the task is taken as the answer")
		x.message, x.cur = x.aside, nil
	} else {
		x.err, x.lost = e, true
	}
	x.publish()
}

// streams reports whether a stream that the agent has accepted is open.
func (x *exchange) streams() bool { return x.src != nil && x.src.open }

// stopSource detaches and closes the stream or send in flight. One whose event
// brought the end is closed by its own reader.
func (x *exchange) stopSource() {
	if x.src != nil && !x.src.inHand {
		x.later(x.src.stop)
	}
	x.src = nil
}

// heardFrom notes that the agent answered: what stood in the way is over.
func (x *exchange) heardFrom(now time.Time) {
	x.heard = now
	x.fails, x.refusals, x.cuts = 0, 0, 0
	x.cutSince, x.refused = time.Time{}, time.Time{}
}

// apply folds one event for this task; from says who brought it.
func (x *exchange) apply(ev Event, from via) {
	if x.done || x.gone {
		return
	}
	now := time.Now()
	x.heardFrom(now)
	cleared := x.trouble != ""
	x.trouble = ""
	if why := x.unfit(ev); why != "" {
		x.note("%s", why)
		if ev.Message != nil {
			x.aside = ev.Message
		}
		if cleared {
			x.publish()
		}
		x.weigh()
		return
	}
	old := x.cur
	if x.missed() && from != viaStream && ev.Task != nil {
		x.agg.light = false
	}
	next, err := x.fold(ev)
	if err != nil {
		x.fail(err)
		return
	}
	if x.dropped != nil && !x.agg.light && ev.Task != nil {
		x.regain(next, from == viaGet)
		cleared = cleared || x.dropped == nil
	}
	x.cur = next
	x.show(old, ev, from, cleared, now)
	x.weigh()
}

// unfit says why an event is not folded, "" for one that is.
func (x *exchange) unfit(ev Event) string {
	var state State
	switch {
	case ev.Message != nil:
		return "the agent sent a message in the middle of the task's stream"
	case ev.Status != nil:
		state = ev.Status.Status.State
	case ev.Task != nil:
		state = ev.Task.Status.State
	case ev.Artifact == nil:
		return "the agent sent an empty event; it was ignored"
	}
	if id := eventTaskID(ev); id != "" && x.taskID != "" && id != x.taskID {
		return "the agent sent an event of another task; it was ignored"
	}
	if was := x.state(); was.Terminal() && state != "" && state != was {
		return "the agent changed a task that had ended; the change was ignored"
	}
	return ""
}

// fold folds ev into the task.
func (x *exchange) fold(ev Event) (*Task, *Error) {
	if x.agg == nil {
		x.agg = NewAggregate(x.f.o.TaskBytes)
	}
	var t *Task
	err := x.f.guarded("follow", func() error {
		if err := x.agg.Add(ev); err != nil {
			return err
		}
		t = x.agg.Task()
		return nil
	})
	if err != nil {
		return nil, x.f.wrap("follow", err)
	}
	return x.identified(t), nil
}

// identified fills in the ids that the agent left out.
func (x *exchange) identified(t *Task) *Task {
	if t.ContextID == "" && x.contextID != "" || t.ID == "" && x.taskID != "" {
		c := *t
		c.ID, c.ContextID = or(c.ID, x.taskID), or(c.ContextID, x.contextID)
		t = &c
	}
	return t
}

// via says how an event came.
type via uint8

const (
	viaStream via = iota
	// viaCall is the truth at the time of a request: a cancel, a unary send.
	viaCall
	// viaGet is the whole truth, of GetTask.
	viaGet
)

// show decides whether what apply folded is published now, after the grace,
// or not at all because nothing changed.
func (x *exchange) show(old *Task, ev Event, from via, cleared bool, now time.Time) {
	state := x.state()
	status := old == nil || !sameStatus(old.Status, x.cur.Status)
	changed := status || ev.Artifact != nil || !sameContent(old, x.cur)
	if status {
		x.word++
		x.backoff = min(x.backoff, x.f.o.PollMin)
		if m := x.cur.Status.Message; m != nil && !state.Terminal() {
			x.progress = or(messageText(m), x.progress)
		}
	}
	switch {
	case x.word == x.shownWord || !state.Settled():
		x.graceAt = time.Time{}
		if changed || cleared {
			x.publish()
		} else {
			x.shown = x.cur // equal values: one copy is enough
		}
	case from != viaStream:
		x.publish()
	case !x.graceAt.IsZero():
		if ev.Task != nil {
			x.settle(now)
		}
	default:
		x.graceAt = now.Add(x.f.o.Grace)
	}
}

// settle shows a settled state at the end of its grace. Where the stream had
// begun without a snapshot, or content is missed that was dropped, GetTask
// decides.
func (x *exchange) settle(now time.Time) {
	missed := x.missed()
	if (missed || x.doubt || x.agg.Unsure()) && !x.checked && x.taskID != "" && (missed || x.poll == nil) {
		x.checked = true
		if x.state().Terminal() {
			x.stopSource()
		}
		if x.poll == nil {
			x.startPoll(false)
		}
		x.graceAt = now.Add(min(x.f.o.PollMax, x.f.o.CallTimeout))
		return
	}
	x.publish()
	x.weigh()
}

// release gives up one watch and drops the exchange with the last.
func (x *exchange) release() {
	x.watches--
	x.dropIfUnused(time.Now())
}

// dropIfUnused drops an exchange that nobody watches, keeps or cancels. The
// agent is not told: it works on.
func (x *exchange) dropIfUnused(now time.Time) {
	switch {
	case x.gone || x.watches > 0:
	case !x.done && (x.cancelSent || now.Before(x.wantedUntil())):
		x.weigh()
		x.replan(now)
	default:
		x.drop()
	}
}

// wantedUntil is when an exchange without watches is dropped.
func (x *exchange) wantedUntil() time.Time {
	if x.cancel != nil {
		return latest(x.keepUntil, x.cancelBy)
	}
	return x.keepUntil
}

func (x *exchange) drop() {
	if x.gone {
		return
	}
	x.gone = true
	x.stopSource()
	x.endCancel(nil)
	if x.taskID != "" && x.shown != nil && x.shown.Status.State.Interrupted() {
		x.f.rememberQuestion(x.taskID, x.shown.Status)
	}
	x.f.forget(x)
	x.weigh()
	x.later(func() { x.f.count(FollowerCounts{Tasks: -1}) })
}
