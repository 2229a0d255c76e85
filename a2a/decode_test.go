package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rpcResult wraps a result as the answer to request 7.
func rpcResult(result string) string {
	return `{"jsonrpc":"2.0","id":"7","result":` + result + `}`
}

// decodeEvent decodes an answer to request 7, with used scratch memory and
// without any; both must come to the same.
func decodeEvent(t *testing.T, body string) Event {
	t.Helper()
	ev, err := decoder{id: "7"}.event([]byte(body))
	if err != nil {
		t.Fatalf("event(%s): %v", body, err)
	}
	used := &replyScratch{}
	for range 2 {
		again, err := decoder{id: "7", scratch: used}.event([]byte(body))
		if err != nil {
			t.Fatalf("event(%s) with scratch: %v", body, err)
		}
		if diff := cmp.Diff(ev, again); diff != "" {
			t.Fatalf("scratch changes %s\n%s", body, diff)
		}
	}
	return ev
}

// Message results, task results and updates in the shapes of 1.0 and 0.3, each
// to a request of either version (specification 1.0.1, 4.1, 4.2; 0.3.0, 6 and 7).
func TestDecodeShapes(t *testing.T) {
	task := &Task{
		ID: "t1", ContextID: "c1",
		Status: Status{State: StateCompleted, Timestamp: "2026-01-02T03:04:05.678Z", Message: &Message{
			MessageID: "m1", Role: RoleAgent, Parts: []Part{{Kind: PartText, Text: "done"}},
		}},
		Artifacts: []Artifact{{ArtifactID: "a1", Name: "report", Parts: []Part{{Kind: PartText, Text: "hello"}}}},
		History:   []Message{{MessageID: "u1", Role: RoleUser, Parts: []Part{{Kind: PartText, Text: "hi"}}}},
		Metadata:  json.RawMessage(`{"k":1}`),
	}
	message := &Message{MessageID: "m1", ContextID: "c1", TaskID: "t1", Role: RoleAgent, Parts: []Part{{Kind: PartText, Text: "hi"}}, ReferenceTaskIDs: []string{"t0"}, Extensions: []string{"urn:x"}}
	status := &StatusUpdate{TaskID: "t1", ContextID: "c1", Status: Status{State: StateWorking}, Metadata: json.RawMessage(`{"p":0.5}`)}
	artifact := &ArtifactUpdate{TaskID: "t1", ContextID: "c1", Append: true, LastChunk: true, Artifact: Artifact{ArtifactID: "a1", Parts: []Part{{Kind: PartText, Text: "x"}}}}

	const (
		task10     = `{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-02T03:04:05.678Z","message":{"messageId":"m1","role":"ROLE_AGENT","parts":[{"text":"done"}]}},"artifacts":[{"artifactId":"a1","name":"report","parts":[{"text":"hello"}]}],"history":[{"messageId":"u1","role":"ROLE_USER","parts":[{"text":"hi"}]}],"metadata":{"k":1}}`
		task03     = `{"kind":"task","id":"t1","contextId":"c1","status":{"state":"completed","timestamp":"2026-01-02T03:04:05.678Z","message":{"kind":"message","messageId":"m1","role":"agent","parts":[{"kind":"text","text":"done"}]}},"artifacts":[{"artifactId":"a1","name":"report","parts":[{"kind":"text","text":"hello"}]}],"history":[{"kind":"message","messageId":"u1","role":"user","parts":[{"kind":"text","text":"hi"}]}],"metadata":{"k":1}}`
		task03REST = `{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-02T03:04:05.678Z","message":{"messageId":"m1","role":"ROLE_AGENT","content":[{"text":"done"}]}},"artifacts":[{"artifactId":"a1","name":"report","parts":[{"text":"hello"}]}],"history":[{"messageId":"u1","role":"ROLE_USER","content":[{"text":"hi"}]}],"metadata":{"k":1}}}`
		taskSnake  = `{"task":{"id":"t1","context_id":"c1","status":{"state":3,"timestamp":"2026-01-02T03:04:05.678Z","message":{"message_id":"m1","role":2,"parts":[{"text":"done"}]}},"artifacts":[{"artifact_id":"a1","name":"report","parts":[{"text":"hello"}]}],"history":[{"message_id":"u1","role":"ROLE_USER","parts":[{"text":"hi"}]}],"metadata":{"k":1}}}`
		msg        = `"messageId":"m1","contextId":"c1","taskId":"t1","referenceTaskIds":["t0"],"extensions":["urn:x"]`
	)
	tests := []struct {
		name, body string
		want       Event
	}{
		{"1.0 wrapped task", rpcResult(`{"task":` + task10 + `}`), Event{Task: task}},
		{"1.0 bare task", rpcResult(task10), Event{Task: task}},
		{"1.0 over REST", `{"task":` + task10 + `}`, Event{Task: task}},
		{"1.0 bare over REST", task10, Event{Task: task}},
		{"ProtoJSON's other names and numbers", rpcResult(taskSnake), Event{Task: task}},
		{"0.3 task", rpcResult(task03), Event{Task: task}},
		{"0.3 task without kind", rpcResult(strings.Replace(task03, `"kind":"task",`, "", 1)), Event{Task: task}},
		{"0.3 over REST", task03REST, Event{Task: task}},
		{"0.3 kinds over REST", task03, Event{Task: task}},
		{"no jsonrpc member", `{"id":"7","result":` + task03 + `}`, Event{Task: task}},
		{"byte order mark", "\ufeff" + rpcResult(task03), Event{Task: task}},
		{"1.0 message", rpcResult(`{"message":{` + msg + `,"role":"ROLE_AGENT","parts":[{"text":"hi"}]}}`), Event{Message: message}},
		{"0.3 message", rpcResult(`{"kind":"message",` + msg + `,"role":"agent","parts":[{"kind":"text","text":"hi"}]}`), Event{Message: message}},
		{"0.3 message without kind", rpcResult(`{` + msg + `,"role":"agent","parts":[{"kind":"text","text":"hi"}]}`), Event{Message: message}},
		{"message without role", rpcResult(`{` + msg + `,"parts":[{"type":"text","text":"hi"}]}`), Event{Message: message}},
		{"0.3 REST message", `{"message":{` + msg + `,"role":"ROLE_AGENT","content":[{"text":"hi"}]}}`, Event{Message: message}},
		{"1.0 status", rpcResult(`{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"},"metadata":{"p":0.5}}}`), Event{Status: status}},
		{"1.0 status in snake case", rpcResult(`{"status_update":{"task_id":"t1","context_id":"c1","status":{"state":2},"metadata":{"p":0.5}}}`), Event{Status: status}},
		{"0.3 status", rpcResult(`{"kind":"status-update","taskId":"t1","contextId":"c1","status":{"state":"working"},"metadata":{"p":0.5}}`), Event{Status: status}},
		{"0.3 status without kind", rpcResult(`{"taskId":"t1","contextId":"c1","status":{"state":"working"},"metadata":{"p":0.5}}`), Event{Status: status}},
		{"1.0 artifact", rpcResult(`{"artifactUpdate":{"taskId":"t1","contextId":"c1","append":true,"lastChunk":true,"artifact":{"artifactId":"a1","parts":[{"text":"x"}]}}}`), Event{Artifact: artifact}},
		{"0.3 artifact", rpcResult(`{"kind":"artifact-update","taskId":"t1","contextId":"c1","append":true,"lastChunk":true,"artifact":{"artifactId":"a1","parts":[{"kind":"text","text":"x"}]}}`), Event{Artifact: artifact}},
		{"0.3 artifact without kind", rpcResult(`{"taskId":"t1","contextId":"c1","append":true,"last_chunk":true,"artifact":{"artifactId":"a1","parts":[{"kind":"text","text":"x"}]}}`), Event{Artifact: artifact}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := decodeEvent(t, tt.body)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Every kind of part in every shape (specification 1.0.1, 4.1.6; 0.3.0, 6.5).
func TestDecodeParts(t *testing.T) {
	text := func(s string) []Part { return []Part{{Kind: PartText, Text: s}} }
	data := func(s string) []Part { return []Part{{Kind: PartData, Data: json.RawMessage(s)}} }
	unknown := func(raw, fault string) []Part {
		return []Part{{Kind: PartUnknown, Unknown: json.RawMessage(raw), Fault: fault}}
	}
	tests := []struct {
		part string
		want []Part
	}{
		{`{"text":"a"}`, text("a")},
		{`{"text":""}`, text("")},
		{`{"kind":"text","text":""}`, text("")},
		{`{"kind":"text"}`, text("")},
		{`{"type":"text","text":"a"}`, text("a")},
		{`{"kind":"TEXT","text":"a"}`, text("a")},
		{`{"text":"a","mediaType":"text/markdown","filename":"x.md","metadata":{"b": 1}}`, []Part{{Kind: PartText, Text: "a", MediaType: "text/markdown", Filename: "x.md", Metadata: json.RawMessage(`{"b": 1}`)}}},
		{`{"text":"a","media_type":"text/markdown"}`, []Part{{Kind: PartText, Text: "a", MediaType: "text/markdown"}}},
		{`{"data":null}`, data(`null`)},
		{`{"data":[1, 2]}`, data(`[1, 2]`)},
		{`{"data":9007199254740993}`, data(`9007199254740993`)},
		{`{"data":1.10e+3}`, data(`1.10e+3`)},
		{`{"data":"s"}`, data(`"s"`)},
		{`{"data":{"z":1,"a":{"z":2, "b":3}}}`, data(`{"z":1,"a":{"z":2, "b":3}}`)},
		{`{"kind":"data","data":{"data":{"x":1}}}`, data(`{"data":{"x":1}}`)},
		{`{"data":{"data":{"x":1}}}`, data(`{"data":{"x":1}}`)},
		{`{"url":"https://x/y","mediaType":"image/png"}`, []Part{{Kind: PartURL, URL: "https://x/y", MediaType: "image/png"}}},
		{`{"raw":"aGVsbG8=","filename":"h.bin"}`, []Part{{Kind: PartRaw, Base64: "aGVsbG8=", Filename: "h.bin"}}},
		{`{"raw":"aGVsbG8"}`, []Part{{Kind: PartRaw, Base64: "aGVsbG8="}}},
		{`{"raw":"_-8"}`, []Part{{Kind: PartRaw, Base64: "/+8="}}},
		{`{"raw":"aGVs\r\nbG8="}`, []Part{{Kind: PartRaw, Base64: "aGVsbG8="}}},
		{`{"raw":""}`, []Part{{Kind: PartRaw}}},
		{`{"kind":"file","file":{"name":"n","mimeType":"a/b","bytes":"aGk="}}`, []Part{{Kind: PartRaw, Base64: "aGk=", Filename: "n", MediaType: "a/b"}}},
		{`{"kind":"file","file":{"name":"n","mimeType":"a/b","uri":"https://x"}}`, []Part{{Kind: PartURL, URL: "https://x", Filename: "n", MediaType: "a/b"}}},
		{`{"file":{"fileWithBytes":"aGk","mimeType":"a/b"}}`, []Part{{Kind: PartRaw, Base64: "aGk=", MediaType: "a/b"}}},
		{`{"file":{"fileWithUri":"https://x","mimeType":"a/b"}}`, []Part{{Kind: PartURL, URL: "https://x", MediaType: "a/b"}}},
		{`{"file":{"file_with_uri":"https://x","mime_type":"a/b","fileWithBytes":""}}`, []Part{{Kind: PartURL, URL: "https://x", MediaType: "a/b"}}},
		{`{"kind":"file","url":"https://x"}`, []Part{{Kind: PartURL, URL: "https://x"}}},
		// ProtoJSON with defaults emitted.
		{`{"text":"","raw":"","url":"https://x","data":null,"filename":"","mediaType":""}`, []Part{{Kind: PartURL, URL: "https://x"}}},
		{`{"text":"a","raw":"","url":"","metadata":null}`, text("a")},
		// Two contents are forbidden; neither is lost.
		{`{"text":"a","data":{"b":1}}`, []Part{{Kind: PartText, Text: "a"}, {Kind: PartData, Data: json.RawMessage(`{"b":1}`)}}},
		// What is odd costs only itself.
		{`{"raw":"%%%"}`, unknown(`{"raw":"%%%"}`, "invalid base64")},
		{`{"raw":"a"}`, unknown(`{"raw":"a"}`, "invalid base64")},
		{`{"kind":"hologram","text":"a"}`, unknown(`{"kind":"hologram","text":"a"}`, "part of unknown kind hologram")},
		{`{"frob":[1, 2]}`, unknown(`{"frob":[1, 2]}`, "part without a known content")},
		{`{}`, unknown(`{}`, "part without a known content")},
		{`"bare"`, unknown(`"bare"`, "not an object")},
		{`[1]`, unknown(`[1]`, "not an object")},
		{`null`, nil},
		{`{"text":5}`, text("5")},
		{`{"text":{"a":1}}`, unknown(`{"text":{"a":1}}`, "part without a known content")},
		{`{"text":"a","metadata":[]}`, text("a")},
		{`{"text":"a","filename":7}`, []Part{{Kind: PartText, Text: "a", Filename: "7"}}},
		{`{"kind":"file","file":"nope"}`, unknown(`{"kind":"file","file":"nope"}`, "part without a known content")},
		{`{"kind":"data"}`, unknown(`{"kind":"data"}`, "part without a known content")},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			const before, after = `{"text":"before"}`, `{"data":{"after":true}}`
			got := decodeEvent(t, rpcResult(`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[`+before+`,`+tt.part+`,`+after+`]}}`))
			want := append(append(text("before"), tt.want...), data(`{"after":true}`)...)
			if diff := cmp.Diff(want, got.Message.Parts); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The proto of 0.3's REST binding wraps data once more; elsewhere such a value
// is the agent's own (0.3.0 a2a.proto, DataPart).
func TestDecodeProtoData(t *testing.T) {
	body := []byte(`{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"artifactId":"a","parts":[{"data":{"data":{"x":1}}}]}]}}`)
	for proto, want := range map[bool]string{true: `{"x":1}`, false: `{"data":{"x":1}}`} {
		ev, err := decoder{proto: proto}.event(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(ev.Task.Artifacts[0].Parts[0].Data); got != want {
			t.Errorf("proto %v: data is %s, want %s", proto, got, want)
		}
	}
	ev, err := decoder{}.event([]byte(`{"message":{"messageId":"m","content":[{"data":{"data":{"x":1}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(ev.Message.Parts[0].Data); got != `{"x":1}` {
		t.Errorf("content: data is %s", got)
	}
}

// States in every spelling (specification 1.0.1, 4.1.3).
func TestDecodeStates(t *testing.T) {
	tests := []struct {
		raw  string
		want State
	}{
		{`"TASK_STATE_WORKING"`, StateWorking}, {`"working"`, StateWorking}, {`"WORKING"`, StateWorking}, {`2`, StateWorking}, {`"2"`, StateWorking},
		{`"submitted"`, StateSubmitted}, {`1`, StateSubmitted}, {`"completed"`, StateCompleted}, {`3`, StateCompleted},
		{`"failed"`, StateFailed}, {`4`, StateFailed},
		{`"canceled"`, StateCanceled}, {`"cancelled"`, StateCanceled}, {`"TASK_STATE_CANCELLED"`, StateCanceled}, {`"CANCELLED"`, StateCanceled}, {`5`, StateCanceled},
		{`"input-required"`, StateInputRequired}, {`"INPUT_REQUIRED"`, StateInputRequired}, {`"input_required"`, StateInputRequired}, {`6`, StateInputRequired},
		{`"rejected"`, StateRejected}, {`7`, StateRejected}, {`"auth-required"`, StateAuthRequired}, {`8`, StateAuthRequired},
		{`"unknown"`, StateUnspecified}, {`"TASK_STATE_UNSPECIFIED"`, StateUnspecified}, {`0`, StateUnspecified},
		{`"paused-for-lunch"`, "paused-for-lunch"}, {`""`, ""}, {`null`, ""}, {`99`, "99"}, {`{"x":1}`, ""},
	}
	for _, tt := range tests {
		ev := decodeEvent(t, rpcResult(`{"task":{"id":"t1","status":{"state":`+tt.raw+`}}}`))
		if got := ev.Task.Status.State; got != tt.want {
			t.Errorf("state %s: got %q, want %q", tt.raw, got, tt.want)
		}
	}
	for _, raw := range []string{`"working"`, `{"state":"working"}`} {
		ev := decodeEvent(t, rpcResult(`{"kind":"task","id":"t1","status":`+raw+`}`))
		if got := ev.Task.Status.State; got != StateWorking {
			t.Errorf("status %s: state %q", raw, got)
		}
	}
}

// No form of a timestamp fails the answer (specification 1.0.1, 5.6.1).
func TestDecodeTimestamps(t *testing.T) {
	for raw, want := range map[string]string{
		`"2026-01-02T03:04:05Z"`:       "2026-01-02T03:04:05Z",
		`"2025-04-02T16:59:25.331844"`: "2025-04-02T16:59:25.331844",
		`1735689600`:                   "1735689600",
		`1735689600.25`:                "1735689600.25",
		`null`:                         "",
		`{"seconds":1}`:                "",
		`"yesterday"`:                  "yesterday",
	} {
		ev := decodeEvent(t, rpcResult(`{"task":{"id":"t1","status":{"state":"working","timestamp":`+raw+`}}}`))
		if ev.Task.Status.Timestamp != want || ev.Task.Status.State != StateWorking {
			t.Errorf("timestamp %s: got %q, state %q", raw, ev.Task.Status.Timestamp, ev.Task.Status.State)
		}
	}
}

// Response ids of any JSON type pass, another request's does not (JSON-RPC 2.0, 5).
func TestDecodeResponseIDs(t *testing.T) {
	const result = `"result":{"task":{"id":"t1","status":{"state":"working"}}}`
	for _, id := range []string{`"id":"7",`, `"id":7,`, `"id":null,`, ``} {
		decodeEvent(t, `{"jsonrpc":"2.0",`+id+result+`}`)
	}
	for _, id := range []string{`"8"`, `8`, `"7 "`, `{"a":1}`, `[7]`, `true`, `""`} {
		_, err := decoder{id: "7"}.event([]byte(`{"jsonrpc":"2.0","id":` + id + `,` + result + `}`))
		if !errors.Is(err, errOtherID) {
			t.Errorf("id %s: got %v, want errOtherID", id, err)
		}
		_, err = decoder{id: "7"}.event([]byte(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32001,"message":"x"}}`))
		if !errors.Is(err, errOtherID) {
			t.Errorf("id %s of an error: got %v, want errOtherID", id, err)
		}
	}
}

// Null and wrongly typed elements cost only themselves.
func TestDecodeOddElements(t *testing.T) {
	ev := decodeEvent(t, rpcResult(`{"task":{
		"id": 42, "contextId": null, "metadata": [],
		"status": {"state": "working", "message": "on it", "timestamp": false},
		"artifacts": [null, {"artifactId": 5, "name": ["x"], "parts": [null, {"text": "kept"}], "extensions": "urn:a"}, "loose"],
		"history": [null, {"messageId": "m1", "role": 1, "parts": {"text": "single"}}, 17],
		"unknown": {"deep": [1]}
	}}`))
	want := &Task{
		ID:     "42",
		Status: Status{State: StateWorking, Timestamp: "false", Message: &Message{Role: RoleAgent, Parts: []Part{{Kind: PartText, Text: "on it"}}}},
		Artifacts: []Artifact{
			{ArtifactID: "5", Parts: []Part{{Kind: PartText, Text: "kept"}}, Extensions: []string{"urn:a"}},
			{Parts: []Part{{Kind: PartUnknown, Unknown: json.RawMessage(`"loose"`), Fault: "not an artifact"}}},
		},
		History: []Message{
			{MessageID: "m1", Role: RoleUser, Parts: []Part{{Kind: PartText, Text: "single"}}},
			{Parts: []Part{{Kind: PartUnknown, Unknown: json.RawMessage(`17`), Fault: "not a message"}}},
		},
	}
	if diff := cmp.Diff(want, ev.Task); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(ev.Notes) < 4 {
		t.Errorf("notes: %q", ev.Notes)
	}
}

// Bytes that are not UTF-8 do not reach a caller, not even inside raw data.
func TestDecodeInvalidUTF8(t *testing.T) {
	ev := decodeEvent(t, rpcResult("{\"message\":{\"messageId\":\"m\",\"role\":\"agent\",\"parts\":[{\"data\":{\"a\":\"x\xffy\"}}]}}"))
	if got, want := string(ev.Message.Parts[0].Data), "{\"a\":\"x\uFFFDy\"}"; got != want {
		t.Errorf("data %q, want %q", got, want)
	}
	if len(ev.Notes) != 1 {
		t.Errorf("notes: %q", ev.Notes)
	}
}

// What is no answer is told apart by why.
func TestDecodeRefuses(t *testing.T) {
	for body, want := range map[string]error{
		`{"jsonrpc":"2.0","id":"7","result":`:    errCutJSON,
		`{"task":{"id":"t1","status":{"sta`:      errCutJSON,
		`<html>`:                                 errNotJSON,
		`{"task":}`:                              errNotJSON,
		`null`:                                   errNotAnswer,
		`[]`:                                     errNotAnswer,
		`"x"`:                                    errNotAnswer,
		`{}`:                                     errNotAnswer,
		`{"jsonrpc":"2.0","id":"7"}`:             errNotAnswer,
		rpcResult(`null`):                        errNotAnswer,
		rpcResult(`{}`):                          errNotAnswer,
		rpcResult(`"ok"`):                        errNotAnswer,
		rpcResult(`{"frobUpdate":{"a":1}}`):      errNotAnswer,
		`{"status":"ok"}`:                        errNotAnswer,
		`{"status":"completed"}`:                 errNotAnswer,
		`{"id":"x","status":"ok"}`:               errNotAnswer,
		`{"message":"Internal Server Error"}`:    errNotAnswer,
		strings.Repeat("[", 20000):               errDeepJSON,
		rpcResult(`{"task":`+nested(20000)) + ``: errDeepJSON,
	} {
		_, err := decoder{id: "7"}.event([]byte(body))
		if !errors.Is(err, want) {
			t.Errorf("%.60s: got %v, want %v", body, err, want)
		}
	}
}

func nested(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

// A {code, message} where a result should be is the agent's error (0.3 REST).
func TestDecodeBareError(t *testing.T) {
	_, err := decoder{}.event([]byte(`{"code":-32001,"message":"no such task","data":{"id":"x"}}`))
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeTaskNotFound || e.Message != "no such task" || string(e.Data) != `{"id":"x"}` {
		t.Fatalf("got %+v", err)
	}
}

// The decoder may not keep the body: it goes back to a pool.
func TestDecodeCopies(t *testing.T) {
	for _, body := range []string{
		rpcResult(`{"task":{"id":"t1","status":{"state":"working"},"metadata":{"a":"b"},"artifacts":[{"artifactId":"a","parts":[{"data":{"k":"v"}},{"text":"t"},{"raw":"aGk="}]}]}}`),
		rpcResult(`{"task":{"id":1,"status":{"state":"working"},"metadata":{"a":"b"},"artifacts":[{"artifactId":"a","parts":[{"data":{"k":"v"}},{"frob":1},"x"]}]}}`),
	} {
		raw := []byte(body)
		ev := decodeOK(t, raw)
		before := fmt.Sprintf("%+v", *ev.Task)
		for i := range raw {
			raw[i] = 'X'
		}
		if after := fmt.Sprintf("%+v", *ev.Task); after != before {
			t.Errorf("changed with the body:\n%s\n%s", before, after)
		}
	}
}

func decodeOK(t *testing.T, body []byte) Event {
	t.Helper()
	ev, err := decoder{id: "7"}.event(body)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// The fast and the lenient pass agree on what both can read.
func TestDecodePassesAgree(t *testing.T) {
	for _, body := range corpus(t) {
		fast, err := decoder{id: "7"}.event([]byte(body))
		if err != nil {
			continue
		}
		l := lenient{}
		w, ok := l.reply([]byte(strings.TrimSpace(strings.TrimPrefix(body, "\ufeff"))))
		if !ok {
			t.Fatalf("lenient refuses %s", body)
		}
		m := modeller{notes: l.notes}
		slow, err := decoder{id: "7"}.settle(w, &m)
		if err != nil {
			t.Fatalf("lenient: %v on %s", err, body)
		}
		if diff := cmp.Diff(fast, slow); diff != "" {
			t.Errorf("%s\n(-fast +lenient)\n%s", body, diff)
		}
	}
}

// ListTasks pages in both shapes (specification 1.0.1, 3.1.4).
func TestDecodePage(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		ids        []string
		next       string
		wantErr    bool
	}{
		{"rpc", rpcResult(`{"tasks":[{"id":"a","status":{"state":"TASK_STATE_WORKING"}},{"id":"b"}],"nextPageToken":"n","pageSize":2,"totalSize":9}`), []string{"a", "b"}, "n", false},
		{"empty", rpcResult(`{}`), nil, "", false},
		{"odd", rpcResult(`{"tasks":[null,{"id":3},{"status":{}}],"next_page_token":5}`), []string{"3"}, "5", false},
		{"error", `{"id":"7","error":{"code":-32004,"message":"no"}}`, nil, "", true},
		{"other id", `{"id":"8","result":{"tasks":[]}}`, nil, "", true},
		{"no answer", `{"id":"7"}`, nil, "", true},
		{"no JSON", `<p>`, nil, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			page, err := decoder{id: "7"}.page([]byte(tt.body))
			if tt.wantErr {
				if err == nil {
					t.Fatalf("no error: %+v", page)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, task := range page.Tasks {
				ids = append(ids, task.ID)
			}
			if !reflect.DeepEqual(ids, tt.ids) || page.NextPageToken != tt.next {
				t.Errorf("ids %v, next %q", ids, page.NextPageToken)
			}
		})
	}
}
