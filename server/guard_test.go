package server

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
)

// The matrix of hosts and origins.
func TestGuardHosts(t *testing.T) {
	const ok, misdirected, bad = http.StatusOK, http.StatusMisdirectedRequest, http.StatusBadRequest
	tests := []struct {
		host string
		o    GuardOptions
		want int
	}{
		{"127.0.0.1:8931", GuardOptions{}, ok},
		{"localhost:8931", GuardOptions{}, ok},
		{"[::1]:8931", GuardOptions{}, ok},
		{"[::1]", GuardOptions{}, ok},
		{"LOCALHOST:8931", GuardOptions{}, ok},
		{"localhost", GuardOptions{}, ok},
		{"localhost.", GuardOptions{}, ok},
		{"localhost.:8931", GuardOptions{}, ok},
		{"localhost:1", GuardOptions{}, ok},
		{"127.0.0.2", GuardOptions{}, ok},
		{"[::ffff:127.0.0.1]:80", GuardOptions{}, ok},
		{"evil.test", GuardOptions{}, misdirected},
		{"localhost.evil.test", GuardOptions{}, misdirected},
		{"evil.localhost", GuardOptions{}, misdirected},
		{"localhost..", GuardOptions{}, misdirected},
		{"127.0.0.1.nip.io", GuardOptions{}, misdirected},
		{"2130706433", GuardOptions{}, misdirected},
		{"0x7f000001", GuardOptions{}, misdirected},
		{"127.1", GuardOptions{}, misdirected},
		{"0.0.0.0:8931", GuardOptions{}, misdirected},
		{"192.168.1.5:8931", GuardOptions{}, misdirected},
		{"[::]:8931", GuardOptions{}, misdirected},
		{"[fe80::1]", GuardOptions{}, misdirected},
		{"", GuardOptions{}, bad},
		{"a b", GuardOptions{}, bad},
		{"a:b:c", GuardOptions{}, bad},
		{"[::1", GuardOptions{}, bad},
		{"[::1]x", GuardOptions{}, bad},
		{"[evil.test]", GuardOptions{}, bad},
		{"[::1%25eth0]:80", GuardOptions{}, misdirected},
		{"localhost:99999999", GuardOptions{}, bad},
		{"localhost:http", GuardOptions{}, bad},
		{"user@localhost", GuardOptions{}, bad},
		{"localhost/", GuardOptions{}, bad},
		{"lоcalhost", GuardOptions{}, bad}, // a Cyrillic о
		{"host.docker.internal:8931", GuardOptions{}, misdirected},
		{"host.docker.internal:8931", GuardOptions{AllowedHosts: []string{"host.docker.internal"}}, ok},
		{"host.docker.internal", GuardOptions{AllowedHosts: []string{"Host.Docker.Internal."}}, ok},
		{"host.docker.internal:8931", GuardOptions{AllowedHosts: []string{"host.docker.internal:8931"}}, ok},
		{"host.docker.internal:9000", GuardOptions{AllowedHosts: []string{"host.docker.internal:8931"}}, misdirected},
		{"192.168.1.5:8931", GuardOptions{AllowedHosts: []string{"192.168.1.5"}}, ok},
		{"[fd00::5]:8931", GuardOptions{AllowedHosts: []string{"[fd00::5]"}}, ok},
		{"[fd00::5]:8931", GuardOptions{AllowedHosts: []string{"fd00:0::5"}}, ok},
		{"gw.acme.test", GuardOptions{PublicURL: "https://gw.acme.test"}, ok},
		{"gw.acme.test", GuardOptions{PublicURL: "https://gw.acme.test:8443/x"}, ok},
		{"gw.acme.test:8443", GuardOptions{PublicURL: "https://gw.acme.test"}, ok},
		{"xgw.acme.test", GuardOptions{PublicURL: "https://gw.acme.test"}, misdirected},
	}
	for _, tt := range tests {
		s := newServer(t, echo, func(o *Options) { o.Guard = tt.o })
		r := modernPost(modernBody("1", "tools/list", ""))
		r.Host = tt.host
		w := do(s, r)
		if w.Code != tt.want {
			t.Errorf("%q with %+v: %d, want %d: %s", tt.host, tt.o, w.Code, tt.want, w.Body)
		}
		if w.Code == misdirected && !strings.Contains(w.Body.String(), "allowedHosts") {
			t.Errorf("%q: the text does not name the setting: %s", tt.host, w.Body)
		}
		if w.Code != ok && decode(t, w.Body.Bytes()).ID != nil {
			t.Errorf("%q: an id in %s", tt.host, w.Body)
		}
	}
}

