package clientfile

import (
	"bytes"
	"fmt"
	"strings"
)

// Format is the syntax of a client's file.
type Format int

// The formats.
const (
	JSON Format = iota + 1 // with comments and trailing commas, as several clients take it
	TOML
	YAML
)

// Field is one member of an entry. Value is a string, an int, a bool, a
// []string or Fields.
type Field struct {
	Name  string
	Value any
}

// Fields are members in the order in which they are written.
type Fields []Field

// Entry is one server as a client's file has it.
type Entry struct {
	// In is the name of the top-level list that holds the servers.
	In string
	// Name is the server's name in it.
	Name   string
	Fields Fields
	// Foreign are fields that only another kind of server has: an entry with
	// one of them is not ours to change.
	Foreign []string
	// Inputs go into the top-level array of this name, found again by their
	// field "id" (JSON only).
	Inputs Inputs
}

// Inputs are values that a client asks its user for, once.
type Inputs struct {
	In    string
	Items []Fields
}

// Limits of what is edited.
const (
	maxBytes = 64 << 20 // of a file
	maxDepth = 500      // of nesting
)

// Error says why a file cannot be edited. The file has not been changed.
type Error struct {
	// Line and Column count from 1, the column in bytes; 0 where they are not
	// known.
	Line, Column int
	Reason       string
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return e.Reason
	case e.Column == 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// errorAt is an Error at a byte offset.
func errorAt(text []byte, offset int, format string, args ...any) *Error {
	before := text[:min(offset, len(text))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	return &Error{Line: line, Column: len(before) - bytes.LastIndexByte(before, '\n'), Reason: fmt.Sprintf(format, args...)}
}

// editor makes one change of a file, in one format. Both methods return the
// text itself when there is nothing to do.
type editor interface {
	add(text []byte, c change) ([]byte, error)
	remove(text []byte, c change) ([]byte, error)
	fields(text []byte, in, name string) Fields
}

// change is one member that is added to, or taken from, a top-level list.
type change struct {
	in      string
	name    string
	fields  Fields
	foreign []string
	item    bool // an element of an array, name being its id
}

func editorOf(f Format) editor {
	switch f {
	case TOML:
		return tomlEditor{}
	case YAML:
		return yamlEditor{}
	case JSON:
	}
	return jsonEditor{}
}

// changes are those that make an entry, in the order of adding.
func (e Entry) changes() []change {
	list := []change{{in: e.In, name: e.Name, fields: e.Fields, foreign: e.Foreign}}
	for _, f := range e.Inputs.Items {
		id, _ := f.get("id").(string)
		list = append(list, change{in: e.Inputs.In, name: id, fields: f, item: true})
	}
	return list
}

func (f Fields) get(name string) any {
	for _, m := range f {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Add returns the file with the entry in it. Fields that an entry of that
// name has besides stay; it returns the file itself when nothing is missing.
// Errors are *Error.
func Add(f Format, file []byte, e Entry) ([]byte, error) {
	if err := tooLarge(file); err != nil {
		return nil, err
	}
	var err error
	for _, c := range e.changes() {
		if file, err = editorOf(f).add(file, c); err != nil {
			return nil, err
		}
	}
	return file, nil
}

// Remove returns the file without the entry, whatever its fields are now, and
// without a list that Add made for it. Inputs go where they are as Add made
// them and nothing else in the file asks for them. It returns the file itself
// when the entry is not in it. Errors are *Error.
func Remove(f Format, file []byte, e Entry) ([]byte, error) {
	if err := tooLarge(file); err != nil {
		return nil, err
	}
	if f := editorOf(f).fields(file, e.In, e.Name); f != nil {
		e.Fields = f
	}
	list := e.changes()
	for i := len(list) - 1; i >= 0; i-- {
		c := list[i]
		if c.item && bytes.Count(file, []byte("${input:"+c.name+"}")) > inputUses(e, c.name) {
			continue
		}
		var err error
		if file, err = editorOf(f).remove(file, c); err != nil {
			return nil, err
		}
	}
	return file, nil
}

// inputUses counts how often an entry names an input.
func inputUses(e Entry, id string) int {
	return strings.Count(string(Block(JSON, Entry{In: e.In, Name: e.Name, Fields: e.Fields})), "${input:"+id+"}")
}

// Block is the file that has the entry and nothing else: what to paste.
func Block(f Format, e Entry) []byte {
	b, err := Add(f, nil, e)
	if err != nil { // an empty file can always be added to
		return nil
	}
	return b
}

func tooLarge(file []byte) error {
	if len(file) > maxBytes {
		return &Error{Reason: fmt.Sprintf("the file has %d bytes, more than the %d that are edited", len(file), maxBytes)}
	}
	return nil
}

// splice is one replacement of text[from:to].
type splice struct {
	from, to int
	text     string
}

// apply makes replacements, which are in order and do not overlap.
func apply(text []byte, list ...splice) []byte {
	var out []byte
	at := 0
	for _, s := range list {
		out = append(out, text[at:s.from]...)
		out = append(out, s.text...)
		at = s.to
	}
	return append(out, text[at:]...)
}

// eolOf is the line end of a text, that of its first line.
func eolOf(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// indentOf is the white space that begins the line of an offset.
func indentOf(text []byte, offset int) string {
	start := bytes.LastIndexByte(text[:offset], '\n') + 1
	end := start
	for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
		end++
	}
	return string(text[start:end])
}

// firstOnLine reports whether only white space is before an offset on its line.
func firstOnLine(text []byte, offset int) bool {
	start := bytes.LastIndexByte(text[:offset], '\n') + 1
	return start > 0 && len(bytes.Trim(text[start:offset], " \t")) == 0
}

const bom = "\ufeff"
