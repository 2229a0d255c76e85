package translate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/a2a"
)

// EnvelopeMetaKey is the _meta key of a result that carries the envelope where
// structuredContent does not.
const EnvelopeMetaKey = "a2agate/envelope"

// answer collects what a result says, once, and renders it twice: as content
// and as the envelope (docs/protocol.md, "Results"). Each half holds the whole
// answer, because clients show a model only one of them.
type answer struct {
	o      *Options
	kind   string // "message", "task" or ""
	status Status
	state  a2a.State
	notes  []string
	// pieces are the agent's parts in order; groups are where they come from.
	pieces []piece
	groups []origin
	meta   metaRoom
	// sole is the only data part, whole even where its text was cut: a part of
	// it would not fit a declared schema.
	sole json.RawMessage
	// hint tells what to do next while the task is open; it stands in both
	// halves.
	hint      string
	artifacts []a2a.Artifact
	history   []turn
	// progress is the follower's latest status text, where the task has none.
	progress  string
	errCode   int
	errReason string
	page      *page
	isError   bool
}

// turn is one entry of a history.
type turn struct{ role, text string }

// page says which piece of an artifact's text a result holds, in characters.
type page struct {
	artifactID          string
	offset, next, total int // next is -1 on the last page
}

// group opens a new group of pieces.
func (a *answer) group(from origin) origin {
	if len(a.groups) == 0 {
		a.meta.left = a.o.resultChars()
	}
	from.group, from.meta = len(a.groups), &a.meta
	a.groups = append(a.groups, from)
	return from
}

func (a *answer) add(parts []a2a.Part, from origin) {
	a.pieces = piecesFromParts(a.pieces, parts, a.group(from), a.o)
}

// say adds a line of the gateway's own in the place of an answer.
func (a *answer) say(text string) {
	from := a.group(origin{})
	a.pieces = append(a.pieces, piece{kind: pieceNote, line: text, group: from.group})
}

func (a *answer) note(n string) {
	if n = strings.TrimRight(oneLine(n, 500), ". "); n != "" && !slices.Contains(a.notes, n) && len(a.notes) < maxNotes {
		a.notes = append(a.notes, n)
	}
}

// maxNotes bounds the notes of one answer.
const maxNotes = 12

// result renders both halves.
func (a *answer) result() Result {
	limit := a.o.resultChars()
	if a.kind != "task" || a.o.Task == "" {
		limit *= messageFactor
	}
	if i := a.onlyData(); i >= 0 {
		a.sole = a.pieces[i].data
	}
	var cutJSON bool
	if a.page == nil {
		a.pieces, cutJSON = limitPieces(a.pieces, a.groups, limit, a.o)
	}
	if a.meta.refused {
		a.note("metadata of parts is left out: it has more than " + strconv.Itoa(a.o.resultChars()) + " bytes in all")
	}
	if cutJSON {
		a.note("data is over the limit of " + strconv.Itoa(limit) + " characters and stands cut in the text")
	}
	r := Result{IsError: a.isError}
	media := false
	for i := range a.pieces {
		media = media || a.pieces[i].kind == pieceMedia
		r.Content = a.pieces[i].blocks(r.Content)
	}
	if h := historyText(a.history); h != "" {
		r.Content = append(r.Content, textBlock(h))
	}
	if s := a.statusText(); s != "" || len(r.Content) == 0 {
		r.Content = append(r.Content, textBlock(or(s, "The reply is empty.")))
	}
	a.place(&r, media)
	return r
}

func textBlock(s string) mcp.TextContent { return mcp.TextContent{Type: "text", Text: s} }

// place puts the envelope where the policy wants it.
func (a *answer) place(r *Result, media bool) {
	switch a.o.Structured {
	case StructuredNever:
	case StructuredAlways:
		r.Structured = a.envelope()
		return
	case StructuredData:
		if !r.IsError {
			r.Structured = a.sole
		}
	case StructuredAuto, "":
		if !media {
			r.Structured = a.envelope()
			return
		}
	}
	r.Meta = append(r.Meta, MetaEntry{Key: EnvelopeMetaKey, Value: a.envelope()})
}

