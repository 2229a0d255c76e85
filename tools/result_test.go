package tools

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/fixtures"
)

// requestID is the id of a request in an excerpt.
var requestID = regexp.MustCompile(`"id":"\d+"`)

// Bad input of agents: each gets one clear line, and the process lives on.
func TestAgentsThatMisbehave(t *testing.T) {
	tests := []struct{ say, stream, unary string }{
		{"httperror 500 x", "the agent answered HTTP 500 Internal Server Error: x", ""},
		{"httperror 403", "the agent answered HTTP 403 Forbidden; set the agent's auth in the gateway's configuration", ""},
		{"retryafter 7", "the agent answered HTTP 429 Too Many Requests; try again in 7 s", ""},
		{"html", "demo.test:80 answered HTTP 200 (text/html) with a web page instead of an A2A answer: Sign in Sign in to continue", ""},
		{"failbefore", "demo.test:80 closed the connection before it answered; the agent may have acted: check before sending it again", ""},
		{"failafter x", "demo.test:80 closed the connection before it answered; the agent may have acted: check before sending it again", ""},
		{"badjson", "demo.test:80 sent something that is not JSON in a stream",
			`demo.test:80 answered HTTP 200 (application/json) with something that is not JSON`},
		{"cutjson", "demo.test:80 closed the connection in the middle of its answer; the agent may have acted: check before sending it again", ""},
		{"wrongid", "demo.test:80 sent an event that belongs to another request in a stream",
			"demo.test:80 answered HTTP 200 (application/json) with the answer to another request"},
		{"nullresult", `demo.test:80 sent JSON that is no A2A answer in a stream: {"jsonrpc":"2.0","id":"1","result":null}`,
			`demo.test:80 answered HTTP 200 (application/json) with JSON that is no A2A answer: {"jsonrpc":"2.0","id":"1","result":null}`},
		{"big 20", "the agent's stream event is over the limit of 8388608 bytes; ask the agent for less",
			"the agent's answer is over the limit of 16777216 bytes; ask the agent for less"},
		{"error -32001", "TaskNotFound (-32001): task not found (reason TASK_NOT_FOUND)", ""},
		{"error -32002", "TaskNotCancelable (-32002): task cannot be canceled (reason TASK_NOT_CANCELABLE)", ""},
		{"error -32003", "PushNotificationNotSupported (-32003): push notifications are not supported (reason PUSH_NOTIFICATION_NOT_SUPPORTED)", ""},
		{"error -32004", "UnsupportedOperation (-32004): this operation is not supported (reason UNSUPPORTED_OPERATION)", ""},
		{"error -32005", "ContentTypeNotSupported (-32005): content type is not supported (reason CONTENT_TYPE_NOT_SUPPORTED)", ""},
		{"error -32006", "InvalidAgentResponse (-32006): the agent's response was invalid (reason INVALID_AGENT_RESPONSE)", ""},
		{"error -32007", "ExtendedAgentCardNotConfigured (-32007): no extended agent card is configured (reason EXTENDED_AGENT_CARD_NOT_CONFIGURED)", ""},
		{"error -32008", "ExtensionSupportRequired (-32008): support of an extension is required (reason EXTENSION_SUPPORT_REQUIRED)", ""},
		{"error -32009", "VersionNotSupported (-32009): protocol version is not supported (reason VERSION_NOT_SUPPORTED)", ""},
		{"error -32050 odd", "odd (agent error code -32050)", ""},
		{"errorevent -32001", "TaskNotFound (-32001): task not found (reason TASK_NOT_FOUND)", ""},
	}
	for _, unary := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: unary}}, nil)
			for _, tt := range tests {
				want := tt.stream
				if unary && tt.unary != "" {
					want = tt.unary
				}
				got := g.send(`{"text":"` + tt.say + `"}`)
				wantEqual(t, fmt.Sprintf("unary=%v %s", unary, tt.say), requestID.ReplaceAllString(got.first, `"id":"1"`), want)
				wantEqual(t, tt.say+": isError", got.IsError, true)
				wantEqual(t, tt.say+": no handle out of nothing", got.str("taskHandle")+got.str("contextHandle"), "")
				wantEqual(t, tt.say+": agent", got.str("agent"), "demo")
			}
			got := g.send(`{"text":"echo still here"}`)
			wantEqual(t, "afterwards", got.first, "still here")
		})
	}
}

