package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"a2agate/translate"
)

func TestEnvelopeParts(t *testing.T) {
	e, err := ParseEnvelope([]byte(` { "id" : 18446744073709551616 , "params":{"_meta":{"progressToken":"t","traceparent":"p","tracestate":"s",
		"io.modelcontextprotocol/clientInfo":{"name":"x"},"io.modelcontextprotocol/logLevel":"debug","other":[1]},
		"name":"n","arguments":{"a":[1,{"b":null}]},"unknown":{"Name":1},"requestState":"rs"},"method":"tools/call","jsonrpc":"2.0"} `), 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][2]string{
		"id": {string(e.ID), "18446744073709551616"}, "method": {e.Method, "tools/call"}, "name": {string(e.P.Name), `"n"`},
		"arguments": {string(e.P.Arguments), `{"a":[1,{"b":null}]}`}, "token": {string(e.Meta.ProgressToken), `"t"`},
		"trace": {string(e.Meta.TraceParent) + string(e.Meta.TraceState), `"p""s"`}, "level": {string(e.Meta.LogLevel), `"debug"`},
		"state": {string(e.P.RequestState), `"rs"`},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %q, want %q", name, got[0], got[1])
		}
	}
	if e.Kind != KindRequest {
		t.Errorf("kind %d", e.Kind)
	}
	if e, err = ParseEnvelope([]byte(`{"jsonrpc":"2.0","id":"x","error":{"code":1}}`), 0); err != nil || e.Kind != KindResponse || string(e.Err) != `{"code":1}` {
		t.Errorf("%+v %v", e, err)
	}
	if e, err = ParseEnvelope([]byte(`{"jsonrpc":"2.0","method":"m","params":null}`), 0); err != nil || e.Kind != KindNotification || e.Params != nil {
		t.Errorf("%+v %v", e, err)
	}
}

