package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"a2agate/fixtures"
	"a2agate/translate"
)

// twoAgents is a gateway with the agents billing and travel.
func twoAgents(t *testing.T, edit func(*Options)) *gateway {
	t.Helper()
	return newGateway(t, map[string]fixtures.Options{
		"billing": {Name: "Billing", IDPrefix: "B"}, "travel": {Name: "Travel", IDPrefix: "T"},
	}, edit)
}

func TestBadArguments(t *testing.T) {
	tests := []struct{ name, tool, arguments, want string }{
		{"nothing to send", ToolSend, `{"agent":"billing"}`,
			`text: nothing to send: give at least one of text, data and files`},
		{"wrong type", ToolSend, `{"agent":"billing","text":5}`, `"text" must be string, not 5`},
		{"several", ToolSend, `{"agent":"billing","text":true,"timeoutSeconds":"60"}`,
			`"text" must be string, not true; "timeoutSeconds" must be integer, not "60"`},
		{"too long a wait", ToolSend, `{"agent":"billing","text":"x","timeoutSeconds":900}`,
			`"timeoutSeconds" is 900: it must be <= 300`},
		{"no wait", ToolSend, `{"agent":"billing","text":"x","timeoutSeconds":0}`,
			`"timeoutSeconds" is 0: it must be >= 1`},
		{"half a second", ToolSend, `{"agent":"billing","text":"x","timeoutSeconds":1.5}`,
			`"timeoutSeconds" must be integer, not 1.5`},
		{"an exponent out of reach", ToolSend, `{"agent":"billing","text":"x","timeoutSeconds":1e999999999}`,
			`"timeoutSeconds": the number 1e999999999 is too long: a number has at most 400 characters and an exponent of at most 400`},
		{"a fraction out of reach", ToolGetTask, `{"taskHandle":"tk_x","waitSeconds":1e-999999999}`,
			`"waitSeconds": the number 1e-999999999 is too long: a number has at most 400 characters and an exponent of at most 400`},
		{"a number of megabytes", ToolSend, `{"agent":"billing","text":"x","timeoutSeconds":` + strings.Repeat("9", 3<<20) + `}`,
			`"timeoutSeconds": the number 99999999999999999999999… is too long: a number has at most 400 characters and an exponent of at most 400`},
		{"typo", ToolSend, `{"agent":"billing","txt":"x"}`, `unknown argument "txt": did you mean "text"?`},
		{"stranger", ToolGetTask, `{"taskHandle":"tk_x","priority":"high"}`,
			`unknown argument "priority": the arguments are taskHandle, agent, historyLength, waitSeconds, artifactId, offset`},
		{"file without content", ToolSend, `{"agent":"billing","files":[{"name":"a.txt"}]}`,
			`files[0]: has neither bytes nor url: give one of them`},
		{"file with both", ToolSend, `{"agent":"billing","files":[{"bytes":"aGk=","url":"https://x.test/"}]}`,
			`files[0]: has both bytes and url: give one of them`},
		{"bad base64", ToolSend, `{"agent":"billing","files":[{"bytes":"%%%"}]}`, `files[0].bytes: "%%%" is not base64`},
		{"file of wrong shape", ToolSend, `{"agent":"billing","files":[{"url":7}]}`, `"files[0].url" must be string, not 7`},
		{"file with a stranger", ToolSend, `{"agent":"billing","files":[{"path":"/etc/passwd"}]}`, `files[0] has no field "path"`},
		{"metadata no object", ToolSend, `{"agent":"billing","text":"x","metadata":[1]}`, `"metadata" must be object, not an array`},
		{"no agent", ToolSend, `{"text":"x"}`, `agent is missing: give one of "billing", "travel"`},
		{"unknown agent", ToolSend, `{"agent":"biling","text":"x"}`, `unknown agent "biling": the agents are "billing", "travel"`},
		{"prototype", ToolSend, `{"agent":"constructor","text":"x"}`, `unknown agent "constructor": the agents are "billing", "travel"`},
		{"proto", ToolDiscover, `{"agent":"__proto__"}`, `unknown agent "__proto__": the agents are "billing", "travel"`},
		{"missing handle", ToolGetTask, `{}`, `missing: "taskHandle"`},
		{"missing handle", ToolCancel, ``, `missing: "taskHandle"`},
		{"empty handle", ToolCancel, `{"taskHandle":""}`, `"taskHandle" is empty: give the taskHandle (tk_...) of an earlier result`},
		{"garbage handle", ToolGetTask, `{"taskHandle":"abc"}`,
			`"abc" is not a handle; pass a handle exactly as an earlier result gave it`},
		{"unknown handle", ToolGetTask, `{"taskHandle":"tk_aaaaaaaaaaaaaaaaaaaaaaaaaa"}`,
			`unknown task handle "tk_aaaaaaaaaaaaaaaaaaaaaaaaaa"; pass a handle exactly as an earlier result gave it`},
		{"handle of another kind", ToolGetTask, `{"taskHandle":"cx_aaaaaaaaaaaaaaaaaaaaaaaaaa"}`,
			`"cx_aaaaaaaaaaaaaaaaaaaaaaaaaa" is not a task handle; a task handle begins with "tk_"`},
		{"unknown agent before the handle", ToolGetTask, `{"agent":"nobody","taskHandle":"abc"}`,
			`unknown agent "nobody": the agents are "billing", "travel"`},
		{"offset alone", ToolGetTask, `{"taskHandle":"abc","offset":5}`, `"offset" needs "artifactId": name the artifact to read`},
		{"tags no array", ToolDiscover, `{"skillTags":"finance"}`, `"skillTags" must be array, not "finance"`},
		{"tags no strings", ToolDiscover, `{"skillTags":["a",1]}`, `"skillTags[1]" must be string, not 1`},
	}
	inBubble(t, func(t *testing.T) {
		g := twoAgents(t, nil)
		for _, tt := range tests {
			got := g.seen(g.call(tt.tool, tt.arguments, nil))
			if !got.IsError {
				t.Errorf("%s: no error", tt.name)
			}
			wantEqual(t, tt.name, got.first, tt.want)
			if strings.Contains(got.text, "jsonschema") || strings.Contains(got.text, "&{") {
				t.Errorf("%s: a library speaks: %s", tt.name, got.text)
			}
		}
		for alias, a := range g.agents {
			if n := len(a.Requests()); n != 0 {
				t.Errorf("agent %s was called %d times", alias, n)
			}
		}
	})
}

