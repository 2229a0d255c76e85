package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"a2agate/internal/schematest"
)

const modern = "2026-07-28"

// client speaks one revision by bare HTTP and validates each message that it
// is sent.
type client struct {
	t   *testing.T
	url string
	rev string
	// capabilities are declared with each modern request and at initialize.
	capabilities string
	session      string
	lastID       int
	// elicit answers what a legacy gateway asks in mid-call; nil is never asked.
	elicit func(params json.RawMessage) string
	// messages counts what was validated.
	messages int
}

// message is one message of the gateway.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// result is the part of an answer that the tests look at.
type result struct {
	Kind              string `json:"resultType"`
	IsError           bool   `json:"isError"`
	TaskID            string `json:"taskId"`
	Status            string `json:"status"`
	RequestState      string `json:"requestState"`
	InputRequests     map[string]json.RawMessage
	StructuredContent struct {
		Status     string `json:"status"`
		TaskHandle string `json:"taskHandle"`
	} `json:"structuredContent"`
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Prompts []struct {
		Name string `json:"name"`
	} `json:"prompts"`
	Result *result `json:"result"`
}

// params joins members of an object; on the modern wire with the _meta that
// every request needs.
func (c *client) params(members string, meta ...string) string {
	if c.rev == modern {
		capabilities := c.capabilities
		if capabilities == "" {
			capabilities = "{}"
		}
		meta = append(meta, `"io.modelcontextprotocol/protocolVersion":"`+modern+`"`, `"io.modelcontextprotocol/clientCapabilities":`+capabilities)
	}
	if len(meta) > 0 {
		if members != "" {
			members += ","
		}
		members += `"_meta":{` + strings.Join(meta, ",") + `}`
	}
	return "{" + members + "}"
}

func (c *client) post(body, method, name string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case c.rev == modern:
		req.Header.Set("MCP-Protocol-Version", modern)
		req.Header.Set("Mcp-Method", method)
		if name != "" {
			req.Header.Set("Mcp-Name", name)
		}
	case method != "initialize":
		if c.rev >= "2025-06-18" {
			req.Header.Set("MCP-Protocol-Version", c.rev)
		}
		if c.session != "" {
			req.Header.Set("Mcp-Session-Id", c.session)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return resp
}

// request sends a request and returns all messages up to the answer, which is
// the last one.
func (c *client) request(method, name, params string) []message {
	c.t.Helper()
	c.lastID++
	resp := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.lastID, method, params), method, name)
	defer resp.Body.Close()
	if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
		c.session = s
	}
	var list []message
	err := each(resp, func(raw []byte) bool {
		m := c.take(method, raw)
		if m.Method == "elicitation/create" {
			c.answer(m)
		}
		list = append(list, m)
		return true
	})
	if err != nil || len(list) == 0 {
		c.t.Fatalf("%s: %d messages, %v", method, len(list), err)
	}
	if last := list[len(list)-1]; string(last.ID) != fmt.Sprint(c.lastID) || last.Method != "" {
		c.t.Fatalf("%s: the last message is no answer: %+v", method, last)
	}
	return list
}

// each calls f with every message of a response, until it returns false.
func each(resp *http.Response, f func(raw []byte) bool) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw, err := io.ReadAll(resp.Body)
		if err == nil && len(raw) > 0 {
			f(raw)
		}
		return err
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if ok && !f(bytes.Clone(data)) {
			return nil
		}
	}
	return lines.Err()
}

// take validates a message against the schema of the revision and reads it.
func (c *client) take(method string, raw []byte) message {
	c.t.Helper()
	schematest.Message(c.t, c.rev, method, raw)
	c.messages++
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		c.t.Fatalf("%s: %v\n%s", method, err, raw)
	}
	if method == "tasks/get" || m.Method == "notifications/tasks" {
		c.inner(m)
	}
	return m
}

// inner validates what a task holds: the result that the call would have had,
// and its questions.
func (c *client) inner(m message) {
	c.t.Helper()
	var task struct {
		Result        json.RawMessage            `json:"result"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
	}
	raw := m.Result
	if m.Method != "" {
		raw = m.Params
	}
	if raw == nil {
		return
	}
	if err := json.Unmarshal(raw, &task); err != nil {
		c.t.Fatal(err)
	}
	if task.Result != nil {
		schematest.Validate(c.t, c.rev, "CallToolResult", task.Result)
	}
	for key, q := range task.InputRequests {
		if !bytes.Contains(q, []byte(`"elicitation/create"`)) {
			c.t.Errorf("%s: not an elicitation: %s", key, q)
		}
	}
}

// answer posts the answer to a question in mid-call.
func (c *client) answer(m message) {
	c.t.Helper()
	if c.elicit == nil {
		c.t.Errorf("a client that cannot be asked was asked: %s", m.Params)
		return
	}
	resp := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, c.elicit(m.Params)), "", "")
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		c.t.Errorf("the answer to a question was taken with HTTP %d", resp.StatusCode)
	}
}

// get sends a request and returns its result; an error is the test's.
func (c *client) get(method, name, members string, meta ...string) result {
	c.t.Helper()
	list := c.request(method, name, c.params(members, meta...))
	last := list[len(list)-1]
	if last.Error != nil {
		c.t.Fatalf("%s %s: error %d %s", method, members, last.Error.Code, last.Error.Message)
	}
	return read(c.t, last.Result)
}

func read(t *testing.T, raw []byte) result {
	t.Helper()
	var r result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return r
}

// fails sends a request that must be answered with an error of this code.
func (c *client) fails(code int, method, name, params string) {
	c.t.Helper()
	list := c.request(method, name, params)
	if last := list[len(list)-1]; last.Error == nil || last.Error.Code != code {
		c.t.Errorf("%s %s: %+v, want the error %d", method, params, last, code)
	}
}

// call calls a tool; arguments is a JSON object, more are further members.
func (c *client) call(tool, arguments string, more ...string) result {
	c.t.Helper()
	members := append([]string{fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments)}, more...)
	return c.get("tools/call", tool, strings.Join(members, ","))
}

// say sends a text to the demo agent.
func (c *client) say(text string) result {
	c.t.Helper()
	raw, err := json.Marshal(map[string]string{"agent": "demo", "text": text})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.call("a2a_send_message", string(raw))
}

// connect begins a session on the legacy wires; the modern one needs none.
func (c *client) connect() {
	c.t.Helper()
	if c.rev == modern {
		c.get("server/discover", "", "")
		return
	}
	capabilities := c.capabilities
	if capabilities == "" {
		capabilities = "{}"
	}
	c.request("initialize", "", `{"protocolVersion":"`+c.rev+`","capabilities":`+capabilities+`,"clientInfo":{"name":"wire","version":"1"}}`)
	resp := c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "notifications/initialized", "")
	resp.Body.Close()
	c.get("ping", "", "")
}
