package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// a2aErrors are the nine errors with their reason and REST status
// (specification 1.0.1, 5.4).
var a2aErrors = []struct {
	code   int
	reason string
	status int
}{

	{CodeTaskNotFound, "TASK_NOT_FOUND", 404},
	{CodeTaskNotCancelable, "TASK_NOT_CANCELABLE", 400},
	{CodePushNotificationNotSupported, "PUSH_NOTIFICATION_NOT_SUPPORTED", 400},
	{CodeUnsupportedOperation, "UNSUPPORTED_OPERATION", 400},
	{CodeContentTypeNotSupported, "CONTENT_TYPE_NOT_SUPPORTED", 400},
	{CodeInvalidAgentResponse, "INVALID_AGENT_RESPONSE", 500},
	{CodeExtendedAgentCardNotConfigured, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", 400},
	{CodeExtensionSupportRequired, "EXTENSION_SUPPORT_REQUIRED", 400},
	{CodeVersionNotSupported, "VERSION_NOT_SUPPORTED", 400},
}

func TestErrorNamesComplete(t *testing.T) {
	if len(errorNames) != len(a2aErrors) {
		t.Errorf("%d names, %d errors", len(errorNames), len(a2aErrors))
	}
	for _, e := range a2aErrors {
		if errorNames[e.reason] != e.code {
			t.Errorf("%s is %d", e.reason, errorNames[e.reason])
		}
		if codeText(e.code) == codeText(0) {
			t.Errorf("%d has no text of its own", e.code)
		}
	}
}

// askOnce sends one GetTask to an agent that answers with a status, a type and
// a body ($ID is the request's id).
func askOnce(t *testing.T, v Version, b Binding, status int, contentType, body string, header ...string) *Error {
	t.Helper()
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, strings.ReplaceAll(body, "$ID", r.ID))
	})
	ctx, cancel := context.WithTimeout(testContext(t), 5*time.Second)
	defer cancel()
	_, err := agent.client(v, b).CancelTask(ctx, "t1")
	e, ok := err.(*Error)
	if !ok {
		t.Fatalf("got %T %v", err, err)
	}
	return wantError(t, err, e.Cause)
}

// All A2A and JSON-RPC codes with every form of data, at any HTTP status
// (specification 1.0.1, 9.5; JSON-RPC 2.0, 5.1).
func TestRPCErrors(t *testing.T) {
	codes := []int{-32700, -32600, -32602, -32603, -32050, 17000, 1}
	for _, e := range a2aErrors {
		if e.code != CodeVersionNotSupported {
			codes = append(codes, e.code)
		}
	}
	for _, code := range codes {
		for _, data := range []string{"", `,"data":[{"@type":"x","a":1}]`, `,"data":{"why": "so"}`, `,"data":"text"`, `,"data":null`, `,"details":[{"b":2}]`} {
			for _, status := range []int{200, 400, 404, 500} {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":$ID,"error":{"code":%d,"message":"it is so"%s}}`, code, data)
				e := errorOf(t, status, body)
				wantCode := code
				if code == 1 {
					wantCode = 0 // a gRPC code, not one of JSON-RPC
				}
				if e.Code != wantCode || e.Message != "it is so" && status == 200 || !strings.Contains(e.Message, "it is so") || e.HTTPStatus != status {
					t.Errorf("%s at %d: %+v", body, status, e)
				}
				_, wantData, _ := strings.Cut(data, ":")
				if wantData == "null" {
					wantData = ""
				}
				if string(e.Data) != wantData {
					t.Errorf("%s: data %s", body, e.Data)
				}
			}
		}
	}
}

// errorOf decodes one JSON-RPC answer as the client does.
func errorOf(t *testing.T, status int, body string) *Error {
	t.Helper()
	body = strings.ReplaceAll(body, "$ID", `"7"`)
	if status == 200 {
		_, err := decoder{id: "7"}.event([]byte(body))
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", body, err)
		}
		e.HTTPStatus = 200
		return e
	}
	return errorFromHTTP(&http.Response{StatusCode: status, Header: http.Header{}}, []byte(body), true, time.Now())
}

