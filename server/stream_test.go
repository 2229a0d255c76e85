package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/internal/schematest"
	"a2agate/tools"
	"a2agate/translate"
)

// timedWriter is a ResponseWriter that notes when what arrived.
type timedWriter struct {
	start  time.Time
	header http.Header

	mu     sync.Mutex
	status int
	writes []timedWrite
	over   bool // the handler has returned
	late   int  // writes after that
}

type timedWrite struct {
	at   time.Duration
	data string
}

func newTimedWriter() *timedWriter { return &timedWriter{start: time.Now(), header: http.Header{}} }

func (w *timedWriter) Header() http.Header { return w.header }

func (w *timedWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 {
		w.status = status
	}
}

func (w *timedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		w.late++
	}
	w.writes = append(w.writes, timedWrite{time.Since(w.start), string(b)})
	return len(b), nil
}

func (w *timedWriter) Flush() {}

func (w *timedWriter) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, x := range w.writes {
		b.WriteString(x.data)
	}
	return b.String()
}

// timedEvent is one event with the time of its arrival.
type timedEvent struct {
	at  time.Duration
	msg wire
	raw string
}

// events splits what was written into comments and messages.
func (w *timedWriter) events(t testing.TB) (events []timedEvent, comments []time.Duration) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.writes {
		for block := range strings.SplitSeq(strings.TrimSuffix(x.data, "\n\n"), "\n\n") {
			if block == ":" {
				comments = append(comments, x.at)
				continue
			}
			data, ok := strings.CutPrefix(block, "data: ")
			if !ok || strings.Contains(data, "\n") {
				t.Fatalf("not an event on one data line: %q", block)
			}
			events = append(events, timedEvent{x.at, decode(t, []byte(data)), data})
		}
	}
	return events, comments
}

// serveTimed serves a request to its end.
func serveTimed(s *Server, r *http.Request) *timedWriter {
	w := newTimedWriter()
	s.Handler().ServeHTTP(w, r)
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	return w
}

type progressParams struct {
	ProgressToken json.RawMessage `json:"progressToken"`
	Progress      float64         `json:"progress"`
	Total         *float64        `json:"total"`
	Message       string          `json:"message"`
}

func progressOf(t testing.TB, e timedEvent) progressParams {
	t.Helper()
	if e.msg.Method != "notifications/progress" {
		t.Fatalf("not progress: %s", e.raw)
	}
	var p progressParams
	if err := json.Unmarshal(e.msg.Params, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

const callTool = `"name":"invoice_helper","arguments":{"message":"hi"}`

func callWithToken(token string) string {
	more := ""
	if token != "" {
		more = `,"progressToken":` + token
	}
	return modernBodyWith("1", "tools/call", callTool, metaOf("{}", more))
}

// The silent agent: first byte within a second, then signs of
// life at most 15 s apart, and the answer last.
func TestSilentAgent(t *testing.T) {
	silentFor := func(d time.Duration) callFunc {
		return func(_ context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
			time.Sleep(d)
			return says("done")
		}
	}
	requests := map[string]struct {
		request func() *http.Request
		token   bool
	}{
		"modern with a token":    {func() *http.Request { return modernPost(callWithToken("7")) }, true},
		"modern without":         {func() *http.Request { return modernPost(callWithToken("")) }, false},
		"legacy with a token":    {func() *http.Request { return legacyPost(legacyCall(`,"_meta":{"progressToken":7}`), "2025-11-25") }, true},
		"legacy without a token": {func() *http.Request { return legacyPost(legacyCall(""), "2025-06-18") }, false},
	}
	for name, tt := range requests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, silentFor(6*time.Minute), nil)
				w := serveTimed(s, tt.request())
				if h := w.header; h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
					t.Errorf("headers %v", h)
				}
				events, comments := w.events(t)
				checkSilence(t, events, comments, tt.token)
			})
		})
	}
}

func legacyCall(meta string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + callTool + meta + `}}`
}

