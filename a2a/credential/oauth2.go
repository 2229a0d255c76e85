package credential

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// TokenURLFromCard as the token URL lets the agent's card name the token
// endpoint. The client secret then goes where the card says, so it is never
// the default.
const TokenURLFromCard = "fromCard"

// The styles in which a token endpoint wants the client's secret
// (RFC 6749, 2.3.1). With "" the header is tried first and the parameters
// after a refusal, until one has worked.
const (
	AuthStyleHeader = "header"
	AuthStyleParams = "params"
)

// How long a failed token fetch is remembered.
const (
	oauth2NegativeMin = 5 * time.Second
	oauth2NegativeMax = 30 * time.Second
)

// OAuth2 is the client credentials grant (RFC 6749, 4.4).
type OAuth2 struct {
	spec  Spec
	cache *tokenCache
	// style is the oauth2.AuthStyle that worked; 0 while unknown.
	style atomic.Int32
	http  *http.Client
}

// NewOAuth2 returns the client credentials credential of spec, which needs
// ClientID, ClientSecret and TokenURL. TokenURL may be TokenURLFromCard or
// empty: Authorize then fails until WithTokenURL has named the endpoint.
func NewOAuth2(spec Spec) (*OAuth2, error) {
	var problems []string
	if spec.ClientID == "" {
		problems = append(problems, "clientId is missing: an oauth2 credential needs it")
	}
	if spec.ClientSecret.Empty() {
		problems = append(problems, "clientSecret is missing: an oauth2 credential needs it")
	}
	if spec.TokenURL != "" && spec.TokenURL != TokenURLFromCard {
		if problem := tokenURLProblem(spec.TokenURL); problem != "" {
			problems = append(problems, problem)
		}
	}
	o := &OAuth2{spec: spec}
	switch spec.AuthStyle {
	case "":
	case AuthStyleHeader:
		o.style.Store(int32(oauth2.AuthStyleInHeader))
	case AuthStyleParams:
		o.style.Store(int32(oauth2.AuthStyleInParams))
	default:
		problems = append(problems, "authStyle "+quote(spec.AuthStyle)+" is neither header nor params")
	}
	if len(problems) > 0 {
		return nil, errSpec(KindOAuth2, problems)
	}
	o.http = tokenClient(spec.HTTP)
	o.cache = newTokenCache(o.fetch, oauth2NegativeMin, oauth2NegativeMax)
	return o, nil
}

