package clientfile

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/jsonc"
)

// probe is an entry with every kind of value.
var probe = Entry{
	In: "servers", Name: "a2a",
	Fields: Fields{
		{"type", "http"}, {"url", "http://127.0.0.1:8931/mcp?a=1&b=2"},
		{"headers", Fields{{"Authorization", "Bearer ${input:a2a-token}"}}}, {"timeout", 600000}, {"on", true}, {"tools", []string{"a", "b"}},
	},
	Foreign: []string{"command"},
	Inputs:  Inputs{In: "inputs", Items: []Fields{{{"type", "promptString"}, {"id", "a2a-token"}, {"password", true}}}},
}

// jsonFiles are files that can be added to; the list seeds the fuzzer too.
var jsonFiles = []string{
	"", " ", "\n", "\n\n  ", "// only a comment", "// only a comment\n", "/* c */", bom, bom + "\n",
	"{}", "{ }", "{\n}", "{\n}\n", "{\n\n}\n", bom + "{}", "{\t}", "{ // c\n}", "{ /* c */ }", "{/* c\n */}",
	`{"servers":{}}`, `{"servers": {}}`, `{"servers": { }}`, "{\n  \"servers\": {}\n}\n", "{\n  \"servers\": {\n  }\n}\n", "{\n  \"servers\": {\n\n\n  }\n}",
	`{"a":1}`, `{"a": 1, "b": [1, 2]}`, "{\n\t\"a\": 1\n}\n", "{\r\n    \"a\": 1\r\n}\r\n", "{\n  \"a\": 1,\n}\n", `{"a":1,}`,
	`{"servers":{"x":{}}}`, "{\n  \"servers\": {\n    \"x\": {\"url\": \"u\"}\n  }\n}", "{\n  \"servers\": {\n    \"x\": {\"url\": \"u\"}, // keep\n  }\n}",
	"{\n  // top\n  \"servers\": { // here\n    // before x\n    \"x\": { \"url\": \"u\" } // after x\n    // last\n  }, // after servers\n  \"z\": null // end\n}\n// bye\n",
	`{"servers":{"x":{}},"servers":{"y":{}}}`, `{"servers": {"x": 1}, "inputs": []}`, "{\"inputs\": [\n  {\"id\": \"other\"}\n]}", `{"inputs":[{"id":"a2a-token","mine":1}]}`,
	"{\n      \"servers\"\n:\n{\n\"x\"\n:\n1\n}\n}\n", `{"s\u0065rvers":{"x":1}}`, `{"a":"\ud800","b":1e999,"c":-0.0}`, "{\"a\":\"\xff\"}",
	`{"a":{"servers":{}}}`, "{\n  \"servers\": {}, \"b\": 2\n}", "{ \"servers\": {\n\"x\": 1 }, \"b\": 2 }", "{\r\n\"servers\": { // c\r\n}}", "{}\n\n\n", "{} // c",
}

func TestJSONAddRemove(t *testing.T) {
	t.Parallel()
	for _, f := range jsonFiles {
		checkEdit(t, JSON, []byte(f), probe, decodeJSONC)
	}
}

// decodeJSONC decodes with another reader than ours.
func decodeJSONC(t *testing.T, text []byte) map[string]any {
	t.Helper()
	text = bytes.TrimPrefix(text, []byte(bom))
	plain := jsonc.ToJSON(text)
	if len(bytes.TrimSpace(plain)) == 0 {
		return map[string]any{}
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	m := map[string]any{}
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%q does not parse: %v", text, err)
	}
	return m
}

