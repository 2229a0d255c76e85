package a2a

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// AgentConfig is one configured agent (design section 6). Zero fields take
// the defaults named there.
type AgentConfig struct {
	// Alias names the agent: [A-Za-z0-9_-]{1,64}.
	Alias string
	// URL is the agent's address, CardURL that of its card: one of them.
	// CardPath is a path under URL, or a URL, that is tried first.
	URL      string
	CardURL  string
	CardPath string
	// Protocol and Binding override the card; "" or auto leaves the choice to
	// it. They are read as generously as in a card ("1", "http+json").
	Protocol Version
	Binding  Binding
	// URLPolicy is "" for auto.
	URLPolicy URLPolicy
	// AllowHosts are hosts, or host:port, beside the configured one that may
	// be called; no credential goes there.
	AllowHosts []string
	// Headers go to the configured origin with every request.
	Headers http.Header
	// Authorizer is the credential, nil for none; package credential has the
	// kinds. AuthOnCard is "" for auto.
	Authorizer Authorizer
	AuthOnCard AuthOnCard
	// Extensions are the URIs of the extensions that the gateway speaks; those
	// that the card declares are asked for.
	Extensions []string
	// EmptyStreamFallback sends a message again, with the same messageId,
	// after a stream that brought nothing (on by default in a configuration).
	EmptyStreamFallback bool
	// MaxConcurrent bounds requests in flight to the agent; 0 is none.
	MaxConcurrent int
	Limits        Limits
	Timeouts      Timeouts
	// TLS is the base of the TLS configuration. When nil, an Authorizer that
	// has a TLSConfig method (mtls) supplies it.
	TLS *tls.Config
	// Proxy is the HTTP proxy to go through, nil for none; the environment is
	// not read.
	Proxy *url.URL
	// Wrap, where not nil, is put around the transport of every request to the
	// agent, cards included, to look at the traffic. It sees credentials.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Observe is told of each call when it is over; may be nil.
	Observe func(Exchange)
	// Start is told of each call before it is made; may be nil.
	Start StartFunc
	// OnChange is called after the card or the state has changed, without a
	// lock held, and by one goroutine at a time. It must not wait for the
	// agent (Close, Client, FetchCard); may be nil.
	OnChange func()
	// Logger is told of changes of state; nil logs nothing.
	Logger *slog.Logger
}

var aliasPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// agentSetup is what a checked AgentConfig comes to.
type agentSetup struct {
	place     cardPlace
	transport *Transport
	allow     allowHosts
}

// check returns everything that is wrong with the configuration, joined, and
// what it comes to.
func (cfg *AgentConfig) check() (agentSetup, error) {
	var s agentSetup
	var problems []error
	add := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	if !aliasPattern.MatchString(cfg.Alias) {
		add(fmt.Errorf("alias %q is not 1 to 64 letters, digits, _ or -", plainLine(cfg.Alias, 80)))
	}
	add(cfg.readOverrides())
	switch cfg.URLPolicy {
	case "", PolicyAuto, PolicyCard, PolicyConfigured:
	default:
		add(fmt.Errorf("urlPolicy %q is none of auto, card, configured", plainLine(string(cfg.URLPolicy), 40)))
	}
	switch cfg.AuthOnCard {
	case "", AuthOnCardAuto, AuthOnCardAlways, AuthOnCardNever:
	default:
		add(fmt.Errorf("authOnCard %q is none of auto, always, never", plainLine(string(cfg.AuthOnCard), 40)))
	}
	for name, values := range cfg.Headers {
		if !httpguts.ValidHeaderFieldName(name) {
			add(fmt.Errorf("headers: %q is not the name of an HTTP header", plainLine(name, 80)))
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				add(fmt.Errorf("headers: the value of %s holds a character that a header cannot carry", plainLine(name, 80)))
			}
		}
	}
	var err error
	s.place, err = locate(cfg.URL, cfg.CardURL, cfg.CardPath)
	add(err)
	s.allow, err = parseAllowHosts(cfg.AllowHosts)
	add(err)
	if len(problems) > 0 {
		return s, errors.Join(problems...)
	}
	s.transport, err = NewTransport(TransportPolicy{
		Configured: s.place.agent, AllowHosts: cfg.AllowHosts, DialTimeout: cfg.Timeouts.withDefaults().Dial,
		TLS: cfg.tlsConfig(), Proxy: cfg.Proxy,
	})
	return s, err
}

// readOverrides brings Protocol and Binding to their one spelling.
func (cfg *AgentConfig) readOverrides() error {
	var problems []error
	if protocol := string(cfg.Protocol); protocol == "" || strings.EqualFold(protocol, "auto") {
		cfg.Protocol = ""
	} else if version, exact, _ := versionFrom(protocol, false); exact {
		cfg.Protocol = version
	} else {
		problems = append(problems, fmt.Errorf("protocol %q is none of auto, 1.0, 0.3", plainLine(protocol, 40)))
	}
	if binding := string(cfg.Binding); binding == "" || strings.EqualFold(binding, "auto") {
		cfg.Binding = ""
	} else if known, ok := bindingFrom(binding); ok {
		cfg.Binding = known
	} else {
		problems = append(problems, fmt.Errorf("binding %q is none of auto, JSONRPC, HTTP+JSON", plainLine(binding, 40)))
	}
	return errors.Join(problems...)
}

func (cfg *AgentConfig) tlsConfig() *tls.Config {
	if cfg.TLS != nil {
		return cfg.TLS
	}
	if a, ok := cfg.Authorizer.(interface{ TLSConfig() *tls.Config }); ok {
		return a.TLSConfig()
	}
	return nil
}

// canonicalHeaders copies the configured headers under their canonical names.
func (cfg *AgentConfig) canonicalHeaders() http.Header {
	out := http.Header{}
	for name, values := range cfg.Headers {
		for _, value := range values {
			out.Add(name, value)
		}
	}
	return out
}

// credentialed reports whether requests to the configured origin carry a
// credential.
func (cfg *AgentConfig) credentialed() bool {
	if cfg.Authorizer != nil {
		return true
	}
	for name := range cfg.Headers {
		if secretHeader(name) {
			return true
		}
	}
	return false
}
