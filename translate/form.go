package translate

import (
	"encoding/json"
	"strconv"
)

// form is a flat elicitation form (MCP 2026-07-28, elicitation): primitive
// fields only. It is rebuilt from the agent's schema, so that nothing but what
// the specification allows reaches a client, with cleaned words, in the
// agent's order.
type form struct {
	fields   []field
	required []string
}

// field is one property. Raw values are as the agent wrote them.
type field struct {
	name, kind         string // kind: string, number, integer, boolean, array
	title, description string
	limits             []member // minLength, maximum, format, …
	def                json.RawMessage
	options            []option
	style              optionStyle
}

type option struct{ value, title string }

// optionStyle is how the agent wrote the choices; clients know all of these,
// and each keeps its own.
type optionStyle uint8

const (
	noOptions  optionStyle = iota
	enumOnly               // enum
	enumNames              // enum with enumNames
	constTitle             // oneOf (one) or items.anyOf (several) of {const, title}
)

const (
	maxFields  = 50
	maxOptions = 500
	labelSize  = 300 // characters of a title or description
)

// formFromSchema reads the agent's schema; problem says in a few words why it
// is no flat form of primitives.
func formFromSchema(raw json.RawMessage) (f form, problem string) {
	root, ok := orderedObject(raw)
	if !ok {
		return f, "the schema is not an object"
	}
	var props []member
	var required json.RawMessage
	for _, m := range root {
		switch m.name {
		case "type":
			if jsonText(m.value) != "object" {
				return f, "the schema's type is not object"
			}
		case "properties":
			if props, ok = orderedObject(m.value); !ok {
				return f, "properties is not an object"
			}
		case "required":
			required = m.value
		case "$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties":
			return f, "the schema uses " + m.name
		}
	}
	if len(props) == 0 {
		return f, "the schema has no properties"
	}
	if len(props) > maxFields {
		return f, "the schema has more than " + strconv.Itoa(maxFields) + " properties"
	}
	for _, p := range props {
		fd, problem := fieldFromSchema(p)
		if problem != "" {
			return f, "property " + quoteName(p.name) + ": " + problem
		}
		f.fields = append(f.fields, fd)
	}
	return f, f.readRequired(required)
}

func (f *form) readRequired(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	if json.Unmarshal(raw, &f.required) != nil {
		return "required is not a list of names"
	}
	for _, name := range f.required {
		known := false
		for i := range f.fields {
			known = known || f.fields[i].name == name
		}
		if !known {
			return "required names the unknown property " + quoteName(name)
		}
	}
	return ""
}

func fieldFromSchema(p member) (fd field, problem string) {
	members, ok := orderedObject(p.value)
	if !ok {
		return fd, "is not an object"
	}
	at := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		at[m.name] = m.value
	}
	fd.name = p.name
	fd.kind = jsonText(at["type"])
	if fd.kind == "" && at["type"] == nil && (at["enum"] != nil || at["oneOf"] != nil) {
		fd.kind = "string"
	}
	fd.title = oneLine(jsonText(at["title"]), labelSize)
	fd.description = oneLine(jsonText(at["description"]), labelSize)
	if problem = fd.readKind(at); problem != "" {
		return fd, problem
	}
	fd.readDefault(at["default"])
	return fd, ""
}

// readKind reads what belongs to the field's type.
func (fd *field) readKind(at map[string]json.RawMessage) (problem string) {
	switch fd.kind {
	case "string":
		problem = fd.readChoices(at["enum"], at["enumNames"], at["oneOf"])
		if fd.style == noOptions {
			fd.readLimits(at, "minLength", "maxLength")
			if f := jsonText(at["format"]); f == "email" || f == "uri" || f == "date" || f == "date-time" {
				fd.limits = append(fd.limits, member{"format", at["format"]})
			}
		}
		return problem
	case "number", "integer":
		fd.readLimits(at, "minimum", "maximum")
		return ""
	case "boolean":
		return ""
	case "array":
		return fd.readItems(at)
	case "":
		return "has no type"
	}
	return "type " + quoteName(fd.kind) + " is not a primitive"
}

// readItems reads a multiple choice, the only array that a form may have.
func (fd *field) readItems(at map[string]json.RawMessage) (problem string) {
	items, _ := orderedObject(at["items"])
	in := make(map[string]json.RawMessage, len(items))
	for _, m := range items {
		in[m.name] = m.value
	}
	if problem = fd.readChoices(in["enum"], nil, in["anyOf"]); problem != "" {
		return problem
	}
	if fd.style == noOptions {
		return "an array without a list of choices"
	}
	fd.readLimits(at, "minItems", "maxItems")
	return ""
}

func (fd *field) readLimits(at map[string]json.RawMessage, names ...string) {
	for _, n := range names {
		v := at[n]
		if len(v) == 0 || v[0] != '-' && !isDigit(v[0]) {
			continue
		}
		_, err := strconv.ParseUint(string(v), 10, 32)
		if err == nil || n == "minimum" || n == "maximum" {
			fd.limits = append(fd.limits, member{n, v})
		}
	}
}

