package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// badToken is a token that is no proof; its text is fit for the caller.
type badToken string

func (b badToken) Error() string { return string(b) }

// algorithms are those a token may be signed with: asymmetric ones only, so
// that neither "none" nor a public key used as a password gets through.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA,
}

const (
	// issuerPause is the least time between two attempts to find the issuer.
	issuerPause = 2 * time.Second
	// issuerTime bounds one request to the issuer.
	issuerTime = 5 * time.Second
	// issuerBytes bounds each of its documents.
	issuerBytes = 1 << 20
)

// claims are what counts of a verified token.
type claims struct {
	issuer, subject string
	audience        []string
	scopes          []string
	expires         time.Time
}

// issuer knows one authorization server. It is looked for when the first token
// comes, and again when it could not be reached or its keys cannot be had.
type issuer struct {
	name  string
	http  *http.Client
	pause time.Duration
	log   *slog.Logger

	// turn is held by the one request that looks for the issuer.
	turn chan struct{}

	mu       sync.Mutex // guards what follows
	verifier *oidc.IDTokenVerifier
	keys     *keyCache
	failed   error
	retryAt  time.Time
}

func newIssuer(o Options) *issuer {
	i := &issuer{name: o.OAuth.Issuer, http: o.HTTP, pause: o.KeyPause, log: o.Log, turn: make(chan struct{}, 1)}
	if i.http == nil {
		i.http = &http.Client{}
	}
	own := *i.http
	if own.Timeout == 0 {
		own.Timeout = issuerTime
	}
	own.CheckRedirect = noDowngrade
	i.http = &own
	if i.pause <= 0 {
		i.pause = 10 * time.Second
	}
	if i.log == nil {
		i.log = slog.New(slog.DiscardHandler)
	}
	return i
}

// noDowngrade follows a few redirects, but none from https to http.
func noDowngrade(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("redirect not followed")
	}
	return nil
}

// verify returns the claims of a good token. A badToken is the caller's
// trouble, any other error the issuer's.
func (i *issuer) verify(ctx context.Context, token string) (claims, error) {
	if err := i.plausible(token); err != nil {
		return claims{}, err
	}
	verifier, keys, err := i.ready(ctx)
	if err != nil {
		return claims{}, err
	}
	id, err := verifier.Verify(ctx, token)
	if err != nil {
		return claims{}, i.verdict(ctx, err, verifier, keys)
	}
	var more struct {
		Scope any `json:"scope"`
		SCP   any `json:"scp"`
	}
	if err := id.Claims(&more); err != nil {
		return claims{}, badToken("the token's claims cannot be read")
	}
	return claims{
		issuer: id.Issuer, subject: id.Subject, audience: id.Audience, expires: id.Expiry,
		scopes: append(scopeList(more.Scope), scopeList(more.SCP)...),
	}, nil
}

// plausible refuses what cannot be a token of this issuer by what it says of
// itself: no forged token costs more than this or reaches the issuer.
func (i *issuer) plausible(token string) error {
	head, rest, ok := strings.Cut(token, ".")
	body, sig, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || sig == "" || strings.Contains(sig, ".") {
		return badToken("the token is not a signed JWT")
	}
	var header struct {
		Alg string `json:"alg"`
	}
	var payload struct {
		Iss any `json:"iss"`
	}
	if !decodePart(head, &header) || !decodePart(body, &payload) {
		return badToken("the token is not a signed JWT")
	}
	if !slices.Contains(algorithms, header.Alg) {
		return badToken("the token is not signed with an algorithm that this gateway takes")
	}
	if payload.Iss != i.name {
		return badToken("the token is from another issuer")
	}
	return nil
}

func decodePart(part string, to any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(raw, to) == nil
}

