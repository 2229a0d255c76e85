package auth

import (
	"crypto/sha256"
	"slices"
	"testing"
)

// TestSucceed: who is let in no more, or for something else, learns of it, at
// once and over several successors; everybody else hears nothing, and the
// issuer is not asked again for what is known.
func TestSucceed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	token := func(name string, agents ...string) Token {
		return Token{Name: name, SHA256: sha256.Sum256([]byte(name + "-token")), Agents: agents}
	}
	with := func(scope string, tokens ...Token) *Authenticator {
		return newOAuth(t, s, func(o *Options) { o.Tokens, o.OAuth.Scopes = tokens, []string{scope} })
	}
	first := with("agents:call", token("ann"), token("bob"), token("carl", "one"))
	callers := map[string]Caller{}
	for name, secret := range map[string]string{"ann": "ann-token", "bob": "bob-token", "carl": "carl-token", "oauth": s.good()} {
		c, no := first.Authenticate(request("/mcp", secret))
		if no != nil || c.Revoked == nil {
			t.Fatalf("%s: %+v %+v", name, c, no)
		}
		callers[name] = c
	}
	revoked := func(what string, want ...string) {
		t.Helper()
		var got []string
		for name, c := range callers {
			select {
			case <-c.Revoked:
				got = append(got, name)
			default:
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: revoked %v, want %v", what, got, want)
		}
	}
	second := with("agents:call", token("carl", "one"), token("bob"), token("ann"))
	second.Succeed(first)
	revoked("the same in another order")
	third := with("agents:call", token("bob"), token("carl", "one", "two"), token("dora"))
	third.Succeed(second)
	revoked("ann is gone, carl sees more", "ann", "carl")
	if _, no := third.Authenticate(request("/mcp", s.good())); no != nil {
		t.Errorf("%+v", no)
	}
	if m, k := s.count(s.metadata), s.count("/keys"); m != 1 || k != 1 {
		t.Errorf("%d metadata and %d key requests, want one each", m, k)
	}
	fourth := with("agents:admin", token("bob"))
	fourth.Succeed(third)
	revoked("another scope", "ann", "carl", "oauth")
	fifth := with("agents:admin")
	fifth.Succeed(fourth)
	revoked("no tokens", "ann", "bob", "carl", "oauth")
}
