package a2a

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a follower keeps of tasks that nobody reads is bounded. Beyond it the
// artifacts and the history are dropped, and a reader who comes has GetTask
// ask for them again; ids, state and the status stay. Where the agent then
// returns less than it had streamed, the snapshot says so.

// lightWeight is up to which size an exchange's content is not worth counting.
const lightWeight = 4 << 10

// outlineArtifacts bounds the artifacts of dropped content whose sizes are
// kept one by one.
const outlineArtifacts = 64

// keptID is up to which length an id is kept of dropped content.
const keptID = 512

// outline is how much content was dropped of a task, in bytes of text and data.
type outline struct {
	sizes   map[string]int64 // by artifact id
	rest    int64            // of the artifacts that are not in sizes
	history int64
	status  int64 // of the status message, where only its beginning was kept
}

// add counts a piece of an artifact that is not kept.
func (o *outline) add(u *ArtifactUpdate) {
	n := contentSize(u.Artifact.Parts)
	if _, there := o.sizes[u.Artifact.ArtifactID]; !there && (len(o.sizes) >= outlineArtifacts || len(u.Artifact.ArtifactID) > keptID) {
		o.rest += n
		return
	}
	if o.sizes == nil {
		o.sizes = make(map[string]int64)
	}
	if u.Append {
		n += o.sizes[u.Artifact.ArtifactID]
	}
	o.sizes[u.Artifact.ArtifactID] = n
}

// snapshot counts the artifacts of a whole task that are not kept. They come
// again and again: what was counted before is not counted twice.
func (o *outline) snapshot(list []Artifact) {
	before := o.total()
	o.rest = 0
	for i := range list {
		o.add(&ArtifactUpdate{Artifact: list[i]})
	}
	o.rest += max(0, before-o.total())
}

// replaced counts a status message that another one takes the place of.
func (o *outline) replaced(m *Message) {
	o.history += max(o.status, contentSize(m.Parts))
	o.status = 0
}

// slim is slimMessage; it counts what is cut.
func (o *outline) slim(m *Message) *Message {
	s := slimMessage(m)
	if s != m {
		o.status = contentSize(m.Parts)
	}
	return s
}

// total is the size of the artifacts.
func (o *outline) total() int64 {
	n := o.rest
	for _, size := range o.sizes {
		n += size
	}
	return n
}

// addTask counts what a whole task holds.
func (o *outline) addTask(t *Task) {
	for i := range t.Artifacts {
		o.add(&ArtifactUpdate{Artifact: t.Artifacts[i]})
	}
	for i := range t.History {
		o.history += contentSize(t.History[i].Parts)
	}
	if m := t.Status.Message; m != nil {
		o.status = contentSize(m.Parts)
	}
}

// missing says in plain words what t lacks of the content dropped, "" when it
// has as much as there was.
func (o *outline) missing(t *Task) string {
	var now outline
	now.addTask(t)
	switch lost := o.total() - now.total(); {
	case lost > 0:
		return fmt.Sprintf("about %d bytes of the task's content were dropped while nobody read the task, and the agent does not return them: ask the agent again for what is missing", lost)
	case o.history > now.history:
		return "earlier messages of the task were dropped while nobody read it, and the agent does not return them"
	case o.status > max(now.status, now.history-o.history):
		return "a long message of the task was dropped while nobody read it, and the agent does not return it: only its beginning was kept"
	}
	return ""
}

// contentSize is the size of what parts hold, without what is ours.
func contentSize(parts []Part) int64 {
	var n int64
	for i := range parts {
		p := &parts[i]
		n += int64(len(p.Text) + len(p.Data) + len(p.URL) + len(p.Base64) + len(p.Unknown))
	}
	return n
}

