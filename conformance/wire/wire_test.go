package wire

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"a2agate/internal/schematest"
)

var handlePattern = regexp.MustCompile(`tk_[a-z0-9]{26}`)

var revisions = []string{modern, "2025-11-25", "2025-06-18", "2025-03-26"}

// content are texts to the demo agent that bring every kind of content, state
// and failure which an agent can cause, each with a word of what must come.
var content = []struct{ text, status string }{
	{"help", "completed"}, {"echo hello", "completed"}, {"received", "completed"}, {"meta", "completed"},
	{"task abc", "completed"}, {"instant abc", "completed"}, {"chunks 3", "completed"}, {"interleave 2", "completed"},
	{"replace x", "completed"}, {"both x", "completed"}, {"inhistory x", "completed"}, {"history 5", "completed"}, {"flood 50", "completed"},
	{"data object", "completed"}, {"data array", "completed"}, {"data number", "completed"}, {"data string", "completed"},
	{"data boolean", "completed"}, {"data null", "completed"}, {"data bigint", "completed"},
	{"text plain", "completed"}, {"url", "completed"}, {"image", ""}, {"audio", ""}, {"pdf", "completed"}, {"csv", "completed"},
	{"path", "completed"}, {"mixed", ""}, {"empty", "completed"}, {"badpart", "completed"}, {"unknownpart", "completed"}, {"ansi", "completed"},
	{"kb 80", "completed"}, {"deep 50", "completed"}, {"ask size", "input_required"}, {"askform", "input_required"},
	{"askmulti", "input_required"}, {"askurl", "input_required"}, {"asksecret", "input_required"},
	{"fail x", "failed"}, {"reject x", "rejected"}, {"cancelme", "cancelled"}, {"unspecified", "failed"},
	{"error -32001", ""}, {"error -32004 no", ""}, {"error -32603", ""}, {"nocontext x", "completed"}, {"noid x", "completed"},
	{"httperror 404 x", ""}, {"html", ""}, {"badjson", ""}, {"nullresult", ""}, {"created x", ""}, {"errorevent -32005", ""},
	{"late x", "completed"}, {"dupes x", "completed"}, {"ndjson x", "completed"},
}

// TestEveryMessage calls every method and brings about every kind of answer on
// each revision. What the client sees is validated message by message.
func TestEveryMessage(t *testing.T) {
	schematest.Need(t)
	url := gateway(t, nil)
	for _, rev := range revisions {
		t.Run(rev, func(t *testing.T) {
			t.Parallel()
			c := &client{t: t, url: url, rev: rev}
			c.connect()
			lists(c)
			for _, tt := range content {
				r := c.say(tt.text)
				if len(r.Content) == 0 {
					t.Errorf("%s: no content", tt.text)
				}
				if got := r.StructuredContent.Status; tt.status != "" && rev >= "2025-06-18" && got != tt.status {
					t.Errorf("%s: status %q, want %q: %+v", tt.text, got, tt.status, r)
				}
			}
			tools(c)
			faults(c)
			if c.messages < len(content)+20 {
				t.Errorf("only %d messages were validated", c.messages)
			}
		})
	}
}

// lists calls what is listed, and what is read from a list.
func lists(c *client) {
	tools := c.get("tools/list", "", "")
	if len(tools.Tools) < 20 {
		c.t.Errorf("%d tools, want the four and the skills", len(tools.Tools))
	}
	prompts := c.get("prompts/list", "", "")
	for _, p := range prompts.Prompts {
		c.get("prompts/get", p.Name, `"name":"`+p.Name+`","arguments":{"text":"x","name":"x","message":"x","seconds":"1","filename":"x","arg1":"x","arg2":"y","context":"x"}`)
	}
	c.get("resources/list", "", "")
	c.get("resources/templates/list", "", "")
	c.get("resources/read", "a2a://agents/demo/card", `"uri":"a2a://agents/demo/card"`)
	c.get("completion/complete", "", `"ref":{"type":"ref/resource","uri":"a2a://agents/{alias}/card"},"argument":{"name":"alias","value":"d"}`)
}

