package a2a

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestClassify(t *testing.T) {
	tests := map[addressClass][]string{
		addressPublic: {"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2001:4860:4860::8888", "64:ff9b::808:808", "2002:808:808::1",
			"64:ff9b:1::808:808", "64:ff9b:1:808:8:800::", "::ffff:0:8.8.8.8", "2001:0:4136:e378::f7f7:f7f7", "2001:db8::5efe:808:808"},
		addressLoopback: {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
			"64:ff9b:1::7f00:1", "::ffff:0:127.0.0.1", "2001:0:4136:e378::80ff:fffe"},
		addressPrivate:   {"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1", "fc00::1", "fd12::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:c0a8:1::"},
		addressLinkLocal: {"169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.0.1"},
		addressMetadata: {"169.254.169.254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "0:0:0:0:0:ffff:a9fe:a9fe", "::169.254.169.254",
			"64:ff9b::169.254.169.254", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:7a9:fe:a9fe::", "64:ff9b:1:7:a9:fea9:fe00::", "::ffff:0:a9fe:a9fe", "2002:a9fe:a9fe::1", "2002:a9fe:a9fe::",
			"2001:0:4136:e378:8000:63bf:5601:5601", "2001:0:a9fe:a9fe::f7f7:f7f7", "2001:db8::5efe:a9fe:a9fe", "fe80::200:5efe:169.254.169.254", "fd00:ec2::254", "fd00:0ec2:0::254%eth0", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "64:ff9b::a9fe:a9fe"},
		addressUnspecified: {"0.0.0.0", "::", "::ffff:0.0.0.0"},
		addressReserved:    {"0.1.2.3", "224.0.0.1", "239.1.1.1", "ff02::1", "255.255.255.255", "240.0.0.1", "192.0.0.1"},
	}
	for want, list := range tests {
		for _, s := range list {
			if got := classify(netip.MustParseAddr(s)); got != want {
				t.Errorf("%s is %s, want %s", s, got, want)
			}
		}
	}
}

// TestAddressSpellings: an address is known in every spelling that a resolver
// takes for one, and nothing else is taken for an address.
func TestAddressSpellings(t *testing.T) {
	for spelling, want := range map[string]string{
		"169.254.169.254": "169.254.169.254", "2852039166": "169.254.169.254", "0xa9fea9fe": "169.254.169.254", "0XA9FEA9FE": "169.254.169.254",
		"025177524776": "169.254.169.254", "0251.0376.0251.0376": "169.254.169.254", "0xa9.0xfe.0xa9.0xfe": "169.254.169.254", "169.16689662": "169.254.169.254",
		"169.254.43518": "169.254.169.254", "0251.0xfe.43518": "169.254.169.254", "169.254.169.254.": "169.254.169.254", "127.1": "127.0.0.1", "0": "0.0.0.0",
		"2130706433": "127.0.0.1", "0x7f.1": "127.0.0.1", "0x": "0.0.0.0", "0xabcdef01": "171.205.239.1", "[": "", "": "", ".": "", "1.2.3.4.5": "", "256.1.1.1": "", "1.2.3.256": "",
		"4294967296": "", "1.16777216": "", "1.2.65536": "", "08.1.1.1": "", "0b1.1.1.1": "", "1_0.1": "", "+1.1": "", "a.b": "", "1.a": "", "0xg": "", "::1": "::1", "fe80::1%eth0": "fe80::1%eth0",
	} {
		got, ok := addressOf(spelling)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q is %v (%v), want %q", spelling, got, ok, want)
		}
	}
}

// TestMetadataInAnySpelling: neither configured loosely, nor redirected to, nor
// advertised, nor behind a proxy is a metadata or link-local address called.
func TestMetadataInAnySpelling(t *testing.T) {
	hosts := []string{
		"169.254.169.254", "2852039166", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "0251.0376.0251.0376", "0251.254.43518", "169.16689662",
		"[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::1]", "[::ffff:0:a9fe:a9fe]",
		"[2001:0:808:808::5601:5601]", "[fd00:ec2::254]", "[fd00:ec2::254%25lo]", "[fd20:ce::254]", "100.100.100.200", "1684300104", "168.63.129.16", "192.0.0.192",
		"[fe80::1]", "[fe80::1%25lo]", "[fe80::1%25eth0]", "[::ffff:169.254.7.7]", "169.254.1799",
	}
	asked := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.RequestURI }))
	defer proxy.Close()
	through, _ := url.Parse(proxy.URL)
	home := newCardServer(t)
	for _, host := range hosts {
		target := "http://" + host + "/latest/meta-data"
		home.on(current, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusFound)
		})
		a := newAgent(t, AgentConfig{URL: home.URL})
		_, _ = a.FetchCard(t.Context())
		if got := a.Status(); got.State != AgentBlockedOrigin || !strings.Contains(got.Reason, "which is not called") {
			t.Errorf("redirected to %s: %s: %s", host, got.State, got.Reason)
		}
		configured, _ := url.Parse("http://agent.invalid/")
		transport, err := NewTransport(TransportPolicy{Configured: configured, Proxy: through})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		var coded *Error
		if !errors.As(err, &coded) || coded.Cause != CauseUnavailable || !coded.Unsent {
			t.Errorf("behind a proxy, %s: %v %v", host, resp, err)
		}
		transport.CloseIdleConnections()
		for _, policy := range []URLPolicy{PolicyAuto, PolicyCard} {
			for _, in := range chooseInterfaces(oneInterface(target), testRules(t, "http://agents.internal:8080/", policy)).usable {
				if u, _ := url.Parse(in.URL); u.Hostname() != "agents.internal" {
					t.Errorf("advertised %s: %+v is called", host, in)
				}
			}
		}
	}
	if len(asked) != 0 {
		t.Errorf("the proxy was asked for %s", <-asked)
	}
}

