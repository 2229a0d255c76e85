package auth

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is an authorization server in this process. It counts what is asked
// of it and can be made to fail.
type server struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	keys     map[string]*rsa.PrivateKey // by kid
	metadata string                     // its path
	asked    map[string]int             // by path
	down     bool
	issuer   string // what the metadata says; "" is the truth
	jwks     string // answered in place of the keys
}

var (
	keyOnce sync.Once
	keyPair [3]*rsa.PrivateKey
)

// testKey returns one of three keys, which are made once.
func testKey(t *testing.T, n int) *rsa.PrivateKey {
	t.Helper()
	keyOnce.Do(func() {
		for i := range keyPair {
			k, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				t.Error(err)
				return
			}
			keyPair[i] = k
		}
	})
	return keyPair[n]
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{
		t: t, keys: map[string]*rsa.PrivateKey{"k0": testKey(t, 0)}, asked: map[string]int{},
		metadata: "/.well-known/oauth-authorization-server",
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.URL.Path]++
	if r.Header.Get("Authorization") != "" {
		s.t.Error("the issuer got somebody's token")
	}
	switch {
	case s.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == s.metadata:
		name := s.issuer
		if name == "" {
			name = s.url
		}
		writeTestJSON(s.t, w, map[string]any{"issuer": name, "jwks_uri": s.url + "/keys"})
	case r.URL.Path == "/keys" && s.jwks != "":
		_, _ = w.Write([]byte(s.jwks))
	case r.URL.Path == "/keys":
		var list []any
		for kid, k := range s.keys {
			list = append(list, map[string]any{
				"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256",
				"n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes()),
			})
		}
		writeTestJSON(s.t, w, map[string]any{"keys": list})
	default:
		http.NotFound(w, r)
	}
}

// set changes the server under its lock.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

func writeTestJSON(t *testing.T, w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Error(err)
	}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token makes a token signed with a key; edit changes header and claims.
func (s *server) token(kid string, key *rsa.PrivateKey, edit func(header, claims map[string]any)) string {
	s.t.Helper()
	header := map[string]any{"alg": "RS256", "typ": "at+jwt", "kid": kid}
	claims := map[string]any{
		"iss": s.url, "sub": "ann", "aud": "https://gw.example.com/mcp", "scope": "agents:call other",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	if edit != nil {
		edit(header, claims)
	}
	h, err := json.Marshal(header)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		s.t.Fatal(err)
	}
	signed := b64(h) + "." + b64(c)
	if header["alg"] == "none" {
		return signed + "."
	}
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		s.t.Fatal(err)
	}
	return signed + "." + b64(sig)
}

// good is a token that is good in every way.
func (s *server) good() string { return s.token("k0", testKey(s.t, 0), nil) }

// request is a POST to path with a token.
func request(path, token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "https://gw.example.com"+path, strings.NewReader("{}"))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}
