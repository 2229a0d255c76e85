package a2a

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// wild is an agent that does one thing as no specification has it. $URL stands
// for its address in card and answer.
type wild struct {
	name string
	card string // "" for a plain one at $URL/a2a
	at   string // where the card is, "" for the well-known place
	path string // of the configured url
	// answer gets all but the card's requests.
	answer func(w http.ResponseWriter, r seenRequest)
	do     string // "send" (""), "stream", "get", "subscribe"
	want   string // the events, or what the error says
	fails  bool
	trail  string // the requests by path, blanks between
	note   string // of the card
}

const wildMessage = `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}`

// served answers where a JSON-RPC or REST agent is really at home.
func served(path string, otherwise int) func(http.ResponseWriter, seenRequest) {
	return func(w http.ResponseWriter, r seenRequest) {
		at, _, _ := strings.Cut(r.URI, "?")
		switch {
		case at != path:
			w.WriteHeader(otherwise)
		case r.RPC != "":
			reply(w, r, wildMessage)
		default:
			fmt.Fprint(w, wildMessage)
		}
	}
}

// body answers every request with the same bytes; $ID is the request's id.
func body(status int, contentType, text string) func(http.ResponseWriter, seenRequest) {
	return func(w http.ResponseWriter, r seenRequest) {
		w.Header()["Content-Type"] = nil
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, strings.ReplaceAll(text, "$ID", r.ID))
	}
}

func cardOf(version string, interfaces ...string) string {
	var list []string
	for i := 0; i < len(interfaces); i += 2 {
		list = append(list, fmt.Sprintf(`{"url":%q,"protocolBinding":%q,"protocolVersion":%q}`, interfaces[i], interfaces[i+1], version))
	}
	return `{"name":"W","capabilities":{"streaming":true},"supportedInterfaces":[` + strings.Join(list, ",") + `]}`
}