// slimMessage is what is kept of a status message without its content: all of
// one that is short.
func slimMessage(m *Message) *Message {
	if m == nil || messageSize(m) <= maxQuestionBytes {
		return m
	}
	slim := &Message{Role: m.Role, Parts: []Part{{Kind: PartText, Text: cutText(messageText(m))}}}
	if len(m.MessageID) <= keptID {
		slim.MessageID = m.MessageID
	}
	return slim
}

// cutText returns a copy of the beginning of a text that is kept without the
// rest, and a short text as it is.
func cutText(s string) string {
	if len(s) <= lightWeight {
		return s
	}
	return strings.ToValidUTF8(strings.Clone(s[:lightWeight]), "") + "…"
}

// light reports whether the exchange keeps no content that comes.
func (x *exchange) light() bool { return x.dropped != nil && x.agg.light }

// missed reports whether somebody has asked for content since it was dropped:
// a task that nobody reads stays without it, however often it is polled.
func (x *exchange) missed() bool { return x.wanted && x.lacks() }

// lacks reports whether content that was dropped is to be asked for. Where a
// message's own stream has begun to bring content, that waits for its end.
func (x *exchange) lacks() bool {
	return x.dropped != nil && (x.agg.light || !x.streams() || !x.src.send)
}

// askAgain is the wait between two tries to have dropped content: it grows with
// those that failed.
func (x *exchange) askAgain() time.Duration { return x.f.o.PollMin << min(x.denied, 7) }

// weigh counts what the exchange holds, and drops it at once where it is more
// than is kept of one task without watches.
func (x *exchange) weigh() {
	w := x.size()
	if w > x.f.o.IdleBytes && x.watches == 0 && x.sheds() {
		x.shed()
		w = x.size()
	}
	x.f.weigh(x, w)
}

// size is how many bytes of content the exchange holds.
func (x *exchange) size() int64 {
	if x.gone {
		return 0
	}
	var n int64
	if x.agg != nil {
		n = x.agg.size
	}
	if x.cur != nil {
		n += int64(len(x.cur.Metadata))
		if m := x.cur.Status.Message; m != nil {
			n += messageSize(m)
		}
	}
	for _, m := range []*Message{x.message, x.aside} {
		if m != nil {
			n += messageSize(m)
		}
	}
	return n
}

// sheds reports whether the exchange has content that can be dropped without
// a reader noticing more than a note.
func (x *exchange) sheds() bool {
	return !x.gone && x.graceAt.IsZero() && (x.message != nil || x.cur != nil && !x.light() && x.agg != nil)
}

// unread reports whether nobody has asked for the exchange lately.
func (x *exchange) unread(now time.Time) bool {
	return x.watches == 0 || !x.hot(now) && now.Sub(x.asked) > linger
}

// shed drops the content.
func (x *exchange) shed() {
	x.f.o.Logger.Debug("content dropped", "agent", x.f.o.Alias, "bytes", x.size())
	if x.message != nil {
		// There is no task to ask for it again.
		x.message = nil
		x.err = x.f.error(CauseLimit, "follow", "the agent's answer was dropped, since nobody read it and too much was waiting: ask the agent again")
		x.ver++
		x.broadcast()
		return
	}
	d := &outline{}
	d.addTask(x.cur)
	d.status = 0
	if x.dropped != nil { // dropped before and not had again
		d.rest += max(0, x.dropped.total()-d.total())
		d.history = max(d.history, x.dropped.history)
		d.status = x.dropped.status
	}
	x.dropped, x.wanted, x.denied = d, false, 0
	x.agg.shed(d)
	x.cur = x.identified(x.agg.Task())
	x.shown = x.cur
	x.held = nil
	x.progress = cutText(x.progress)
	if x.aside != nil && messageSize(x.aside) > maxQuestionBytes {
		x.aside = nil
		x.note("a message in the middle of the task's stream was dropped while nobody read the task")
	}
}

// droppedNote says what a snapshot lacks.
func (x *exchange) droppedNote() string {
	return fmt.Sprintf("%d bytes of the task's content were dropped while nobody read the task: ask for the task again to have them from the agent", x.dropped.total()+x.dropped.status)
}

