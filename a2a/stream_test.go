package a2a

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// kinds names the events of a stream in short.
func kinds(events []Event) string {
	var out []string
	for _, ev := range events {
		switch {
		case ev.Task != nil:
			out = append(out, "task:"+strings.TrimPrefix(string(ev.Task.Status.State), "TASK_STATE_"))
		case ev.Message != nil:
			out = append(out, "message")
		case ev.Status != nil:
			out = append(out, "status:"+strings.TrimPrefix(string(ev.Status.Status.State), "TASK_STATE_"))
		case ev.Artifact != nil:
			out = append(out, "artifact")
		}
	}
	return strings.Join(out, " ")
}

// rawStream answers a stream request with a body as it stands; $ID is the
// request's id.
func rawStream(t *testing.T, v Version, b Binding, contentType, body string, edit ...func(*ClientOptions)) ([]Event, error, *scriptedAgent) {
	t.Helper()
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		} else {
			w.Header()["Content-Type"] = nil // or net/http would guess one
		}
		fmt.Fprint(w, strings.ReplaceAll(body, "$ID", r.ID))
	})
	edit = append([]func(*ClientOptions){func(o *ClientOptions) { o.EmptyStreamFallback = false }}, edit...)
	s, err := agent.client(v, b, edit...).Stream(testContext(t), hello())
	if err != nil {
		return nil, err, agent
	}
	events, err := drain(s)
	return events, err, agent
}

// A stream's body is read as what it is, whatever the type says (specification
// 1.0.1, 9.4.2, 11.7; 0.3.0, 3.3.1).
func TestStreamBodies(t *testing.T) {
	env := func(result string) string { return `{"jsonrpc":"2.0","id":$ID,"result":` + result + `}` }
	line := func(result string) string { return "data: " + env(result) + "\n\n" }
	const done03 = `{"kind":"status-update","taskId":"t1","contextId":"c1","final":true,"status":{"state":"completed"}}`
	tests := []struct {
		name, contentType, body, want string
	}{
		{"SSE", "text/event-stream", line(taskWorking) + line(textDelta) + line(statusDone), "task:WORKING artifact status:COMPLETED"},
		{"SSE with a charset", "text/event-stream; charset=utf-8", line(taskWorking) + line(statusDone), "task:WORKING status:COMPLETED"},
		{"0.3 flat events", "text/event-stream", line(`{"kind":"task","id":"t1","contextId":"c1","status":{"state":"submitted"}}`) + line(done03), "task:SUBMITTED status:COMPLETED"},
		{"one message", "text/event-stream", line(`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}`), "message"},
		{"keep-alives and [DONE]", "text/event-stream", ":ok\n\n" + line(taskWorking) + ": ping\n\nevent: ping\ndata: now\n\n" + line(statusDone) + "data: [DONE]\n\n", "task:WORKING status:COMPLETED"},
		{"last event without blank line", "text/event-stream", line(taskWorking) + strings.TrimRight(line(statusDone), "\n"), "task:WORKING status:COMPLETED"},
		{"byte order mark", "text/event-stream", "\ufeff" + line(taskCompleted), "task:COMPLETED"},
		{"SSE without a type", "", line(taskWorking) + line(statusDone), "task:WORKING status:COMPLETED"},
		{"SSE as text", "text/plain", "event: message\n" + line(taskCompleted), "task:COMPLETED"},
		{"SSE as JSON", "application/json", "\n:hello\n" + line(taskCompleted), "task:COMPLETED"},
		{"plain JSON", "application/json", env(taskCompleted), "task:COMPLETED"},
		{"plain JSON as a2a+json", "application/a2a+json", env(taskWorking), "task:WORKING"},
		{"plain JSON as SSE", "text/event-stream", env(taskCompleted), "task:COMPLETED"},
		{"plain JSON without a type", "", " \n" + env(taskCompleted), "task:COMPLETED"},
		{"plain JSON with a byte order mark", "application/json", "\ufeff" + env(taskCompleted), "task:COMPLETED"},
		{"ndjson", "application/x-ndjson", env(taskWorking) + "\n" + env(textDelta) + "\r\n\n" + env(statusDone), "task:WORKING artifact status:COMPLETED"},
		{"JSON text sequence", "application/json-seq", "\x1e" + env(taskWorking) + "\n\x1e" + env(statusDone) + "\n", "task:WORKING status:COMPLETED"},
		{"ndjson as JSON", "application/json", env(taskWorking) + "\n" + env(statusDone) + "\n", "task:WORKING status:COMPLETED"},
		{"indented JSON", "application/json", "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": $ID,\n  \"result\": " + taskCompleted + "\n}\n", "task:COMPLETED"},
		{"unknown event member", "text/event-stream", line(taskWorking) + line(`{"mood":"good"}`) + line(statusDone), "task:WORKING status:COMPLETED"},
		{"malformed event before a terminal one", "text/event-stream", line(taskWorking) + "data: {oops\n\n" + line(statusDone), "task:WORKING status:COMPLETED"},
		{"malformed ndjson line", "application/x-ndjson", env(taskWorking) + "\n{oops\n" + env(statusDone), "task:WORKING status:COMPLETED"},
		{"numeric and missing ids", "text/event-stream", `data: {"id":1,"result":` + taskWorking + "}\n\n" + `data: {"result":` + statusDone + "}\n\n", "task:WORKING status:COMPLETED"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			events, err, agent := rawStream(t, V10, JSONRPC, tt.contentType, tt.body)
			if err != nil || kinds(events) != tt.want {
				t.Errorf("got %q, %v, want %q", kinds(events), err, tt.want)
			}
			if n := len(agent.requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
			if strings.Contains(tt.name, "malformed") && len(events) > 0 && len(events[len(events)-1].Notes) == 0 {
				t.Error("the skipped event is not noted")
			}
		})
	}
}

