package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// shown are the members whose values tell how a message is built and not what
// it says; ids are the agent's own and open nothing here.
var shown = map[string]bool{
	"jsonrpc": true, "method": true, "id": true, "kind": true, "role": true, "state": true, "final": true,
	"append": true, "lastChunk": true, "code": true, "mediaType": true, "mimeType": true, "type": true,
	"messageId": true, "contextId": true, "taskId": true, "artifactId": true, "timestamp": true,
	"protocolVersion": true, "protocolBinding": true, "returnImmediately": true, "blocking": true, "historyLength": true,
}

const (
	// maxShape bounds the description of one body.
	maxShape = 2000
	// maxShown bounds a value that is shown, shapeDepth the nesting and
	// shapeItems the elements of a list.
	maxShown   = 64
	shapeDepth = 12
	shapeItems = 8
)

// Shape describes a JSON text without its contents: the names of members, the
// types and sizes of values, and the values of a few members that say nothing
// of what was said. What is not JSON is described by its size. Names of
// members are the agent's own words too: they are cut and made harmless.
func Shape(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var b strings.Builder
	if !shapeValue(d, &b, "", 0) {
		return strconv.Itoa(len(raw)) + " bytes that are no JSON"
	}
	if _, err := d.Token(); err != io.EOF {
		b.WriteString(" and more")
	}
	if b.Len() > maxShape {
		return b.String()[:maxShape] + "…"
	}
	return b.String()
}

// shapeValue describes the next value of d; name is the member it belongs to.
func shapeValue(d *json.Decoder, b *strings.Builder, name string, depth int) bool {
	t, err := d.Token()
	if err != nil {
		return false
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return shapeMembers(d, b, depth+1)
		}
		return shapeElements(d, b, depth+1)
	case string:
		if shown[name] && len(t) <= maxShown && plain(t) {
			b.WriteString(strconv.Quote(t))
		} else {
			b.WriteString("text(" + strconv.Itoa(len(t)) + ")")
		}
	case json.Number:
		if shown[name] {
			b.WriteString(t.String())
		} else {
			b.WriteString("number")
		}
	case bool:
		if shown[name] {
			b.WriteString(strconv.FormatBool(t))
		} else {
			b.WriteString("bool")
		}
	default:
		b.WriteString("null")
	}
	return true
}

func shapeMembers(d *json.Decoder, b *strings.Builder, depth int) bool {
	full := write(b, depth, "{")
	for n := 0; d.More(); n++ {
		t, err := d.Token()
		if err != nil {
			return false
		}
		name, _ := t.(string)
		if n > 0 {
			write(full, depth, " ")
		}
		write(full, depth, harmless(name)+":")
		if !shapeValue(d, full, name, depth) {
			return false
		}
	}
	_, err := d.Token()
	write(full, depth, "}")
	return err == nil
}

func shapeElements(d *json.Decoder, b *strings.Builder, depth int) bool {
	full := write(b, depth, "[")
	n := 0
	for ; d.More(); n++ {
		to := full
		switch {
		case n >= shapeItems:
			to = &strings.Builder{}
		case n > 0:
			write(full, depth, " ")
		}
		if !shapeValue(d, to, "", depth) {
			return false
		}
	}
	if n > shapeItems {
		write(full, depth, " and "+strconv.Itoa(n-shapeItems)+" more")
	}
	_, err := d.Token()
	write(full, depth, "]")
	return err == nil
}

// write writes s unless the description is long or deep enough; it returns
// where what follows goes.
func write(b *strings.Builder, depth int, s string) *strings.Builder {
	if b.Len() > maxShape {
		return b
	}
	if depth > shapeDepth {
		return &strings.Builder{}
	}
	b.WriteString(s)
	return b
}

// plain reports whether a value is of the form that names and ids have.
func plain(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-_./+:;= ", c) < 0 {
			return false
		}
	}
	return true
}

// harmless is a member's name, cut.
func harmless(name string) string {
	if len(name) <= maxShown && plain(name) {
		return name
	}
	return "name(" + strconv.Itoa(len(name)) + ")"
}