// gather lets the exchange keep content again, from a stream that may not
// begin with all of it: GetTask has the last word.
func (x *exchange) gather() {
	if x.light() {
		x.agg.light = false
		x.doubt, x.checked = true, false
	}
}

// regain ends the lack of content when t, which is folded, has it. whole says
// that the agent has nothing more.
func (x *exchange) regain(t *Task, whole bool) {
	missing := x.dropped.missing(t)
	if missing != "" && !whole {
		return
	}
	x.dropped, x.denied = nil, 0
	if missing != "" {
		x.note("%s", missing)
	}
}

// restore takes the content of a task that has ended and was dropped.
func (x *exchange) restore(t *Task) {
	if x.dropped == nil || t.Status.State != x.state() {
		return
	}
	x.agg.light = false
	next, err := x.fold(Event{Task: t})
	if err != nil {
		x.note("%s", err.Message)
		x.agg.shed(x.dropped)
		return
	}
	x.regain(next, true)
	x.cur, x.shown = next, next
	x.ver++
	x.weigh()
	x.broadcast()
}

// weigh notes that x holds w bytes of content and calls for trimContent when
// all hold too much.
func (f *Follower) weigh(x *exchange, w int64) {
	if w < lightWeight {
		w = 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if w == x.entry.weight {
		return
	}
	f.content += w - x.entry.weight
	x.entry.weight = w
	if w == 0 {
		delete(f.heavy, x)
		return
	}
	if f.heavy == nil {
		f.heavy = make(map[*exchange]struct{})
	}
	f.heavy[x] = struct{}{}
	if f.content > f.o.ContentBytes && !f.trim {
		f.trim = true
		f.poke()
	}
}

// trimPause is the least time between two looks at all that is held: while it
// is being read, nothing is dropped and each event calls for a look.
const trimPause = 250 * time.Millisecond

// trimClock says when content is looked at.
type trimClock struct {
	at    time.Time // when it is due, zero for never
	ready time.Time // not before then
}

// due reports whether the time has come, where asked says that too much is
// held; at is then to be set anew.
func (c *trimClock) due(now time.Time, asked bool) bool {
	if asked {
		if at := latest(c.ready, now); c.at.IsZero() || at.Before(c.at) {
			c.at = at
		}
	}
	if c.at.IsZero() || now.Before(c.at) {
		return false
	}
	c.ready = now.Add(trimPause)
	return true
}

// takeTrim reports once whether too much content is held.
func (f *Follower) takeTrim() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.trim
	f.trim = false
	return was
}

// overweight reports whether more than share of ContentBytes is held.
func (f *Follower) overweight(share float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return float64(f.content) > share*float64(f.o.ContentBytes)
}

// trimContent drops the content that has been unread for longest until a
// quarter of ContentBytes is free. It returns when to try again, zero for no
// need: what is being read is kept.
func (f *Follower) trimContent(now time.Time) time.Time {
	f.mu.Lock()
	heavy := make([]*exchange, 0, len(f.heavy))
	for x := range f.heavy {
		heavy = append(heavy, x)
	}
	f.mu.Unlock()
	type candidate struct {
		x     *exchange
		asked time.Time
	}
	var list []candidate
	for _, x := range heavy {
		x.mu.Lock()
		if x.sheds() && x.unread(now) {
			list = append(list, candidate{x, x.asked})
		}
		x.unlock()
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(a.asked.UnixNano(), b.asked.UnixNano()) })
	for _, c := range list {
		if !f.overweight(0.75) {
			break
		}
		c.x.mu.Lock()
		if c.x.sheds() && c.x.unread(now) {
			c.x.shed()
			c.x.weigh()
		}
		c.x.unlock()
	}
	if f.overweight(1) {
		return now.Add(linger + time.Second)
	}
	return time.Time{}
}
