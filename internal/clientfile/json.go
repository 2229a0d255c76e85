package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
)

// jsonNode is a value of a JSON text, by its place.
type jsonNode struct {
	kind       byte // '{', '[', '"', or 0 for a number, true, false, null
	start, end int
	items      []jsonItem
	// tail is where the last comma, value or comment inside a container ends:
	// only blanks follow up to the closing bracket.
	tail int
}

// jsonItem is a member of an object or an element of an array.
type jsonItem struct {
	name  string // decoded; "" in an array
	start int    // of the name, or of the value in an array
	value *jsonNode
	comma int // offset of the comma after it, -1 for none
}

// member returns the index of the last member of a name, which is the one that
// counts for every client, or -1.
func (n *jsonNode) member(name string) int {
	for i := len(n.items) - 1; i >= 0; i-- {
		if n.items[i].name == name {
			return i
		}
	}
	return -1
}

// jsonScanner reads JSON with comments and trailing commas.
type jsonScanner struct {
	text  []byte
	at    int
	depth int
}

// parseJSON returns the value of a text, nil for one that has only blanks and
// comments.
func parseJSON(text []byte) (*jsonNode, *Error) {
	s := jsonScanner{text: text}
	s.skipBOM()
	if _, err := s.trivia(); err != nil {
		return nil, err
	}
	if s.at == len(text) {
		return nil, nil //nolint:nilnil // nothing there is no error
	}
	n, err := s.value()
	if err != nil {
		return nil, err
	}
	if _, err := s.trivia(); err != nil {
		return nil, err
	}
	if s.at < len(text) {
		return nil, s.errorf("there is more after the end of the value")
	}
	return n, nil
}

func (s *jsonScanner) skipBOM() {
	if bytes.HasPrefix(s.text, []byte(bom)) {
		s.at = len(bom)
	}
}

func (s *jsonScanner) errorf(format string, args ...any) *Error {
	return errorAt(s.text, s.at, format, args...)
}

// peek is the next byte, 0 at the end.
func (s *jsonScanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// trivia skips blanks and comments; it returns where the last comment ended,
// -1 for none.
func (s *jsonScanner) trivia() (comment int, err *Error) {
	comment = -1
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			s.at++
		case c == '/':
			if err := s.comment(); err != nil {
				return comment, err
			}
			comment = s.at
		default:
			return comment, nil
		}
	}
	return comment, nil
}

// comment skips one comment; one to the end of the line does not hold the
// line's end.
func (s *jsonScanner) comment() *Error {
	rest := s.text[s.at:]
	switch {
	case len(rest) > 1 && rest[1] == '/':
		for s.at < len(s.text) && s.text[s.at] != '\n' && s.text[s.at] != '\r' {
			s.at++
		}
		return nil
	case len(rest) > 1 && rest[1] == '*':
		for i := 2; i+1 < len(rest); i++ {
			if rest[i] == '*' && rest[i+1] == '/' {
				s.at += i + 2
				return nil
			}
		}
		return s.errorf("this comment has no end")
	}
	return s.errorf(`unexpected "/"`)
}

func (s *jsonScanner) value() (*jsonNode, *Error) {
	switch c := s.peek(); c {
	case '{', '[':
		if s.depth++; s.depth > maxDepth {
			return nil, s.errorf("nested deeper than %d levels", maxDepth)
		}
		n, err := s.container(c)
		s.depth--
		return n, err
	case '"':
		start := s.at
		if err := s.str(); err != nil {
			return nil, err
		}
		return &jsonNode{kind: '"', start: start, end: s.at}, nil
	default:
		return s.scalar()
	}
}