func TestGuardOrigins(t *testing.T) {
	const app = "https://app.example.com"
	tests := []struct {
		host, origin string
		o            GuardOptions
		want         int
		cors         bool
	}{
		{"localhost:8931", "https://evil.test", GuardOptions{}, 403, false},
		{"localhost:8931", "null", GuardOptions{}, 403, false},
		{"localhost:8931", "", GuardOptions{}, 403, false},
		{"localhost:8931", "http://localhost:6274", GuardOptions{}, 403, false},
		{"localhost:8931", "http://localhost:6274", GuardOptions{AllowedOrigins: []string{"http://localhost:6274"}}, 200, true},
		{"localhost:8931", "http://localhost:8931", GuardOptions{}, 200, false},
		{"localhost:8931", "HTTP://LOCALHOST:8931", GuardOptions{}, 200, false},
		{"localhost:8931", "http://127.0.0.1:8931", GuardOptions{}, 403, false},
		{"localhost:8931", "http://localhost:8931/", GuardOptions{}, 403, false},
		{"localhost:8931", "http://localhost:8931@evil.test", GuardOptions{}, 403, false},
		{"localhost:8931", "http://localhost:8931.evil.test", GuardOptions{}, 403, false},
		{"localhost", "http://localhost", GuardOptions{}, 200, false},
		{"localhost", "http://localhost:80", GuardOptions{}, 200, false},
		{"[::1]:8931", "http://[::1]:8931", GuardOptions{}, 200, false},
		{"gw.acme.test", "https://gw.acme.test", GuardOptions{PublicURL: "https://gw.acme.test"}, 200, true},
		{"localhost:8931", "https://gw.acme.test", GuardOptions{PublicURL: "https://gw.acme.test"}, 200, true},
		{"localhost:8931", app, GuardOptions{AllowedOrigins: []string{app}}, 200, true},
		{"localhost:8931", "https://APP.example.com:443", GuardOptions{AllowedOrigins: []string{app}}, 200, true},
		{"localhost:8931", "http://app.example.com", GuardOptions{AllowedOrigins: []string{app}}, 403, false},
		{"localhost:8931", "https://app.example.com:8443", GuardOptions{AllowedOrigins: []string{app}}, 403, false},
		{"localhost:8931", "https://app.example.com.evil.test", GuardOptions{AllowedOrigins: []string{app}}, 403, false},
		{"localhost:8931", "vscode-webview://abc", GuardOptions{}, 403, false},
		{"localhost:8931", "vscode-webview://abc", GuardOptions{AllowedOrigins: []string{"vscode-webview://abc"}}, 200, true},
	}
	for _, tt := range tests {
		s := newServer(t, echo, func(o *Options) { o.Guard = tt.o })
		r := modernPost(modernBody("1", "tools/list", ""), "Origin", tt.origin)
		r.Host = tt.host
		w := do(s, r)
		if w.Code != tt.want || (w.Header().Get("Access-Control-Allow-Origin") != "") != tt.cors {
			t.Errorf("host %q origin %q: %d %v, want %d", tt.host, tt.origin, w.Code, w.Header(), tt.want)
		}
		if w.Code == 403 && !strings.Contains(w.Body.String(), "allowedOrigins") {
			t.Errorf("the text does not name the setting: %s", w.Body)
		}
	}
}

// Two Origin headers are refused, whatever they say.
func TestGuardTwoOrigins(t *testing.T) {
	s := newServer(t, echo, nil)
	r := modernPost(modernBody("1", "tools/list", ""), "Origin", "http://127.0.0.1:8931")
	r.Header.Add("Origin", "https://evil.test")
	if w := do(s, r); w.Code != 403 {
		t.Errorf("%d", w.Code)
	}
}

