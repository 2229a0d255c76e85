package a2a

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A guessed route at which the agent's own words say that nothing is there is
// not taken for the right one: a single "not found" would otherwise send every
// later call the wrong way.
func TestNothingThereIsNoRoute(t *testing.T) {
	lost := false
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		switch {
		case r.RPC != "" && lost, r.URI == "/rest/message:send" && lost:
			http.Error(w, "no such page", 404)
		case r.RPC != "":
			reply(w, r, taskCompleted)
		case r.URI == "/rest/message:send":
			fmt.Fprint(w, taskCompleted)
		default:
			w.WriteHeader(404)
			fmt.Fprint(w, `{"error":{"code":404,"status":"UNIMPLEMENTED","message":"no operation here","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNSUPPORTED_OPERATION","domain":"a2a-protocol.org"}]}}`)
		}
	})
	c := agent.client(V10, JSONRPC, func(o *ClientOptions) {
		o.Interfaces = append(o.Interfaces, Interface{URL: agent.URL + "/rest", Version: V10, Binding: REST})
	})
	chosen := c.Chosen()
	if _, err := c.Send(testContext(t), hello()); err != nil {
		t.Fatal(err)
	}
	lost = true
	_, err := c.Send(testContext(t), hello())
	if e := wantError(t, err, CauseHTTP); e.HTTPStatus != 404 || !strings.Contains(e.Message, "no such page") {
		t.Errorf("%+v", e)
	}
	if trail := agent.trail(); trail[len(trail)-1] != "POST /rest/v1/message:send" {
		t.Errorf("the guess was not tried: %q", trail)
	}
	lost = false
	if _, err := c.Send(testContext(t), hello()); err != nil || c.Chosen() != chosen {
		t.Errorf("%v, chosen %+v", err, c.Chosen())
	}
}

// flaky answers from a list: a status, or 0 for a broken connection.
func flaky(t *testing.T, statuses ...int) *scriptedAgent {
	var mu sync.Mutex
	return newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		mu.Lock()
		status := 200
		if len(statuses) > 0 {
			status, statuses = statuses[0], statuses[1:]
		}
		mu.Unlock()
		switch status {
		case 0:
			hangUp()
		case 200:
			reply(w, r, bareCompleted)
		default:
			w.WriteHeader(status)
		}
	})
}

// Reads are repeated twice after trouble that may pass, cancellations once,
// sends never once they may have been seen.
func TestRetries(t *testing.T) {
	get := func(c *Client) error { _, err := c.GetTask(context.Background(), "t1", nil); return err }
	list := func(c *Client) error { _, err := c.ListTasks(context.Background(), ListRequest{}); return err }
	cancel := func(c *Client) error { _, err := c.CancelTask(context.Background(), "t1"); return err }
	card := func(c *Client) error { _, err := c.ExtendedCard(context.Background()); return err }
	send := func(c *Client) error { _, err := c.Send(context.Background(), hello()); return err }
	stream := func(c *Client) error {
		s, err := c.Stream(context.Background(), hello())
		closeStream(s, err)
		return err
	}
	query := func(c *Client) error { _, err := c.Query(context.Background(), "x", nil); return err }
	tests := []struct {
		name     string
		do       func(*Client) error
		statuses []int
		requests int
		fails    bool
	}{
		{"get after 502 and 503", get, []int{502, 503}, 3, false},
		{"get after 504", get, []int{504}, 2, false},
		{"get after 429", get, []int{429}, 2, false},
		{"get after a reset", get, []int{0, 0}, 3, false},
		{"get gives up", get, []int{503, 503, 503, 503}, 3, true},
		{"get not after 500", get, []int{500}, 1, true},
		{"get not after 403", get, []int{403}, 1, true},
		{"list after 503", list, []int{503}, 2, false},
		{"card after 503", card, []int{503}, 2, false},
		{"cancel once", cancel, []int{503}, 2, false},
		{"cancel once only", cancel, []int{0, 503}, 2, true},
		{"send not after 503", send, []int{503}, 1, true},
		{"send not after 429", send, []int{429}, 1, true},
		{"send not after a reset", send, []int{0}, 1, true},
		{"send not after 502", send, []int{502}, 1, true},
		{"stream not after a reset", stream, []int{0}, 1, true},
		{"stream not after 503", stream, []int{503}, 1, true},
		{"query not after a reset", query, []int{0}, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			agent := flaky(t, tt.statuses...)
			var seen []Exchange
			c := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.Observe = func(x Exchange) { seen = append(seen, x) } })
			err := tt.do(c)
			if strings.HasPrefix(tt.name, "list") {
				err = nil // the scripted answer is a task
			}
			if (err != nil) != tt.fails || len(agent.requests()) != tt.requests {
				t.Errorf("error %v after %d requests, want %d", err, len(agent.requests()), tt.requests)
			}
			if len(seen) != tt.requests || seen[len(seen)-1].Retry != tt.requests-1 {
				t.Errorf("observed %+v", seen)
			}
		})
	}
}

