package a2a

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// TestConditionalRequests: a fresh card is not asked for, a stale one with its
// ETag; the credential and the version header belong to the key (checklist 4).
func TestConditionalRequests(t *testing.T) {
	s := newCardServer(t)
	var version atomic.Int32
	s.on(current, func(w http.ResponseWriter, r *http.Request) {
		etag := fmt.Sprintf(`"v%d"`, version.Load())
		w.Header().Set("Cache-Control", "max-age=0")
		w.Header().Set("Vary", "A2A-Version")
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(304)
			return
		}
		serveCard(s.URL+"/"+etag[1:3])(w, r)
	})
	a := newAgent(t, AgentConfig{URL: s.URL})
	fetch := func() *Card {
		t.Helper()
		a.mu.Lock()
		a.checked = time.Time{} // no pause between discoveries
		a.mu.Unlock()
		card, err := a.FetchCard(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return card
	}
	first := fetch()
	if second := fetch(); second != first {
		t.Error("a 304 made another card")
	}
	version.Add(1)
	if third := fetch(); third == first || third.Interfaces[0].URL != s.URL+"/v1" {
		t.Error("the new card was not taken")
	}
	var sent []string
	for _, r := range s.requests() {
		sent = append(sent, r.Header.Get("If-None-Match"))
	}
	if want := []string{"", `"v0"`, `"v0"`}; !slices.Equal(sent, want) {
		t.Errorf("If-None-Match was %q, want %q", sent, want)
	}
}

func TestFreshFor(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		header http.Header
		want   time.Duration
	}{
		{http.Header{}, defaultFresh},
		{http.Header{"Cache-Control": {"public, max-age=60"}}, time.Minute},
		{http.Header{"Cache-Control": {`MAX-AGE="60"`}}, time.Minute},
		{http.Header{"Cache-Control": {"max-age=60"}, "Age": {"20"}}, 40 * time.Second},
		{http.Header{"Cache-Control": {"max-age=60"}, "Age": {"99"}}, 0},
		{http.Header{"Cache-Control": {"max-age=0"}}, 0},
		{http.Header{"Cache-Control": {"max-age=soon"}}, 0},
		{http.Header{"Cache-Control": {"max-age=99999999999999999999"}}, 0},
		{http.Header{"Cache-Control": {"max-age=999999"}}, maxFresh},
		{http.Header{"Cache-Control": {"max-age=60", "no-cache"}}, 0},
		{http.Header{"Cache-Control": {"no-store"}}, 0},
		{http.Header{"Expires": {now.Add(90 * time.Second).Format(http.TimeFormat)}}, 90 * time.Second},
		{http.Header{"Expires": {"0"}}, 0},
		{http.Header{"Cache-Control": {"max-age=60"}, "Expires": {"0"}}, time.Minute},
	}
	for _, tt := range tests {
		if got := freshFor(tt.header, now); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.header, got, tt.want)
		}
	}
}

// TestCardRetries: a passing 503 costs a short pause; the agent's refusal of
// every candidate costs two repetitions in all.
func TestCardRetries(t *testing.T) {
	s := newCardServer(t)
	var calls atomic.Int32
	s.on(current, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(503)
			return
		}
		serveCard(s.URL+"/")(w, r)
	})
	if _, err := newAgent(t, AgentConfig{URL: s.URL}).FetchCard(t.Context()); err != nil {
		t.Errorf("after two 503: %v", err)
	}
	s.on(current, serve(503, "", ""))
	s.on(legacy, serve(502, "", ""))
	s.take()
	a := newAgent(t, AgentConfig{URL: s.URL})
	_, _ = a.FetchCard(t.Context())
	if got := s.take(); !slices.Equal(got, []string{current, current, current, legacy}) {
		t.Errorf("asked %q", got)
	}
	wantState(t, a, AgentDown, "GET "+s.URL+current+" answered 503 Service Unavailable")
}

// TestEtagOfAnotherVariant: an ETag had without the credential is not shown
// with it; the two answers may be different cards.
func TestEtagOfAnotherVariant(t *testing.T) {
	s := newCardServer(t)
	var locked atomic.Bool
	s.on("/card", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", `"same"`)
		if locked.Load() && r.Header.Get("Authorization") == "" {
			w.WriteHeader(401)
			return
		}
		if r.Header.Get("If-None-Match") == `"same"` {
			w.WriteHeader(304)
			return
		}
		serveCard(s.URL+"/"+r.Header.Get("Authorization"))(w, r)
	})
	a := newAgent(t, AgentConfig{CardURL: s.URL + "/card", Authorizer: bearer(t, "k")})
	for i, want := range []string{s.URL + "/", s.URL + "/Bearer k"} {
		a.mu.Lock()
		a.checked = time.Time{}
		a.mu.Unlock()
		if card, err := a.FetchCard(t.Context()); err != nil || card.Interfaces[0].URL != want {
			t.Errorf("fetch %d: %+v, %v", i, card, err)
		}
		locked.Store(true)
	}
}