// The same checks hold on every path and method, before the body is read.
func TestGuardIsEverywhere(t *testing.T) {
	s := newServer(t, echo, func(o *Options) { o.Routes = map[string]http.Handler{"/metrics": http.NotFoundHandler()} })
	for _, path := range []string{"/mcp", "/mcp/", "/mcp/p/x", "/", "/healthz", "/readyz", "/metrics", "/.well-known/x", "/nowhere"} {
		for _, method := range []string{"GET", "POST", "OPTIONS", "DELETE", "HEAD", "TRACE", "FOO"} {
			r := post("{")
			r.Method, r.URL.Path = method, path
			r.Host = "evil.test"
			if w := do(s, r); w.Code != http.StatusMisdirectedRequest {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
			r.Host = "localhost"
			r.Header.Set("Origin", "https://evil.test")
			if w := do(s, r); w.Code != http.StatusForbidden {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
}

func TestTrustedProxies(t *testing.T) {
	o := GuardOptions{TrustedProxies: []string{"10.0.0.0/8", "::1"}, AllowedHosts: []string{"gw.acme.test"}}
	tests := []struct {
		remote, host, forwarded, proto, origin string
		want                                   int
	}{
		{"10.1.2.3:5", "internal:8931", "gw.acme.test", "https", "", 200},
		{"[::1]:5", "internal:8931", "gw.acme.test", "", "", 200},
		{"[::ffff:10.1.2.3]:5", "internal:8931", "gw.acme.test", "", "", 200},
		{"10.1.2.3:5", "internal:8931", "", "", "", 421},
		{"10.1.2.3:5", "localhost", "evil.test", "", "", 421},
		{"10.1.2.3:5", "internal", "evil.test, gw.acme.test", "", "", 200},
		{"10.1.2.3:5", "internal", "gw.acme.test, evil.test", "", "", 421},
		{"192.0.2.1:5", "internal:8931", "gw.acme.test", "https", "", 421}, // nobody's word
		{"192.0.2.1:5", "gw.acme.test", "evil.test", "", "", 200},
		{"nonsense", "internal:8931", "gw.acme.test", "", "", 421},
		{"10.1.2.3:5", "internal", "gw.acme.test", "https", "https://gw.acme.test", 200},
		{"10.1.2.3:5", "internal", "gw.acme.test", "https", "http://gw.acme.test", 403},
	}
	for _, tt := range tests {
		s := newServer(t, echo, func(op *Options) { op.Guard = o })
		r := modernPost(modernBody("1", "tools/list", ""))
		r.RemoteAddr, r.Host = tt.remote, tt.host
		for name, v := range map[string]string{"X-Forwarded-Host": tt.forwarded, "X-Forwarded-Proto": tt.proto, "Origin": tt.origin} {
			if v != "" {
				r.Header.Set(name, v)
			}
		}
		if w := do(s, r); w.Code != tt.want {
			t.Errorf("%+v: %d %s", tt, w.Code, w.Body)
		}
	}
}

func TestOriginAfterTLS(t *testing.T) {
	s := newServer(t, echo, nil)
	r := modernPost(modernBody("1", "tools/list", ""), "Origin", "http://127.0.0.1:8931")
	r.TLS = &tls.ConnectionState{}
	if w := do(s, r); w.Code != 403 {
		t.Errorf("a page without TLS is another origin: %d", w.Code)
	}
	r = modernPost(modernBody("1", "tools/list", ""), "Origin", "https://127.0.0.1:8931")
	r.TLS = &tls.ConnectionState{}
	if w := do(s, r); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

// All wrong settings are named at once.
func TestGuardSettings(t *testing.T) {
	_, err := newGuard(GuardOptions{
		AllowedHosts: []string{"ok.test", "http://no.test", "a b"}, AllowedOrigins: []string{"https://ok.test", "ok.test", "https://x/y", "null", "*"},
		PublicURL: "gw.acme.test", TrustedProxies: []string{"10.0.0.0/8", "proxy.test"},
	})
	want := strings.Join([]string{
		`allowedHosts[1]: "http://no.test" is not a host name or address, with or without a port`,
		`allowedHosts[2]: "a b" is not a host name or address, with or without a port`,
		`allowedOrigins[1]: "ok.test" is not an origin such as https://app.example.com`,
		`allowedOrigins[2]: "https://x/y" is not an origin such as https://app.example.com`,
		`allowedOrigins[3]: "null" is not an origin such as https://app.example.com`,
		`allowedOrigins[4]: "*" is not an origin such as https://app.example.com`,
		`publicUrl: "gw.acme.test" is not an http(s) URL with a host`,
		`trustedProxies[1]: "proxy.test" is not an address or prefix`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if _, err := New(Options{CoreOptions: CoreOptions{Caller: callFunc(echo), Catalogues: newCatalogues(basicCatalogue())}, Guard: GuardOptions{PublicURL: "x"}}); err == nil {
		t.Error("New takes a wrong setting")
	}
}

func FuzzHost(f *testing.F) {
	for _, v := range []string{"localhost", "[::1]:80", "127.0.0.1:1", "evil.test", "localhost.", "[", "a:b:c", "::1", "LOCALHOST:8931"} {
		f.Add(v)
	}
	g, err := newGuard(GuardOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, v string) {
		hp, ok := splitHost(v)
		if !ok || !g.knows(hp) {
			return
		}
		// What passes can only be spelled in these ways.
		name := strings.ToLower(v)
		for _, start := range []string{"localhost", "127.", "[::1]", "[::ffff:", "[", "::1", "::ffff", "0:0"} {
			if strings.HasPrefix(name, start) || strings.Contains(name, "::") {
				return
			}
		}
		t.Errorf("%q passes as %+v", v, hp)
	})
}