// A proxy that compresses although it was asked not to is understood.
func TestStreamCompressed(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		for _, result := range []string{taskWorking, textDelta, statusDone} {
			fmt.Fprintf(zw, "data: {\"result\":%s}\n\n", result)
			zw.Flush()
			w.(http.Flusher).Flush()
		}
		zw.Close()
	})
	s, err := agent.client(V10, JSONRPC).Stream(testContext(t), hello())
	if err != nil {
		t.Fatal(err)
	}
	if events, err := drain(s); err != nil || kinds(events) != "task:WORKING artifact status:COMPLETED" {
		t.Errorf("%q %v", kinds(events), err)
	}
}

// REST events are bare, in either version.
func TestStreamREST(t *testing.T) {
	for _, v := range []Version{V10, V03} {
		events, err, agent := rawStream(t, v, REST, "text/event-stream", "data: "+taskWorking+"\n\ndata: "+statusDone+"\n\n")
		if err != nil || kinds(events) != "task:WORKING status:COMPLETED" {
			t.Errorf("%s: got %q, %v", v, kinds(events), err)
		}
		if r := agent.requests()[0]; !strings.HasSuffix(r.URI, "/message:stream") || !strings.Contains(r.Header.Get("Accept"), "text/event-stream") || r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("%s: %s %v", v, r.URI, r.Header)
		}
	}
}

