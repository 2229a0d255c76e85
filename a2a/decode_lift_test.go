package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// decodeFast is the fast pass of decoder.event, with or without lifting.
func decodeFast(body []byte, proto, lifting bool) (ev Event, odd bool, n int, err error) {
	rest, values := body, lifted(nil)
	if lifting {
		rest, values = lift(body, 0, 2)
	}
	var w wireReply
	if err := json.Unmarshal(rest, &w); err != nil {
		return Event{}, false, len(values), fmt.Errorf("JSON: %w", err)
	}
	m := modeller{proto: proto, lifted: values}
	ev, err = decoder{id: "7", proto: proto}.settle(&w, &m)
	return ev, m.odd, len(values), err
}

// checkLift compares the two ways of decoding, and returns how many values
// were lifted.
func checkLift(t *testing.T, body []byte, proto bool) int {
	t.Helper()
	want, wantOdd, _, wantErr := decodeFast(body, proto, false)
	got, odd, n, err := decodeFast(body, proto, true)
	if (err == nil) != (wantErr == nil) || odd != wantOdd || !reflect.DeepEqual(got, want) {
		t.Fatalf("%.300s\n lifted %+v, %v, %v\nas it is %+v, %v, %v", body, got, odd, err, want, wantOdd, wantErr)
	}
	if n > 0 && !json.Valid(body) {
		t.Fatalf("lifted from what is no JSON: %.300s", body)
	}
	return n
}

func TestLift(t *testing.T) {
	part := func(data string) string { return `{"kind":"data","data":` + data + `}` }
	task := func(parts, more string) string {
		return `{"jsonrpc":"2.0","id":"7","result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[` + parts + `]` + more + `}]}}}`
	}
	deep := strings.Repeat("[", 63) + strings.Repeat("]", 63)
	for _, tt := range []struct {
		name, body string
		lifted     int
	}{
		{"one value", task(part(`{"a": [1, 2.50e+3, -0, true, false, null, "\u00e9\"\\ é"]}`), ""), 1},
		{"several", task(part(`{"a":1}`)+`,{"text":"x"},`+part(` [1] `)+`,{"data":{"b":2}}`, ""), 3},
		{"blanks everywhere", "\n " + strings.ReplaceAll(task(part(`{"a":1}`), ""), ":", " :\t") + "\r\n", 1},
		{"scalars stay", task(part(`"a long string"`)+","+part("12345")+","+part("null"), ""), 0},
		{"metadata stays", task(part("1"), `,"metadata":{"parts":[{"data":{"a":1}}],"data":{"a":1}}`), 0},
		{"a part's metadata stays", task(`{"text":"x","metadata":{"data":{"a":1}}}`, ""), 0},
		{"data inside data", task(part(`{"data":{"data":[1]}}`), ""), 1},
		{"twice in one part", task(`{"data":{"a":1},"data":{"b":2}}`, ""), 2},
		{"another case", task(`{"Data":{"a":1}}`, ""), 0},
		{"both cases", task(`{"data":{"a":1},"Data":{"b":2}}`, ""), 1},
		{"a forged mark", task(part(`"a2agate lifted 0"`)+","+part(`{"a":1}`), ""), 0},
		{"a mark in a text", task(`{"text":"say \"a2agate lifted 0\""},`+part(`{"a":1}`), ""), 0},
		{"a mark in the value", task(part(`{"a":"a2agate lifted 0"}`), ""), 1},
		{"a mark in other bytes", task(part(`"\u00612agate lifted 0"`)+","+part(`{"a":1}`), ""), 1},
		{"a flat message", `{"kind":"message","messageId":"m","role":"agent","parts":[` + part(`{"a":1}`) + `]}`, 1},
		{"an update", `{"id":"7","result":{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[` + part(`{"a":1}`) + `]}}}}`, 1},
		{"history and status", `{"result":{"id":"t","contextId":"c","kind":"task","status":{"state":"working","message":{"parts":[` + part(`[1]`) + `]}},"history":[{"parts":[` + part(`[2]`) + `]}]}}`, 2},
		{"the proto's data", `{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED","update":{"content":[{"data":{"data":{"a":1}}}]}}}}`, 1},
		{"an error's data", `{"id":"7","error":{"code":-32001,"message":"no","data":{"a":1}}}`, 0},
		{"as deep as a word", task(part(deep), ""), 1},
		{"deeper", task(part("["+deep+"]")+","+part("["+"["+deep+"]"+"]"), ""), 0},
		{"nested tasks", strings.Repeat(`{"task":`, 30) + task(part(`{"a":1}`), "") + strings.Repeat("}", 30), 0},
		{"empty containers", task(part(`{}`)+","+part(`[ ]`)+`,{"data":{"a":{},"b":[]}}`, ""), 3},
		{"something after it", task(part(`{"a":1}`), "") + "x", 0},
		{"an array", `[` + task(part(`{"a":1}`), "") + `]`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, proto := range []bool{false, true} {
				if n := checkLift(t, []byte(tt.body), proto); n != tt.lifted {
					t.Errorf("%d lifted, want %d", n, tt.lifted)
				}
			}
		})
	}
}

