package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"a2agate/translate"
)

// The keywords of a stranger's schema that are checked here and not by the
// validator, which cannot be stopped while it matches a pattern or compares
// long lists, and keeps what it says about each value uncounted. They are
// renamed before the schema is compiled.
const (
	keyType    = "a2agate:type"
	keyEnum    = "a2agate:enum"
	keyPattern = "a2agate:pattern"
	keyNever   = "a2agate:never"
)

const (
	// quickMatch is up to what size of text times pattern a match is not
	// worth watching; it takes well under half a second.
	quickMatch = 10_000_000
	// maxNamesMatch bounds, in the same measure, what is matched between two
	// looks at the clock: the names of one object with patternProperties.
	maxNamesMatch = 100_000_000
)

// errUncheckable is a value of which a check would take too long.
var errUncheckable = errors.New("too much text for the patterns of the schema")

// ownKeywords renames in a schema what step checks. Only places that hold
// schemas are touched, not data such as const.
func ownKeywords(schema any) any {
	m, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return map[string]any{keyNever: true}
		}
		return schema
	}
	out := make(map[string]any, len(m))
	for name, v := range m {
		switch name {
		case "type":
			out[keyType] = v
		case "pattern":
			out[keyPattern] = v
		case "enum":
			out[keyEnum] = v
		case "const", "default", "examples", "required":
			out[name] = v
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
			out[name] = ownKeywordsEach(v)
		case "additionalProperties", "additionalItems":
			out[name] = v
			if _, isMap := v.(map[string]any); isMap {
				out[name] = ownKeywords(v)
			}
		default:
			out[name] = ownKeywordsIn(name, v)
		}
	}
	return out
}

// ownKeywordsEach is ownKeywords for the values of an object.
func ownKeywordsEach(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(m))
	for name, schema := range m {
		out[name] = ownKeywords(schema)
	}
	return out
}

// ownKeywordsIn is ownKeywords for a keyword of any name. Where false may mean
// something else than a schema it is left alone.
func ownKeywordsIn(name string, v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = ownKeywords(e)
		}
		return out
	case map[string]any:
		return ownKeywords(v)
	case bool:
		switch name {
		case "items", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not", "if", "then", "else":
			return ownKeywords(v)
		}
	}
	return v
}

// step is one part of a stranger's schema: it checks the keywords above and
// counts what the check has cost so far.
type step struct {
	c     *checker
	types []string
	enum  map[string]bool // canonical
	// oneOf says what enum holds.
	oneOf   string
	pattern *regexp.Regexp
	size    int // of the pattern
	never   bool
	// words is the most that the validator may quote of this part.
	words int
	// closed says that it may quote the names of an object.
	closed bool
}

// Compile implements jsonschema.ExtCompiler.
func (c *checker) Compile(_ jsonschema.CompilerContext, m map[string]any) (jsonschema.ExtSchema, error) {
	for _, name := range []string{"type", "enum", "pattern"} {
		if _, ok := m[name]; ok {
			return nil, fmt.Errorf("a reference leads to a part that is no schema, with the keyword %s", name)
		}
	}
	s := &step{c: c, never: m[keyNever] != nil, closed: m["additionalProperties"] == false}
	switch t := m[keyType].(type) {
	case string:
		s.types = []string{t}
	case []any:
		for _, e := range t {
			if name, ok := e.(string); ok {
				s.types = append(s.types, name)
			}
		}
	}
	if list, ok := m[keyEnum].([]any); ok {
		s.setEnum(list)
	}
	if p, ok := m[keyPattern].(string); ok {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("pattern %s cannot be read", jsonString(cut(p, 60)))
		}
		s.pattern, s.size = re, max(translate.PatternSize(p), 1)
	}
	for _, name := range []string{"required", "const", "dependentRequired", "dependencies"} {
		if v, ok := m[name]; ok {
			s.words += len(jsonValue(v))
		}
	}
	if props, ok := m["patternProperties"].(map[string]any); ok {
		size := 0
		for p := range props {
			size += max(translate.PatternSize(p), 1)
		}
		c.names = max(c.names, size)
	}
	return s, nil
}