// P21: whichever half a client shows, it has answer, status and handle.
func TestEitherHalfIsEnough(t *testing.T) {
	tests := []struct {
		say    string
		answer []string
	}{
		{"echo hello", []string{"hello"}},
		{"task abc", []string{"cba"}},
		{"ask size", []string{"Which value should I use for size?"}},
		{"slow 600", []string{"still working"}},
		{"fail broken", []string{"broken"}},
		{"reject no", []string{"no"}},
		{"authstuck", []string{"https://login.example.com/device?code=ABCD-1234"}},
		{"vanish", []string{"TaskNotFound (-32001)"}},
		{"url", []string{"https://files.example.com/report.pdf"}},
		{"data bigint", []string{"9007199254740993"}},
		{"image", []string{"pixel.png (image/png, 70 bytes)"}},
		{"pdf", []string{"page.pdf (application/pdf"}},
		{"csv", []string{"table.csv"}},
		{"mixed", []string{"Five parts follow one another.", `{"answer":42}`, "pixel.png", "table.csv", "https://files.example.com/report.pdf?sig=abc"}},
		{"kb 100", []string{"line 0000001", "characters left out", "a2a_get_task"}},
		{"badpart", []string{"the good part", "[unreadable part: invalid base64]"}},
	}
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		for _, tt := range tests {
			got := g.send(`{"text":"` + tt.say + `"}`)
			half := string(got.Structured)
			if half == "" {
				half = string(envelopeOf(got.Result))
			}
			half = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(half)
			want := append(tt.answer, got.str("status"))
			for _, h := range []string{"taskHandle", "contextHandle"} {
				if got.str(h) != "" {
					want = append(want, got.str(h))
				}
			}
			for _, w := range want {
				if w == "no" {
					continue
				}
				wantText(t, got.text, w)
				wantText(t, half, w)
			}
			hasMedia := false
			for _, c := range got.Content {
				switch c.(type) {
				case mcp.ImageContent, mcp.AudioContent:
					hasMedia = true
				}
			}
			wantEqual(t, tt.say+": structured beside media", got.Structured == nil, hasMedia)
			if got.first == "" && !hasMedia && tt.say != "url" && tt.say != "pdf" && tt.say != "csv" {
				t.Errorf("%s: the agent's words do not come first", tt.say)
			}
		}
	})
}

// P18: what is said twice is shown once, and the user's words never.
func TestEchoes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		s := &sink{}
		got := g.seen(g.callWith(t.Context(), s, ToolSend, `{"text":"dupes Acme sent it."}`, nil))
		wantEqual(t, "answer", got.first, "Acme sent it.")
		wantEqual(t, "once", strings.Count(got.text, "Acme sent it."), 1)
		if strings.Contains(got.text, "dupes Acme") {
			t.Error("the user's words came back")
		}
		for _, line := range s.progress {
			if strings.Contains(line, "Acme") {
				t.Errorf("the answer as progress: %q", line)
			}
		}
	})
}

// Faults 5, 9, 10, 12: streams that break, parts that are bad.
func TestNothingIsLostOnTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		for say, want := range map[string]string{
			"cutstream 5": "first half, second half", "shortstream 5": "first half, second half", "halfevent 5": "first half, second half",
			"late x": "x", "emptystream": "not streamed", "errormid -32603": "done in spite of the error",
			"badpart": "the good part", "unknownpart": "the good part", "empty": "the only words", "holdopen x": "x",
			"plainjson x": "x", "ndjson x": "x", "created x": "x",
		} {
			got := g.send(`{"text":"` + say + `"}`)
			wantText(t, strings.ReplaceAll(got.text, "half, \n", "half, "), want+"\n")
			wantEqual(t, say, got.IsError, false)
			wantEqual(t, say, got.str("status"), "completed")
		}
	})
}
