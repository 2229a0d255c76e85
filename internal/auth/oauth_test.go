package auth

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const metaURL = `resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/mcp"`

func newOAuth(t *testing.T, s *server, edit func(*Options)) *Authenticator {
	t.Helper()
	o := Options{
		OAuth:   OAuth{Issuer: s.url, Scopes: []string{"agents:call|agents:admin"}},
		BaseURL: "https://gw.example.com", KeyPause: time.Nanosecond,
	}
	if edit != nil {
		edit(&o)
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestGoodToken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newOAuth(t, s, nil)
	if n := s.count(s.metadata); n != 0 {
		t.Fatalf("the issuer was asked %d times before a token came", n)
	}
	for range 3 {
		c, no := a.Authenticate(request("/mcp", s.good()))
		if no != nil {
			t.Fatalf("refused: %+v", no)
		}
		if want := s.url + "|ann"; c.Principal != want {
			t.Errorf("principal %q, want %q", c.Principal, want)
		}
		if left := time.Until(c.Expires); left < 59*time.Minute || left > time.Hour {
			t.Errorf("expires in %v, want about an hour", left)
		}
	}
	if m, k := s.count(s.metadata), s.count("/keys"); m != 1 || k != 1 {
		t.Errorf("three tokens cost %d metadata and %d key requests, want one each", m, k)
	}
}

func TestTokenVariants(t *testing.T) {
	t.Parallel()
	type edit = func(h, c map[string]any)
	const unauthorized, forbidden = http.StatusUnauthorized, http.StatusForbidden
	invalid := "Bearer " + metaURL + `, scope="agents:call", error="invalid_token"`
	lacking := `Bearer error="insufficient_scope", scope="agents:call", ` + metaURL
	for _, tt := range []struct {
		name      string
		edit      edit
		path      string
		status    int
		challenge string
		reason    string // part of it
	}{
		{name: "audience in a list", edit: func(_, c map[string]any) { c["aud"] = []string{"x", "https://gw.example.com/mcp"} }},
		{name: "audience with a slash", edit: func(_, c map[string]any) { c["aud"] = "https://gw.example.com/mcp/" }},
		{name: "token for all used at a profile", path: "/mcp/p/team"},
		{name: "token for a profile", path: "/mcp/p/team", edit: func(_, c map[string]any) { c["aud"] = "https://gw.example.com/mcp/p/team" }},
		{name: "scopes as a list", edit: func(_, c map[string]any) { delete(c, "scope"); c["scp"] = []string{"agents:call"} }},
		{name: "scopes as scp text", edit: func(_, c map[string]any) { delete(c, "scope"); c["scp"] = "a agents:call" }},
		{name: "broader scope", edit: func(_, c map[string]any) { c["scope"] = "agents:admin" }},
		{name: "extra claims", edit: func(_, c map[string]any) { c["roles"] = []int{1} }},

		{name: "wrong audience", edit: func(_, c map[string]any) { c["aud"] = "https://other.example.com/mcp" },
			status: unauthorized, challenge: invalid, reason: "another audience"},
		{name: "audience of the host only", edit: func(_, c map[string]any) { c["aud"] = "https://gw.example.com" },
			status: unauthorized, challenge: invalid, reason: "another audience"},
		{name: "no audience", edit: func(_, c map[string]any) { delete(c, "aud") },
			status: unauthorized, challenge: invalid, reason: "another audience"},
		{name: "token of one profile at another", path: "/mcp/p/ops", edit: func(_, c map[string]any) { c["aud"] = "https://gw.example.com/mcp/p/team" },
			status: unauthorized, challenge: strings.ReplaceAll(invalid, "/mcp\"", "/mcp/p/ops\""), reason: "another audience"},
		{name: "token of a profile at the whole", edit: func(_, c map[string]any) { c["aud"] = "https://gw.example.com/mcp/p/team" },
			status: unauthorized, challenge: invalid, reason: "another audience"},
		{name: "wrong issuer", edit: func(_, c map[string]any) { c["iss"] = "https://evil.example.com" },
			status: unauthorized, challenge: invalid, reason: "another issuer"},
		{name: "issuer with a slash more", edit: func(_, c map[string]any) { c["iss"] = c["iss"].(string) + "/" },
			status: unauthorized, challenge: invalid, reason: "another issuer"},
		{name: "issuer that is no text", edit: func(_, c map[string]any) { c["iss"] = 7 },
			status: unauthorized, challenge: invalid, reason: "another issuer"},
		{name: "expired", edit: func(_, c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() },
			status: unauthorized, challenge: invalid, reason: "expired"},
		{name: "no expiry", edit: func(_, c map[string]any) { delete(c, "exp") },
			status: unauthorized, challenge: invalid, reason: "expired"},
		{name: "not yet valid", edit: func(_, c map[string]any) { c["nbf"] = time.Now().Add(time.Hour).Unix() },
			status: unauthorized, challenge: invalid, reason: "not good"},
		{name: "alg none", edit: func(h, _ map[string]any) { h["alg"] = "none" },
			status: unauthorized, challenge: invalid, reason: "signed"},
		{name: "alg HS256", edit: func(h, _ map[string]any) { h["alg"] = "HS256" },
			status: unauthorized, challenge: invalid, reason: "algorithm"},
		{name: "unknown kid", edit: func(h, _ map[string]any) { h["kid"] = "k9" },
			status: unauthorized, challenge: invalid, reason: "signature"},
		{name: "no subject", edit: func(_, c map[string]any) { delete(c, "sub") },
			status: unauthorized, challenge: invalid, reason: "subject"},
		{name: "missing scope", edit: func(_, c map[string]any) { c["scope"] = "other" },
			status: forbidden, challenge: lacking, reason: "agents:call"},
		{name: "no scopes", edit: func(_, c map[string]any) { delete(c, "scope") },
			status: forbidden, challenge: lacking, reason: "agents:call"},
		{name: "scope that only begins alike", edit: func(_, c map[string]any) { c["scope"] = "agents:call2 agents" },
			status: forbidden, challenge: lacking, reason: "agents:call"},
		{name: "scope of a strange type", edit: func(_, c map[string]any) { c["scope"] = 5 },
			status: forbidden, challenge: lacking, reason: "agents:call"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			a := newOAuth(t, s, nil)
			path := tt.path
			if path == "" {
				path = "/mcp"
			}
			token := s.token("k0", testKey(t, 0), tt.edit)
			c, no := a.Authenticate(request(path, token))
			if tt.status == 0 {
				if no != nil {
					t.Fatalf("refused: %+v", no)
				}
				return
			}
			if no == nil {
				t.Fatalf("let in as %q", c.Principal)
			}
			if no.Status != tt.status || no.Challenge != tt.challenge || !strings.Contains(no.Reason, tt.reason) {
				t.Errorf("got %d %s (%s)\nwant %d %s (…%s…)", no.Status, no.Challenge, no.Reason, tt.status, tt.challenge, tt.reason)
			}
			if c.Principal != "" {
				t.Errorf("a refused caller has the principal %q", c.Principal)
			}
		})
	}
}

