package auth

import (
	"fmt"
	"net/http"
	"strings"
)

// endpoint is the path of the MCP endpoint; profiles lie below it.
const (
	endpoint       = "/mcp"
	profilePrefix  = "/mcp/p/"
	metadataPrefix = "/.well-known/oauth-protected-resource"
)

// scope is one entry of OAuth.Scopes: the scope to ask for and those that
// count as having it.
type scope struct {
	name     string
	includes []string // name and the broader ones
}

func parseScopes(list []string) ([]scope, error) {
	var scopes []scope
	for i, entry := range list {
		names := strings.Split(entry, "|")
		for _, name := range names {
			if name == "" || strings.ContainsAny(name, " \t\r\n\"\\") {
				return nil, fmt.Errorf("auth: scopes[%d] %q is not a scope, or scopes joined by |", i, entry)
			}
		}
		scopes = append(scopes, scope{name: names[0], includes: names})
	}
	return scopes, nil
}

// granted reports whether a token with the scopes has may do what needs
// require.
func granted(needs []scope, has []string) bool {
	for _, need := range needs {
		ok := false
		for _, name := range need.includes {
			for _, h := range has {
				ok = ok || h == name
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// asked are the scopes to ask for, separated by blanks.
func (a *Authenticator) asked() string {
	names := make([]string, len(a.scopes))
	for i, s := range a.scopes {
		names[i] = s.name
	}
	return strings.Join(names, " ")
}

// base is the gateway's address as this request's client knows it.
func (a *Authenticator) base(r *http.Request) string {
	if a.o.BaseURL != "" {
		return a.o.BaseURL
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + strings.ToLower(r.Host)
}

// resourcePath is the path of the resource that a request is about: that of a
// profile where it names one, else that of the endpoint. What is no path of
// ours is about the endpoint too.
func resourcePath(path string) string {
	name, ok := strings.CutPrefix(path, profilePrefix)
	name = strings.TrimSuffix(name, "/")
	if !ok || name == "" || strings.ContainsFunc(name, notPathSafe) {
		return endpoint
	}
	return profilePrefix + name
}

// notPathSafe holds of characters that would need escaping in a URL or a
// quoted header value.
func notPathSafe(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// metadataParam tells an OAuth client where to read how to get a token; ""
// without OAuth.
func (a *Authenticator) metadataParam(r *http.Request) string {
	if a.issuer == nil {
		return ""
	}
	return `resource_metadata="` + a.base(r) + metadataPrefix + resourcePath(r.URL.Path) + `"`
}

func (a *Authenticator) scopeParam() string {
	if len(a.scopes) == 0 {
		return ""
	}
	return `scope="` + a.asked() + `"`
}

func challenge(params ...string) string {
	out := "Bearer"
	for _, p := range params {
		switch {
		case p == "":
			continue
		case out == "Bearer":
			out += " " + p
		default:
			out += ", " + p
		}
	}
	return out
}

// missing answers a request that has brought no proof at all. It names no
// error: there is nothing wrong with a token (RFC 6750, 3.1).
func (a *Authenticator) missing(r *http.Request, reason string) *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Challenge: challenge(a.metadataParam(r), a.scopeParam()), Reason: reason}
}

// invalid answers a request whose token is not good.
func (a *Authenticator) invalid(r *http.Request, reason string) *Refusal {
	return &Refusal{
		Status:    http.StatusUnauthorized,
		Challenge: challenge(a.metadataParam(r), a.scopeParam(), `error="invalid_token"`),
		Reason:    reason,
	}
}

// insufficient answers a request whose token lacks a scope; the challenge
// names all that are needed.
func (a *Authenticator) insufficient(r *http.Request) *Refusal {
	return &Refusal{
		Status:    http.StatusForbidden,
		Challenge: challenge(`error="insufficient_scope"`, a.scopeParam(), a.metadataParam(r)),
		Reason:    "the token lacks a scope: this gateway needs " + a.asked(),
	}
}

// malformed answers a request whose proof cannot be read.
func malformed(reason string) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Challenge: challenge(`error="invalid_request"`), Reason: reason}
}
