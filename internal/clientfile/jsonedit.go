package clientfile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

type jsonEditor struct{}

func (jsonEditor) add(text []byte, c change) ([]byte, error) {
	top, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	var value any = Fields{{c.name, c.fields}}
	if c.item {
		value = []Fields{c.fields}
	}
	if top == nil {
		return newJSON(text, Fields{{c.in, value}}), nil
	}
	if err := want(text, top, '{', "the file"); err != nil {
		return nil, err
	}
	i := top.member(c.in)
	if i < 0 {
		return insert(text, top, top, c.in, value), nil
	}
	list := top.items[i].value
	if c.item {
		if err := want(text, list, '[', quoted(c.in)); err != nil {
			return nil, err
		}
		if list.element(text, c.name) >= 0 {
			return text, nil
		}
		return insert(text, top, list, "", c.fields), nil
	}
	if err := want(text, list, '{', quoted(c.in)); err != nil {
		return nil, err
	}
	i = list.member(c.name)
	if i < 0 {
		return insert(text, top, list, c.name, c.fields), nil
	}
	entry := list.items[i].value
	if err := want(text, entry, '{', quoted(c.in, c.name)); err != nil {
		return nil, err
	}
	for _, f := range c.foreign {
		if k := entry.member(f); k >= 0 {
			return nil, foreignEntry(text, entry.items[k].start, c, f)
		}
	}
	return setFields(text, []string{c.in, c.name}, c.fields)
}

// foreignEntry says that the name is taken by another kind of server.
func foreignEntry(text []byte, at int, c change, field string) error {
	return errorAt(text, at, "%s is another kind of server (it has %q); take it out, or choose another name", quoted(c.in, c.name), field)
}

func quoted(path ...string) string { return `"` + strings.Join(path, ".") + `"` }

// want checks what kind of value a node is.
func want(text []byte, n *jsonNode, kind byte, what string) error {
	if n.kind == kind {
		return nil
	}
	names := map[byte]string{'{': "an object", '[': "an array", '"': "a string", 0: clip(text[n.start:n.end])}
	return errorAt(text, n.start, "%s is %s, want %s", what, names[n.kind], names[kind])
}

// element finds the object with an id in an array, -1 for none.
func (n *jsonNode) element(text []byte, id string) int {
	for i, it := range n.items {
		if it.value.kind != '{' {
			continue
		}
		if k := it.value.member("id"); k >= 0 {
			if v, err := it.value.items[k].value.decode(text); err == nil && v == id {
				return i
			}
		}
	}
	return -1
}

// setFields makes the fields of an existing object hold these values. It
// parses anew after each change.
func setFields(text []byte, path []string, fields Fields) ([]byte, error) {
	for _, f := range fields {
		top, err := parseJSON(text)
		if err != nil {
			return nil, err
		}
		n := top
		for _, name := range path {
			n = n.items[n.member(name)].value
		}
		i := n.member(f.Name)
		if i < 0 {
			text = insert(text, top, n, f.Name, f.Value)
			continue
		}
		old := n.items[i].value
		if inner, ok := f.Value.(Fields); ok && old.kind == '{' {
			var err error
			if text, err = setFields(text, append(path[:len(path):len(path)], f.Name), inner); err != nil {
				return nil, err
			}
			continue
		}
		if v, err := old.decode(text); err == nil && reflect.DeepEqual(v, plain(f.Value)) {
			continue
		}
		l := layoutOf(text, top, n)
		text = apply(text, splice{old.start, old.end, l.value(f.Value, l.inner)})
	}
	return text, nil
}

// plain is a value as encoding/json decodes it.
func plain(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case []string:
		list := []any{}
		for _, s := range v {
			list = append(list, s)
		}
		return list
	case Fields:
		m := map[string]any{}
		for _, f := range v {
			m[f.Name] = plain(f.Value)
		}
		return m
	}
	return v
}

// layout is how a container is written.
type layout struct {
	eol, unit    string
	outer, inner string // indentation of the container's line, of its items
	lines        bool   // an item a line
	colon, comma string
}