// checkEdit checks every promise of Add and Remove on one file.
func checkEdit(t *testing.T, f Format, file []byte, e Entry, decode func(*testing.T, []byte) map[string]any) {
	t.Helper()
	kept := bytes.Clone(file)
	once, err := Add(f, file, e)
	if err != nil {
		t.Errorf("Add(%q): %v", file, err)
		return
	}
	if !bytes.Equal(file, kept) {
		t.Errorf("Add(%q) changed its argument to %q", kept, file)
	}
	was, is := decode(t, file), decode(t, once)
	entry := take(is, e.In, e.Name)
	if _, had := take(was, e.In, e.Name).(map[string]any); !had {
		if want := asDecoded(e.Fields); !reflect.DeepEqual(entry, want) {
			t.Errorf("Add(%q) = %q: the entry is %v, want %v", file, once, entry, want)
		}
	}
	takeInputs(was, e)
	takeInputs(is, e)
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("Add(%q) = %q changed other things:\n%s", file, once, diff)
	}
	if lines := lost(file, once); lines != "" && take(decode(t, file), e.In, e.Name) == nil {
		t.Errorf("Add(%q) = %q lost or moved %q", file, once, lines)
	}
	if got, ok := entry.(map[string]any); !ok || !contains(got, asDecoded(e.Fields)) {
		t.Errorf("Add(%q) = %q: the entry is %v, want at least %v", file, once, entry, e.Fields)
	}
	twice, err := Add(f, once, e)
	if err != nil || !bytes.Equal(once, twice) {
		t.Errorf("Add(%q) again = %q, %v, want no change", once, twice, err)
	}
	back, err := Remove(f, once, e)
	if err != nil {
		t.Errorf("Remove(%q): %v", once, err)
	} else if had := take(decode(t, file), e.In, e.Name); had == nil && !bytes.Equal(back, file) && !hasInput(decode(t, file), e) {
		t.Errorf("Remove(Add(%q)) = %q\nin between %q", file, back, once)
	} else if take(decode(t, back), e.In, e.Name) != nil {
		t.Errorf("Remove(%q) = %q still has the entry", once, back)
	}
}

// contains reports whether a has every member of b, with its value.
func contains(a, b any) bool {
	was, ok := a.(map[string]any)
	want, ok2 := b.(map[string]any)
	if !ok || !ok2 {
		return reflect.DeepEqual(a, b)
	}
	for k, v := range want {
		if got, ok := was[k]; !ok || !contains(got, v) {
			return false
		}
	}
	return true
}

// lost returns the first byte run of before that after does not have in order:
// an added entry only inserts.
func lost(before, after []byte) string {
	i := 0
	for _, c := range after {
		if i < len(before) && before[i] == c {
			i++
		}
	}
	return string(before[i:])
}

// take removes and returns m[in][name]; it removes m[in] when that leaves it
// empty.
func take(m map[string]any, in, name string) any {
	list, ok := m[in].(map[string]any)
	if !ok {
		if m[in] == nil {
			delete(m, in) // "extensions:" with nothing, in YAML
		}
		return nil
	}
	v := list[name]
	delete(list, name)
	if len(list) == 0 {
		delete(m, in)
	}
	return v
}

func takeInputs(m map[string]any, e Entry) {
	list, _ := m[e.Inputs.In].([]any)
	var rest []any
	for _, v := range list {
		if o, ok := v.(map[string]any); !ok || len(e.Inputs.Items) == 0 || o["id"] != e.Inputs.Items[0].get("id") {
			rest = append(rest, v)
		}
	}
	if _, ok := m[e.Inputs.In].([]any); !ok {
		return
	}
	if delete(m, e.Inputs.In); rest != nil {
		m[e.Inputs.In] = rest
	}
}

func hasInput(m map[string]any, e Entry) bool {
	list, _ := m[e.Inputs.In].([]any)
	for _, v := range list {
		if o, ok := v.(map[string]any); ok && len(e.Inputs.Items) > 0 && o["id"] == e.Inputs.Items[0].get("id") {
			return true
		}
	}
	return false
}

// asDecoded is a value as the decoders of these tests give it.
func asDecoded(v any) any {
	switch v := v.(type) {
	case int:
		return json.Number(strings.TrimSpace(string(mustJSON(v))))
	case []string:
		list := []any{}
		for _, s := range v {
			list = append(list, s)
		}
		return list
	case Fields:
		m := map[string]any{}
		for _, f := range v {
			m[f.Name] = asDecoded(f.Value)
		}
		return m
	}
	return v
}

func mustJSON(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

func FuzzJSON(f *testing.F) {
	for _, s := range jsonFiles {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := Add(JSON, file, probe); err != nil {
			fuzzError(t, JSON, file, err)
			return
		}
		if !json.Valid(jsonc.ToJSON(bytes.TrimPrefix(file, []byte(bom)))) && !blank(file) {
			t.Skip() // the other reader is stricter here and there
		}
		checkEdit(t, JSON, file, probe, decodeJSONC)
	})
}

// fuzzError checks that a refusal is an *Error with a place in the file.
func fuzzError(t *testing.T, f Format, file []byte, err error) {
	t.Helper()
	e, ok := err.(*Error)
	if !ok || e.Reason == "" || e.Line > bytes.Count(file, []byte{'\n'})+1 {
		t.Errorf("format %d, %q: %#v is no *Error with a place", f, file, err)
	}
}

func blank(file []byte) bool {
	n, err := parseJSON(file)
	return n == nil && err == nil
}
