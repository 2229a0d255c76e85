package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The bounds of a schema that comes from an agent.
const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 64
	maxSchemaNodes = 5000
)

// SchemaProblem says in a few words why an agent's input schema cannot be
// registered as it is, "" when it can: a JSON object of type object that
// compiles as JSON Schema (2020-12 unless $schema names another draft), needs
// nothing from outside, stays within bounds, and whose x-mcp-header annotations
// obey MCP 2026-07-28 (a client drops a whole tool over a bad one). The text is
// for the operator's eyes.
func SchemaProblem(raw json.RawMessage) string {
	if p := schemaProblem(raw); p != "" {
		return p
	}
	if !rootObject(raw) {
		return `the root has no "type": "object"`
	}
	return headerProblem(raw)
}

// OutputSchemaProblem is SchemaProblem for an output schema, whose root may be
// of any type. Revisions before 2026-07-28 know only objects there: see
// SchemaFits.
func OutputSchemaProblem(raw json.RawMessage) string { return schemaProblem(raw) }

// SchemaFits reports whether an output schema may be shown to clients of a
// revision.
func SchemaFits(raw json.RawMessage, rev Revision) bool {
	switch {
	case rev < Rev20250618:
		return false
	case rev.Modern():
		return true
	}
	return rootObject(raw)
}

// SchemaCaution names what some models' APIs refuse in a tool's input schema
// though MCP allows it, "" for nothing: a combinator or reference at the root,
// or a property name they do not take. One such tool can cost a session.
func SchemaCaution(raw json.RawMessage) string {
	members, ok := orderedObject(raw)
	if !ok {
		return ""
	}
	for _, m := range members {
		switch m.name {
		case "oneOf", "anyOf", "allOf", "not", "if", "enum", "$ref", "$dynamicRef":
			return m.name + " at the root"
		case "properties":
			props, _ := orderedObject(m.value)
			for _, p := range props {
				if !validProperty(p.name) {
					return "the property name " + quoteName(p.name)
				}
			}
		}
	}
	return ""
}

func validProperty(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func rootObject(raw json.RawMessage) bool {
	members, ok := orderedObject(raw)
	if !ok {
		return false
	}
	for _, m := range members {
		if m.name == "type" {
			return jsonText(m.value) == "object"
		}
	}
	return false
}

// errExternal is what the compiler is told when it wants to load anything.
var errExternal = errors.New("a schema from outside is never loaded")

// refusingCompiler compiles schemas of 2020-12 by default and loads nothing:
// the library's own loader would read files.
func refusingCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errExternal }
	return c
}

func schemaProblem(raw json.RawMessage) string {
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return "it is empty"
	case len(raw) > maxSchemaBytes:
		return "it has " + strconv.Itoa(len(raw)) + " bytes, more than " + strconv.Itoa(maxSchemaBytes)
	case !isObject(raw):
		return "it is not a JSON object"
	}
	// Depth first: what follows descends into the value.
	if p := boundsProblem(raw); p != "" {
		return p
	}
	doc, err := decodeNumbers(raw)
	if err != nil {
		return "it is not valid JSON"
	}
	if p := NumberProblem(doc); p != "" {
		return p
	}
	if p := referenceProblem(doc, ""); p != "" {
		return p
	}
	if patternsSize(doc) > maxPatternSize {
		return "its patterns come to more than " + strconv.Itoa(maxPatternSize) + " steps"
	}
	return compileProblem(raw)
}

// boundsProblem counts braces without descending.
func boundsProblem(raw json.RawMessage) string {
	depth, nodes := 0, 0
	inString := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			nodes++
		case c == '}' || c == ']':
			depth--
		}
		if depth > maxSchemaDepth {
			return "it nests deeper than " + strconv.Itoa(maxSchemaDepth) + " levels"
		}
	}
	if nodes > maxSchemaNodes {
		return "it has more than " + strconv.Itoa(maxSchemaNodes) + " objects and arrays"
	}
	return ""
}