// TestForgedSignatures tries what attackers try with tokens whose claims are
// all as they should be.
func TestForgedSignatures(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newOAuth(t, s, nil)
	good := s.good()
	head, rest, _ := strings.Cut(good, ".")
	body, sig, _ := strings.Cut(rest, ".")
	pub, err := x509.MarshalPKIXPublicKey(&testKey(t, 0).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	hsHead := b64([]byte(`{"alg":"HS256","kid":"k0"}`))
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}))
	mac.Write([]byte(hsHead + "." + body))
	for name, token := range map[string]string{
		"another key under a known kid":    s.token("k0", testKey(t, 1), nil),
		"another key without a kid":        s.token("", testKey(t, 1), nil),
		"public key as an HMAC secret":     hsHead + "." + body + "." + b64(mac.Sum(nil)),
		"signature of another token":       head + "." + b64([]byte(`{"iss":"`+s.url+`","sub":"bob"}`)) + "." + sig,
		"signature cut":                    head + "." + body + "." + sig[:20],
		"no signature":                     head + "." + body + ".",
		"alg none, capitals":               b64([]byte(`{"alg":"None"}`)) + "." + body + "." + sig,
		"five parts":                       good + ".a.b",
		"not base64":                       head + "." + body + "~" + "." + sig,
		"an opaque token":                  "c2VjcmV0LW9wYXF1ZS10b2tlbg",
		"two dots":                         "a.b.c",
		"longer than any":                  strings.Repeat("a", maxToken+1),
		"claims that are no object":        head + "." + b64([]byte(`[1]`)) + "." + sig,
		"a critical header we do not know": s.token("k0", testKey(t, 0), func(h, _ map[string]any) { h["crit"] = []string{"x"}; h["x"] = 1 }),
		"its own key in the header (jwk)": s.token("kx", testKey(t, 1), func(h, _ map[string]any) {
			h["jwk"] = map[string]any{"kty": "RSA", "n": b64(testKey(t, 1).N.Bytes()), "e": "AQAB"}
		}),
		"the address of its own keys (jku)": s.token("kx", testKey(t, 1), func(h, _ map[string]any) { h["jku"] = "http://127.0.0.1:1/keys" }),
	} {
		c, no := a.Authenticate(request("/mcp", token))
		if no == nil {
			t.Errorf("%s: let in as %q", name, c.Principal)
			continue
		}
		if no.Status != http.StatusUnauthorized || !strings.Contains(no.Challenge, `error="invalid_token"`) {
			t.Errorf("%s: %d %s, want 401 invalid_token", name, no.Status, no.Challenge)
		}
	}
	if _, no := a.Authenticate(request("/mcp", good)); no != nil {
		t.Errorf("the good token is refused after all that: %+v", no)
	}
}

