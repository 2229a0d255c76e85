package a2a

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Package json reads a value that is kept raw twice, byte by byte, and copies
// it. A data part can be nearly all of an answer, so large ones are lifted out
// before: one pass checks the grammar of the answer and cuts them out, and what
// is left is decoded with a mark in the place of each. An answer that this pass
// does not understand is decoded as it is, so it never decides what is JSON.
const (
	// liftFrom is the size of an answer from which it is looked at, liftMin that
	// of a value which is lifted, in bytes.
	liftFrom = 8 << 10
	liftMin  = 2 << 10
	// liftLevels bounds the nesting of messages, artifacts and parts: what is
	// deeper is no part.
	liftLevels = 16
	// liftMark begins a mark. Nothing is lifted from an answer that has these bytes
	// itself in what would stay.
	liftMark = `"a2agate lifted `
)

// lifted are the values that were cut out, each by the number in its mark.
type lifted []json.RawMessage

// at returns the value that stood where raw stands.
func (l lifted) at(raw json.RawMessage) json.RawMessage {
	if len(l) == 0 || !bytes.HasPrefix(raw, []byte(liftMark)) {
		return raw
	}
	n, err := strconv.Atoi(string(raw[len(liftMark) : len(raw)-1]))
	if err != nil || n >= len(l) {
		return raw
	}
	return l[n]
}

// lift returns body with its large data values replaced by marks, and the
// values; or body itself and nothing.
func lift(body []byte, from, least int) ([]byte, lifted) {
	if len(body) < from {
		return body, nil
	}
	l := lifter{b: body, least: least}
	end := l.value(skipSpace(body, 0), 0)
	if end < 0 || skipSpace(body, end) != len(body) || len(l.values) == 0 {
		return body, nil
	}
	rest := append(l.rest, body[l.done:]...)
	if bytes.Count(rest, []byte(liftMark)) != len(l.values) {
		return body, nil
	}
	return rest, l.values
}

// lifter walks one answer. Positions are indices of b, -1 for what is no JSON
// or nests too deeply.
type lifter struct {
	b      []byte
	least  int
	rest   []byte // what was passed without the values
	done   int    // where of b rest ends
	values lifted
}

// value passes a value that may hold parts.
func (l *lifter) value(i, level int) int {
	switch {
	case i >= len(l.b) || level > liftLevels:
		return -1
	case l.b[i] == '{':
		return l.object(i, level)
	case l.b[i] != '[':
		return skipValue(l.b, i)
	}
	i = skipSpace(l.b, i+1)
	if i < len(l.b) && l.b[i] == ']' {
		return i + 1
	}
	for {
		if i = l.value(i, level+1); i < 0 {
			return -1
		}
		next, more := skipComma(l.b, i, ']')
		if !more {
			return next
		}
		i = next
	}
}

func (l *lifter) object(i, level int) int {
	i = skipSpace(l.b, i+1)
	if i < len(l.b) && l.b[i] == '}' {
		return i + 1
	}
	for {
		start := i
		if i = skipString(l.b, i); i < 0 {
			return -1
		}
		key := l.b[start:i]
		if i = skipColon(l.b, i); i < 0 {
			return -1
		}
		switch string(key) {
		case `"data"`:
			i = l.data(i)
		case `"result"`, `"task"`, `"message"`, `"status"`, `"update"`, `"statusUpdate"`, `"status_update"`, `"artifactUpdate"`, `"artifact_update"`,
			`"artifact"`, `"artifacts"`, `"history"`, `"parts"`, `"content"`:
			i = l.value(i, level+1)
		default: // metadata, errors and what nobody knows stay whole
			i = skipValue(l.b, i)
		}
		if i < 0 {
			return -1
		}
		next, more := skipComma(l.b, i, '}')
		if !more {
			return next
		}
		i = next
	}
}

// data passes a data value and cuts it out where it is large.
func (l *lifter) data(i int) int {
	end := skipValue(l.b, i)
	if end-i < l.least || l.b[i] != '{' && l.b[i] != '[' {
		return end
	}
	l.rest = append(l.rest, l.b[l.done:i]...)
	l.rest = append(l.rest, liftMark...)
	l.rest = append(strconv.AppendInt(l.rest, int64(len(l.values)), 10), '"')
	l.values = append(l.values, bytes.Clone(l.b[i:end]))
	l.done = end
	return end
}

// skipComma passes what stands after an element: a comma, then another element
// follows, or the closing bracket.
func skipComma(b []byte, i int, closing byte) (next int, more bool) {
	i = skipSpace(b, i)
	switch {
	case i >= len(b):
		return -1, false
	case b[i] == ',':
		return skipSpace(b, i+1), true
	case b[i] == closing:
		return i + 1, false
	}
	return -1, false
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

func skipColon(b []byte, i int) int {
	if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
		return -1
	}
	return skipSpace(b, i+1)
}

// skipKey passes a member's name and the colon after it.
func skipKey(b []byte, i int) int {
	if i = skipString(b, i); i < 0 {
		return -1
	}
	return skipColon(b, i)
}

// skipValue passes one JSON value (RFC 8259) of at most 64 levels, which are
// what a word has bits for; it does not recurse.
func skipValue(b []byte, i int) int {
	var objects uint64 // a bit for each open container, the innermost last
	for depth := 0; ; {
		if i < 0 || i >= len(b) {
			return -1
		}
		switch c := b[i]; c {
		case '{', '[':
			if depth == 64 {
				return -1
			}
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == c+2 { // the bracket that closes c
				i++
				break
			}
			objects <<= 1
			depth++
			if c == '{' {
				objects |= 1
				i = skipKey(b, i)
			}
			continue
		default:
			i = skipScalar(b, i)
		}
		for more := false; !more; { // what ends here is closed
			if i < 0 || depth == 0 {
				return i
			}
			closing := byte(']')
			if objects&1 == 1 {
				closing = '}'
			}
			if i, more = skipComma(b, i, closing); more && closing == '}' {
				i = skipKey(b, i)
			} else if !more {
				objects >>= 1
				depth--
			}
		}
	}
}

func skipScalar(b []byte, i int) int {
	word := "null"
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(b, i)
	case c == 't':
		word = "true"
	case c == 'f':
		word = "false"
	}
	if !bytes.HasPrefix(b[i:], []byte(word)) {
		return -1
	}
	return i + len(word)
}

// skipString passes a string. That its bytes are UTF-8 has been seen to.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			return -1
		case c == '\\':
			if i++; i >= len(b) {
				return -1
			}
			if b[i] == 'u' {
				if i+4 >= len(b) || !hex4(b[i+1:i+5]) {
					return -1
				}
				i += 4
			} else if bytes.IndexByte([]byte(`"\/bfnrt`), b[i]) < 0 {
				return -1
			}
		}
	}
	return -1
}

func hex4(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

func skipNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = skipDigits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return skipDigits(b, i)
	}
	return i
}

// skipDigits passes one digit at least.
func skipDigits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}
