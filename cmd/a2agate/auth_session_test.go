package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestSessionsBelongToTheirPrincipal: with ann's session id another cannot
// cancel her call.
func TestSessionsBelongToTheirPrincipal(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	began, release := w.billing.hold()
	session := w.initialize(t, "ann-token")
	others := w.initialize(t, "bob-token")
	answer := make(chan string, 1)
	go func() {
		_, body := w.make(t, "ann-token", attempt{
			legacy: "2025-11-25", session: session, method: "tools/call",
			params: `"name":"a2a_send_message","arguments":{"agent":"billing","text":"hold"}`,
		})
		answer <- body
	}()
	<-began
	for _, token := range []string{"bob-token", "carl-token"} {
		for _, id := range []string{session, others, ""} {
			status, _ := w.make(t, token, attempt{
				legacy: "2025-11-25", session: id, method: "notifications/cancelled", params: `"requestId":1`, notification: true,
			})
			if status != http.StatusAccepted {
				t.Errorf("%s with %.8s: %d", token, id, status)
			}
		}
	}
	if len(w.billing.Calls("CancelTask")) != 0 {
		t.Error("the agent was asked to cancel")
	}
	release()
	if body := <-answer; !strings.Contains(body, "let go") {
		t.Errorf("ann's call ended with %s", body)
	}
}

// TestQuestionsAreAnsweredByWhoIsAsked: a question in mid-call is answered by
// the caller's own session only, whoever else knows its id and the session's.
func TestQuestionsAreAnsweredByWhoIsAsked(t *testing.T) {
	t.Parallel()
	w := newAuthWorld(t)
	session := w.initialize(t, "ann-token")
	others := w.initialize(t, "bob-token")
	post := func(token, session, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25",
			"Mcp-Session-Id": session, "Authorization": "Bearer " + token,
		} {
			req.Header.Set(name, v)
		}
		resp, err := w.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	call := post("ann-token", session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a2a_send_message","arguments":{"agent":"billing","text":"ask the colour"}}}`)
	defer call.Body.Close()
	stream := bufio.NewScanner(call.Body)
	stream.Buffer(nil, 1<<20)
	next := func() (m struct {
		ID     json.RawMessage
		Method string
		Result json.RawMessage
	}) {
		t.Helper()
		for stream.Scan() {
			if data, ok := strings.CutPrefix(stream.Text(), "data: "); ok && json.Unmarshal([]byte(data), &m) == nil {
				return m
			}
		}
		t.Fatalf("the stream is at its end: %v", stream.Err())
		return m
	}
	asked := next()
	if asked.Method != "elicitation/create" {
		t.Fatalf("%+v", asked)
	}
	says := func(token, session, colour string) {
		t.Helper()
		resp := post(token, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"answer":%q}}}`, asked.ID, colour))
		resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			t.Errorf("%s: %s", token, resp.Status)
		}
	}
	for _, token := range []string{"bob-token", "carl-token", "dora-token"} {
		for _, id := range []string{session, others, ""} {
			says(token, id, "stolen")
		}
	}
	says("ann-token", others, "stolen")
	says("ann-token", session, "green")
	if m := next(); !strings.Contains(string(m.Result), "green") || strings.Contains(string(m.Result), "stolen") {
		t.Errorf("the call ended with %s", m.Result)
	}
}

// initialize opens a session of an old client and returns its id.
func (w *authWorld) initialize(t *testing.T, token string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := resp.Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatalf("%s and no session", resp.Status)
	}
	return id
}
