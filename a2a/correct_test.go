package a2a

import (
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// The other version is tried once where the agent says that it did not
// execute, and remembered; never otherwise (specification 1.0.1, 3.6.2).
func TestVersionCorrection(t *testing.T) {
	tests := []struct {
		name     string
		start    Version
		refuse   func(w http.ResponseWriter, r seenRequest)
		switches bool
	}{
		{"1.0 method not found", V10, func(w http.ResponseWriter, r seenRequest) { replyError(w, r, -32601, "Method not found") }, true},
		{"1.0 version not supported", V10, func(w http.ResponseWriter, r seenRequest) { replyError(w, r, CodeVersionNotSupported, "no") }, true},
		{"1.0 invalid request naming the version", V10, func(w http.ResponseWriter, r seenRequest) {
			replyError(w, r, -32600, "unsupported A2A-Version header")
		}, true},
		{"1.0 400 naming the version", V10, func(w http.ResponseWriter, r seenRequest) {
			http.Error(w, "A2A version 1.0 is not supported", 400)
		}, true},
		{"1.0 method not found with 404", V10, func(w http.ResponseWriter, r seenRequest) {
			w.WriteHeader(404)
			replyError(w, r, -32601, "Method not found")
		}, true},
		{"0.3 method not found", V03, func(w http.ResponseWriter, r seenRequest) { replyError(w, r, -32601, "Method not found") }, true},
		{"0.3 version not supported, by reason", V03, func(w http.ResponseWriter, r seenRequest) {
			fmt.Fprintf(w, `{"id":%s,"error":{"code":-32009,"message":"no","data":[{"reason":"VERSION_NOT_SUPPORTED"}]}}`, r.ID)
		}, true},
		{"0.3 version not supported, in words", V03, func(w http.ResponseWriter, r seenRequest) {
			replyError(w, r, CodeVersionNotSupported, "this version is not served here")
		}, true},
		{"0.3 private use of the code", V03, func(w http.ResponseWriter, r seenRequest) {
			replyError(w, r, CodeVersionNotSupported, "authorization required")
		}, false},
		{"invalid params", V10, func(w http.ResponseWriter, r seenRequest) { replyError(w, r, -32602, "bad") }, false},
		{"invalid request", V10, func(w http.ResponseWriter, r seenRequest) { replyError(w, r, -32600, "bad") }, false},
		{"internal error naming a version", V10, func(w http.ResponseWriter, r seenRequest) {
			replyError(w, r, -32603, "python version mismatch")
		}, false},
		{"400 without the version", V10, func(w http.ResponseWriter, r seenRequest) { http.Error(w, "bad", 400) }, false},
		{"400 about another version", V10, func(w http.ResponseWriter, r seenRequest) { http.Error(w, "model version is gone", 400) }, false},
		{"500", V10, func(w http.ResponseWriter, r seenRequest) { http.Error(w, "A2A version", 500) }, false},
		{"503", V10, func(w http.ResponseWriter, r seenRequest) { http.Error(w, "later", 503) }, false},
		{"reset", V10, func(w http.ResponseWriter, r seenRequest) { hangUp() }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mine := func(r seenRequest) bool { return strings.Contains(r.RPC, "/") == (tt.start == V03) }
			var agent *scriptedAgent
			agent = newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
				if mine(r) {
					tt.refuse(w, r)
					return
				}
				reply(w, r, taskCompleted)
			})
			c := agent.client(tt.start, JSONRPC)
			_, err := c.Send(testContext(t), hello())
			if (err == nil) != tt.switches {
				t.Fatalf("switched: %v, error %v", err == nil, err)
			}
			reqs := agent.requests()
			if !tt.switches {
				if len(reqs) != 1 {
					t.Fatalf("%d requests: %q", len(reqs), agent.trail())
				}
				if c.Chosen().Version != tt.start {
					t.Error("the version changed")
				}
				return
			}
			if len(reqs) != 2 || reqs[0].MessageID != reqs[1].MessageID || c.Chosen().Version == tt.start {
				t.Fatalf("%q, chosen %+v", agent.trail(), c.Chosen())
			}
			if (reqs[1].Header.Get("A2A-Version") == "1.0") != (tt.start == V03) || (reqs[0].Header.Get("A2A-Version") == "1.0") != (tt.start == V10) {
				t.Error("the version header does not follow")
			}
			if _, err := c.Send(testContext(t), hello()); err != nil || len(agent.requests()) != 3 {
				t.Errorf("not remembered: %q, %v", agent.trail(), err)
			}
		})
	}
}

// The version is corrected for streams as well, whether the refusal comes as
// JSON or as an event.
func TestVersionCorrectionStream(t *testing.T) {
	for _, asEvent := range []bool{true, false} {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			switch {
			case r.RPC == "message/stream":
				sseReply(w, r, `{"kind":"task","id":"t1","contextId":"c1","status":{"state":"completed"}}`)
			case asEvent:
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"unknown method\"}}\n\n", r.ID)
			default:
				replyError(w, r, -32601, "unknown method")
			}
		})
		s, err := agent.client(V10, JSONRPC).Stream(testContext(t), hello())
		if err != nil {
			t.Fatal(err)
		}
		if events, err := drain(s); err != nil || kinds(events) != "task:COMPLETED" {
			t.Errorf("%q %v", kinds(events), err)
		}
		if want := []string{"SendStreamingMessage", "message/stream"}; !reflect.DeepEqual(agent.trail(), want) {
			t.Errorf("%q", agent.trail())
		}
	}
}

