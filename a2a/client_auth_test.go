package a2a

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// fakeAuth counts how it is used.
type fakeAuth struct {
	mu        sync.Mutex
	token     int
	refreshed int
	err       error
	stuck     bool // Refresh does not help
}

func (a *fakeAuth) Authorize(req *http.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	req.Header.Set("Authorization", fmt.Sprintf("Bearer secret-%d", a.token))
	return nil
}

func (a *fakeAuth) Refresh(context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refreshed++
	a.token++
	return !a.stuck
}

// A 401 drops the credential and tries once more, sends too: nothing was run.
func TestUnauthorizedRefreshesOnce(t *testing.T) {
	for _, tt := range []struct {
		name     string
		accepts  string
		stuck    bool
		requests int
		ok       bool
	}{
		{"refresh helps", "Bearer secret-1", false, 2, true},
		{"refresh does not help", "Bearer never", false, 2, false},
		{"nothing to refresh", "Bearer never", true, 1, false},
	} {
		for _, stream := range []bool{false, true} {
			agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
				if r.Header.Get("Authorization") != tt.accepts {
					w.Header().Set("WWW-Authenticate", `Bearer realm="agents"`)
					w.WriteHeader(401)
					return
				}
				reply(w, r, taskCompleted)
			})
			auth := &fakeAuth{stuck: tt.stuck}
			c := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.Auth = auth; o.FallbackURL = agent.URL })
			var err error
			if stream {
				var s EventStream
				s, err = c.Stream(testContext(t), hello())
				closeStream(s, err)
			} else {
				_, err = c.Send(testContext(t), hello())
			}
			if (err == nil) != tt.ok || len(agent.requests()) != tt.requests || auth.refreshed != 1 {
				t.Errorf("%s: %v, %d requests, %d refreshes", tt.name, err, len(agent.requests()), auth.refreshed)
			}
			if !tt.ok {
				if e := wantError(t, err, CauseAuth); e.HTTPStatus != 401 || e.Challenge == "" || strings.Contains(e.Message, "secret") {
					t.Errorf("%+v", e)
				}
			}
		}
	}
	// 403 is an answer.
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { w.WriteHeader(403) })
	auth := &fakeAuth{}
	_, err := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.Auth = auth }).Send(testContext(t), hello())
	if wantError(t, err, CauseAuth); auth.refreshed != 0 {
		t.Error("refreshed on 403")
	}
}

// A credential that cannot be had stops the request before it is sent.
func TestAuthorizeFails(t *testing.T) {
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { reply(w, r, taskCompleted) })
	for _, err := range []error{errors.New("the token endpoint answered HTTP 500"), &Error{Cause: CauseAuth, Message: "run az login"}} {
		_, got := agent.client(V10, JSONRPC, func(o *ClientOptions) { o.Auth = &fakeAuth{err: err} }).Send(testContext(t), hello())
		if e := wantError(t, got, CauseAuth); e.Message != err.Error() || !e.Unsent {
			t.Errorf("%+v", e)
		}
	}
	if n := len(agent.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// Neither the credential nor the configured headers reach another origin: not
// an anonymous interface, not a foreign one, not a redirect's target.
func TestCredentialStaysHome(t *testing.T) {
	foreign := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { reply(w, r, taskCompleted) })
	home := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		w.Header().Set("Location", foreign.URL+"/a2a?ticket=secret")
		w.WriteHeader(307)
	})
	edit := func(in Interface, fallback string) func(*ClientOptions) {
		return func(o *ClientOptions) {
			o.Interfaces = []Interface{in}
			o.FallbackURL = fallback
			o.Auth = &fakeAuth{}
			o.Headers = http.Header{"X-Api-Key": {"secret"}}
		}
	}
	in := Interface{URL: foreign.URL + "/a2a", Version: V10, Binding: JSONRPC}
	anonymous := in
	anonymous.Anonymous = true
	for name, e := range map[string]func(*ClientOptions){
		"anonymous":      edit(anonymous, ""),
		"foreign origin": edit(in, home.URL),
	} {
		if _, err := home.client(V10, JSONRPC, e).Send(testContext(t), hello()); err != nil {
			t.Fatal(name, err)
		}
	}
	_, err := home.client(V10, JSONRPC, edit(Interface{URL: home.URL + "/a2a", Version: V10, Binding: JSONRPC}, home.URL)).Send(testContext(t), hello())
	e := wantError(t, err, CauseHTTP)
	if e.HTTPStatus != 307 || !strings.Contains(e.Message, foreign.URL) || strings.Contains(e.Message, "ticket") {
		t.Errorf("%+v", e)
	}
	if len(foreign.requests()) != 2 {
		t.Errorf("the redirect was followed: %d requests", len(foreign.requests()))
	}
	for _, r := range foreign.requests() {
		if r.Header.Get("Authorization") != "" || r.Header.Get("X-Api-Key") != "" {
			t.Errorf("a credential left its origin: %v", r.Header)
		}
	}
	if h := home.requests()[0].Header; h.Get("Authorization") == "" || h.Get("X-Api-Key") != "secret" {
		t.Errorf("the configured origin got none: %v", h)
	}
}