// What an agent answers instead of a stream is told in one plain line.
func TestStreamRefusals(t *testing.T) {
	const rpcError = `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32004,"message":"no streaming here","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNSUPPORTED_OPERATION","domain":"a2a-protocol.org"}]}}`
	const restError = `{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"no streaming here","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNSUPPORTED_OPERATION"}]}}`
	tests := []struct {
		name        string
		b           Binding
		contentType string
		body        string
		cause       Cause
		code        int
		text        string
	}{
		{"error event first", JSONRPC, "text/event-stream", "data: " + rpcError + "\n\n", CauseAgent, -32004, "no streaming here"},
		{"plain JSON error", JSONRPC, "application/json", rpcError, CauseAgent, -32004, "no streaming here"},
		{"plain JSON error labelled SSE", JSONRPC, "text/event-stream", rpcError, CauseAgent, -32004, "no streaming here"},
		{"REST error event first", REST, "text/event-stream", "data: " + restError + "\n\n", CauseAgent, -32004, "no streaming here"},
		{"named error event", REST, "text/event-stream", "event: error\ndata: {\"code\":-32004,\"message\":\"no streaming here\"}\n\n", CauseAgent, -32004, "no streaming here"},
		{"named error event in words", JSONRPC, "text/event-stream", "event: error\ndata: kaput\n\n", CauseAgent, 0, "kaput"},
		{"login page", JSONRPC, "text/html", "<!DOCTYPE html><html><head><style>b{}</style><title>Sign in</title></head><body><script>x()</script><b>Who</b> are you?</body></html>", CauseProtocol, 0, "200 (text/html) with a web page instead of an A2A answer: Sign in Who are you?"},
		{"login page labelled SSE", JSONRPC, "text/event-stream", "<html><body>Sign in</body></html>", CauseProtocol, 0, "Sign in"},
		{"text", JSONRPC, "text/plain", "upstream is sleeping", CauseProtocol, 0, "upstream is sleeping"},
		{"other JSON", JSONRPC, "application/json", `{"status":"ok"}`, CauseProtocol, 0, "no A2A answer"},
		{"broken JSON", JSONRPC, "application/json", `{"jsonrpc":`, CauseProtocol, 0, "ends in the middle"},
		{"only malformed events", JSONRPC, "text/event-stream", "data: {oops\n\n", CauseProtocol, 0, "not JSON"},
		{"a deep event", JSONRPC, "text/event-stream", "data: " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "\n\n", CauseProtocol, 0, "nests too deeply"},
		{"deep JSON", JSONRPC, "application/json", strings.Repeat("[", 20000) + strings.Repeat("]", 20000), CauseProtocol, 0, "nests too deeply"},
		{"another request's event", JSONRPC, "text/event-stream", "data: {\"id\":\"999\",\"result\":" + taskWorking + "}\n\n", CauseProtocol, 0, "another request"},
		{"text labelled SSE", JSONRPC, "text/event-stream", "Internal error\n", CauseProtocol, 0, "no event in a stream: Internal error"},
		{"text like a field", JSONRPC, "text/plain", "error: out of tokens\n", CauseProtocol, 0, "no event in a stream: error: out of tokens"},
		{"text like an SSE field", JSONRPC, "text/plain", "retry: later\n", CauseProtocol, 0, "no event"},
		{"nothing", JSONRPC, "text/event-stream", "", CauseEmptyStream, 0, "without one event"},
		{"only comments", JSONRPC, "text/event-stream", ": hi\n\n: bye\n\n", CauseEmptyStream, 0, "without one event"},
		{"only [DONE]", JSONRPC, "text/event-stream", "data: [DONE]\n\n", CauseEmptyStream, 0, "without one event"},
		{"empty JSON", JSONRPC, "application/json", "", CauseEmptyStream, 0, "without one event"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err, _ := rawStream(t, V10, tt.b, tt.contentType, tt.body)
			e := wantError(t, err, tt.cause)
			if e.Code != tt.code || !strings.Contains(e.Message, tt.text) || e.HTTPStatus != 200 {
				t.Errorf("code %d, status %d, %q", e.Code, e.HTTPStatus, e.Message)
			}
			if tt.code != 0 && tt.name != "named error event" && (e.Reason != "UNSUPPORTED_OPERATION" || e.Data == nil) {
				t.Errorf("reason %q, data %s", e.Reason, e.Data)
			}
		})
	}
}

// Trouble in the middle comes after the events before it, and a clean end is
// not a broken connection.
func TestStreamEndings(t *testing.T) {
	good := func(w http.ResponseWriter, r seenRequest) { sseReply(w, r, taskWorking) }
	tests := []struct {
		name  string
		end   func(w http.ResponseWriter, r seenRequest)
		cause Cause // "" for a clean end
		text  string
	}{
		{"clean", func(http.ResponseWriter, seenRequest) {}, "", ""},
		{"reset", func(w http.ResponseWriter, r seenRequest) { hangUp() }, CauseReset, "in the middle of its answer"},
		{"half an event, then reset", func(w http.ResponseWriter, r seenRequest) {
			fmt.Fprint(w, `data: {"jsonrpc":"2.0","id":`)
			w.(http.Flusher).Flush()
			hangUp()
		}, CauseReset, "in the middle of its answer"},
		{"half an event, then a clean end", func(w http.ResponseWriter, r seenRequest) {
			fmt.Fprint(w, `data: {"jsonrpc":"2.0","id":`)
		}, CauseProtocol, "not JSON"},
		{"error event", func(w http.ResponseWriter, r seenRequest) {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":\"boom\"}}\n\n", r.ID)
		}, CauseAgent, "boom"},
		{"REST error event", func(w http.ResponseWriter, r seenRequest) {
			fmt.Fprint(w, "data: {\"error\":{\"code\":500,\"status\":\"INTERNAL\",\"message\":\"boom\"}}\n\n")
		}, CauseAgent, "boom"},
		{"malformed event and no terminal state", func(w http.ResponseWriter, r seenRequest) {
			fmt.Fprint(w, "data: <oops\x1b[31m>\n\n")
			sseReply(w, r, textDelta)
		}, CauseProtocol, "not JSON"},
		{"event over the limit", func(w http.ResponseWriter, r seenRequest) {
			fmt.Fprintf(w, "data: %s\n\n", strings.Repeat("x", 5000))
		}, CauseLimit, "limit of 4096 bytes"},
		{"stream over the limit", func(w http.ResponseWriter, r seenRequest) {
			for range 200 {
				sseReply(w, r, textDelta)
			}
		}, CauseLimit, "limit of 16384 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
				agent2 := tt.end
				good(w, r)
				agent2(w, r)
			})
			var seen []Exchange
			var mu sync.Mutex
			c := agent.client(V10, JSONRPC, func(o *ClientOptions) {
				o.Limits = Limits{EventBytes: 4096, StreamBytes: 16384}
				o.Observe = func(x Exchange) { mu.Lock(); seen = append(seen, x); mu.Unlock() }
			})
			s, err := c.Stream(testContext(t), hello())
			if err != nil {
				t.Fatal(err)
			}
			events, err := drain(s)
			if len(events) == 0 || events[0].Task == nil {
				t.Fatalf("events before the end are lost: %q", kinds(events))
			}
			if tt.cause == "" {
				if err != nil {
					t.Fatalf("a clean end gave %v", err)
				}
			} else {
				e := wantError(t, err, tt.cause)
				if !strings.Contains(e.Message, tt.text) || e.Unsent {
					t.Errorf("message %q, unsent %v", e.Message, e.Unsent)
				}
				if _, again := s.Next(); again != err {
					t.Errorf("Next after the end: %v", again)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(seen) != 1 || seen[0].Op != "stream" || seen[0].Status != 200 || seen[0].Cause != tt.cause {
				t.Errorf("observed %+v", seen)
			}
		})
	}
}