func TestProtocolErrors(t *testing.T) {
	tests := []struct{ name, tool, arguments, want string }{
		{"unknown tool", "a2a_send", `{}`, `unknown tool "a2a_send": the nearest are "a2a_send_message", "a2a_discover", "a2a_get_task"; tools/list has all`},
		{"query is off", ToolQuery, `{"agent":"billing","method":"GetTask"}`, `unknown tool "a2a_query": the nearest are`},
		{"array", ToolSend, `[1]`, `tool a2a_send_message: arguments must be a JSON object, not an array`},
		{"string", ToolSend, `"x"`, `tool a2a_send_message: arguments must be a JSON object, not a string`},
		{"broken", ToolSend, `{"text":`, `tool a2a_send_message: arguments are not valid JSON`},
		{"trailing", ToolSend, `{"text":"x"}{}`, `tool a2a_send_message: arguments are not valid JSON`},
	}
	inBubble(t, func(t *testing.T) {
		g := twoAgents(t, nil)
		for _, tt := range tests {
			out := g.call(tt.tool, tt.arguments, nil)
			if out.Err == nil {
				t.Fatalf("%s: %+v", tt.name, out.Result)
			}
			wantEqual(t, tt.name, out.Err.Code, translate.CodeInvalidParams)
			wantText(t, out.Err.Message, tt.want)
		}
	})
}

