package clientfile

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// tomlDoc is a TOML 1.0 text by its places; multi-line inline tables of 1.1
// are taken too.
type tomlDoc struct {
	// sections[0] is the root, which has no header.
	sections []tomlSection
	keys     []tomlKey
}

// tomlSection is a table or an element of an array of tables.
type tomlSection struct {
	path       []string
	array      bool
	start, end int // of the header
}

// tomlKey is one key with its value.
type tomlKey struct {
	path       []string // from the root
	section    int
	inline     bool // it stands inside an inline table
	start      int  // of the key
	value, end int  // of the value
}

// tomlScanner reads TOML.
type tomlScanner struct {
	text    []byte
	at      int
	depth   int
	doc     tomlDoc
	defined map[string]tomlKind // by joined path
}

// tomlKind is how a path came to be.
type tomlKind int

const (
	tomlImplied tomlKind = iota + 1 // by the header of a table below it
	tomlTable                       // by its own header
	tomlDotted                      // by a dotted key
	tomlValue
	tomlArray // an array of tables
)

func parseTOML(text []byte) (*tomlDoc, *Error) {
	s := tomlScanner{text: text, defined: map[string]tomlKind{}}
	if !utf8.Valid(text) {
		return nil, &Error{Reason: "the file is not UTF-8"}
	}
	if bytes.HasPrefix(text, []byte(bom)) {
		s.at = len(bom)
	}
	s.doc.sections = []tomlSection{{}}
	for {
		if err := s.blanks(true); err != nil {
			return nil, err
		}
		if s.at == len(s.text) {
			return &s.doc, nil
		}
		var err *Error
		if s.text[s.at] == '[' {
			err = s.header()
		} else {
			err = s.keyValue(s.doc.sections[len(s.doc.sections)-1].path, false)
		}
		if err == nil {
			err = s.endOfLine()
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *tomlScanner) errorf(format string, args ...any) *Error {
	return errorAt(s.text, s.at, format, args...)
}

func (s *tomlScanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// blanks skips spaces and tabs, with lines also line ends and comments.
func (s *tomlScanner) blanks(lines bool) *Error {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == ' ' || c == '\t':
			s.at++
		case lines && c == '\n':
			s.at++
		case lines && c == '\r':
			if !bytes.HasPrefix(s.text[s.at:], []byte("\r\n")) {
				return s.errorf("a carriage return without a line feed")
			}
			s.at += 2
		case lines && c == '#':
			if err := s.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (s *tomlScanner) comment() *Error {
	for s.at < len(s.text) && s.text[s.at] != '\n' {
		c := s.text[s.at]
		if c == '\r' && bytes.HasPrefix(s.text[s.at:], []byte("\r\n")) {
			return nil
		}
		if c < ' ' && c != '\t' || c == 0x7f {
			return s.errorf("a control character in a comment")
		}
		s.at++
	}
	return nil
}

func (s *tomlScanner) endOfLine() *Error {
	if err := s.blanks(false); err != nil {
		return err
	}
	if s.peek() == '#' {
		if err := s.comment(); err != nil {
			return err
		}
	}
	rest := s.text[s.at:]
	if len(rest) == 0 || rest[0] == '\n' || bytes.HasPrefix(rest, []byte("\r\n")) {
		return nil
	}
	return s.errorf("unexpected %q, want the end of the line", firstRune(rest))
}

func firstRune(b []byte) string {
	r, _ := utf8.DecodeRune(b)
	return string(r)
}

func joined(path []string) string {
	b, err := json.Marshal(path)
	if err != nil {
		return strings.Join(path, "\x00")
	}
	return string(b)
}

// header reads [a.b] or [[a.b]].
func (s *tomlScanner) header() *Error {
	sec := tomlSection{start: s.at, array: bytes.HasPrefix(s.text[s.at:], []byte("[["))}
	end := "]"
	if sec.array {
		end = "]]"
	}
	s.at += len(end)
	var err *Error
	if sec.path, err = s.key(); err != nil {
		return err
	}
	if !bytes.HasPrefix(s.text[s.at:], []byte(end)) {
		return s.errorf("expected %q", end)
	}
	s.at += len(end)
	sec.end = s.at
	return s.define(sec)
}

// define enters a header.
func (s *tomlScanner) define(sec tomlSection) *Error {
	for i := 1; i < len(sec.path); i++ {
		switch p := joined(sec.path[:i]); s.defined[p] {
		case tomlValue:
			return errorAt(s.text, sec.start, "%s has a value already and cannot be a table", quoted(sec.path[:i]...))
		case 0:
			s.defined[p] = tomlImplied
		}
	}
	p := joined(sec.path)
	kind := s.defined[p]
	if sec.array && (kind == 0 || kind == tomlArray) {
		below := strings.TrimSuffix(p, "]") + ","
		for k := range s.defined {
			if strings.HasPrefix(k, below) {
				delete(s.defined, k)
			}
		}
		s.defined[p] = tomlArray
	} else if !sec.array && (kind == 0 || kind == tomlImplied) {
		s.defined[p] = tomlTable
	} else {
		return errorAt(s.text, sec.start, "%s is defined twice", quoted(sec.path...))
	}
	s.doc.sections = append(s.doc.sections, sec)
	return nil
}

// key reads a dotted key and the blanks around it.
func (s *tomlScanner) key() ([]string, *Error) {
	var path []string
	for {
		if err := s.blanks(false); err != nil {
			return nil, err
		}
		var part string
		switch c := s.peek(); {
		case c == '"' || c == '\'':
			start := s.at
			if err := s.str(); err != nil {
				return nil, err
			}
			if len(s.text[start:s.at]) >= 6 && bytes.HasPrefix(s.text[start:], []byte{c, c, c}) {
				return nil, errorAt(s.text, start, "a key cannot be a string of several lines")
			}
			part = tomlString(s.text[start:s.at])
		default:
			start := s.at
			for s.at < len(s.text) && bareKey(s.text[s.at]) {
				s.at++
			}
			if s.at == start {
				return nil, s.errorf("expected a key, found %q", firstRune(s.text[s.at:]))
			}
			part = string(s.text[start:s.at])
		}
		path = append(path, part)
		if err := s.blanks(false); err != nil {
			return nil, err
		}
		if s.peek() != '.' {
			return path, nil
		}
		s.at++
	}
}

func bareKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// keyValue reads one key with its value, below a table.
func (s *tomlScanner) keyValue(table []string, inline bool) *Error {
	k := tomlKey{section: len(s.doc.sections) - 1, inline: inline, start: s.at}
	path, err := s.key()
	if err != nil {
		return err
	}
	k.path = append(slices.Clone(table), path...)
	for i := len(table) + 1; i < len(k.path); i++ {
		switch p := joined(k.path[:i]); s.defined[p] {
		case 0:
			s.defined[p] = tomlDotted
		case tomlDotted:
		default:
			return errorAt(s.text, k.start, "%s is defined already", quoted(k.path[:i]...))
		}
	}
	if s.defined[joined(k.path)] != 0 {
		return errorAt(s.text, k.start, "%s is defined twice", quoted(k.path...))
	}
	s.defined[joined(k.path)] = tomlValue
	if s.peek() != '=' {
		return s.errorf(`expected "=" after the key`)
	}
	s.at++
	if err := s.blanks(false); err != nil {
		return err
	}
	k.value = s.at
	at := len(s.doc.keys)
	s.doc.keys = append(s.doc.keys, k)
	if err := s.value(k.path); err != nil {
		return err
	}
	s.doc.keys[at].end = s.at
	return nil
}

// tomlScalar are the numbers, booleans, dates and times.
var tomlScalar = regexp.MustCompile(`^(true|false|[+-]?(inf|nan|(0|[1-9](_?\d)*)(\.\d(_?\d)*)?([eE][+-]?\d(_?\d)*)?)|0x[\da-fA-F](_?[\da-fA-F])*|0o[0-7](_?[0-7])*|0b[01](_?[01])*|(\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?)?|\d\d:\d\d(:\d\d(\.\d+)?)?))$`)

func (s *tomlScanner) value(path []string) *Error {
	if s.depth++; s.depth > maxDepth {
		return s.errorf("nested deeper than %d levels", maxDepth)
	}
	defer func() { s.depth-- }()
	switch s.peek() {
	case '"', '\'':
		return s.str()
	case '[':
		return s.list(']', func() *Error { return s.value(nil) })
	case '{':
		if path == nil { // in an array: its keys are nobody's
			outer, keys := s.defined, len(s.doc.keys)
			s.defined = map[string]tomlKind{}
			err := s.list('}', func() *Error { return s.keyValue(nil, true) })
			s.defined, s.doc.keys = outer, s.doc.keys[:keys]
			return err
		}
		return s.list('}', func() *Error { return s.keyValue(path, true) })
	}
	start := s.at
	for s.at < len(s.text) && (bareKey(s.text[s.at]) || strings.IndexByte("+.:", s.text[s.at]) >= 0 || s.dateSpace(start)) {
		s.at++
	}
	if !tomlScalar.Match(s.text[start:s.at]) {
		s.at = start
		return s.errorf("%q is not a TOML value", clip(bytes.SplitN(s.text[start:], []byte{'\n'}, 2)[0]))
	}
	return nil
}

// dateSpace reports whether here is the space between a date and a time.
func (s *tomlScanner) dateSpace(start int) bool {
	return s.text[s.at] == ' ' && s.at-start == 10 && s.text[start+4] == '-' && s.at+1 < len(s.text) && s.text[s.at+1] >= '0' && s.text[s.at+1] <= '9'
}

// list reads the items of an array or an inline table.
func (s *tomlScanner) list(end byte, item func() *Error) *Error {
	start := s.at
	s.at++
	for first := true; ; first = false {
		if err := s.blanks(true); err != nil {
			return err
		}
		if !first && s.peek() == ',' {
			s.at++
			if err := s.blanks(true); err != nil {
				return err
			}
		} else if !first && s.peek() != end {
			return s.unclosed(start, end)
		}
		if s.peek() == end {
			s.at++
			return nil
		}
		if s.at == len(s.text) {
			return s.unclosed(start, end)
		}
		if err := item(); err != nil {
			return err
		}
	}
}

func (s *tomlScanner) unclosed(start int, end byte) *Error {
	if s.at == len(s.text) {
		return errorAt(s.text, start, "this %q is never closed", rune(s.text[start]))
	}
	return s.errorf("expected \",\" or %q, found %q", rune(end), firstRune(s.text[s.at:]))
}

// str skips any of the four kinds of strings.
func (s *tomlScanner) str() *Error {
	q := s.text[s.at]
	triple := bytes.HasPrefix(s.text[s.at:], []byte{q, q, q})
	i := s.at + 1
	if triple {
		i += 2
	}
	for ; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\' && q == '"':
			if i++; i < len(s.text) && strings.IndexByte(`btnfre"\uUx`+" \t\r\n", s.text[i]) < 0 {
				return errorAt(s.text, i, `\%s is no escape`, firstRune(s.text[i:]))
			}
		case c == q && !triple:
			s.at = i + 1
			return nil
		case c == q && bytes.HasPrefix(s.text[i:], []byte{q, q, q}):
			i += 3
			for extra := 0; extra < 2 && i < len(s.text) && s.text[i] == q; extra++ {
				i++ // one or two quotes may stand before the end
			}
			s.at = i
			return nil
		case c == '\n' && !triple:
			return s.errorf("this string has no end on its line")
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f:
			return errorAt(s.text, i, "a control character in a string")
		}
	}
	return s.errorf("this string has no end")
}

// tomlString is the value of a string of one line; of others the raw text.
func tomlString(raw []byte) string {
	switch {
	case len(raw) >= 6 && (bytes.HasPrefix(raw, []byte(`"""`)) || bytes.HasPrefix(raw, []byte("'''"))):
	case len(raw) >= 2 && raw[0] == '\'':
		return string(raw[1 : len(raw)-1])
	case len(raw) >= 2 && raw[0] == '"':
		var v string
		if json.Unmarshal(raw, &v) == nil {
			return v
		}
	}
	return string(raw)
}