// A send is repeated where nobody listened: nothing was sent.
func TestSendRetriesUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries int
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		c := fakeClient(t, roundTripFunc(func(req *http.Request) (*http.Response, error) {
			if tries++; tries < 3 {
				return nil, refused
			}
			return response(200, "application/json", `{"result":`+taskCompleted+`}`), nil
		}))
		if _, err := c.Send(t.Context(), hello()); err != nil || tries != 3 {
			t.Errorf("%v after %d tries", err, tries)
		}
		tries = -10
		_, err := c.Send(t.Context(), hello())
		if e := wantError(t, err, CauseDial); !e.Unsent || tries != -7 {
			t.Errorf("%+v after %d tries", e, tries+10)
		}
	})
}

// Retry-After is respected for reads within the deadline, and not waited for
// beyond it (RFC 9110, 10.2.3).
func TestReadWaitsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries int
		c := fakeClient(t, roundTripFunc(func(req *http.Request) (*http.Response, error) {
			if tries++; tries%2 == 1 {
				resp := response(429, "text/plain", "slow down")
				resp.Header.Set("Retry-After", "20")
				return resp, nil
			}
			return response(200, "application/json", `{"result":`+bareCompleted+`}`), nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := c.GetTask(ctx, "t1", nil); err != nil || time.Since(began) != 20*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began = time.Now()
		_, err := c.GetTask(ctx, "t1", nil)
		if e := wantError(t, err, CauseHTTP); e.RetryAfter != 20*time.Second || time.Since(began) != 0 {
			t.Errorf("%+v after %v", e, time.Since(began))
		}
	})
}

// Under every fault of a send no message is executed twice, and its messageId
// stays the same; the empty stream is the documented exception.
func TestNoDoubleExecution(t *testing.T) {
	release := make(chan struct{})
	faults := map[string]func(a *scriptedAgent, w http.ResponseWriter, r seenRequest){
		"reset after executing":    func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); hangUp() },
		"500 after executing":      func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); w.WriteHeader(500) },
		"502 after executing":      func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); w.WriteHeader(502) },
		"503 after executing":      func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); w.WriteHeader(503) },
		"504 after executing":      func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); w.WriteHeader(504) },
		"429 after executing":      func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); w.WriteHeader(429) },
		"400 after executing":      func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); w.WriteHeader(400) },
		"HTML after executing":     func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); fmt.Fprint(w, "<html>") },
		"empty after executing":    func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r) },
		"cut JSON after executing": func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) { a.execute(r); fmt.Fprint(w, `{"id"`) },
		"half a body": func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) {
			a.execute(r)
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		},
		"internal error": func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) {
			a.execute(r)
			replyError(w, r, -32603, "x")
		},
		"invalid params": func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) {
			a.execute(r)
			replyError(w, r, -32602, "x")
		},
		"redirect": func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) {
			a.execute(r)
			w.Header().Set("Location", "/other")
			w.WriteHeader(302)
		},
		"other id": func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) {
			a.execute(r)
			fmt.Fprint(w, `{"id":"zzz","result":`+taskCompleted+`}`)
		},
		"silence": func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) {
			a.execute(r)
			<-release
		},
		"event then reset": func(a *scriptedAgent, w http.ResponseWriter, r seenRequest) {
			a.execute(r)
			sseReply(w, r, taskWorking)
			hangUp()
		},
	}
	defer close(release) // before the agents are closed, which wait for it
	for name, fault := range faults {
		for _, b := range []Binding{JSONRPC, REST} {
			for _, v := range []Version{V10, V03} {
				for _, streaming := range []bool{true, false} {
					if streaming && name == "empty after executing" {
						continue // the exception
					}
					var agent *scriptedAgent
					agent = newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { fault(agent, w, r) })
					c := agent.client(v, b, func(o *ClientOptions) { o.FallbackURL = agent.URL + "/other" })
					ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
					if name != "silence" {
						cancel()
						ctx, cancel = context.WithTimeout(context.Background(), 10*time.Second)
					}
					req := hello()
					if streaming {
						if s, err := c.Stream(ctx, req); err == nil {
							_, _ = drain(s)
						}
					} else {
						_, _ = c.Send(ctx, req)
					}
					cancel()
					agent.mu.Lock()
					if n := agent.executed[req.Message.MessageID]; n != 1 || len(agent.executed) != 1 {
						t.Errorf("%s, %s %s, streaming %v: executed %v", name, b, v, streaming, agent.executed)
					}
					agent.mu.Unlock()
				}
			}
		}
	}
}

