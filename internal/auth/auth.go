// Package auth says who calls the gateway: the holder of one of the configured
// bearer tokens, or the subject of an access token that an authorization
// server has issued for this gateway (MCP 2026-07-28, authorization: the
// gateway is an OAuth resource server). It judges one HTTP request at a time,
// keeps nothing of a request, and never logs or passes on a token.
//
// The package imports nothing of this module; cmd fits it to the edge.
package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Token is one static bearer token; only its digest is known.
type Token struct {
	// Name is the principal.
	Name   string
	SHA256 [32]byte
	// Agents are the aliases that the token may use, nil for all.
	Agents []string
	// Profile is the one profile that the token sees, "" for any.
	Profile string
}

// OAuth is the authorization server whose access tokens count.
type OAuth struct {
	// Issuer is its issuer identifier, compared byte for byte (RFC 8414, 3.3).
	Issuer string
	// Audience is what a token's aud must name. "" means the address of the
	// endpoint that is called.
	Audience string
	// Scopes are what a token must have. An entry may list, after "|", broader
	// scopes that include the first one: "agents:call|agents:admin".
	Scopes []string
}

// Options is what an Authenticator is made of: Tokens, OAuth or both.
type Options struct {
	Tokens []Token
	OAuth  OAuth
	// BaseURL is the gateway's address as clients know it, without "/mcp" and
	// without a trailing slash. Where it is "", the Host of each request stands
	// in for it, which the edge must have checked before.
	BaseURL string
	// HTTP reaches the issuer; nil is a client of its own with a time limit.
	HTTP *http.Client
	// KeyPause is the least time between two requests for the issuer's keys,
	// so that forged tokens cannot make the gateway a nuisance (10 s).
	KeyPause time.Duration
	// Log is told of an issuer that cannot be reached; nil is silent.
	Log *slog.Logger
}

// Caller is who calls and what they may see.
type Caller struct {
	// Principal is the name of a static token, or issuer and subject joined
	// by "|".
	Principal string
	// Agents are the aliases that the caller may use, nil for all.
	Agents []string
	// Profile is the one profile of the caller, "" for any.
	Profile string
	// Expires is when the proof ends; zero is never.
	Expires time.Time
	// Revoked is closed when a successor of the Authenticator does not take the
	// proof, or not for the same; see Succeed.
	Revoked <-chan struct{}
}

// Refusal is the answer to a request without good proof of who sent it.
type Refusal struct {
	// Status is 400, 401, 403, or 503 while the issuer cannot be reached.
	Status int
	// Challenge is the WWW-Authenticate header (RFC 6750, 3; RFC 9728, 5.1),
	// "" for none.
	Challenge string
	// Reason is one line for the caller; it holds nothing of the token.
	Reason string
	// RetryAfter is for a 503.
	RetryAfter time.Duration
}

// Authenticator judges requests. Its methods may be called concurrently. It
// owns no goroutine and calls the issuer only when a token needs it.
type Authenticator struct {
	o      Options
	scopes []scope
	issuer *issuer // nil without OAuth
	// revoked has a channel for each token, and one for all of OAuth; they are
	// closed by the successor.
	revoked      []chan struct{}
	revokedOAuth chan struct{}
}