// TestWildAgents holds the rules for sloppy agents (reference 2.3) over
// variants of what was seen: from card to answer, by Agent and Client.
func TestWildAgents(t *testing.T) {
	const rpcDone = `{"jsonrpc":"2.0","id":$ID,"result":` + taskCompleted + `}`
	const rpcWork = `{"jsonrpc":"2.0","id":$ID,"result":` + taskWorking + `}`
	const rpcFail = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"no parts"}}`
	tests := []wild{
		// Addresses that cannot be meant.
		{name: "zero as address", card: cardOf("1.0", "http://0:$PORT/a2a", "JSONRPC"), answer: served("/a2a", 404), want: "message", note: "is called instead"},
		{name: "unspecified among others", card: `{"name":"W","protocolVersion":"0.3.0","url":"http://[::]:$PORT/x","preferredTransport":"GRPC","additionalInterfaces":[{"url":"http://0.0.0.0:$PORT/a2a","transport":"JSONRPC"}]}`,
			answer: served("/a2a", 404), want: "message", note: "is called instead"},
		{name: "unspecified in supportedInterfaces, url right", card: `{"name":"W","url":"$URL/nowhere","protocolVersion":"0.3.0","supportedInterfaces":[{"url":"http://[::]:$PORT/a2a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`,
			answer: served("/a2a", 404), want: "message", trail: "/a2a"},
		// An operation's path, or the card's, as address.
		{name: "operation with slash", card: cardOf("1.0", "$URL/x/message:send/", "HTTP+JSON"), answer: served("/x/message:send", 404), want: "message", trail: "/x/message:send"},
		{name: "operation escaped", card: cardOf("1.0", "$URL/x/message%3Astream", "HTTP+JSON"), answer: served("/x/message:send", 404), want: "message"},
		{name: "extended card as address", card: cardOf("1.0", "$URL/x/extendedAgentCard", "JSONRPC"), answer: served("/x", 405), want: "message", trail: "/x"},
		{name: "operation really served, base answers 400", card: cardOf("0.3", "$URL/x/v1/message:stream", "JSONRPC"), answer: served("/x/v1/message:stream", 400), want: "message"},
		{name: "operation as address, only the configured url works", card: cardOf("1.0", "$URL/x/message:send", "JSONRPC"), path: "/home", at: "/home" + current, answer: served("/home", 400), want: "message"},
		// REST under another prefix.
		{name: "405 without the prefix", card: cardOf("1.0", "$URL/r", "HTTP+JSON"), answer: served("/r/v1/message:send", 405), want: "message", trail: "/r/message:send /r/v1/message:send"},
		{name: "a router's own 404", card: cardOf("1.0", "$URL/r", "HTTP+JSON"), want: "message", answer: func(w http.ResponseWriter, r seenRequest) {
			if r.URI == "/r/v1/message:send" {
				fmt.Fprint(w, wildMessage)
				return
			}
			body(404, "application/json", `{"code":5,"message":"Not Found","details":[]}`)(w, r)
		}},
		{name: "an unimplemented path", card: cardOf("0.3", "$URL/r", "HTTP+JSON"), want: "message", answer: func(w http.ResponseWriter, r seenRequest) {
			if r.URI == "/r/message:send" {
				fmt.Fprint(w, wildMessage)
				return
			}
			body(404, "application/json", `{"error":{"code":404,"status":"UNIMPLEMENTED","message":"POST /r/v1/message:send is no operation"}}`)(w, r)
		}},
		{name: "FastAPI's 404", card: cardOf("1.0", "$URL/r", "HTTP+JSON"), do: "stream", want: "task:WORKING status:COMPLETED", answer: func(w http.ResponseWriter, r seenRequest) {
			if r.URI == "/r/v1/message:stream" {
				body(200, "text/event-stream", "data: "+taskWorking+"\n\ndata: "+statusDone+"\n\n")(w, r)
				return
			}
			body(404, "application/json", `{"detail":"Not Found"}`)(w, r)
		}},
		// Slashes.
		{name: "moved for a slash, 301", card: cardOf("1.0", "$URL/a2a", "JSONRPC"), want: "message", trail: "/a2a /a2a/", answer: func(w http.ResponseWriter, r seenRequest) {
			if r.URI == "/a2a" {
				w.Header().Set("Location", "/a2a/")
				w.WriteHeader(301)
				return
			}
			served("/a2a/", 404)(w, r)
		}},
		{name: "moved for want of a slash, 302, with query", card: cardOf("1.0", "$URL/a2a/?k=v", "JSONRPC"), want: "message", trail: "/a2a/?k=v /a2a?k=v", answer: func(w http.ResponseWriter, r seenRequest) {
			if r.URI == "/a2a/?k=v" {
				w.Header().Set("Location", "/a2a?k=v")
				w.WriteHeader(302)
				return
			}
			served("/a2a", 404)(w, r)
		}},
		{name: "moved elsewhere", card: cardOf("1.0", "$URL/a2a", "JSONRPC"), fails: true, want: "redirects to", trail: "/a2a", answer: func(w http.ResponseWriter, r seenRequest) {
			w.Header().Set("Location", "/login/")
			w.WriteHeader(302)
		}},
		{name: "address with double slashes and dots", card: cardOf("1.0", "$URL//a/./b//", "JSONRPC"), answer: served("//a/./b//", 404), want: "message", trail: "//a/./b//"},
		// Cards without their first fields.
		{name: "transport alias in supportedInterfaces", card: `{"name":"W","supportedInterfaces":[{"url":"$URL/a2a","transport":"jsonrpc"}]}`, answer: served("/a2a", 404), want: "message"},
		{name: "url only", card: `{"url":"$URL/a2a"}`, answer: served("/a2a", 404), want: "message"},
		{name: "name only", card: `{"name":"W"}`, path: "/a2a", at: "/a2a" + legacy, answer: served("/a2a", 404), want: "message"},
		{name: "everything of the wrong type", card: `{"name":7,"description":[],"version":{},"capabilities":"streaming","skills":{"id":"s","tags":"a"},"defaultInputModes":3,"securitySchemes":[],"security":"none","provider":["x"],"supportedInterfaces":{"url":"$URL/a2a","protocolBinding":"JSONRPC","protocolVersion":1.0}}`,
			answer: served("/a2a", 404), want: "message", note: "not"},
		{name: "version as a number", card: `{"name":"W","url":"$URL/a2a","protocolVersion":0.3,"preferredTransport":"json-rpc"}`, answer: served("/a2a", 404), want: "message"},
		// Kinds, ids and parts.
		{name: "message without kind, id and role", answer: body(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"result":{"parts":[{"type":"text","text":"x"},{"kind":"hologram"},7]}}`), want: "message"},
		{name: "task without kind, state in capitals", answer: body(200, "application/json", `{"id":$ID,"result":{"id":"t","status":{"state":"Completed"},"artifacts":[null,{"parts":[null]}]}}`), want: "task:COMPLETED"},
		{name: "update as the answer of a unary call", answer: body(200, "application/json", `{"id":$ID,"result":{"kind":"status-update","taskId":"t","status":{"state":"working"}}}`), want: "task:WORKING"},
		// Errors.
		{name: "error with details as a string", answer: body(200, "application/json", `{"id":$ID,"error":{"code":"-32005","message":"no","details":"pdf"}}`), fails: true, want: "no (code -32005)"},
		{name: "error as a string", answer: body(200, "application/json", `{"id":$ID,"error":"quota is used up"}`), fails: true, want: "quota is used up"},
		{name: "error beside a null result", answer: body(200, "application/json", `{"id":$ID,"result":null,"error":{"code":-32004,"message":"no","data":{"a":[1]}}}`), fails: true, want: "no (code -32004)"},
		// Streams of zero events.
		{name: "204 to a stream", do: "stream", answer: emptyUnlessUnary(204, "", ""), want: "message", trail: "/a2a /a2a"},
		{name: "202 without a body", do: "stream", answer: emptyUnlessUnary(202, "text/event-stream", ""), want: "message"},
		{name: "only a retry field", do: "stream", answer: emptyUnlessUnary(200, "text/event-stream", "retry: 3000\n\n"), want: "message"},
		{name: "only pings", do: "stream", answer: emptyUnlessUnary(200, "text/event-stream", "event: ping\ndata: {}\n\n: x\n\nevent: ping\ndata: 12:00\n\n"), want: "JSON that is no A2A answer", fails: true},
		{name: "only blank lines", do: "stream", answer: emptyUnlessUnary(200, "text/plain", "\r\n\r\n"), want: "message"},
		// JSON to a stream call.
		{name: "array of results", do: "stream", answer: body(200, "application/json", "[\n"+rpcWork+"\n,"+rpcDone+"]"), want: "task:WORKING task:COMPLETED"},
		{name: "array of results as SSE", do: "stream", answer: body(200, "text/event-stream", "["+rpcWork+","+rpcDone+"]"), want: "task:WORKING task:COMPLETED"},
		{name: "array that breaks off", do: "stream", answer: body(200, "application/json", "["+rpcWork+","), want: "ends in the middle", fails: true},
		{name: "JSON in capitals with a charset", do: "stream", answer: body(200, "Application/JSON; Charset=UTF-8", "\n\n  "+rpcDone), want: "task:COMPLETED"},
		{name: "JSON of another vendor", do: "stream", answer: body(200, "application/vnd.acme.v2+json", rpcDone), want: "task:COMPLETED"},
		{name: "a bare task", do: "stream", answer: body(200, "application/json", bareCompleted), want: "task:COMPLETED"},
		{name: "an error with 400", do: "stream", answer: body(400, "application/json", rpcFail), want: "no parts (code -32602)", fails: true},
		// Lines, text and pages.
		{name: "lines as text", do: "stream", answer: body(200, "text/plain; charset=utf-8", rpcWork+"\n"+rpcDone), want: "task:WORKING task:COMPLETED"},
		{name: "lines as octets", do: "stream", answer: body(200, "application/octet-stream", rpcWork+"\r\n\r\n"+rpcDone+"\r\n"), want: "task:WORKING task:COMPLETED"},
		{name: "lines to a unary call", answer: body(200, "application/x-ndjson", rpcWork+"\n"+rpcDone+"\n"), want: "task:COMPLETED"},
		{name: "array to a unary call", answer: body(200, "application/json", "["+rpcWork+","+rpcDone+"]"), want: "task:COMPLETED"},
		{name: "SSE to a unary call", answer: body(200, "application/json", ": hi\n\ndata: "+rpcWork+"\n\ndata: "+rpcDone), want: "task:COMPLETED"},
		{name: "page without its type", do: "stream", answer: body(200, "", "\n<!doctype html><title>Sign in</title>"), want: "a web page instead of an A2A answer: Sign in", fails: true},
		{name: "page as JSON", answer: body(200, "application/json", "<html><body>Sign in</body></html>"), want: "a web page instead of an A2A answer: Sign in", fails: true},
		{name: "XML", do: "stream", answer: body(200, "application/xml", "<?xml version='1.0'?><a/>"), want: "(application/xml) with a web page", fails: true},
		// Refusals in stream mode.
		{name: "error event with 400", do: "stream", answer: body(400, "text/event-stream", "event: error\ndata: "+rpcFail+"\n\n"), want: "no parts (code -32602)", fails: true},
		{name: "events with 500", do: "stream", answer: body(500, "text/event-stream", "data: "+rpcDone+"\n\n"), want: "HTTP 500", fails: true},
		{name: "problem with 422", do: "stream", answer: body(422, "application/problem+json", `{"type":"about:blank","title":"Unprocessable","detail":"parts[0] is odd"}`), want: "parts[0] is odd", fails: true},
		// The dialect of events.
		{name: "carriage returns only", do: "stream", answer: body(200, "text/event-stream", ":x\r\rdata:"+rpcWork+"\r\rdata: "+rpcDone), want: "task:WORKING task:COMPLETED"},
		{name: "JSON over many data lines", do: "stream", answer: body(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":$ID,\ndata: \"result\":\ndata: "+taskCompleted+"}\n\n"), want: "task:COMPLETED"},
		{name: "named events with ids", do: "stream", answer: body(200, "text/event-stream", "id: 1\nevent: task\ndata: "+rpcWork+"\n\nid: 2\nevent: status-update\nretry: 5\ndata: "+rpcDone+"\n\n"), want: "task:WORKING task:COMPLETED"},
		// Finding the method.
		{name: "subscribe by GET only, once the agent is known", card: cardOf("1.0", "$URL/r", "HTTP+JSON"), do: "subscribe", want: "task:COMPLETED", answer: getOnly(405, "")},
		{name: "subscribe by GET only, unimplemented", card: cardOf("1.0", "$URL/r", "HTTP+JSON"), do: "subscribe", want: "task:COMPLETED", answer: getOnly(501, `{"error":{"code":501,"status":"UNIMPLEMENTED","message":"no such route"}}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t) })
	}
}

