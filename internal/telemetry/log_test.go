package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseLevel(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]slog.Level{
		"error": slog.LevelError, "warn": slog.LevelWarn, "info": slog.LevelInfo, "DEBUG": slog.LevelDebug,
		"0": slog.LevelInfo, "1": LevelFlow, "2": LevelSummary, "3": LevelPayload, "4": LevelShape, "5": LevelRaw,
	} {
		got, err := ParseLevel(s)
		if err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "6", "-1", "trace", "1.5"} {
		if _, err := ParseLevel(s); err == nil || !strings.Contains(err.Error(), `"`+s+`"`) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// TestLevelsByKind: each kind has its own level, and a line belongs to the
// kind of its request, else to that of its logger.
func TestLevelsByKind(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	levels := NewLevels(slog.LevelWarn)
	log := NewLogger(&out, true, levels)
	agents := OfKind(log, KindAgents)
	call := WithRequest(t.Context(), NewRequest("r-1", KindCalls))
	read := WithRequest(t.Context(), NewRequest("r-2", KindReads))
	levels.Set(KindCalls, slog.LevelInfo)
	levels.Set(KindAgents, LevelShape)

	log.InfoContext(call, "a call")
	log.InfoContext(read, "a list")
	log.Info("the gateway")
	log.Warn("the gateway warns")
	agents.InfoContext(call, "an agent of a call")
	agents.Log(t.Context(), LevelShape, "a shape")
	agents.Log(t.Context(), LevelRaw, "raw")

	type line struct{ Level, Msg, Kind, Request string }
	var got []line
	for text := range strings.Lines(out.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	want := []line{
		{"INFO", "a call", "calls", "r-1"},
		{"WARN", "the gateway warns", "gateway", ""},
		{"INFO", "an agent of a call", "agents", "r-1"},
		{"DEBUG4", "a shape", "agents", ""},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAttributesSurvive(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := NewLogger(&out, false, NewLevels(slog.LevelInfo)).With("agent", "billing").WithGroup("g")
	OfKind(log, KindAgents).Info("m", "a", 1)
	if s := out.String(); !strings.Contains(s, "agent=billing") || !strings.Contains(s, "g.a=1") {
		t.Errorf("%s", s)
	}
	plain := slog.New(slog.DiscardHandler)
	if OfKind(plain, KindAgents) != plain {
		t.Error("a foreign logger was changed")
	}
}

// TestSetDebug: the debug number holds for the traffic with agents.
func TestSetDebug(t *testing.T) {
	t.Parallel()
	l := NewLevels(slog.LevelWarn)
	l.SetDebug(0)
	if l.Level(KindAgents) != slog.LevelWarn {
		t.Error("0 changes the level")
	}
	l.SetDebug(3)
	if l.Level(KindAgents) != LevelPayload || l.Level(KindCalls) != slog.LevelDebug {
		t.Errorf("agents %v, calls %v", l.Level(KindAgents), l.Level(KindCalls))
	}
	l.SetDebug(9)
	if l.Level(KindAgents) != LevelRaw {
		t.Errorf("agents %v, want the finest", l.Level(KindAgents))
	}
}

func TestLevelsHTTP(t *testing.T) {
	t.Parallel()
	levels := NewLevels(slog.LevelInfo)
	do := func(method, query string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		levels.ServeHTTP(w, httptest.NewRequest(method, "/debug/log"+query, nil))
		return w
	}
	if w := do(http.MethodPut, "?level=4&kind=agents"); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	var got map[string]string
	if err := json.Unmarshal(do(http.MethodGet, "").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"gateway": "info", "calls": "info", "tasks": "info", "reads": "info", "listens": "info", "agents": "4"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if w := do(http.MethodPut, "?level=error"); w.Code != http.StatusOK || levels.Level(KindAgents) != slog.LevelError {
		t.Errorf("%d, agents %v", w.Code, levels.Level(KindAgents))
	}
	for query, part := range map[string]string{"?level=loud": `"loud"`, "": `""`, "?level=info&kind=x": `"x"`, "?level=info&kinds=calls": `"kinds"`} {
		if w := do(http.MethodPut, query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), part) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := do(http.MethodPost, "?level=info"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("POST: %d", w.Code)
	}
	if levels.Level(KindCalls) != slog.LevelError {
		t.Error("a refused change had an effect")
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for k := range kinds {
		if got, ok := KindFromName(k.String()); !ok || got != k {
			t.Errorf("%d %q: %v %v", k, k, got, ok)
		}
	}
	for method, want := range map[string]Kind{
		"tools/call": KindCalls, "tasks/get": KindTasks, "subscriptions/listen": KindListens, "tools/list": KindReads, "": KindReads, "no/such": KindReads,
	} {
		if got := KindFromMethod(method); got != want {
			t.Errorf("%s: %v, want %v", method, got, want)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	n, m := NewNumbers(), NewNumbers()
	seen := map[string]bool{}
	for range 100 {
		for _, from := range []*Numbers{n, m} {
			c := &Context{Context: t.Context()}
			from.Number(&c.Request)
			id := FromContext(context.WithValue(c, struct{}{}, 1)).ID()
			if id == "" || seen[id] {
				t.Fatalf("id %q is empty or has been given before", id)
			}
			seen[id] = true
		}
	}
	if FromContext(t.Context()) != nil {
		t.Error("a request out of nothing")
	}
	ctx, cancel := context.WithCancel(&Context{Context: t.Context()})
	cancel()
	<-ctx.Done() // a derived context ends without a goroutine: goleak would tell
}