func (s *step) setEnum(list []any) {
	s.enum = make(map[string]bool, len(list))
	var words []string
	for _, v := range list {
		s.enum[string(appendCanonical(nil, v))] = true
		words = append(words, jsonValue(v))
	}
	s.oneOf = "value must be one of " + cut(strings.Join(words, ", "), 300)
	if len(list) == 1 {
		s.oneOf = "value must be " + cut(words[0], 300)
	}
}

// Validate implements jsonschema.ExtSchema. It is called at the end of each
// step, and ends the check by a panic when that has cost enough, for the
// validator has no other way out.
func (s *step) Validate(ctx jsonschema.ValidationContext, v any) error {
	at := ctx.Error("", "")
	s.c.spend(len(at.KeywordLocation) + len(at.AbsoluteKeywordLocation) + len(at.InstanceLocation) + s.quoted(v))
	if s.never {
		return ctx.Error("", "not allowed")
	}
	if s.types != nil && !isOneOf(v, s.types) {
		return ctx.Error("type", "expected %s, but got %s", strings.Join(s.types, " or "), kindOf(v))
	}
	if s.enum != nil && !s.enum[string(appendCanonical(nil, v))] {
		return ctx.Error("enum", "%s", s.oneOf)
	}
	if text, ok := v.(string); ok && s.pattern != nil && !s.matches(text) {
		return ctx.Error("pattern", "does not match pattern %s", jsonString(cut(s.pattern.String(), 200)))
	}
	return nil
}

// quoted is the most that the validator may have said about v at this step.
func (s *step) quoted(v any) int {
	n := s.words
	if m, ok := v.(map[string]any); ok && s.closed {
		for name := range m {
			n += len(name)
		}
	}
	return n
}

// matches is s.pattern.MatchString, ended with the check.
func (s *step) matches(text string) bool {
	if len(text) <= quickMatch/s.size {
		return s.pattern.MatchString(text)
	}
	return s.pattern.MatchReader(&watchedText{rest: strings.NewReader(text), c: s.c, every: quickMatch/10/s.size + 1})
}

// watchedText is a text that looks at the clock now and then while it is read.
type watchedText struct {
	rest    *strings.Reader
	c       *checker
	every   int
	elapsed int
}

func (w *watchedText) ReadRune() (r rune, size int, err error) {
	if w.elapsed++; w.elapsed == w.every {
		w.elapsed = 0
		if time.Now().After(w.c.until) {
			panic(errEndlessCheck) //nolint:forbidigo // the only way out; caught in check
		}
	}
	return w.rest.ReadRune()
}

var _ io.RuneReader = (*watchedText)(nil)

// largestNames is the most text that the names of one object in v have.
func largestNames(v any) int {
	largest := 0
	switch v := v.(type) {
	case map[string]any:
		own := 0
		for name, e := range v {
			own += len(name) + 1
			largest = max(largest, largestNames(e))
		}
		largest = max(largest, own)
	case []any:
		for _, e := range v {
			largest = max(largest, largestNames(e))
		}
	}
	return largest
}

// kindOf is the JSON type of a decoded value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

func isOneOf(v any, types []string) bool {
	kind := kindOf(v)
	for _, t := range types {
		if t == kind || t == "integer" && kind == "number" && isInteger(v) {
			return true
		}
	}
	return false
}

// isInteger reports whether a number is whole, however it is written.
func isInteger(v any) bool {
	num, _ := v.(json.Number)
	if plainDigits(string(num)) {
		return true
	}
	r, ok := new(big.Rat).SetString(string(num))
	return ok && r.IsInt()
}

// appendCanonical writes a decoded value so that equal values (JSON Schema
// 2020-12, 4.2.2) are written alike.
func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return translate.AppendString(b, v)
	case json.Number:
		if plainDigits(string(v)) {
			return append(b, v...)
		}
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return append(b, r.RatString()...)
		}
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for _, e := range v {
			b = append(appendCanonical(b, e), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = append(translate.AppendString(b, name), ':')
			b = append(appendCanonical(b, v[name]), ',')
		}
		return append(b, '}')
	}
	return fmt.Append(b, v)
}

// plainDigits reports whether a number has one spelling only as it is.
func plainDigits(s string) bool { return s != "" && s[0] != '0' && isDigits(s) }