func checkSilence(t *testing.T, events []timedEvent, comments []time.Duration, token bool) {
	t.Helper()
	signs := comments
	if token {
		if len(comments) > 0 {
			t.Errorf("%d comments beside progress", len(comments))
		}
		last := 0.0
		for _, e := range events[:len(events)-1] {
			p := progressOf(t, e)
			if string(p.ProgressToken) != "7" || p.Total != nil || p.Progress <= last {
				t.Errorf("progress after %v: %s", last, e.raw)
			}
			last = p.Progress
			signs = append(signs, e.at)
			if want := "Invoice Helper: working, " + e.at.Truncate(time.Second).String(); p.Message != want {
				t.Errorf("message %q, want %q", p.Message, want)
			}
			if schematest.Available() {
				schematest.Message(t, "2026-07-28", "", []byte(e.raw))
			}
		}
	} else if len(events) != 1 {
		t.Errorf("%d events without a token: an invented token?", len(events))
	}
	if len(signs) < 20 || signs[0] > time.Second {
		t.Fatalf("%d signs of life, the first after %v", len(signs), signs[0])
	}
	for i := 1; i < len(signs); i++ {
		if gap := signs[i] - signs[i-1]; gap > 15*time.Second {
			t.Errorf("a gap of %v", gap)
		}
	}
	final := events[len(events)-1]
	if final.at != 6*time.Minute || final.msg.Result == nil {
		t.Errorf("the answer came after %v: %s", final.at, final.raw)
	}
}

// An answer that comes within the first second is plain JSON.
func TestQuickAnswerIsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(_ context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			time.Sleep(999 * time.Millisecond)
			return says("done")
		}, nil)
		w := serveTimed(s, modernPost(callWithToken("7")))
		if w.status != 200 || w.header.Get("Content-Type") != "application/json" || decode(t, []byte(w.all())).Result == nil {
			t.Errorf("%d %v %s", w.status, w.header, w.all())
		}
	})
}

// 500 updates in a second become at most two a second, the last one wins, and
// none that is due is lost before the answer.
func TestProgressIsCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(_ context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
			for i := range 500 {
				sink.Progress(fmt.Sprintf("step %d", i))
				time.Sleep(2 * time.Millisecond)
			}
			return says("done")
		}, nil)
		w := serveTimed(s, modernPost(callWithToken(`"t"`)))
		events, _ := w.events(t)
		notes := events[:len(events)-1]
		if len(notes) > 4 {
			t.Errorf("%d notifications in a second", len(notes))
		}
		for i := 1; i < len(notes)-1; i++ { // the last one is the flush before the answer
			if gap := notes[i].at - notes[i-1].at; gap < 500*time.Millisecond {
				t.Errorf("two notifications within %v", gap)
			}
		}
		if p := progressOf(t, notes[0]); p.Message != "step 0" || notes[0].at != 0 || string(p.ProgressToken) != `"t"` {
			t.Errorf("the first update waited: %v %s", notes[0].at, notes[0].raw)
		}
		if p := progressOf(t, notes[len(notes)-1]); p.Message != "step 499" {
			t.Errorf("the last update is lost: %s", notes[len(notes)-1].raw)
		}
		if events[len(events)-1].msg.Result == nil {
			t.Errorf("no answer at the end")
		}
	})
}

// Updates that come slowly enough all arrive.
func TestSlowProgressAllArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(_ context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
			for i := range 20 {
				sink.Progress(fmt.Sprint(i))
				time.Sleep(500 * time.Millisecond)
			}
			return says("done")
		}, nil)
		events, _ := serveTimed(s, modernPost(callWithToken("1"))).events(t)
		if len(events) != 21 {
			t.Fatalf("%d events", len(events))
		}
		for i, e := range events[:20] {
			if p := progressOf(t, e); p.Message != fmt.Sprint(i) || p.Progress != float64(i+1) {
				t.Errorf("%d: %s", i, e.raw)
			}
		}
	})
}

func TestProgressWithoutATokenOpensNothing(t *testing.T) {
	s := newServer(t, func(_ context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
		sink.Progress("working")
		return says("done")
	}, nil)
	w := do(s, modernPost(callWithToken("")))
	if ct := w.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("content type %q", ct)
	}
}