// TestRotation: a token under a new kid is good as soon as the key is there,
// and one under a key that was taken away no longer is.
func TestRotation(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newOAuth(t, s, nil)
	if _, no := a.Authenticate(request("/mcp", s.good())); no != nil {
		t.Fatalf("refused: %+v", no)
	}
	next := s.token("k1", testKey(t, 1), nil)
	if _, no := a.Authenticate(request("/mcp", next)); no == nil {
		t.Fatal("a token under an unpublished key is let in")
	}
	s.set(func() { s.keys = map[string]*rsa.PrivateKey{"k1": testKey(t, 1)} })
	if _, no := a.Authenticate(request("/mcp", next)); no != nil {
		t.Fatalf("refused after the rotation: %+v", no)
	}
	if _, no := a.Authenticate(request("/mcp", s.good())); no == nil {
		t.Error("a token under the withdrawn key is let in")
	}
}

// TestForgedTokensCostOneRequest: forged tokens make the gateway ask for keys
// once in a while, not once each, and those of another issuer not at all.
func TestForgedTokensCostOneRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newOAuth(t, s, func(o *Options) { o.KeyPause = time.Hour })
	strange := s.token("kx", testKey(t, 1), func(_, c map[string]any) { c["iss"] = "https://evil.example.com" })
	for range 50 {
		a.Authenticate(request("/mcp", strange))
	}
	if n := s.count(s.metadata) + s.count("/keys"); n != 0 {
		t.Errorf("tokens of another issuer caused %d requests", n)
	}
	forged := s.token("kx", testKey(t, 1), nil)
	for range 50 {
		if _, no := a.Authenticate(request("/mcp", forged)); no == nil {
			t.Fatal("let in")
		}
	}
	if n := s.count("/keys"); n != 1 {
		t.Errorf("50 forged tokens caused %d requests for keys, want 1", n)
	}
}

// TestIssuerDown: while the issuer cannot be reached a token is neither good
// nor bad, and the gateway tries again by itself.
func TestIssuerDown(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.down = true
	var log bytes.Buffer
	a := newOAuth(t, s, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	token := s.good()
	for range 20 {
		_, no := a.Authenticate(request("/mcp", token))
		if no == nil || no.Status != http.StatusServiceUnavailable || no.RetryAfter <= 0 || no.Challenge != "" {
			t.Fatalf("got %+v, want 503 with a time to try again", no)
		}
	}
	if n := s.count(s.metadata); n != 1 {
		t.Errorf("20 requests asked for the metadata %d times, want 1", n)
	}
	if text := log.String(); !strings.Contains(text, s.url) || strings.Contains(text, token[:40]) {
		t.Errorf("the log must name the issuer and nothing of the token:\n%s", text)
	}
	s.set(func() { s.down = false })
	forget(a)
	if _, no := a.Authenticate(request("/mcp", token)); no != nil {
		t.Errorf("refused although the issuer is back: %+v", no)
	}
}

// forget ends the pause after a failure.
func forget(a *Authenticator) {
	a.issuer.mu.Lock()
	defer a.issuer.mu.Unlock()
	a.issuer.retryAt = time.Time{}
}

// TestKeysDown: the metadata can be read, the keys cannot.
func TestKeysDown(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"no JSON": "<html>", "no key set": `{"a":1}`, "too large": `{"keys":["` + strings.Repeat("x", issuerBytes) + `"]}`} {
		s := newServer(t)
		s.jwks = body
		a := newOAuth(t, s, nil)
		if _, no := a.Authenticate(request("/mcp", s.good())); no == nil || no.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: got %+v, want 503", name, no)
		}
		s.set(func() { s.jwks = "" })
		forget(a)
		if _, no := a.Authenticate(request("/mcp", s.good())); no != nil {
			t.Errorf("%s: refused although the keys are back: %+v", name, no)
		}
	}
}

