package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// newPageServer serves a page that tells who reads it.
func newPageServer(t *testing.T, auth Authenticator) *Server {
	who := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := IdentityFrom(r.Context())
		if !ok {
			t.Error("no identity")
		}
		_, _ = io.WriteString(w, "page of "+id.Principal)
	})
	return newServer(t, echo, func(o *Options) {
		o.Authenticate = auth
		o.Routes = map[string]http.Handler{"/api/status": who}
		o.Page = &Page{
			Page: who,
			SignIn: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, "sign in")
			}),
			Assets: map[string]http.Handler{"/assets/page.css": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, ok := IdentityFrom(r.Context()); ok {
					t.Error("an asset has an identity")
				}
				_, _ = io.WriteString(w, "css")
			})},
		}
	})
}

const browserAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// A browser gets the page at "/", everybody else the way to the endpoint.
func TestPage(t *testing.T) {
	for _, tt := range []struct {
		name                        string
		auth                        Authenticator
		method, path, accept, token string
		code                        int
		want                        string
	}{
		{"browser", nil, "GET", "/", browserAccept, "", 200, "page of local"},
		{"head", nil, "HEAD", "/", browserAccept, "", 200, ""},
		{"upper case", nil, "GET", "/", "Text/HTML", "", 200, "page of local"},
		{"program", nil, "GET", "/", "*/*", "", 404, `"endpoint":"/mcp"`},
		{"html refused", nil, "GET", "/", "text/html;q=0, */*", "", 404, `"endpoint":"/mcp"`},
		{"no accept", nil, "GET", "/", "", "", 404, `"endpoint":"/mcp"`},
		{"event stream", nil, "GET", "/", "text/event-stream", "", 404, `"endpoint":"/mcp"`},
		{"post", nil, "POST", "/", "application/json, text/event-stream", "", 404, `"endpoint":"/mcp"`},
		{"post of a browser", nil, "POST", "/", browserAccept, "", 404, `"endpoint":"/mcp"`},
		{"other path", nil, "GET", "/status", browserAccept, "", 404, `"endpoint":"/mcp"`},
		{"asset", nil, "GET", "/assets/page.css", "text/css,*/*;q=0.1", "", 200, "css"},
		{"asset posted", nil, "POST", "/assets/page.css", "", "", 404, `"endpoint":"/mcp"`},

		{"signed in", tokenAuth, "GET", "/", browserAccept, "one", 200, "page of one"},
		{"not signed in", tokenAuth, "GET", "/", browserAccept, "", 401, "sign in"},
		{"post without token", tokenAuth, "POST", "/", "*/*", "", 404, `"endpoint":"/mcp"`},
		{"asset without token", tokenAuth, "GET", "/assets/page.css", "*/*", "", 200, "css"},
		{"route without token", tokenAuth, "GET", "/api/status", browserAccept, "", 401, `"jsonrpc"`},
		{"route", tokenAuth, "GET", "/api/status", "*/*", "two", 200, "page of two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := post("", "Accept", tt.accept, "Authorization", "Bearer "+tt.token)
			r.Method, r.URL.Path = tt.method, tt.path
			w := do(newPageServer(t, tt.auth), r)
			if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("%d %s, want %d with %q", w.Code, w.Body, tt.code, tt.want)
			}
		})
	}
}

// The page stands behind the guard, its assets too.
func TestPageIsGuarded(t *testing.T) {
	s := newPageServer(t, nil)
	for _, path := range []string{"/", "/assets/page.css", "/api/status"} {
		r := post("", "Accept", browserAccept)
		r.Method, r.URL.Path, r.Host = http.MethodGet, path, "rebound.example"
		if w := do(s, r); w.Code != http.StatusMisdirectedRequest {
			t.Errorf("%s under a foreign host: %d", path, w.Code)
		}
		r = post("", "Accept", browserAccept, "Origin", "https://evil.example")
		r.Method, r.URL.Path = http.MethodGet, path
		if w := do(s, r); w.Code != http.StatusForbidden {
			t.Errorf("%s from a foreign origin: %d", path, w.Code)
		}
	}
}

// A refusal that signing in cannot mend stays an error, and the challenge is
// there for programs.
func TestPageRefusals(t *testing.T) {
	deny := &Denied{Challenge: `Bearer scope="x"`, Reason: "no"}
	s := newPageServer(t, func(*http.Request) (Identity, *Denied) { return Identity{}, deny })
	get := func() (int, string, string) {
		r := post("", "Accept", browserAccept)
		r.Method, r.URL.Path = http.MethodGet, "/"
		w := do(s, r)
		return w.Code, w.Header().Get("WWW-Authenticate"), w.Body.String()
	}
	if code, challenge, body := get(); code != 401 || challenge != deny.Challenge || body != "sign in" {
		t.Errorf("%d %q %s", code, challenge, body)
	}
	deny.Status = http.StatusForbidden
	if code, _, body := get(); code != 403 || !strings.Contains(body, `"message":"no"`) {
		t.Errorf("%d %s", code, body)
	}
}