// An empty stream is followed by the same message without streaming, once; the
// other version comes only where the method or version is unknown.
func TestEmptyStreamFallback(t *testing.T) {
	empty := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }
	tests := []struct {
		name   string
		answer func(w http.ResponseWriter, r seenRequest)
		off    bool
		trail  []string
		events string
		cause  Cause
	}{
		{"unary helps", func(w http.ResponseWriter, r seenRequest) {
			if r.RPC == "SendMessage" {
				reply(w, r, taskCompleted)
				return
			}
			empty(w)
		}, false, []string{"SendStreamingMessage", "SendMessage"}, "task:COMPLETED", ""},
		{"no such method: the other version's stream", func(w http.ResponseWriter, r seenRequest) {
			switch r.RPC {
			case "SendMessage":
				replyError(w, r, -32601, "method not found")
			case "message/stream":
				sseReply(w, r, taskCompleted)
			default:
				empty(w)
			}
		}, false, []string{"SendStreamingMessage", "SendMessage", "message/stream"}, "task:COMPLETED", ""},
		{"the other version's stream is empty too", func(w http.ResponseWriter, r seenRequest) {
			switch r.RPC {
			case "SendMessage":
				replyError(w, r, CodeVersionNotSupported, "speak 0.3")
			case "message/send":
				reply(w, r, taskCompleted)
			default:
				empty(w)
			}
		}, false, []string{"SendStreamingMessage", "SendMessage", "message/stream", "message/send"}, "task:COMPLETED", ""},
		{"another error ends it", func(w http.ResponseWriter, r seenRequest) {
			if r.RPC == "SendMessage" {
				replyError(w, r, -32603, "kaput")
				return
			}
			empty(w)
		}, false, []string{"SendStreamingMessage", "SendMessage"}, "", CauseAgent},
		{"a server error ends it", func(w http.ResponseWriter, r seenRequest) {
			if r.RPC == "SendMessage" {
				w.WriteHeader(503)
				return
			}
			empty(w)
		}, false, []string{"SendStreamingMessage", "SendMessage"}, "", CauseHTTP},
		{"switched off", func(w http.ResponseWriter, r seenRequest) { empty(w) }, true, []string{"SendStreamingMessage"}, "", CauseEmptyStream},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			agent := newScriptedAgent(t, tt.answer)
			c := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.EmptyStreamFallback = !tt.off })
			var events []Event
			s, err := c.Stream(testContext(t), hello())
			if err == nil {
				events, err = drain(s)
			}
			if tt.cause != "" {
				wantError(t, err, tt.cause)
			} else if err != nil {
				t.Fatal(err)
			}
			if kinds(events) != tt.events || !reflect.DeepEqual(agent.trail(), tt.trail) {
				t.Errorf("got %q by %q", kinds(events), agent.trail())
			}
			for _, r := range agent.requests() {
				if r.MessageID != agent.requests()[0].MessageID {
					t.Errorf("the messageId changed: %s", r.MessageID)
				}
				if early := `"returnImmediately":true`; r.RPC == "SendMessage" && !strings.Contains(r.Body, early) {
					t.Errorf("the task would be told of at its end only: %s", r.Body)
				}
			}
			if c.Streams() {
				t.Error("the empty stream is not remembered")
			}
		})
	}
}

