package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const (
	// maxProblems bounds how many problems one answer about arguments names.
	maxProblems = 5
	// maxItems bounds a list in the arguments of a tool of the gateway's own:
	// files, tags. Each item may be complained of by itself.
	maxItems = 10_000
)

// arguments is a tool call's arguments object.
type arguments struct {
	// raw is the object as sent, {} when the call had none.
	raw json.RawMessage
	// fields has each argument byte for byte.
	fields map[string]json.RawMessage
	// value is raw decoded with exact numbers, for validation. An argument
	// that may be anything and can be large is null in it.
	value map[string]any
}

// argumentsFromRaw decodes raw. An absent object and null count as {}; any
// other JSON is an error, which is the caller's own malformed request. opaque
// are arguments for which every JSON value is good.
func argumentsFromRaw(raw json.RawMessage, opaque ...string) (arguments, error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		trimmed = []byte("{}")
	}
	a := arguments{raw: trimmed}
	if trimmed[0] != '{' {
		return a, fmt.Errorf("arguments must be a JSON object, not %s", jsonKind(trimmed))
	}
	if err := json.Unmarshal(trimmed, &a.fields); err != nil {
		return a, errors.New("arguments are not valid JSON")
	}
	a.value = make(map[string]any, len(a.fields))
	for name, field := range a.fields {
		if contains(opaque, name) {
			a.value[name] = nil
			continue
		}
		v, err := valueFromRaw(field)
		if err != nil {
			return a, errors.New("arguments are not valid JSON")
		}
		a.value[name] = v
	}
	return a, nil
}

// valueFromRaw decodes one valid JSON value, the common kinds without a
// decoder.
func valueFromRaw(raw json.RawMessage) (any, error) {
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case 't':
		return true, nil
	case 'f':
		return false, nil
	case 'n':
		return nil, nil
	case '{', '[':
		return decodeExact(raw)
	}
	return json.Number(raw), nil
}

// dropNulls forgets arguments that are null, which some clients send for
// every optional argument they leave out. keep names the ones for which null
// is a value.
func (a arguments) dropNulls(keep ...string) {
	for name, v := range a.value {
		if v != nil || contains(keep, name) {
			continue
		}
		delete(a.value, name)
		delete(a.fields, name)
	}
}

// text returns a string argument, "" when absent.
func (a arguments) text(name string) string {
	s, _ := a.value[name].(string)
	return s
}

// flag returns a boolean argument, or fallback when absent.
func (a arguments) flag(name string, fallback bool) bool {
	if b, ok := a.value[name].(bool); ok {
		return b
	}
	return fallback
}

// integer returns an integer argument that the schema has already bounded;
// ok is false when it is absent. 60, 60.0 and 6e1 are the same integer.
func (a arguments) integer(name string) (n int, ok bool) {
	num, isNum := a.value[name].(json.Number)
	if !isNum {
		return 0, false
	}
	r, valid := new(big.Rat).SetString(num.String())
	if !valid || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return int(r.Num().Int64()), true
}

