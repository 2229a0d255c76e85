package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/tools"
	"a2agate/translate"
)

// The defects that mcp-go 1.2.1's own HTTP server shows. Each test here is the
// reproduction, turned on our edge.

// D1: of a few notifications right before the end, some were thrown away.
// 10,000 calls: the last one always arrives, before the answer, and nothing is
// written after it. Messages in between may give way to the last (at most two
// a second), so what is counted is what may not be lost.
func TestD1NoProgressIsLost(t *testing.T) {
	calls := 10_000
	if testing.Short() {
		calls = 500
	}
	s := newServer(t, func(_ context.Context, c tools.Call, sink tools.Sink) translate.Outcome {
		for i := range 3 {
			sink.Progress(fmt.Sprintf("step %d", i))
			if len(c.Arguments)%2 == i%2 {
				runtime.Gosched()
			}
		}
		return says("done")
	}, nil)
	var lost, late, disordered atomic.Int64
	var workers sync.WaitGroup
	next := make(chan int)
	for range 8 {
		workers.Go(func() {
			for i := range next {
				r := modernPost(callWithToken(fmt.Sprint(i)))
				if i%2 == 1 {
					r = legacyPost(legacyCall(fmt.Sprintf(`,"_meta":{"progressToken":%d}`, i)), "2025-11-25")
				}
				w := serveTimed(s, r)
				all := w.all()
				step, answer := strings.LastIndex(all, `"step 2"`), strings.Index(all, `"result"`)
				if step < 0 {
					lost.Add(1)
				} else if answer < step {
					disordered.Add(1)
				}
				w.mu.Lock()
				late.Add(int64(w.late))
				w.mu.Unlock()
			}
		})
	}
	for i := range calls {
		next <- i
	}
	close(next)
	workers.Wait()
	if lost.Load()+late.Load()+disordered.Load() != 0 {
		t.Errorf("of %d calls: %d lost their last progress, %d had it after the answer, %d wrote after the end", calls, lost.Load(), disordered.Load(), late.Load())
	}
}

// D2: requests were keyed by id alone where there is no session, so that one
// client's notifications/cancelled ended another's call. See also
// TestLegacyCancellation.
func TestD2NoCancellationAcrossClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			select {
			case <-ctx.Done():
				return says("cancelled")
			case <-time.After(5 * time.Second):
				return says("finished")
			}
		}, nil)
		victims := []*timedWriter{newTimedWriter(), newTimedWriter(), newTimedWriter()}
		session := initialize(t, s, "2025-11-25", "{}")
		go s.Handler().ServeHTTP(victims[0], modernPost(callWithToken("")))
		go s.Handler().ServeHTTP(victims[1], legacyPost(legacyCall(""), "2025-11-25"))
		go s.Handler().ServeHTTP(victims[2], legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", session))
		synctest.Wait()
		attacker := initialize(t, s, "2025-11-25", "{}")
		for _, r := range []*http.Request{
			modernPost(cancelled("1")), legacyPost(cancelled("1"), "2025-11-25"), legacyPost(cancelled("1"), "2025-11-25", "Mcp-Session-Id", attacker),
		} {
			do(s, r)
		}
		time.Sleep(6 * time.Second)
		for i, w := range victims {
			if !strings.Contains(w.all(), "finished") {
				t.Errorf("victim %d: %s", i, w.all())
			}
		}
	})
}

// D3: a GET without a session took over the notifications of everybody.
func TestD3NobodyStealsAStream(t *testing.T) {
	s := newServer(t, echo, nil)
	r := post("")
	r.Method = http.MethodGet
	r.Header.Set("Accept", "text/event-stream")
	if w := do(s, r); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// D4: an open listen stream kept the server from shutting down. See TestDrain.
func TestD4ListensDoNotHoldUpShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, newServer(t, echo, nil))
		var ears []<-chan textOrError
		for range 50 {
			ears = append(ears, v.inBackground(modernPost(modernBody("1", "subscriptions/listen", `"notifications":{}`))))
		}
		start := time.Now()
		v.end()
		if d := time.Since(start); d > time.Second {
			t.Errorf("shutdown took %v", d)
		}
		for _, e := range ears {
			if got := <-e; got.err != nil || !strings.Contains(got.text, `"result":{"resultType":"complete"`) {
				t.Errorf("%v %s", got.err, got.text)
			}
		}
	})
}

// D5: a call that became a task had a context that was dead on arrival. Here
// the call's context lives as long as the call, and what a call leaves behind
// hangs on no request: the answer does not depend on the connection.
func TestD5ContextLivesThroughTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			time.Sleep(20 * time.Second)
			if ctx.Err() != nil {
				return translate.Outcome{Err: &translate.Error{Code: -32603, Message: ctx.Err().Error()}}
			}
			return translate.Outcome{Task: &translate.TaskInfo{ID: "tk_1", Status: translate.TaskWorking, TTL: time.Hour}}
		}, nil)
		events, _ := serveTimed(s, modernPost(modernBodyWith("1", "tools/call", callTool, metaOf(withTasks, "")))).events(t)
		if last := events[len(events)-1].raw; !strings.Contains(last, `"resultType":"task"`) {
			t.Errorf("%s", last)
		}
	})
}

// mcp-go decodes ids into floats and takes keys in any case.
func TestIDsComeBackAsTheyWere(t *testing.T) {
	s := newServer(t, echo, nil)
	for _, id := range []string{"0", "-1", "9007199254740993", "123456789012345678901234567890", `""`, `"ü"`, `"\u00fc\n"`, `"1"`} {
		for _, body := range []string{modernBody(id, "server/discover", ""), modernBody(id, "tools/list", ""), modernBody(id, "nope", ""),
			modernBody(id, "prompts/get", `"name":"invoice_helper_ask","arguments":{"text":"x"}`), modernBody(id, "tools/call", callTool)} {
			w := do(s, modernPost(body))
			if !strings.HasPrefix(w.Body.String(), `{"jsonrpc":"2.0","id":`+id+`,`) || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s: %s", id, w.Body)
			}
		}
	}
}
