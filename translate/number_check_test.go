package translate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// A number that is too long to be compared stands where no keyword compares
// it, and is refused where one does.
func TestCheckNumbers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 401)
	for _, tt := range []struct{ schema, value, problem, err string }{
		{`{}`, long, "", ""},
		{`{"type":"object"}`, `{"a":{"b":[` + long + `,` + long + `]}}`, "", ""},
		{`{"properties":{"n":{"type":"number"}}}`, `{"n":1e999}`, "", ""},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":1e999}`, `"n": the number 1e999`, ""},
		{`{"properties":{"n":{"minimum":3}}}`, `{"m":` + long + `,"n":` + long + `}`, `"n": the number 999`, ""},
		{`{"properties":{"n":{"minimum":3,"maximum":4}}}`, `{"n":` + long + `}`, `"n": the number 999`, ""},
		{`{"properties":{"n":{"multipleOf":7}}}`, `{"n":` + long + `}`, `"n": the number 999`, ""},
		{`{"properties":{"n":{"enum":[0]}}}`, `{"n":` + long + `}`, `"n": the number 999`, ""},
		{`{"properties":{"n":{"uniqueItems":true}}}`, `{"n":[` + long + `,` + long + `]}`, `"n": the number 999`, ""},
		{`{"properties":{"n":{"type":"string"}}}`, `{"n":` + long + `}`, "", "expected string"},
		{`{"required":["m"]}`, `{"n":` + long + `}`, "", "missing properties"},
		{`{"properties":{"n":{"minimum":3}}}`, `{"n":2}`, "", "must be >= 3"},
		{`{"maximum":3}`, long, "the number 999", ""},
		{`{"maximum":1e400}`, "1e500", "the number 1e500", ""},
		{`{"minimum":-999e400}`, "-" + long + "e400", "the number -999", ""},
		{`{}`, `{"a":` + long + `,"b":` + long + `,"c":` + long + `,"d":` + long + `,"e":` + long + `,"f":` + long + `,"g":` + long + `,"h":` + long + `,"i":` + long + `}`, `"i": the number`, ""},
	} {
		v, err := decodeNumbers(json.RawMessage(tt.value))
		if err != nil {
			t.Fatal(err)
		}
		problem, err := CheckNumbers(v, jsonschema.MustCompileString("mem:///s.json", tt.schema).Validate)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if (problem == "") != (tt.problem == "") || !strings.HasPrefix(problem, tt.problem) || (text == "") != (tt.err == "") || !strings.Contains(text, tt.err) {
			t.Errorf("%s of %.40s: %q, %q", tt.schema, tt.value, problem, text)
		}
		if again, _ := decodeNumbers(json.RawMessage(tt.value)); NumberProblem(v) != NumberProblem(again) {
			t.Errorf("%.40s was changed", tt.value)
		}
	}
}

// An answer's extra member is ignored, however long a number it holds.
func TestAnswerWithALongNumber(t *testing.T) {
	t.Parallel()
	ask := Ask{Key: "k", Schema: json.RawMessage(`{"type":"object","properties":{"year":{"type":"integer"}},"required":["year"]}`)}
	for year, fits := range map[string]bool{"1999": true, strings.Repeat("9", 500): false} {
		content := `{"year":` + year + `,"more":` + strings.Repeat("9", 500) + `}`
		got, err := AnswerFromJSON(json.RawMessage(`{"action":"accept","content":`+content+`}`), ask)
		if (err == nil) != fits || fits && string(got.Content) != content {
			t.Errorf("%.30s: %.60s, %v", content, got.Content, err)
		}
	}
}
