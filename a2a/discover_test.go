package a2a

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	current = "/.well-known/agent-card.json"
	legacy  = "/.well-known/agent.json"
)

// TestCandidateOrder has each request that is made when none of the addresses
// has a card, in order, to the byte (checklist 1, 2; P01 e).
func TestCandidateOrder(t *testing.T) {
	tests := []struct {
		name string
		cfg  AgentConfig // addresses without their origin
		want []string
	}{
		{"origin", AgentConfig{URL: ""}, []string{current, legacy}},
		{"origin with slash", AgentConfig{URL: "/"}, []string{current, legacy}},
		{"path", AgentConfig{URL: "/a/b"}, []string{"/a/b" + current, "/a/b" + legacy, current, legacy}},
		{"path with slash", AgentConfig{URL: "/a/b/"}, []string{"/a/b" + current, "/a/b" + legacy, current, legacy}},
		{"path with slashes", AgentConfig{URL: "/a/b//"}, []string{"/a/b" + current, "/a/b" + legacy, current, legacy}},
		{"query", AgentConfig{URL: "/a?k=v&w=%2F"}, []string{"/a" + current + "?k=v&w=%2F", "/a" + legacy + "?k=v&w=%2F", current + "?k=v&w=%2F", legacy + "?k=v&w=%2F"}},
		{"escapes", AgentConfig{URL: "/a%2Fb/c%20d"}, []string{"/a%2Fb/c%20d" + current, "/a%2Fb/c%20d" + legacy, current, legacy}},
		{"cardUrl", AgentConfig{CardURL: "/agents/7/card.json?x=1"}, []string{"/agents/7/card.json?x=1"}},
		{"cardUrl without suffix", AgentConfig{CardURL: "/agents/7/card"}, []string{"/agents/7/card"}},
		{"P01 e, card as url", AgentConfig{URL: "/agents/7/card.json"}, []string{"/agents/7/card.json"}},
		{"well-known card as url", AgentConfig{URL: "/a" + legacy}, []string{"/a" + legacy}},
		{"cardPath", AgentConfig{URL: "/a/", CardPath: "meta/card.json"}, []string{"/a/meta/card.json", "/a" + current, "/a" + legacy, current, legacy}},
		{"cardPath that is well known", AgentConfig{URL: "/a/", CardPath: ".well-known/agent-card.json"}, []string{"/a" + current, "/a" + legacy, current, legacy}},
		{"cardPath from the root", AgentConfig{URL: "/a", CardPath: "/card"}, []string{"/a/card", "/card", "/a" + current, "/a" + legacy, current, legacy}},
		{"cardPath with query", AgentConfig{URL: "/a?k=v", CardPath: "card?x=1"}, []string{"/a/card?x=1", "/a" + current + "?k=v", "/a" + legacy + "?k=v", current + "?k=v", legacy + "?k=v"}},
		{"cardPath as URL", AgentConfig{URL: "/a", CardPath: "ORIGIN/c"}, []string{"/c", "/a" + current, "/a" + legacy, current, legacy}},
		{"cardPath alone", AgentConfig{CardPath: "ORIGIN/c"}, []string{"/c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newCardServer(t)
			cfg := tt.cfg
			cfg.CardPath = strings.Replace(cfg.CardPath, "ORIGIN", s.URL, 1)
			if cfg.CardURL != "" {
				cfg.CardURL = s.URL + cfg.CardURL
			} else if !strings.HasPrefix(cfg.CardPath, "http") || cfg.URL != "" {
				cfg.URL = s.URL + cfg.URL
			}
			a := newAgent(t, cfg)
			if card, err := a.FetchCard(t.Context()); err == nil {
				t.Fatalf("found %+v", card)
			}
			if got := s.take(); !slices.Equal(got, tt.want) {
				t.Errorf("asked %q\nwant  %q", got, tt.want)
			}
			if got := a.Status().State; got != AgentNotACard {
				t.Errorf("state is %s", got)
			}
		})
	}
}

