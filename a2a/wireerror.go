package a2a

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The standard JSON-RPC codes that decide something here.
const (
	rpcInvalidRequest = -32600
	rpcMethodNotFound = -32601
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
)

// errorNames are the A2A errors by their ErrorInfo reason
// (specification 1.0.1, 5.4).
var errorNames = map[string]int{
	"TASK_NOT_FOUND":                     CodeTaskNotFound,
	"TASK_NOT_CANCELABLE":                CodeTaskNotCancelable,
	"PUSH_NOTIFICATION_NOT_SUPPORTED":    CodePushNotificationNotSupported,
	"UNSUPPORTED_OPERATION":              CodeUnsupportedOperation,
	"CONTENT_TYPE_NOT_SUPPORTED":         CodeContentTypeNotSupported,
	"INVALID_AGENT_RESPONSE":             CodeInvalidAgentResponse,
	"EXTENDED_AGENT_CARD_NOT_CONFIGURED": CodeExtendedAgentCardNotConfigured,
	"EXTENSION_SUPPORT_REQUIRED":         CodeExtensionSupportRequired,
	"VERSION_NOT_SUPPORTED":              CodeVersionNotSupported,
}

// codeText says in plain words what a code means, for agents that send no
// message.
func codeText(code int) string {
	switch code {
	case CodeTaskNotFound:
		return "the agent does not know this task"
	case CodeTaskNotCancelable:
		return "the task cannot be cancelled any more"
	case CodePushNotificationNotSupported:
		return "the agent does not support push notifications"
	case CodeUnsupportedOperation:
		return "the agent does not support this operation"
	case CodeContentTypeNotSupported:
		return "the agent does not support this content type"
	case CodeInvalidAgentResponse:
		return "the agent produced an invalid answer"
	case CodeExtendedAgentCardNotConfigured:
		return "the agent has no extended card"
	case CodeExtensionSupportRequired:
		return "the agent requires an extension that was not asked for"
	case CodeVersionNotSupported:
		return "the agent does not support this protocol version"
	case -32700:
		return "the agent could not parse the request"
	case rpcInvalidRequest:
		return "the agent refused the request as invalid"
	case rpcMethodNotFound:
		return "the agent does not know this method"
	case rpcInvalidParams:
		return "the agent refused the parameters as invalid"
	case rpcInternal:
		return "the agent had an internal error"
	}
	return "the agent answered with an error"
}

// errorBody is every form of error object that agents send: JSON-RPC's,
// google.rpc.Status with and without its wrapper, RFC 9457 problems, FastAPI's
// detail and OAuth's error_description.
type errorBody struct {
	Code        json.RawMessage `json:"code"`
	Message     json.RawMessage `json:"message"`
	Data        json.RawMessage `json:"data"`
	Details     json.RawMessage `json:"details"`
	Status      json.RawMessage `json:"status"`
	Type        json.RawMessage `json:"type"`
	Title       json.RawMessage `json:"title"`
	Detail      json.RawMessage `json:"detail"`
	Description json.RawMessage `json:"error_description"`
	Error       json.RawMessage `json:"error"`
	Reason      json.RawMessage `json:"reason"`
}

// errorFromRPC reads the error member of a JSON-RPC response or of a stream
// event. The result has neither agent nor operation yet.
func errorFromRPC(raw json.RawMessage) *Error {
	e := &Error{Cause: CauseAgent}
	var b errorBody
	if raw[0] != '{' || json.Unmarshal(raw, &b) != nil {
		e.Message = or(plainLine(rawText(raw), messageBytes), codeText(0))
		if raw[0] == '{' || raw[0] == '[' {
			e.Data = raw
		}
		return e
	}
	b.fill(e)
	return e
}

// fill sets code, reason, data and message from a body.
func (b *errorBody) fill(e *Error) {
	if e.Data = firstRaw(b.Data, b.Details); len(e.Data) > defaultErrorBytes {
		e.Data = nil
	}
	e.Reason = b.reason()
	e.Code = numericCode(rawText(b.Code))
	if name := reasonName(rawText(b.Code)); e.Reason == "" && errorNames[name] != 0 {
		e.Reason = name
	}
	if e.Code >= 0 && e.Code < 600 {
		// Not an A2A code: google.rpc.Status repeats the HTTP status or has a
		// gRPC one.
		e.Code = 0
	}
	if e.Code == 0 {
		e.Code = errorNames[e.Reason]
	}
	message := firstText(b.Message, b.Description, b.Detail, b.Title)
	if message == "" {
		message = validationText(b.Detail)
	}
	e.Message = or(plainMessage(message), codeText(e.Code))
	if e.Code == -31401 || e.Code == -31403 {
		e.Cause = CauseAuth
	}
}