// Redirects: 307 and 308 within the origin repeat the POST, others are refused
// (RFC 9110, 15.4).
func TestCallRedirects(t *testing.T) {
	for status, follows := range map[int]bool{301: false, 302: false, 303: false, 307: true, 308: true} {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
			if r.URI == "/a2a" {
				w.Header().Set("Location", "/moved/")
				w.WriteHeader(status)
				return
			}
			reply(w, r, taskCompleted)
		})
		_, err := agent.client(V10, JSONRPC).Send(testContext(t), hello())
		if (err == nil) != follows {
			t.Errorf("%d: %v", status, err)
		}
		if reqs := agent.requests(); follows && (len(reqs) != 2 || reqs[1].Method != "POST" || reqs[1].Body != reqs[0].Body) || !follows && len(reqs) != 1 {
			t.Errorf("%d: %q", status, agent.trail())
		}
		if !follows {
			if e := wantError(t, err, CauseHTTP); e.HTTPStatus != status {
				t.Errorf("%+v", e)
			}
		}
	}
	loop := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		w.Header().Set("Location", "/a2a")
		w.WriteHeader(307)
	})
	_, err := loop.client(V10, JSONRPC).Send(testContext(t), hello())
	if wantError(t, err, CauseHTTP); len(loop.requests()) > 6 {
		t.Errorf("%d requests", len(loop.requests()))
	}
}

// The configured origin is known in every spelling: a card that writes it
// another way gets the credential all the same.
func TestCredentialGoesToItsOriginInAnySpelling(t *testing.T) {
	for _, spelling := range []string{"http://AGENT.test:80/a2a", "http://agent.test./a2a", "HTTP://agent.test/a2a", "http://agent.test:080/a2a", "http://agent.test:81/a2a", "https://agent.test/a2a", "http://agent.test.evil/a2a"} {
		var got string
		c := fakeClient(t, roundTripFunc(func(req *http.Request) (*http.Response, error) {
			got = req.Header.Get("Authorization")
			return response(200, "application/json", `{"result":`+taskCompleted+`}`), nil
		}), func(o *ClientOptions) {
			o.Interfaces[0].URL, o.FallbackURL, o.Auth = spelling, "http://agent.test/", &fakeAuth{}
		})
		if _, err := c.Send(t.Context(), hello()); err != nil {
			t.Fatal(spelling, err)
		}
		home := !strings.Contains(spelling, "evil") && !strings.Contains(spelling, "https") && !strings.Contains(spelling, ":81") && !strings.Contains(spelling, ":080")
		if (got != "") != home {
			t.Errorf("%s got %q", spelling, got)
		}
	}
}
