package a2a

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"a2agate/a2a/credential"
)

// TestNoCredentialReachesAnotherOrigin has a second origin that records what
// it sees: as the card's URL, behind a redirect, as a token endpoint, as an
// advertised interface (checklist 62). The first origin must see the
// credential, so that the test cannot pass by sending none at all.
func TestNoCredentialReachesAnotherOrigin(t *testing.T) {
	const value = "s3cr3t-t0ken"
	secret := credential.NewSecret(value)
	kinds := map[string]credential.Spec{
		"bearer": {Type: "bearer", Token: secret},
		"basic":  {Type: "basic", Username: "u", Password: secret},
		"header": {Type: "apikey", Key: secret, Header: "X-Agent-Key"},
		"query":  {Type: "apikey", Key: secret, In: "query", Name: "key"},
		"cookie": {Type: "apikey", Key: secret, In: "cookie", Name: "sid"},
		"oauth2": {Type: "oauth2", ClientID: "id", ClientSecret: secret},
	}
	holds := func(r *http.Request) bool {
		text := r.URL.String() + fmt.Sprint(r.Header) + fmt.Sprint(r.Header["Authorization"])
		_, password, _ := r.BasicAuth()
		return strings.Contains(text, value) || password != "" || r.Header.Get("Authorization") != "" || r.Header.Get("X-Static") != ""
	}
	for name, spec := range kinds {
		t.Run(name, func(t *testing.T) {
			home, other := newCardServer(t), newCardServer(t)
			other.on("/token", serve(200, "application/json", `{"access_token":"stolen"}`))
			other.on("/card", serveCard(other.URL+"/a2a"))
			other.on("/back", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, home.URL+"/chosen-by-other", 302) })
			oauth := fmt.Sprintf(`"securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":%q,"scopes":{}}}}},"security":[{"o":[]}]`, other.URL+"/token")
			guarded := func(body string) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if !holds(r) && name != "oauth2" {
						w.WriteHeader(401)
						return
					}
					serve(200, "application/json", body)(w, r)
				}
			}
			homeCard := fmt.Sprintf(`{"name":"x","supportedInterfaces":[{"url":%q},{"url":%q}],%s}`, other.URL+"/a2a", home.URL+"/a2a", oauth)
			home.on("/redirect", http.RedirectHandler(other.URL+"/card", 307).ServeHTTP)
			home.on("/bounce", http.RedirectHandler(other.URL+"/back", 307).ServeHTTP)
			home.on("/chosen-by-other", serve(401, "", ""))
			home.on("/card", guarded(homeCard))
			otherHost := strings.TrimPrefix(other.URL, "http://")
			headers := http.Header{"X-Static": {value}}
			for _, cfg := range []AgentConfig{
				{URL: home.URL, CardPath: other.URL + "/card"},
				{CardURL: home.URL + "/redirect"},
				{CardURL: home.URL + "/bounce"},
				{CardURL: home.URL + "/card"},
				{CardURL: home.URL + "/card", AllowHosts: []string{"127.0.0.1:1"}, URLPolicy: PolicyCard},
				{CardURL: home.URL + "/card", AllowHosts: []string{otherHost}, AuthOnCard: AuthOnCardAlways, Binding: JSONRPC},
			} {
				if spec.Type == "oauth2" && len(cfg.AllowHosts) > 0 && cfg.AllowHosts[0] == otherHost {
					continue // an allowed host may be a token endpoint
				}
				cfg.Authorizer, cfg.Headers = auth(t, spec), headers
				a := newAgent(t, cfg)
				_, _ = a.FetchCard(t.Context())
				if client, err := a.Client(t.Context()); err == nil {
					_, _ = client.Send(t.Context(), SendRequest{Message: Message{MessageID: "m", Role: RoleUser, Parts: []Part{{Kind: PartText, Text: "hi"}}}})
				}
			}
			reached := 0
			for _, r := range other.requests() {
				reached++
				if holds(r) || r.URL.Path == "/token" || r.Header.Get("Referer") != "" {
					t.Errorf("the other origin got %s %s %v", r.Method, r.URL, r.Header)
				}
			}
			if reached < 3 {
				t.Errorf("the other origin was reached %d times: the test proves nothing", reached)
			}
			sent := false
			for _, r := range home.requests() {
				sent = sent || holds(r)
				if r.URL.Path == "/chosen-by-other" && holds(r) {
					t.Errorf("the credential went to a path that the other origin chose")
				}
			}
			if !sent {
				t.Error("the agent's own origin got no credential")
			}
		})
	}
}