// tokenClient returns a client that never follows a redirect: a redirected
// token request would carry the client's secret to wherever the redirect
// points.
func tokenClient(base *http.Client) *http.Client {
	var c http.Client
	if base != nil {
		c = *base
	} else {
		c.Transport = &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: fetchTimeout,
			// Tokens are fetched rarely: a kept connection would only be
			// something that nobody closes.
			DisableKeepAlives: true,
		}
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

func tokenURLProblem(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "tokenUrl is not a URL"
	case (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return "tokenUrl " + quote(u.Redacted()) + " is not an http(s) URL"
	case u.User != nil:
		return "tokenUrl must not hold a user name or password: use clientId and clientSecret"
	}
	return ""
}

// Authorize sets the Authorization header to a valid token.
func (o *OAuth2) Authorize(req *http.Request) error {
	t, err := o.cache.get(req.Context())
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", t.scheme+" "+t.value.Reveal())
	return nil
}

// Redact takes the client's secret and the token out of text.
func (o *OAuth2) Redact(text string) string {
	return redact(text, o.spec.ClientSecret, o.cache.latest())
}

// Refresh drops the token after a 401.
func (o *OAuth2) Refresh(context.Context) bool { return o.cache.drop() }

// Kind returns KindOAuth2.
func (*OAuth2) Kind() Kind { return KindOAuth2 }

// WantsTokenURL reports whether the configuration names no token endpoint
// (want), and whether it leaves the choice to the card explicitly (fromCard).
// Without fromCard a card's endpoint may be used only on an allowed host.
func (o *OAuth2) WantsTokenURL() (want, fromCard bool) {
	fromCard = o.spec.TokenURL == TokenURLFromCard
	return fromCard || o.spec.TokenURL == "", fromCard
}

// WithTokenURL returns the credential with the token endpoint that a card
// named, reached through client (nil for the configured one). It returns o
// itself where the configuration names an endpoint or tokenURL makes no sense.
func (o *OAuth2) WithTokenURL(tokenURL string, client *http.Client) Authorizer {
	if want, _ := o.WantsTokenURL(); !want || tokenURLProblem(tokenURL) != "" {
		return o
	}
	spec := o.spec
	spec.TokenURL = tokenURL
	if client != nil {
		spec.HTTP = client
	}
	placed, err := NewOAuth2(spec)
	if err != nil {
		return o
	}
	return placed
}

// fetch asks the token endpoint, in both styles where the right one is not
// known yet.
func (o *OAuth2) fetch(ctx context.Context) (token, error) {
	if want, fromCard := o.WantsTokenURL(); want {
		return token{}, errNoTokenURL(fromCard)
	}
	style := oauth2.AuthStyle(o.style.Load())
	probe := style == oauth2.AuthStyleAutoDetect
	if probe {
		style = oauth2.AuthStyleInHeader
	}
	t, err := o.request(ctx, style)
	var refused *oauth2.RetrieveError
	if probe && errors.As(err, &refused) && refused.Response != nil &&
		(refused.Response.StatusCode == http.StatusBadRequest || refused.Response.StatusCode == http.StatusUnauthorized) {
		style = oauth2.AuthStyleInParams
		t, err = o.request(ctx, style)
	}
	if err != nil {
		return token{}, o.explain(err)
	}
	o.style.Store(int32(style))
	return token{value: NewSecret(t.AccessToken), scheme: t.Type(), expires: t.Expiry}, nil
}

func (o *OAuth2) request(ctx context.Context, style oauth2.AuthStyle) (*oauth2.Token, error) {
	config := clientcredentials.Config{
		ClientID:     o.spec.ClientID,
		ClientSecret: o.spec.ClientSecret.Reveal(),
		TokenURL:     o.spec.TokenURL,
		Scopes:       slices.Clone(o.spec.Scopes),
		AuthStyle:    style,
	}
	return config.Token(context.WithValue(ctx, oauth2.HTTPClient, o.http))
}

// explain makes one line of a failed fetch. What the endpoint wrote is quoted
// in part, without the secret; errors of net/http are told by their kind,
// since their text repeats the URL.
func (o *OAuth2) explain(err error) error {
	where := "token endpoint " + endpointName(o.spec.TokenURL)
	var refused *oauth2.RetrieveError
	var dns *net.DNSError
	var op *net.OpError
	var blocked interface{ Blocked() string }
	var message string
	switch {
	case errors.As(err, &blocked):
		message = where + " is not allowed: " + blocked.Blocked()
	case errors.As(err, &refused):
		message = o.explainRefusal(where, refused)
	case errors.Is(err, context.DeadlineExceeded):
		message = where + " did not answer in time"
	case errors.As(err, &dns):
		message = where + ": the host does not resolve"
	case errors.As(err, &op) && op.Op == "dial":
		message = where + " cannot be reached"
	case isURLError(err):
		message = where + ": the request failed"
	default:
		message = where + " answered with something that is not a token"
	}
	return &Error{Kind: KindOAuth2, Message: message, Err: bareCause(err)}
}

// bareCause is what of a failed fetch may stay in the chain of an error: what
// the network and the address policy said. The text of net/http's own errors
// repeats URLs, and that of a refusal the body of the answer, which may repeat
// what was sent.
func bareCause(err error) error {
	var outer *url.Error
	for errors.As(err, &outer) {
		err = outer.Err
	}
	var refused *oauth2.RetrieveError
	var dns *net.DNSError
	var op *net.OpError
	var blocked interface{ Blocked() string }
	switch {
	case errors.As(err, &refused):
		return errRefused
	case errors.As(err, &dns), errors.As(err, &op), errors.As(err, &blocked),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	}
	return errNotAToken
}

// Why a token endpoint gave no token.
var (
	errRefused   = errors.New("the token endpoint refused")
	errNotAToken = errors.New("the token endpoint's answer is not a token")
)

func (o *OAuth2) explainRefusal(where string, refused *oauth2.RetrieveError) string {
	status := 0
	if refused.Response != nil {
		status = refused.Response.StatusCode
	}
	message := fmt.Sprintf("%s answered %d", where, status)
	if status >= 300 && status < 400 {
		return message + ": redirects are not followed with a client secret; configure the final tokenUrl"
	}
	if code := scrub(refused.ErrorCode, 80, o.spec.ClientSecret); code != "" {
		message += " " + code
	}
	if text := scrub(refused.ErrorDescription, 200, o.spec.ClientSecret); text != "" {
		message += ": " + text
	}
	return message
}

func errNoTokenURL(fromCard bool) error {
	message := "oauth2 has no tokenUrl: set it, or set it to " + quote(TokenURLFromCard) + " to use the one in the agent's card"
	if fromCard {
		message = "oauth2 takes its tokenUrl from the agent's card, and the card names none that can be used"
	}
	return &Error{Kind: KindOAuth2, Message: message}
}

func isURLError(err error) bool {
	var u *url.Error
	return errors.As(err, &u)
}

// endpointName shows a URL without its query and user.
func endpointName(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable URL)"
	}
	return strings.TrimSuffix((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/")
}