// TestAddressPolicy has who may be dialled from where (checklist 64).
func TestAddressPolicy(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("# names\n127.0.0.1 localhost\n127.0.1.1\tmachine.lan machine # me\n10.0.0.9 agents.internal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		configured string
		allow      []string
		host       string
		ip         string
		ok         bool
	}{
		{"agents.example", nil, "agents.example", "93.184.216.34", true},
		{"agents.example", nil, "agents.example", "10.0.0.1", true}, // a private agent, configured by name
		{"agents.example", nil, "agents.example", "127.0.0.1", false},
		{"agents.example", nil, "agents.example", "::1", false},
		{"agents.example", []string{"agents.example"}, "agents.example", "127.0.0.1", true},
		{"agents.example", nil, "agents.example", "169.254.169.254", false},
		{"agents.example", nil, "agents.example", "fd00:ec2::254", false},
		{"agents.example", nil, "agents.example", "100.100.100.200", false},
		{"agents.example", nil, "agents.example", "169.254.7.7", false},
		{"agents.example", nil, "agents.example", "fe80::1", false},
		{"agents.example", nil, "agents.example", "0.0.0.0", false},
		{"agents.example", nil, "agents.example", "224.0.0.1", false},
		{"agents.example", []string{"agents.example"}, "agents.example", "169.254.169.254", false}, // a name never leads there
		{"agents.example", nil, "other.example", "93.184.216.34", true},                            // a redirect to a public host
		{"agents.example", nil, "other.example", "10.0.0.1", false},
		{"agents.example", nil, "other.example", "127.0.0.1", false},
		{"agents.example", []string{"other.example"}, "other.example", "10.0.0.1", true},
		{"agents.example", []string{"other.example:8080"}, "other.example", "10.0.0.1", false}, // port 80 is dialled here
		{"agents.example", []string{"10.0.0.1"}, "10.0.0.1", "10.0.0.1", true},
		{"agents.example", nil, "10.0.0.1", "10.0.0.1", false},
		{"agents.example", nil, "localhost", "127.0.0.1", false},
		{"agents.example", nil, "127.0.0.1", "127.0.0.1", false},
		{"machine.lan", nil, "machine.lan", "127.0.1.1", true}, // the operator's own hosts file says so
		{"machine.lan", nil, "machine.lan", "127.0.0.1", false},
		{"agents.internal", nil, "agents.internal", "127.0.0.1", false},
		{"127.0.0.1", nil, "127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", nil, "localhost", "::1", true},
		{"localhost", nil, "localhost", "127.0.0.1", true},
		{"agent.localhost", nil, "agent.localhost", "127.0.0.1", true},
		{"0.0.0.0", nil, "0.0.0.0", "0.0.0.0", true},
		{"localhost", nil, "evil.example", "127.0.0.1", false},
		{"localhost", nil, "10.0.0.1", "10.0.0.1", false},
		{"localhost", nil, "localhost", "169.254.169.254", false},
		{"10.0.0.5", nil, "10.0.0.5", "10.0.0.5", true},
		{"10.0.0.5", nil, "10.0.0.6", "10.0.0.6", false},
		{"169.254.169.254", nil, "169.254.169.254", "169.254.169.254", true}, // configured as such
		{"169.254.10.1", nil, "169.254.10.1", "169.254.10.1", true},
		{"169.254.10.1", nil, "169.254.169.254", "169.254.169.254", false},
	}
	for _, tt := range tests {
		allow, err := parseAllowHosts(tt.allow)
		if err != nil {
			t.Fatal(err)
		}
		p := addressPolicy{configured: canonicalHost(tt.configured), allow: allow, hostsFile: hosts}
		err = p.check(tt.host, "80", netip.MustParseAddr(tt.ip))
		if (err == nil) != tt.ok {
			t.Errorf("configured %s, allow %q: %s at %s gives %v", tt.configured, tt.allow, tt.host, tt.ip, err)
		}
		var blocked *BlockedAddressError
		if err != nil && (!errors.As(err, &blocked) || !strings.Contains(err.Error(), tt.ip)) {
			t.Errorf("error is %v", err)
		}
	}
}

// fakeNames resolves every name to one address, from memory.
func fakeNames(t *testing.T, ip *atomic.Pointer[netip.Addr]) *net.Resolver {
	t.Helper()
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { // ends with the pipe, which the resolver closes
			defer server.Close()
			for answerName(server, *ip.Load()) == nil {
			}
		}()
		return client, nil
	}}
}

