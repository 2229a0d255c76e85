package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// modeller turns wire structs into the values of model.go. It serves the fast
// and the lenient decoder alike.
type modeller struct {
	// proto says that parts are in the shapes of 0.3's ProtoJSON.
	proto bool
	// odd is set by a fast pass that met what only the lenient decoder keeps.
	odd   bool
	notes []string
	// lifted are the data values that were not decoded.
	lifted lifted
}

func (m *modeller) note(format string, args ...any) {
	if len(m.notes) < maxNotes {
		m.notes = append(m.notes, fmt.Sprintf(format, args...))
	}
}

// wireKind is what a wireEvent turned out to be.
type wireKind uint8

const (
	kindNone wireKind = iota
	kindTask
	kindMessage
	kindStatus
	kindArtifact
)

// flatKind tells what a flat object is, by its kind or else by its members:
// agents leave the kind out.
func (w *wireEvent) flatKind() wireKind {
	switch strings.ToLower(w.Kind) {
	case "task":
		return kindTask
	case "message":
		return kindMessage
	case "status-update", "statusupdate", "status_update":
		return kindStatus
	case "artifact-update", "artifactupdate", "artifact_update":
		return kindArtifact
	}
	named := w.ID != "" || or(w.ContextID, w.ContextIDSnake) != ""
	switch {
	case w.Artifact != nil:
		return kindArtifact
	case w.Status != nil && w.ID == "" && or(w.TaskID, w.TaskIDSnake) != "":
		return kindStatus
	case named && (w.Status != nil || w.Artifacts != nil || w.History != nil):
		return kindTask
	case or(w.MessageID, w.MessageIDSnake) != "", w.Role != "", w.Parts != nil, w.Content != nil:
		return kindMessage
	case w.ID != "" && or(w.ContextID, w.ContextIDSnake) != "":
		return kindTask
	}
	return kindNone
}

// event returns the event that w is; ok is false when it is none.
func (m *modeller) event(w *wireEvent) (ev Event, ok bool) {
	status3, artifact3 := w.Status3, w.Artifact3
	if status3 == nil {
		status3 = w.Status3Snake
	}
	if artifact3 == nil {
		artifact3 = w.Artifact3Snake
	}
	switch {
	case w.Task != nil:
		ev.Task = m.task(w.Task)
	case w.Message != nil:
		ev.Message = m.message(w.Message, RoleAgent)
	case status3 != nil:
		ev.Status = m.statusUpdate(status3)
	case artifact3 != nil:
		ev.Artifact = m.artifactUpdate(artifact3)
	default:
		ev = m.flat(w)
	}
	ev.Notes = m.notes
	return ev, ev.Task != nil || ev.Message != nil || ev.Status != nil || ev.Artifact != nil
}

// flat returns the event of a flat object.
func (m *modeller) flat(w *wireEvent) (ev Event) {
	switch w.flatKind() {
	case kindTask:
		t := w.wireTask
		if t.ID == "" {
			t.ID = or(w.TaskID, w.TaskIDSnake)
		}
		ev.Task = m.task(&t)
	case kindMessage:
		ev.Message = m.message(&wireMessage{
			MessageID: or(w.MessageID, w.MessageIDSnake), ContextID: or(w.ContextID, w.ContextIDSnake),
			TaskID: or(w.TaskID, w.TaskIDSnake), Role: w.Role, Parts: w.Parts, Content: w.Content,
			Metadata: w.Metadata, Extensions: w.Extensions, References: w.References, ReferencesSnake: w.ReferencesSnake,
		}, RoleAgent)
	case kindStatus:
		ev.Status = m.statusUpdate(&wireStatusUpdate{
			TaskID: or(or(w.TaskID, w.TaskIDSnake), w.ID), ContextID: or(w.ContextID, w.ContextIDSnake),
			Status: w.Status, Final: w.Final, Metadata: w.Metadata,
		})
	case kindArtifact:
		ev.Artifact = m.artifactUpdate(&wireArtifactUpdate{
			TaskID: or(or(w.TaskID, w.TaskIDSnake), w.ID), ContextID: or(w.ContextID, w.ContextIDSnake),
			Artifact: w.Artifact, Append: w.Append, LastChunk: w.LastChunk, LastChunkSnake: w.LastChunkSnake,
			Metadata: w.Metadata,
		})
	case kindNone:
	}
	return ev
}

