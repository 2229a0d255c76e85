package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// GuardOptions say which names and origins this server answers to, beside
// loopback.
type GuardOptions struct {
	// AllowedHosts are names or addresses, each with a port (then only that
	// one) or without (then any).
	AllowedHosts []string
	// AllowedOrigins are origins such as "https://app.example.com"; they also
	// get CORS headers.
	AllowedOrigins []string
	// PublicURL is where clients reach the gateway, for example through a
	// proxy; its host and its origin are allowed.
	PublicURL string
	// TrustedProxies are addresses or prefixes whose X-Forwarded-Host and
	// X-Forwarded-Proto are believed.
	TrustedProxies []string
}

// guard keeps web pages and other machines' names out: a page that a browser
// has open can reach a local server, under a name of its own (DNS rebinding)
// or across origins (MCP 2026-07-28, transports, security). It runs before
// everything else and does not depend on where the server listens.
type guard struct {
	hosts   []hostPort
	origins map[string]bool // normalised, see normalOrigin
	proxies []netip.Prefix
}

// hostPort is a name or address in lower case, and a port, "" for any.
type hostPort struct{ host, port string }

// newGuard checks the settings; all problems come in one error.
func newGuard(o GuardOptions) (*guard, error) {
	g := &guard{origins: make(map[string]bool)}
	var problems []string
	for i, h := range o.AllowedHosts {
		hp, ok := splitHost(h)
		if !ok {
			problems = append(problems, fmt.Sprintf("allowedHosts[%d]: %q is not a host name or address, with or without a port", i, h))
			continue
		}
		g.hosts = append(g.hosts, hp)
	}
	for i, v := range o.AllowedOrigins {
		n, ok := normalOrigin(v)
		if !ok {
			problems = append(problems, fmt.Sprintf("allowedOrigins[%d]: %q is not an origin such as https://app.example.com", i, v))
			continue
		}
		g.origins[n] = true
	}
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		hp, ok := hostPort{}, false
		if err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			hp, ok = splitHost(u.Host)
		}
		if !ok {
			problems = append(problems, fmt.Sprintf("publicUrl: %q is not an http(s) URL with a host", o.PublicURL))
		} else {
			g.hosts = append(g.hosts, hostPort{host: hp.host}) // a proxy may strip the port
			n, _ := normalOrigin(u.Scheme + "://" + u.Host)
			g.origins[n] = true
		}
	}
	for i, p := range o.TrustedProxies {
		prefix, ok := parsePrefix(p)
		if !ok {
			problems = append(problems, fmt.Sprintf("trustedProxies[%d]: %q is not an address or prefix", i, p))
			continue
		}
		g.proxies = append(g.proxies, prefix)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(problems, "\n"))
	}
	return g, nil
}

func parsePrefix(v string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(v); err == nil {
		return p.Masked(), true
	}
	a, err := netip.ParseAddr(v)
	if err != nil {
		return netip.Prefix{}, false
	}
	a = a.Unmap()
	return netip.PrefixFrom(a, a.BitLen()), true
}