// Reasons are found wherever agents put them, and name the code where none is
// given.
func TestErrorReasons(t *testing.T) {
	const info = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t1"}}`
	for _, body := range []string{
		`{"error":{"code":-32001,"message":"gone","data":[` + info + `]}}`,
		`{"error":{"code":-32001,"message":"gone","data":[{"@type":"other"},` + info + `]}}`,
		`{"error":{"code":-32001,"message":"gone","data":` + info + `}}`,
		`{"error":{"code":-32001,"message":"gone","data":{"details":[` + info + `]}}}`,
		`{"error":{"code":-32001,"message":"gone","details":[` + info + `]}}`,
		`{"error":{"code":"-32001","message":"gone","reason":"task-not-found"}}`,
		`{"error":{"code":-32001.0,"message":"gone","reason":"TASK_NOT_FOUND"}}`,
		`{"error":{"code":"TASK_NOT_FOUND","message":"gone"}}`,
		`{"error":{"code":"task-not-found","message":"gone"}}`,
		`{"error":{"message":"gone","data":[` + info + `]}}`,
	} {
		e := errorOf(t, 200, body)
		if e.Reason != "TASK_NOT_FOUND" || e.Code != CodeTaskNotFound || e.Message != "gone" || e.Cause != CauseAgent {
			t.Errorf("%s: %+v", body, e)
		}
	}
	for body, want := range map[string]string{
		`{"error":"plain words"}`:       "plain words",
		`{"error":["odd"]}`:             `["odd"]`,
		`{"error":42}`:                  "42",
		`{"error":true}`:                "true",
		`{"error":{"code":-32003}}`:     codeText(CodePushNotificationNotSupported),
		`{"error":{"message":{"a":1}}}`: codeText(0),
		`{"error":{"message":"a\u001b[31m\n\tb\u202e\u200bc  d"}}`:               "a [31m bc d",
		`{"error":{"message":"<html><body><h1>Bad</h1> gateway</body></html>"}}`: "Bad gateway",
		`{"error":{"message":"` + strings.Repeat("ü", 3000) + `"}}`:              strings.Repeat("ü", 500) + "…",
	} {
		if e := errorOf(t, 200, body); e.Message != want || e.Cause != CauseAgent {
			t.Errorf("%s: %+v, want %q", body, e, want)
		}
	}
}

// The same errors over REST, in every body that agents send (specification
// 1.0.1, 11.6; AIP-193; RFC 9457).
func TestRESTErrors(t *testing.T) {
	for _, x := range a2aErrors {
		if x.code == CodeVersionNotSupported {
			continue
		}
		slug := strings.ToLower(strings.ReplaceAll(x.reason, "_", "-"))
		details := `[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"` + x.reason + `","domain":"a2a-protocol.org"}]`
		for contentType, body := range map[string]string{
			"application/a2a+json":     `{"error":{"code":` + fmt.Sprint(x.status) + `,"status":"X","message":"it is so","details":` + details + `}}`,
			"application/json":         `{"code":9,"message":"it is so","details":` + details + `}`,
			"application/problem+json": `{"type":"https://a2a-protocol.org/errors/` + slug + `","title":"Title","status":` + fmt.Sprint(x.status) + `,"detail":"it is so"}`,
			"text/json":                fmt.Sprintf(`{"code":%d,"message":"it is so","data":%s}`, x.code, details),
		} {
			e := askOnce(t, V10, REST, x.status, contentType, body)
			if e.Cause != CauseAgent || e.Code != x.code || e.Reason != x.reason || e.Message != "it is so" || e.HTTPStatus != x.status || e.Data == nil {
				t.Errorf("%s %s: %+v data %s", contentType, body, e, e.Data)
			}
		}
	}
	tests := []struct {
		name   string
		status int
		body   string
		cause  Cause
		code   int
		text   string
	}{
		{"gRPC status without reason", 404, `{"error":{"code":404,"status":"NOT_FOUND","message":"task t1 does not exist"}}`, CauseAgent, CodeTaskNotFound, "task t1 does not exist"},
		{"gateway's unknown route", 404, `{"code":5,"message":"Not Found","details":[]}`, CauseHTTP, 0, "the agent answered HTTP 404 Not Found"},
		{"no route for the operation", 404, `{"error":{"code":404,"status":"UNIMPLEMENTED","message":"no such path"}}`, CauseAgent, rpcMethodNotFound, "no such path"},
		{"no route for the operation, gRPC code", 501, `{"code":12,"message":"no such path","details":[]}`, CauseAgent, rpcMethodNotFound, "no such path"},
		{"operation refused as 1.0.0 has it", 400, `{"error":{"code":400,"status":"UNIMPLEMENTED","message":"not offered"}}`, CauseAgent, CodeUnsupportedOperation, "not offered"},
		{"error event", 400, "event: error\ndata: {\"error\":{\"code\":-32602,\"message\":\"no parts\"}}\n\n", CauseAgent, rpcInvalidParams, "no parts"},
		{"FastAPI", 404, `{"detail":"Not Found"}`, CauseHTTP, 0, "the agent answered HTTP 404 Not Found"},
		{"FastAPI words", 409, `{"detail":"busy just now"}`, CauseHTTP, 0, "the agent answered HTTP 409 Conflict: busy just now"},
		{"FastAPI validation", 422, `{"detail":[{"loc":["body","message"],"msg":"field required","type":"x"},{"msg":"and more"}]}`, CauseHTTP, 0, "the agent answered HTTP 422 Unprocessable Entity: body.message: field required; and more"},
		{"OAuth", 400, `{"error":"invalid_scope","error_description":"no such scope"}`, CauseHTTP, 0, "the agent answered HTTP 400 Bad Request: no such scope"},
		{"bare string", 400, `{"error":"nope"}`, CauseHTTP, 0, "the agent answered HTTP 400 Bad Request: nope"},
		{"no body", 500, ``, CauseHTTP, 0, "the agent answered HTTP 500 Internal Server Error"},
		{"empty object", 500, `{}`, CauseHTTP, 0, "the agent answered HTTP 500 Internal Server Error"},
		{"HTML", 502, "<html><head><title>502 Bad Gateway</title></head><body><center>nginx</center></body></html>", CauseHTTP, 0, "the agent answered HTTP 502 Bad Gateway: 502 Bad Gateway nginx"},
		{"text", 418, "I am a teapot\n", CauseHTTP, 0, "the agent answered HTTP 418 I'm a teapot: I am a teapot"},
		{"broken JSON", 500, `{"error":`, CauseHTTP, 0, `the agent answered HTTP 500 Internal Server Error: {"error":`},
		{"unknown status", 599, ``, CauseHTTP, 0, "the agent answered HTTP 599"},
		{"long HTML", 500, "<p>" + strings.Repeat("long words ", 1000), CauseHTTP, 0, "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp := &http.Response{StatusCode: tt.status, Header: http.Header{}}
			e := errorFromHTTP(resp, []byte(tt.body), true, time.Now())
			if e.Cause != tt.cause || e.Code != tt.code || e.HTTPStatus != tt.status || e.Message != tt.text && tt.text != "…" {
				t.Errorf("%+v, want %q", e, tt.text)
			}
			if len(e.Message) > excerptBytes+100 || strings.ContainsAny(e.Message, "<>\n") {
				t.Errorf("excerpt: %q", e.Message)
			}
		})
	}
}