func TestNullArgumentsAreAbsent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		got := g.send(`{"agent":null,"text":"echo hi","contextHandle":null,"files":null,"timeoutSeconds":null}`)
		wantEqual(t, "isError", got.IsError, false)
		wantEqual(t, "text", got.first, "hi")
		got = g.send(`{"text":"received","data":null}`)
		wantText(t, got.text, "data")
	})
}

func TestExactData(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		for _, value := range []string{
			`9007199254740993`, `{"b":1,"a":[1.50,1e400],"\u00e9":"<&>"}`, `null`, `"x"`, `[]`, `true`,
		} {
			g.demo().ForgetRecord()
			got := g.send(`{"text":"echo x","data":` + value + `}`)
			wantEqual(t, "isError", got.IsError, false)
			body := ""
			for _, r := range g.demo().Requests() {
				body += string(r.Body)
			}
			wantText(t, body, `"data":`+value)
		}
		g.noComplaints()
	})
}

func TestManyAgentsNearestNames(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("agent_%02d", i))
	}
	names = append(names, "invoice_helper", "invoices")
	wantEqual(t, "many", unknownAgent("invoice-helper", names),
		`unknown agent "invoice-helper": the nearest are "invoice_helper", "invoices", "agent_00"; call a2a_discover to find others`)
	wantEqual(t, "few", unknownAgent("c", []string{"a", "b"}), `unknown agent "c": the agents are "a", "b"`)
	wantEqual(t, "none", unknownAgent("c", nil), `unknown agent "c": no agent is configured for you`)
	wantEqual(t, "long", len(unknownAgent(strings.Repeat("x", 1<<20), names)) < 400, true)
}

func TestLongNamesInErrorsAreCut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		long := strings.Repeat("ü", 100_000)
		for _, arguments := range []string{
			`{"agent":"` + long + `","text":"x"}`, `{"` + long + `":1}`, `{"text":{"a":"` + long + `"}}`, `{"taskHandle":"` + long + `","text":"x"}`,
		} {
			got := g.send(arguments)
			if len(got.text) > 3000 || !got.IsError {
				t.Errorf("%d bytes, error %v", len(got.text), got.IsError)
			}
		}
		out := g.call(long, "{}", nil)
		if len(out.Err.Message) > 1000 {
			t.Errorf("%d bytes", len(out.Err.Message))
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"text":"x","timeoutSeconds":6e1}`, `{"files":[{"url":1}]}`, `{"a/b~c%":1}`, `{"text":1e999}`, `{"metadata":{"a":[[[]]]}}`, "",
	} {
		f.Add([]byte(seed))
	}
	generic, err := genericHandlers()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, err := argumentsFromRaw(json.RawMessage(raw))
		if err != nil {
			return
		}
		for _, tool := range generic {
			problem := args.check(tool.schema, tool.known)
			if len(problem) > 10_000 {
				t.Errorf("%d bytes of problem", len(problem))
			}
			if problem == "" {
				_, _ = args.integer("timeoutSeconds")
				_, _ = messageFromSend(args)
			}
		}
		_ = args.digest()
	})
}

func TestDeepArguments(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
		got := g.send(`{"text":"echo x","data":` + nested(900) + `}`)
		wantEqual(t, "deep data", got.first, "x")
		out := g.call(ToolSend, `{"text":"received","data":`+strings.Repeat("9", 1000)+`}`, nil)
		if out.Result == nil || out.Result.IsError { // data is not compared with anything
			t.Errorf("long number in data: %+v", out)
		}
		got = g.send(`{"text":"echo x","metadata":` + nested(5000) + `}`)
		wantEqual(t, "deep metadata", got.first, `"metadata" must be object, not an array`)
		out = g.call(ToolSend, `{"text":"echo x","data":`+nested(200_000)+`}`, nil)
		if out.Err == nil || out.Err.Message != "tool a2a_send_message: arguments are not valid JSON" {
			t.Errorf("%+v", out)
		}
	})
}
