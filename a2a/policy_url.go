package a2a

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// placed is one address that an interface may be called at, or why it may not.
type placed struct {
	url       string
	anonymous bool
	note      string
	blocked   string
}

// absoluteURL makes an absolute http(s) URL of what a card says. Absolute URLs
// keep their bytes. Rooted paths are joined to the origin that the card came
// from, others to the place that the agent was found at.
func absoluteURL(raw string, rules interfaceRules) (absolute, problem string) {
	raw, _, _ = strings.Cut(raw, "#")
	scheme, _, hasScheme := strings.Cut(raw, "://")
	switch {
	case hasScheme && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")):
		absolute = raw
	case hasScheme:
		return "", "is not an http(s) URL"
	case strings.HasPrefix(raw, "//"):
		absolute = rules.fetched.Scheme + ":" + raw
	case strings.HasPrefix(raw, "/"):
		absolute = originOf(rules.fetched).String() + raw
	case looksLikeHostPort(raw):
		absolute = rules.fetched.Scheme + "://" + raw
	default:
		ref, err := url.Parse(raw)
		if err != nil || ref.IsAbs() {
			return "", "is not an http(s) URL"
		}
		base, path, _ := splitURL(agentBase(rules.fetched.String()))
		base += strings.TrimRight(path, "/") + "/"
		if !strings.Contains(raw, "./") {
			absolute = base + raw
			break
		}
		root, err := url.Parse(base)
		if err != nil {
			return "", "is not an http(s) URL"
		}
		absolute = root.ResolveReference(ref).String()
	}
	u, err := url.Parse(absolute)
	if err != nil || u.Hostname() == "" || !validPort(u.Port()) {
		return "", "is not a valid URL"
	}
	if u.User != nil {
		// A card has no business naming a user: the credential is configured.
		u.User = nil
		absolute = u.String()
	}
	return absolute, ""
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// looksLikeHostPort recognises host:port or host:port/path without a scheme.
func looksLikeHostPort(raw string) bool {
	authority, _, _ := strings.Cut(raw, "/")
	host, port, err := net.SplitHostPort(authority)
	return err == nil && host != "" && port != "" && strings.Trim(port, "0123456789") == ""
}

// The names of the card under /.well-known: that of 0.3.0 and 1.0, and that of
// 0.2, which many agents still use (specification 8.2).
const (
	wellKnownCard       = "/.well-known/agent-card.json"
	wellKnownLegacyCard = "/.well-known/agent.json"
)

// agentBase is the address of the agent whose card stands at cardURL: without
// the well-known path, or without the last segment of another file; its query
// stays.
func agentBase(cardURL string) string {
	base, path, query := splitURL(cardURL)
	for _, name := range []string{wellKnownCard, wellKnownLegacyCard} {
		if rest, ok := strings.CutSuffix(path, name); ok {
			return base + or(rest, "/") + query
		}
	}
	if strings.HasSuffix(strings.ToLower(path), ".json") {
		path = path[:strings.LastIndexByte(path, '/')+1]
	}
	return base + or(path, "/") + query
}

// stripOperation takes the path of an operation or of the card off an
// interface's URL, which some agents advertise in place of the base
// (specification 11.3). A JSON-RPC agent may really serve such a path, so its
// URL as written is the second try.
func stripOperation(raw string, s spoken, rules interfaceRules) []string {
	base, path, query := splitURL(raw)
	trimmed := strings.TrimRight(path, "/")
	if strings.HasSuffix(trimmed, wellKnownCard) || strings.HasSuffix(trimmed, wellKnownLegacyCard) ||
		(raw == rules.fetched.String() && strings.HasSuffix(strings.ToLower(path), ".json")) {
		return []string{agentBase(base + trimmed + query)}
	}
	rest := trimOperation(trimmed)
	if rest == trimmed {
		return []string{raw}
	}
	if s.version == V03 {
		rest = strings.TrimSuffix(rest, "/v1")
	}
	stripped := base + or(rest, "/") + query
	if s.binding == REST {
		return []string{stripped}
	}
	return []string{stripped, raw}
}

// apply is the url policy (reference: sloppy agents in the wild): it returns
// the addresses to try for one URL, in order. An address that cannot be right
// from here gets the configured host and keeps scheme, port and path.
func (r interfaceRules) apply(raw string) []placed {
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	o, own := originOf(u), originOf(r.configured)
	_, path, query := splitURL(raw)
	rest := path + query
	onOwn := own.String() + rest
	note := func(called string) string {
		return fmt.Sprintf("the card advertises %s: %s is called instead", showURL(raw), showURL(called))
	}
	switch {
	case o.same(own) && r.credentialed && o.host != own.host:
		// Two names of the loopback may lead to two listeners: the credential
		// goes to the one that is configured.
		return []placed{{url: onOwn}}
	case o.same(own):
		return []placed{{url: raw}}
	case r.policy == PolicyConfigured:
		return []placed{{url: onOwn, note: note(onOwn)}}
	case r.allow.lists(o.host, o.port):
		return []placed{{url: raw, anonymous: true}}
	case r.policy == PolicyCard:
		return []placed{{blocked: foreign(raw, o, own)}}
	case unusableFrom(o.host, own.host):
		moved := webOrigin{scheme: o.scheme, host: own.host, port: o.port}
		if moved.same(own) || moved.scheme == "http" && own.scheme == "https" {
			return []placed{{url: onOwn, note: note(onOwn)}}
		}
		onHost := placed{url: moved.String() + rest, anonymous: true}
		if r.credentialed {
			// The other port is another origin: no credential may go there,
			// so it is the less likely of the two.
			return []placed{{url: onOwn, note: note(onOwn)}, onHost}
		}
		onHost.note = note(onHost.url)
		return []placed{onHost} // the Client tries the configured origin when it cannot be dialled
	case o.host == own.host && o.scheme == "http" && own.scheme == "https":
		return []placed{{url: onOwn, note: note(onOwn)}}
	case o.host == own.host && own.scheme == "http" && own.port == "80" && o.scheme == "https" && o.port == "443":
		p := placed{url: raw, anonymous: true}
		if r.credentialed {
			p.note = fmt.Sprintf("the card advertises %s: configure the https address, so that the credential is sent", showURL(raw))
		}
		return []placed{p}
	}
	return []placed{{blocked: foreign(raw, o, own)}}
}

// unusableFrom reports whether an advertised host cannot be meant when the
// agent was found at the configured host: unspecified always, loopback unless
// that is loopback too, private unless it is the same.
func unusableFrom(host, configured string) bool {
	switch {
	case isUnspecifiedHost(host):
		return true
	case isLoopbackHost(host):
		return !isLoopbackHost(configured)
	}
	return isPrivateHost(host) && host != configured
}

func foreign(raw string, o, own webOrigin) string {
	entry := strings.TrimPrefix(o.String(), o.scheme+"://")
	return fmt.Sprintf("the card's interface %s is not on the configured origin %s: list %q in allowHosts to call it, without credentials", showURL(raw), own, entry)
}