// decodeExact decodes one JSON value, numbers as json.Number.
func decodeExact(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// check validates the arguments against schema and says what is wrong in
// words a model can act on: the field, the problem, what to send. known are
// the argument names of the tool in the order they are documented. It returns
// "" when all is well.
func (a arguments) check(schema *checker, known []string) string {
	for _, name := range slices.Sorted(maps.Keys(a.value)) {
		if list, ok := a.value[name].([]any); ok && schema.own && len(list) > maxItems {
			return fmt.Sprintf("%q has %d items, more than %d", cut(name, 64), len(list), maxItems)
		}
	}
	problem, err := schema.verdict(a.value)
	if problem != "" || err == nil {
		return problem
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return "the arguments cannot be checked in time against the tool's schema: send less text or fewer values"
	}
	return strings.Join(problemsFromValidation(invalid, a.value, known), "; ")
}

// problemsFromValidation lists the leaves of a validation error, at most
// maxProblems, in a stable order.
func problemsFromValidation(err *jsonschema.ValidationError, instance any, known []string) []string {
	var leaves []*jsonschema.ValidationError
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			leaves = append(leaves, e)
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(err)
	leaves = withoutConsequences(leaves)
	sort.SliceStable(leaves, func(i, j int) bool {
		if leaves[i].InstanceLocation != leaves[j].InstanceLocation {
			return leaves[i].InstanceLocation < leaves[j].InstanceLocation
		}
		return leaves[i].KeywordLocation < leaves[j].KeywordLocation
	})
	var out []string
	seen := map[string]bool{}
	for _, leaf := range leaves {
		text := problemFromLeaf(leaf, instance, known)
		if seen[text] {
			continue
		}
		seen[text] = true
		if len(out) == maxProblems {
			out = append(out, "and more")
			break
		}
		out = append(out, text)
	}
	return out
}

// withoutConsequences leaves out what else is wrong with a value of the wrong
// type.
func withoutConsequences(leaves []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	type place struct{ instance, schema string }
	wrong := map[place]bool{}
	for _, l := range leaves {
		if part, ok := strings.CutSuffix(l.KeywordLocation, "/type"); ok {
			wrong[place{l.InstanceLocation, part}] = true
		}
	}
	if len(wrong) == 0 {
		return leaves
	}
	return slices.DeleteFunc(leaves, func(l *jsonschema.ValidationError) bool {
		if strings.HasSuffix(l.KeywordLocation, "/type") {
			return false
		}
		for part := l.KeywordLocation; part != ""; {
			part = part[:max(strings.LastIndexByte(part, '/'), 0)]
			if wrong[place{l.InstanceLocation, part}] {
				return true
			}
		}
		return false
	})
}

// problemFromLeaf words one violation.
func problemFromLeaf(leaf *jsonschema.ValidationError, instance any, known []string) string {
	keyword := leaf.KeywordLocation[strings.LastIndexByte(leaf.KeywordLocation, '/')+1:]
	field := fieldFromPointer(leaf.InstanceLocation)
	value := valueAt(instance, leaf.InstanceLocation)
	switch keyword {
	case "required":
		names := strings.TrimPrefix(leaf.Message, "missing properties: ")
		return fmt.Sprintf("%smissing: %s", inField(field), strings.ReplaceAll(names, "'", `"`))
	case "type":
		want := strings.TrimPrefix(leaf.Message, "expected ")
		if i := strings.Index(want, ", but got"); i >= 0 {
			want = want[:i]
		}
		return fmt.Sprintf("%s must be %s, not %s", fieldOrWhole(field), want, quoteValue(value))
	case "additionalProperties":
		return unknownArgument(leaf.Message, field, known)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		msg := leaf.Message
		if i := strings.Index(msg, " but found"); i >= 0 {
			msg = msg[:i]
		}
		return fmt.Sprintf("%s is %s: it %s", fieldOrWhole(field), quoteValue(value), msg)
	}
	return fmt.Sprintf("%s: %s", fieldOrWhole(field), strings.ReplaceAll(leaf.Message, "'", `"`))
}

// unknownArgument words an argument that the tool does not have, with the one
// that was probably meant.
func unknownArgument(message, field string, known []string) string {
	var names []string
	for i, part := range strings.Split(message, "'") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("%s: %s", fieldOrWhole(field), message)
	}
	name := cut(names[0], 64)
	if field != "" {
		return fmt.Sprintf("%s has no field %q", field, name)
	}
	if near := nearest(name, known, 1); len(near) > 0 && distance(strings.ToLower(name), strings.ToLower(near[0])) <= 3 {
		return fmt.Sprintf("unknown argument %q: did you mean %q?", name, near[0])
	}
	if len(known) == 0 {
		return fmt.Sprintf("unknown argument %q: leave it out", name)
	}
	return fmt.Sprintf("unknown argument %q: the arguments are %s", name, strings.Join(known, ", "))
}

// fieldFromPointer turns the JSON pointer /files/0/url into files[0].url.
func fieldFromPointer(pointer string) string {
	if pointer == "" {
		return ""
	}
	var b strings.Builder
	for _, seg := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		seg = unescapePointer(seg)
		if isDigits(seg) && b.Len() > 0 {
			b.WriteString("[" + seg + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(cut(seg, 64))
	}
	return b.String()
}

// valueAt follows a JSON pointer; nil when it leads nowhere.
func valueAt(v any, pointer string) any {
	if pointer == "" {
		return v
	}
	for _, seg := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		switch t := v.(type) {
		case map[string]any:
			v = t[unescapePointer(seg)]
		case []any:
			i := 0
			if _, err := fmt.Sscanf(seg, "%d", &i); err != nil || i < 0 || i >= len(t) {
				return nil
			}
			v = t[i]
		default:
			return nil
		}
	}
	return v
}

// unescapePointer undoes the escapes of a pointer segment, which the validator
// also escapes as a URL path.
func unescapePointer(seg string) string {
	if plain, err := url.PathUnescape(seg); err == nil {
		seg = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(seg)
}

func isDigits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}

func inField(field string) string {
	if field == "" {
		return ""
	}
	return field + ": "
}

func fieldOrWhole(field string) string {
	if field == "" {
		return "the arguments"
	}
	return fmt.Sprintf("%q", field)
}

// quoteValue shows a bad value in at most 60 characters.
func quoteValue(v any) string {
	switch t := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		v = cut(t, 100) // what is longer is cut again below
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "a value"
	}
	return cut(string(raw), 60)
}

// jsonKind names the kind of a JSON text by its first byte.
func jsonKind(raw []byte) string {
	switch raw[0] {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case '{':
		return "an object"
	}
	return "a number"
}

// schemaCause words a compile error in one line.
func schemaCause(err error) string {
	var bad *jsonschema.SchemaError
	if errors.As(err, &bad) {
		var invalid *jsonschema.ValidationError
		if errors.As(bad.Err, &invalid) {
			return strings.Join(problemsFromValidation(invalid, nil, nil), "; ")
		}
		return oneLine(bad.Err.Error())
	}
	return oneLine(err.Error())
}

func oneLine(s string) string {
	return cut(strings.Join(strings.Fields(s), " "), 200)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
