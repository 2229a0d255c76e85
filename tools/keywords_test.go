package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"a2agate/fixtures"
	"a2agate/translate"
)

// repeated writes n texts of a list.
func repeated(n int, text func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text(i))
	}
	return b.String()
}

// manyOf is a list of n times v.
func manyOf(n int, v any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// What an agent's schema and a few megabytes can make of a check: each of
// these took minutes or gigabytes. The bounds are far above what they take
// now, for slow machines.
func TestCheckIsBounded(t *testing.T) {
	text := strings.Repeat("ab ", 1<<20)
	names := map[string]any{}
	for i := range 200_000 {
		names[fmt.Sprintf("k%d", i)] = true
	}
	const late = "the arguments cannot be checked in time against the tool's schema: send less text or fewer values"
	tests := []struct {
		name, schema string
		value        any
		want         string // "" for any verdict
	}{
		{"a large pattern and much text", `{"pattern":"(a|b| ){1,500}c"}`, text, late},
		{"a small pattern and much text", `{"pattern":"^(ab )*$"}`, text, ""},
		{"patterns for names", `{"patternProperties":{` + repeated(1500, func(i int) string { return fmt.Sprintf(`"x%d.*y":true`, i) }) + `}}`, names, late},
		{"a long enum and many values", `{"items":{"enum":[` + repeated(5000, func(i int) string { return fmt.Sprintf(`"value %d"`, i) }) + `]}}`, manyOf(90_000, "other"), ""},
		{"many required names", `{"items":{"required":[` + repeated(3000, func(i int) string { return fmt.Sprintf(`"value %d"`, i) }) + `]}}`, manyOf(90_000, map[string]any{}), late},
		{"a long constant", `{"items":{"const":"` + strings.Repeat("x", 50_000) + `"}}`, manyOf(90_000, "other"), late},
		{"a long name", `{"additionalProperties":{"items":{"minimum":1}}}`, map[string]any{text: manyOf(50_000, json.Number("0"))}, late},
		{"many of the wrong type", `{"items":{"type":"integer"}}`, manyOf(1_500_000, "other"), late},
		{"many that nothing fits", `{"items":false}`, manyOf(1_500_000, "other"), late},
		{"a long text that is quoted often", `{"allOf":[` + repeated(3000, func(int) string { return `{"type":"integer"}` }) + `]}`, text, ""},
		{"a format", `{"format":"regex"}`, strings.Repeat("(a{1,999}b)", 100_000), ""},
	}
	for _, tt := range tests {
		raw := json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":` + tt.schema + `}}`)
		wantEqual(t, tt.name, translate.SchemaProblem(raw), "")
		c, err := compileSchema(raw)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		began := time.Now()
		said := arguments{value: map[string]any{"a": tt.value}}.check(c, nil)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s: it took %s", tt.name, took)
		}
		if tt.want != "" && said != tt.want || len(said) > 2000 {
			t.Errorf("%s: %.300s", tt.name, said)
		}
	}
}

// What says how much was kept is counted, so that it ends well before the time.
func TestCheckKeepsLittle(t *testing.T) {
	c, err := compileSchema(json.RawMessage(`{"items":{"items":{"minimum":1,"required":["a long name that is missing"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c.patience = time.Hour
	value := manyOf(100, manyOf(50, json.Number("0")))
	if err := c.check(value); err == errEndlessCheck {
		t.Fatal("a small value is too much")
	}
	c.bytes = 100_000
	if err := c.check(value); err != errEndlessCheck {
		t.Errorf("%.300s", fmt.Sprint(err))
	}
}

// The gateway's own schemas are not counted: their lists are bounded.
func TestLongListsOfArguments(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := twoAgents(t, nil)
		got := g.seen(g.call(ToolDiscover, `{"skillTags":[1`+strings.Repeat(",1", 1<<20)+`]}`, nil))
		wantEqual(t, "isError", got.IsError, true)
		wantEqual(t, "text", got.first, `"skillTags" has 1048577 items, more than 10000`)
	})
}

// The wording of what is checked here, which the validator used to say.
func TestKeywordProblems(t *testing.T) {
	for _, tt := range []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `"x"`, `"a" must be integer, not "x"`},
		{`{"type":["integer","null"]}`, `1.5`, `"a" must be integer or null, not 1.5`},
		{`{"type":"integer"}`, `15e-1`, `"a" must be integer, not 15e-1`},
		{`{"type":"integer"}`, `150e-1`, ``},
		{`{"type":"object","required":["b"],"anyOf":[{"required":["c"]}]}`, `"x"`, `"a" must be object, not "x"`},
		{`{"type":"string","const":"y","not":{}}`, `1`, `"a" must be string, not 1`},
		{`{"enum":["50%","100%d"]}`, `"20%"`, `"a": value must be one of "50%", "100%d"`},
		{`{"enum":["on"]}`, `"off"`, `"a": value must be "on"`},
		{`{"enum":[1,true,null]}`, `2`, `"a": value must be one of 1, true, null`},
		{`{"enum":[1.0,{"b":[1e1]}]}`, `1`, ``},
		{`{"enum":[1.0,{"b":[1e1]}]}`, `{"b":[10]}`, ``},
		{`{"enum":["1"]}`, `1`, `"a": value must be "1"`},
		{`{"pattern":"^a%d+$"}`, `"b"`, `"a": does not match pattern "^a%d+$"`},
		{`{"pattern":"^a"}`, `7`, ``},
		{`{"format":"regex"}`, `"("`, `"a": "(" is not valid "regex"`},
		{`{"format":"regex"}`, `"(a)"`, ``},
		{`false`, `7`, `"a": not allowed`},
		{`{"properties":{"enum":{"type":"string"},"pattern":{"enum":["x"]},"type":{"pattern":"^x"}},"additionalProperties":false}`, `{"enum":1,"pattern":"y","type":"y"}`,
			`"a.enum" must be string, not 1; "a.pattern": value must be "x"; "a.type": does not match pattern "^x"`},
		{`{"const":{"type":"x","pattern":"y","enum":[1]}}`, `{"type":"x","pattern":"y","enum":[1]}`, ``},
	} {
		raw := json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":` + tt.schema + `}}`)
		wantEqual(t, tt.schema, translate.SchemaProblem(raw), "")
		c, err := compileSchema(raw)
		if err != nil {
			t.Fatalf("%s: %v", tt.schema, err)
		}
		v, err := decodeExact([]byte(tt.value))
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, tt.schema+" "+tt.value, arguments{value: map[string]any{"a": v}}.check(c, nil), tt.want)
	}
}

