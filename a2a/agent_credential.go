package a2a

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// authorizer is Authorizer as an alias of its literal form: methods that
// return it can be implemented by a package that does not import this one.
type authorizer = interface {
	Authorize(req *http.Request) error
	Refresh(ctx context.Context) bool
}

// What an Authorizer may let the card decide (reference: principles of
// credentials). Each method returns the credential to use; the configuration
// stays authoritative.
type (
	// keyPlacer takes the place of an API key.
	keyPlacer interface {
		WithPlacement(in, name string) authorizer
	}
	// tokenURLTaker takes the token endpoint. want says that none is
	// configured, fromCard that the operator lets the card name any.
	tokenURLTaker interface {
		WantsTokenURL() (want, fromCard bool)
		WithTokenURL(tokenURL string, client *http.Client) authorizer
	}
	// scopeTaker derives what it asks tokens for from scopes.
	scopeTaker interface {
		WithScopes(scopes []string) authorizer
	}
)

// originBound lets a credential go to one origin only, whatever the request.
type originBound struct {
	Authorizer
	own webOrigin
}

// Authorize adds the credential to a request to the configured origin, and
// nothing to any other. Its errors are *Error: what the credential says goes
// to the caller, whatever lies beneath it.
func (b originBound) Authorize(req *http.Request) error {
	if originOf(req.URL) != b.own {
		return nil
	}
	started := time.Now()
	err := b.Authorizer.Authorize(req)
	if err == nil {
		return nil
	}
	if req.Context().Err() != nil {
		return contextError(trip{ctx: req.Context(), host: "the credential", started: started}, err)
	}
	return &Error{Cause: CauseAuth, Message: plainLine(err.Error(), messageBytes), Unsent: true, Err: err}
}

// placedCredential is the credential as the card places it. It is kept until a
// card places it differently, and with it the token it has cached.
type placedCredential struct {
	key  string
	auth Authorizer
}

// placement is what the card says about where the credential goes.
type placement struct {
	in, name string
	tokenURL string
	scopes   []string
}

func (p placement) key() string {
	return fmt.Sprintf("%q %q %q %q", p.in, p.name, p.tokenURL, p.scopes)
}

// placementFrom finds what a card says, looking first at the schemes that the
// card demands.
func placementFrom(card *Card) placement {
	var p placement
	for _, s := range demandedFirst(card) {
		switch s.Type {
		case SchemeAPIKey:
			if p.name == "" {
				p.in, p.name = s.In, s.Param
			}
		case SchemeOAuth2, SchemeOpenIDConnect:
			if p.tokenURL == "" {
				p.tokenURL = s.TokenURL
			}
			p.scopes = append(p.scopes, s.Scopes...)
		}
	}
	for _, requirement := range card.Security {
		for _, need := range requirement {
			p.scopes = append(p.scopes, need.Scopes...)
		}
	}
	return p
}

// demandedFirst are the card's schemes, those it demands before the others.
func demandedFirst(card *Card) []SecurityScheme {
	demanded := map[string]bool{}
	for _, requirement := range card.Security {
		for _, need := range requirement {
			demanded[need.Scheme] = true
		}
	}
	out := slices.Clone(card.SecuritySchemes)
	slices.SortStableFunc(out, func(a, b SecurityScheme) int {
		switch {
		case demanded[a.Name] == demanded[b.Name]:
			return 0
		case demanded[a.Name]:
			return -1
		}
		return 1
	})
	return out
}

