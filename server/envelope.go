package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"a2agate/translate"
)

// Kind is what a JSON-RPC message is.
type Kind uint8

// The kinds of message.
const (
	KindRequest Kind = iota
	KindNotification
	KindResponse
)

// DefaultDepth is how deep a message may nest.
const DefaultDepth = 500

// maxIDBytes bounds a request id: it is written back on every event of a
// listen stream.
const maxIDBytes = 1024

// Envelope is one JSON-RPC message, parsed once and strictly (JSON-RPC 2.0;
// MCP 2026-07-28, basic). All raw fields are parts of the body it was parsed
// from; nil means that the member is absent.
type Envelope struct {
	Kind   Kind
	Method string
	// ID is the id as it was written: a string or integer token. nil on a
	// notification and where the id was not legible.
	ID     json.RawMessage
	Params json.RawMessage
	P      Params
	Meta   Meta
	// Result and Err are the outcome that a response carries.
	Result json.RawMessage
	Err    json.RawMessage

	paramsBad bool // params is there and neither an object nor null
	metaBad   bool // _meta is there and neither an object nor null
}

// Params are the members of params that the gateway reads, of all methods.
type Params struct {
	Name, URI, TaskID, Arguments, Cursor json.RawMessage
	InputResponses, RequestState         json.RawMessage
	Notifications, RequestID             json.RawMessage
	ProtocolVersion, Capabilities, Ref   json.RawMessage
}

// Meta are the members of params._meta that the gateway reads.
type Meta struct {
	ProtocolVersion, ClientCapabilities json.RawMessage
	LogLevel, ProgressToken             json.RawMessage
	TraceParent, TraceState             json.RawMessage
}

// The keys of params._meta (MCP 2026-07-28, basic).
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClientInfo   = "io.modelcontextprotocol/clientInfo"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaServerInfo   = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

var (
	envelopeKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramsKeys   = []string{"_meta", "name", "uri", "taskId", "arguments", "cursor", "inputResponses", "requestState",
		"notifications", "requestId", "protocolVersion", "capabilities", "ref", "reason", "clientInfo", "argument", "context"}
	metaKeys = []string{metaVersion, metaCapabilities, metaClientInfo, metaLogLevel, "progressToken", "traceparent", "tracestate"}
)

// ParseEnvelope parses one message. depth bounds its nesting; 0 takes
// DefaultDepth. A key that stands twice, or that differs from a known key only
// in case, is refused: two readers of the message could take it for different
// things. On an error the envelope has the ID if it was legible.
func ParseEnvelope(body []byte, depth int) (*Envelope, *translate.Error) {
	e := new(Envelope)
	return e, e.parse(body, depth)
}

func (e *Envelope) parse(body []byte, depth int) *translate.Error {
	s := newScanner(body)
	s.ws()
	var problem string
	if s.peek() == '{' {
		problem = e.scan(&s)
	} else {
		s.value()
		problem = "a message is a JSON object"
	}
	if !s.end() || !utf8.Valid(body) {
		*e = Envelope{}
		return parseError(s.pos)
	}
	if depth == 0 {
		depth = DefaultDepth
	}
	if s.deepest > depth && problem == "" {
		problem = fmt.Sprintf("the message nests deeper than %d levels", depth)
	}
	if problem != "" {
		return &translate.Error{Code: translate.CodeInvalidRequest, Message: "invalid request: " + problem}
	}
	return nil
}

func parseError(pos int) *translate.Error {
	return &translate.Error{Code: translate.CodeParse, Message: fmt.Sprintf("parse error: the body is not JSON in UTF-8 (near byte %d)", pos)}
}

// scan reads the object that starts here into e and returns the first thing
// that is wrong with it, "" for nothing. It goes on after a finding, so that
// the id is known.
func (e *Envelope) scan(s *scanner) (problem string) {
	note := func(p string) {
		if problem == "" {
			problem = p
		}
	}
	var version, method, id json.RawMessage
	seen := uint32(0)
	s.open('{')
	for n := 0; ; n++ {
		key, ok := s.member(n)
		if !ok {
			break
		}
		note(checkKey(key, envelopeKeys, &seen))
		switch string(key) {
		case "jsonrpc":
			version = s.value()
		case "id":
			id = s.value()
		case "method":
			method = s.value()
		case "params":
			note(e.scanParams(s))
		case "result":
			e.Result = s.value()
		case "error":
			e.Err = s.value()
		default:
			s.value()
		}
	}
	if s.bad {
		return problem
	}
	if v, ok := stringValue(version); !ok || v != "2.0" {
		note(`jsonrpc must be "2.0"`)
	}
	if id != nil && !validID(id) {
		note("id must be a string or an integer, of at most 1024 bytes")
		id = nil
	}
	e.ID = id
	note(e.classify(method))
	return problem
}

// classify sets Kind and Method.
func (e *Envelope) classify(method json.RawMessage) (problem string) {
	if method == nil {
		e.Kind = KindResponse
		if (e.Result == nil) == (e.Err == nil) {
			return "a message has a method, or one of result and error"
		}
		if e.ID == nil {
			return "a response has the id of its request"
		}
		return ""
	}
	if e.ID == nil {
		e.Kind = KindNotification
	}
	if e.Result != nil || e.Err != nil {
		return "a message with a method has neither result nor error"
	}
	m, ok := methodName(method)
	if !ok || m == "" {
		return "method must be a non-empty string"
	}
	e.Method = m
	return ""
}

