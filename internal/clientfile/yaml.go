package clientfile

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yamlDoc is a YAML text of at most one document.
type yamlDoc struct {
	text  []byte
	root  *yaml.Node // nil for a text without one
	lines []int      // where each line starts
}

var yamlPlace = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s*)?line (\d+): (.*)`)

// oddBreak finds the line ends that YAML 1.1 knows and other programs do not,
// on which the two would count lines differently.
var oddBreak = regexp.MustCompile("\r(?:[^\n]|$)|\u0085|\u2028|\u2029")

// yamlError gives an error of the parser its place.
func yamlError(err error) *Error {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\n  line")
	if m := yamlPlace.FindStringSubmatch(strings.Join(strings.Fields(err.Error()), " ")); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &Error{Line: line, Reason: m[2]}
	}
	return &Error{Reason: text}
}

func parseYAML(text []byte) (doc *yamlDoc, failed *Error) {
	defer func() { // the parser panics on a few broken texts
		if p := recover(); p != nil {
			doc, failed = nil, &Error{Reason: "the file is no YAML that can be read"}
		}
	}()
	if at := oddBreak.FindIndex(text); at != nil {
		return nil, errorAt(text, at[0], "a line end that is neither LF nor CRLF")
	}
	doc = &yamlDoc{text: text, lines: []int{0}}
	var node, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&node)
	if errors.Is(err, io.EOF) {
		err = nil
	} else if err == nil {
		doc.root = node.Content[0]
		if err = d.Decode(&more); err == nil {
			return nil, &Error{Line: more.Line, Reason: "the file has more than one document"}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	if doc.root != nil {
		var v any
		if err := doc.root.Decode(&v); err != nil { // finds duplicate keys
			return nil, yamlError(err)
		}
	}
	for i, c := range text {
		if c == '\n' {
			doc.lines = append(doc.lines, i+1)
		}
	}
	return doc, nil
}

// line is the start of a line, counted from 1; past the last the end.
func (d *yamlDoc) line(n int) int {
	if n-1 < len(d.lines) {
		return d.lines[n-1]
	}
	return len(d.text)
}

// offset is where a node starts.
func (d *yamlDoc) offset(n *yaml.Node) int {
	at := d.line(n.Line)
	if at == 0 && bytes.HasPrefix(d.text, []byte(bom)) {
		at = len(bom)
	}
	for i := 1; i < n.Column && at < len(d.text); i++ {
		_, size := utf8.DecodeRune(d.text[at:])
		at += size
	}
	return at
}

// child returns the key and value of a name in a mapping, nil for none.
func child(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind == yaml.ScalarNode && k.Value == name {
			return k, n.Content[i+1]
		}
	}
	return nil, nil
}

// isNothing reports whether a value is not there at all, as in "key:".
func isNothing(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == "" && n.Anchor == "" && n.Style&yaml.TaggedStyle == 0
}

func isFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// yamlKind names what a node is.
func yamlKind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.AliasNode:
		return "an alias"
	case yaml.DocumentNode, yaml.ScalarNode:
	}
	return strconv.Quote(clip([]byte(n.Value)))
}

// same compares two trees by content, without the entry at root.in.name.
func same(a, b *yaml.Node, c change) bool {
	return yamlFlat(a, c, 0) == yamlFlat(b, c, 0)
}

// yamlFlat writes a tree without places, comments and styles. Depth is that
// below the root: the entry is left out, and its list where that leaves it
// empty.
func yamlFlat(n *yaml.Node, c change, depth int) string {
	if n == nil || depth == 0 && isNothing(n) {
		return yamlFlat(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, c, depth)
	}
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(n.Kind)) + n.Tag + "&" + n.Anchor)
	if n.Kind == yaml.AliasNode {
		return b.String() + "*" + n.Value
	}
	b.WriteString(strconv.Quote(n.Value) + "(")
	for i, m := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && depth < 2 {
			name := []string{c.in, c.name}[depth]
			value := n.Content[i+1]
			if m.Value == name && (depth == 1 || isNothing(value) || listEmpty(value, c.name)) {
				continue
			}
		}
		if n.Kind == yaml.MappingNode && i%2 == 1 && depth < 2 {
			name := []string{c.in, c.name}[depth]
			if key := n.Content[i-1]; key.Value == name {
				if depth == 1 || isNothing(m) || listEmpty(m, c.name) {
					continue
				}
				b.WriteString(yamlFlat(m, c, depth+1) + ",")
				continue
			}
		}
		b.WriteString(yamlFlat(m, c, 2) + ",")
	}
	return b.String() + ")"
}

// listEmpty reports whether a mapping has nothing but the entry.
func listEmpty(n *yaml.Node, name string) bool {
	if n.Kind != yaml.MappingNode || n.Anchor != "" {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value != name {
			return false
		}
	}
	return true
}

// flowEnd is where the bracket that opens at an offset is closed, past it; -1
// where that cannot be told.
func flowEnd(text []byte, at int) int {
	depth := 0
	for i := at; i < len(text); i++ {
		switch c := text[i]; c {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '\'', '"':
			if prev := bytes.TrimRight(text[:i], " \t\r\n"); len(prev) > 0 && strings.IndexByte("{[,:", prev[len(prev)-1]) < 0 {
				continue // inside a plain scalar
			}
			end := quotedEnd(text, i)
			if end < 0 {
				return -1
			}
			i = end - 1
		case '#':
			if isBlank(text[i-1]) {
				return -1 // a comment: leave it to a person
			}
		}
	}
	return -1
}

// quotedEnd is the end of a quoted scalar, -1 for none.
func quotedEnd(text []byte, at int) int {
	q := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && q == '"':
			i++
		case text[i] == q && q == '\'' && i+1 < len(text) && text[i+1] == q:
			i++
		case text[i] == q:
			return i + 1
		}
	}
	return -1
}