// placeCredential puts the configured credential where the card says. client reaches a
// token endpoint that the card named; the address policy of the agent holds
// for it.
func (s *agentSetup) placeCredential(auth Authorizer, card *Card, client *http.Client) (Authorizer, []string) {
	p := placementFrom(card)
	if k, ok := auth.(keyPlacer); ok {
		return k.WithPlacement(p.in, p.name), nil
	}
	if k, ok := auth.(scopeTaker); ok {
		return k.WithScopes(p.scopes), nil
	}
	k, ok := auth.(tokenURLTaker)
	if !ok {
		return auth, nil
	}
	want, fromCard := k.WantsTokenURL()
	if !want || p.tokenURL == "" {
		return auth, nil
	}
	u, err := url.Parse(p.tokenURL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return auth, []string{fmt.Sprintf("the card's tokenUrl %s is not an http(s) URL", showURL(p.tokenURL))}
	}
	o := originOf(u)
	if !fromCard && !s.allow.lists(o.host, o.port) {
		return auth, []string{fmt.Sprintf("the card names the token endpoint %s: set auth.tokenUrl to it, or to fromCard", showURL(p.tokenURL))}
	}
	if u.Scheme == "http" && s.place.agent.Scheme == "https" {
		return auth, []string{fmt.Sprintf("the card's tokenUrl %s is not https: the client secret is not sent there", showURL(p.tokenURL))}
	}
	return k.WithTokenURL(p.tokenURL, client), nil
}

// satisfies says which scheme types a kind of credential can answer to.
var satisfies = map[string][]SchemeType{
	"bearer": {SchemeHTTP, SchemeOAuth2, SchemeOpenIDConnect},
	"basic":  {SchemeHTTP},
	"apikey": {SchemeAPIKey},
	"oauth2": {SchemeHTTP, SchemeOAuth2, SchemeOpenIDConnect},
	"az_cli": {SchemeHTTP, SchemeOAuth2, SchemeOpenIDConnect},
	"mtls":   {SchemeMutualTLS},
}

// unmetDemand says in one line that the card demands a credential which the
// configuration does not have; "" when all is well or cannot be told.
func (cfg *AgentConfig) unmetDemand(card *Card) string {
	if len(card.Security) == 0 {
		return ""
	}
	kind := cfg.credentialKind()
	byName := map[string]SecurityScheme{}
	for _, s := range card.SecuritySchemes {
		byName[s.Name] = s
	}
	var demands []string
	for _, requirement := range card.Security {
		met := true
		var names []string
		for _, need := range requirement {
			s, known := byName[need.Scheme]
			names = append(names, describeScheme(need.Scheme, s))
			met = met && known && cfg.meets(kind, s)
		}
		if met {
			return ""
		}
		demands = append(demands, strings.Join(names, " with "))
	}
	has := "no auth is configured"
	if kind != "" {
		has = "the configured auth is " + kind
	}
	return fmt.Sprintf("the agent demands %s, and %s", strings.Join(demands, " or "), has)
}

// credentialKind is the configured kind of credential: "" without one, "other"
// for one that does not say.
func (cfg *AgentConfig) credentialKind() string {
	if cfg.Authorizer == nil {
		return ""
	}
	if k, ok := cfg.Authorizer.(interface{ Kind() string }); ok {
		return k.Kind()
	}
	return "other"
}

func (cfg *AgentConfig) meets(kind string, s SecurityScheme) bool {
	switch {
	case s.Type == SchemeHTTP && (kind == "basic") != (s.HTTPScheme == "basic") && kind != "":
	case slices.Contains(satisfies[kind], s.Type), kind == "other":
		return true
	}
	switch s.Type {
	case SchemeAPIKey:
		return s.In == "header" && cfg.hasHeader(s.Param) || s.In == "cookie" && cfg.hasHeader("Cookie")
	case SchemeHTTP, SchemeOAuth2, SchemeOpenIDConnect:
		return cfg.hasHeader("Authorization")
	case SchemeMutualTLS:
		return cfg.TLS != nil
	}
	return false
}

func (cfg *AgentConfig) hasHeader(name string) bool {
	for have := range cfg.Headers {
		if strings.EqualFold(have, name) {
			return true
		}
	}
	return false
}

func describeScheme(name string, s SecurityScheme) string {
	what := plainLine(name, 40)
	switch {
	case s.Type == SchemeHTTP && s.HTTPScheme != "":
		what += " (http " + plainLine(s.HTTPScheme, 20) + ")"
	case s.Type != "":
		what += " (" + string(s.Type) + ")"
	}
	return what
}