// 401, 403, 429 and 503 keep what their headers say (RFC 9110, 11.6.1, 10.2.3).
func TestErrorHeaders(t *testing.T) {
	for _, b := range []Binding{JSONRPC, REST} {
		for _, status := range []int{401, 403} {
			e := askOnce(t, V10, b, status, "application/json", `{"detail":"who are you"}`, "WWW-Authenticate", `Bearer realm="x", scope="a b"`)
			if e.Cause != CauseAuth || e.HTTPStatus != status || e.Challenge != `Bearer realm="x", scope="a b"` || !strings.Contains(e.Message, "who are you") {
				t.Errorf("%s: %+v", b, e)
			}
		}
		for _, status := range []int{429, 503} {
			e := askOnce(t, V10, b, status, "text/plain", `slow down`, "Retry-After", "120")
			if e.Cause != CauseHTTP || e.HTTPStatus != status || e.RetryAfter != 2*time.Minute {
				t.Errorf("%s: %+v", b, e)
			}
		}
	}
	e := askOnce(t, V10, JSONRPC, 200, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-31401,"message":"no credential"}}`)
	if e.Cause != CauseAuth {
		t.Errorf("%+v", e)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for s, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-1": 0, "x": 0, "1.5": 0, "99999999999": 365 * 24 * time.Hour,
		"Wed, 21 Oct 2099 07:28:00 GMT": 365 * 24 * time.Hour,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Thu, 01 Jan 2026 00:00:00 GMT": 0,
	} {
		if got := retryAfter(s, now); got != want {
			t.Errorf("Retry-After %q: %v, want %v", s, got, want)
		}
	}
}

// Unary answers of any 2xx are read; what is none is told apart (specification
// 1.0.1, 11.3; 0.3 agents answer 201).
func TestUnaryStatuses(t *testing.T) {
	for _, status := range []int{200, 201, 202} {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			w.WriteHeader(status)
			fmt.Fprint(w, taskCompleted)
		})
		ev, err := agent.client(V03, REST).Send(testContext(t), hello())
		if err != nil || ev.Task == nil {
			t.Errorf("%d: %v", status, err)
		}
	}
	tests := []struct {
		name              string
		status            int
		contentType, body string
		text              string
	}{
		{"no content", 204, "", "", "HTTP 204 (no content type) with an empty body"},
		{"empty", 200, "application/json", " \n", "HTTP 200 (application/json) with an empty body"},
		{"HTML", 200, "text/html; charset=utf-8", "<!doctype html><title>Log in</title>", "HTTP 200 (text/html) with a web page instead of an A2A answer: Log in"},
		{"HTML as JSON", 200, "application/json", "<a href=x>moved</a>", "(application/json) with a web page instead of an A2A answer: moved"},
		{"text", 200, "text/plain", "OK", "with something that is not JSON: OK"},
		{"cut JSON", 200, "application/json", `{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t`, "with JSON that ends in the middle"},
		{"other JSON", 200, "application/json", `{"hello":"world"}`, `with JSON that is no A2A answer: {"hello":"world"}`},
		{"deep JSON", 200, "application/json", `{"result":{"message":{"parts":[{"data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}]}}}`, "with JSON that nests too deeply to be read"},
		{"a message", 200, "application/json", `{"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}}`, "with a message instead of the task"},
		{"other id", 200, "application/json", `{"id":"999","result":` + taskCompleted + `}`, "with the answer to another request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := askOnce(t, V10, JSONRPC, tt.status, tt.contentType, tt.body)
			if e.Cause != CauseProtocol || !strings.Contains(e.Message, tt.text) || e.HTTPStatus != tt.status {
				t.Errorf("%s %q", e.Cause, e.Message)
			}
		})
	}
}

// What is quoted of an answer that cannot be read holds none of the agent's
// ids: callers know handles only.
func TestQuotesHoldNoIDs(t *testing.T) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"secret-1",,}}}`,
		`{"result":{"message":{"messageId":"secret-1","contextId":"secret-2","parts":[{"data":` + strings.Repeat("[", 20000) + `]}]}}`,
		`{"odd":{"taskId":"secret-1"}}`,
		` [{"contextId":"secret-1"}]`,
	} {
		if e := askOnce(t, V10, JSONRPC, 200, "application/json", body); strings.Contains(e.Message, "secret") {
			t.Errorf("%q", e.Message)
		}
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", body)
		})
		s, err := agent.client(V10, JSONRPC).Stream(testContext(t), hello())
		if err == nil {
			_, err = drain(s)
		}
		if e := wantError(t, err, CauseProtocol); strings.Contains(e.Message, "secret") {
			t.Errorf("stream: %q", e.Message)
		}
	}
}

// A unary answer over the limit is an error, never a part of it.
func TestUnaryLimit(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		reply(w, r, `{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"`+strings.Repeat("x", 5000)+`"}]}]}}`)
	})
	_, err := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.Limits.ReplyBytes = 5000 }).Send(testContext(t), hello())
	if e := wantError(t, err, CauseLimit); !strings.Contains(e.Message, "limit of 5000 bytes") {
		t.Errorf("%q", e.Message)
	}
	if _, err := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.Limits.ReplyBytes = 6000 }).Send(testContext(t), hello()); err != nil {
		t.Error(err)
	}
}

// Whatever an agent sends as an error, it becomes one plain line.
func FuzzErrors(f *testing.F) {
	for _, s := range []string{
		`{"error":{"code":-32001,"message":"x","data":[{"reason":"TASK_NOT_FOUND"}]}}`, `{"detail":[{"loc":["a",1],"msg":"m"}]}`,
		`{"type":"/errors/task-not-found","title":"t","detail":"d"}`, `{"error":"x","error_description":"y"}`, `{"code":5,"message":"m","details":[]}`,
		`<html><script>x</script><!-- c --><b>hi</b>`, "plain \x1b[1mtext\u202e", `{"error":[1]}`, `{"error":{"message":"<p>x"}}`, ``,
	} {
		f.Add([]byte(s), 404)
		f.Add([]byte(s), 200)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		var errs []*Error
		errs = append(errs, errorFromHTTP(&http.Response{StatusCode: status, Header: http.Header{}}, body, true, time.Now()))
		var e *Error
		if _, err := (decoder{}).event(body); errors.As(err, &e) {
			errs = append(errs, e)
		}
		for _, e := range errs {
			if e.Message == "" || !utf8.ValidString(e.Message) || len(e.Message) > messageBytes+excerptBytes {
				t.Fatalf("message %q", e.Message)
			}
			for _, r := range e.Message {
				if unicode.IsControl(r) || hidden(r) {
					t.Fatalf("message %q has %U", e.Message, r)
				}
			}
			if e.Data != nil && !json.Valid(e.Data) {
				t.Fatalf("data %q", e.Data)
			}
			if e.Cause == CauseHTTP && looksHTML(body) && strings.ContainsAny(strings.TrimPrefix(e.Message, "the agent answered HTTP "), "<>") {
				t.Fatalf("markup in %q", e.Message)
			}
		}
	})
}

// A page of megabytes costs its length to read, whatever it is made of.
func TestMarkupIsLinear(t *testing.T) {
	for _, piece := range []string{"<script></script>", "<!---->", "<style></STYLE>", "<!--", "<script", "<", "<a>", "</script"} {
		began := time.Now()
		withoutMarkup(strings.Repeat(piece, 4<<20/len(piece)))
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("%q: %v", piece, d)
		}
	}
	const page = `<html><Script>if (a<b) alert("x")</SCRIPT><p>one<style>p{}</style ><!-- two > --> three</p>`
	if got := plainMessage(page); got != "one three" {
		t.Errorf("%q", got)
	}
}
