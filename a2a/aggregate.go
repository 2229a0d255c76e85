package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Bounds of one Aggregate. They keep the cost of a step small whatever the
// agent sends: a snapshot copies at most this many headers.
const (
	maxArtifacts = 4096
	// maxTextJoins is the number of parts up to which text deltas are joined;
	// longer artifacts keep their part list.
	maxTextJoins = 256
	maxSpoken    = 128
	maxNotes     = 32
	// fewMessages is up to how many messages of the history are looked through
	// one by one: a map for them would cost more than they do.
	fewMessages = 8
)

// Aggregate folds the events of one exchange into a Task
// (specification 1.0.1, 3.1.2 and 4.2). It belongs to one goroutine; what Task
// returns may be read by any, for it is never changed afterwards.
//
// A step costs time in proportion to the event and to the number of artifacts,
// never to the text gathered so far.
type Aggregate struct {
	limit int64 // bytes of content kept
	size  int64

	known     bool // a task has been seen
	id        string
	contextID string
	status    Status
	metadata  json.RawMessage // the task's own
	asides    json.RawMessage // the latest update's, while the task has none
	artifacts []*assembly
	byID      map[string]int
	history   []Message
	said      map[string]bool // ids of the messages in history, once they are more than fewMessages
	// spoken are the latest messages that went to history because another
	// status replaced them; a snapshot's own history does not drop them.
	spoken []Message

	message  *Message
	progress string
	notes    []string
	unsure   bool
	// dropped, while light, counts the content that comes and is not kept.
	light   bool
	dropped *outline

	task *Task // what Task returned last; nil when a step has changed it
}

// assembly is one artifact while its pieces come in.
type assembly struct {
	head Artifact // all but Parts
	// parts is what tasks already handed out may share. Appending to it is
	// safe where owned, for they do not see past their own length; writing to
	// the last part is safe only while it is not shared.
	parts  []Part
	owned  bool             // the array behind parts is not an event's
	shared bool             // the last part has been handed out
	tail   *strings.Builder // the text of the last part while it is joined to
	closed bool             // lastChunk has been seen
	grown  bool             // pieces have been appended
	size   int64
}

// NewAggregate returns an empty Aggregate that keeps at most limit bytes of
// content; 0 is Limits' StreamBytes default.
func NewAggregate(limit int64) *Aggregate {
	if limit <= 0 {
		limit = defaultStreamBytes
	}
	return &Aggregate{limit: limit}
}

// Add folds one event in. The error is a *Error with CauseLimit when the
// content would pass the limit; what was gathered before stays readable.
func (a *Aggregate) Add(ev Event) error {
	a.note(ev.Notes...)
	switch {
	case ev.Message != nil:
		a.message = ev.Message
		return a.charge(messageSize(ev.Message))
	case ev.Task != nil:
		return a.snapshot(ev.Task)
	case ev.Status != nil:
		u := ev.Status
		if !a.belongs(u.TaskID, u.ContextID) {
			return nil
		}
		if len(u.Metadata) > 0 {
			a.asides = u.Metadata
		}
		return a.setStatus(u.Status)
	case ev.Artifact != nil:
		u := ev.Artifact
		if !a.belongs(u.TaskID, u.ContextID) {
			return nil
		}
		return a.addArtifact(u)
	}
	return nil
}

// shed drops artifacts and history, and keeps none that come until light is
// unset; into counts them.
func (a *Aggregate) shed(into *outline) {
	a.light, a.dropped, a.task = true, into, nil
	a.artifacts, a.byID, a.history, a.said, a.spoken = nil, nil, nil, nil, nil
	a.size = 0
	a.status.Message = into.slim(a.status.Message)
	for _, meta := range []*json.RawMessage{&a.metadata, &a.asides} {
		if len(*meta) > maxQuestionBytes {
			*meta = nil
		}
	}
}

// Task returns the task as folded so far, nil before one is known. It is never
// changed afterwards.
func (a *Aggregate) Task() *Task {
	if !a.known {
		return nil
	}
	if a.task != nil {
		return a.task
	}
	t := &Task{
		ID:        a.id,
		ContextID: a.contextID,
		Status:    a.status,
		History:   a.history[:len(a.history):len(a.history)],
		Metadata:  a.metadata,
		Notes:     a.notes[:len(a.notes):len(a.notes)],
	}
	if t.Metadata == nil {
		t.Metadata = a.asides
	}
	if n := len(a.artifacts); n > 0 {
		t.Artifacts = make([]Artifact, n)
		for i, as := range a.artifacts {
			t.Artifacts[i] = as.artifact()
		}
	}
	a.task = t
	return t
}

// Message returns the agent's direct reply, nil unless it gave one.
func (a *Aggregate) Message() *Message { return a.message }

// Progress returns the agent's latest status text, "" before one came.
func (a *Aggregate) Progress() string { return a.progress }

// Notes returns what was odd about the events, in order.
func (a *Aggregate) Notes() []string { return a.notes[:len(a.notes):len(a.notes)] }

