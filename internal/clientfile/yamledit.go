package clientfile

import (
	"bytes"
	"errors"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

type yamlEditor struct{}

// byHand says that a file is written in a way that is not edited.
func byHand(line int, what string) error {
	return &Error{Line: line, Reason: what + "; change it by hand"}
}

func (e yamlEditor) add(text []byte, c change) ([]byte, error) {
	doc, perr := parseYAML(text)
	if perr != nil {
		return nil, perr
	}
	out, err := e.added(doc, c)
	if err != nil {
		return nil, err
	}
	// An edit by lines of a syntax like this one is checked by what it means.
	after, perr := parseYAML(out)
	if perr != nil || !same(doc.root, after.root, c) || !holds(after.root, c) {
		return nil, byHand(0, "the file is written in a way that is not edited without changing other things")
	}
	return out, nil
}

// holds reports whether the entry has the fields.
func holds(root *yaml.Node, c change) bool {
	_, list := child(root, c.in)
	_, entry := child(list, c.name)
	return entry != nil && yamlEqual(entry, c.fields)
}

func (e yamlEditor) added(doc *yamlDoc, c change) ([]byte, error) {
	text, root := doc.text, doc.root
	switch {
	case root == nil || isNothing(root):
		root = &yaml.Node{Kind: yaml.MappingNode}
	case root.Kind != yaml.MappingNode:
		return nil, &Error{Line: root.Line, Reason: "the file is " + yamlKind(root) + ", want a mapping"}
	case isFlow(root):
		return nil, byHand(root.Line, "the file is one value in braces")
	}
	eol := eolOf(text)
	key, list := child(root, c.in)
	if key == nil {
		indent := ""
		if len(root.Content) > 0 {
			indent = strings.Repeat(" ", root.Content[0].Column-1)
		}
		return appendYAML(text, indent+c.in+":"+eol+yamlBlock(c, indent+"  ", "", eol), eol), nil
	}
	if isNothing(list) {
		return doc.below(key, yamlBlock(c, strings.Repeat(" ", key.Column+1), " ", eol)), nil
	}
	if list.Kind != yaml.MappingNode {
		return nil, &Error{Line: list.Line, Reason: quoted(c.in) + " is " + yamlKind(list) + ", want a mapping"}
	}
	if k, entry := child(list, c.name); k != nil {
		return e.update(doc, c, entry)
	}
	if isFlow(list) {
		return doc.intoFlow(list, yamlName(c.name)+": "+yamlFlow(c.fields))
	}
	return doc.below(key, yamlBlock(c, strings.Repeat(" ", list.Content[0].Column-1), "", eol)), nil
}

// appendYAML adds lines at the end; a text without a line end at its end gets
// none.
func appendYAML(text []byte, lines, eol string) []byte {
	if len(text) == 0 || string(text) == bom || text[len(text)-1] == '\n' {
		return apply(text, splice{len(text), len(text), lines + eol})
	}
	return apply(text, splice{len(text), len(text), eol + lines})
}

// below adds lines after the line of a key.
func (d *yamlDoc) below(key *yaml.Node, lines string) []byte {
	eol := eolOf(d.text)
	if key.Line >= len(d.lines) {
		return appendYAML(d.text, lines, eol)
	}
	at := d.line(key.Line + 1)
	return apply(d.text, splice{at, at, lines + eol})
}

// intoFlow adds a member to a mapping in braces.
func (d *yamlDoc) intoFlow(list *yaml.Node, member string) ([]byte, error) {
	start := d.offset(list)
	end := -1
	if start < len(d.text) && d.text[start] == '{' {
		end = flowEnd(d.text, start)
	}
	if end < 0 {
		return nil, byHand(list.Line, "this mapping in braces cannot be followed")
	}
	inner := bytes.TrimRight(d.text[start+1:end-1], " \t\r\n")
	at := start + 1 + len(inner)
	switch {
	case len(inner) == 0:
		return apply(d.text, splice{end - 1, end - 1, member}), nil
	case inner[len(inner)-1] == ',':
		return apply(d.text, splice{at, at, " " + member + ","}), nil
	}
	return apply(d.text, splice{at, at, ", " + member}), nil
}

// yamlBlock writes an entry as lines, without the last line end. mark stands
// at the end of its first line.
func yamlBlock(c change, indent, mark, eol string) string {
	lines := append([]string{indent + yamlName(c.name) + ":" + mark}, yamlLines(c.fields, indent+"  ")...)
	return strings.Join(lines, eol)
}

func yamlLines(fields Fields, indent string) []string {
	var lines []string
	for _, f := range fields {
		if inner, ok := f.Value.(Fields); ok && len(inner) > 0 {
			lines = append(append(lines, indent+yamlName(f.Name)+":"), yamlLines(inner, indent+"  ")...)
			continue
		}
		lines = append(lines, indent+yamlName(f.Name)+": "+yamlFlow(f.Value))
	}
	return lines
}

// yamlPlain are the strings that stand for themselves without quotes.
var yamlPlain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// yamlWord are those among them that YAML reads as something else.
var yamlWord = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)

