package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var assets embed.FS

//go:embed page.html signin.html
var templates embed.FS

// policy lets the page load its own style and scripts, ask the gateway, and
// nothing else; nobody may frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Options is what the pages are made of.
type Options struct {
	// Version is the gateway's, part of every ETag.
	Version string
	// Status returns what the sender of a request may see. It is called
	// concurrently, once a request, and must not wait for an agent.
	Status func(*http.Request) Status
	// Every is how often an open page asks for news (3 s).
	Every time.Duration
}

// Pages are the handlers of the status page. They may be called concurrently.
type Pages struct {
	o            Options
	page, signIn *template.Template
	// build is the digest of everything embedded.
	build string
	files map[string]asset
}

// asset is one embedded file.
type asset struct {
	data      []byte
	kind, tag string
}

// New reads what is embedded. An error means that the program was built wrong.
func New(o Options) (*Pages, error) {
	if o.Every <= 0 {
		o.Every = 3 * time.Second
	}
	p := &Pages{o: o, files: map[string]asset{}}
	entries, err := assets.ReadDir("assets")
	if err != nil {
		return nil, fmt.Errorf("status page: %w", err)
	}
	digest := sha256.New()
	digest.Write([]byte(o.Version))
	for _, e := range entries {
		data, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("status page: %w", err)
		}
		digest.Write(data)
		p.files["/assets/"+e.Name()] = asset{data: data, kind: kindOf(e.Name()), tag: tagOf(data)}
	}
	parse := func(name string) *template.Template {
		var t *template.Template
		data, readErr := templates.ReadFile(name)
		if readErr == nil {
			digest.Write(data)
			t, readErr = template.New(name).Funcs(functions).Parse(string(data))
		}
		if readErr != nil && err == nil {
			err = fmt.Errorf("status page: %w", readErr)
		}
		return t
	}
	p.page, p.signIn = parse("page.html"), parse("signin.html")
	p.build = hex.EncodeToString(digest.Sum(nil)[:8])
	return p, err
}

// kindOf is the media type of an asset. The system's own table of types is
// not asked: it differs from machine to machine.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}

func tagOf(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return `"` + hex.EncodeToString(h.Sum(nil)[:12]) + `"`
}

// Page serves the page. Its links are relative, so that it also works under a
// path of a proxy.
func (p *Pages) Page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, data, err := p.status(r)
		if err != nil {
			p.fail(w)
			return
		}
		tag := p.tag(data)
		if !begin(w, r, "text/html; charset=utf-8", tag, true) {
			return
		}
		p.render(w, r, http.StatusOK, p.page, pageData{Status: s, ETag: tag, Every: p.o.Every.Milliseconds()})
	})
}

// API serves the Status as JSON.
func (p *Pages) API() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			secure(w.Header())
			w.Header().Set("Allow", "GET, HEAD")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusMethodNotAllowed)
			_, _ = w.Write([]byte(`{"error":"use GET or HEAD"}`)) // a client that is gone needs no answer
			return
		}
		_, data, err := p.status(r)
		if err != nil {
			p.fail(w)
			return
		}
		if begin(w, r, "application/json", p.tag(data), true) {
			write(w, r, http.StatusOK, data)
		}
	})
}

// SignIn serves the page for those who have not said who they are: it asks
// for a token, keeps it in the browser's tab and fetches the page with it.
func (p *Pages) SignIn() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		p.render(w, r, http.StatusUnauthorized, p.signIn, nil)
	})
}

// Assets are the files that the pages load, by path.
func (p *Pages) Assets() map[string]http.Handler {
	handlers := make(map[string]http.Handler, len(p.files))
	for name, a := range p.files {
		handlers[name] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begin(w, r, a.kind, a.tag, false) {
				write(w, r, http.StatusOK, a.data)
			}
		})
	}
	return handlers
}

// status is what the sender may see, and its JSON.
func (p *Pages) status(r *http.Request) (Status, []byte, error) {
	s := p.o.Status(r).normal()
	data, err := json.Marshal(s)
	return s, data, err
}

// tag is the ETag of a status on both of its pages: they change together.
func (p *Pages) tag(data []byte) string { return tagOf([]byte(p.build), data) }

// fail is for a status that is not JSON: a schema that nobody checked.
func (p *Pages) fail(w http.ResponseWriter) {
	secure(w.Header())
	http.Error(w, "the status cannot be shown", http.StatusInternalServerError)
}

func (p *Pages) render(w http.ResponseWriter, r *http.Request, code int, t *template.Template, data any) {
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		p.fail(w)
		return
	}
	write(w, r, code, b.Bytes())
}

// begin writes the headers of an answer, and the whole answer where the
// client has it already: then it returns false. private is for what one
// caller may see.
func begin(w http.ResponseWriter, r *http.Request, kind, tag string, private bool) bool {
	h := w.Header()
	secure(h)
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache")
	if private {
		h.Set("Cache-Control", "private, no-cache")
		h.Set("Vary", "Accept, Authorization")
	}
	if known(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return false
	}
	h.Set("Content-Type", kind)
	return true
}

// known reports whether a client has what tag names (RFC 9110, 13.1.2).
func known(header, tag string) bool {
	for v := range strings.SplitSeq(header, ",") {
		v = strings.TrimPrefix(strings.TrimSpace(v), "W/") // a proxy that compresses makes it weak
		if v == tag || v == "*" {
			return true
		}
	}
	return false
}

func write(w http.ResponseWriter, r *http.Request, code int, data []byte) {
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data) // a client that is gone needs no answer
	}
}

// secure writes the headers that every answer has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
