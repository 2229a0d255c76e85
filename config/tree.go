package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/jsonc"
)

const (
	// maxDepth bounds the nesting of the file; a schema of a skill is the
	// deepest thing in it.
	maxDepth = 100
	// maxSize bounds a configuration file, in bytes.
	maxSize = 16 << 20
)

// nodeKind is the JSON type of a node, in the words of messages.
type nodeKind string

const (
	isObject nodeKind = "an object"
	isList   nodeKind = "a list"
	isString nodeKind = "a string"
	isNumber nodeKind = "a number"
	isBool   nodeKind = "true or false"
	isNull   nodeKind = "null"
)

// node is one JSON value with its place in the file.
type node struct {
	kind       nodeKind
	start, end int // bytes of the source
	text       string
	number     json.Number
	truth      bool
	members    []member
	items      []*node
}

// member is one key of an object. Duplicates are kept.
type member struct {
	key   string
	start int // of the key
	value *node
}

// get returns the value of a key, the first one if there are two.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// source is a file in the form that offsets count in.
type source struct {
	name string
	// raw is the file without its byte order mark. json is without comments
	// and trailing commas too; all else stands where it stood.
	raw, json []byte
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func newSource(name string, data []byte) *source {
	data = bytes.TrimPrefix(data, byteOrderMark)
	return &source{name: name, raw: data, json: jsonc.ToJSON(data)}
}

// place returns line and column of an offset, both from 1.
func (s *source) place(offset int) (line, column int) {
	before := s.raw[:min(max(offset, 0), len(s.raw))]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// syntaxError is the first thing that is not JSON.
type syntaxError struct {
	offset  int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// parse reads the whole source; an error is a *syntaxError.
func (s *source) parse() (*node, error) {
	if !utf8.Valid(s.json) {
		return nil, &syntaxError{invalidUTF8(s.json), "the file is not UTF-8 here; save it as UTF-8"}
	}
	if len(bytes.TrimSpace(s.json)) == 0 {
		return nil, &syntaxError{0, `the file is empty; write {"agents": {"name": {"url": "https://…"}}}`}
	}
	p := &parser{source: s, dec: json.NewDecoder(bytes.NewReader(s.json))}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, p.explain(err)
	}
	if rest := p.next(); rest < len(s.json) {
		return nil, &syntaxError{rest, "there is more after the end of the configuration; remove it"}
	}
	return n, nil
}

func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(b)
}

// parser makes a tree of the tokens of encoding/json, which tells where each
// one ends.
type parser struct {
	*source
	dec *json.Decoder
}

// next is where the next token starts.
func (p *parser) next() int {
	i := int(p.dec.InputOffset())
	for i < len(p.json) && strings.IndexByte(" \t\r\n,:", p.json[i]) >= 0 {
		i++
	}
	return i
}

func (p *parser) value(depth int) (*node, error) {
	n := &node{start: p.next()}
	if depth > maxDepth {
		return nil, &syntaxError{n.start, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			n.kind = isObject
			err = p.object(n, depth)
		} else {
			n.kind = isList
			err = p.list(n, depth)
		}
		if err != nil {
			return nil, err
		}
		if _, err := p.dec.Token(); err != nil { // the closing bracket
			return nil, err
		}
	case string:
		n.kind, n.text = isString, t
	case json.Number:
		n.kind, n.number = isNumber, t
	case bool:
		n.kind, n.truth = isBool, t
	default:
		n.kind = isNull
	}
	n.end = int(p.dec.InputOffset())
	return n, nil
}

func (p *parser) object(n *node, depth int) error {
	for p.dec.More() {
		start := p.next()
		key, err := p.dec.Token()
		if err != nil {
			return err
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{key: key.(string), start: start, value: value})
	}
	return nil
}

func (p *parser) list(n *node, depth int) error {
	for p.dec.More() {
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, value)
	}
	return nil
}

// explain makes a syntaxError of what encoding/json says.
func (p *parser) explain(err error) error {
	var own *syntaxError
	if errors.As(err, &own) {
		return own
	}
	at := p.next()
	// The decoder of tokens does not tell where in a token it stopped; the one
	// of whole values does.
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(p.json, new(any)), &syntax) {
		at = int(syntax.Offset) - 1 // Offset counts the bad byte too
		err = syntax
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || at+1 >= len(p.json) && strings.Contains(err.Error(), "unexpected end") {
		return &syntaxError{len(bytes.TrimRight(p.json, " \t\r\n")), "the file ends too early; a bracket or quote is not closed"}
	}
	at = min(max(at, 0), len(p.json)-1)
	if p.json[at] == '/' {
		return &syntaxError{at, "not JSON: a comment that is never closed, or a stray /"}
	}
	if c := p.json[at]; c == '\n' || c == '\r' {
		if strings.Contains(err.Error(), "in string") {
			return &syntaxError{at, "not JSON: a quote is not closed before the end of the line"}
		}
	}
	r, _ := utf8.DecodeRune(p.json[at:])
	return &syntaxError{at, fmt.Sprintf("not JSON: unexpected %q; a comma, colon, quote or bracket is missing or too many before it", r)}
}
