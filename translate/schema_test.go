package translate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSchemaProblem(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 40) + `{}` + strings.Repeat(`}}`, 40)
	for _, c := range []struct{ name, schema, want string }{
		{"none needed", `{"type":"object","additionalProperties":false}`, ""},
		{"2020-12 keywords", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"address","type":"object"}},` +
			`"properties":{"a":{"$ref":"#/$defs/address"},"b":{"$ref":"#address"}},"allOf":[{"anyOf":[{"required":["a"]}]}],"if":{"required":["b"]},"then":{},"else":{}}`, ""},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, ""},
		{"unknown keyword", `{"type":"object","x-ours":1}`, ""},
		{"own id", `{"$id":"https://a.test/s","type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{}}}`, ""},
		{"a property called $ref", `{"type":"object","properties":{"$ref":{"type":"string"}}}`, ""},
		{"good headers", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Agent"},"o":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"B"}}}}}`, ""},
		{"empty", ``, "it is empty"},
		{"true", `true`, "it is not a JSON object"},
		{"broken", `{"type":`, "it is not valid JSON"},
		{"two values", `{"type":"object"}{}`, "it is not valid JSON"},
		{"a bracket too many", `{"type":"object" }}`, "it is not valid JSON"},
		{"no type", `{"properties":{}}`, `the root has no "type": "object"`},
		{"array", `{"type":"array"}`, `the root has no "type": "object"`},
		{"type list", `{"type":["object"]}`, `the root has no "type": "object"`},
		{"bad keyword", `{"type":"object","properties":{"a":{"type":"strang"}}}`, "at /properties/a/type: "},
		{"bad pattern", `{"type":"object","properties":{"a":{"pattern":"("}}}`, "at /properties/a/pattern: "},
		{"a pattern of millions of steps", `{"type":"object","properties":{"a":{"pattern":"(` + strings.Repeat("a?b?", 300) + `){1000}"}}}`,
			"its patterns come to more than 20000 steps"},
		{"patterns that add up", `{"type":"object","patternProperties":{"[ab]{1000}":{"pattern":"[ab]{1000}"},"(ab){500}c":{"items":{"pattern":"(ab){999}"}}}}`, ""},
		{"patterns that add up to too much", `{"type":"object","patternProperties":{"(abcdefgh){999}":{"pattern":"(abcdefgh){999}"}}}`, "?"},
		{"character ranges without end", `{"type":"object","properties":{"a":{"pattern":"` + strings.Repeat(`\\pL`, 400) + `"}}}`, "?"},
		{"names of any language", `{"type":"object","properties":{"a":{"pattern":"^[\\pL\\pN ._-]{1,255}$"}}}`, ""},
		{"a number out of reach", `{"type":"object","properties":{"a":{"enum":[1e-999999]}}}`,
			"the number 1e-999999 is too long: a number has at most 400 characters and an exponent of at most 400"},
		{"external", `{"type":"object","properties":{"a":{"$ref":"https://evil.test/s"}}}`, `$ref "https://evil.test/s" leaves the schema: only references that begin with # are followed`},
		{"a file", `{"type":"object","allOf":[{"$ref":"file:///etc/passwd"}]}`, `$ref "file:///etc/passwd" leaves the schema: only references that begin with # are followed`},
		{"dangling", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, "?"},
		{"unknown dialect", `{"$schema":"https://a.test/my","type":"object"}`, "$schema or a reference names a schema that is not known here (2020-12, 2019-09, draft-07, -06 and -04 are)"},
		{"endless", `{"type":"object","$ref":"#"}`, "?"},
		{"deep", `{"type":"object","properties":{"a":` + deep + `}}`, "it nests deeper than 64 levels"},
		{"wide", `{"type":"object","enum":[` + strings.Repeat(`{},`, 5000) + `{}]}`, "it has more than 5000 objects and arrays"},
		{"large", `{"type":"object","description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "it has 65570 bytes, more than 65536"},
		{"brackets in strings do not count", `{"type":"object","description":"\"` + strings.Repeat("{[", 200) + `"}`, ""},
		{"header is no token", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`, "x-mcp-header is not a header name"},
		{"header is no string", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":1}}}`, "x-mcp-header is not a header name"},
		{"header twice", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, `x-mcp-header "a" stands twice`},
		{"header on a number", `{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, `x-mcp-header "A" is not on a string, integer or boolean`},
		{"header in items", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}}`,
			`x-mcp-header "A" is not on a property that properties alone lead to`},
		{"header at the root", `{"type":"object","x-mcp-header":"A"}`, `x-mcp-header "A" is not on a property that properties alone lead to`},
		{"header under anyOf", `{"type":"object","anyOf":[{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}]}`, `x-mcp-header "A" is not on a property that properties alone lead to`},
	} {
		got := SchemaProblem(json.RawMessage(c.schema))
		switch {
		case c.want == "?" && got != "", got == c.want:
		case c.want != "" && strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want):
		default:
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if strings.ContainsAny(got, "\n\t") {
			t.Errorf("%s: more than a line: %q", c.name, got)
		}
	}
}

func TestOutputSchemas(t *testing.T) {
	array := json.RawMessage(`{"type":"array","items":{"type":"integer"}}`)
	object := json.RawMessage(`{"type":"object"}`)
	if p := OutputSchemaProblem(array); p != "" {
		t.Errorf("an array: %s", p)
	}
	if p := OutputSchemaProblem(json.RawMessage(`{"type":1}`)); p == "" {
		t.Error("a broken one is taken")
	}
	for _, c := range []struct {
		schema json.RawMessage
		rev    Revision
		want   bool
	}{
		{object, Rev20250326, false}, {object, Rev20250618, true}, {object, Rev20260728, true},
		{array, Rev20250618, false}, {array, Rev20251125, false}, {array, Rev20260728, true},
	} {
		if got := SchemaFits(c.schema, c.rev); got != c.want {
			t.Errorf("%s on %s: %v", c.schema, c.rev, got)
		}
	}
}

func TestSchemaCaution(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a.b-c_1":{"anyOf":[]}}}`: "",
		`{"type":"object","allOf":[]}`:                            "allOf at the root",
		`{"type":"object","properties":{"bad name":{}}}`:          `the property name "bad name"`,
		`{"type":"object","properties":{"` + long(65) + `":{}}}`:  `the property name "` + long(65) + `"`,
		`not JSON`: "",
	} {
		if got := SchemaCaution(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %q, want %q", schema, got, want)
		}
	}
}

func long(n int) string { return strings.Repeat("p", n) }