// Unsure reports whether the pieces did not fit together (a last chunk that
// replaced what had been gathered, a piece of an unknown artifact): GetTask
// then knows better.
func (a *Aggregate) Unsure() bool { return a.unsure }

// belongs reports whether an update is for this task, and lets the first one
// name it. An agent that leaves the id out means the task of the stream.
func (a *Aggregate) belongs(taskID, contextID string) bool {
	switch {
	case !a.known:
		a.known = true
		a.id = taskID
		if a.status.State == "" {
			a.status.State = StateSubmitted
		}
	case taskID != "" && a.id == "":
		a.id = taskID
	case taskID != "" && taskID != a.id:
		a.note(fmt.Sprintf("an event for another task was ignored (%s)", plainLine(taskID, 80)))
		return false
	}
	if a.contextID == "" {
		a.contextID = contextID
	}
	a.task = nil
	return true
}

// snapshot takes over a whole Task. What the snapshot lacks stays as gathered:
// agents send bare snapshots in the middle of a stream.
func (a *Aggregate) snapshot(t *Task) error {
	if !a.belongs(t.ID, t.ContextID) {
		return nil
	}
	a.note(t.Notes...)
	if len(t.Metadata) > 0 {
		a.metadata = t.Metadata
	}
	if err := a.takeHistory(t.History); err != nil {
		return err
	}
	if err := a.setStatus(t.Status); err != nil {
		return err
	}
	if len(t.Artifacts) == 0 {
		return nil
	}
	if a.light {
		a.dropped.snapshot(t.Artifacts)
		return nil
	}
	for _, as := range a.artifacts {
		a.size -= as.size
	}
	a.artifacts, a.byID = nil, nil
	for i := range t.Artifacts {
		if err := a.put(&t.Artifacts[i]); err != nil {
			return err
		}
	}
	return nil
}

// takeHistory replaces the history by the agent's own, and keeps behind it the
// status messages gathered here that the agent's lacks.
func (a *Aggregate) takeHistory(theirs []Message) error {
	if len(theirs) == 0 || a.light {
		return nil
	}
	for i := range a.history {
		a.size -= messageSize(&a.history[i])
	}
	a.history, a.said = nil, nil
	for i := range theirs {
		if err := a.record(theirs[i]); err != nil {
			return err
		}
	}
	for _, m := range a.spoken {
		if err := a.record(m); err != nil {
			return err
		}
	}
	return nil
}

// record appends a message to the history unless it is there already.
func (a *Aggregate) record(m Message) error {
	if m.MessageID != "" && a.recorded(m.MessageID) {
		return nil
	}
	if err := a.charge(messageSize(&m)); err != nil {
		return err
	}
	a.history = append(a.history, m)
	switch {
	case a.said != nil:
		a.said[m.MessageID] = true
	case len(a.history) > fewMessages:
		a.said = make(map[string]bool)
		for i := range a.history {
			a.said[a.history[i].MessageID] = true
		}
	}
	return nil
}

// recorded reports whether a message of this id is in the history.
func (a *Aggregate) recorded(id string) bool {
	if a.said != nil {
		return a.said[id]
	}
	return slices.ContainsFunc(a.history, func(m Message) bool { return m.MessageID == id })
}

// setStatus replaces the status. The agent's message of the status before goes
// to the history, as agents do it (specification 1.0.1, 3.7).
func (a *Aggregate) setStatus(s Status) error {
	a.task = nil
	if s.State == "" {
		s.State = a.status.State
		if s.State == "" {
			s.State = StateSubmitted
		}
		a.note("a status without a state was ignored")
	}
	if was := a.status.State; was.Terminal() && s.State != was {
		a.note(fmt.Sprintf("a change from %s to %s was ignored, for a final state does not change", was, s.State))
		return nil
	}
	before := a.status.Message
	if s.Message == nil && s.State == a.status.State {
		// The same state again, without its message: a duplicate.
		s.Message = before
	}
	a.status = s
	if s.Message != nil && s.Message != before {
		if text := messageText(s.Message); text != "" {
			a.progress = text
		}
	}
	if a.light {
		if before != nil && !sameMessage(before, s.Message) {
			a.dropped.replaced(before)
		}
		a.status.Message = a.dropped.slim(s.Message)
		return nil
	}
	if before == nil || sameMessage(before, s.Message) {
		return nil
	}
	if len(a.spoken) == maxSpoken {
		a.spoken = append(a.spoken[:0:0], a.spoken[1:]...)
	}
	a.spoken = append(a.spoken, *before)
	return a.record(*before)
}

