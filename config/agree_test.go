package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// spots collects every place of a JSON value that can be replaced.
func spots(v any, put func(any), out *[]func(any)) {
	*out = append(*out, put)
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			spots(v[key], func(x any) { v[key] = x }, out)
		}
	case []any:
		for i := range v {
			spots(v[i], func(x any) { v[i] = x }, out)
		}
	}
}

// leaves collects what the corpus has as values.
func leaves(v any, out *[]any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			leaves(v[key], out)
		}
	case []any:
		for _, e := range v {
			leaves(e, out)
		}
	}
	*out = append(*out, v)
}

// Take a good file, put a value of another place or file somewhere, and ask
// both judges: what the checker takes, the schema takes.
func TestSchemaAgreesAtRandom(t *testing.T) {
	t.Parallel()
	s := compiledSchema(t)
	valid := corpus(t, "valid")
	var pool []any
	for _, dir := range []string{"valid", "invalid"} {
		for _, name := range slices.Sorted(maps.Keys(corpus(t, dir))) {
			var v any
			if json.Unmarshal(newSource("", corpus(t, dir)[name]).json, &v) == nil {
				leaves(v, &pool)
			}
		}
	}
	pool = append(pool, "+5s", "-0s", ".5s", "1.h", "1µs", "0", "\nx", "a\n", "${env:TOKEN}", "$${x}", "http://${env:HOST}", "HTTP://x", 1e3, 1.0, -0.0)
	r := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for i := range 300 {
		var file any
		if err := json.Unmarshal(newSource("", valid["everything"]).json, &file); err != nil {
			t.Fatal(err)
		}
		var all []func(any)
		spots(file, func(any) {}, &all)
		all[r.IntN(len(all))](pool[r.IntN(len(pool))])
		text, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		_, checker := Parse(fmt.Sprint(i, ".json"), text, testEnv, testFile)
		schema := againstSchema(s, text)
		if checker == nil {
			accepted++
			if schema != nil {
				t.Errorf("the schema refuses what the checker takes: %#v\n%s", schema, text)
			}
		}
	}
	if accepted < 10 {
		t.Errorf("only %d of 300 files were good", accepted)
	}
}
