package a2a

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// URLPolicy says what is made of the addresses that a card advertises.
type URLPolicy string

// The url policies.
const (
	// PolicyAuto puts right what cannot be right from here: unspecified,
	// loopback, private and downgraded addresses.
	PolicyAuto URLPolicy = "auto"
	// PolicyCard takes the card's addresses as they stand.
	PolicyCard URLPolicy = "card"
	// PolicyConfigured keeps the path only and calls the configured origin.
	PolicyConfigured URLPolicy = "configured"
)

// webOrigin is a web origin (RFC 6454) in canonical form: lower-case host without
// trailing dot, IP literals in their shortest spelling, the port always set.
type webOrigin struct {
	scheme, host, port string
}

func originOf(u *url.URL) webOrigin {
	o := webOrigin{scheme: strings.ToLower(u.Scheme), host: canonicalHost(u.Hostname()), port: u.Port()}
	if o.port == "" {
		o.port = defaultPort(o.scheme)
	}
	return o
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, ok := addressOf(host); ok {
		return ip.Unmap().String()
	}
	return host
}

// addressOf reads a host that is an IP address, in any spelling that a resolver
// takes for one: the C library reads 2852039166, 0xa9fea9fe and 0251.0376.43518
// as 169.254.169.254 (inet_aton; WHATWG URL, IPv4 parser).
func addressOf(host string) (netip.Addr, bool) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip, true
	}
	host = strings.TrimSuffix(host, ".")
	if last := host[strings.LastIndexByte(host, '.')+1:]; last == "" || last[0] < '0' || last[0] > '9' {
		return netip.Addr{}, false // nearly every name
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		n, err := numberInC(part)
		last := i == len(parts)-1
		if err != nil || !last && n > 255 || last && n >= 1<<(8*(5-len(parts))) {
			return netip.Addr{}, false
		}
		if last {
			sum |= n
		} else {
			sum |= n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

// numberInC reads a decimal, octal (0…) or hexadecimal (0x…) number.
func numberInC(s string) (uint64, error) {
	switch {
	case strings.HasPrefix(s, "0x"), strings.HasPrefix(s, "0X"):
		return strconv.ParseUint("0"+s[2:], 16, 32)
	case len(s) > 1 && s[0] == '0':
		return strconv.ParseUint(s[1:], 8, 32)
	}
	return strconv.ParseUint(s, 10, 32)
}

// same reports whether two origins are one agent's. The names of this
// machine's loopback count as one host: cards say localhost where people
// configure 127.0.0.1. A credential needs more: there may be a listener of
// another's at each of the names, so it goes to equal origins only.
func (o webOrigin) same(p webOrigin) bool {
	if o.scheme != p.scheme || o.port != p.port {
		return false
	}
	return o.host == p.host || isLoopbackHost(o.host) && isLoopbackHost(p.host)
}

// sameOrigin reports whether two URLs have one origin, however it is spelt.
func sameOrigin(a, b *url.URL) bool { return originOf(a) == originOf(b) }

// String spells the origin without a default port.
func (o webOrigin) String() string { return o.scheme + "://" + o.authority() }

func (o webOrigin) authority() string {
	host := o.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if o.port == defaultPort(o.scheme) {
		return host
	}
	return host + ":" + o.port
}

// isLoopbackHost reports whether a host names this machine's loopback by
// itself, without being resolved (RFC 6761, 6.3).
func isLoopbackHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, ok := addressOf(host)
	return ok && ip.Unmap().IsLoopback()
}

func isUnspecifiedHost(host string) bool {
	ip, ok := addressOf(host)
	return ok && ip.Unmap().IsUnspecified()
}

// isPrivateHost reports whether a host is a literal private or link-local
// address. Names are not resolved for it: what a name points to is the dial
// policy's matter.
func isPrivateHost(host string) bool {
	ip, ok := addressOf(host)
	if !ok {
		return false
	}
	c := classify(ip)
	return c == addressPrivate || c == addressLinkLocal
}

// allowHosts are the hosts beside the configured one that may be called,
// without credentials.
type allowHosts []allowedHost

type allowedHost struct {
	host string
	port string // "" for every port
}

// parseAllowHosts reads entries of the form host or host:port; an IPv6
// address with a port stands in brackets.
func parseAllowHosts(entries []string) (allowHosts, error) {
	var out allowHosts
	for i, entry := range entries {
		host, port, err := net.SplitHostPort(entry)
		if err != nil {
			host, port = strings.TrimSuffix(strings.TrimPrefix(entry, "["), "]"), ""
		}
		_, ipErr := netip.ParseAddr(host)
		if host == "" || strings.Trim(port, "0123456789") != "" || strings.ContainsAny(host, "/@?# *") || (ipErr != nil && strings.Contains(host, ":")) {
			return nil, fmt.Errorf("allowHosts[%d]: %q is not host or host:port", i, plainLine(entry, 100))
		}
		out = append(out, allowedHost{host: canonicalHost(host), port: port})
	}
	return out, nil
}

// lists reports whether host with port may be called.
func (a allowHosts) lists(host, port string) bool {
	return slices.ContainsFunc(a, func(e allowedHost) bool {
		return e.host == host && (e.port == "" || e.port == port)
	})
}

// parseHTTPURL reads a configured URL. What it refuses it names, without
// repeating a password.
func parseHTTPURL(field, raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a URL", field)
	case u.User != nil:
		return nil, fmt.Errorf("%s must not hold a user name or password: use auth", field)
	case (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return nil, fmt.Errorf("%s: %q is not an http(s) URL", field, plainLine(raw, 200))
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// splitURL cuts an absolute URL into scheme and authority, path, and query
// with its question mark, so that the pieces can be joined again byte for
// byte. A fragment is dropped.
func splitURL(raw string) (base, path, query string) {
	raw, _, _ = strings.Cut(raw, "#")
	raw, query, found := strings.Cut(raw, "?")
	if found {
		query = "?" + query
	}
	i := strings.Index(raw, "://")
	if i < 0 {
		return "", raw, query
	}
	if j := strings.IndexByte(raw[i+3:], '/'); j >= 0 {
		return raw[:i+3+j], raw[i+3+j:], query
	}
	return raw, "", query
}

// showURL is a URL fit for a reason or a note: without user and with the
// values of its query hidden, since a key may stand there.
func showURL(raw string) string {
	base, path, query := splitURL(raw)
	if i := strings.LastIndexByte(base, '@'); i >= 0 {
		scheme, _, _ := strings.Cut(base, "://")
		base = scheme + "://" + base[i+1:]
	}
	if query != "" {
		query = "?…"
	}
	return plainLine(base+path+query, 300)
}
