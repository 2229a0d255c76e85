package clientfile

import (
	"bytes"
	"slices"
	"strings"
)

type tomlEditor struct{}

// has reports whether path begins with prefix.
func has(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// exists reports whether anything in the text is at or below a path.
func (d *tomlDoc) exists(path []string) bool {
	return slices.ContainsFunc(d.sections, func(s tomlSection) bool { return has(s.path, path) }) ||
		slices.ContainsFunc(d.keys, func(k tomlKey) bool { return has(k.path, path) })
}

// key finds the key of a path, nil for none.
func (d *tomlDoc) key(path []string) *tomlKey {
	for i := range d.keys {
		if slices.Equal(d.keys[i].path, path) {
			return &d.keys[i]
		}
	}
	return nil
}

func (e tomlEditor) add(text []byte, c change) ([]byte, error) {
	doc, perr := parseTOML(text)
	if perr != nil {
		return nil, perr
	}
	path := []string{c.in, c.name}
	if err := tomlFits(text, doc, path); err != nil {
		return nil, err
	}
	if doc.exists(path) {
		return e.update(text, doc, c)
	}
	if k := doc.key(path[:1]); k != nil {
		return nil, errorAt(text, k.start, "%s is an inline table, which cannot be added to; write it as [%s.…] tables", quoted(c.in), c.in)
	}
	eol := eolOf(text)
	block := tomlBlock(path, c.fields, eol)
	switch {
	case len(text) == 0 || string(text) == bom:
		return apply(text, splice{len(text), len(text), block + eol}), nil
	case text[len(text)-1] == '\n':
		return apply(text, splice{len(text), len(text), eol + block + eol}), nil
	}
	return apply(text, splice{len(text), len(text), eol + eol + block}), nil
}

// tomlFits checks that nothing but tables is at a path and above it.
func tomlFits(text []byte, doc *tomlDoc, path []string) error {
	for i := 1; i <= len(path); i++ {
		for _, s := range doc.sections {
			if s.array && slices.Equal(s.path, path[:i]) {
				return errorAt(text, s.start, "%s is an array of tables, want a table", quoted(path[:i]...))
			}
		}
		if k := doc.key(path[:i]); k != nil && text[k.value] != '{' {
			return errorAt(text, k.start, "%s is %s, want a table", quoted(path[:i]...), clip(text[k.value:k.end]))
		}
	}
	return nil
}

func tomlBlock(path []string, fields Fields, eol string) string {
	lines := []string{"[" + path[0] + "." + path[1] + "]"}
	for _, f := range fields {
		lines = append(lines, f.Name+" = "+tomlLiteral(f.Value))
	}
	return strings.Join(lines, eol)
}

// tomlLiteral writes a value. Fields do not occur: no client with TOML has
// entries with tables in them.
func tomlLiteral(v any) string {
	if list, ok := v.([]string); ok {
		var quoted []string
		for _, s := range list {
			quoted = append(quoted, quote(s))
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return quote(v)
}

// update makes an existing entry hold the fields.
func (tomlEditor) update(text []byte, doc *tomlDoc, c change) ([]byte, error) {
	path := []string{c.in, c.name}
	for _, f := range c.foreign {
		if k := doc.key(append(slices.Clone(path), f)); k != nil {
			return nil, foreignEntry(text, k.start, c, f)
		}
	}
	var list []splice
	var missing Fields
	for _, f := range c.fields {
		k := doc.key(append(slices.Clone(path), f.Name))
		switch {
		case k == nil && doc.exists(append(slices.Clone(path), f.Name)):
			return nil, &Error{Reason: quoted(append(path, f.Name)...) + " is a table, want " + tomlLiteral(f.Value)}
		case k == nil:
			missing = append(missing, f)
		case !tomlEqual(text[k.value:k.end], f.Value):
			list = append(list, splice{k.value, k.end, tomlLiteral(f.Value)})
		}
	}
	slices.SortFunc(list, func(a, b splice) int { return a.from - b.from })
	if len(missing) > 0 {
		at := doc.endOf(text, path)
		if at < 0 {
			return nil, &Error{Reason: quoted(path...) + " has no [" + strings.Join(path, ".") + "] table of its own, so " + quoted(missing[0].Name) + " cannot be added to it"}
		}
		added := ""
		for _, f := range missing {
			added += eolOf(text) + f.Name + " = " + tomlLiteral(f.Value)
		}
		i, _ := slices.BinarySearchFunc(list, at, func(s splice, at int) int { return s.from - at })
		list = slices.Insert(list, i, splice{at, at, added})
	}
	if len(list) == 0 {
		return text, nil
	}
	return apply(text, list...), nil
}

// tomlEqual compares a value as it stands with one of ours.
func tomlEqual(raw []byte, v any) bool {
	if s, ok := v.(string); ok {
		return (raw[0] == '"' || raw[0] == '\'') && tomlString(raw) == s
	}
	return strings.ReplaceAll(string(raw), "_", "") == tomlLiteral(v)
}

// endOf is the end of the last line of a table that has a header, without the
// line end; -1 where it has none.
func (d *tomlDoc) endOf(text []byte, path []string) int {
	for i, s := range d.sections {
		if i == 0 || !slices.Equal(s.path, path) {
			continue
		}
		return lineEnd(text, d.lastOf(i))
	}
	return -1
}

// lastOf is where the last value of a section ends, or its header.
func (d *tomlDoc) lastOf(section int) int {
	end := d.sections[section].end
	for _, k := range d.keys {
		if k.section == section && !k.inline {
			end = k.end
		}
	}
	return end
}

// lineEnd is the end of the line of an offset, before its line end.
func lineEnd(text []byte, at int) int {
	i := bytes.IndexByte(text[at:], '\n')
	if i < 0 {
		return len(text)
	}
	at += i
	if at > 0 && text[at-1] == '\r' {
		at--
	}
	return at
}

func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// nextLine is the start of the line after that of an offset.
func nextLine(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

func (e tomlEditor) remove(text []byte, c change) ([]byte, error) {
	doc, perr := parseTOML(text)
	if perr != nil {
		return nil, perr
	}
	path := []string{c.in, c.name}
	if !doc.exists(path) {
		return text, nil
	}
	var list []splice
	for i, s := range doc.sections {
		if i > 0 && has(s.path, path) {
			list = append(list, splice{lineStart(text, s.start), nextLine(text, doc.lastOf(i)), ""})
		}
	}
	for _, k := range doc.keys {
		own := has(doc.sections[k.section].path, path)
		switch {
		case !has(k.path, path) || own:
		case !k.inline:
			list = append(list, splice{lineStart(text, k.start), nextLine(text, k.end), ""})
		case !doc.inlineOf(k, path):
			return nil, errorAt(text, k.start, "%s stands inside an inline table; take it out by hand", quoted(path...))
		}
	}
	slices.SortFunc(list, func(a, b splice) int { return a.from - b.from })
	for i := range list {
		if string(text[:list[i].from]) == bom || bytes.HasPrefix(text[list[i].from:], []byte(bom)) {
			list[i].from = len(bom)
		}
	}
	for _, before := range tomlBefore(text, list) {
		if again, err := e.add(before, c); err == nil && bytes.Equal(again, text) {
			return before, nil
		}
	}
	return apply(text, closeGap(text, list)...), nil
}

// fields are not needed here: a table is taken out the same whatever it holds.
func (tomlEditor) fields([]byte, string, string) Fields { return nil }

// inlineOf reports whether an inline key belongs to a line key at or below path.
func (d *tomlDoc) inlineOf(k tomlKey, path []string) bool {
	return slices.ContainsFunc(d.keys, func(outer tomlKey) bool {
		return !outer.inline && outer.start < k.start && k.end <= outer.end && has(outer.path, path)
	})
}

// tomlBefore returns the texts that add may have made this text of, where the
// entry is one table at the end.
func tomlBefore(text []byte, list []splice) [][]byte {
	if len(list) != 1 || list[0].to != len(text) {
		return nil
	}
	at, eol := list[0].from, []byte(eolOf(text))
	one := bytes.TrimSuffix(text[:at], eol)
	return [][]byte{text[:at], one, bytes.TrimSuffix(one, eol)}
}

// closeGap joins cuts that only blank lines divide, and takes the blank line
// before a cut as well where one follows or the file ends, the one after it
// where the file begins.
func closeGap(text []byte, list []splice) []splice {
	var out []splice
	for _, s := range list {
		if n := len(out); n > 0 && len(bytes.Trim(text[out[n-1].to:s.from], "\r\n")) == 0 {
			out[n-1].to = s.to
			continue
		}
		out = append(out, s)
	}
	eol := eolOf(text)
	for i, s := range out {
		rest := text[s.to:]
		switch {
		case s.from == 0 && bytes.HasPrefix(rest, []byte(eol)):
			out[i].to += len(eol)
		case bytes.HasSuffix(text[:s.from], []byte(eol+eol)) && (len(rest) == 0 || bytes.HasPrefix(rest, []byte(eol))):
			out[i].from -= len(eol)
		}
	}
	return out
}