// TestLiftKnowsJSON: nothing is lifted from what package json refuses.
func TestLiftKnowsJSON(t *testing.T) {
	const before, after = `{"task":{"id":"t","history":[{"parts":[{"data":{"a":1}},{"data":`, `}]}]}}`
	for _, value := range []string{
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{a:1}`, `{"a":1 "b":2}`, `[1,]`, `[1 2]`, `[`, `[1}`, `{"a":1]`, `01`, `-`, `1.`, `.5`, `1e`, `1e+`, `+1`, `tru`, `nul`, `nil`,
		`"\x"`, `"\u12g4"`, `"\u12"`, "\"\n\"", `"`, `"\`, `'a'`, ``, `]`, `NaN`, `[1,,2]`, `{"a":1,"b"}`, `{"a" 1}`, `{1:2}`, `[tru]`, `{"a":"` + "\x01" + `"}`,
	} {
		body := []byte(before + value + after)
		if rest, values := lift(body, 0, 2); values != nil || !bytes.Equal(rest, body) {
			t.Errorf("%s: lifted %s", value, values)
		}
		for i := range body { // cut anywhere
			if _, values := lift(body[:i], 0, 2); values != nil {
				t.Fatalf("lifted from %s", body[:i])
			}
		}
	}
}

// A large answer goes through decoder.event with its data byte for byte, in
// memory of its own.
func TestLargeDataIsAsSent(t *testing.T) {
	data := `{"n": 12345678901234567890.10, "z":"\u00e9\/", "a":[` + strings.Repeat(`{"k": 1.0e5},`, 2000) + `null] }`
	body := []byte(`{"jsonrpc":"2.0","id":"7","result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"data":` + data + `,"mediaType":"application/json"}]}]}}}`)
	ev, err := decoder{id: "7"}.event(body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	if p := ev.Task.Artifacts[0].Parts[0]; string(p.Data) != data || p.MediaType != "application/json" {
		t.Errorf("%.100s", p.Data)
	}
}

func FuzzLift(f *testing.F) {
	for _, body := range corpus(f) {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, proto bool) {
		clean, _ := cleanBody(body)
		checkLift(t, clean, proto)
	})
}

// BenchmarkLift decodes a 64 KiB data part with lifting and without, side by
// side.
func BenchmarkLift(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":"7","result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"data":{"rows":[` +
		strings.TrimSuffix(strings.Repeat(`{"id":1234,"name":"a name of usual length","price":12.5,"sold":true},`, 900), ",") + `]}}]}]}}}`)
	for _, lifting := range []bool{false, true} {
		b.Run(fmt.Sprintf("lifting=%v", lifting), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, err := decodeFast(body, false, lifting); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
