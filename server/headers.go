package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/translate"
)

// The headers of the transport, in the canonical form of net/http.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerSession = "Mcp-Session-Id"
)

func mismatch(format string, args ...any) *translate.Error {
	return &translate.Error{Code: translate.CodeHeaderMismatch, Message: "header mismatch: " + fmt.Sprintf(format, args...)}
}

// single returns the value of a header that may stand there once.
func single(h http.Header, name string) (value string, present bool, err *translate.Error) {
	switch v := h[name]; {
	case len(v) == 0:
		return "", false, nil
	case len(v) > 1:
		return "", true, mismatch("%s stands there %d times", name, len(v))
	case !legalValue(v[0]):
		return "", true, mismatch("%s has characters that a header cannot carry", name)
	default:
		return trimOWS(v[0]), true, nil
	}
}

// trimOWS takes optional white space off, which net/http does on its own but
// other ways of making a request do not (RFC 9110 5.5).
func trimOWS(v string) string { return strings.Trim(v, " \t") }

// legalValue: visible ASCII, space and tab (MCP 2026-07-28, transports).
func legalValue(v string) bool {
	for i := range len(v) {
		if c := v[i]; (c < 0x20 || c > 0x7e) && c != '\t' {
			return false
		}
	}
	return true
}

// checkVersionHeader compares MCP-Protocol-Version with the body's version.
func checkVersionHeader(h http.Header, body string) *translate.Error {
	v, ok, err := single(h, headerVersion)
	switch {
	case err != nil:
		return err
	case !ok:
		return mismatch("MCP-Protocol-Version is missing, the body says %q", body)
	case v != body:
		return mismatch("MCP-Protocol-Version is %q, the body says %q", v, body)
	}
	return nil
}

func checkMethodHeader(h http.Header, method string) *translate.Error {
	v, ok, err := single(h, headerMethod)
	switch {
	case err != nil:
		return err
	case !ok:
		return mismatch("Mcp-Method is missing, the body says %q", method)
	case v != method:
		return mismatch("Mcp-Method is %q, the body says %q", v, method)
	}
	return nil
}

// checkNameHeader compares Mcp-Name with the member of params that the method
// mirrors in it. optional lets the header be absent.
func checkNameHeader(h http.Header, m method, p *Params, optional bool) *translate.Error {
	raw := p.label(m.label)
	want, isString := stringValue(raw)
	v, ok, err := single(h, headerName)
	switch {
	case err != nil:
		return err
	case !isString:
		return nil // the shape of params is refused later, with its own words
	case !ok && optional:
		return nil
	case !ok:
		return mismatch("Mcp-Name is missing, the body says %q", want)
	}
	got, ok := decodeSentinel(v)
	if !ok {
		return mismatch("Mcp-Name is not valid base64 between =?base64? and ?=")
	}
	if got != want {
		return mismatch("Mcp-Name is %q, the body says %q", got, want)
	}
	return nil
}

// label is the raw value that Mcp-Name mirrors.
func (p *Params) label(member string) json.RawMessage {
	switch member {
	case "name":
		return p.Name
	case "uri":
		return p.URI
	case "taskId":
		return p.TaskID
	}
	return nil
}

