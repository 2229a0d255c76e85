package translate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

func secondsOf(n int64) time.Duration { return time.Duration(n) * time.Second }

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":                   `""`,
		"plain":              `"plain"`,
		`a "b" \c`:           `"a \"b\" \\c"`,
		"\n\r\t\x00\x1f\x7f": "\"\\n\\r\\t\\u0000\\u001f\x7f\"",
		"<a href='x'>&</a>":  `"<a href='x'>&</a>"`,
		"日本 👩\u200d🔬 \u2028": "\"日本 👩\u200d🔬 \u2028\"",
		"bad \xff\xc3( end":  "\"bad \ufffd\ufffd( end\"",
		"\xed\xa0\x80":       "\"\ufffd\ufffd\ufffd\"",
		strings.Repeat("x", 7) + `"` + strings.Repeat("y", 9): `"xxxxxxx\"yyyyyyyyy"`,
	} {
		if got := string(AppendString(nil, in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	// Every byte at every place in a word.
	for c := range 256 {
		for at := range 20 {
			b := []byte(strings.Repeat("z", 20))
			b[at] = byte(c)
			var back string
			if err := json.Unmarshal(AppendString(nil, string(b)), &back); err != nil || back != strings.ToValidUTF8(string(b), "\ufffd") {
				t.Fatalf("byte %#x at %d: %v %q", c, at, err, back)
			}
		}
	}
}

func TestAppendRaw(t *testing.T) {
	for in, want := range map[string]string{
		"":                              `null`,
		"null":                          `null`,
		"{\n \"a\" :\r\n\t[ 1.10, 2 ]}": "{ \"a\" :\t[ 1.10, 2 ]}",
		`{"b":"<\u003c>","a":12345678901234567890}`: `{"b":"<\u003c>","a":12345678901234567890}`,
		"\"bad \xff\"": "\"bad \ufffd\"",
	} {
		if got := string(AppendRaw(nil, json.RawMessage(in))); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	// A depth bomb is carried, not entered.
	for _, depth := range []int{300, 1_000_000} {
		bomb := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		if got := string(AppendRaw(nil, json.RawMessage(bomb))); got != bomb {
			t.Errorf("%d levels are not carried", depth)
		}
	}
}

// What a revision does not know is not sent to it.
func TestRevisions(t *testing.T) {
	r := Result{
		Content: []mcp.Content{
			mcp.ResourceLink{Type: "resource_link", URI: "https://a.test/1", Name: "one"},
			mcp.ResourceLink{Type: "resource_link", URI: "https://a.test/2", Name: "two", MIMEType: "text/plain"},
			mcp.TextContent{Type: "text", Text: "two is at https://a.test/2", Meta: &mcp.Meta{AdditionalFields: map[string]any{"b": 1, "a/x": json.RawMessage("{\n}")}}},
		},
		Structured: json.RawMessage(`[1,2]`),
		IsError:    true,
		Meta:       []MetaEntry{{"k", json.RawMessage(`1`)}, {"k", json.RawMessage(`2`)}},
	}
	extra := []MetaEntry{{"k", json.RawMessage(`3`)}, {"l", json.RawMessage(`4`)}}
	links := `{"type":"resource_link","uri":"https://a.test/1","name":"one"},{"type":"resource_link","uri":"https://a.test/2","name":"two","mimeType":"text/plain"},`
	text := `{"type":"text","text":"two is at https://a.test/2","_meta":{"a/x":{},"b":1}}]`
	for rev, want := range map[Revision]string{
		Rev20250326: `{"content":[{"type":"text","text":"one: https://a.test/1"},{"type":"text","text":"two is at https://a.test/2"}],"isError":true}`,
		Rev20250618: `{"content":[` + links + text + `,"structuredContent":{"value":[1,2]},"isError":true,"_meta":{"k":1,"l":4}}`,
		Rev20251125: `{"content":[` + links + text + `,"structuredContent":{"value":[1,2]},"isError":true,"_meta":{"k":1,"l":4}}`,
		Rev20260728: `{"resultType":"complete","content":[` + links + text + `,"structuredContent":[1,2],"isError":true,"_meta":{"k":1,"l":4}}`,
	} {
		got := AppendResult(nil, r, rev, extra)
		if string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", rev, got, want)
		}
		checkResult(t, got, rev)
	}
}

func TestOtherBlocks(t *testing.T) {
	size := int64(0)
	p := 0.5
	r := Result{Content: []mcp.Content{
		mcp.ImageContent{Type: "image", Data: "aGk=", MIMEType: "image/png", Annotated: mcp.Annotated{Annotations: &mcp.Annotations{Priority: &p}}},
		mcp.AudioContent{Type: "audio", Data: "aGk=", MIMEType: "audio/wav"},
		mcp.ResourceLink{Type: "resource_link", URI: "a:b", Name: "n", Title: "t", Description: "d", Size: &size},
		mcp.EmbeddedResource{Type: "resource", Resource: mcp.TextResourceContents{URI: "a:b", Text: "x", Meta: map[string]any{"k": "v"}}},
		mcp.EmbeddedResource{Type: "resource", Resource: mcp.BlobResourceContents{URI: "a:b", MIMEType: "x/y", Blob: "aGk="}},
	}}
	want := `{"resultType":"complete","content":[{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":0.5}},` +
		`{"type":"audio","data":"aGk=","mimeType":"audio/wav"},` +
		`{"type":"resource_link","uri":"a:b","name":"n","title":"t","description":"d","size":0},` +
		`{"type":"resource","resource":{"uri":"a:b","text":"x","_meta":{"k":"v"}}},` +
		`{"type":"resource","resource":{"uri":"a:b","mimeType":"x/y","blob":"aGk="}}]}`
	got := AppendResult(nil, r, Rev20260728, nil)
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	checkResult(t, got, Rev20260728)
	if got := string(AppendResult(nil, Result{}, Rev20250618, nil)); got != `{"content":[]}` {
		t.Errorf("an empty result: %s", got)
	}
}

func TestTaskShapes(t *testing.T) {
	info := TaskInfo{ID: "tk_1", Status: TaskWorking, StatusMessage: "busy", Created: at, Updated: at.Add(1500 * time.Millisecond), TTL: 24 * time.Hour, PollInterval: 2 * time.Second}
	base := `"taskId":"tk_1","status":"STATUS","statusMessage":"busy","createdAt":"2026-11-30T12:00:00.000Z","lastUpdatedAt":"2026-11-30T12:00:01.500Z","ttlMs":86400000,"pollIntervalMs":2000`
	with := func(s TaskStatus) DetailedTask {
		d := DetailedTask{TaskInfo: info}
		d.Status = s
		return d
	}
	got := AppendTask(nil, info, serverInfo)
	want := `{"resultType":"task",` + strings.ReplaceAll(base, "STATUS", "working") + `,"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"a2agate","version":"0"}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	checkAgainst(t, got, "mcp-tasks-draft.json", "CreateTaskResult")

	asked := with(TaskInputRequired)
	asked.Asks = []Ask{plainAsk("Which?")}
	done := with(TaskCompleted)
	done.Result = &Result{Content: []mcp.Content{mcp.TextContent{Type: "text", Text: "ok"}}}
	lost := with(TaskFailed)
	lost.Err = &Error{Code: CodeInternal, Message: "gone", Data: json.RawMessage(`{"agent":"x"}`)}
	for _, c := range []struct {
		task DetailedTask
		tail string
	}{
		{with(TaskWorking), ``},
		{with(TaskCancelled), ``},
		{asked, `,"inputRequests":{"answer":{"method":"elicitation/create","params":{"mode":"form","message":"Which?","requestedSchema":` + answerSchema + `}}}`},
		{done, `,"result":{"resultType":"complete","content":[{"type":"text","text":"ok"}]}`},
		{with(TaskCompleted), `,"result":{"resultType":"complete","content":[]}`},
		{lost, `,"error":{"code":-32603,"message":"gone","data":{"agent":"x"}}`},
		{with(TaskFailed), `,"error":{"code":-32603,"message":"the task is lost"}`},
	} {
		fields := strings.ReplaceAll(base, "STATUS", string(c.task.Status)) + c.tail
		got := AppendDetailedTask(nil, c.task, Rev20260728, nil)
		if want := `{"resultType":"complete",` + fields + `}`; string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", c.task.Status, got, want)
		}
		checkAgainst(t, got, "mcp-tasks-draft.json", "GetTaskResult")
		note := AppendTaskNotification(nil, c.task, Rev20260728, []MetaEntry{{"io.modelcontextprotocol/subscriptionId", json.RawMessage(`"1"`)}})
		if want := `{` + fields + `,"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}`; string(note) != want {
			t.Errorf("notification\ngot  %s\nwant %s", note, want)
		}
		checkAgainst(t, note, "mcp-tasks-draft.json", "TaskStatusNotificationParams")
	}
}

func TestInputRequired(t *testing.T) {
	in := InputRequired{RequestState: "rs_1", Asks: []Ask{plainAsk("Which?"), {Key: `b"`, Message: "go", URL: "https://a.test/"}}}
	got := AppendInputRequired(nil, in, Rev20260728, serverInfo)
	want := `{"resultType":"input_required","inputRequests":{"answer":{"method":"elicitation/create","params":{"mode":"form","message":"Which?","requestedSchema":` + answerSchema +
		`}},"b\"":{"method":"elicitation/create","params":{"mode":"url","message":"go","url":"https://a.test/"}}},"requestState":"rs_1",` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"a2agate","version":"0"}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	checkAgainst(t, got, "mcp-2026-07-28.json", "InputRequiredResult")
}

func TestAppendError(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Code: -32602, Message: "no <tool>\n"}, `{"code":-32602,"message":"no <tool>\n"}`},
		{Error{Code: -32021, Message: "", Data: json.RawMessage("{\n}")}, `{"code":-32021,"message":"","data":{}}`},
	} {
		got := AppendError(nil, &c.err)
		if string(got) != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
		checkAgainst(t, got, "mcp-2026-07-28.json", "Error")
	}
}
