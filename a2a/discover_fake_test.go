package a2a

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"a2agate/a2a/credential"
)

// cardServer is a scripted agent: an answer for each path, 404 elsewhere. It
// keeps every request.
type cardServer struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]http.HandlerFunc
	seen    []*http.Request
}

func newCardServer(t *testing.T) *cardServer {
	t.Helper()
	s := &cardServer{answers: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *cardServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Clone(r.Context()))
	answer := s.answers[r.URL.Path]
	s.mu.Unlock()
	if answer == nil {
		http.NotFound(w, r)
		return
	}
	answer(w, r)
}

// on sets the answer of a path.
func (s *cardServer) on(path string, answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = answer
}

// take returns the requests since the last take, as "/path?query".
func (s *cardServer) take() []string {
	var out []string
	for _, r := range s.requests() {
		out = append(out, r.URL.RequestURI())
	}
	return out
}

func (s *cardServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// serve answers with a status, a content type and a body.
func serve(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

// cardFor is a 1.0 card whose one interface is at that URL.
func cardFor(url string) string {
	return fmt.Sprintf(`{"name":"Echo","supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{"streaming":true}}`, url)
}

func serveCard(url string) http.HandlerFunc { return serve(200, "application/json", cardFor(url)) }

func newAgent(t *testing.T, cfg AgentConfig) *Agent {
	t.Helper()
	if cfg.Alias == "" {
		cfg.Alias = "echo"
	}
	a, err := NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func auth(t *testing.T, spec credential.Spec) Authorizer {
	t.Helper()
	made, err := credential.FromConfig(spec)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func bearer(t *testing.T, token string) Authorizer {
	return auth(t, credential.Spec{Type: "bearer", Token: credential.NewSecret(token)})
}

func wantState(t *testing.T, a *Agent, state AgentState, reason string) {
	t.Helper()
	if got := a.Status(); got.State != state || got.Reason != reason {
		t.Errorf("state is %s: %s\nwant     %s: %s", got.State, got.Reason, state, reason)
	}
}

func wantNote(t *testing.T, a *Agent, part string) {
	t.Helper()
	if notes := a.Status().Notes; !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, part) }) {
		t.Errorf("notes are %q, none says %q", notes, part)
	}
}

// handlerTransport answers requests from a handler in memory, in the caller's
// goroutine, so that agents can live in a synctest bubble.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	resp := w.Result()
	resp.Request = req
	return resp, nil
}