// TestEachCandidateServes: whichever address has the card, it is found there,
// after the ones before it and none after.
func TestEachCandidateServes(t *testing.T) {
	order := []string{"/a" + current, "/a" + legacy, current, legacy}
	wrong := []http.HandlerFunc{ // what an address without a card may answer
		serve(404, "text/plain", "no"), serve(405, "", ""), serve(200, "text/html", "<html>"), serve(200, "application/json", `{"detail":"Not Found"}`),
		serve(401, "", ""), serve(403, "", ""), serve(200, "application/json", `[]`), serve(410, "", ""), serve(204, "", ""), serve(200, "application/json", `{"na`), serve(500, "", ""),
	}
	for i, path := range order {
		for j := range wrong {
			s := newCardServer(t)
			for k, before := range order[:i] {
				s.on(before, wrong[(j+k)%len(wrong)])
			}
			s.on(path, serveCard(s.URL+"/a"))
			a := newAgent(t, AgentConfig{URL: s.URL + "/a"})
			card, err := a.FetchCard(t.Context())
			if err != nil || card.URL != s.URL+path {
				t.Errorf("%s behind answer %d: %v", path, j, err)
			}
			if got := s.take(); !slices.Equal(got, order[:i+1]) {
				t.Errorf("asked %q", got)
			}
			wantState(t, a, AgentReady, "")
		}
	}
}