// emptyUnlessUnary answers streams with body, and sends well.
func emptyUnlessUnary(status int, contentType, text string) func(http.ResponseWriter, seenRequest) {
	return func(w http.ResponseWriter, r seenRequest) {
		if r.RPC == "SendMessage" {
			reply(w, r, wildMessage)
			return
		}
		body(status, contentType, text)(w, r)
	}
}

// getOnly is a REST agent whose subscriptions go by GET.
func getOnly(status int, refusal string) func(http.ResponseWriter, seenRequest) {
	return func(w http.ResponseWriter, r seenRequest) {
		switch {
		case strings.HasSuffix(r.URI, "/message:send"):
			fmt.Fprint(w, taskWorking)
		case r.Method == http.MethodGet && strings.HasSuffix(r.URI, ":subscribe"):
			body(200, "text/event-stream", "data: "+taskCompleted+"\n\n")(w, r)
		default:
			body(status, "application/json", refusal)(w, r)
		}
	}
}

func (tt wild) run(t *testing.T) {
	var a *scriptedAgent
	in := func(s string) string {
		return strings.NewReplacer("$URL", a.URL, "$PORT", a.URL[strings.LastIndexByte(a.URL, ':')+1:]).Replace(s)
	}
	card := or(tt.card, cardOf("1.0", "$URL/a2a", "JSONRPC"))
	a = newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		switch {
		case r.Method == http.MethodGet && r.URI == or(tt.at, current):
			body(200, "application/json", in(card))(w, r)
		case strings.Contains(r.URI, "/.well-known/"):
			w.WriteHeader(404)
		default:
			tt.answer(w, r)
		}
	})
	agent := newAgent(t, AgentConfig{URL: a.URL + tt.path, EmptyStreamFallback: true})
	client, err := agent.Client(t.Context())
	if err != nil {
		t.Fatalf("%v: %+v", err, agent.Status())
	}
	if tt.note != "" {
		wantNote(t, agent, tt.note)
	}
	req := hello()
	var events []Event
	switch tt.do {
	case "stream":
		var s EventStream
		if s, err = client.Stream(testContext(t), req); err == nil {
			events, err = drain(s)
		}
	case "subscribe":
		if _, err = client.Send(testContext(t), req); err != nil {
			t.Fatal(err)
		}
		var s EventStream
		if s, err = client.Subscribe(testContext(t), "t1"); err == nil {
			events, err = drain(s)
		}
	default:
		var ev Event
		if ev, err = client.Send(testContext(t), req); err == nil {
			events = []Event{ev}
		}
	}
	got := kinds(events)
	if err != nil {
		got = err.Error()
	}
	if (err != nil) != tt.fails || !tt.fails && got != tt.want || !strings.Contains(got, tt.want) {
		t.Errorf("got %q, want %q", got, tt.want)
	}
	var trail []string
	for _, r := range a.requests() {
		if r.Method == http.MethodPost {
			trail = append(trail, r.URI)
			if r.MessageID != "" && r.MessageID != req.Message.MessageID {
				t.Errorf("the messageId changed")
			}
		}
	}
	if tt.trail != "" && strings.Join(trail, " ") != tt.trail {
		t.Errorf("asked %q, want %q", trail, tt.trail)
	}
}
