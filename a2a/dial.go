package a2a

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Limits of a transport that are no settings.
const (
	// connBufferBytes is the size of each of a connection's two buffers. Many
	// connections wait on quiet streams, so memory counts more than speed.
	connBufferBytes = 2 << 10
	// idleConnections bounds the pool to one agent; net/http's default of two
	// would make a new connection for nearly every call under load.
	idleConnections = 32
	// idleTimeout is how long a connection stays in the pool. Client closes
	// it sooner where the agent announces less.
	idleTimeout = 30 * time.Second
	// headerBytes bounds a response's header.
	headerBytes = 256 << 10
	// pingAfter and pingTimeout find dead HTTP/2 connections under streams.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// tcpKeepAlive finds dead connections under HTTP/1.1 streams.
	tcpKeepAlive = 30 * time.Second
)

// TransportPolicy says how one agent is reached.
type TransportPolicy struct {
	// Configured is the agent's configured address. Its origin is the only
	// one that client certificates are shown to.
	Configured *url.URL
	// AllowHosts are other hosts that may be private or loopback, as host or
	// host:port.
	AllowHosts []string
	// DialTimeout bounds TCP and TLS each; 0 is 10 s.
	DialTimeout time.Duration
	// TLS is the base of the TLS configuration; nil for the defaults.
	TLS *tls.Config
	// Proxy is the HTTP proxy to go through; nil goes directly, and the
	// environment is not read. Behind a proxy names are resolved by the
	// proxy, so the address policy then sees literal addresses only.
	Proxy *url.URL
	// Resolver resolves names; nil for the system's.
	Resolver *net.Resolver
	// HostsFile is the file that maps names on this machine; "" for
	// /etc/hosts.
	HostsFile string
}

// Transport is the HTTP transport to one agent. It judges every address at the
// moment it is dialled: metadata services and link-local addresses are refused
// unless configured as such, loopback and private ones unless the agent's own
// host or allowHosts is meant. It keeps the configured origin apart from every
// other host, so that a client certificate is shown to the former only.
type Transport struct {
	policy addressPolicy
	own    webOrigin
	// mine goes to the configured origin, other everywhere else.
	mine, other *http.Transport
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport makes the transport for policy.
func NewTransport(policy TransportPolicy) (*Transport, error) {
	if policy.Configured == nil {
		return nil, errors.New("a transport needs the configured address of its agent")
	}
	allow, err := parseAllowHosts(policy.AllowHosts)
	if err != nil {
		return nil, err
	}
	if policy.DialTimeout <= 0 {
		policy.DialTimeout = defaultDialTimeout
	}
	t := &Transport{own: originOf(policy.Configured)}
	t.policy = addressPolicy{configured: t.own.host, allow: allow, hostsFile: or(policy.HostsFile, "/etc/hosts")}
	if policy.Proxy != nil {
		proxy := originOf(policy.Proxy)
		t.policy.proxy = net.JoinHostPort(proxy.host, proxy.port)
	}
	t.mine = t.transport(policy, policy.TLS.Clone())
	elsewhere := policy.TLS.Clone()
	if elsewhere != nil {
		elsewhere.Certificates, elsewhere.GetClientCertificate, elsewhere.ServerName = nil, nil, ""
	}
	t.other = t.transport(policy, elsewhere)
	return t, nil
}

func (t *Transport) transport(policy TransportPolicy, config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: policy.DialTimeout, KeepAlive: tcpKeepAlive, Resolver: policy.Resolver, ControlContext: t.policy.control}
	made := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialer.DialContext(context.WithValue(ctx, dialledHost{}, addr), network, addr)
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    policy.DialTimeout,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: headerBytes,
		ReadBufferSize:         connBufferBytes,
		WriteBufferSize:        connBufferBytes,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if policy.Proxy != nil {
		made.Proxy = http.ProxyURL(policy.Proxy)
	}
	return made
}

// RoundTrip sends req over the configured origin's connections or the others.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	origin := originOf(req.URL)
	if err := t.policy.checkLiteral(origin); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	if origin != t.own {
		return t.other.RoundTrip(req)
	}
	return t.mine.RoundTrip(req)
}

// CloseIdleConnections closes what is pooled; connections in use close when
// they become idle.
func (t *Transport) CloseIdleConnections() {
	t.mine.CloseIdleConnections()
	t.other.CloseIdleConnections()
}

// dialledHost is the context key of the host:port being dialled.
type dialledHost struct{}

// control judges the address that is about to be connected to; it serves
// net.Dialer.ControlContext, after the name has been resolved.
func (p addressPolicy) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	target, _ := ctx.Value(dialledHost{}).(string)
	if target != "" && target == p.proxy {
		return nil
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return errUnavailable(fmt.Sprintf("an address of the network %q is not called", network), err)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return errUnavailable("an address that cannot be read is not called", err)
	}
	return p.refusal(host, port, ap.Addr())
}

// checkLiteral judges an origin whose host is an address, before any proxy.
func (p addressPolicy) checkLiteral(o webOrigin) error {
	ip, ok := addressOf(o.host)
	if !ok {
		return nil // a name: judged when it is dialled
	}
	return p.refusal(o.host, o.port, ip)
}

// refusal is check with the error type of this package.
func (p addressPolicy) refusal(host, port string, ip netip.Addr) error {
	if err := p.check(host, port, ip); err != nil {
		return errUnavailable(err.Error(), err)
	}
	return nil
}

// errUnavailable is a request that was not made.
func errUnavailable(message string, cause error) *Error {
	return &Error{Cause: CauseUnavailable, Message: message, Unsent: true, Err: cause}
}
