package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"a2agate/config"
	"a2agate/internal/auth"
	"a2agate/server"
	"a2agate/tools"
)

// inbound says who calls. What it goes by can be replaced while the gateway
// runs, so that a token can be given out or taken back at once.
type inbound struct {
	log *slog.Logger
	now atomic.Pointer[auth.Authenticator]
}

// newInbound returns the inbound of a configuration, nil where it asks nobody.
func newInbound(cfg *config.Config, log *slog.Logger) (*inbound, error) {
	if !cfg.Auth.Enabled() {
		return nil, nil //nolint:nilnil // to ask nobody is not an error
	}
	a, err := auth.New(authOptions(cfg, log))
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	in := &inbound{log: log}
	in.now.Store(a)
	return in, nil
}

func authOptions(cfg *config.Config, log *slog.Logger) auth.Options {
	o := auth.Options{BaseURL: cfg.PublicURL, Log: log, OAuth: auth.OAuth{
		Issuer: cfg.Auth.OAuth.Issuer, Audience: cfg.Auth.OAuth.Audience, Scopes: cfg.Auth.OAuth.Scopes,
	}}
	if cfg.PublicURL != "" && o.OAuth.Audience == cfg.PublicURL+"/mcp" {
		o.OAuth.Audience = "" // then the addresses of profiles count too
	}
	for _, t := range cfg.Auth.Tokens {
		o.Tokens = append(o.Tokens, auth.Token{Name: t.Name, SHA256: t.SHA256, Agents: t.Agents, Profile: t.Profile})
	}
	return o
}

// follow takes over who may call from a new configuration. One that would let
// everybody in waits for a restart, as it also changes what clients may keep.
func (in *inbound) follow(cfg *config.Config) {
	if !cfg.Auth.Enabled() {
		in.log.Warn("auth has been taken out of the configuration: callers must go on to prove who they are until a restart")
		return
	}
	a, err := auth.New(authOptions(cfg, in.log))
	if err != nil {
		in.log.Error("auth not reloaded, the last good one stays in force", "problem", err)
		return
	}
	a.Succeed(in.now.Load())
	in.now.Store(a)
}

// authenticate is the Authenticator of the edge.
func (in *inbound) authenticate(r *http.Request) (server.Identity, *server.Denied) {
	c, no := in.now.Load().Authenticate(r)
	if no != nil {
		return server.Identity{}, &server.Denied{Status: no.Status, Challenge: no.Challenge, Reason: no.Reason, RetryAfter: no.RetryAfter}
	}
	return server.Identity{Principal: c.Principal, View: viewOf(c), Expires: c.Expires, Revoked: c.Revoked}, nil
}

// viewOf is what a caller may see.
func viewOf(c auth.Caller) tools.View {
	v := tools.View{Profile: c.Profile}
	switch {
	case c.Agents == nil:
	case len(c.Agents) == 0:
		v.Agents = "," // no agent has the empty alias
	default:
		v.Agents = strings.Join(slices.Sorted(slices.Values(c.Agents)), ",")
	}
	return v
}

// wellKnown tells clients where to get a token.
func (in *inbound) wellKnown() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := in.now.Load().Metadata()
		if h == nil {
			h = http.NotFoundHandler()
		}
		h.ServeHTTP(w, r)
	})
}

// unrestricted lets in who may see every agent: what next shows is about all.
func unrestricted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, ok := server.IdentityFrom(r.Context()); !ok || id.View != (tools.View{}) {
			http.Error(w, "this is about all agents, and the token is for some of them only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