// numericCode reads a code, also one written as a string or with a fraction of
// nought; 0 for anything else.
func numericCode(s string) int {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<31 {
		return 0
	}
	return int(f)
}

// reason finds ErrorInfo's reason in data, details or beside them.
func (b *errorBody) reason() string {
	if r := firstText(b.Reason); r != "" {
		return reasonName(r)
	}
	for _, raw := range [...]json.RawMessage{b.Data, b.Details} {
		if r := reasonIn(raw, 0); r != "" {
			return r
		}
	}
	// RFC 9457 names the error in its type: …/errors/task-not-found.
	kind := rawText(b.Type)
	kind = reasonName(kind[strings.LastIndexAny(kind, "/:#")+1:])
	kind = strings.TrimSuffix(kind, "_ERROR")
	if _, ok := errorNames[kind]; ok {
		return kind
	}
	return ""
}

// reasonIn looks for a reason in an ErrorInfo, alone or in an array.
func reasonIn(raw json.RawMessage, depth int) string {
	if len(raw) == 0 || depth > 2 {
		return ""
	}
	switch raw[0] {
	case '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return ""
		}
		for _, item := range items {
			if r := reasonIn(item, depth+1); r != "" {
				return r
			}
		}
	case '{':
		var info struct {
			Reason  json.RawMessage `json:"reason"`
			Details json.RawMessage `json:"details"`
		}
		if json.Unmarshal(raw, &info) != nil {
			return ""
		}
		if r := rawText(info.Reason); r != "" {
			return reasonName(r)
		}
		return reasonIn(info.Details, depth+1)
	}
	return ""
}

// reasonName brings a reason to the spelling of ErrorInfo.
func reasonName(s string) string {
	return strings.ToUpper(strings.ReplaceAll(plainLine(s, 100), "-", "_"))
}

// errorFromHTTP reads a non-2xx answer, in whatever form its body is.
// task says that the request named a task, so that a gRPC NOT_FOUND is about it.
func errorFromHTTP(resp *http.Response, body []byte, task bool, now time.Time) *Error {
	e := &Error{Cause: CauseHTTP}
	body = firstEvent(body)
	if raw, b := splitErrorBody(body); b != nil {
		e.Cause = CauseAgent
		b.fill(e)
		b.mapStatus(e, task, resp.StatusCode)
		if e.Code == 0 && e.Reason == "" {
			e.Cause = CauseHTTP
		}
		if e.Data == nil && (b.Type != nil || len(b.Detail) > 0 && b.Detail[0] != '"') {
			e.Data = raw
		}
		if e.Code == 0 && len(firstText(b.Message, b.Description, b.Detail, b.Title)+validationText(b.Detail)) == 0 {
			e.Message = ""
		}
	} else {
		e.Message = excerpt(body)
	}
	if e.Cause == CauseHTTP {
		e.Message = statusText(resp.StatusCode, e.Message)
	}
	e.HTTPStatus = resp.StatusCode
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), now)
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		e.Cause = CauseAuth
		e.Challenge = plainLine(strings.Join(resp.Header.Values("WWW-Authenticate"), ", "), messageBytes)
	}
	return e
}

// firstEvent is the data of the event that a body begins with, for agents that
// refuse a stream by an error event and a status; any other body is returned
// as it is.
func firstEvent(body []byte) []byte {
	if first := firstByte(body); first == 0 || strings.IndexByte(":deir", first) < 0 {
		return body
	}
	_, data, err := newSSEEvents(nil, bytes.NewReader(body), len(body)+1).next()
	if err != nil || firstByte(data) != '{' {
		return body
	}
	return bytes.Clone(data)
}