func layoutOf(text []byte, top, n *jsonNode) layout {
	l := layout{eol: eolOf(text), unit: "  ", outer: indentOf(text, n.start), colon: ": ", comma: ", "}
	l.lines = bytes.IndexByte(text[n.start:n.end], '\n') >= 0 || len(n.items) == 0 && (n == top || bytes.IndexByte(text, '\n') >= 0)
	if len(top.items) > 0 && firstOnLine(text, top.items[0].start) {
		if in := indentOf(text, top.items[0].start); in != "" {
			l.unit = in
		}
	}
	l.inner = l.outer + l.unit
	for _, it := range n.items {
		if firstOnLine(text, it.start) {
			l.inner = indentOf(text, it.start)
			if u, ok := strings.CutPrefix(l.inner, l.outer); ok && u != "" {
				l.unit = u
			}
			break
		}
	}
	if !l.lines && !bytes.Contains(text, []byte(`": `)) {
		l.colon, l.comma = ":", ","
	}
	return l
}

// value writes a value whose line has this indentation.
func (l layout) value(v any, indent string) string {
	switch v := v.(type) {
	case Fields:
		var list []string
		for _, f := range v {
			list = append(list, quote(f.Name)+l.colon+l.value(f.Value, indent+l.unit))
		}
		return l.list("{", list, "}", indent)
	case []Fields:
		var list []string
		for _, f := range v {
			list = append(list, l.value(f, indent+l.unit))
		}
		return l.list("[", list, "]", indent)
	case []string:
		var list []string
		for _, s := range v {
			list = append(list, quote(s))
		}
		return "[" + strings.Join(list, l.comma) + "]"
	}
	return quote(v)
}

func (l layout) list(open string, items []string, end, indent string) string {
	if !l.lines {
		return open + strings.Join(items, l.comma) + end
	}
	in := l.eol + indent + l.unit
	return open + in + strings.Join(items, ","+in) + l.eol + indent + end
}