// addArtifact creates, replaces or extends an artifact
// (specification 1.0.1, 4.2.2).
func (a *Aggregate) addArtifact(u *ArtifactUpdate) error {
	if a.light {
		a.dropped.add(u)
		return nil
	}
	i, there := a.byID[u.Artifact.ArtifactID]
	if !u.Append || !there {
		if u.Append {
			a.unsure = true
			a.note(fmt.Sprintf("a piece of an unknown artifact began a new one (%s)", plainLine(u.Artifact.ArtifactID, 80)))
		}
		if there && u.LastChunk && a.artifacts[i].grown {
			a.unsure = true
			a.note(fmt.Sprintf("the last piece of artifact %s replaced the pieces before it", plainLine(u.Artifact.ArtifactID, 80)))
		}
		if err := a.put(&u.Artifact); err != nil {
			return err
		}
		a.artifacts[a.byID[u.Artifact.ArtifactID]].closed = u.LastChunk
		return nil
	}
	as := a.artifacts[i]
	if as.closed {
		a.note(fmt.Sprintf("artifact %s went on after its last piece", plainLine(u.Artifact.ArtifactID, 80)))
	}
	n := partsSize(u.Artifact.Parts)
	if err := a.charge(n); err != nil {
		return err
	}
	head := headSize(&as.head)
	joined := as.extend(&u.Artifact)
	n += headSize(&as.head) - head - joined*partOverhead
	a.size += n - partsSize(u.Artifact.Parts)
	as.size += n
	as.closed = u.LastChunk
	return nil
}

// put creates or replaces an artifact as a whole.
func (a *Aggregate) put(art *Artifact) error {
	n := headSize(art) + partsSize(art.Parts)
	i, there := a.byID[art.ArtifactID]
	if there {
		a.size -= a.artifacts[i].size
	} else if len(a.artifacts) >= maxArtifacts {
		return &Error{Cause: CauseLimit, Message: fmt.Sprintf("the task has more than %d artifacts", maxArtifacts)}
	}
	if err := a.charge(n); err != nil {
		return err
	}
	as := &assembly{head: *art, parts: art.Parts, size: n}
	as.head.Parts = nil
	if there {
		a.artifacts[i] = as
		return nil
	}
	if a.byID == nil {
		a.byID = make(map[string]int)
	}
	a.byID[art.ArtifactID] = len(a.artifacts)
	a.artifacts = append(a.artifacts, as)
	return nil
}

// extend appends the parts of a piece. Text that continues a text part is
// joined to it, so that a reply streamed word by word is one part. It returns
// how many parts were joined.
func (as *assembly) extend(piece *Artifact) (joined int64) {
	as.grown = true
	if piece.Name != "" {
		as.head.Name = piece.Name
	}
	if piece.Description != "" {
		as.head.Description = piece.Description
	}
	if len(piece.Metadata) > 0 {
		as.head.Metadata = piece.Metadata
	}
	if len(piece.Extensions) > 0 {
		as.head.Extensions = piece.Extensions
	}
	for i := range piece.Parts {
		p := &piece.Parts[i]
		if n := len(as.parts); n > 0 && n <= maxTextJoins && joins(&as.parts[n-1], p) {
			as.join(p.Text)
			joined++
		} else {
			as.push(*p)
		}
	}
	return joined
}

// push appends a part of its own.
func (as *assembly) push(p Part) {
	if n := len(as.parts); !as.owned {
		as.parts = as.parts[:n:n]
		as.owned = true
	}
	as.parts = append(as.parts, p)
	as.shared, as.tail = false, nil
}

// join continues the last part's text. The builder's earlier strings stay
// valid while it grows, so a step does not copy the text gathered so far.
func (as *assembly) join(text string) {
	last := len(as.parts) - 1
	if !as.owned || as.shared {
		as.parts = slices.Clone(as.parts)
		as.owned, as.shared = true, false
	}
	if as.tail == nil {
		as.tail = &strings.Builder{}
		as.tail.WriteString(as.parts[last].Text)
	}
	as.tail.WriteString(text)
	as.parts[last].Text = as.tail.String()
}

// artifact returns the artifact as it is now.
func (as *assembly) artifact() Artifact {
	art := as.head
	art.Parts = as.parts[:len(as.parts):len(as.parts)]
	as.shared = true
	return art
}

// joins reports whether next is a delta of the text part last: both plain
// text, with nothing of their own that joining would lose.
func joins(last, next *Part) bool {
	return last.Kind == PartText && next.Kind == PartText &&
		next.Filename == "" && len(next.Metadata) == 0 &&
		last.Filename == "" && len(last.Metadata) == 0 &&
		(next.MediaType == "" || next.MediaType == last.MediaType)
}

// charge counts n bytes of content against the limit.
func (a *Aggregate) charge(n int64) error {
	if a.size+n > a.limit {
		return &Error{Cause: CauseLimit, Message: fmt.Sprintf("the task's content is over the limit of %d bytes", a.limit)}
	}
	a.size += n
	a.task = nil
	return nil
}

// note keeps the first notes, each once.
func (a *Aggregate) note(notes ...string) {
	for _, n := range notes {
		if len(a.notes) >= maxNotes || slices.Contains(a.notes, n) {
			continue
		}
		a.notes = append(a.notes, n)
		a.task = nil
	}
}