// statusText is the short last block: status, handles, what to do next, notes.
// It is empty where none of them matters.
func (a *answer) statusText() string {
	o := a.o
	if o.Task == "" && o.Context == "" && a.hint == "" && len(a.notes) == 0 && a.page == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("Status: " + string(a.status) + ".")
	if o.Task != "" {
		b.WriteString(" taskHandle: " + strconv.Quote(o.Task) + ".")
	}
	if o.Context != "" {
		b.WriteString(" contextHandle: " + strconv.Quote(o.Context) + ".")
	}
	if a.hint != "" {
		b.WriteString("\n" + a.hint)
	}
	if a.page != nil {
		b.WriteString("\n" + a.pageText())
	}
	if a.hint == "" && a.page == nil && a.status == StatusCompleted && o.Context != "" {
		b.WriteString("\nTo go on in this conversation, call " + o.continueCall() + ".")
	}
	if len(a.notes) > 0 {
		b.WriteString("\nNote: " + strings.Join(a.notes, "; ") + ".")
	}
	return b.String()
}

// onlyData is the index of the answer's only data part, whole; -1 for none or
// several. A part that asks (AskExtension) is a question, not data.
func (a *answer) onlyData() int {
	found := -1
	for i := range a.pieces {
		if a.pieces[i].kind != pieceData || a.pieces[i].ask {
			continue
		}
		if found >= 0 || a.pieces[i].cut {
			return -1
		}
		found = i
	}
	return found
}

// words is the text of the structured half: every word, and one line for every
// link and medium. The only data part is left to the member data.
func (a *answer) words(data int) string {
	var b strings.Builder
	for i := range a.pieces {
		if i == data {
			continue
		}
		w := a.pieces[i].words()
		if a.page != nil {
			return w // a page is exact
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(w)
	}
	if a.hint != "" {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(a.hint)
	}
	return b.String()
}

// envelope encodes the members in the order of docs/protocol.md.
func (a *answer) envelope() json.RawMessage {
	data := -1
	if a.page == nil {
		data = a.onlyData()
	}
	words := a.words(data)
	size := len(words) + len(words)/16 + 512
	if data >= 0 {
		size += len(a.pieces[data].data)
	}
	o := newObject(make([]byte, 0, size))
	o.str("kind", a.kind)
	o.str("agent", oneLine(a.o.Agent, 200))
	o.str("status", string(a.status))
	o.str("a2aState", oneLine(string(a.state), 80))
	o.str("contextHandle", a.o.Context)
	o.str("taskHandle", a.o.Task)
	o.str("note", strings.Join(a.notes, "; "))
	if a.errCode != 0 {
		o.key("a2aErrorCode")
		o.dst = strconv.AppendInt(o.dst, int64(a.errCode), 10)
	}
	o.str("a2aErrorReason", oneLine(a.errReason, 200))
	a.appendArtifacts(&o)
	if data >= 0 {
		o.raw("data", a.pieces[data].data)
	}
	o.str("text", words)
	a.appendHistory(&o)
	a.appendPage(&o)
	return o.end()
}

// maxListed bounds the artifacts listed in an envelope.
const maxListed = 200

func (a *answer) appendArtifacts(o *object) {
	if len(a.artifacts) == 0 {
		return
	}
	o.key("artifacts")
	o.dst = append(o.dst, '[')
	for i := range a.artifacts[:min(len(a.artifacts), maxListed)] {
		art := &a.artifacts[i]
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		e := newObject(o.dst)
		e.key("artifactId")
		e.dst = AppendString(e.dst, shortID(art.ArtifactID))
		e.str("name", oneLine(art.Name, 200))
		e.str("description", oneLine(art.Description, 500))
		o.dst = e.end()
	}
	o.dst = append(o.dst, ']')
}

func (a *answer) appendHistory(o *object) {
	if len(a.history) == 0 {
		return
	}
	o.key("history")
	o.dst = append(o.dst, '[')
	for i, t := range a.history {
		if i > 0 {
			o.dst = append(o.dst, ',')
		}
		e := newObject(o.dst)
		e.str("role", t.role)
		e.key("text")
		e.dst = AppendString(e.dst, t.text)
		o.dst = e.end()
	}
	o.dst = append(o.dst, ']')
}

func (a *answer) appendPage(o *object) {
	if a.page == nil {
		return
	}
	o.key("page")
	e := newObject(o.dst)
	e.key("artifactId")
	e.dst = AppendString(e.dst, a.page.artifactID)
	e.key("offset")
	e.dst = strconv.AppendInt(e.dst, int64(a.page.offset), 10)
	if a.page.next >= 0 {
		e.key("nextOffset")
		e.dst = strconv.AppendInt(e.dst, int64(a.page.next), 10)
	}
	e.key("total")
	e.dst = strconv.AppendInt(e.dst, int64(a.page.total), 10)
	o.dst = e.end()
}

func historyText(turns []turn) string {
	if len(turns) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("History:")
	for _, t := range turns {
		b.WriteString("\n" + t.role + ": " + t.text)
	}
	return b.String()
}
