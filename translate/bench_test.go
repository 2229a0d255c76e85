package translate

import (
	"encoding/json"
	"strings"
	"testing"

	"a2agate/a2a"
)

func dataTask(size int) (*a2a.Task, Options) {
	raw := json.RawMessage(`{"rows":[` + strings.Repeat(`{"id":12345,"name":"Ada <ada@example.test>","total":12.50},`, size/58) + `null]}`)
	t := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{
		{ArtifactID: "a1", Name: "rows", Parts: []a2a.Part{{Kind: a2a.PartData, Data: raw}}},
	}}
	return t, Options{Agent: "x", Handles: Handles{Context: "cx_1", Task: "tk_1"}, ResultChars: 2 * size}
}

// The aim: at most 100 µs and a handful of allocations to encode 64 KiB.
func BenchmarkEncode64KiB(b *testing.B) {
	task, o := dataTask(64 << 10)
	r := ResultFromTask(task, o)
	dst := AppendResult(nil, r, Rev20260728, serverInfo)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendResult(dst[:0], r, Rev20260728, serverInfo)
	}
}

func BenchmarkResult64KiB(b *testing.B) {
	task, o := dataTask(64 << 10)
	b.SetBytes(64 << 10)
	b.ReportAllocs()
	for b.Loop() {
		AppendResult(nil, ResultFromTask(task, o), Rev20260728, serverInfo)
	}
}

func BenchmarkResultSmall(b *testing.B) {
	m := &a2a.Message{MessageID: "m1", Parts: []a2a.Part{{Kind: a2a.PartText, Text: "Acme sent it."}}}
	o := Options{Agent: "x", Handles: Handles{Context: "cx_1"}}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendResult(dst[:0], ResultFromMessage(m, o), Rev20260728, serverInfo)
	}
}

func BenchmarkLongText(b *testing.B) {
	task := textTask(strings.Repeat("ein Satz, nicht sehr lang, überall\n", 12_000))
	b.ReportAllocs()
	for b.Loop() {
		AppendResult(nil, ResultFromTask(task, opts), Rev20260728, serverInfo)
	}
}

func BenchmarkSchemaProblem(b *testing.B) {
	raw := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","minimum":0}},"required":["a"]}`)
	b.ReportAllocs()
	for b.Loop() {
		SchemaProblem(raw)
	}
}