// quote writes a string, number or bool without escaping for HTML.
func quote(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// newJSON appends a document to a text that has only blanks and comments. A
// text that ends in a comment has no line end, and gets none.
func newJSON(text []byte, f Fields) []byte {
	l := layout{eol: eolOf(text), unit: "  ", lines: true, colon: ": ", comma: ", "}
	s := jsonScanner{text: text}
	s.skipBOM()
	doc := l.value(f, "")
	if comment, err := s.trivia(); err == nil && comment == len(text) {
		return apply(text, splice{len(text), len(text), l.eol + doc})
	}
	return apply(text, splice{len(text), len(text), doc + l.eol})
}

// insert adds an item at the end of a container; name is "" in an array.
//
// Where the container was empty a blank marks that it was there before: a
// space after what it held, or a tab where that ended with a line end. So
// remove can tell what to leave.
func insert(text []byte, top, n *jsonNode, name string, value any) []byte {
	l := layoutOf(text, top, n)
	item := l.value(value, l.inner)
	if n.kind == '{' {
		item = quote(name) + l.colon + item
	}
	end := n.end - 1
	rest := text[n.tail:end] // blanks
	if k := len(n.items); k > 0 {
		gap := l.eol + l.inner
		if !l.lines {
			gap = strings.TrimPrefix(l.comma, ",")
		}
		last := n.items[k-1]
		if last.comma >= 0 {
			return apply(text, splice{n.tail, n.tail, gap + item + ","})
		}
		return apply(text, splice{last.value.end, last.value.end, ","}, splice{n.tail, n.tail, gap + item})
	}
	switch {
	case !l.lines:
		return apply(text, splice{end, end, " " + item})
	case bytes.IndexByte(rest, '\n') >= 0:
		return apply(text, splice{n.tail, n.tail, "\t" + l.eol + l.inner + item})
	}
	return apply(text, splice{end, end, " " + l.eol + l.inner + item + l.eol + l.outer})
}

func (e jsonEditor) remove(text []byte, c change) ([]byte, error) {
	for {
		next, err := e.removeOne(text, c)
		if err != nil || next == nil {
			return text, err
		}
		text = next
	}
}

// removeOne takes the last item of a name out, nil when there is none. Of the
// texts that could have been before, it returns the one that add makes this
// text of; if none, the least change.
func (e jsonEditor) removeOne(text []byte, c change) ([]byte, error) {
	top, perr := parseJSON(text)
	if perr != nil {
		return nil, perr
	}
	if top == nil || top.kind != '{' {
		return nil, nil
	}
	k := top.member(c.in)
	if k < 0 {
		return nil, nil
	}
	list := top.items[k].value
	i := -1
	switch {
	case list.kind == '[' && c.item:
		if i = list.element(text, c.name); i >= 0 {
			if v, err := list.items[i].value.decode(text); err != nil || !reflect.DeepEqual(v, plain(c.fields)) {
				return nil, nil //nolint:nilerr // the user's own of that id
			}
		}
	case list.kind == '{' && !c.item:
		i = list.member(c.name)
	}
	if i < 0 {
		return nil, nil
	}
	var candidates [][]byte
	if len(list.items) == 1 {
		if len(top.items) == 1 {
			candidates = append(candidates, text[:top.start], bytes.TrimSuffix(text[:top.start], []byte(eolOf(text))))
		}
		candidates = append(candidates, cut(text, top, k)...)
	}
	own := cut(text, list, i)
	for _, before := range append(candidates, own...) {
		if again, err := e.add(before, c); err == nil && bytes.Equal(again, text) {
			return before, nil
		}
	}
	return own[len(own)-1], nil
}

// fields are those of an entry as it stands, nil where there is none or it has
// other values than ours have.
func (jsonEditor) fields(text []byte, in, name string) Fields {
	n, err := parseJSON(text)
	if err != nil {
		return nil
	}
	for _, key := range []string{in, name} {
		if n == nil || n.kind != '{' || n.member(key) < 0 {
			return nil
		}
		n = n.items[n.member(key)].value
	}
	f, _ := n.ours(text).(Fields)
	return f
}

// ours is a value in the types of Field, nil where it has none.
func (n *jsonNode) ours(text []byte) any {
	switch n.kind {
	case '{':
		f := Fields{}
		for _, it := range n.items {
			v := it.value.ours(text)
			if v == nil {
				return nil
			}
			f = append(f, Field{it.name, v})
		}
		return f
	case '[':
		list := []string{}
		for _, it := range n.items {
			s, ok := it.value.ours(text).(string)
			if !ok {
				return nil
			}
			list = append(list, s)
		}
		return list
	}
	v, err := n.decode(text)
	if f, ok := v.(float64); ok && err == nil && f == float64(int(f)) {
		return int(f)
	}
	return v
}

// cut returns the texts that can be left when an item is taken out of a
// container, the last being the least change.
func cut(text []byte, n *jsonNode, i int) [][]byte {
	it := n.items[i]
	start := it.start
	for start > n.start+1 && isBlank(text[start-1]) {
		start--
	}
	end := it.value.end
	if it.comma >= 0 {
		end = it.comma + 1
	}
	if len(n.items) > 1 {
		if i == len(n.items)-1 && it.comma < 0 {
			prev := n.items[i-1].comma
			return [][]byte{apply(text, splice{prev, prev + 1, ""}, splice{start, end, ""})}
		}
		return [][]byte{apply(text, splice{start, end, ""})}
	}
	inner := n.end - 1
	mark := it.start - 1
	if nl := bytes.LastIndexByte(text[start:it.start], '\n'); nl >= 0 {
		mark = start + nl - len(eolOf(text))
	}
	least := apply(text, splice{start, end, ""})
	if len(bytes.TrimLeft(text[end:inner], " \t\r\n")) == 0 {
		least = apply(text, splice{start, inner, ""})
	}
	if mark < start {
		return [][]byte{least}
	}
	return [][]byte{apply(text, splice{mark, end, ""}), apply(text, splice{mark, inner, ""}), least}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
