package auth

import (
	"crypto/sha256"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStatic(t testing.TB) *Authenticator {
	t.Helper()
	a, err := New(Options{Tokens: []Token{
		{Name: "ci", SHA256: sha256.Sum256([]byte("ci-token")), Agents: []string{"billing"}, Profile: "team"},
		{Name: "ops", SHA256: sha256.Sum256([]byte("ops-token"))},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestStaticTokens(t *testing.T) {
	t.Parallel()
	a := newStatic(t)
	for token, want := range map[string]Caller{
		"ci-token":  {Principal: "ci", Agents: []string{"billing"}, Profile: "team"},
		"ops-token": {Principal: "ops"},
	} {
		c, no := a.Authenticate(request("/mcp", token))
		if no != nil {
			t.Errorf("%s is refused: %+v", token, no)
		}
		c.Revoked = nil // see TestSucceed
		if d := cmp.Diff(want, c); d != "" {
			t.Error(d)
		}
	}
}

// TestHeader goes through what can be wrong with the header (RFC 6750, 2 and
// 3.1). Without OAuth the challenge names no metadata.
func TestHeader(t *testing.T) {
	t.Parallel()
	const none, invalid, bad = "Bearer", `Bearer error="invalid_token"`, `Bearer error="invalid_request"`
	for _, tt := range []struct {
		name      string
		headers   []string
		query     string
		status    int
		challenge string
	}{
		{name: "good", headers: []string{"Bearer ci-token"}},
		{name: "scheme in small letters", headers: []string{"bearer ci-token"}},
		{name: "blanks around", headers: []string{"  Bearer   ci-token  "}},
		{name: "another query", headers: []string{"Bearer ci-token"}, query: "?a=access_token"},
		{name: "none", status: 401, challenge: none},
		{name: "another scheme", headers: []string{"Basic Y2k6dG9rZW4="}, status: 401, challenge: none},
		{name: "empty", headers: []string{""}, status: 401, challenge: none},
		{name: "wrong token", headers: []string{"Bearer ci-tokem"}, status: 401, challenge: invalid},
		{name: "beginning of a token", headers: []string{"Bearer ci-toke"}, status: 401, challenge: invalid},
		{name: "the name as a token", headers: []string{"Bearer ci"}, status: 401, challenge: invalid},
		{name: "no token", headers: []string{"Bearer"}, status: 400, challenge: bad},
		{name: "blank token", headers: []string{"Bearer  "}, status: 400, challenge: bad},
		{name: "two words", headers: []string{"Bearer ci-token ci-token"}, status: 400, challenge: bad},
		{name: "comma", headers: []string{"Bearer ci-token,ops-token"}, status: 400, challenge: bad},
		{name: "only padding", headers: []string{"Bearer =="}, status: 400, challenge: bad},
		{name: "control character", headers: []string{"Bearer ci-\x00token"}, status: 400, challenge: bad},
		{name: "two headers", headers: []string{"Bearer ci-token", "Bearer ci-token"}, status: 400, challenge: bad},
		{name: "in the query", query: "?access_token=ci-token", status: 401, challenge: none},
		{name: "in the query, escaped", query: "?access%5Ftoken=ci-token", status: 401, challenge: none},
		{name: "in both", headers: []string{"Bearer ci-token"}, query: "?access_token=ci-token", status: 400, challenge: bad},
	} {
		r := request("/mcp"+tt.query, "")
		if tt.headers != nil {
			r.Header["Authorization"] = tt.headers
		}
		c, no := newStatic(t).Authenticate(r)
		if tt.status == 0 {
			if no != nil || c.Principal != "ci" {
				t.Errorf("%s: %q %+v, want ci", tt.name, c.Principal, no)
			}
			continue
		}
		if no == nil {
			t.Errorf("%s: let in as %q", tt.name, c.Principal)
			continue
		}
		if no.Status != tt.status || no.Challenge != tt.challenge || no.Reason == "" {
			t.Errorf("%s: %d %q (%s), want %d %q", tt.name, no.Status, no.Challenge, no.Reason, tt.status, tt.challenge)
		}
		if strings.Contains(no.Reason+no.Challenge, "ci-tok") {
			t.Errorf("%s: the answer repeats the token: %s %s", tt.name, no.Reason, no.Challenge)
		}
	}
}

// TestTokensAndOAuth: both together; a static token never reaches the issuer.
func TestTokensAndOAuth(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newOAuth(t, s, func(o *Options) {
		o.Tokens = []Token{{Name: "ci", SHA256: sha256.Sum256([]byte("ci-token"))}}
	})
	if c, no := a.Authenticate(request("/mcp", "ci-token")); no != nil || c.Principal != "ci" {
		t.Errorf("got %q %+v", c.Principal, no)
	}
	if n := s.count(s.metadata); n != 0 {
		t.Errorf("a static token made the gateway ask the issuer %d times", n)
	}
	if _, no := a.Authenticate(request("/mcp", s.good())); no != nil {
		t.Errorf("refused: %+v", no)
	}
	_, no := a.Authenticate(request("/mcp", ""))
	if want := "Bearer " + metaURL + `, scope="agents:call"`; no == nil || no.Status != http.StatusUnauthorized || no.Challenge != want {
		t.Errorf("got %+v, want the challenge %s", no, want)
	}
}

// TestBaseFromRequest: without a public address the one that was called is named.
func TestBaseFromRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newOAuth(t, s, func(o *Options) { o.BaseURL = ""; o.OAuth.Scopes = nil })
	r := request("/metrics", "")
	r.TLS, r.Host = nil, "LOCALHOST:8931"
	_, no := a.Authenticate(r)
	want := `Bearer resource_metadata="http://localhost:8931/.well-known/oauth-protected-resource/mcp"`
	if no == nil || no.Challenge != want {
		t.Errorf("got %+v, want the challenge %s", no, want)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"neither tokens nor an issuer": {},
		"needs a name and a digest":    {Tokens: []Token{{Name: "a"}}},
		"not an http(s) URL":           {OAuth: OAuth{Issuer: "login.example.com"}},
		"is not a scope":               {OAuth: OAuth{Issuer: "https://x.example.com", Scopes: []string{"a b"}}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusalsLeaveNothing: refused requests leave nothing behind, with
// whatever they come.
func TestRefusalsLeaveNothing(t *testing.T) {
	s := newServer(t)
	a := newOAuth(t, s, func(o *Options) {
		o.KeyPause = time.Hour
		o.Tokens = []Token{{Name: "ci", SHA256: sha256.Sum256([]byte("ci-token"))}}
	})
	forged := s.token("kx", testKey(t, 1), nil)
	refuse := func(n int) {
		for i := range n {
			token := []string{"", "wrong-" + strings.Repeat("x", i%50), forged, "a.b.c"}[i%4]
			if _, no := a.Authenticate(request("/mcp", token)); no == nil {
				t.Fatal("let in")
			}
		}
	}
	refuse(200) // the issuer is known, the pools are filled
	before := retained()
	refuse(4000)
	if grown := int64(retained()) - int64(before); grown > 256<<10 {
		t.Errorf("4000 refused requests left %d bytes behind", grown)
	}
}

func retained() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkStaticRefused(b *testing.B) {
	a := newStatic(b)
	r := request("/mcp", "wrong-token")
	b.ReportAllocs()
	for b.Loop() {
		if _, no := a.Authenticate(r); no == nil {
			b.Fatal("let in")
		}
	}
}

// FuzzHeader: no header makes Authenticate panic or lets anybody in who does
// not have a token, and no answer repeats what was sent.
func FuzzHeader(f *testing.F) {
	for _, v := range []string{"", "Bearer", "Bearer x", "Bearer a.b.c", "Basic eDp5", "bearer  ops-token", "Bearer eyJhbGciOiJub25lIn0.e30."} {
		f.Add(v)
	}
	a, err := New(Options{
		Tokens: []Token{{Name: "ops", SHA256: sha256.Sum256([]byte("ops-token"))}},
		OAuth:  OAuth{Issuer: "http://127.0.0.1:1"}, BaseURL: "https://gw.example.com",
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := request("/mcp", "")
		r.Header["Authorization"] = []string{header}
		c, no := a.Authenticate(r)
		switch {
		case no == nil && (c.Principal != "ops" || !strings.Contains(header, "ops-token")):
			t.Errorf("%q let in as %q", header, c.Principal)
		case no != nil && no.Status != 400 && no.Status != 401 && no.Status != 503:
			t.Errorf("%q: status %d", header, no.Status)
		case no != nil && strings.ContainsAny(no.Challenge+no.Reason, "\r\n"):
			t.Errorf("%q: the answer has a line break", header)
		}
	})
}