func yamlName(s string) string {
	if yamlPlain.MatchString(s) && !yamlWord.MatchString(s) {
		return s
	}
	return quote(s)
}

// yamlFlow writes a value on one line.
func yamlFlow(v any) string {
	var list []string
	switch v := v.(type) {
	case string:
		return yamlName(v)
	case []string:
		for _, s := range v {
			list = append(list, yamlName(s))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case Fields:
		for _, f := range v {
			list = append(list, yamlName(f.Name)+": "+yamlFlow(f.Value))
		}
		return "{" + strings.Join(list, ", ") + "}"
	}
	return quote(v)
}

// yamlEqual reports whether a node holds a value; a mapping may hold more.
func yamlEqual(n *yaml.Node, v any) bool {
	switch v := v.(type) {
	case string:
		return n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == v
	case []string:
		if n.Kind != yaml.SequenceNode || len(n.Content) != len(v) {
			return false
		}
		for i := range v {
			if !yamlEqual(n.Content[i], v[i]) {
				return false
			}
		}
		return true
	case Fields:
		for _, f := range v {
			_, value := child(n, f.Name)
			if value == nil || !yamlEqual(value, f.Value) {
				return false
			}
		}
		return n.Kind == yaml.MappingNode
	}
	return n.Kind == yaml.ScalarNode && n.Tag != "!!str" && n.Value == quote(v)
}

// update makes an existing entry hold the fields.
func (yamlEditor) update(doc *yamlDoc, c change, entry *yaml.Node) ([]byte, error) {
	if entry.Kind != yaml.MappingNode {
		return nil, &Error{Line: entry.Line, Reason: quoted(c.in, c.name) + " is " + yamlKind(entry) + ", want a mapping"}
	}
	for _, f := range c.foreign {
		if k, _ := child(entry, f); k != nil {
			return nil, foreignEntry(doc.text, doc.offset(k), c, f)
		}
	}
	text, err := setYAML(doc, []string{c.in, c.name}, c.fields)
	var refused *Error
	if errors.As(err, &refused) {
		refused.Line = entry.Line // its own may be that of a half-changed text
	}
	return text, err
}

// setYAML makes the fields of the mapping at a path hold these values; it
// parses anew after each change.
func setYAML(doc *yamlDoc, path []string, fields Fields) ([]byte, error) {
	for _, f := range fields {
		var key *yaml.Node
		n := doc.root
		for _, name := range path {
			key, n = child(n, name)
		}
		_, value := child(n, f.Name)
		var out []byte
		var err error
		inner, nested := f.Value.(Fields)
		switch {
		case value != nil && yamlEqual(value, f.Value):
			continue
		case isFlow(n):
			return nil, byHand(n.Line, quoted(path...)+" is written in braces")
		case value == nil:
			lines := yamlLines(Fields{f}, strings.Repeat(" ", n.Content[0].Column-1))
			out = doc.below(key, strings.Join(lines, eolOf(doc.text)))
		case nested && value.Kind == yaml.MappingNode:
			out, err = setYAML(doc, append(path[:len(path):len(path)], f.Name), inner)
		case value.Kind == yaml.ScalarNode && !isNothing(value):
			out, err = doc.replace(value, yamlFlow(f.Value))
		default:
			err = byHand(value.Line, quoted(append(path[:len(path):len(path)], f.Name)...)+" is "+yamlKind(value))
		}
		if err != nil {
			return nil, err
		}
		var perr *Error
		if doc, perr = parseYAML(out); perr != nil {
			return nil, byHand(0, quoted(path...)+" is written in a way that is not edited")
		}
	}
	return doc.text, nil
}

// replace writes another value in the place of a scalar of one line.
func (d *yamlDoc) replace(n *yaml.Node, value string) ([]byte, error) {
	start := d.offset(n)
	end := lineEnd(d.text, start)
	switch {
	case start < len(d.text) && (d.text[start] == '"' || d.text[start] == '\''):
		end = quotedEnd(d.text, start)
	case n.Style != 0:
		end = -1
	default:
		if i := bytes.Index(d.text[start:end], []byte(" #")); i >= 0 {
			end = start + i
		}
		end = start + len(bytes.TrimRight(d.text[start:end], " \t"))
	}
	if end < start {
		return nil, byHand(n.Line, "this value is written in a way that is not edited")
	}
	return apply(d.text, splice{start, end, value}), nil
}

func (e yamlEditor) remove(text []byte, c change) ([]byte, error) {
	doc, perr := parseYAML(text)
	if perr != nil {
		return nil, perr
	}
	listKey, list := child(doc.root, c.in)
	key, entry := child(list, c.name)
	if key == nil {
		return text, nil
	}
	candidates, least := doc.cutBlock(listKey, list, key)
	if isFlow(list) {
		candidates, least = doc.cutFlow(list, key, entry)
	}
	for _, before := range candidates {
		if again, err := e.add(before, c); err == nil && bytes.Equal(again, text) {
			return before, nil
		}
	}
	after, perr := parseYAML(least)
	if perr != nil || !same(doc.root, after.root, c) {
		return nil, byHand(key.Line, quoted(c.in, c.name)+" is written in a way that is not edited")
	}
	if k, _ := child(after.root, c.in); k == nil {
		return least, nil
	} else if _, v := child(after.root, c.in); isNothing(v) { // nothing is no list for a client
		at := after.offset(k) + len(c.in)
		if fixed := apply(least, splice{at + 1, at + 1, " {}"}); least[at] == ':' {
			return fixed, nil
		}
	}
	return least, nil
}

// fields are those of an entry as it stands, nil where there is none or it has
// other values than ours have.
func (yamlEditor) fields(text []byte, in, name string) Fields {
	doc, err := parseYAML(text)
	if err != nil {
		return nil
	}
	_, list := child(doc.root, in)
	_, entry := child(list, name)
	if entry == nil {
		return nil
	}
	f, _ := yamlOurs(entry).(Fields)
	return f
}

// yamlOurs is a value in the types of Field, nil where it has none.
func yamlOurs(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		f := Fields{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			v := yamlOurs(n.Content[i+1])
			if v == nil {
				return nil
			}
			f = append(f, Field{n.Content[i].Value, v})
		}
		return f
	case yaml.SequenceNode:
		list := []string{}
		for _, m := range n.Content {
			list = append(list, m.Value)
		}
		return list
	case yaml.ScalarNode:
		var v any
		if n.Decode(&v) == nil {
			return v
		}
	case yaml.AliasNode, yaml.DocumentNode:
	}
	return nil
}

