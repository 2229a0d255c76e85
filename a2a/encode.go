package a2a

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Requests are written by hand rather than by json.Marshal: raw data and
// metadata then stand byte for byte as the caller gave them, and the four
// shapes (1.0 and 0.3, each over JSON-RPC and REST) stay side by side.

// appendKey appends the name of a member and the comma before it.
func appendKey(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(append(b, '"'), name...)
	return append(b, '"', ':')
}

// appendNext appends the comma before an array element.
func appendNext(b []byte) []byte {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return b
}

// appendField appends a string member unless it is empty.
func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendQuoted(appendKey(b, name), value)
}

// appendRaw appends a raw member unless it is absent.
func appendRaw(b []byte, name string, value json.RawMessage) []byte {
	if len(value) == 0 {
		return b
	}
	return append(appendKey(b, name), value...)
}

// appendStrings appends an array of strings unless it is empty.
func appendStrings(b []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return b
	}
	b = append(appendKey(b, name), '[')
	for _, v := range values {
		b = appendQuoted(appendNext(b), v)
	}
	return append(b, ']')
}

// appendCount appends a number that may be absent; 0 is not absent.
func appendCount(b []byte, name string, n *int) []byte {
	if n == nil {
		return b
	}
	return strconv.AppendInt(appendKey(b, name), int64(*n), 10)
}