// Keys that another reader could take for a known one are refused, on every
// level the gateway reads (CVE-2026-27896 is the class).
func TestEnvelopeKeys(t *testing.T) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	for name, body := range map[string]string{
		"ID":               `{"jsonrpc":"2.0","id":1,"ID":2,"method":"m"}`,
		"id twice":         `{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}`,
		"Params":           `{"jsonrpc":"2.0","id":1,"method":"m","Params":{}}`,
		"params twice":     `{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}`,
		"Kelvin sign":      `{"jsonrpc":"2.0","id":1,"method":"m","params":{"tas\u212aId":"x"}}`,
		"long s":           `{"jsonrpc":"2.0","id":1,"method":"m","param\u017f":{}}`,
		"escaped twice":    `{"jsonrpc":"2.0","id":1,"method":"m","m\u0065thod":"n"}`,
		"_Meta":            `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_Meta":{}}}`,
		"_meta twice":      `{"jsonrpc":"2.0","id":1,"method":"m","params":{` + meta + `,` + meta + `}}`,
		"version in case":  `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.modelcontextprotocol/ProtocolVersion":"x"}}}`,
		"version twice":    `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x","io.modelcontextprotocol/protocolVersion":"y"}}}`,
		"arguments twice":  `{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{},"arguments":{}}}`,
		"Arguments":        `{"jsonrpc":"2.0","id":1,"method":"m","params":{"Arguments":{}}}`,
		"token in case":    `{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"ProgressToken":1}}}`,
		"jsonRPC":          `{"jsonRPC":"2.0","jsonrpc":"2.0","id":1,"method":"m"}`,
		"after the error":  `{"Method":"x","jsonrpc":"2.0","method":"m","id":1}`,
		"result and error": `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`,
		"too long an id":   `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1024) + `","method":"m"}`,
	} {
		e, err := ParseEnvelope([]byte(body), 0)
		if err == nil || err.Code != translate.CodeInvalidRequest {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name != "too long an id" && string(e.ID) != "1" {
			t.Errorf("%s: the id is lost: %q", name, e.ID)
		}
	}
	for name, body := range map[string]string{
		"keys inside arguments are free": `{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"Name":1,"name":2,"name":3}}}`,
		"unknown keys are free":          `{"jsonrpc":"2.0","id":1,"method":"m","extra":1,"extra":2}`,
	} {
		if _, err := ParseEnvelope([]byte(body), 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnvelopeDepth(t *testing.T) {
	nested := func(n int) string {
		return `{"jsonrpc":"2.0","id":7,"method":"m","params":{"arguments":` + strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2) + `}}`
	}
	if _, err := ParseEnvelope([]byte(nested(498)), 0); err != nil {
		t.Errorf("500 levels: %v", err)
	}
	lists := `{"jsonrpc":"2.0","id":7,"method":"m","params":{"arguments":` + strings.Repeat("[", 499) + strings.Repeat("]", 499) + `}}`
	if _, err := ParseEnvelope([]byte(lists), 0); err == nil {
		t.Error("501 levels pass")
	}
	for _, n := range []int{500, 200_000} {
		e, err := ParseEnvelope([]byte(nested(n)), 0)
		if err == nil || err.Code != translate.CodeInvalidRequest || string(e.ID) != "7" || !strings.Contains(err.Message, "deeper than 500 levels") {
			t.Errorf("%d levels: %v %q", n, err, e.ID)
		}
	}
	if _, err := ParseEnvelope([]byte(strings.Repeat("[", 1_000_000)), 0); err == nil || err.Code != translate.CodeParse {
		t.Errorf("open brackets: %v", err)
	}
}

func TestNotJSON(t *testing.T) {
	for _, body := range []string{"", " ", "{", `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `[1,]`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":1e}`, `{"a":-}`,
		`{"a":tru}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u12"}`, "{\"a\":\"\n\"}", `{"a":'b'}`, `{a:1}`, `{} x`, `{}{}`, "\xef\xbb\xbf{}", `{"a":"` + "\xff" + `"}`, "{\"a\":1\x00}", `{"a":nul}`,
		`{"a":[1 2]}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"params":{"_meta":{}`, `{"params":{"_meta":{},}}`, "nul", `"abc`, `{"a":1}]`} {
		if _, err := ParseEnvelope([]byte(body), 0); err == nil || err.Code != translate.CodeParse {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestBatchLimits(t *testing.T) {
	one := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if items, err := parseBatch([]byte("["+strings.Repeat(one+",", 63)+one+"]"), 0, 64); err != nil || len(items) != 64 {
		t.Errorf("%d %v", len(items), err)
	}
	for name, body := range map[string]string{
		"too many": "[" + strings.Repeat(one+",", 64) + one + "]", "empty": "[ ]", "deep": "[" + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "]",
	} {
		if _, err := parseBatch([]byte(body), 0, 64); err == nil || err.Code != translate.CodeInvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBatchIsAnArray: what closes a bracket that nobody opened is no batch.
func TestBatchIsAnArray(t *testing.T) {
	for _, body := range []string{`{}]`, `]`, ``, `{}`, `1]`} {
		if items, err := parseBatch([]byte(body), 0, 64); err == nil || err.Code != translate.CodeParse {
			t.Errorf("%q: %v %v", body, items, err)
		}
	}
}

// What is accepted is JSON, and nothing that is JSON is called a parse error.
func FuzzEnvelope(f *testing.F) {
	files, err := filepath.Glob("testdata/conversations/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range txtar.Parse(raw).Files {
			if _, body, ok := bytes.Cut(section.Data, []byte("\n\n")); ok {
				f.Add(bytes.ReplaceAll(body, []byte("META"), []byte(metaOf(`{"elicitation":{}}`, ""))))
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		valid := json.Valid(body) && utf8.Valid(body)
		e, err := ParseEnvelope(body, 0)
		if err != nil && (err.Code == translate.CodeParse) == valid {
			t.Fatalf("valid %v, but %v", valid, err)
		}
		if err == nil && !valid {
			t.Fatal("accepted what is no JSON")
		}
		if e.ID != nil && !validID(e.ID) {
			t.Fatalf("id %q", e.ID)
		}
		if _, err := parseBatch(body, 0, 64); err == nil && !valid {
			t.Fatal("accepted a batch that is no JSON")
		}
		if err != nil {
			return
		}
		checkAgainstMap(t, body, e)
		modernClient(e.Meta.ClientCapabilities)
		_, _ = parseFilter(e.P.Notifications)
	})
}

// checkAgainstMap compares an envelope with what encoding/json reads into
// maps, whose keys are exact.
func checkAgainstMap(t *testing.T, body []byte, e *Envelope) {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	var method string
	if e.Kind != KindResponse && (json.Unmarshal(m["method"], &method) != nil || method != e.Method) {
		t.Fatalf("method %q, encoding/json says %s", e.Method, m["method"])
	}
	if string(m["id"]) != string(e.ID) {
		t.Fatalf("id %q, encoding/json says %q", e.ID, m["id"])
	}
	var p map[string]json.RawMessage
	if json.Unmarshal(m["params"], &p) == nil && p != nil {
		if string(p["name"]) != string(e.P.Name) || string(p["arguments"]) != string(e.P.Arguments) {
			t.Fatalf("params %+v, encoding/json says %s", e.P, m["params"])
		}
	}
}