// decodeSentinel decodes a value written =?base64?…?=; a value without both
// ends of that is literal.
func decodeSentinel(v string) (string, bool) {
	inner, ok := strings.CutPrefix(v, "=?base64?")
	if !ok {
		return v, true
	}
	inner, ok = strings.CutSuffix(inner, "?=")
	if !ok {
		return v, true
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil || strings.ContainsAny(inner, "\r\n") {
		return "", false
	}
	return string(raw), true
}

// checkParamHeaders compares the Mcp-Param-* headers of a tool with the
// arguments they mirror (MCP 2026-07-28, transports).
func checkParamHeaders(bindings []mcp.ParamHeaderBinding, args json.RawMessage, h ParamHeaders) *translate.Error {
	for _, b := range bindings {
		raw := args
		for _, key := range b.Path {
			var twice bool
			if raw, twice = lookup(raw, key); twice {
				return mismatch("argument %q stands there twice", strings.Join(b.Path, "."))
			}
		}
		v, present := h.ParamHeader(b.HeaderName())
		if raw == nil || isNull(raw) {
			if present {
				return mismatch("%s is there, but the argument %q is not", b.HeaderName(), strings.Join(b.Path, "."))
			}
			continue
		}
		if err := checkParamHeader(b, raw, v, present); err != nil {
			return err
		}
	}
	return nil
}

func checkParamHeader(b mcp.ParamHeaderBinding, raw json.RawMessage, v string, present bool) *translate.Error {
	arg := strings.Join(b.Path, ".")
	if !present {
		return mismatch("%s is missing, the argument %q is there", b.HeaderName(), arg)
	}
	if !legalValue(v) {
		return mismatch("%s has characters that a header cannot carry", b.HeaderName())
	}
	got, ok := decodeSentinel(trimOWS(v))
	if !ok {
		return mismatch("%s is not valid base64 between =?base64? and ?=", b.HeaderName())
	}
	if !samePrimitive(got, raw) {
		return mismatch("%s is %q, the argument %q says %s", b.HeaderName(), got, arg, clip(raw, 80))
	}
	return nil
}

// clip is raw for an error message.
func clip(raw json.RawMessage, n int) []byte {
	return bytes.ToValidUTF8(raw[:min(len(raw), n)], nil)
}

// samePrimitive compares a decoded header with a JSON string, boolean or
// integer; integers by value, within ±(2^53−1).
func samePrimitive(header string, raw json.RawMessage) bool {
	if s, ok := stringValue(raw); ok {
		return header == s
	}
	if string(raw) == "true" || string(raw) == "false" {
		return header == string(raw)
	}
	a, okA := safeInteger(header)
	b, okB := safeInteger(string(raw))
	return okA && okB && a == b
}

func safeInteger(text string) (int64, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53-1 || !decimalText(text) {
		return 0, false
	}
	return int64(f), true
}

// decimalText keeps out what ParseFloat reads beyond JSON: hexadecimal,
// underscores, Inf.
func decimalText(text string) bool {
	s := newScanner([]byte(text))
	s.number()
	return s.end()
}

// headerBindings returns the x-mcp-header annotations of a schema, nil when
// one of them breaks the rules (a client then drops the whole tool).
func headerBindings(schema json.RawMessage) []mcp.ParamHeaderBinding {
	tool := &mcp.Tool{RawInputSchema: schema}
	if mcp.ValidateParamHeaderAnnotations(tool) != nil {
		return nil
	}
	bindings := mcp.ExtractParamHeaderBindings(tool)
	// An annotation that is not reached through properties alone is illegal,
	// and not among the bindings.
	cuts := annotationCuts(schema)
	if len(cuts) != len(bindings) {
		return nil
	}
	return bindings
}

const annotation = "x-mcp-header"

func hasAnnotation(schema json.RawMessage) bool {
	// An escape in a key can hide the word, so any escape counts.
	return bytes.Contains(schema, []byte(annotation)) || bytes.Contains(schema, []byte(`\u`))
}

// withoutAnnotations returns the schema without its x-mcp-header members;
// everything else stays as it is, byte for byte.
func withoutAnnotations(schema json.RawMessage) json.RawMessage {
	cuts := annotationCuts(schema)
	if len(cuts) == 0 {
		return schema
	}
	out := make([]byte, 0, len(schema))
	at := 0
	for _, c := range cuts {
		out = append(out, schema[at:c.from]...)
		at = c.to
	}
	return append(out, schema[at:]...)
}

type cut struct{ from, to int }

// annotationCuts finds the x-mcp-header members of a valid schema, in order,
// each with the comma that goes with it.
func annotationCuts(schema json.RawMessage) []cut {
	w := annotationWalk{s: newScanner(schema)}
	w.s.ws()
	w.schema(false, 0)
	return w.cuts
}

type annotationWalk struct {
	s    scanner
	cuts []cut
}

// schema walks one value. names says that its keys are names (of properties,
// of definitions) and not keywords.
func (w *annotationWalk) schema(names bool, level int) {
	switch {
	case level > DefaultDepth:
		w.s.value()
	case w.s.open('['):
		for n := 0; w.s.element(n); n++ {
			w.schema(false, level+1)
		}
	case w.s.open('{'):
		w.object(names, level)
	default:
		w.s.value()
	}
}

func (w *annotationWalk) object(names bool, level int) {
	end := -1    // where the last member that stays ends
	pending := 0 // cuts at the head of the object that wait for their end
	for n := 0; ; n++ {
		key, ok := w.s.member(n)
		if !ok {
			return
		}
		start := w.s.keyAt
		for ; pending > 0; pending-- {
			w.cuts[len(w.cuts)-pending].to = start
		}
		switch {
		case !names && string(key) == annotation:
			w.s.value()
			if end >= 0 {
				w.cuts = append(w.cuts, cut{end, w.s.pos})
				end = w.s.pos
			} else {
				w.cuts = append(w.cuts, cut{start, w.s.pos})
				pending = 1
			}
			continue
		case !names && literalKeyword(key):
			w.s.value()
		default:
			w.schema(!names && namesKeyword(key), level+1)
		}
		end = w.s.pos
	}
}

// namesKeyword: the keywords of JSON Schema whose keys are names.
func namesKeyword(key []byte) bool {
	switch string(key) {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return true
	}
	return false
}

// literalKeyword: the keywords whose values are data.
func literalKeyword(key []byte) bool {
	switch string(key) {
	case "const", "enum", "default", "examples":
		return true
	}
	return false
}
