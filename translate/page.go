package translate

import (
	"strconv"
	"strings"

	"a2agate/a2a"
)

// ArgumentError is an argument that cannot be used. Field is its path
// ("files[0].bytes"), Reason says what is wrong and what to give instead.
type ArgumentError struct {
	Field  string
	Reason string
}

func (e *ArgumentError) Error() string { return e.Field + ": " + e.Reason }

// ResultFromPage renders one page of an artifact's text, from offset on, at
// most ResultChars long; offset, nextOffset and total count characters. The
// text of an artifact is the text of its parts (words, JSON, text files) in
// order, joined by line feeds; pages put together are exactly that text. It
// is the whole content of the first block and of the envelope's text. The
// error is an *ArgumentError: an unknown artifact, or an offset outside it.
func ResultFromPage(t *a2a.Task, artifactID string, offset int, o Options) (Result, error) {
	a := answer{o: &o, kind: "task", state: t.Status.State, status: StatusFromState(t.Status.State)}
	ps, err := a.artifactPieces(t, artifactID)
	if err != nil {
		return Result{}, err
	}
	var texts []string
	json := false
	for i := range ps {
		if ps[i].hasText() {
			texts = append(texts, ps[i].text)
			json = json || ps[i].kind == pieceData
		}
	}
	whole := strings.Join(texts, "\n")
	total := runes(whole)
	if offset < 0 || offset > total {
		return Result{}, &ArgumentError{"offset", strconv.Itoa(offset) +
			" is outside the text of artifact " + quoteName(artifactID) + ", which has " + strconv.Itoa(total) + " characters"}
	}
	rest := whole[runeIndex(whole, offset):]
	end := runeIndex(rest, o.resultChars())
	a.page = &page{artifactID: artifactID, offset: offset, next: -1, total: total}
	if end < len(rest) {
		a.page.next = offset + o.resultChars()
	}
	a.addNotes(o.Notes)
	if json && end < len(whole) {
		a.note("this is a piece of JSON: join the pages before parsing it")
	}
	for i := range ps {
		if !ps[i].hasText() {
			a.note("not part of the text: " + ps[i].line)
		}
	}
	if rest != "" {
		a.pieces = []piece{{kind: pieceText, text: rest[:end]}}
	}
	return a.result(), nil
}

// artifactPieces finds the artifact and says which ids there are where it is
// not found.
func (a *answer) artifactPieces(t *a2a.Task, id string) ([]piece, error) {
	known := make([]string, 0, min(len(t.Artifacts), 20))
	for i := range t.Artifacts {
		art := &t.Artifacts[i]
		if art.ArtifactID == id {
			a.artifacts = t.Artifacts[i : i+1]
			return piecesFromParts(nil, art.Parts, origin{artifact: art, readable: id}, a.o), nil
		}
		if len(known) < cap(known) {
			known = append(known, quoteName(art.ArtifactID))
		}
	}
	if m := t.Status.Message; id == StatusArtifactID && m != nil {
		return piecesFromParts(nil, m.Parts, origin{messageID: m.MessageID}, a.o), nil
	}
	reason := quoteName(id) + " is not an artifact of this task, which has "
	if len(known) == 0 {
		return nil, &ArgumentError{"artifactId", reason + "none"}
	}
	return nil, &ArgumentError{"artifactId", reason + strings.Join(known, ", ")}
}

// pageText says where the page is and how to read on.
func (a *answer) pageText() string {
	p := a.page
	end := p.total
	if p.next >= 0 {
		end = p.next
	}
	s := "Characters " + strconv.Itoa(p.offset) + " to " + strconv.Itoa(end) + " of " + strconv.Itoa(p.total) + "."
	switch {
	case p.next >= 0 && a.o.Task != "":
		return s + " To read on, call " + a.o.pageCall(p.artifactID, p.next) + "."
	case p.next >= 0:
		return s + " More follows at offset " + strconv.Itoa(p.next) + "."
	}
	return s + " This is the end."
}