// cutBlock returns the texts that may have been before an entry of lines was
// added, and the one without just those lines.
func (d *yamlDoc) cutBlock(listKey, list, key *yaml.Node) (candidates [][]byte, least []byte) {
	eol := []byte(eolOf(d.text))
	start := d.line(key.Line)
	end := d.blockEnd(key)
	least = apply(d.text, splice{start, end, ""})
	candidates = [][]byte{least}
	if len(list.Content) > 2 {
		return candidates, least
	}
	head := d.line(listKey.Line)
	if head == 0 && bytes.HasPrefix(d.text, []byte(bom)) {
		head = len(bom)
	}
	whole := apply(d.text, splice{head, end, ""})
	return append(candidates, bytes.TrimSuffix(least, eol), whole, bytes.TrimSuffix(whole, eol)), least
}

// blockEnd is where the lines of a key and its value end.
func (d *yamlDoc) blockEnd(key *yaml.Node) int {
	last := key.Line
	for n := key.Line + 1; n <= len(d.lines); n++ {
		text := strings.TrimRight(string(d.text[d.line(n):d.line(n+1)]), " \t\r\n")
		if text == "" {
			continue
		}
		if len(text)-len(strings.TrimLeft(text, " ")) < key.Column {
			break
		}
		last = n
	}
	return d.line(last + 1)
}

// cutFlow is cutBlock for a mapping in braces.
func (d *yamlDoc) cutFlow(list, key, entry *yaml.Node) (candidates [][]byte, least []byte) {
	start, end := d.offset(key), flowEnd(d.text, d.offset(entry))
	if end < 0 {
		return nil, d.text
	}
	if len(list.Content) == 2 {
		least = apply(d.text, splice{start, end, ""})
		return [][]byte{least}, least
	}
	before := bytes.TrimRight(d.text[:start], " \t\r\n")
	if n := len(before); n > 0 && before[n-1] == ',' {
		least = apply(d.text, splice{n - 1, end, ""})
		return [][]byte{least, apply(d.text, splice{n, min(end+1, len(d.text)), ""})}, least
	}
	rest := d.text[end:]
	skip := len(rest) - len(bytes.TrimLeft(rest, ", \t"))
	return nil, apply(d.text, splice{start, end + skip, ""})
}