// TestP01 is the acceptance case of clients.md; e is in TestCandidateOrder, f
// in TestComesBack.
func TestP01(t *testing.T) {
	t.Run("a legacy path", func(t *testing.T) {
		s := newCardServer(t)
		s.on(legacy, serve(200, "application/json", strings.ReplaceAll(card03, "http://127.0.0.1:9103", s.URL)))
		a := newAgent(t, AgentConfig{URL: s.URL})
		if _, err := a.FetchCard(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := a.Status()
		if got.State != AgentReady || got.Version != V03 || got.Binding != JSONRPC || got.URL != s.URL+"/" || got.CardURL != s.URL+legacy {
			t.Errorf("status is %+v", got)
		}
		if len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "legacy path") {
			t.Errorf("notes are %q", got.Notes)
		}
	})
	challenge := func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer good" {
			serveCard("http://"+r.Host+"/")(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="agents"`)
		w.WriteHeader(401)
	}
	t.Run("b without credential", func(t *testing.T) {
		s := newCardServer(t)
		s.on(current, challenge)
		a := newAgent(t, AgentConfig{URL: s.URL})
		_, err := a.FetchCard(t.Context())
		want := "GET " + s.URL + current + ` answered 401 Unauthorized, WWW-Authenticate: Bearer realm="agents": set auth for this agent`
		wantState(t, a, AgentAuthRequired, want)
		var coded *Error
		if !errors.As(err, &coded) || coded.Message != want || coded.Cause != CauseAuth || coded.HTTPStatus != 401 || coded.Challenge != `Bearer realm="agents"` || coded.Agent != "echo" {
			t.Errorf("error is %+v", err)
		}
	})
	t.Run("b with credential", func(t *testing.T) {
		s := newCardServer(t)
		s.on(current, challenge)
		a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: bearer(t, "good")})
		if _, err := a.FetchCard(t.Context()); err != nil {
			t.Fatal(err)
		}
		var sent []string
		for _, r := range s.requests() {
			sent = append(sent, r.URL.Path+" "+r.Header.Get("Authorization"))
		}
		if want := []string{current + " ", current + " Bearer good"}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
		wantState(t, a, AgentReady, "")
	})
	t.Run("b with a refused credential", func(t *testing.T) {
		s := newCardServer(t)
		s.on(current, challenge)
		a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: bearer(t, "b4d-secret")})
		_, err := a.FetchCard(t.Context())
		wantState(t, a, AgentAuthRequired, "GET "+s.URL+current+` answered 401 Unauthorized, WWW-Authenticate: Bearer realm="agents": the configured credential is refused`)
		if got := s.take(); !slices.Equal(got, []string{current, current, legacy}) {
			t.Errorf("asked %q", got)
		}
		if err == nil || strings.Contains(err.Error(), "b4d-secret") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("c HTML", func(t *testing.T) {
		s := newCardServer(t)
		s.on(current, serve(200, "text/html; charset=utf-8", "<html><body>Sign in"))
		a := newAgent(t, AgentConfig{URL: s.URL})
		_, _ = a.FetchCard(t.Context())
		wantState(t, a, AgentNotACard, "GET "+s.URL+current+" answered 200 OK with text/html, not a card")
	})
	t.Run("d without name", func(t *testing.T) {
		s := newCardServer(t)
		s.on(current, serve(200, "application/json", `{"description":"x"}`))
		a := newAgent(t, AgentConfig{URL: s.URL})
		_, _ = a.FetchCard(t.Context())
		wantState(t, a, AgentInvalidCard, "the card at "+s.URL+current+" has no name, and no supportedInterfaces or url either: it is not an agent card")
	})
}

// TestReasons has the state and the words for what agents answer when none of
// their addresses has a card.
func TestReasons(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		state  AgentState
		reason string // behind "GET URL " or "the card at URL "
	}{
		{"404", serve(404, "text/plain", "gone"), AgentNotACard, "answered 404 Not Found (text/plain), not a card"},
		{"403", serve(403, "", ""), AgentAuthRequired, "answered 403 Forbidden: set auth for this agent"},
		{"418", serve(418, "", ""), AgentNotACard, "answered 418 I'm a teapot, not a card"},
		{"500", serve(500, "text/html", "<h1>"), AgentDown, "answered 500 Internal Server Error (text/html)"},
		{"304 unasked", serve(304, "", ""), AgentNotACard, "answered 304 without having been asked for it"},
		{"204", serve(204, "", ""), AgentNotACard, "answered 204 No Content, not a card"},
		{"empty JSON", serve(200, "application/json", ""), AgentInvalidCard, "is empty"},
		{"HTML as JSON", serve(200, "application/json", "<html>"), AgentNotACard, "answered 200 OK with application/json, not a card"},
		{"null", serve(200, "application/json", "null"), AgentInvalidCard, "is null, not a JSON object"},
		{"array", serve(200, "application/json", "[1]"), AgentInvalidCard, "is an array, not a JSON object"},
		{"truncated", serve(200, "application/json", `{"name":"x"`), AgentInvalidCard, "is not valid JSON: unexpected end of JSON input"},
		{"text", serve(200, "text/plain", "hello"), AgentNotACard, "answered 200 OK with text/plain, not a card"},
		{"redirect without target", serve(302, "", ""), AgentNotACard, "answered 302 Found, not a card"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newCardServer(t)
			s.on("/card", tt.answer)
			a := newAgent(t, AgentConfig{CardURL: s.URL + "/card"})
			_, _ = a.FetchCard(t.Context())
			lead := "GET " + s.URL + "/card "
			if tt.state == AgentInvalidCard {
				lead = "the card at " + s.URL + "/card "
			}
			wantState(t, a, tt.state, lead+tt.reason)
		})
	}
}

// TestOddCardsAreUsed: wrong content types, byte order marks and invalid UTF-8
// do not keep an agent out (checklist 5).
func TestOddCardsAreUsed(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no content type": serve(200, "", card03), "HTML type": serve(200, "text/html", card03), "octets": serve(200, "application/octet-stream", card03),
		"BOM": serve(200, "application/json", "\xef\xbb\xbf"+card03), "203": serve(203, "application/json", card03),
		"not UTF-8": serve(200, "application/json", strings.Replace(card03, "Invoice", "Inv\xffice", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			s := newCardServer(t)
			s.on(current, answer)
			if _, err := newAgent(t, AgentConfig{URL: s.URL}).FetchCard(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCardOverTheLimit(t *testing.T) {
	s := newCardServer(t)
	body := `{"name":"x","url":"` + s.URL + `/","filler":"` + strings.Repeat("a", 4096) + `"}`
	s.on("/card", serve(200, "application/json", body))
	a := newAgent(t, AgentConfig{CardURL: s.URL + "/card", Limits: Limits{CardBytes: 4096}})
	_, err := a.FetchCard(t.Context())
	wantState(t, a, AgentInvalidCard, "the card at "+s.URL+"/card is larger than 4096 bytes")
	var coded *Error
	if !errors.As(err, &coded) || coded.Cause != CauseLimit {
		t.Errorf("error is %+v", err)
	}
	exact := newAgent(t, AgentConfig{CardURL: s.URL + "/card", Limits: Limits{CardBytes: int64(len(body))}})
	if _, err := exact.FetchCard(t.Context()); err != nil {
		t.Errorf("a card of exactly the limit: %v", err)
	}
}

// TestSlowCard: an agent that drips its card, or says nothing, costs the card
// timeout once, not once a candidate.
func TestSlowCard(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drip": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, " "); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCardServer(t)
			s.on(current, answer)
			a := newAgent(t, AgentConfig{URL: s.URL, Timeouts: Timeouts{Header: 100 * time.Millisecond}})
			_, err := a.FetchCard(t.Context())
			var coded *Error
			if !errors.As(err, &coded) || coded.Cause != CauseTimeout || !strings.HasPrefix(coded.Message, strings.TrimPrefix(s.URL, "http://")+" did not answer within ") {
				t.Errorf("error is %v", err)
			}
			if got := s.take(); len(got) != 1 {
				t.Errorf("asked %q", got)
			}
			if got := a.Status().State; got != AgentDown {
				t.Errorf("state is %s", got)
			}
		})
	}
}

// TestVersionHeader: the card is asked for with A2A-Version 1.0, and once
// without it where the agent minds.
func TestVersionHeader(t *testing.T) {
	for _, status := range []int{400, 406} {
		s := newCardServer(t)
		s.on(current, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("A2A-Version") != "" {
				w.WriteHeader(status)
				return
			}
			serveCard(s.URL+"/")(w, r)
		})
		a := newAgent(t, AgentConfig{URL: s.URL})
		if _, err := a.FetchCard(t.Context()); err != nil {
			t.Fatal(err)
		}
		var sent []string
		for _, r := range s.requests() {
			sent = append(sent, r.Header.Get("A2A-Version"))
		}
		if !slices.Equal(sent, []string{"1.0", ""}) {
			t.Errorf("%d: sent %q", status, sent)
		}
	}
	s := newCardServer(t)
	s.on("/card", serve(400, "", ""))
	a := newAgent(t, AgentConfig{CardURL: s.URL + "/card"})
	_, _ = a.FetchCard(t.Context())
	if got := s.take(); len(got) != 2 {
		t.Errorf("an agent that refuses both ways was asked %d times", len(got))
	}
}

// TestRedirects: five hops are followed, a sixth not (checklist 6).
func TestRedirects(t *testing.T) {
	s := newCardServer(t)
	hop := func(n int) string { return fmt.Sprintf("/hop/%d", n) }
	for n := range 7 {
		s.on(hop(n), func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, hop(n+1), []int{301, 302, 303, 307, 308}[n%5])
		})
	}
	s.on(hop(7), serveCard(s.URL+"/a2a"))
	a := newAgent(t, AgentConfig{CardURL: s.URL + hop(2)})
	card, err := a.FetchCard(t.Context())
	if err != nil || card.URL != s.URL+hop(7) {
		t.Errorf("after five hops: %v", err)
	}
	if got := s.take(); len(got) != 6 {
		t.Errorf("asked %q", got)
	}
	far := newAgent(t, AgentConfig{CardURL: s.URL + hop(1)})
	_, _ = far.FetchCard(t.Context())
	wantState(t, far, AgentBlockedOrigin, "GET "+s.URL+hop(1)+" is redirected more than 5 times")
}

// TestRedirectsByPolicy: a redirect may not lead to a metadata service or a
// private address; another candidate may still have the card.
func TestRedirectsByPolicy(t *testing.T) {
	for target, reason := range map[string]string{
		"http://169.254.169.254/latest/meta-data": "169.254.169.254 is a metadata service address, which is not called unless it is configured as an address",
		"http://[fd00:ec2::254]/":                 "fd00:ec2::254 is a metadata service address, which is not called unless it is configured as an address",
		"http://10.1.2.3/card.json":               `10.1.2.3 is a private address, which is not called: list "10.1.2.3" in allowHosts if it is meant`,
	} {
		s := newCardServer(t)
		s.on(current, http.RedirectHandler(target, 302).ServeHTTP)
		a := newAgent(t, AgentConfig{URL: s.URL})
		_, err := a.FetchCard(t.Context())
		wantState(t, a, AgentBlockedOrigin, reason)
		var coded *Error
		if !errors.As(err, &coded) || coded.Cause != CauseUnavailable {
			t.Errorf("error is %v", err)
		}
		s.on(legacy, serveCard(s.URL+"/"))
		if _, err := newAgent(t, AgentConfig{URL: s.URL}).FetchCard(t.Context()); err != nil {
			t.Errorf("the other candidate: %v", err)
		}
	}
}

// FuzzLocate: no configured address makes discovery panic; every candidate can
// be asked, and lies on the origin of the agent unless a cardPath names another.
func FuzzLocate(f *testing.F) {
	f.Add("http://a.test/x/?k=v", "", "card.json")
	f.Add("", "https://a.test/card.json#x", "")
	f.Add("http://[::1]:80//", "", "/../x?y")
	f.Add("http://a.test", "", "http://b.test/c")
	f.Fuzz(func(t *testing.T, raw, cardURL, cardPath string) {
		place, err := locate(raw, cardURL, cardPath)
		if err != nil {
			return
		}
		if len(place.candidates) == 0 || place.agent == nil || place.agent.User != nil {
			t.Fatalf("located nothing: %+v", place)
		}
		for _, c := range place.candidates {
			u, err := url.Parse(c.url)
			if err != nil || u.User != nil {
				t.Fatalf("candidate %q: %v", c.url, err)
			}
			if !isAbsoluteHTTP(cardPath) && !originOf(u).same(originOf(place.agent)) {
				t.Fatalf("candidate %q is not on %s", c.url, originOf(place.agent))
			}
			_ = showURL(c.url)
		}
	})
}