// An operation that an agent lacks does not change the version of the others.
func TestUnsupportedOperationKeepsVersion(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		if r.RPC == "SendMessage" {
			reply(w, r, taskCompleted)
			return
		}
		replyError(w, r, -32601, "Method not found")
	})
	c := agent.client(V10, JSONRPC)
	if _, err := c.Send(testContext(t), hello()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Subscribe(testContext(t), "t1")
	if e := wantError(t, err, CauseAgent); e.Code != -32601 {
		t.Errorf("%+v", e)
	}
	if want := []string{"SendMessage", "SubscribeToTask"}; !reflect.DeepEqual(agent.trail(), want) || c.Chosen().Version != V10 {
		t.Errorf("%q, %s", agent.trail(), c.Chosen().Version)
	}
}

// Neither version helps: the first answer is the one that counts.
func TestVersionCorrectionFails(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { replyError(w, r, -32601, "no "+r.RPC) })
	c := agent.client(V10, JSONRPC)
	_, err := c.Send(testContext(t), hello())
	if e := wantError(t, err, CauseAgent); e.Message != "no SendMessage" {
		t.Errorf("%q", e.Message)
	}
	if len(agent.requests()) != 2 || c.Chosen().Version != V10 {
		t.Errorf("%q, %s", agent.trail(), c.Chosen().Version)
	}
}

// Paths that cards have wrong are put right once and remembered: the REST
// prefix, a trailing slash, an operation's path as address, the configured URL.
func TestPathCorrection(t *testing.T) {
	tests := []struct {
		name     string
		path     string // the interface's
		v        Version
		b        Binding
		good     string // where the agent answers
		status   int
		fallback string
		trail    []string
	}{
		{"1.0 REST under /v1", "/a2a", V10, REST, "/a2a/v1/message:send", 404, "", []string{"/a2a/message:send", "/a2a/v1/message:send"}},
		{"0.3 REST without /v1", "/a2a", V03, REST, "/a2a/message:send", 404, "", []string{"/a2a/v1/message:send", "/a2a/message:send"}},
		{"REST at the configured URL", "/wrong", V10, REST, "/right/message:send", 404, "/right", []string{"/wrong/message:send", "/wrong/v1/message:send", "/right/message:send"}},
		{"slash missing", "/a2a", V10, JSONRPC, "/a2a/", 404, "", []string{"/a2a", "/a2a/"}},
		{"slash too many", "/a2a/", V10, JSONRPC, "/a2a", 405, "", []string{"/a2a/", "/a2a"}},
		{"the card's own path", "/a2a/.well-known/agent-card.json", V10, JSONRPC, "/a2a", 405, "", []string{"/a2a/.well-known/agent-card.json", "/a2a"}},
		{"an operation's path", "/v1/message:stream", V03, JSONRPC, "/v1", 404, "", []string{"/v1/message:stream", "/v1"}},
		{"the configured URL", "/wrong", V10, JSONRPC, "/right", 404, "/right", []string{"/wrong", "/wrong/", "/right"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var agent *scriptedAgent
			agent = newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
				switch {
				case r.URI != tt.good:
					w.WriteHeader(tt.status)
				case tt.b == REST:
					fmt.Fprint(w, taskCompleted)
				default:
					reply(w, r, taskCompleted)
				}
			})
			c := agent.client(tt.v, tt.b, func(o *ClientOptions) {
				o.Interfaces[0].URL = agent.URL + tt.path
				if tt.fallback != "" {
					o.FallbackURL = agent.URL + tt.fallback
				}
			})
			if _, err := c.Send(testContext(t), hello()); err != nil {
				t.Fatalf("%v: %q", err, agent.trail())
			}
			if _, err := c.Send(testContext(t), hello()); err != nil {
				t.Fatal(err)
			}
			var trail []string
			for _, r := range agent.requests() {
				trail = append(trail, r.URI)
			}
			if want := append(tt.trail, tt.good); !reflect.DeepEqual(trail, want) {
				t.Errorf("%q, want %q", trail, want)
			}
		})
	}
}

// The card's own interface of the other version comes before the guess.
func TestVersionCorrectionByCard(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		if r.URI != "/old" {
			replyError(w, r, CodeVersionNotSupported, "no")
			return
		}
		reply(w, r, taskCompleted)
	})
	c := agent.client(V10, JSONRPC, func(o *ClientOptions) {
		o.Interfaces = append(o.Interfaces, Interface{URL: agent.URL + "/rest", Version: V10, Binding: REST}, Interface{URL: agent.URL + "/old", Version: V03, Binding: JSONRPC})
	})
	if _, err := c.Send(testContext(t), hello()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"SendMessage", "message/send"}; !reflect.DeepEqual(agent.trail(), want) || c.Chosen().URL != agent.URL+"/old" {
		t.Errorf("%q, %+v", agent.trail(), c.Chosen())
	}
}

