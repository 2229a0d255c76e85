package credential

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Bearer is a fixed bearer token (RFC 6750, 2.1).
type Bearer struct{ token Secret }

// NewBearer returns the credential "Authorization: Bearer token". The token
// must be non-empty and fit for a header.
func NewBearer(token Secret) (*Bearer, error) {
	if problem := headerSecret("token", token); problem != "" {
		return nil, errSpec(KindBearer, []string{problem})
	}
	return &Bearer{token: token}, nil
}

// Authorize sets the Authorization header.
func (b *Bearer) Authorize(req *http.Request) error {
	req.Header.Set("Authorization", "Bearer "+b.token.Reveal())
	return nil
}

// Redact takes the token out of text.
func (b *Bearer) Redact(text string) string { return redact(text, b.token) }

// Refresh reports false: a fixed token does not get better.
func (*Bearer) Refresh(context.Context) bool { return false }

// Kind returns KindBearer.
func (*Bearer) Kind() Kind { return KindBearer }

// Basic is a user name and password (RFC 7617).
type Basic struct{ header, password Secret }

// NewBasic returns the basic credential of username and password. A user
// name must not hold a colon.
func NewBasic(username string, password Secret) (*Basic, error) {
	var problems []string
	if username == "" {
		problems = append(problems, "username is missing: a basic credential needs username and password")
	}
	if strings.Contains(username, ":") {
		problems = append(problems, "username must not hold a colon (RFC 7617)")
	}
	if len(problems) > 0 {
		return nil, errSpec(KindBasic, problems)
	}
	pair := username + ":" + password.Reveal()
	return &Basic{header: NewSecret("Basic " + base64.StdEncoding.EncodeToString([]byte(pair))), password: password}, nil
}

// Authorize sets the Authorization header.
func (b *Basic) Authorize(req *http.Request) error {
	req.Header.Set("Authorization", b.header.Reveal())
	return nil
}

// Redact takes the password, and the pair as it is sent, out of text.
func (b *Basic) Redact(text string) string {
	return redact(text, NewSecret(strings.TrimPrefix(b.header.Reveal(), "Basic ")), b.password)
}

// Refresh reports false.
func (*Basic) Refresh(context.Context) bool { return false }

// Kind returns KindBasic.
func (*Basic) Kind() Kind { return KindBasic }

// The places of an API key (A2A 4.5.2, APIKeySecurityScheme.location).
const (
	InHeader = "header"
	InQuery  = "query"
	InCookie = "cookie"
)

// DefaultAPIKeyHeader is where an API key goes when neither the configuration
// nor the card says.
const DefaultAPIKeyHeader = "X-API-Key"

// APIKey is a fixed key in a header, a query parameter or a cookie.
type APIKey struct {
	key    Secret
	in     string
	name   string
	placed bool // the configuration said where
}

// NewAPIKey returns the credential that puts key into the header, query
// parameter or cookie of that name. With in and name both empty it goes into
// X-API-Key, unless a card says otherwise (WithPlacement); with only in empty
// it goes into a header.
func NewAPIKey(key Secret, in, name string) (*APIKey, error) {
	k := &APIKey{key: key, in: strings.ToLower(in), name: name, placed: in != "" || name != ""}
	if k.in == "" {
		k.in = InHeader
	}
	if k.in == InHeader && k.name == "" {
		k.name = DefaultAPIKeyHeader
	}
	if problems := k.problems(); len(problems) > 0 {
		return nil, errSpec(KindAPIKey, problems)
	}
	return k, nil
}

func (k *APIKey) problems() []string {
	var problems []string
	add := func(problem string) {
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	switch k.in {
	case InHeader:
		add(headerName("header", k.name))
		add(headerSecret("key", k.key))
	case InCookie:
		if !httpguts.ValidHeaderFieldName(k.name) {
			add("name " + quote(k.name) + " is not the name of a cookie")
		}
		add(headerSecret("key", k.key))
		if strings.ContainsAny(k.key.Reveal(), ";,\" ") {
			add("key holds a character that a cookie cannot carry")
		}
	case InQuery:
		if k.name == "" {
			add("name is missing: a key in the query needs the parameter's name")
		}
		if k.key.Empty() {
			add("key is empty")
		}
	default:
		add("in " + quote(k.in) + " is none of header, query, cookie")
	}
	return problems
}

// Authorize puts the key in its place, replacing what stood there.
func (k *APIKey) Authorize(req *http.Request) error {
	switch k.in {
	case InQuery:
		u := *req.URL
		u.RawQuery = setQuery(u.RawQuery, k.name, k.key.Reveal())
		req.URL = &u
	case InCookie:
		setCookie(req.Header, k.name, k.key.Reveal())
	default:
		req.Header.Set(k.name, k.key.Reveal())
	}
	return nil
}

// Redact takes the key out of text, also in the form that it has in a query.
func (k *APIKey) Redact(text string) string {
	return redact(text, k.key, NewSecret(url.QueryEscape(k.key.Reveal())))
}

// Refresh reports false.
func (*APIKey) Refresh(context.Context) bool { return false }

// Kind returns KindAPIKey.
func (*APIKey) Kind() Kind { return KindAPIKey }

// WithPlacement returns the key in the place that a card's apiKey scheme
// names, or k itself where the configuration has already said where, or where
// the card's place makes no sense.
func (k *APIKey) WithPlacement(in, name string) Authorizer {
	if k.placed || name == "" {
		return k
	}
	placed, err := NewAPIKey(k.key, in, name)
	if err != nil {
		return k
	}
	placed.placed = false // the next card may say something else
	return placed
}

// setQuery returns the raw query with the parameter set once; other pairs
// keep their bytes and order.
func setQuery(raw, name, value string) string {
	escaped := url.QueryEscape(name)
	kept := make([]string, 0, strings.Count(raw, "&")+2)
	for pair := range strings.SplitSeq(raw, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if pair == "" || key == escaped || key == name {
			continue
		}
		kept = append(kept, pair)
	}
	return strings.Join(append(kept, escaped+"="+url.QueryEscape(value)), "&")
}

// setCookie sets one cookie and keeps the others.
func setCookie(header http.Header, name, value string) {
	var kept []string
	for _, line := range header.Values("Cookie") {
		for pair := range strings.SplitSeq(line, ";") {
			pair = strings.TrimSpace(pair)
			key, _, _ := strings.Cut(pair, "=")
			if pair != "" && key != name {
				kept = append(kept, pair)
			}
		}
	}
	header.Set("Cookie", strings.Join(append(kept, name+"="+value), "; "))
}

func headerName(field, name string) string {
	if httpguts.ValidHeaderFieldName(name) {
		return ""
	}
	return field + " " + quote(name) + " is not the name of an HTTP header"
}

func headerSecret(field string, value Secret) string {
	switch {
	case value.Empty():
		return field + " is empty"
	case !httpguts.ValidHeaderFieldValue(value.Reveal()) || strings.TrimSpace(value.Reveal()) != value.Reveal():
		return field + " holds a character that an HTTP header cannot carry (a line break, or a blank at an end)"
	}
	return ""
}