// tools calls the other tools, agent tools and skill tools.
func tools(c *client) {
	c.call("a2a_discover", `{}`)
	c.call("a2a_discover", `{"agent":"demo"}`)
	c.call("a2a_discover", `{"query":"text"}`)
	slow := c.call("a2a_send_message", `{"agent":"demo","text":"slow 30","blocking":false}`)
	handle := ""
	for _, block := range slow.Content { // 2025-03-26 has no structuredContent: the words name it
		if match := handlePattern.FindString(block.Text); match != "" {
			handle = match
		}
	}
	if handle == "" {
		c.t.Fatalf("no handle in %+v", slow)
	}
	c.call("a2a_get_task", `{"taskHandle":"`+handle+`","historyLength":3}`)
	c.call("a2a_cancel_task", `{"taskHandle":"`+handle+`"}`)
	c.call("a2a_get_task", `{"taskHandle":"tk_aaaaaaaaaaaaaaaaaaaaaaaaaa"}`)
	c.call("suite", `{"message":"hello"}`)
	for _, name := range []string{"test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types", "test_error_handling"} {
		c.call(name, `{}`)
	}
	c.call("greet", `{"name":"World"}`)
	c.call("greet", `{}`)
	// With progress the answer is a stream.
	list := c.request("tools/call", "test_tool_with_progress", c.params(`"name":"test_tool_with_progress","arguments":{}`, `"progressToken":"p"`))
	if len(list) < 4 {
		c.t.Errorf("%d messages with progress", len(list))
	}
}

// faults are requests that are answered with an error.
func faults(c *client) {
	c.fails(-32601, "no/such", "", c.params(""))
	c.fails(-32602, "tools/call", "nosuchtool", c.params(`"name":"nosuchtool"`))
	c.fails(-32602, "prompts/get", "nosuchprompt", c.params(`"name":"nosuchprompt"`))
	c.fails(-32602, "resources/read", "test://x", c.params(`"uri":"test://x"`))
	c.fails(-32602, "tools/list", "", c.params(`"cursor":"bad"`))
	if c.rev == modern {
		c.fails(-32602, "tools/list", "", `{}`)
		c.fails(-32021, "tasks/get", "t", c.params(`"taskId":"t"`))
		c.fails(-32021, "tools/call", "failing_job", c.params(`"name":"failing_job"`))
		c.fails(-32601, "ping", "", c.params(""))
	} else {
		c.fails(-32601, "tasks/get", "t", c.params(`"taskId":"t"`))
	}
}

// TestQuestionsInTheCall: a modern client is asked by InputRequired, a legacy
// one by a request in mid-call; each is validated, and the answers arrive.
func TestQuestionsInTheCall(t *testing.T) {
	schematest.Need(t)
	url := gateway(t, nil)
	answers := map[string]string{
		"ask size": `{"answer":"large"}`, "askform": `{"seat":"aisle","name":"Ada","bags":1,"extra":true}`,
	}
	t.Run(modern, func(t *testing.T) {
		t.Parallel()
		c := &client{t: t, url: url, rev: modern, capabilities: `{"elicitation":{"form":{},"url":{}}}`}
		for text, answer := range answers {
			asked := c.say(text)
			if asked.Kind != "input_required" || asked.RequestState == "" || len(asked.InputRequests) != 1 {
				t.Fatalf("%s: %+v", text, asked)
			}
			for key := range asked.InputRequests {
				done := c.call("a2a_send_message", `{"agent":"demo","text":"`+text+`"}`, `"requestState":"`+asked.RequestState+`"`,
					`"inputResponses":{"`+key+`":{"action":"accept","content":`+answer+`}}`)
				if done.StructuredContent.Status != "completed" {
					t.Errorf("%s: %+v", text, done)
				}
			}
			c.fails(-32602, "tools/call", "a2a_send_message", c.params(`"name":"a2a_send_message","arguments":{"agent":"demo","text":"`+text+`"},"requestState":"`+asked.RequestState+`"`))
		}
		c.say("askmulti")
		c.say("askurl")
	})
	for _, rev := range []string{"2025-11-25", "2025-06-18"} {
		t.Run(rev, func(t *testing.T) {
			t.Parallel()
			c := &client{t: t, url: url, rev: rev, capabilities: `{"elicitation":{}}`}
			c.connect()
			for text, answer := range answers {
				asked := 0
				c.elicit = func(json.RawMessage) string { asked++; return `{"action":"accept","content":` + answer + `}` }
				if done := c.say(text); done.StructuredContent.Status != "completed" || asked != 1 {
					t.Errorf("%s: asked %d times, %+v", text, asked, done)
				}
			}
			c.elicit = func(json.RawMessage) string { return `{"action":"accept","content":{}}` }
			c.call("test_elicitation_sep1034_defaults", `{}`)
			c.call("test_elicitation_sep1330_enums", `{}`)
		})
	}
}

