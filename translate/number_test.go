package translate

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestNumberProblem(t *testing.T) {
	long := strings.Repeat("9", 401)
	const words = " is too long: a number has at most 400 characters and an exponent of at most 400"
	for raw, want := range map[string]string{
		`0`: "", `-1.5e-3`: "", `1e400`: "", `1E-400`: "", `1e+400`: "", long[:400]: "", `"` + long + `"`: "",
		`{"a":[1,{"b":2e308}]}`:     "",
		long:                        "the number " + long[:23] + "…" + words,
		`1e401`:                     "the number 1e401" + words,
		`1e-401`:                    "the number 1e-401" + words,
		`1e99999999999999999999`:    "the number 1e99999999999999999999" + words,
		`[0,[1,{"a":{"b":1e999}}]]`: "the number 1e999" + words,
		`{"b":1e998,"a":1e999}`:     "the number 1e999" + words,
	} {
		dec := json.NewDecoder(strings.NewReader(raw))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if got := NumberProblem(v); got != want {
			t.Errorf("%.40s: %q, want %q", raw, got, want)
		}
	}
}

// An answer with a number that the validator cannot compute with is refused,
// not computed with.
func TestAnswerWithLongNumber(t *testing.T) {
	ask := Ask{Key: "n", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":5}},"required":["n"]}`)}
	for _, n := range []string{"1e999999999", "1e-999999999", strings.Repeat("9", 3<<20), "0." + strings.Repeat("1", 3<<20)} {
		_, err := AnswerFromJSON(json.RawMessage(`{"action":"accept","content":{"n":`+n+`}}`), ask)
		if err == nil || !strings.Contains(err.Error(), "is too long") {
			t.Errorf("%.20s: %v", n, err)
		}
	}
}