// answerName answers one query in the framing of DNS over TCP, which the
// resolver uses on a connection that is no packet connection.
func answerName(conn net.Conn, ip netip.Addr) error {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	query := make([]byte, int(size[0])<<8|int(size[1]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return err
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	q := m.Questions[0]
	if q.Type == dnsmessage.TypeA && ip.Is4() {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: ip.As4()}}}
	}
	if q.Type == dnsmessage.TypeAAAA && ip.Is6() {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}}}
	}
	packed, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = conn.Write(append([]byte{byte(len(packed) >> 8), byte(len(packed))}, packed...))
	return err
}

// TestRebinding: a server listens on loopback; the agent's own name suddenly
// points there, or to a metadata service. What is dialled is what is judged.
func TestRebinding(t *testing.T) {
	var reached atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer s.Close()
	at, _ := url.Parse(s.URL)
	var ip atomic.Pointer[netip.Addr]
	get := func(allow ...string) error {
		t.Helper()
		configured, _ := url.Parse("http://agent.example:" + at.Port())
		transport, err := NewTransport(TransportPolicy{Configured: configured, AllowHosts: allow, Resolver: fakeNames(t, &ip)})
		if err != nil {
			t.Fatal(err)
		}
		defer transport.CloseIdleConnections()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, configured.String(), nil)
		resp, err := transport.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	for address, class := range map[string]string{
		"127.0.0.1": "loopback", "169.254.169.254": "metadata service", "169.254.3.4": "link-local", "0.0.0.0": "unspecified", "224.0.0.1": "reserved",
		"::1": "loopback", "fe80::1": "link-local", "fd00:ec2::254": "metadata service", "64:ff9b::a9fe:a9fe": "metadata service", "2002:7f00:1::": "loopback", "::": "unspecified",
	} {
		addr := netip.MustParseAddr(address)
		ip.Store(&addr)
		var coded *Error
		err := get()
		if !errors.As(err, &coded) || coded.Cause != CauseUnavailable || !coded.Unsent ||
			!strings.HasPrefix(coded.Message, fmt.Sprintf("agent.example resolves to %s, a %s address, which is not called", address, class)) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if reached.Load() != 0 {
		t.Fatal("a refused address was reached")
	}
	addr := netip.MustParseAddr("127.0.0.1")
	ip.Store(&addr)
	if err := get("agent.example"); err != nil || reached.Load() != 1 {
		t.Errorf("an allowed name is not reached: %v", err)
	}
}

// TestClientCertificateStaysHome: two servers ask for a client certificate;
// only the configured origin is shown one.
func TestClientCertificateStaysHome(t *testing.T) {
	var shown [2]atomic.Int32
	var servers [2]*httptest.Server
	for i := range servers {
		servers[i] = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown[i].Add(int32(len(r.TLS.PeerCertificates))) }))
		servers[i].TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		servers[i].StartTLS()
		defer servers[i].Close()
	}
	roots := x509.NewCertPool()
	roots.AddCert(servers[0].Certificate())
	pair := servers[0].TLS.Certificates[0]
	home, _ := url.Parse(servers[0].URL)
	transport, err := NewTransport(TransportPolicy{Configured: home, TLS: &tls.Config{RootCAs: roots, ServerName: "example.com",
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	for _, s := range servers {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if shown[0].Load() != 1 || shown[1].Load() != 0 {
		t.Errorf("certificates shown: %d at home, %d elsewhere", shown[0].Load(), shown[1].Load())
	}
}

// TestProxy: the environment is not read; a given proxy is used, on whatever
// address it is, and metadata addresses stay refused behind it.
func TestProxy(t *testing.T) {
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked.Store(r.RequestURI) }))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	through, _ := url.Parse(proxy.URL)
	get := func(target string, proxy *url.URL) error {
		t.Helper()
		configured, _ := url.Parse("http://agent.invalid/")
		transport, err := NewTransport(TransportPolicy{Configured: configured, Proxy: proxy})
		if err != nil {
			t.Fatal(err)
		}
		defer transport.CloseIdleConnections()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		resp, err := transport.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := get("http://agent.invalid/x", nil); err == nil || asked.Load() != nil {
		t.Errorf("the environment's proxy was used: %v", asked.Load())
	}
	if err := get("http://agent.invalid/x", through); err != nil || asked.Load() != "http://agent.invalid/x" {
		t.Errorf("the given proxy was not used: %v, %v", asked.Load(), err)
	}
	if err := get("http://169.254.169.254/x", through); err == nil || asked.Load() != "http://agent.invalid/x" {
		t.Errorf("a metadata address went to the proxy: %v", err)
	}
}

func TestTransportNeedsAnAddress(t *testing.T) {
	if _, err := NewTransport(TransportPolicy{}); err == nil {
		t.Error("accepted no address")
	}
	at, _ := url.Parse("http://a.test")
	if _, err := NewTransport(TransportPolicy{Configured: at, AllowHosts: []string{"a/b"}}); err == nil {
		t.Error("accepted a bad allowHosts entry")
	}
}