func (m *modeller) task(w *wireTask) *Task {
	t := &Task{
		ID:        w.ID,
		ContextID: or(w.ContextID, w.ContextIDSnake),
		Status:    m.status(w.Status),
		Metadata:  m.object(w.Metadata, "the task's metadata"),
	}
	if len(w.Artifacts) > 0 {
		t.Artifacts = make([]Artifact, 0, len(w.Artifacts))
		for i := range w.Artifacts {
			t.Artifacts = append(t.Artifacts, m.artifact(&w.Artifacts[i]))
		}
	}
	if len(w.History) > 0 {
		t.History = make([]Message, 0, len(w.History))
		for i := range w.History {
			t.History = append(t.History, *m.message(&w.History[i], ""))
		}
	}
	return t
}

func (m *modeller) status(w *wireStatus) Status {
	if w == nil {
		return Status{}
	}
	s := Status{State: stateFrom(w.State), Timestamp: w.Timestamp}
	if said := w.Message; said != nil {
		s.Message = m.message(said, RoleAgent)
	} else if w.Update != nil {
		s.Message = m.message(w.Update, RoleAgent)
	}
	return s
}

func (m *modeller) statusUpdate(w *wireStatusUpdate) *StatusUpdate {
	return &StatusUpdate{
		TaskID:    or(w.TaskID, w.TaskIDSnake),
		ContextID: or(w.ContextID, w.ContextIDSnake),
		Status:    m.status(w.Status),
		Final:     w.Final,
		Metadata:  m.object(w.Metadata, "the update's metadata"),
	}
}

func (m *modeller) artifactUpdate(w *wireArtifactUpdate) *ArtifactUpdate {
	u := &ArtifactUpdate{
		TaskID:    or(w.TaskID, w.TaskIDSnake),
		ContextID: or(w.ContextID, w.ContextIDSnake),
		Append:    w.Append,
		LastChunk: w.LastChunk || w.LastChunkSnake,
		Metadata:  m.object(w.Metadata, "the update's metadata"),
	}
	if w.Artifact == nil {
		m.odd = true
		m.note("an artifact update without an artifact")
	} else {
		u.Artifact = m.artifact(w.Artifact)
	}
	return u
}

func (m *modeller) message(w *wireMessage, role Role) *Message {
	msg := &Message{
		MessageID:        or(w.MessageID, w.MessageIDSnake),
		ContextID:        or(w.ContextID, w.ContextIDSnake),
		TaskID:           or(w.TaskID, w.TaskIDSnake),
		Role:             roleFrom(w.Role, role),
		Metadata:         m.object(w.Metadata, "a message's metadata"),
		Extensions:       w.Extensions,
		ReferenceTaskIDs: w.References,
	}
	if msg.ReferenceTaskIDs == nil {
		msg.ReferenceTaskIDs = w.ReferencesSnake
	}
	switch {
	case w.Parts != nil:
		msg.Parts = m.parts(w.Parts, m.proto)
	case w.Content != nil:
		msg.Parts = m.parts(w.Content, true)
	case msg.MessageID == "" && w.Role == "":
		m.odd = true // perhaps null, or of another shape
	}
	return msg
}

func (m *modeller) artifact(w *wireArtifact) Artifact {
	a := Artifact{
		ArtifactID:  or(w.ArtifactID, w.ArtifactIDSnake),
		Name:        w.Name,
		Description: w.Description,
		Parts:       m.parts(w.Parts, m.proto),
		Metadata:    m.object(w.Metadata, "an artifact's metadata"),
		Extensions:  w.Extensions,
	}
	if a.ArtifactID == "" && len(a.Parts) == 0 {
		m.odd = true // perhaps null, or of another shape
	}
	return a
}

func (m *modeller) parts(ws []wirePart, proto bool) []Part {
	if len(ws) == 0 {
		return nil
	}
	parts := make([]Part, 0, len(ws))
	for i := range ws {
		parts = m.part(parts, &ws[i], proto)
	}
	return parts
}

