package clientfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"go.yaml.in/yaml/v3"
)

var yamlProbe = Entry{
	In: "servers", Name: "a2a",
	Fields: Fields{{"type", "streamable_http"}, {"uri", "http://127.0.0.1:8931/mcp?a=1&b=2"}, {"enabled", true}, {"timeout", 600},
		{"env_keys", []string{"A2A_TOKEN"}}, {"headers", Fields{{"Authorization", "Bearer ${A2A_TOKEN}"}}}},
	Foreign: []string{"cmd"},
}

var yamlFiles = []string{
	"", "\n", "# c", "# c\n", bom, bom + "a: 1\n", "a: 1", "a: 1\n", "a: 1\r\nb: 2\r\n", "---\na: 1\n", "---\n", "a: 1\n\n\n",
	"servers:", "servers:\n", "servers: # c\n", "servers: # c\nb: 1\n", "servers:\n  # dev\n  x: # y\n    type: builtin\n\n  z: {}\nb: 1\n# end\n",
	"servers:\n    x:\n        a: 1\n", "servers: {}\n", "servers: { }\n", "servers: {}", "servers: {x: {a: 1}}\nb: 1\n", "servers: {x: {a: \"}\"}, }\n",
	"a: |\n  text\n  more\nservers:\n  x: 1\n", "a: >-\n  folded\n\nb: 'it''s'\n", "a: &x {k: 1}\nb: *x\nservers: &s\n  q: *x\n", "  a: 1\n  b: 2\n",
	"a:\n- 1\n- 2\n", "\"servers\":\n  x: 1\n", "a: \"servers:\\n  a2a: x\"\n", "a: {b: [1, 2, {c: d}]} # c\n", "日本: 語\nservers:\n  語: {a: 1}\n", "servers:\n\n\n  x: 1\n", "a: |+\n  keep\n\n", "a: !!str 1\n",
	"servers:\n  a2a:\n    uri: old # c\n    mine: [1]\n  x: 1\n", "servers:\n  a2a:\n    type: 'x'\n    enabled: \"yes\"\n    headers:\n      X: y\n# end\n",
}

// yamlRefused are entries that are written in a way that is not edited.
var yamlRefused = []string{
	"servers: {a2a: {type: streamable_http}}\n", "servers:\n  a2a:\n    headers: {X: y}\n", "servers:\n  a2a: {}\n", "{servers: {}}\n", "servers: &x {}\na: *x\n",
	"servers:\n  a2a:\n    uri: |\n      old\n", "servers: null\n", "a: |\n  text", "servers:\n  a2a: text\n", "a: 1\n...\n",
}

func TestYAMLAddRemove(t *testing.T) {
	t.Parallel()
	for _, f := range yamlFiles {
		checkEdit(t, YAML, []byte(f), yamlProbe, decodeYAML)
	}
	for _, f := range yamlRefused {
		if out, err := Add(YAML, []byte(f), yamlProbe); err == nil {
			t.Errorf("Add(%q) = %q, want an error", f, out)
		} else {
			fuzzError(t, YAML, []byte(f), err)
		}
	}
}

func decodeYAML(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatalf("%q does not parse: %v", text, err)
	}
	m, _ := generic(v).(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	return m
}

// generic gives every key as text and every number as json.Number.
func generic(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = generic(v[k])
		}
	case map[any]any:
		m := map[string]any{}
		for k := range v {
			m[fmt.Sprint(k)] = generic(v[k])
		}
		return m
	case []any:
		for i := range v {
			v[i] = generic(v[i])
		}
	case int, float64, int64, uint64:
		return json.Number(fmt.Sprint(v))
	}
	return v
}

func FuzzYAML(f *testing.F) {
	for _, s := range append(yamlFiles, yamlRefused...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 4096 || bytes.Count(file, []byte{'&'}) > 8 {
			t.Skip() // the parser is slow on nested aliases
		}
		if _, err := Add(YAML, file, yamlProbe); err != nil {
			fuzzError(t, YAML, file, err)
			return
		}
		checkEdit(t, YAML, file, yamlProbe, decodeYAML)
	})
}
