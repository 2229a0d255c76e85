package a2a

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestNothingToldHoldsASecret: agents that repeat what they were sent, in every
// place that an error or a state is made of, and connections that fail: neither
// errors, with all that they wrap, nor states, attempts, notes or the log hold
// a credential (checklist 61).
func TestNothingToldHoldsASecret(t *testing.T) {
	repeat := func(r *http.Request) string { // all that the agent was sent, in one line
		var b bytes.Buffer
		_ = r.Header.Write(&b)
		user, password, _ := r.BasicAuth()
		_ = r.ParseForm()
		return strings.NewReplacer("\r\n", " ", `"`, "'", "\\", "").Replace(r.RequestURI + " " + b.String() + user + ":" + password + " " + r.PostForm.Encode() + " " + r.URL.Query().Get("key"))
	}
	long := strings.Repeat("x", 200) // so that a cut goes through the middle of the secret
	faults := map[string]http.HandlerFunc{
		"401": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", "Bearer error_description=\""+repeat(r)+"\"")
			w.WriteHeader(401)
			fmt.Fprint(w, repeat(r))
		},
		"403 as JSON": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(403)
			fmt.Fprintf(w, `{"error":%q,"error_description":%q}`, "denied", long+repeat(r))
		},
		"500 in words": func(w http.ResponseWriter, r *http.Request) { http.Error(w, long+repeat(r), 500) },
		"422 as problem": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(422)
			fmt.Fprintf(w, `{"title":%q}`, repeat(r))
		},
		"an error": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":-32603,"message":%q,"data":[{"reason":"X","metadata":{"sent":%q}}]}}`, repeat(r), repeat(r))
		},
		"an error with 400": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":%q,"details":[%q]}}`, long+repeat(r), repeat(r))
		},
		"an error event": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"result\":%s}\n\nevent: error\ndata: %s\n\n", taskWorking, long+repeat(r))
		},
		"a page":         func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "<html><p>%s</html>", long+repeat(r)) },
		"text":           func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, long+repeat(r)) },
		"half an answer": func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, `{"result":{"task":{"id":"%s`, repeat(r)) },
		"malformed events": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {%s\n\n", long+repeat(r))
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/x/"+url.PathEscape(repeat(r))+"?"+r.URL.RawQuery)
			w.WriteHeader(302)
		},
		"a redirect nowhere": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://[::1/"+isolationSecret)
			w.WriteHeader(307)
		},
		"a cut connection": func(http.ResponseWriter, *http.Request) { hangUp() },
		"silence":          func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	for name, fault := range faults {
		for _, onCard := range []bool{false, true} {
			if name == "silence" && onCard {
				continue // takes the card's whole time, and has no words
			}
			t.Run(fmt.Sprintf("%s, on the card: %v", name, onCard), func(t *testing.T) {
				t.Parallel()
				for kind := range isolationKinds(newIsolationWorld(t, false)) {
					if kind == "a header of no telling name" {
						continue // cannot be told from other words
					}
					if wordless := name == "silence" || name == "a cut connection"; wordless && kind != "key in query" && kind != "bearer" {
						continue // only the URL could be told, after repetitions that take their time
					}
					w := newIsolationWorld(t, false)
					cfg := isolationKinds(w)[kind]
					var log bytes.Buffer
					cfg.URL, cfg.AuthOnCard = w.home.URL, AuthOnCardAlways
					cfg.Timeouts = Timeouts{Header: 300 * time.Millisecond, Unary: 100 * time.Millisecond, StreamIdle: 100 * time.Millisecond}
					cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
					w.answer("home /token", tokenAnswer)
					w.answer("home "+current, serveCard(w.home.URL+"/a2a"))
					w.answer("home /a2a", fault)
					if onCard {
						w.answer("home "+current, fault)
					}
					a := newAgent(t, cfg)
					errs := isolationSend(t, a)
					_, err := a.FetchCard(t.Context())
					a.Close() // nothing is logged any more
					wantNoSecret(t, kind, a, append(errs, err), log.String())
					if name == "silence" || name == "a cut connection" {
						continue
					}
					w.answer("home /token", fault) // the token endpoint does it too
					fresh := newAgent(t, isolationKinds(w)[kind].at(w.home.URL))
					wantNoSecret(t, kind, fresh, isolationSend(t, fresh), "")
				}
			})
		}
	}
	// Connections that cannot be made: the URL with the key must not be told.
	for kind := range isolationKinds(newIsolationWorld(t, false)) {
		w := newIsolationWorld(t, false)
		cfg := isolationKinds(w)[kind].at(deadAddress(t) + "/x?key=" + isolationSecret)
		cfg.AuthOnCard = AuthOnCardAlways
		a := newAgent(t, cfg)
		_, err := a.FetchCard(t.Context())
		wantNoSecret(t, kind+", dead", a, append(isolationSend(t, a), err), "")
		client, err := NewClient(ClientOptions{
			Alias: "alpha", Interfaces: []Interface{{URL: cfg.URL, Version: V10, Binding: JSONRPC}, {URL: cfg.URL, Version: V03, Binding: REST}}, FallbackURL: cfg.URL, Auth: cfg.Authorizer, Headers: cfg.Headers,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = client.Send(ctx, hello())
		cancel()
		wantNoSecret(t, kind+", dead", a, []error{err}, "")
	}
}

// at is the configuration for an agent at that address.
func (cfg AgentConfig) at(address string) AgentConfig {
	cfg.URL = address
	return cfg
}

func wantNoSecret(t *testing.T, what string, a *Agent, errs []error, log string) {
	t.Helper()
	told := []string{log, fmt.Sprintf("%+v", a.Status()), fmt.Sprintf("%+v", a.Attempts())}
	for _, err := range errs {
		told = append(told, chainText(err)...)
	}
	for _, text := range told {
		if holdsSecret(text) {
			t.Errorf("%s: told %q", what, text)
		}
		for i := len(isolationSecret) - 1; i >= 12; i-- { // nor the greater part of it, cut
			if strings.Contains(text, isolationSecret[:i]) {
				t.Errorf("%s: told %d characters of it in %q", what, i, text)
				break
			}
		}
	}
}

// chainText is the text of an error and of all that it wraps.
func chainText(err error) []string {
	if err == nil {
		return nil
	}
	texts := []string{err.Error(), fmt.Sprintf("%+v", err)}
	var coded *Error
	if errors.As(err, &coded) {
		texts = append(texts, coded.Message, coded.Reason, coded.Challenge, string(coded.Data))
	}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		texts = append(texts, chainText(u.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, inner := range u.Unwrap() {
			texts = append(texts, chainText(inner)...)
		}
	}
	return texts
}