// brokenAuth cannot get its credential.
type brokenAuth struct{ calls atomic.Int32 }

func (b *brokenAuth) Authorize(*http.Request) error {
	b.calls.Add(1)
	return errors.New("the Azure CLI is not logged in: run az login")
}

func (*brokenAuth) Refresh(context.Context) bool { return false }

func TestCredentialThatCannotBeHad(t *testing.T) {
	s := newCardServer(t)
	s.on("/card", serve(401, "", ""))
	a := newAgent(t, AgentConfig{CardURL: s.URL + "/card", Authorizer: &brokenAuth{}})
	_, err := a.FetchCard(t.Context())
	wantState(t, a, AgentAuthRequired, "the Azure CLI is not logged in: run az login")
	var coded *Error
	if !errors.As(err, &coded) || coded.Cause != CauseAuth {
		t.Errorf("error is %v", err)
	}
}

// renewable is a credential that is good after one renewal.
type renewable struct{ renewed atomic.Int32 }

func (c *renewable) Authorize(req *http.Request) error {
	req.Header.Set("Authorization", fmt.Sprintf("Bearer T%d", c.renewed.Load()))
	return nil
}

func (c *renewable) Refresh(context.Context) bool {
	c.renewed.Add(1)
	return true
}

func TestCardCredentialIsRenewedOnce(t *testing.T) {
	s := newCardServer(t)
	s.on("/card", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer T1" {
			w.WriteHeader(401)
			return
		}
		serveCard(s.URL+"/")(w, r)
	})
	if _, err := newAgent(t, AgentConfig{CardURL: s.URL + "/card", Authorizer: &renewable{}}).FetchCard(t.Context()); err != nil {
		t.Error(err)
	}
	s.on("/card", serve(401, "", ""))
	c := &renewable{}
	_, _ = newAgent(t, AgentConfig{CardURL: s.URL + "/card", Authorizer: c}).FetchCard(t.Context())
	if n := c.renewed.Load(); n != 1 {
		t.Errorf("renewed %d times", n)
	}
}

func TestAuthOnCard(t *testing.T) {
	s := newCardServer(t)
	s.on("/card", serveCard(s.URL+"/"))
	s.on("/locked", serve(401, "", ""))
	for _, tt := range []struct {
		path string
		mode AuthOnCard
		want []string
	}{
		{"/card", "", []string{""}},
		{"/card", AuthOnCardAlways, []string{"Bearer k"}},
		{"/locked", AuthOnCardNever, []string{""}},
		{"/locked", AuthOnCardAuto, []string{"", "Bearer k"}},
		{"/locked", AuthOnCardAlways, []string{"Bearer k"}},
	} {
		s.take()
		a := newAgent(t, AgentConfig{CardURL: s.URL + tt.path, Authorizer: bearer(t, "k"), AuthOnCard: tt.mode})
		_, _ = a.FetchCard(t.Context())
		var sent []string
		for _, r := range s.requests() {
			sent = append(sent, r.Header.Get("Authorization"))
		}
		if !slices.Equal(sent, tt.want) {
			t.Errorf("%s %s: sent %q, want %q", tt.path, tt.mode, sent, tt.want)
		}
	}
}

// TestOriginBound: the wrapper alone keeps a credential home, whoever calls it.
func TestOriginBound(t *testing.T) {
	home, _ := url.Parse("https://agent.test/x")
	bound := originBound{bearer(t, "k"), originOf(home)}
	for target, want := range map[string]string{
		"https://agent.test/": "Bearer k", "https://AGENT.test:443/y?z": "Bearer k", "https://agent.test./": "Bearer k",
		"http://agent.test/": "", "https://agent.test:8443/": "", "https://agent.test.evil/": "", "https://evil.test/": "", "https://agent.test@evil.test/": "",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := bound.Authorize(req); err != nil || req.Header.Get("Authorization") != want {
			t.Errorf("%s got %q (%v), want %q", target, req.Header.Get("Authorization"), err, want)
		}
	}
}