// readDefault keeps a default of the field's own type, and drops any other.
func (fd *field) readDefault(raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	ok := false
	switch fd.kind {
	case "string":
		ok = raw[0] == '"' && (fd.style == noOptions || fd.has(jsonText(raw)))
	case "boolean":
		ok = string(raw) == "true" || string(raw) == "false"
	case "number":
		ok = raw[0] == '-' || isDigit(raw[0])
	case "integer":
		_, err := strconv.ParseInt(string(raw), 10, 64)
		ok = err == nil
	case "array":
		var list []string
		ok = raw[0] == '[' && json.Unmarshal(raw, &list) == nil
		for _, s := range list {
			ok = ok && fd.has(s)
		}
	}
	if ok {
		fd.def = raw
	}
}

func (fd *field) has(value string) bool {
	for _, o := range fd.options {
		if o.value == value {
			return true
		}
	}
	return false
}

func (fd *field) readChoices(enum, names, titled json.RawMessage) string {
	switch {
	case titled != nil:
		var list []struct {
			Const *string `json:"const"`
			Title string  `json:"title"`
		}
		if json.Unmarshal(titled, &list) != nil || len(list) == 0 || len(list) > maxOptions {
			return "the choices are not a list of {const, title}"
		}
		for _, e := range list {
			if e.Const == nil {
				return "a choice has no const string"
			}
			fd.options = append(fd.options, option{*e.Const, or(oneLine(e.Title, labelSize), *e.Const)})
		}
		fd.style = constTitle
	case enum != nil:
		var values, labels []string
		if json.Unmarshal(enum, &values) != nil || len(values) == 0 || len(values) > maxOptions {
			return "enum is not a list of strings"
		}
		fd.style = enumOnly
		if names != nil && json.Unmarshal(names, &labels) == nil && len(labels) == len(values) {
			fd.style = enumNames
		}
		for i, v := range values {
			o := option{value: v}
			if fd.style == enumNames {
				o.title = oneLine(labels[i], labelSize)
			}
			fd.options = append(fd.options, o)
		}
	}
	return ""
}

// schema encodes the form for a revision; nil where the revision has no way to
// ask it (2025-06-18 knows no multiple choice).
func (f *form) schema(rev Revision) json.RawMessage {
	o := newObject(nil)
	o.str("type", "object")
	o.key("properties")
	props := newObject(o.dst)
	for i := range f.fields {
		fd := &f.fields[i]
		if rev < Rev20251125 && fd.kind == "array" {
			return nil
		}
		props.keyString(fd.name)
		props.dst = fd.append(props.dst, rev)
	}
	o.dst = props.end()
	if len(f.required) > 0 {
		o.key("required")
		o.dst = appendStrings(o.dst, f.required)
	}
	return o.end()
}

func (fd *field) append(dst []byte, rev Revision) []byte {
	o := newObject(dst)
	o.str("type", fd.kind)
	o.str("title", withoutLinks(fd.title))
	o.str("description", withoutLinks(fd.description))
	for _, l := range fd.limits {
		o.raw(l.name, l.value)
	}
	if fd.style != noOptions {
		fd.appendOptions(&o, rev)
	}
	if fd.def != nil && (rev >= Rev20251125 || fd.kind == "boolean") {
		o.raw("default", fd.def)
	}
	return o.end()
}

func (fd *field) appendOptions(o *object, rev Revision) {
	style := fd.style
	if style == constTitle && rev < Rev20251125 {
		style = enumNames
	}
	if fd.kind != "array" {
		fd.appendChoices(o, style, "oneOf")
		return
	}
	o.key("items")
	items := newObject(o.dst)
	if style == enumOnly {
		items.str("type", "string")
	}
	fd.appendChoices(&items, style, "anyOf")
	o.dst = items.end()
}

// appendChoices writes the choices in their style; titled names the keyword
// of a list of {const, title}.
func (fd *field) appendChoices(o *object, style optionStyle, titled string) {
	if style == constTitle {
		o.key(titled)
		o.dst = append(o.dst, '[')
		for i, op := range fd.options {
			if i > 0 {
				o.dst = append(o.dst, ',')
			}
			e := newObject(o.dst)
			e.key("const")
			e.dst = AppendString(e.dst, op.value)
			e.key("title")
			e.dst = AppendString(e.dst, op.title)
			o.dst = e.end()
		}
		o.dst = append(o.dst, ']')
		return
	}
	values := make([]string, len(fd.options))
	titles := make([]string, len(fd.options))
	for i, op := range fd.options {
		values[i], titles[i] = op.value, op.title
	}
	o.key("enum")
	o.dst = appendStrings(o.dst, values)
	if style == enumNames {
		o.key("enumNames")
		o.dst = appendStrings(o.dst, titles)
	}
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}