// verdict sorts an error of the verifier. Where the keys could not be had, the
// issuer is looked for anew next time: it may have moved them.
func (i *issuer) verdict(ctx context.Context, err error, verifier *oidc.IDTokenVerifier, keys *keyCache) error {
	var expired *oidc.TokenExpiredError
	if errors.As(err, &expired) {
		return badToken("the token has expired: get a new one")
	}
	trouble := keys.trouble()
	if trouble == nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if trouble == nil {
		return badToken("the token's signature or its claims are not good")
	}
	i.mu.Lock()
	if i.verifier == verifier {
		i.verifier, i.failed, i.retryAt = nil, trouble, time.Now().Add(issuerPause)
	}
	i.mu.Unlock()
	i.log.WarnContext(ctx, "keys of the authorization server not read", "issuer", i.name, "err", trouble)
	return trouble
}

// scopeList reads a scope claim: a text with blanks (RFC 9068, 2.2.3), or a
// list, which some servers send.
func scopeList(v any) []string {
	switch v := v.(type) {
	case string:
		return strings.Fields(v)
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// ready returns the verifier, finding the issuer first where need be. One
// request at a time does so; the others wait for it within ctx.
func (i *issuer) ready(ctx context.Context) (*oidc.IDTokenVerifier, *keyCache, error) {
	if v, k, err := i.known(); v != nil || err != nil {
		return v, k, err
	}
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if v, k, err := i.known(); v != nil || err != nil {
		return v, k, err
	}
	jwks, err := i.discover(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, nil, ctx.Err() // this caller left; it says nothing about the issuer
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		i.failed, i.retryAt = err, time.Now().Add(issuerPause)
		i.log.WarnContext(ctx, "authorization server not found", "issuer", i.name, "err", err)
		return nil, nil, err
	}
	i.keys = &keyCache{base: i.http.Transport, pause: i.pause}
	client := *i.http
	client.Transport = i.keys
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.WithoutCancel(ctx), &client), jwks)
	i.verifier = oidc.NewVerifier(i.name, set, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithms})
	i.failed = nil
	return i.verifier, i.keys, nil
}

// known returns the verifier, or the failure of an attempt that was too
// recent; neither means that the issuer is to be looked for.
func (i *issuer) known() (*oidc.IDTokenVerifier, *keyCache, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, i.keys, nil
	}
	if i.failed != nil && time.Now().Before(i.retryAt) {
		return nil, nil, i.failed
	}
	return nil, nil, nil
}

// discover finds the address of the issuer's keys in its metadata (RFC 8414;
// OpenID Connect Discovery 1.0).
func (i *issuer) discover(ctx context.Context) (jwks string, err error) {
	places, err := metadataPlaces(i.name)
	if err != nil {
		return "", err
	}
	for _, place := range places {
		var one error
		if jwks, one = i.readMetadata(ctx, place); one == nil {
			return jwks, nil
		}
		err = errors.Join(err, one)
	}
	return "", err
}

// metadataPlaces are where an issuer's metadata may be, in the order that MCP
// 2026-07-28 (authorization, server metadata discovery) gives.
func metadataPlaces(name string) ([]string, error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, err
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	origin := u.Scheme + "://" + u.Host
	places := []string{origin + "/.well-known/oauth-authorization-server" + path, origin + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, origin+path+"/.well-known/openid-configuration")
	}
	return places, nil
}

func (i *issuer) readMetadata(ctx context.Context, place string) (jwks string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := i.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered HTTP %d", place, resp.StatusCode)
	}
	var doc struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, issuerBytes)).Decode(&doc); err != nil {
		return "", fmt.Errorf("%s is not JSON: %w", place, err)
	}
	if doc.Issuer != i.name {
		return "", fmt.Errorf("%s is the metadata of the issuer %q, not of %q: auth.oauth.issuer must be the same to the last character", place, doc.Issuer, i.name)
	}
	u, err := url.Parse(doc.JWKS)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || strings.HasPrefix(i.name, "https:")) {
		return "", fmt.Errorf("%s names no usable jwks_uri: %q", place, doc.JWKS)
	}
	return doc.JWKS, nil
}