// New checks the options; all problems come in one error.
func New(o Options) (*Authenticator, error) {
	var problems []error
	if len(o.Tokens) == 0 && o.OAuth.Issuer == "" {
		problems = append(problems, errors.New("auth: neither tokens nor an issuer"))
	}
	for i, t := range o.Tokens {
		if t.Name == "" || t.SHA256 == ([32]byte{}) {
			problems = append(problems, fmt.Errorf("auth: tokens[%d] %q needs a name and a digest", i, t.Name))
		}
	}
	a := &Authenticator{o: o, revokedOAuth: make(chan struct{})}
	for range o.Tokens {
		a.revoked = append(a.revoked, make(chan struct{}))
	}
	var err error
	if a.scopes, err = parseScopes(o.OAuth.Scopes); err != nil {
		problems = append(problems, err)
	}
	if o.OAuth.Issuer != "" {
		if u, err := url.Parse(o.OAuth.Issuer); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			problems = append(problems, fmt.Errorf("auth: issuer %q is not an http(s) URL", o.OAuth.Issuer))
		} else {
			a.issuer = newIssuer(o)
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return a, nil
}

// Succeed makes a take the place of last, before it is used itself. Callers
// whose token a does not have just so, with the same name, agents and profile,
// are told by Caller.Revoked; so is everybody of an authorization server whose
// terms have changed. What has been learnt of the same issuer is kept. An
// Authenticator has at most one successor.
func (a *Authenticator) Succeed(last *Authenticator) {
	for i, old := range last.o.Tokens {
		if j := slices.IndexFunc(a.o.Tokens, old.equal); j >= 0 {
			a.revoked[j] = last.revoked[i]
			continue
		}
		close(last.revoked[i])
	}
	if a.issuer != nil && last.issuer != nil && a.o.OAuth.Issuer == last.o.OAuth.Issuer {
		a.issuer = last.issuer
	}
	if reflect.DeepEqual(a.o.OAuth, last.o.OAuth) && a.o.BaseURL == last.o.BaseURL {
		a.revokedOAuth = last.revokedOAuth
	} else {
		close(last.revokedOAuth)
	}
}

// equal compares all of a token; no agents and an empty list are not the same.
func (t Token) equal(other Token) bool { return reflect.DeepEqual(t, other) }

// Authenticate says who makes a request, by its Authorization header alone: a
// token anywhere else does not count (MCP 2026-07-28, authorization, token
// handling). Exactly one of the results is set.
func (a *Authenticator) Authenticate(r *http.Request) (Caller, *Refusal) {
	token, no := a.bearer(r)
	if no != nil {
		return Caller{}, no
	}
	if c, ok := a.static(token); ok {
		return c, nil
	}
	if a.issuer == nil {
		return Caller{}, a.invalid(r, "the token is not one of this gateway's")
	}
	return a.oauth(r, token)
}

// maxToken bounds a token; what is longer is none.
const maxToken = 16 << 10

// bearer takes the token out of the Authorization header.
func (a *Authenticator) bearer(r *http.Request) (string, *Refusal) {
	values := r.Header["Authorization"]
	inQuery := tokenInQuery(r.URL)
	switch {
	case len(values) == 0 && inQuery:
		return "", a.missing(r, "a token in the URL does not count: send it as Authorization: Bearer …")
	case len(values) == 0:
		return "", a.missing(r, "this gateway needs a token: send it as Authorization: Bearer …")
	case inQuery:
		return "", malformed("the token stands in the URL too: leave it out there")
	case len(values) > 1:
		return "", malformed("there is more than one Authorization header")
	}
	scheme, token, found := strings.Cut(strings.Trim(values[0], " \t"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", a.missing(r, "the Authorization header is not of the scheme Bearer")
	}
	token = strings.TrimLeft(token, " ")
	if !found || !isToken68(token) {
		return "", malformed("the Authorization header is not Bearer and one token")
	}
	if len(token) > maxToken {
		return "", a.invalid(r, "the token is longer than any that this gateway takes")
	}
	return token, nil
}

// tokenInQuery reports whether the URL carries a token (RFC 6750, 2.3). The
// common request has no query and costs nothing.
func tokenInQuery(u *url.URL) bool {
	return strings.Contains(u.RawQuery, "access_token") && u.Query().Has("access_token")
}

// isToken68 reports whether s is of the form that bearer tokens have
// (RFC 6750, 2.1).
func isToken68(s string) bool {
	body := strings.TrimRight(s, "=")
	if body == "" {
		return false
	}
	for i := range len(body) {
		c := body[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("-._~+/", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// static finds a configured token. It always compares with all of them, each
// in constant time: neither the position nor a common beginning shows.
func (a *Authenticator) static(token string) (Caller, bool) {
	if len(a.o.Tokens) == 0 {
		return Caller{}, false
	}
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range a.o.Tokens {
		same := subtle.ConstantTimeCompare(sum[:], a.o.Tokens[i].SHA256[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return Caller{}, false
	}
	t := &a.o.Tokens[found]
	return Caller{Principal: t.Name, Agents: t.Agents, Profile: t.Profile, Revoked: a.revoked[found]}, true
}

// verifyTime bounds the check of one token, the issuer's answers included.
const verifyTime = 10 * time.Second

// oauth judges an access token.
func (a *Authenticator) oauth(r *http.Request, token string) (Caller, *Refusal) {
	ctx, cancel := context.WithTimeout(r.Context(), verifyTime)
	defer cancel()
	claims, err := a.issuer.verify(ctx, token)
	var bad badToken
	switch {
	case errors.As(err, &bad):
		return Caller{}, a.invalid(r, string(bad))
	case err != nil:
		return Caller{}, &Refusal{
			Status: http.StatusServiceUnavailable, RetryAfter: issuerPause,
			Reason: "the token cannot be checked: the authorization server does not answer at the moment",
		}
	case !a.forUs(r, claims.audience):
		return Caller{}, a.invalid(r, "the token was issued for another audience")
	case claims.subject == "":
		return Caller{}, a.invalid(r, "the token names no subject (sub)")
	}
	if !granted(a.scopes, claims.scopes) {
		return Caller{}, a.insufficient(r)
	}
	return Caller{Principal: claims.issuer + "|" + claims.subject, Expires: claims.expires, Revoked: a.revokedOAuth}, nil
}

// forUs reports whether a token was issued for this gateway: for the
// configured audience, else for the endpoint as a whole or for the profile's
// own address that is called (RFC 8707; RFC 9068, 4).
func (a *Authenticator) forUs(r *http.Request, audience []string) bool {
	var accepted [2]string
	if a.o.OAuth.Audience != "" {
		accepted = [2]string{a.o.OAuth.Audience, a.o.OAuth.Audience}
	} else {
		base := a.base(r)
		accepted = [2]string{base + endpoint, base + resourcePath(r.URL.Path)}
	}
	for _, v := range audience {
		v = strings.TrimSuffix(v, "/")
		if v == strings.TrimSuffix(accepted[0], "/") || v == strings.TrimSuffix(accepted[1], "/") {
			return true
		}
	}
	return false
}
