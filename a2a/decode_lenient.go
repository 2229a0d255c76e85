package a2a

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// lenient reads an answer member by member, so that one of the wrong type
// costs only itself. It fills the same wire structs as the fast pass and serves
// where that one met a type it does not expect, or a part it does not know.
type lenient struct {
	notes []string
}

// members is one JSON object, each member still raw.
type members map[string]json.RawMessage

func (l *lenient) note(format string, args ...any) {
	if len(l.notes) < maxNotes {
		l.notes = append(l.notes, fmt.Sprintf(format, args...))
	}
}

// get returns a member that is there and not null. Names match as in
// encoding/json, so that the two passes agree.
func (m members) get(name string) json.RawMessage {
	raw, ok := m[name]
	if !ok {
		for k, v := range m {
			if strings.EqualFold(k, name) {
				raw = v
				break
			}
		}
	}
	if isNull(raw) {
		return nil
	}
	return raw
}

// object splits an object; a value of another type is named and dropped.
func (l *lenient) object(raw json.RawMessage, what string) (members, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	var m members
	if raw[0] != '{' || json.Unmarshal(raw, &m) != nil {
		l.note("%s is not an object (%s)", what, plainLine(string(raw), 40))
		return nil, false
	}
	return m, true
}

// text reads a string. A number or a boolean is taken as it is written.
func (l *lenient) text(m members, name string) string {
	raw := m.get(name)
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // the whole body has been parsed once
		return s
	case '{', '[':
		l.note("%s is not a string and was dropped", name)
		return ""
	}
	return string(raw)
}

// textPointer reads a string that may be absent.
func (l *lenient) textPointer(m members, name string) *string {
	raw := m.get(name)
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' {
		if len(raw) > 0 {
			l.note("%s is not a string and was dropped", name)
		}
		return nil
	}
	s := l.text(m, name)
	return &s
}

// flag reads a boolean, also one written as a string or a number.
func (l *lenient) flag(m members, name string) bool {
	b, err := strconv.ParseBool(l.text(m, name))
	return err == nil && b
}

func (l *lenient) number(m members, name string) int {
	n, _ := strconv.Atoi(l.text(m, name))
	return n
}

// list reads an array; a single value counts as an array of one.
func (l *lenient) list(m members, name string) []json.RawMessage {
	raw := m.get(name)
	if len(raw) == 0 {
		return nil
	}
	if raw[0] != '[' {
		l.note("%s is not an array", name)
		return []json.RawMessage{raw}
	}
	var items []json.RawMessage
	_ = json.Unmarshal(raw, &items) // the whole body has been parsed once
	kept := items[:0]
	for _, item := range items {
		if isNull(item) {
			l.note("a null element of %s was dropped", name)
			continue
		}
		kept = append(kept, item)
	}
	return kept
}