// TestTasks drives tasks through all their states, with a listener beside.
func TestTasks(t *testing.T) {
	schematest.Need(t)
	url := gateway(t, map[string]any{"wait": map[string]any{"taskGrace": "0s"}})
	c := &client{t: t, url: url, rev: modern, capabilities: `{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`}
	slow := c.call("slow_compute", `{"seconds":60}`)
	asking := c.call("multi_input", `{}`)
	failing := c.call("failing_job", `{}`)
	broken := c.call("protocol_error_job", `{}`)
	for _, r := range []result{slow, asking, failing, broken} {
		if r.Kind != "task" || r.TaskID == "" {
			t.Fatalf("not a task: %+v", r)
		}
	}
	stop := listen(t, url, c.capabilities, []string{slow.TaskID, asking.TaskID, failing.TaskID, broken.TaskID})
	c.until(slow.TaskID, "working")
	c.until(asking.TaskID, "input_required")
	update := func(members string) {
		if r := c.get("tasks/update", asking.TaskID, `"taskId":"`+asking.TaskID+`","inputResponses":{`+members+`}`); r.Kind != "complete" {
			t.Errorf("tasks/update: %+v", r)
		}
	}
	open := c.until(asking.TaskID, "input_required").InputRequests
	if len(open) != 2 {
		t.Fatalf("%d questions, want two", len(open))
	}
	for key := range open {
		update(`"` + key + `":{"action":"accept","content":{"name":"Ada","confirm":true}}`)
	}
	c.until(asking.TaskID, "completed")
	if r := c.until(failing.TaskID, "completed"); r.Result == nil || !r.Result.IsError {
		t.Errorf("a failed job: %+v", r)
	}
	c.until(broken.TaskID, "failed")
	for range 2 {
		c.get("tasks/cancel", slow.TaskID, `"taskId":"`+slow.TaskID+`"`)
	}
	c.until(slow.TaskID, "cancelled")
	c.fails(-32602, "tasks/get", "nosuchtask", c.params(`"taskId":"nosuchtask"`))
	if n := stop(); n < 5 {
		t.Errorf("the listener was told %d times, want the acknowledgement and each task", n)
	}
}

// until reads a task until it has a status.
func (c *client) until(id, status string) result {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		r := c.get("tasks/get", id, `"taskId":"`+id+`"`)
		if r.Status == status {
			return r
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the task is %s, want %s", r.Status, status)
		}
		time.Sleep(50 * time.Millisecond) // a poll, as clients do
	}
}

// listen opens a stream for tasks and for changed lists, and validates what
// comes. It returns once the stream is acknowledged; stop ends it and says how
// many messages came.
func listen(t *testing.T, url, capabilities string, ids []string) (stop func() int) {
	t.Helper()
	c := &client{t: t, url: url, rev: modern, capabilities: capabilities, lastID: 1000}
	filter := `"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`
	if len(ids) > 0 {
		raw, err := json.Marshal(ids)
		if err != nil {
			t.Fatal(err)
		}
		filter += `,"taskIds":` + string(raw)
	}
	resp := c.post(`{"jsonrpc":"2.0","id":1001,"method":"subscriptions/listen","params":`+c.params(`"notifications":{`+filter+`}`)+`}`, "subscriptions/listen", "")
	acknowledged, done := make(chan struct{}), make(chan struct{})
	go func() { // stop waits for it
		defer close(done)
		_ = each(resp, func(raw []byte) bool {
			if m := c.take("subscriptions/listen", raw); m.Method == "notifications/subscriptions/acknowledged" {
				close(acknowledged)
			}
			return true
		}) // ends when stop closes the body
	}()
	select {
	case <-acknowledged:
	case <-time.After(patience):
		t.Fatal("the stream was not acknowledged in time")
	}
	return func() int {
		resp.Body.Close()
		<-done
		return c.messages
	}
}

// TestChangedLists: a card that an agent changes by its own work reaches who
// listens, and no message of it is out of form.
func TestChangedLists(t *testing.T) {
	schematest.Need(t)
	url := gateway(t, nil)
	c := &client{t: t, url: url, rev: modern}
	stop := listen(t, url, "{}", nil)
	had := len(c.get("tools/list", "", "").Tools)
	c.call("test_trigger_tool_change", `{}`)
	deadline := time.Now().Add(patience)
	for len(c.get("tools/list", "", "").Tools) == had {
		if time.Now().After(deadline) {
			t.Fatal("the new tool is not listed")
		}
		time.Sleep(50 * time.Millisecond) // a poll, as clients do
	}
	// The stream is told before or soon after the list changes: the last look
	// is behind both.
	c.call("greet", `{"name":"x"}`)
	if n := stop(); n < 2 {
		t.Errorf("the listener was told %d times", n)
	}
}