// scanParams reads params, descending into _meta on the way.
func (e *Envelope) scanParams(s *scanner) (problem string) {
	start := s.pos
	if !s.open('{') {
		v := s.value()
		e.paramsBad = !isNull(v)
		return ""
	}
	seen := uint32(0)
	for n := 0; ; n++ {
		key, ok := s.member(n)
		if !ok {
			break
		}
		if p := checkKey(key, paramsKeys, &seen); p != "" && problem == "" {
			problem = "params: " + p
		}
		if string(key) == "_meta" {
			if p := e.scanMeta(s); p != "" && problem == "" {
				problem = "params._meta: " + p
			}
			continue
		}
		v := s.value()
		if f := e.P.field(key); f != nil {
			*f = v
		}
	}
	e.Params = s.buf[start:s.pos:s.pos]
	return problem
}

func (p *Params) field(key []byte) *json.RawMessage {
	switch string(key) {
	case "name":
		return &p.Name
	case "uri":
		return &p.URI
	case "taskId":
		return &p.TaskID
	case "arguments":
		return &p.Arguments
	case "cursor":
		return &p.Cursor
	case "inputResponses":
		return &p.InputResponses
	case "requestState":
		return &p.RequestState
	case "notifications":
		return &p.Notifications
	case "requestId":
		return &p.RequestID
	case "protocolVersion":
		return &p.ProtocolVersion
	case "capabilities":
		return &p.Capabilities
	case "ref":
		return &p.Ref
	}
	return nil
}

func (e *Envelope) scanMeta(s *scanner) (problem string) {
	if !s.open('{') {
		e.metaBad = !isNull(s.value())
		return ""
	}
	seen := uint32(0)
	for n := 0; ; n++ {
		key, ok := s.member(n)
		if !ok {
			return problem
		}
		if p := checkKey(key, metaKeys, &seen); p != "" && problem == "" {
			problem = p
		}
		v := s.value()
		switch string(key) {
		case metaVersion:
			e.Meta.ProtocolVersion = v
		case metaCapabilities:
			e.Meta.ClientCapabilities = v
		case metaLogLevel:
			e.Meta.LogLevel = v
		case "progressToken":
			e.Meta.ProgressToken = v
		case "traceparent":
			e.Meta.TraceParent = v
		case "tracestate":
			e.Meta.TraceState = v
		}
	}
}

// checkKey refuses a known key met before and a key that is a known one but
// for its case. seen has one bit for each known key.
func checkKey(key []byte, known []string, seen *uint32) string {
	for i, k := range known {
		if string(key) == k {
			if *seen&(1<<i) != 0 {
				return fmt.Sprintf("%q stands there twice", k)
			}
			*seen |= 1 << i
			return ""
		}
	}
	for _, k := range known {
		if bytes.EqualFold(key, []byte(k)) {
			return fmt.Sprintf("%q must be written %q", key, k)
		}
	}
	return ""
}

// validID takes a string or integer token (MCP 2026-07-28, basic: never null,
// never fractional).
func validID(raw json.RawMessage) bool {
	if len(raw) == 0 || len(raw) > maxIDBytes {
		return false
	}
	if raw[0] == '"' {
		return true
	}
	for i, c := range raw {
		if !(c >= '0' && c <= '9' || c == '-' && i == 0) {
			return false
		}
	}
	return true
}

// methodName decodes a method; the known ones cost no allocation.
func methodName(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	name := unquoteBytes(raw)
	if m, ok := methods[string(name)]; ok {
		return m.name, true
	}
	return string(name), true
}

// isBatch reports whether the body is a JSON array.
func isBatch(body []byte) bool {
	s := newScanner(body)
	s.ws()
	return s.peek() == '['
}

// batchItem is one element of a batch: an envelope or what is wrong with it.
type batchItem struct {
	Envelope
	problem string
}

// parseBatch parses a JSON-RPC batch (MCP 2025-03-26 only) of at most limit
// messages.
func parseBatch(body []byte, depth, limit int) ([]batchItem, *translate.Error) {
	s := newScanner(body)
	s.ws()
	var items []batchItem
	if !s.open('[') {
		return nil, parseError(s.pos)
	}
	for n := 0; s.element(n); n++ {
		var it batchItem
		if s.peek() == '{' {
			it.problem = it.scan(&s)
		} else {
			s.value()
			it.problem = "a message is a JSON object"
		}
		if n < limit {
			items = append(items, it)
		} else if n == limit {
			items = append(items, it) // one more than allowed says "too many"
		}
	}
	if !s.end() || !utf8.Valid(body) {
		return nil, parseError(s.pos)
	}
	if depth == 0 {
		depth = DefaultDepth
	}
	switch {
	case len(items) == 0:
		return nil, &translate.Error{Code: translate.CodeInvalidRequest, Message: "invalid request: the batch is empty"}
	case len(items) > limit:
		return nil, &translate.Error{Code: translate.CodeInvalidRequest, Message: fmt.Sprintf("invalid request: a batch holds at most %d messages", limit)}
	case s.deepest > depth:
		return nil, &translate.Error{Code: translate.CodeInvalidRequest, Message: fmt.Sprintf("invalid request: the batch nests deeper than %d levels", depth)}
	}
	return items, nil
}
