package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func rpc(version, method, params string) request {
	return request{Alias: "a", Method: "POST", Path: "/rpc", ContentType: "application/json", Version: version,
		Body: `{"jsonrpc":"2.0","id":"1","method":"` + method + `","params":` + params + `}`}
}

func rest(version, method, path, body string) request {
	return request{Alias: "a", Method: method, Path: path, ContentType: "application/json", Version: version, Body: body}
}

const (
	message10 = `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"},{"data":[1,null]}]},"configuration":{"returnImmediately":true}}`
	message03 = `{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]},"configuration":{"blocking":true}}`
	content03 = `{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"x"}]}}`
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    request
		op   string
		want string // part of the error, "" for none
	}{
		{"1.0 rpc", rpc("1.0", "SendMessage", message10), opSend, ""},
		{"1.0 rpc get", rpc("1.0", "GetTask", `{"id":"t","historyLength":3}`), opGet, ""},
		{"1.0 rpc, a member of 0.3", rpc("1.0", "SendMessage", strings.Replace(message10, `{"text"`, `{"kind":"text","text"`, 1)), opSend, "unknown field"},
		{"1.0 rpc, a role of 0.3", rpc("1.0", "SendMessage", strings.Replace(message10, "ROLE_USER", "user", 1)), opSend, "user"},
		{"1.0 rpc, a method of 0.3", rpc("1.0", "message/send", message10), "", "no method"},
		{"1.0 rpc, no parts", rpc("1.0", "SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER"}}`), opSend, "without"},
		{"1.0 rest", rest("1.0", "POST", "/message:send", message10), opSend, ""},
		{"1.0 rest get", rest("1.0", "GET", "/x/tasks/t-1?historyLength=2", ""), opGet, ""},
		{"1.0 rest get, a strange query", rest("1.0", "GET", "/tasks/t-1?history=2", ""), opGet, "unknown field"},
		{"1.0 rest cancel", rest("1.0", "POST", "/tasks/t:cancel", `{"tenant":"x"}`), opCancel, ""},
		{"1.0 rest subscribe", rest("1.0", "GET", "/tasks/t:subscribe", ""), opSubscribe, ""},
		{"1.0 rest, no operation", rest("1.0", "POST", "/tasks/t:pause", "{}"), "", "no such operation"},
		{"0.3 rpc", rpc("", "message/send", message03), opSend, ""},
		{"0.3 rpc, a member of 1.0", rpc("", "message/send", strings.Replace(message03, `"blocking"`, `"returnImmediately"`, 1)), opSend, "only this"},
		{"0.3 rpc, no kind", rpc("", "message/send", strings.Replace(message03, `"kind":"text",`, "", 1)), opSend, "kind"},
		{"0.3 rest", rest("", "POST", "/v1/message:stream", content03), opStream, ""},
		{"0.3 rest, parts", rest("", "POST", "/v1/message:stream", strings.Replace(content03, "content", "parts", 1)), opStream, "unknown field"},
		{"0.3 rest get", rest("", "GET", "/v1/tasks/t?historyLength=2", ""), opGet, ""},
		{"a version that is none", rpc("2.0", "SendMessage", message10), "", "neither 1.0 nor 0.3"},
	} {
		op, err := tt.r.check()
		if op != tt.op {
			t.Errorf("%s: %s, want %s", tt.name, op, tt.op)
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestAnEmptyFileIsNoSuccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := run(path, []string{"a"}); err == nil || !strings.Contains(err.Error(), "a was sent no message") {
		t.Errorf("error %v", err)
	}
}