// scalar reads a number, true, false or null.
func (s *jsonScanner) scalar() (*jsonNode, *Error) {
	start := s.at
	for end := start; ; end++ {
		if end < len(s.text) {
			if c := s.text[end]; c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.' {
				continue
			}
		}
		switch {
		case end == start && end == len(s.text):
			return nil, s.errorf("the file ends where a value should be")
		case end == start:
			return nil, s.errorf("unexpected %q where a value should be", rune(s.text[start]))
		case !json.Valid(s.text[start:end]):
			return nil, s.errorf("%q is not a JSON value", clip(s.text[start:end]))
		}
		s.at = end
		return &jsonNode{start: start, end: end}, nil
	}
}

func clip(b []byte) string {
	if len(b) > 40 {
		return string(b[:40]) + "…"
	}
	return string(b)
}

// str skips a string.
func (s *jsonScanner) str() *Error {
	for i := s.at + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			if !json.Valid(s.text[s.at : i+1]) {
				return s.errorf("this string has a control character or a bad escape")
			}
			s.at = i + 1
			return nil
		case '\n':
			return s.errorf("this string has no end on its line")
		}
	}
	return s.errorf("this string has no end")
}

// container reads an object or an array.
func (s *jsonScanner) container(open byte) (*jsonNode, *Error) {
	n := &jsonNode{kind: open, start: s.at}
	s.at++
	n.tail = s.at
	end := byte(']')
	if open == '{' {
		end = '}'
	}
	for {
		if err := s.gap(n); err != nil {
			return nil, err
		}
		if s.peek() == end {
			s.at++
			n.end = s.at
			return n, nil
		}
		if k := len(n.items); k > 0 && n.items[k-1].comma < 0 {
			return nil, s.expected(n, `"," or "`+string(end)+`"`)
		}
		it, err := s.item(n)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, it)
		n.tail = s.at
		if err := s.gap(n); err != nil {
			return nil, err
		}
		if s.peek() == ',' {
			n.items[len(n.items)-1].comma = s.at
			s.at++
			n.tail = s.at
		}
	}
}

// gap skips blanks and comments inside a container.
func (s *jsonScanner) gap(n *jsonNode) *Error {
	comment, err := s.trivia()
	if comment >= 0 {
		n.tail = comment
	}
	return err
}

func (s *jsonScanner) expected(n *jsonNode, what string) *Error {
	if s.at == len(s.text) {
		return errorAt(s.text, n.start, "this %q is never closed", rune(n.kind))
	}
	return s.errorf("expected %s, found %q", what, rune(s.text[s.at]))
}

func (s *jsonScanner) item(n *jsonNode) (jsonItem, *Error) {
	it := jsonItem{start: s.at, comma: -1}
	if n.kind == '{' {
		if s.peek() != '"' {
			return it, s.expected(n, "a name in double quotes")
		}
		if err := s.str(); err != nil {
			return it, err
		}
		if err := json.Unmarshal(s.text[it.start:s.at], &it.name); err != nil {
			return it, errorAt(s.text, it.start, "this name cannot be read")
		}
		if _, err := s.trivia(); err != nil {
			return it, err
		}
		if s.peek() != ':' {
			return it, s.expected(n, `":"`)
		}
		s.at++
		if _, err := s.trivia(); err != nil {
			return it, err
		}
	}
	if s.at == len(s.text) {
		return it, s.expected(n, "a value")
	}
	var err *Error
	it.value, err = s.value()
	return it, err
}

// decode returns a value as encoding/json gives it; comments inside it are
// taken out first.
func (n *jsonNode) decode(text []byte) (any, error) {
	switch n.kind {
	case '{':
		m := map[string]any{}
		for _, it := range n.items {
			v, err := it.value.decode(text)
			if err != nil {
				return nil, err
			}
			m[it.name] = v
		}
		return m, nil
	case '[':
		list := []any{}
		for _, it := range n.items {
			v, err := it.value.decode(text)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	var v any
	err := json.Unmarshal(text[n.start:n.end], &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return nil, errorAt(text, n.start, "this value cannot be read")
	}
	if err != nil { // a number out of range: its text is as good
		return string(text[n.start:n.end]), nil //nolint:nilerr // as said
	}
	return v, nil
}
