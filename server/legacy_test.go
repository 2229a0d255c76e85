package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/internal/schematest"
	"a2agate/tools"
	"a2agate/translate"
)

func cancelled(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"user"}}`
}

// blocked runs until its context ends and says why.
func blocked(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
	<-ctx.Done()
	return says(context.Cause(ctx).Error())
}

// notifications/cancelled ends the call of the same principal, session and
// request, and of no other (MCP 2025-11-25,
// cancellation; mcp-go cancels across clients).
func TestLegacyCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, blocked, func(o *Options) { o.Authenticate = tokenAuth })
		one, two := "Bearer one", "Bearer two"
		mint := func(token string) string {
			r := post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, "Authorization", token)
			return do(s, r).Header().Get("Mcp-Session-Id")
		}
		a, b, foreign := mint(one), mint(one), mint(two)
		if a == b {
			t.Fatal("two sessions have one id")
		}
		running := func(id, token, session string) *timedWriter {
			w := newTimedWriter()
			body := strings.Replace(legacyCall(""), `"id":1`, `"id":`+id, 1)
			go s.Handler().ServeHTTP(w, legacyPost(body, "2025-11-25", "Authorization", token, "Mcp-Session-Id", session))
			synctest.Wait()
			return w
		}
		ended := func(w *timedWriter) bool {
			synctest.Wait()
			return strings.Contains(w.all(), "context canceled")
		}
		callA, callB, callS := running("1", one, a), running("1", one, b), running(`"1"`, one, a)
		callF := running("1", two, foreign)
		send := func(body, token, session string) {
			t.Helper()
			if w := do(s, legacyPost(body, "2025-11-25", "Authorization", token, "Mcp-Session-Id", session)); w.Code != 202 || w.Body.Len() != 0 {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
		}
		send(cancelled("1"), one, "")       // no session
		send(cancelled("1"), one, "stale")  // not ours
		send(cancelled("1"), two, a)        // another principal
		send(cancelled("2"), one, a)        // another request
		send(cancelled("null"), one, a)     // none at all
		send(cancelled(`{"id":1}`), one, a) // nonsense
		for name, w := range map[string]*timedWriter{"a": callA, "b": callB, "string": callS, "foreign": callF} {
			if ended(w) {
				t.Errorf("%s was cancelled by somebody else", name)
			}
		}
		send(cancelled("1"), one, a)
		if !ended(callA) || ended(callB) || ended(callS) || ended(callF) {
			t.Error("the wrong calls ended")
		}
		send(cancelled("1"), one, a) // twice is harmless
		send(cancelled(`"\u0031"`), one, a)
		if !ended(callS) {
			t.Error(`"1" and "\u0031" are one id`)
		}
		send(cancelled("1"), one, b)
		send(cancelled("1"), two, foreign)
		if !ended(callB) || !ended(callF) {
			t.Error("a call did not end")
		}
		if n := len(s.running.calls); n != 0 {
			t.Errorf("%d calls left", n)
		}
	})
}

// A modern notifications/cancelled means nothing: closing the stream does.
func TestModernCancellationIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		s := newServer(t, func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			select {
			case <-ctx.Done():
				ended = true
			case <-time.After(time.Minute):
			}
			return says("x")
		}, nil)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go s.Handler().ServeHTTP(newTimedWriter(), modernPost(callWithToken("")).WithContext(ctx))
		synctest.Wait()
		if w := do(s, modernPost(cancelled("1"))); w.Code != 202 {
			t.Errorf("%d", w.Code)
		}
		synctest.Wait()
		if ended {
			t.Error("cancelled by a notification")
		}
		cancel() // the connection closes
		synctest.Wait()
		if !ended {
			t.Error("a modern disconnect is a cancel")
		}
	})
}

// A legacy disconnect is no cancel; its own deadline ends the call at last.
func TestLegacyDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := make(chan error, 1)
		s := newServer(t, func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return says("x")
		}, func(o *Options) { o.Limits.LegacyCall = time.Hour })
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Handler().ServeHTTP(newTimedWriter(), legacyPost(legacyCall(""), "2025-11-25").WithContext(ctx))
		}()
		synctest.Wait()
		cancel()
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if len(cause) != 0 {
			t.Fatalf("ended after the disconnect: %v", <-cause)
		}
		<-done
		if err := <-cause; err != context.DeadlineExceeded {
			t.Errorf("cause %v", err)
		}
	})
}

// asker asks and answers with what it was told.
type asker struct {
	asks []translate.Ask
	mu   sync.Mutex
	got  map[string]translate.Answer
	ok   bool
	err  error
}

func (a *asker) call(ctx context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
	got, ok, err := sink.Ask(ctx, a.asks)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got, a.ok, a.err = got, ok, err
	return says("asked")
}

var formAsk = translate.Ask{Key: "answer", Message: "Which year?",
	Schema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)}

// The legacy elicitation: a request on the stream of the call, the answer in a
// POST of its own, 202, and the call goes on (MCP
// 2025-11-25, elicitation).
func TestElicitation(t *testing.T) {
	answers := []struct {
		name, answer string
		want         translate.Answer
		ok           bool
	}{
		{"accept", `"result":{"action":"accept","content":{"answer":"2025"}}`, translate.Answer{Action: "accept", Content: json.RawMessage(`{"answer":"2025"}`)}, true},
		{"accept without content", `"result":{"action":"accept"}`, translate.Answer{Action: "accept"}, true},
		{"decline", `"result":{"action":"decline"}`, translate.Answer{Action: "decline"}, true},
		{"cancel", `"result":{"action":"cancel"}`, translate.Answer{Action: "cancel"}, true},
		{"an error", `"error":{"code":-32601,"message":"no such method"}`, translate.Answer{}, false},
		{"an unknown action", `"result":{"action":"maybe"}`, translate.Answer{}, false},
		{"content of the wrong type", `"result":{"action":"accept","content":5}`, translate.Answer{}, false},
		{"no result at all", `"result":5`, translate.Answer{}, false},
	}
	for _, rev := range []string{"2025-06-18", "2025-11-25"} {
		for _, tt := range answers {
			t.Run(rev+" "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := &asker{asks: []translate.Ask{formAsk}}
					s := newServer(t, a.call, nil)
					session := initialize(t, s, rev, `{"elicitation":{}}`)
					w := newTimedWriter()
					go s.Handler().ServeHTTP(w, legacyPost(legacyCall(""), rev, "Mcp-Session-Id", session))
					synctest.Wait()
					events, _ := w.events(t)
					if len(events) != 1 || events[0].msg.Method != "elicitation/create" || events[0].at != 0 {
						t.Fatalf("%s", w.all())
					}
					checkElicitation(t, rev, events[0])
					reply := `{"jsonrpc":"2.0","id":` + string(events[0].msg.ID) + `,` + tt.answer + `}`
					// Without the session, or from another one, it answers nothing.
					other := initialize(t, s, rev, `{"elicitation":{}}`)
					for _, wrong := range []string{"", "stale", other} {
						if w := do(s, legacyPost(reply, rev, "Mcp-Session-Id", wrong)); w.Code != 202 {
							t.Errorf("%d", w.Code)
						}
					}
					synctest.Wait()
					if strings.Contains(w.all(), "asked") {
						t.Fatal("answered by somebody else")
					}
					if w := do(s, legacyPost(reply, rev, "Mcp-Session-Id", session)); w.Code != 202 || w.Body.Len() != 0 {
						t.Errorf("%d %s", w.Code, w.Body)
					}
					synctest.Wait()
					if !strings.Contains(w.all(), "asked") {
						t.Fatalf("the call did not go on: %s", w.all())
					}
					a.mu.Lock()
					defer a.mu.Unlock()
					got := a.got["answer"]
					if a.err != nil || a.ok != tt.ok || got.Action != tt.want.Action || string(got.Content) != string(tt.want.Content) {
						t.Errorf("%+v %v %v", a.got, a.ok, a.err)
					}
					if w := do(s, legacyPost(reply, rev, "Mcp-Session-Id", session)); w.Code != 202 {
						t.Errorf("a second answer: %d", w.Code)
					}
					if len(s.running.asks) != 0 {
						t.Error("a question is left")
					}
				})
			})
		}
	}
}

func checkElicitation(t *testing.T, rev string, e timedEvent) {
	t.Helper()
	if hasMode := strings.Contains(e.raw, `"mode":"form"`); hasMode != (rev == "2025-11-25") {
		t.Errorf("mode on %s: %s", rev, e.raw)
	}
	if len(e.msg.ID) < 20 {
		t.Errorf("the id can be guessed: %s", e.msg.ID)
	}
	if schematest.Available() {
		schematest.Message(t, rev, "", []byte(e.raw))
	}
}

// Several questions go one after the other; the first that is not accepted is
// the last.
func TestElicitationOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := formAsk
		second.Key = "second"
		third := formAsk
		third.Key = "third"
		a := &asker{asks: []translate.Ask{formAsk, second, third}}
		s := newServer(t, a.call, nil)
		session := initialize(t, s, "2025-11-25", `{"elicitation":{"form":{}}}`)
		w := newTimedWriter()
		go s.Handler().ServeHTTP(w, legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", session))
		for i, action := range []string{"accept", "decline"} {
			synctest.Wait()
			events, _ := w.events(t)
			if len(events) != i+1 {
				t.Fatalf("%d questions: %s", len(events), w.all())
			}
			do(s, legacyPost(`{"jsonrpc":"2.0","id":`+string(events[i].msg.ID)+`,"result":{"action":"`+action+`"}}`, "2025-11-25", "Mcp-Session-Id", session))
		}
		synctest.Wait()
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.ok || len(a.got) != 2 || a.got["answer"].Action != "accept" || a.got["second"].Action != "decline" {
			t.Errorf("%+v %v", a.got, a.ok)
		}
	})
}

// Who cannot be asked: ok is false at once, and nothing is written.
func TestWhoCannotBeAsked(t *testing.T) {
	urlAsk := translate.Ask{Key: "login", Message: "Sign in", URL: "https://login.example.com/"}
	synctest.Test(t, func(t *testing.T) {
		a := &asker{asks: []translate.Ask{formAsk}}
		s := newServer(t, a.call, nil)
		plain := initialize(t, s, "2025-11-25", `{}`)
		form := initialize(t, s, "2025-11-25", `{"elicitation":{}}`)
		url := initialize(t, s, "2025-11-25", `{"elicitation":{"url":{}}}`)
		june := initialize(t, s, "2025-06-18", `{"elicitation":{}}`)
		march := initialize(t, s, "2025-03-26", `{"elicitation":{}}`)
		both := []translate.Ask{formAsk, urlAsk}
		for name, tt := range map[string]struct {
			r    *http.Request
			asks []translate.Ask
		}{
			"no session":             {legacyPost(legacyCall(""), "2025-11-25"), []translate.Ask{formAsk}},
			"stale session":          {legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", "stale"), []translate.Ask{formAsk}},
			"nothing declared":       {legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", plain), []translate.Ask{formAsk}},
			"url to a form client":   {legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", form), []translate.Ask{urlAsk}},
			"form to a url client":   {legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", url), []translate.Ask{formAsk}},
			"one of two is possible": {legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", form), both},
			"url on 2025-06-18":      {legacyPost(legacyCall(""), "2025-06-18", "Mcp-Session-Id", june), []translate.Ask{urlAsk}},
			"2025-03-26":             {legacyPost(legacyCall(""), "", "Mcp-Session-Id", march), []translate.Ask{formAsk}},
			"no asks":                {legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", form), nil},
			"json only":              {legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", form, "Accept", "application/json"), []translate.Ask{formAsk}},
			"modern":                 {modernPost(modernBodyWith("1", "tools/call", callTool, metaOf(`{"elicitation":{}}`, "")), "Mcp-Session-Id", form), []translate.Ask{formAsk}},
		} {
			a.asks = tt.asks
			w := serveTimed(s, tt.r)
			if a.ok || a.err != nil || strings.Contains(w.all(), "elicitation/create") || w.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %v %v %s", name, a.ok, a.err, w.all())
			}
		}
		a.asks = []translate.Ask{urlAsk}
		w := newTimedWriter()
		go s.Handler().ServeHTTP(w, legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", url))
		synctest.Wait()
		events, _ := w.events(t)
		if len(events) != 1 || !strings.Contains(events[0].raw, `"elicitationId"`) {
			t.Fatalf("%s", w.all())
		}
		if schematest.Available() {
			schematest.Message(t, "2025-11-25", "", []byte(events[0].raw))
		}
		do(s, legacyPost(`{"jsonrpc":"2.0","id":`+string(events[0].msg.ID)+`,"result":{"action":"cancel"}}`, "2025-11-25", "Mcp-Session-Id", url))
		synctest.Wait()
	})
}

// Somebody who thinks for minutes does not lose the stream.
func TestStreamLivesWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{asks: []translate.Ask{formAsk}}
		s := newServer(t, a.call, nil)
		session := initialize(t, s, "2025-11-25", `{"elicitation":{}}`)
		w := newTimedWriter()
		go s.Handler().ServeHTTP(w, legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", session))
		time.Sleep(5*time.Minute + time.Second)
		events, comments := w.events(t)
		if len(events) != 1 || len(comments) != 20 || comments[0] != 15*time.Second {
			t.Errorf("%d events, comments %v", len(events), comments)
		}
		do(s, legacyPost(`{"jsonrpc":"2.0","id":`+string(events[0].msg.ID)+`,"result":{"action":"decline"}}`, "2025-11-25", "Mcp-Session-Id", session))
		synctest.Wait()
		if a.got["answer"].Action != "decline" {
			t.Errorf("%+v", a.got)
		}
	})
}

// A call that is cancelled while it asks takes its question back.
func TestCancelWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{asks: []translate.Ask{formAsk}}
		s := newServer(t, a.call, nil)
		session := initialize(t, s, "2025-11-25", `{"elicitation":{}}`)
		w := newTimedWriter()
		go s.Handler().ServeHTTP(w, legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", session))
		synctest.Wait()
		do(s, legacyPost(cancelled("1"), "2025-11-25", "Mcp-Session-Id", session))
		synctest.Wait()
		events, _ := w.events(t)
		if len(events) != 3 || events[1].msg.Method != "notifications/cancelled" || !strings.Contains(events[1].raw, string(events[0].msg.ID)) || events[2].msg.ID == nil {
			t.Errorf("%s", w.all())
		}
		if a.err != context.Canceled {
			t.Errorf("%v", a.err)
		}
	})
}

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := []byte("0123456789abcdef0123456789abcdef")
		s := newSessions(key)
		caps := tools.ClientCapabilities{ElicitForm: true}
		id := s.mint("p", translate.Rev20250618, caps)
		for _, c := range []byte(id) {
			if c < 0x21 || c > 0x7e {
				t.Errorf("%q is not visible ASCII", id)
			}
		}
		if got := s.read("p", id); got.id != id || got.revision != translate.Rev20250618 || got.client != caps {
			t.Errorf("%+v", got)
		}
		if got := newSessions(key).read("p", id); got.id != id {
			t.Error("another replica with the key cannot read it")
		}
		if s.mint("p", translate.Rev20250618, caps) == id {
			t.Error("two sessions have one id")
		}
		flipped := []byte(id)
		flipped[len(flipped)/2] ^= 1
		for name, bad := range map[string]string{
			"altered": string(flipped), "cut": id[:len(id)-1], "longer": id + "A", "other prefix": "v2" + id[2:], "empty": "", "no dot": "v1.abc",
			"no payload": "v1..", "garbage": "v1.!!.!!", "huge": "v1." + strings.Repeat("A", 100000) + ".A",
		} {
			if got := s.read("p", bad); got != (session{}) {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if s.read("q", id) != (session{}) {
			t.Error("another principal's session was read")
		}
		if newSessions(nil).read("p", id) != (session{}) {
			t.Error("read with another key")
		}
		time.Sleep(sessionTTL)
		if s.read("p", id) != (session{}) {
			t.Error("an expired session was read")
		}
	})
}

// Batches with slow calls go over to a stream, each answer an event.
func TestSlowBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(_ context.Context, c tools.Call, sink tools.Sink) translate.Outcome {
			sink.Progress("on it")
			time.Sleep(20 * time.Second)
			return says(c.Tool)
		}, nil)
		one := strings.Replace(legacyCall(`,"_meta":{"progressToken":"a"}`), `"id":1`, `"id":"a"`, 1)
		two := strings.Replace(legacyCall(`,"_meta":{"progressToken":"b"}`), `"id":1`, `"id":"b"`, 1)
		w := serveTimed(s, legacyPost("["+one+","+two+`,{"jsonrpc":"2.0","id":"c","method":"ping"}]`, "2025-03-26"))
		events, _ := w.events(t)
		var answers []string
		last := map[string]float64{}
		for _, e := range events {
			if e.msg.Method == "" {
				answers = append(answers, string(e.msg.ID))
				continue
			}
			p := progressOf(t, e)
			token := string(p.ProgressToken)
			if p.Progress <= last[token] {
				t.Errorf("progress of %s does not rise: %s", token, e.raw)
			}
			last[token] = p.Progress
		}
		if strings.Join(answers, " ") != `"a" "b" "c"` || len(last) != 2 {
			t.Errorf("%v %v\n%s", answers, last, w.all())
		}
	})
}