// referenceProblem finds a reference that leaves the document. Depth is
// bounded by boundsProblem.
func referenceProblem(v any, key string) string {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			e := v[k]
			if s, ok := e.(string); ok && key != "properties" && key != "$defs" && key != "definitions" {
				switch k {
				case "$ref", "$dynamicRef", "$recursiveRef":
					if !strings.HasPrefix(s, "#") {
						return k + " " + quoteName(s) + " leaves the schema: only references that begin with # are followed"
					}
				}
			}
			if p := referenceProblem(e, k); p != "" {
				return p
			}
		}
	case []any:
		for _, e := range v {
			if p := referenceProblem(e, ""); p != "" {
				return p
			}
		}
	}
	return ""
}

// compileProblem compiles the schema under a name of its own. A panic in the
// compiler over a hostile schema is a problem of the schema.
func compileProblem(raw json.RawMessage) (problem string) {
	defer func() {
		if recover() != nil {
			problem = "it cannot be compiled"
		}
	}()
	const name = "a2a:schema"
	c := refusingCompiler()
	if err := c.AddResource(name, bytes.NewReader(raw)); err != nil {
		return "it is not valid JSON"
	}
	_, err := c.Compile(name)
	if err == nil {
		return ""
	}
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		for invalid.Causes != nil {
			invalid = invalid.Causes[0]
		}
		return oneLine("at "+or(invalid.InstanceLocation, "/")+": "+invalid.Message, 200)
	}
	if errors.Is(err, errExternal) {
		return "$schema or a reference names a schema that is not known here (2020-12, 2019-09, draft-07, -06 and -04 are)"
	}
	return oneLine(strings.TrimPrefix(err.Error(), "jsonschema "), 200)
}

// headerProblem checks every x-mcp-header annotation (MCP 2026-07-28, tools):
// an RFC 9110 token, unique whatever its case, on a string, integer or boolean
// property that is reached through properties alone.
func headerProblem(raw json.RawMessage) string {
	if !bytes.Contains(raw, []byte("x-mcp-header")) {
		return ""
	}
	var root any
	if json.Unmarshal(raw, &root) != nil {
		return "it is not valid JSON"
	}
	seen := map[string]bool{}
	return walkHeaders(root, true, false, seen)
}

// walkHeaders visits a schema; reachable says that only properties lie between
// it and the root, property that it is one.
func walkHeaders(v any, reachable, property bool, seen map[string]bool) string {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if p := walkHeaders(e, false, false, seen); p != "" {
				return p
			}
		}
	case map[string]any:
		if h, ok := v["x-mcp-header"]; ok {
			if p := headerFault(v, h, reachable && property, seen); p != "" {
				return p
			}
		}
		for _, k := range sortedKeys(v) {
			e := v[k]
			if k == "enum" || k == "const" || k == "default" || k == "examples" {
				continue
			}
			if props, ok := e.(map[string]any); ok && k == "properties" {
				for _, name := range sortedKeys(props) {
					if p := walkHeaders(props[name], reachable, true, seen); p != "" {
						return p
					}
				}
				continue
			}
			if p := walkHeaders(e, false, false, seen); p != "" {
				return p
			}
		}
	}
	return ""
}

// sortedKeys lets a problem name the same property every time.
func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func headerFault(schema map[string]any, value any, ok bool, seen map[string]bool) string {
	name, isString := value.(string)
	switch kind, _ := schema["type"].(string); {
	case !isString || !token(name):
		return "x-mcp-header is not a header name"
	case seen[strings.ToLower(name)]:
		return "x-mcp-header " + quoteName(name) + " stands twice"
	case !ok:
		return "x-mcp-header " + quoteName(name) + " is not on a property that properties alone lead to"
	case kind != "string" && kind != "integer" && kind != "boolean":
		return "x-mcp-header " + quoteName(name) + " is not on a string, integer or boolean"
	}
	seen[strings.ToLower(name)] = true
	return ""
}

// token reports whether s is a token of RFC 9110, 5.6.2.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}