// MaxConcurrent bounds the requests in flight, streams included; waiting ends
// with the context; a cancellation needs no place.
func TestMaxConcurrent(t *testing.T) {
	release := make(chan struct{})
	arrived := make(chan struct{}, 10)
	var mu sync.Mutex
	now, most := 0, 0
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		if r.RPC == "CancelTask" {
			reply(w, r, bareCompleted)
			return
		}
		mu.Lock()
		now++
		most = larger(most, now)
		mu.Unlock()
		arrived <- struct{}{}
		if r.RPC == "SendStreamingMessage" {
			sseReply(w, r, taskWorking)
		}
		<-release
		mu.Lock()
		now--
		mu.Unlock()
		if r.RPC == "SendMessage" {
			reply(w, r, taskCompleted)
		}
	})
	c := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.MaxConcurrent = 2 })
	s, err := c.Stream(testContext(t), hello())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := c.Send(testContext(t), hello()); err != nil {
				t.Error(err)
			}
		})
	}
	<-arrived
	<-arrived // the stream and one send: both places are taken
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err = c.Send(ctx, hello())
	if e := wantError(t, err, CauseBusy); !e.Unsent || !strings.Contains(e.Message, "2") {
		t.Errorf("%+v", e)
	}
	if _, err := c.CancelTask(testContext(t), "t1"); err != nil {
		t.Errorf("a cancellation waits for a place: %v", err)
	}
	close(release)
	s.Close()
	s.Close()
	wg.Wait()
	if most != 2 {
		t.Errorf("%d at once", most)
	}
	if len(c.slots) != 0 {
		t.Errorf("%d places are still taken", len(c.slots))
	}
}

// Each upstream request is observed once, with what it was.
func TestObserve(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		if !strings.Contains(r.RPC, "/") {
			replyError(w, r, -32601, "no")
			return
		}
		reply(w, r, bareCompleted)
	})
	var seen []Exchange
	c := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.Observe = func(x Exchange) { seen = append(seen, x) } })
	if _, err := c.GetTask(testContext(t), "t1", nil); err != nil {
		t.Fatal(err)
	}
	for i := range seen {
		if seen[i].Duration <= 0 {
			t.Error("no duration")
		}
		seen[i].Duration = 0
	}
	want := []Exchange{
		{Alias: "alpha", Op: "get", Version: V10, Binding: JSONRPC, Status: 200, Cause: CauseAgent},
		{Alias: "alpha", Op: "get", Version: V03, Binding: JSONRPC, Status: 200, Fallback: "version"},
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("%+v", seen)
	}
}

// Connections that an agent is about to close are not used for sends.
func TestKeepAliveRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := &idleCounter{}
		c := fakeClient(t, rt)
		send := func() {
			if _, err := c.Send(t.Context(), hello()); err != nil {
				t.Fatal(err)
			}
		}
		send()
		if rt.purges != 0 {
			t.Error("purged although nothing is announced")
		}
		rt.keepAlive = "timeout=5, max=100"
		send()
		send() // learned: idle connections may be of any age
		if rt.purges != 1 {
			t.Errorf("%d purges", rt.purges)
		}
		time.Sleep(3 * time.Second)
		send()
		if rt.purges != 1 {
			t.Errorf("%d purges after 3 s", rt.purges)
		}
		time.Sleep(1100 * time.Millisecond)
		send()
		if rt.purges != 2 {
			t.Errorf("%d purges after 4.1 s", rt.purges)
		}
		time.Sleep(time.Minute)
		if _, err := c.GetTask(t.Context(), "t1", nil); err != nil || rt.purges != 2 {
			t.Errorf("a read purged: %v", err)
		}
	})
}

type idleCounter struct {
	keepAlive string
	purges    int
}

func (i *idleCounter) CloseIdleConnections() { i.purges++ }

func (i *idleCounter) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	resp := response(200, "application/json", `{"result":`+bareCompleted+`}`)
	if i.keepAlive != "" {
		resp.Header.Set("Keep-Alive", i.keepAlive)
	}
	return resp, nil
}

// A read on a kept connection that the agent has closed meanwhile succeeds on
// a fresh one (net/http, Transport).
func TestReadOnDeadConnection(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { reply(w, r, bareCompleted) })
	c := agent.client(V10, JSONRPC)
	for range 20 {
		if _, err := c.GetTask(testContext(t), "t1", nil); err != nil {
			t.Fatal(err)
		}
		agent.CloseClientConnections()
	}
}

// Options that make no client are refused.
func TestNewClientRefuses(t *testing.T) {
	good := Interface{URL: "https://x/y", Version: V10, Binding: REST}
	for name, o := range map[string]ClientOptions{
		"no interface":     {},
		"relative url":     {Interfaces: []Interface{{URL: "/x", Version: V10, Binding: REST}}},
		"other scheme":     {Interfaces: []Interface{{URL: "ftp://x", Version: V10, Binding: REST}}},
		"unknown version":  {Interfaces: []Interface{{URL: "http://x", Version: "2.0", Binding: REST}}},
		"unknown binding":  {Interfaces: []Interface{{URL: "http://x", Version: V10, Binding: "GRPC"}}},
		"second interface": {Interfaces: []Interface{good, {}}},
		"fallback":         {Interfaces: []Interface{good}, FallbackURL: "::"},
	} {
		if c, err := NewClient(o); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	client := &http.Client{}
	if _, err := NewClient(ClientOptions{Interfaces: []Interface{good}, HTTP: client}); err != nil || client.CheckRedirect != nil {
		t.Errorf("%v; the caller's client was changed", err)
	}
}