// splitErrorBody finds the error object of a body: under error, as JSON-RPC and
// google.rpc.Status have it, or the body itself.
func splitErrorBody(body []byte) (json.RawMessage, *errorBody) {
	body, _ = cleanBody(bytes.TrimSpace(body))
	var outer errorBody
	if len(body) == 0 || body[0] != '{' || json.Unmarshal(body, &outer) != nil {
		return nil, nil
	}
	if len(outer.Error) > 0 && outer.Error[0] == '{' {
		var inner errorBody
		if json.Unmarshal(outer.Error, &inner) == nil {
			return outer.Error, &inner
		}
	}
	if outer.Title == nil {
		outer.Title = outer.Error // {"error": "text"}
	}
	return json.RawMessage(bytes.Clone(body)), &outer
}

// mapStatus derives the A2A code from the gRPC status where no reason names it.
// UNIMPLEMENTED is an operation that the agent refuses, or one that it has no
// route for, which the HTTP status tells apart (specification 1.0.0 and 1.0.1, 5.4).
func (b *errorBody) mapStatus(e *Error, task bool, http int) {
	if e.Code != 0 {
		return
	}
	status, grpc := rawText(b.Status), rawText(b.Code)
	if status == "" && b.Details == nil {
		return
	}
	switch {
	case (status == "NOT_FOUND" || grpc == "5") && task && !strings.EqualFold(e.Message, "not found"):
		e.Code = CodeTaskNotFound
	case (status == "UNIMPLEMENTED" || grpc == "12") && (http == 404 || http == 405 || http == 501):
		e.Code = rpcMethodNotFound
	case status == "UNIMPLEMENTED" || grpc == "12":
		e.Code = CodeUnsupportedOperation
	case status == "INVALID_ARGUMENT" || grpc == "3":
		e.Code = rpcInvalidParams
	case status == "INTERNAL" || grpc == "13":
		e.Code = rpcInternal
	}
}

// statusText names an HTTP status, with what the agent said about it.
func statusText(status int, said string) string {
	text := "the agent answered HTTP " + strconv.Itoa(status)
	if name := http.StatusText(status); name != "" {
		text += " " + name
		if strings.EqualFold(said, name) {
			said = ""
		}
	}
	if said != "" {
		text += ": " + said
	}
	return text
}

// longestRetry is the most that is made of a Retry-After header.
const longestRetry = 365 * 24 * time.Hour

// retryAfter reads a Retry-After header in either form; 0 when there is none.
func retryAfter(s string, now time.Time) time.Duration {
	if s == "" {
		return 0
	}
	if secs, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
		return time.Duration(min(max(secs, 0), int(longestRetry/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil {
		return min(max(t.Sub(now), 0), longestRetry)
	}
	return 0
}

// plainMessage is an agent's message as one plain line; markup is taken out of
// a page that an agent passes on as its message.
func plainMessage(s string) string {
	if looksHTML([]byte(s)) {
		s = withoutMarkup(s)
	}
	return plainLine(s, messageBytes)
}

// validationText joins FastAPI's list of {loc, msg}.
func validationText(raw json.RawMessage) string {
	var items []struct {
		Msg string `json:"msg"`
		Loc []any  `json:"loc"`
	}
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return ""
	}
	var said []string
	for _, item := range items {
		where := make([]string, 0, len(item.Loc))
		for _, l := range item.Loc {
			if s, ok := l.(string); ok {
				where = append(where, s)
			}
		}
		if item.Msg != "" {
			said = append(said, strings.TrimPrefix(strings.Join(where, ".")+": "+item.Msg, ": "))
		}
	}
	return strings.Join(said, "; ")
}

// rawText is the content of a JSON string, or any other value as written.
func rawText(raw json.RawMessage) string {
	if len(raw) == 0 || isNull(raw) {
		return ""
	}
	if raw[0] == '"' {
		var s string
		_ = json.Unmarshal(raw, &s)
		return s
	}
	return string(raw)
}

// firstText returns the first of raws that is a non-empty JSON string.
func firstText(raws ...json.RawMessage) string {
	for _, raw := range raws {
		if len(raw) > 0 && raw[0] == '"' {
			if s := rawText(raw); s != "" {
				return s
			}
		}
	}
	return ""
}

// firstRaw returns the first of raws that holds a value.
func firstRaw(raws ...json.RawMessage) json.RawMessage {
	for _, raw := range raws {
		if len(raw) > 0 && !isNull(raw) {
			return raw
		}
	}
	return nil
}
