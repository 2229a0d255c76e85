package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"a2agate/config"
	"a2agate/fixtures"
)

// with requests a page with a Host and headers, and returns status and body.
func (g *gate) with(t *testing.T, path, host string, headers map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(g.url, "/mcp")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// The certificate is the one of the files, also after they have changed; a
// pair that cannot be used leaves the old one.
func TestTLS(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	issue := func(name string) {
		cert, key := testAuthority().issue(t, name, time.Hour)
		write(t, keyFile, key)
		write(t, certFile, cert)
	}
	issue("first.example.com")
	pool := x509.NewCertPool()
	pool.AddCert(testAuthority().cert)
	g := &gate{t: t, dir: dir, file: filepath.Join(dir, "agents.json"), log: newOutput(), done: make(chan int, 1)}
	g.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}
	write(t, g.file, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"tls":{"certFile":"cert.pem","keyFile":"key.pem"}}`, agent.url))
	g.start(t)
	if !strings.HasPrefix(g.url, "https://127.0.0.1:") {
		t.Fatalf("listens on %s", g.url)
	}
	// The name in the certificate of a new connection, after a call over it.
	name := func() string {
		g.client.CloseIdleConnections()
		resp, err := g.post(t.Context(), "/mcp", "tools/list", "", "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
			t.Errorf("%s over %s: %v", resp.Status, resp.Proto, err)
		}
		return resp.TLS.PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "first.example.com" {
		t.Errorf("the certificate is of %s", got)
	}
	issue("second.example.com")
	if got := name(); got != "second.example.com" {
		t.Errorf("after a change the certificate is of %s", got)
	}
	write(t, certFile, "broken")
	for range 2 {
		if got := name(); got != "second.example.com" {
			t.Errorf("with a broken file the certificate is of %s", got)
		}
	}
	const told = "the changed certificate cannot be used, the old one stays"
	if n := strings.Count(g.log.String(), told); n != 1 {
		t.Errorf("told %d times:\n%s", n, g.log)
	}
	issue("third.example.com")
	if got := name(); got != "third.example.com" {
		t.Errorf("after the repair the certificate is of %s", got)
	}
	// A listen stream over HTTP/2 hears of a change and ends well.
	l := g.listen(t)
	g.edit(t, fmt.Sprintf(`{"agents":{"other":{"url":%q}},"tls":{"certFile":"cert.pem","keyFile":"key.pem"}}`, agent.url), reloaded)
	if m := l.next(t); !strings.HasSuffix(m, "list_changed") {
		t.Errorf("heard %q", m)
	}
}

// A certificate that cannot be used at the start is an error that says so.
func TestTLSThatCannotBe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "cert.pem"), "no certificate")
	write(t, filepath.Join(dir, "key.pem"), "no key")
	_, err := tryWire(t, dir, `{"agents":{"a":{"url":"http://x"}},"tls":{"certFile":"cert.pem","keyFile":"key.pem"}}`)
	if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("tls: the certificate %q with the key %q cannot be used: ", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))) {
		t.Errorf("%v", err)
	}
}

// Under which names and behind which proxies the gateway answers.
func TestNamesAndProxies(t *testing.T) {
	t.Parallel()
	plain := newGate(t, `{`+plainAgent+`}`)
	named := newGate(t, `{`+plainAgent+`,"publicUrl":"https://gate.example.com","allowedHosts":["inner"],"allowedOrigins":["https://app.example.com"]}`)
	behind := newGate(t, `{`+plainAgent+`,"publicUrl":"https://gate.example.com","trustedProxies":["127.0.0.1"]}`)
	if named.url != "https://gate.example.com/mcp" || behind.url != named.url {
		t.Fatalf("say that they listen on %s and %s", named.url, behind.url)
	}
	named.local(t)
	behind.local(t)
	everywhere := newGate(t, `{`+plainAgent+`}`, "--listen", "0.0.0.0:0", "--insecure")
	forwarded := map[string]string{"X-Forwarded-Host": "evil.example.com"}
	// The checks are the same wherever it listens.
	for _, g := range []*gate{plain, everywhere} {
		for host, want := range map[string]int{
			"127.0.0.1:8931": 200, "localhost:8931": 200, "[::1]:8931": 200, "LOCALHOST:8931": 200, "localhost": 200,
			"evil.test": 421, "localhost.evil.test": 421, "127.0.0.1.nip.io": 421, "host.docker.internal:8931": 421,
		} {
			status, body := g.with(t, "/healthz", host, nil)
			if status != want || want == 421 && !strings.Contains(body, "add it to allowedHosts (or set publicUrl)") {
				t.Errorf("%s, Host %s: %d %s, want %d", g.url, host, status, body, want)
			}
		}
		for _, origin := range []string{"https://evil.test", "null", "http://localhost:6274"} {
			status, body := g.with(t, "/healthz", "localhost:8931", map[string]string{"Origin": origin})
			if status != 403 || !strings.Contains(body, "add it to allowedOrigins") {
				t.Errorf("%s, Origin %s: %d %s, want 403", g.url, origin, status, body)
			}
		}
	}
	for _, tt := range []struct {
		name    string
		g       *gate
		host    string
		headers map[string]string
		want    int
	}{
		{"its own address", plain, "", nil, 200},
		{"a foreign name", plain, "gate.example.com", nil, 421},
		{"its public name", named, "gate.example.com", nil, 200},
		{"an allowed name", named, "inner:8080", nil, 200},
		{"another name", named, "evil.example.com", nil, 421},
		{"an allowed origin", named, "", map[string]string{"Origin": "https://app.example.com"}, 200},
		{"another origin", named, "", map[string]string{"Origin": "https://evil.example.com"}, 403},
		{"the origin of its public name", named, "", map[string]string{"Origin": "https://gate.example.com"}, 200},
		{"what nobody trusted says", plain, "", forwarded, 200},
		{"what a trusted proxy says", behind, "", forwarded, 421},
		{"its public name through the proxy", behind, "inner", map[string]string{"X-Forwarded-Host": "gate.example.com"}, 200},
	} {
		if status, body := tt.g.with(t, "/healthz", tt.host, tt.headers); status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, status, body, tt.want)
		}
	}
}

// local makes g's requests go to where it really listens.
func (g *gate) local(t *testing.T) {
	t.Helper()
	g.url = "http://" + g.log.match(t, `listening on \S+ \((\S+)\)`)[1] + "/mcp"
}

// Profiles and levels are for this machine only.
func TestDebugListenIsLoopback(t *testing.T) {
	t.Parallel()
	g := newGate(t, `{`+plainAgent+`,"debugListen":"127.0.0.1:0","log":{"debug":2}}`)
	g.url = "http://" + g.log.match(t, `msg="debug listener" address=(\S+)`)[1] + "/mcp"
	if status, body := g.with(t, "/debug/pprof/", "", nil); status != http.StatusOK || !strings.Contains(body, "goroutine") {
		t.Errorf("profiles: %d %s", status, body)
	}
	status, body := g.with(t, "/debug/log", "", nil)
	var levels map[string]string
	if err := json.Unmarshal([]byte(body), &levels); err != nil || status != http.StatusOK || levels["agents"] != "2" {
		t.Errorf("levels: %d %s", status, body)
	}
	for _, address := range []string{"0.0.0.0:6060", ":6060", "192.0.2.1:6060", "gate.example.com:6060"} {
		_, err := config.Parse("agents.json", []byte(`{`+plainAgent+`,"debugListen":"`+address+`"}`), nil, nil)
		if err == nil || !strings.Contains(err.Error(), "is not on the loopback, and the debug listener shows the contents of the memory") {
			t.Errorf("debugListen %s: %v", address, err)
		}
	}
}