// The empty stream is remembered for ten minutes.
func TestEmptyStreamRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		rt := roundTripFunc(func(req *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(req.Body)
			method := "SendMessage"
			if bytes.Contains(body, []byte("SendStreamingMessage")) {
				method = "SendStreamingMessage"
			}
			asked = append(asked, method)
			if method == "SendMessage" {
				return response(200, "application/json", `{"result":`+taskCompleted+`}`), nil
			}
			return response(200, "text/event-stream", ""), nil
		})
		c := fakeClient(t, rt)
		for range 2 {
			s, err := c.Stream(t.Context(), hello())
			if err != nil {
				t.Fatal(err)
			}
			if events, err := drain(s); err != nil || kinds(events) != "task:COMPLETED" {
				t.Fatalf("%q %v", kinds(events), err)
			}
		}
		if c.Streams() {
			t.Error("streams although the last was empty")
		}
		time.Sleep(10*time.Minute + time.Second)
		if !c.Streams() {
			t.Error("does not stream again after ten minutes")
		}
		s, err := c.Stream(t.Context(), hello())
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		want := []string{"SendStreamingMessage", "SendMessage", "SendMessage", "SendStreamingMessage", "SendMessage"}
		if !reflect.DeepEqual(asked, want) {
			t.Errorf("asked %q", asked)
		}
	})
}

// SubscribeToTask: a snapshot first, POST then GET over REST, and a finished
// task's error as it is (specification 1.0.1, 3.1.6, 11.3; a2a.proto).
func TestSubscribe(t *testing.T) {
	for _, b := range []Binding{JSONRPC, REST} {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			switch {
			case b == JSONRPC:
				sseReply(w, r, taskWorking, statusDone)
			case r.Method == http.MethodPost:
				w.WriteHeader(http.StatusMethodNotAllowed)
			default:
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\ndata: %s\n\n", taskWorking, statusDone)
			}
		})
		c := agent.client(V10, b)
		for range 2 {
			s, err := c.Subscribe(testContext(t), "t1")
			if err != nil {
				t.Fatal(err)
			}
			if events, err := drain(s); err != nil || kinds(events) != "task:WORKING status:COMPLETED" {
				t.Fatalf("%q %v", kinds(events), err)
			}
		}
		want := []string{"SubscribeToTask", "SubscribeToTask"}
		if b == REST {
			want = []string{"POST /a2a/tasks/t1:subscribe", "GET /a2a/tasks/t1:subscribe", "GET /a2a/tasks/t1:subscribe"}
		}
		if !reflect.DeepEqual(agent.trail(), want) {
			t.Errorf("%s: %q", b, agent.trail())
		}
	}
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		replyError(w, r, CodeUnsupportedOperation, "the task is finished")
	})
	_, err := agent.client(V10, JSONRPC).Subscribe(testContext(t), "t1")
	if e := wantError(t, err, CauseAgent); e.Code != CodeUnsupportedOperation || e.Op != "subscribe" {
		t.Errorf("%+v", e)
	}
	if n := len(agent.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	empty := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { sseReply(w, r) })
	c := empty.client(V10, JSONRPC)
	_, err = c.Subscribe(testContext(t), "t1")
	wantError(t, err, CauseEmptyStream)
	if !c.Streams() || len(empty.requests()) != 1 {
		t.Errorf("an empty subscription was taken for a broken agent: %q", empty.trail())
	}
}

// A body that breaks off inside JSON is a broken connection, not broken JSON.
func TestStreamJSONCut(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0",`)
		w.(http.Flusher).Flush()
		hangUp()
	})
	_, err := agent.client(V10, JSONRPC).Stream(testContext(t), hello())
	wantError(t, err, CauseReset)
	if errors.Is(err, syscall.EINVAL) || len(agent.requests()) != 1 {
		t.Errorf("%v, %d requests", err, len(agent.requests()))
	}
}