func (l *lenient) texts(m members, name string) []string {
	var out []string
	for _, raw := range l.list(m, name) {
		if s := idString(raw); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// reply reads the outermost object.
func (l *lenient) reply(raw json.RawMessage) (*wireReply, bool) {
	if len(raw) > 0 && raw[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(raw, &batch) != nil || len(batch) != 1 {
			return nil, false
		}
		l.note("the answer came as an array of one")
		raw = batch[0]
	}
	m, ok := l.object(raw, "the answer")
	if !ok {
		return nil, false
	}
	w := &wireReply{ID: m["id"], Error: m.get("error")}
	if result := m.get("result"); result != nil {
		if inner, ok := l.object(result, "the result"); ok {
			w.Result = l.event(inner)
		}
		return w, true
	}
	w.wireEvent = *l.event(m)
	return w, true
}

func (l *lenient) event(m members) *wireEvent {
	w := &wireEvent{
		Kind:           l.text(m, "kind"),
		TaskID:         l.text(m, "taskId"),
		TaskIDSnake:    l.text(m, "task_id"),
		Append:         l.flag(m, "append"),
		LastChunk:      l.flag(m, "lastChunk"),
		LastChunkSnake: l.flag(m, "last_chunk"),
		Final:          l.flag(m, "final"),
		Role:           l.text(m, "role"),
	}
	if o, ok := l.object(m.get("task"), "task"); ok {
		t := l.task(o)
		w.Task = &t
	}
	if o, ok := l.object(m.get("message"), "message"); ok {
		w.Message = l.message(o)
	}
	for _, name := range [...]string{"statusUpdate", "status_update"} {
		if o, ok := l.object(m.get(name), name); ok {
			w.Status3 = l.statusUpdate(o)
		}
	}
	for _, name := range [...]string{"artifactUpdate", "artifact_update"} {
		if o, ok := l.object(m.get(name), name); ok {
			w.Artifact3 = l.artifactUpdate(o)
		}
	}
	w.wireTask = l.task(m)
	msg := l.message(m)
	w.MessageID, w.Parts, w.Content = msg.MessageID, msg.Parts, msg.Content
	w.Extensions, w.References = msg.Extensions, msg.References
	if raw := m.get("artifact"); raw != nil {
		a := l.artifact(raw)
		w.Artifact = &a
	}
	return w
}

func (l *lenient) task(m members) wireTask {
	t := wireTask{
		ID:        l.text(m, "id"),
		ContextID: or(l.text(m, "contextId"), l.text(m, "context_id")),
		Status:    l.status(m.get("status")),
		Metadata:  m.get("metadata"),
	}
	if m.get("artifacts") != nil {
		t.Artifacts = []wireArtifact{}
	}
	for _, raw := range l.list(m, "artifacts") {
		t.Artifacts = append(t.Artifacts, l.artifact(raw))
	}
	if m.get("history") != nil {
		t.History = []wireMessage{}
	}
	for _, raw := range l.list(m, "history") {
		o, ok := l.object(raw, "a message of the history")
		if !ok {
			t.History = append(t.History, wireMessage{Parts: []wirePart{unreadPart(raw, "not a message")}})
			continue
		}
		t.History = append(t.History, *l.message(o))
	}
	return t
}

// status reads a status; a bare string is its state where it names one: other
// services have a status member too.
func (l *lenient) status(raw json.RawMessage) *wireStatus {
	if len(raw) > 0 && raw[0] != '{' {
		if s := l.text(members{"status": raw}, "status"); stateFrom(s).Known() {
			return &wireStatus{State: s}
		}
	}
	m, ok := l.object(raw, "status")
	if !ok {
		return nil
	}
	s := &wireStatus{State: l.text(m, "state"), Timestamp: l.text(m, "timestamp")}
	for _, name := range [...]string{"update", "message"} {
		said := m.get(name)
		if len(said) == 0 {
			continue
		}
		if said[0] == '"' {
			text := l.text(m, name)
			s.Message = &wireMessage{Parts: []wirePart{{Text: &text}}}
			l.note("the status message is a bare string")
		} else if o, ok := l.object(said, "the status message"); ok {
			s.Message = l.message(o)
		}
	}
	return s
}

func (l *lenient) statusUpdate(m members) *wireStatusUpdate {
	return &wireStatusUpdate{
		TaskID:    or(l.text(m, "taskId"), l.text(m, "task_id")),
		ContextID: or(l.text(m, "contextId"), l.text(m, "context_id")),
		Status:    l.status(m.get("status")),
		Final:     l.flag(m, "final"),
		Metadata:  m.get("metadata"),
	}
}

func (l *lenient) artifactUpdate(m members) *wireArtifactUpdate {
	u := &wireArtifactUpdate{
		TaskID:    or(l.text(m, "taskId"), l.text(m, "task_id")),
		ContextID: or(l.text(m, "contextId"), l.text(m, "context_id")),
		Append:    l.flag(m, "append"),
		LastChunk: l.flag(m, "lastChunk") || l.flag(m, "last_chunk"),
		Metadata:  m.get("metadata"),
	}
	if raw := m.get("artifact"); raw != nil {
		a := l.artifact(raw)
		u.Artifact = &a
	}
	return u
}

func (l *lenient) message(m members) *wireMessage {
	w := &wireMessage{
		MessageID:  or(l.text(m, "messageId"), l.text(m, "message_id")),
		ContextID:  or(l.text(m, "contextId"), l.text(m, "context_id")),
		TaskID:     or(l.text(m, "taskId"), l.text(m, "task_id")),
		Role:       l.text(m, "role"),
		Parts:      l.parts(m, "parts"),
		Content:    l.parts(m, "content"),
		Metadata:   m.get("metadata"),
		Extensions: l.texts(m, "extensions"),
		References: l.texts(m, "referenceTaskIds"),
	}
	if w.References == nil {
		w.References = l.texts(m, "reference_task_ids")
	}
	return w
}

// artifact reads an artifact; what is not one is kept as its only part.
func (l *lenient) artifact(raw json.RawMessage) wireArtifact {
	m, ok := l.object(raw, "an artifact")
	if !ok {
		return wireArtifact{Parts: []wirePart{unreadPart(raw, "not an artifact")}}
	}
	return wireArtifact{
		ArtifactID:  or(l.text(m, "artifactId"), l.text(m, "artifact_id")),
		Name:        l.text(m, "name"),
		Description: l.text(m, "description"),
		Parts:       l.parts(m, "parts"),
		Metadata:    m.get("metadata"),
		Extensions:  l.texts(m, "extensions"),
	}
}

func (l *lenient) parts(m members, name string) []wirePart {
	items := l.list(m, name)
	if items == nil {
		return nil
	}
	parts := make([]wirePart, 0, len(items))
	for _, raw := range items {
		parts = append(parts, l.part(raw))
	}
	return parts
}

// unreadPart keeps what could not be read.
func unreadPart(raw json.RawMessage, fault string) wirePart {
	return wirePart{whole: &wholePart{raw: raw, fault: fault}}
}

func (l *lenient) part(raw json.RawMessage) wirePart {
	var w wirePart
	if raw[0] != 'n' && json.Unmarshal(raw, &w) == nil {
		w.whole = &wholePart{raw: raw}
		return w
	}
	m, ok := l.object(raw, "a part")
	if !ok {
		return unreadPart(raw, "not an object")
	}
	w = wirePart{
		Kind:      or(l.text(m, "kind"), l.text(m, "type")),
		Text:      l.textPointer(m, "text"),
		Data:      m["data"],
		URL:       l.textPointer(m, "url"),
		Raw:       l.textPointer(m, "raw"),
		Filename:  l.textPointer(m, "filename"),
		MediaType: or(or(l.text(m, "mediaType"), l.text(m, "media_type")), l.text(m, "mimeType")),
		Metadata:  m.get("metadata"),
		whole:     &wholePart{raw: raw},
	}
	if o, ok := l.object(m.get("file"), "file"); ok {
		w.File = &wireFile{
			Name:      l.text(o, "name"),
			MimeType:  or(l.text(o, "mimeType"), l.text(o, "mime_type")),
			MediaType: l.text(o, "mediaType"),
			Bytes:     l.firstText(o, "bytes", "fileWithBytes", "file_with_bytes"),
			URI:       l.firstText(o, "uri", "fileWithUri", "file_with_uri"),
		}
	}
	return w
}

func (l *lenient) firstText(m members, names ...string) *string {
	for _, name := range names {
		if s := l.textPointer(m, name); s != nil {
			return s
		}
	}
	return nil
}
