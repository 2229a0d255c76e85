package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"a2agate/tools"
)

func TestDoubledHeaders(t *testing.T) {
	s := newServer(t, echo, nil)
	body := modernBody("1", "tools/call", callTool)
	for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		r := modernPost(body)
		r.Header[name] = append(r.Header[name], r.Header[name][0])
		if w := do(s, r); w.Code != 400 || code(t, w) != -32020 {
			t.Errorf("%s twice: %d %s", name, w.Code, w.Body)
		}
		r = modernPost(body)
		r.Header[name] = []string{r.Header[name][0] + "\x7f"}
		if w := do(s, r); w.Code != 400 {
			t.Errorf("%s with a control character: %d %s", name, w.Code, w.Body)
		}
		r = modernPost(body)
		r.Header[name] = []string{"ü"}
		if w := do(s, r); w.Code != 400 {
			t.Errorf("%s not in ASCII: %d %s", name, w.Code, w.Body)
		}
	}
}

// A name that no header can carry travels in base64.
func TestNameInBase64(t *testing.T) {
	s := newServer(t, echo, nil)
	body := modernBody("1", "resources/read", `"uri":"a2a://tasks/tk_ü/artifacts/a1"`)
	if w := do(s, modernPost(body, "Mcp-Name", "=?base64?YTJhOi8vdGFza3MvdGtfw7wvYXJ0aWZhY3RzL2Ex?=")); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if _, ok := decodeSentinel("=?base64?YR==?="); ok {
		t.Error("base64 with spare bits passes")
	}
	if w := do(s, modernPost(body, "Mcp-Name", "a2a://tasks/tk_ü/artifacts/a1")); w.Code != 400 || code(t, w) != -32020 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestOptionalTaskName(t *testing.T) {
	body := modernBodyWith("1", "tasks/get", `"taskId":"tk_1"`, metaOf(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, ""))
	s := newServer(t, echo, func(o *Options) { o.OptionalTaskName = true })
	r := modernPost(body)
	r.Header.Del("Mcp-Name")
	if w := do(s, r); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := do(s, modernPost(body, "Mcp-Name", "tk_2")); w.Code != 400 || code(t, w) != -32020 {
		t.Errorf("a wrong name is still wrong: %d %s", w.Code, w.Body)
	}
	r = modernPost(modernBody("1", "tools/call", callTool))
	r.Header.Del("Mcp-Name")
	if w := do(s, r); w.Code != 400 {
		t.Errorf("only tasks/* may lack it: %d", w.Code)
	}
}

func TestWithoutAnnotations(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object"}`: `{"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`:               `{"type":"object","properties":{"a":{"type":"string"}}}`,
		`{"properties":{"a":{"x-mcp-header":"A","type":"string"}},"type":"object"}`:               `{"properties":{"a":{"type":"string"}},"type":"object"}`,
		`{"properties":{"a":{"x-mcp-header":"A"}},"type":"object"}`:                               `{"properties":{"a":{}},"type":"object"}`,
		`{ "properties": { "a": { "type": "string" , "x-mcp-header" : "A" , "title":"t" } } }`:    `{ "properties": { "a": { "type": "string" , "title":"t" } } }`,
		`{"properties":{"x-mcp-header":{"type":"string","x-mcp-header":"A"}},"type":"object"}`:    `{"properties":{"x-mcp-header":{"type":"string"}},"type":"object"}`,
		`{"const":{"x-mcp-header":"A"},"default":{"x-mcp-header":1},"enum":[{"x-mcp-header":2}]}`: `{"const":{"x-mcp-header":"A"},"default":{"x-mcp-header":1},"enum":[{"x-mcp-header":2}]}`,
		`{"items":[{"x-mcp-header":"A"},{"x-mcp-header":"B","y":1}]}`:                             `{"items":[{},{"y":1}]}`,
		`{"a":{"x-mcp-header":"A","x-mcp-header":"B","y":1}}`:                                     `{"a":{"y":1}}`,
		`{"a":{"y":1,"x-mcp-header":"A","x-mcp-header":"B"}}`:                                     `{"a":{"y":1}}`,
		`{"a":{"x-mcp-h\u0065ader":"A","y":1}}`:                                                   `{"a":{"y":1}}`,
		`{"x-mcp-header":{"x-mcp-header":"B"},"a":{"x-mcp-header":"C"}}`:                          `{"a":{}}`,
		`{"$defs":{"x-mcp-header":{"x-mcp-header":"C"}}}`:                                         `{"$defs":{"x-mcp-header":{}}}`,
	} {
		if got := withoutAnnotations(json.RawMessage(in)); string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// Annotations reach a client only with paramHeaders, and only legal ones
// (MCP 2026-07-28, tools).
func TestAnnotationsInLists(t *testing.T) {
	property := func(p string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"a":` + p + `}}`)
	}
	legal := property(`{"type":"string","x-mcp-header":"A"}`)
	for name, schema := range map[string]json.RawMessage{
		"number":          property(`{"type":"number","x-mcp-header":"A"}`),
		"nullable":        property(`{"type":["string","null"],"x-mcp-header":"A"}`),
		"empty":           property(`{"type":"string","x-mcp-header":""}`),
		"no token":        property(`{"type":"string","x-mcp-header":"A B"}`),
		"not a string":    property(`{"type":"string","x-mcp-header":5}`),
		"in items":        property(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`),
		"in oneOf":        property(`{"oneOf":[{"type":"string","x-mcp-header":"A"}]}`),
		"at the root":     json.RawMessage(`{"type":"object","x-mcp-header":"A"}`),
		"in $defs":        json.RawMessage(`{"type":"object","$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`),
		"twice in a case": json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`),
	} {
		listed := listedSchema(t, schema, true)
		if bytes.Contains(listed, []byte("x-mcp-header")) {
			t.Errorf("%s: %s", name, listed)
		}
	}
	if got := listedSchema(t, legal, true); string(got) != string(legal) {
		t.Errorf("with paramHeaders: %s", got)
	}
	if got := listedSchema(t, legal, false); strings.Contains(string(got), "x-mcp-header") {
		t.Errorf("without paramHeaders: %s", got)
	}
	// Without the annotation nothing is checked.
	s := serverWithSchema(t, legal, false)
	if w := do(s, modernPost(modernBody("1", "tools/call", `"name":"t","arguments":{"a":"x"}`))); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func serverWithSchema(t *testing.T, schema json.RawMessage, paramHeaders bool) *Server {
	return newServer(t, echo, func(o *Options) {
		o.ParamHeaders = paramHeaders
		o.Catalogues = newCatalogues(&tools.Catalogue{Tools: []tools.Tool{{Name: "t", Description: "d", InputSchema: schema}}})
	})
}

func listedSchema(t *testing.T, schema json.RawMessage, paramHeaders bool) json.RawMessage {
	t.Helper()
	w := do(serverWithSchema(t, schema, paramHeaders), modernPost(modernBody("1", "tools/list", "")))
	var m struct {
		Result struct {
			Tools []struct{ InputSchema json.RawMessage }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || len(m.Result.Tools) != 1 {
		t.Fatalf("%v %s", err, w.Body)
	}
	return m.Result.Tools[0].InputSchema
}

func TestSamePrimitive(t *testing.T) {
	for _, tt := range []struct {
		header, raw string
		want        bool
	}{
		{"a", `"a"`, true}, {"a", `"\u0061"`, true}, {"A", `"a"`, false}, {"", `""`, true}, {"true", "true", true}, {"True", "true", false},
		{"42", "42", true}, {"42.0", "42", true}, {"4.2e1", "42", true}, {"42", "42.0", true}, {"42.5", "42.5", false}, {"1_0", "10", false}, {"0x2a", "42", false},
		{"Inf", "1", false}, {"9007199254740991", "9007199254740991", true}, {"9007199254740992", "9007199254740992", false}, {"-1", "-1", true}, {"42", `"42"`, true},
		{"x", "[1]", false}, {"x", "{}", false}, {" 42", "42", false}, {"", "1", false},
	} {
		if got := samePrimitive(tt.header, json.RawMessage(tt.raw)); got != tt.want {
			t.Errorf("%q %s: %v", tt.header, tt.raw, got)
		}
	}
}

// ParamHeader of a header that stands there twice equals nothing.
func TestDoubledParamHeader(t *testing.T) {
	s := newServer(t, echo, func(o *Options) {
		o.ParamHeaders = true
		o.Catalogues = newCatalogues(&tools.Catalogue{Tools: []tools.Tool{annotatedTool()}})
	})
	r := modernPost(modernBody("1", "tools/call", `"name":"annotated","arguments":{"agent":"x"}`))
	r.Header[http.CanonicalHeaderKey("Mcp-Param-Agent")] = []string{"x", "x"}
	if w := do(s, r); w.Code != 400 || code(t, w) != -32020 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func FuzzWithoutAnnotations(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"x-mcp-header":"A","type":"string"}},"x-mcp-header":[{}]}`))
	f.Add([]byte(`{"a":[{"x-mcp-header":{"x-mcp-header":1}},{"default":{"x-mcp-header":1}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		out := withoutAnnotations(raw)
		if !json.Valid(out) {
			t.Fatalf("%s became %s", raw, out)
		}
		if again := withoutAnnotations(out); !bytes.Equal(again, out) {
			t.Fatalf("%s became %s, then %s", raw, out, again)
		}
	})
}
