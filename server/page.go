package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// Page is what people see at "/". Its handlers are called concurrently.
type Page struct {
	// Page answers a GET or HEAD of "/" that accepts text/html, behind the
	// guard and the authentication. Everything else at "/" is not found, as it
	// is without a Page: an MCP client that has the wrong path learns the right
	// one.
	Page http.Handler
	// SignIn, unless nil, answers in place of Page where the caller has not
	// proved who it is: a browser cannot do so when it follows a link. The
	// WWW-Authenticate header is set already; SignIn writes the status 401.
	SignIn http.Handler
	// Assets are what both load, by path, for GET and HEAD, behind the guard
	// alone: browsers load them without a credential, so they must hold
	// nothing of this gateway.
	Assets map[string]http.Handler
}

// identityKey is the context key of the Identity of a request.
type identityKey struct{}

// IdentityFrom returns who makes a request that has come to a handler of
// Options.Routes or Page.Page; ok is false elsewhere.
func IdentityFrom(ctx context.Context) (id Identity, ok bool) {
	id, ok = ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// authenticated lets in who can prove who it is, and tells next who it is.
// signIn, unless nil, answers a 401 in place of the JSON error.
func (s *Server) authenticated(next, signIn http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, denied := s.o.Authenticate(r)
		if denied == nil {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
			return
		}
		s.turnedAway(denied.status())
		if signIn == nil || denied.status() != http.StatusUnauthorized {
			writeDenied(w, denied)
			return
		}
		if denied.Challenge != "" {
			w.Header().Set("WWW-Authenticate", denied.Challenge)
		}
		signIn.ServeHTTP(w, r)
	})
}

func (s *Server) routePage(r chi.Router, p *Page) {
	page := s.authenticated(p.Page, p.SignIn)
	r.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !readsOnly(r) || !acceptsHTML(r.Header["Accept"]) {
			s.notFound(w, r)
			return
		}
		page.ServeHTTP(w, r)
	})
	for path, h := range p.Assets {
		r.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if !readsOnly(r) {
				s.notFound(w, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}

func readsOnly(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// acceptsHTML reports whether text/html is asked for by name. Whoever takes
// anything is a program, not a person.
func acceptsHTML(values []string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			kind, params, _ := strings.Cut(part, ";")
			refused := strings.Contains(params, "q=0") && strings.Trim(strings.TrimSpace(params), "q=0.") == ""
			if !refused && lowered(strings.TrimSpace(kind)) == "text/html" {
				return true
			}
		}
	}
	return false
}