// part appends what w holds. A part with several contents, which the
// specification forbids, becomes one part for each, so that none is lost.
func (m *modeller) part(dst []Part, w *wirePart, proto bool) []Part {
	if w.whole != nil && w.whole.fault != "" {
		return append(dst, Part{Kind: PartUnknown, Unknown: w.whole.raw, Fault: w.whole.fault})
	}
	base := Part{
		Filename:  text(w.Filename),
		MediaType: or(or(w.MediaType, text(w.MediaTypeSnake)), text(w.MimeType)),
		Metadata:  m.object(w.Metadata, "a part's metadata"),
	}
	n := len(dst)
	kind := w.kind()
	switch {
	case kind == "", strings.EqualFold(kind, "file"):
		dst = m.contents(dst, base, w, kind, proto)
	case strings.EqualFold(kind, "text"):
		base.Kind = PartText
		if w.Text != nil {
			base.Text = *w.Text
		}
		return append(dst, base)
	case strings.EqualFold(kind, "data"):
		if len(w.Data) > 0 {
			base.Kind, base.Data = PartData, m.lifted.at(w.Data)
			return append(dst, base)
		}
	default:
		return m.unknown(dst, w, "part of unknown kind "+plainLine(kind, 40))
	}
	if len(dst) == n {
		return m.unknown(dst, w, "part without a known content")
	}
	return dst
}

// contents appends one part for each content that w holds, whatever its kind.
func (m *modeller) contents(dst []Part, base Part, w *wirePart, kind string, proto bool) []Part {
	n := len(dst)
	if kind == "" && w.Text != nil {
		p := base
		p.Kind, p.Text = PartText, *w.Text
		dst = append(dst, p)
	}
	if w.URL != nil && *w.URL != "" {
		p := base
		p.Kind, p.URL = PartURL, *w.URL
		dst = append(dst, p)
	}
	if w.Raw != nil {
		dst = m.raw(dst, base, w, *w.Raw)
	}
	if w.File != nil {
		dst = m.file(dst, base, w)
	}
	if kind == "" && len(w.Data) > 0 && (len(dst) == n || !isNull(w.Data)) {
		p := base
		p.Kind, p.Data = PartData, m.lifted.at(w.Data)
		if proto {
			p.Data = protoData(p.Data)
		}
		dst = append(dst, p)
	}
	if len(dst) > n+1 {
		dst = dst[:n+len(withoutDefaults(dst[n:]))]
	}
	return dst
}

// withoutDefaults drops the empty contents of one part where it has a real one:
// ProtoJSON printers that emit defaults set every member.
func withoutDefaults(parts []Part) []Part {
	kept := slices.DeleteFunc(slices.Clone(parts), func(p Part) bool {
		return p.Kind == PartText && p.Text == "" || p.Kind == PartRaw && p.Base64 == ""
	})
	if len(kept) == 0 {
		return parts[:1]
	}
	return parts[:copy(parts, kept)]
}

// file appends the file of a 0.3 part.
func (m *modeller) file(dst []Part, base Part, w *wirePart) []Part {
	f := w.File
	base.Filename = or(f.Name, base.Filename)
	base.MediaType = or(or(or(f.MimeType, f.MimeTypeSnake), f.MediaType), base.MediaType)
	for _, uri := range [...]*string{f.URI, f.WithURI, f.WithURISnake} {
		if uri != nil && *uri != "" {
			p := base
			p.Kind, p.URL = PartURL, *uri
			dst = append(dst, p)
			break
		}
	}
	for _, b := range [...]*string{f.Bytes, f.WithBytes, f.WithBytesSnake} {
		if b != nil {
			return m.raw(dst, base, w, *b)
		}
	}
	return dst
}

func (m *modeller) raw(dst []Part, base Part, w *wirePart, b64 string) []Part {
	norm, ok := base64From(b64)
	if !ok {
		return m.unknown(dst, w, "invalid base64")
	}
	base.Kind, base.Base64 = PartRaw, norm
	return append(dst, base)
}

// unknown keeps a part that nobody understands as it came.
func (m *modeller) unknown(dst []Part, w *wirePart, fault string) []Part {
	m.note("%s", fault)
	p := Part{Kind: PartUnknown, Fault: fault}
	if w.whole != nil {
		p.Unknown = w.whole.raw
	} else {
		m.odd = true
	}
	return append(dst, p)
}

// object returns a metadata object; what is not an object is dropped and named.
func (m *modeller) object(raw json.RawMessage, what string) json.RawMessage {
	object, ok := objectOnly(raw)
	if !ok {
		m.note("%s is not an object and was dropped", what)
	}
	return object
}