// Many small patterns of one card come to no more than a few large ones.
func TestPatternsOfACard(t *testing.T) {
	var skills []fixtures.Skill
	for i := range 30 {
		skills = append(skills, fixtures.Skill{ID: fmt.Sprintf("s%02d", i), Name: "S", Description: "D",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","pattern":"^(abcdefghij){1000}$"}}}`)})
	}
	inBubble(t, func(t *testing.T) {
		g := skillAgent(t, nil, skills...)
		kept := 0
		for _, tool := range g.svc.Catalogue(View{}).Tools {
			if strings.Contains(string(tool.InputSchema), "abcdefghij") {
				kept++
			}
		}
		if kept < 10 || kept > 20 {
			t.Errorf("%d of 30 schemas are used", kept)
		}
	})
}

// What is checked here is judged as the validator alone judges it.
func FuzzKeywords(f *testing.F) {
	for _, seed := range []struct{ schema, value string }{
		{`{"type":"object","properties":{"a":{"enum":[1,"x",null]}},"additionalProperties":{"pattern":"^b"}}`, `{"a":1.0,"c":"b"}`},
		{`{"type":"object","$defs":{"x":{"type":["integer","null"]}},"properties":{"a":{"$ref":"#/$defs/x"}},"unevaluatedProperties":false}`, `{"a":1e1}`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"integer"}},"dependencies":{"a":["b"]}}`, `{"a":1.0}`},
		{`{"type":"object","properties":{"a":{"contains":{"type":"string"},"items":{"enum":["x",{"b":[1,2.50]}]},"uniqueItems":true}}}`, `{"a":["x",{"b":[1,2.5]}]}`},
		{`{"type":"object","patternProperties":{"^a":false,"type":{"type":"string"}},"propertyNames":{"pattern":"^.{1,5}$"}}`, `{"type":"x"}`},
		{`{"type":"object","not":{"required":["a"]},"if":false,"then":false,"else":{"oneOf":[{"enum":[{}]},{"const":{"enum":1}}]}}`, `{"enum":1}`},
		{`{"type":"object","properties":{"enum":{"enum":[true]},"pattern":false,"type":true,"const":{"const":{"pattern":"("}}}}`, `{"enum":true,"type":1,"const":{"pattern":"("}}`},
	} {
		f.Add([]byte(seed.schema), []byte(seed.value))
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		if translate.SchemaProblem(schema) != "" {
			return
		}
		v, err := decodeExact(value)
		if err != nil || translate.NumberProblem(v) != "" {
			return
		}
		ours, err := compileSchema(schema)
		if err != nil {
			return // a reference into data: left out, and said so
		}
		theirs, err := compile(schema, &checker{own: true})
		if err != nil {
			t.Fatal(err)
		}
		got := ours.check(v)
		if errors.Is(got, errEndlessCheck) || errors.Is(got, errUncheckable) {
			return
		}
		var invalid *jsonschema.ValidationError
		if got != nil && !errors.As(got, &invalid) {
			return // a schema that refers to itself without end
		}
		if want := theirs.check(v); (got == nil) != (want == nil) {
			t.Fatalf("%s\n%s\ngot  %v\nwant %v", schema, value, got, want)
		}
		arguments{value: map[string]any{"a": v}}.check(ours, nil)
		isPattern(string(value))
	})
}
