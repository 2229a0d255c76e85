package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	legacy "github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/v2/a2apb/v0/pbjson"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// The operations, by the names of 1.0.
const (
	opSend      = "SendMessage"
	opStream    = "SendStreamingMessage"
	opGet       = "GetTask"
	opCancel    = "CancelTask"
	opSubscribe = "SubscribeToTask"
	opList      = "ListTasks"
)

// check holds one request to the letter and says which operation it is.
func (r request) check() (op string, err error) {
	switch r.wire() {
	case "1.0-rpc":
		return r.checkRPC(map[string]string{opSend: opSend, opStream: opStream, opGet: opGet, opCancel: opCancel, opSubscribe: opSubscribe, opList: opList}, strict10)
	case "0.3-rpc":
		return r.checkRPC(map[string]string{"message/send": opSend, "message/stream": opStream, "tasks/get": opGet, "tasks/cancel": opCancel, "tasks/resubscribe": opSubscribe}, strict03)
	case "1.0-rest":
		return r.checkREST(strict10, "application/a2a+json")
	case "0.3-rest":
		return r.checkREST(strict03REST, "application/json")
	}
	return "", fmt.Errorf("A2A-Version %q is neither 1.0 nor 0.3", r.Version)
}

// checkRPC reads the envelope of JSON-RPC 2.0, which has no other members.
func (r request) checkRPC(methods map[string]string, params func(op string, raw []byte) error) (string, error) {
	if r.Method != "POST" || r.ContentType != "application/json" {
		return "", fmt.Errorf("%s with Content-Type %q, want POST with application/json", r.Method, r.ContentType)
	}
	var envelope struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	d := json.NewDecoder(strings.NewReader(r.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(&envelope); err != nil {
		return "", err
	}
	op, ok := methods[envelope.Method]
	if !ok {
		return "", fmt.Errorf("no method %q", envelope.Method)
	}
	if envelope.JSONRPC != "2.0" || len(envelope.ID) == 0 || string(envelope.ID) == "null" {
		return op, fmt.Errorf("jsonrpc %q, id %s", envelope.JSONRPC, envelope.ID)
	}
	return op, params(op, envelope.Params)
}

// checkREST finds the operation in method and path, and adds to the body what
// the transcoding rules take from them.
func (r request) checkREST(body func(op string, raw []byte) error, contentType string) (string, error) {
	u, err := url.ParseRequestURI(r.Path)
	if err != nil {
		return "", err
	}
	if r.Body != "" && r.ContentType != contentType && r.ContentType != "application/json" {
		return "", fmt.Errorf("Content-Type %q, want %s", r.ContentType, contentType)
	}
	last := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	id, verb, _ := strings.Cut(last, ":")
	switch {
	case r.Method == "POST" && last == "message:send":
		return opSend, body(opSend, []byte(r.Body))
	case r.Method == "POST" && last == "message:stream":
		return opStream, body(opStream, []byte(r.Body))
	case strings.HasSuffix(u.Path, "/tasks/"+last) && verb == "" && r.Method == "GET":
		return opGet, body(opGet, fields(id, u.Query(), ""))
	case strings.HasSuffix(u.Path, "/tasks/"+last) && verb == "cancel" && r.Method == "POST":
		return opCancel, body(opCancel, fields(id, u.Query(), r.Body))
	case strings.HasSuffix(u.Path, "/tasks/"+last) && verb == "subscribe":
		return opSubscribe, body(opSubscribe, fields(id, u.Query(), r.Body))
	}
	return "", errors.New("no such operation")
}

// fields puts the id of the path and the query into the fields of the body.
func fields(id string, query url.Values, body string) []byte {
	all := map[string]any{}
	if body != "" {
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			return []byte(body) // what comes next says so
		}
	}
	all["id"] = id
	for k, v := range query {
		all[k] = strings.Join(v, ",")
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return raw
}

// strict10 reads the fields of an operation of A2A 1.0 by ProtoJSON.
func strict10(op string, raw []byte) error {
	requests := map[string]proto.Message{
		opSend: &a2apb.SendMessageRequest{}, opStream: &a2apb.SendMessageRequest{}, opGet: &a2apb.GetTaskRequest{},
		opCancel: &a2apb.CancelTaskRequest{}, opSubscribe: &a2apb.SubscribeToTaskRequest{}, opList: &a2apb.ListTasksRequest{},
	}
	if err := protojson.Unmarshal(raw, requests[op]); err != nil {
		return err
	}
	if send, ok := requests[op].(*a2apb.SendMessageRequest); ok {
		m := send.GetMessage()
		if m.GetMessageId() == "" || m.GetRole() != a2apb.Role_ROLE_USER || len(m.GetParts()) == 0 {
			return errors.New("a message without messageId, role of a user or parts")
		}
	}
	return nil
}

// strict03REST does so for A2A 0.3, whose messages hold their parts as content.
func strict03REST(op string, raw []byte) error {
	if op != opSend && op != opStream {
		// The fields of the others came in path and query; only id and
		// historyLength may stand there.
		var known struct {
			ID            string `json:"id"`
			HistoryLength string `json:"historyLength"`
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		return d.Decode(&known)
	}
	send := &pbjson.SendMessageRequest{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(send); err != nil {
		return err
	}
	if m := send.Message; m == nil || m.MessageID == "" || m.Role != "ROLE_USER" || len(m.Content) == 0 {
		return errors.New("a message without messageId, role of a user or content")
	}
	return same(raw, send)
}

// same holds what was read of raw against it, by writing it again: what is not
// the same then was not understood.
func same(raw []byte, read any) error {
	again, err := json.Marshal(read)
	if err != nil {
		return err
	}
	var was, is any
	if err := errors.Join(json.Unmarshal(raw, &was), json.Unmarshal(again, &is)); err != nil {
		return err
	}
	if !reflect.DeepEqual(was, is) {
		return fmt.Errorf("only this of it is understood: %s", again)
	}
	return nil
}

// strict03 reads the params of an operation of A2A 0.3 over JSON-RPC into the
// types of that version.
func strict03(op string, raw []byte) error {
	requests := map[string]any{
		opSend: &legacy.MessageSendParams{}, opStream: &legacy.MessageSendParams{}, opGet: &legacy.TaskQueryParams{},
		opCancel: &legacy.TaskIDParams{}, opSubscribe: &legacy.TaskIDParams{},
	}
	into, ok := requests[op]
	if !ok {
		return fmt.Errorf("%s does not exist in 0.3", op)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	return same(raw, into)
}