// A client that takes JSON only gets no stream, however long it takes.
func TestJSONOnlyClientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(_ context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
			sink.Progress("x")
			time.Sleep(time.Minute)
			return says("done")
		}, nil)
		w := serveTimed(s, modernPost(callWithToken("1"), "Accept", "application/json"))
		if w.header.Get("Content-Type") != "application/json" || len(w.writes) != 1 || w.writes[0].at != time.Minute {
			t.Errorf("%v %v", w.header, w.writes)
		}
	})
}

// A long progress message is cut, and an agent name cannot break the event.
func TestProgressMessageIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(_ context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
			sink.(interface{ Agent(string) }).Agent("A\nB\"")
			sink.Progress(strings.Repeat("ä", 5000))
			time.Sleep(40 * time.Second)
			return says("done")
		}, nil)
		events, _ := serveTimed(s, modernPost(callWithToken("1"))).events(t)
		if p := progressOf(t, events[0]); len([]rune(p.Message)) > 200 {
			t.Errorf("%d characters", len([]rune(p.Message)))
		}
		if p := progressOf(t, events[1]); p.Message != "A\nB\": working, 15s" {
			t.Errorf("idle words %q", p.Message)
		}
	})
}

// Line breaks in a result do not break the event it travels in.
func TestResultIsOneDataLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(_ context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			time.Sleep(2 * time.Second)
			o := says("a\nb\r\nc")
			o.Result.Structured = json.RawMessage("{\n  \"a\": \"x\\ny\",\r\n  \"n\": 12345678901234567890\n}")
			return o
		}, nil)
		events, _ := serveTimed(s, modernPost(callWithToken(""))).events(t)
		raw := events[len(events)-1].raw
		if !strings.Contains(raw, `12345678901234567890`) || !strings.Contains(raw, `"x\ny"`) {
			t.Errorf("%s", raw)
		}
	})
}

// A panic in a call is -32603 with an id that the log has too, also on a
// stream, and the server lives.
func TestPanicIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := time.Duration(0)
		s := newServer(t, func(_ context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			time.Sleep(wait)
			panic("boom: secret")
		}, nil)
		w := serveTimed(s, modernPost(callWithToken("")))
		m := decode(t, []byte(w.all()))
		var data struct{ RequestID string }
		if m.Error == nil || m.Error.Code != -32603 || string(m.ID) != "1" || strings.Contains(w.all(), "secret") ||
			json.Unmarshal(m.Error.Data, &data) != nil || data.RequestID == "" || !strings.Contains(m.Error.Message, data.RequestID) {
			t.Errorf("%s", w.all())
		}
		wait = 5 * time.Second
		events, _ := serveTimed(s, modernPost(callWithToken("3"))).events(t)
		if last := events[len(events)-1]; last.msg.Error == nil || last.msg.Error.Code != -32603 {
			t.Errorf("%s", last.raw)
		}
		if w := serveTimed(s, modernPost(modernBody("1", "prompts/get", `"name":"invoice_helper_ask","arguments":{"text":"panic"}`))); decode(t, []byte(w.all())).Error.Code != -32603 {
			t.Errorf("%s", w.all())
		}
	})
}

// brokenWriter fails after some writes, as a connection does.
type brokenWriter struct {
	*httptest.ResponseRecorder
	left int
}

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return w.ResponseRecorder.Write(b)
}

// An answer that cannot be written holds nobody up.
func TestBrokenAnswerEnds(t *testing.T) {
	s := newServer(t, echo, nil)
	for _, accept := range []string{"text/event-stream", "application/json"} {
		s.Handler().ServeHTTP(&brokenWriter{httptest.NewRecorder(), 0}, modernPost(callWithToken(""), "Accept", accept))
	}
}

// A client that is gone does not hold up the call's end.
func TestBrokenStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := false
		s := newServer(t, func(_ context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
			for range 10 {
				time.Sleep(5 * time.Second)
				sink.Progress("x")
			}
			asked = true
			return says("done")
		}, nil)
		s.Handler().ServeHTTP(&brokenWriter{httptest.NewRecorder(), 2}, legacyPost(legacyCall(`,"_meta":{"progressToken":7}`), "2025-11-25"))
		if !asked {
			t.Error("a legacy call ends with its connection")
		}
	})
}