// A 404 that is the agent's own answer about a task is no wrong path.
func TestTaskNotFoundIsNoPath(t *testing.T) {
	for _, body := range []string{
		`{"error":{"code":404,"status":"NOT_FOUND","message":"no task t1","details":[{"reason":"TASK_NOT_FOUND"}]}}`,
		`{"error":{"code":404,"status":"NOT_FOUND","message":"no task t1"}}`,
	} {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			w.WriteHeader(404)
			fmt.Fprint(w, body)
		})
		_, err := agent.client(V10, REST).GetTask(testContext(t), "t1", nil)
		if e := wantError(t, err, CauseAgent); e.Code != CodeTaskNotFound || e.Message != "no task t1" {
			t.Errorf("%+v", e)
		}
		if n := len(agent.requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	}
	// Nor is a bare one, once the path has worked.
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		if r.Method == "GET" {
			w.WriteHeader(404)
			return
		}
		fmt.Fprint(w, taskCompleted)
	})
	c := agent.client(V10, REST)
	if _, err := c.Send(testContext(t), hello()); err != nil {
		t.Fatal(err)
	}
	_, err := c.GetTask(testContext(t), "t1", nil)
	if e := wantError(t, err, CauseHTTP); e.HTTPStatus != 404 || len(agent.requests()) != 2 {
		t.Errorf("%+v, %q", e, agent.trail())
	}
}

// A REST agent that does not know 1.0.1's media type gets the one before.
func TestContentTypeCorrection(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		if r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusUnsupportedMediaType)
			return
		}
		fmt.Fprint(w, taskCompleted)
	})
	c := agent.client(V10, REST)
	for range 2 {
		if _, err := c.Send(testContext(t), hello()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(agent.requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// deadAddress is an address where nothing listens.
func deadAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// The next interface is tried where the one before cannot be reached or is not
// there, in the card's order, and remembered (specification 1.0.1, 8.3.2).
func TestInterfaceFallback(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		switch {
		case strings.HasPrefix(r.URI, "/gone"):
			w.WriteHeader(404)
		case strings.HasPrefix(r.URI, "/broken"):
			w.WriteHeader(500)
		case r.RPC != "":
			reply(w, r, taskCompleted)
		default:
			fmt.Fprint(w, taskCompleted)
		}
	})
	dead := deadAddress(t)
	tests := []struct {
		name  string
		list  []Interface
		trail []string
		fails bool
	}{
		{"dial error", []Interface{{URL: dead, Version: V10, Binding: JSONRPC}, {URL: agent.URL + "/rest", Version: V10, Binding: REST}}, []string{"POST /rest/message:send"}, false},
		{"not there", []Interface{{URL: agent.URL + "/gone", Version: V10, Binding: REST}, {URL: agent.URL + "/rpc", Version: V10, Binding: JSONRPC}}, []string{"POST /gone/message:send", "POST /gone/v1/message:send", "SendMessage"}, false},
		{"server error is final", []Interface{{URL: agent.URL + "/broken", Version: V10, Binding: REST}, {URL: agent.URL + "/rpc", Version: V10, Binding: JSONRPC}}, []string{"POST /broken/message:send"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			agent.mu.Lock()
			agent.seen = nil
			agent.mu.Unlock()
			c := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.Interfaces = tt.list })
			_, err := c.Send(testContext(t), hello())
			if (err != nil) != tt.fails || !reflect.DeepEqual(agent.trail(), tt.trail) {
				t.Fatalf("%v, %q", err, agent.trail())
			}
			if tt.fails {
				return
			}
			if c.Chosen() != tt.list[1] {
				t.Errorf("chosen %+v", c.Chosen())
			}
			n := len(agent.requests())
			if _, err := c.Send(testContext(t), hello()); err != nil || len(agent.requests()) != n+1 {
				t.Errorf("not remembered: %q, %v", agent.trail(), err)
			}
		})
	}
}

// An address that cannot be dialled is replaced by the configured origin, with
// the interface's path first.
func TestAddressFallback(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { reply(w, r, taskCompleted) })
	auth := &fakeAuth{}
	c := agent.client(V10, JSONRPC, func(o *ClientOptions) {
		o.Interfaces[0].URL = deadAddress(t) + "/inner"
		o.Interfaces[0].Anonymous = true
		o.FallbackURL = agent.URL + "/outer"
		o.Auth = auth
	})
	if _, err := c.Send(testContext(t), hello()); err != nil {
		t.Fatal(err)
	}
	r := agent.requests()
	if len(r) != 1 || r[0].URI != "/inner" || r[0].Header.Get("Authorization") == "" {
		t.Errorf("%+v", r)
	}
	if c.Chosen().URL != agent.URL+"/inner" || c.Chosen().Anonymous {
		t.Errorf("chosen %+v", c.Chosen())
	}
}