// Guarded lets into next what a Server with the same settings would let in, for
// a listener beside it. Allowed origins get no CORS headers. The error names
// every wrong setting.
func Guarded(o GuardOptions, next http.Handler) (http.Handler, error) {
	g, err := newGuard(o)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, no := g.check(r); no != nil {
			refuseHTTP(w, no.status, no.reason)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

// refusal is a request the guard does not let in.
type refusal struct {
	status int
	reason string
}

// check returns the refusal of a request, nil to let it in, and the origin to
// name in CORS headers, "" for none.
func (g *guard) check(r *http.Request) (cors string, no *refusal) {
	host, https := g.target(r)
	hp, ok := splitHost(host)
	if !ok {
		return "", &refusal{http.StatusBadRequest, fmt.Sprintf("the Host header %q is not a host", host)}
	}
	if !g.knows(hp) {
		return "", &refusal{http.StatusMisdirectedRequest, fmt.Sprintf(
			"this gateway does not answer to the host %q: if that is a name of this machine, add it to allowedHosts (or set publicUrl)", hp.host)}
	}
	return g.checkOrigin(r, hp, https)
}

func (g *guard) checkOrigin(r *http.Request, own hostPort, https bool) (cors string, no *refusal) {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return "", nil
	}
	origin := values[0]
	n, ok := normalOrigin(origin)
	switch {
	case len(values) > 1 || !ok:
	case g.origins[n]:
		return origin, nil
	case sameOrigin(n, own, https):
		return "", nil
	}
	return "", &refusal{http.StatusForbidden, fmt.Sprintf(
		"requests from the origin %q are not allowed: if that page may use this gateway, add it to allowedOrigins", origin)}
}

// target is the host the client asked for, and whether it surely did so over
// TLS. What a proxy says counts when the proxy is trusted; of several
// forwarded values the last is that proxy's own.
func (g *guard) target(r *http.Request) (host string, https bool) {
	host, https = r.Host, r.TLS != nil
	if len(g.proxies) == 0 || !g.trusted(r.RemoteAddr) {
		return host, https
	}
	if v := lastValue(r.Header["X-Forwarded-Host"]); v != "" {
		host = v
	}
	if v := lastValue(r.Header["X-Forwarded-Proto"]); v != "" {
		https = strings.EqualFold(v, "https")
	}
	return host, https
}

func (g *guard) trusted(remote string) bool {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	a := ap.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(g.proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

func lastValue(values []string) string {
	if len(values) == 0 {
		return ""
	}
	v := values[len(values)-1]
	return strings.TrimSpace(v[strings.LastIndexByte(v, ',')+1:])
}

// knows reports whether a host is loopback or allowed. An address that is not
// loopback must be allowed too: the checks are the same on every interface.
func (g *guard) knows(hp hostPort) bool {
	if hp.host == "localhost" {
		return true
	}
	if a, err := netip.ParseAddr(hp.host); err == nil && a.Zone() == "" && a.Unmap().IsLoopback() {
		return true
	}
	for _, h := range g.hosts {
		if h.host == hp.host && (h.port == "" || h.port == hp.port) {
			return true
		}
	}
	return false
}

// splitHost splits and normalises a Host value: lower case, no brackets, one
// trailing dot dropped.
func splitHost(v string) (hostPort, bool) {
	var hp hostPort
	rest, bracketed := strings.CutPrefix(v, "[")
	if bracketed {
		host, after, ok := strings.Cut(rest, "]")
		if !ok || after != "" && after[0] != ':' {
			return hp, false
		}
		a, err := netip.ParseAddr(host)
		if err != nil || !a.Is6() {
			return hp, false
		}
		hp.host, hp.port = a.String(), strings.TrimPrefix(after, ":")
		return hp, validPort(hp.port)
	}
	if strings.Count(v, ":") > 1 {
		a, err := netip.ParseAddr(v) // a bare IPv6 address, as people write it in settings
		if err != nil {
			return hp, false
		}
		return hostPort{host: a.String()}, true
	}
	host, port, _ := strings.Cut(v, ":")
	hp = hostPort{host: strings.TrimSuffix(lowered(host), "."), port: port}
	return hp, validName(hp.host) && validPort(port)
}

// lowered saves the allocation where nothing changes.
func lowered(v string) string {
	for i := range len(v) {
		if c := v[i]; c >= 'A' && c <= 'Z' {
			return strings.ToLower(v)
		}
	}
	return v
}

func validName(v string) bool {
	for i := range len(v) {
		c := v[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return v != ""
}

func validPort(v string) bool {
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return len(v) <= 5
}

// normalOrigin brings an origin into one form: scheme://host[:port] in lower
// case, without the scheme's own port. "null" and everything with a path is
// no origin.
func normalOrigin(v string) (string, bool) {
	scheme, rest, ok := strings.Cut(v, "://")
	scheme = lowered(scheme)
	if !ok || scheme == "" || strings.ContainsAny(rest, "/?#@") {
		return "", false
	}
	if scheme != "http" && scheme != "https" {
		// An editor's or an extension's own scheme.
		return scheme + "://" + lowered(rest), rest != ""
	}
	hp, ok := splitHost(rest)
	if !ok {
		return "", false
	}
	return scheme + "://" + joinHost(hp, defaultPort(scheme)), true
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// joinHost writes a host with its port unless that is the one left out.
func joinHost(hp hostPort, leaveOut string) string {
	host := hp.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if hp.port == "" || hp.port == leaveOut {
		return host
	}
	return net.JoinHostPort(hp.host, hp.port)
}

// sameOrigin reports whether a normalised origin is the very host and port
// that the request went to. Behind a proxy that ends TLS both schemes are
// possible; after TLS only https is.
func sameOrigin(origin string, own hostPort, https bool) bool {
	if origin == "https://"+joinHost(own, "443") {
		return true
	}
	return !https && origin == "http://"+joinHost(own, "80")
}

// corsHeaders writes what a browser wants to see on an answer to an allowed
// origin.
func corsHeaders(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id, Retry-After")
}

// preflight answers OPTIONS from an allowed origin.
func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	allowed := "Content-Type, Accept, Authorization, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID, traceparent, tracestate"
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		// Mcp-Param-* cannot be listed ahead: what is asked for is granted.
		if name = strings.TrimSpace(name); len(name) > 10 && strings.EqualFold(name[:10], "mcp-param-") && legalToken(name) {
			allowed += ", " + name
		}
	}
	h.Set("Access-Control-Allow-Headers", allowed)
	h.Set("Access-Control-Max-Age", "600")
	h.Add("Vary", "Access-Control-Request-Headers")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	w.WriteHeader(http.StatusNoContent)
}

// legalToken: an RFC 9110 field name, as far as ours go.
func legalToken(v string) bool {
	for i := range len(v) {
		c := v[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return v != ""
}