// TestMetadataPlaces: each place where an issuer's metadata may be is found.
func TestMetadataPlaces(t *testing.T) {
	t.Parallel()
	got, err := metadataPlaces("https://login.example.com/tenant/v2/")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"https://login.example.com/.well-known/oauth-authorization-server/tenant/v2",
		"https://login.example.com/.well-known/openid-configuration/tenant/v2",
		"https://login.example.com/tenant/v2/.well-known/openid-configuration",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	s := newServer(t)
	s.metadata = "/.well-known/openid-configuration"
	if _, no := newOAuth(t, s, nil).Authenticate(request("/mcp", s.good())); no != nil {
		t.Errorf("OpenID metadata alone is not found: %+v", no)
	}
}

// TestMetadataOfAnother: metadata that names another issuer is not believed
// (RFC 8414, 3.3).
func TestMetadataOfAnother(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.issuer = "https://evil.example.com"
	if _, no := newOAuth(t, s, nil).Authenticate(request("/mcp", s.good())); no == nil || no.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v, want 503", no)
	}
}

// TestConcurrentFirstTokens: many first tokens cause one look for the issuer,
// and a caller who leaves does not spoil it for the others.
func TestConcurrentFirstTokens(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newOAuth(t, s, nil)
	token := s.good()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	a.Authenticate(request("/mcp", token).WithContext(gone))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, no := a.Authenticate(request("/mcp", token)); no != nil {
				t.Errorf("refused: %+v", no)
			}
		})
	}
	wg.Wait()
	if n := s.count(s.metadata); n > 2 {
		t.Errorf("the metadata was read %d times", n)
	}
}

func TestExplicitAudience(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newOAuth(t, s, func(o *Options) { o.OAuth.Audience = "api://gateway" })
	named := s.token("k0", testKey(t, 0), func(_, c map[string]any) { c["aud"] = "api://gateway" })
	if _, no := a.Authenticate(request("/mcp/p/team", named)); no != nil {
		t.Errorf("refused: %+v", no)
	}
	if _, no := a.Authenticate(request("/mcp", s.good())); no == nil || no.Status != http.StatusUnauthorized {
		t.Errorf("a token for the address counts although another audience is configured: %+v", no)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	h := newOAuth(t, s, func(o *Options) { o.OAuth.Scopes = []string{"agents:call|agents:admin", "b"} }).Metadata()
	get := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "https://gw.example.com"+path, nil))
		return w
	}
	for path, resource := range map[string]string{
		"/.well-known/oauth-protected-resource":            "https://gw.example.com/mcp",
		"/.well-known/oauth-protected-resource/mcp":        "https://gw.example.com/mcp",
		"/.well-known/oauth-protected-resource/mcp/p/team": "https://gw.example.com/mcp/p/team",
	} {
		w := get(http.MethodGet, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
			continue
		}
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"resource": resource, "authorization_servers": []any{s.url}, "scopes_supported": []any{"agents:call", "b"},
			"bearer_methods_supported": []any{"header"}, "resource_name": "a2agate",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
	for _, path := range []string{
		"/.well-known/oauth-protected-resource/other", "/.well-known/oauth-protected-resource/mcp/p/", "/.well-known/oauth-protected-resourcex",
		"/.well-known/openid-configuration", `/.well-known/oauth-protected-resource/mcp/p/a"b`,
	} {
		if w := get(http.MethodGet, strings.ReplaceAll(path, `"`, "%22")); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, w.Code)
		}
	}
	if w := get(http.MethodPost, "/.well-known/oauth-protected-resource"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d, want 405", w.Code)
	}
	static, err := New(Options{Tokens: []Token{{Name: "ci", SHA256: sha256.Sum256([]byte("x"))}}})
	if err != nil {
		t.Fatal(err)
	}
	if static.Metadata() != nil {
		t.Error("without OAuth there is metadata")
	}
}