// appendQuoted appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// checkSend refuses what no agent could be asked, before anything is sent.
func checkSend(req *SendRequest) error {
	m := &req.Message
	switch {
	case m.MessageID == "":
		return fmt.Errorf("the message has no messageId")
	case len(m.Parts) == 0:
		return fmt.Errorf("the message has no parts")
	}
	for _, meta := range [...]struct {
		what string
		raw  json.RawMessage
	}{{"request metadata", req.Metadata}, {"message metadata", m.Metadata}} {
		if err := checkObject(meta.what, meta.raw); err != nil {
			return err
		}
	}
	for i := range m.Parts {
		if err := checkPart(i, &m.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkPart(i int, p *Part) error {
	switch p.Kind {
	case PartText:
	case PartData:
		if !json.Valid(p.Data) {
			return fmt.Errorf("part %d: data is not valid JSON", i)
		}
	case PartURL:
		if p.URL == "" {
			return fmt.Errorf("part %d: url is empty", i)
		}
	case PartRaw:
		if _, ok := base64From(p.Base64); !ok {
			return fmt.Errorf("part %d: bytes are not base64", i)
		}
	case PartUnknown:
		return fmt.Errorf("part %d: a part of unknown kind cannot be sent", i)
	}
	return checkObject(fmt.Sprintf("part %d: metadata", i), p.Metadata)
}

func checkObject(what string, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if !json.Valid(raw) || raw[firstNonSpace(raw)] != '{' {
		return fmt.Errorf("%s is not a JSON object", what)
	}
	return nil
}

// firstNonSpace returns the index of the first byte that is not JSON white
// space, 0 for none.
func firstNonSpace(b []byte) int {
	for i, c := range b {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return i
		}
	}
	return 0
}

// dialect is the shape of request bodies.
type dialect uint8

const (
	dialect10     dialect = iota // 1.0, both bindings
	dialect03RPC                 // 0.3's JSON-RPC: kinds, file objects
	dialect03REST                // 0.3's REST: ProtoJSON of the 0.3 proto
)

func (r *route) dialect() dialect {
	switch {
	case r.Version == V10:
		return dialect10
	case r.Binding == REST:
		return dialect03REST
	}
	return dialect03RPC
}

// appendSend appends the members of SendMessageRequest (1.0) or
// MessageSendParams (0.3) as an object. A 0.3 agent is always told whether to
// block, for its default is its own choice; it knows no tenant.
func appendSend(b []byte, d dialect, tenant string, req *SendRequest) []byte {
	b = append(b, '{')
	if d == dialect10 {
		b = appendField(b, "tenant", tenant)
	}
	b = appendMessage(appendKey(b, "message"), d, &req.Message)
	if d != dialect10 || req.AcceptedOutputModes != nil || req.HistoryLength != nil || req.ReturnImmediately {
		b = append(appendKey(b, "configuration"), '{')
		b = appendStrings(b, "acceptedOutputModes", req.AcceptedOutputModes)
		b = appendCount(b, "historyLength", req.HistoryLength)
		switch {
		case d != dialect10:
			b = strconv.AppendBool(appendKey(b, "blocking"), !req.ReturnImmediately)
		case req.ReturnImmediately:
			b = append(appendKey(b, "returnImmediately"), "true"...)
		}
		b = append(b, '}')
	}
	b = appendRaw(b, "metadata", req.Metadata)
	return append(b, '}')
}

func appendMessage(b []byte, d dialect, m *Message) []byte {
	b = append(b, '{')
	if d == dialect03RPC {
		b = appendField(b, "kind", "message")
	}
	b = appendField(b, "messageId", m.MessageID)
	b = appendField(b, "contextId", m.ContextID)
	b = appendField(b, "taskId", m.TaskID)
	b = appendField(b, "role", roleName(d, m.Role))
	parts := "parts"
	if d == dialect03REST {
		parts = "content"
	}
	b = append(appendKey(b, parts), '[')
	for i := range m.Parts {
		b = appendNext(b)
		switch d {
		case dialect10:
			b = appendPart10(b, &m.Parts[i])
		case dialect03RPC:
			b = appendPart03(b, &m.Parts[i])
		case dialect03REST:
			b = appendPart03REST(b, &m.Parts[i])
		}
	}
	b = append(b, ']')
	b = appendRaw(b, "metadata", m.Metadata)
	b = appendStrings(b, "extensions", m.Extensions)
	if d != dialect03REST { // the 0.3 proto has no such field
		b = appendStrings(b, "referenceTaskIds", m.ReferenceTaskIDs)
	}
	return append(b, '}')
}

func roleName(d dialect, r Role) string {
	if r == "" {
		r = RoleUser
	}
	if d != dialect03RPC {
		return string(r)
	}
	if r == RoleAgent {
		return "agent"
	}
	return "user"
}

func appendPart10(b []byte, p *Part) []byte {
	b = append(b, '{')
	switch p.Kind {
	case PartText:
		b = appendQuoted(appendKey(b, "text"), p.Text)
	case PartData:
		b = appendRaw(b, "data", p.Data)
	case PartURL:
		b = appendField(b, "url", p.URL)
	case PartRaw:
		b = appendBase64(appendKey(b, "raw"), p.Base64)
	case PartUnknown:
	}
	b = appendField(b, "filename", p.Filename)
	b = appendField(b, "mediaType", p.MediaType)
	b = appendRaw(b, "metadata", p.Metadata)
	return append(b, '}')
}

func appendPart03(b []byte, p *Part) []byte {
	b = append(b, '{')
	switch p.Kind {
	case PartText:
		b = appendField(b, "kind", "text")
		b = appendQuoted(appendKey(b, "text"), p.Text)
	case PartData:
		b = appendField(b, "kind", "data")
		b = appendObject(appendKey(b, "data"), p.Data)
	case PartURL, PartRaw:
		b = appendField(b, "kind", "file")
		b = appendFile(appendKey(b, "file"), p, "uri", "bytes")
	case PartUnknown:
	}
	b = appendRaw(b, "metadata", p.Metadata)
	return append(b, '}')
}

// appendPart03REST appends a part as the 0.3 proto has it, without metadata.
func appendPart03REST(b []byte, p *Part) []byte {
	b = append(b, '{')
	switch p.Kind {
	case PartText:
		b = appendQuoted(appendKey(b, "text"), p.Text)
	case PartData:
		b = append(appendKey(b, "data"), '{')
		b = appendObject(appendKey(b, "data"), p.Data)
		b = append(b, '}')
	case PartURL, PartRaw:
		b = appendFile(appendKey(b, "file"), p, "fileWithUri", "fileWithBytes")
	case PartUnknown:
	}
	return append(b, '}')
}

func appendFile(b []byte, p *Part, uri, bytes string) []byte {
	b = append(b, '{')
	b = appendField(b, "name", p.Filename)
	b = appendField(b, "mimeType", p.MediaType)
	if p.Kind == PartURL {
		b = appendField(b, uri, p.URL)
	} else {
		b = appendBase64(appendKey(b, bytes), p.Base64)
	}
	return append(b, '}')
}

func appendBase64(b []byte, s string) []byte {
	norm, _ := base64From(s) // checkSend has seen it
	return appendQuoted(b, norm)
}

// appendObject appends data where 0.3 allows objects only: any other value
// goes under "value".
func appendObject(b []byte, data json.RawMessage) []byte {
	if data[firstNonSpace(data)] == '{' {
		return append(b, data...)
	}
	b = append(append(b, `{"value":`...), data...)
	return append(b, '}')
}

// appendTask appends the parameters of an operation on one task.
func appendTask(b []byte, d dialect, tenant, id string, history *int) []byte {
	b = append(b, '{')
	if d == dialect10 {
		b = appendField(b, "tenant", tenant)
	}
	b = appendField(b, "id", id)
	b = appendCount(b, "historyLength", history)
	return append(b, '}')
}

// appendList appends the parameters of ListTasks.
func appendList(b []byte, tenant string, l *ListRequest) []byte {
	b = append(b, '{')
	b = appendField(b, "tenant", tenant)
	b = appendField(b, "contextId", l.ContextID)
	b = appendField(b, "status", string(l.Status))
	if l.PageSize > 0 {
		b = appendCount(b, "pageSize", &l.PageSize)
	}
	b = appendField(b, "pageToken", l.PageToken)
	b = appendCount(b, "historyLength", l.HistoryLength)
	b = appendField(b, "statusTimestampAfter", l.StatusTimestampAfter)
	if l.IncludeArtifacts {
		b = append(appendKey(b, "includeArtifacts"), "true"...)
	}
	return append(b, '}')
}
