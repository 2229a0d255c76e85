package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"a2agate/config"
)

// What check calls good, serve starts with: certificates and keys fit.
func TestCheckLoadsCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := testAuthority().issue(t, "gate.example.com", time.Hour)
	_, other := testAuthority().issue(t, "gate.example.com", time.Hour)
	write(t, filepath.Join(dir, "cert.pem"), cert)
	write(t, filepath.Join(dir, "key.pem"), key)
	write(t, filepath.Join(dir, "other.pem"), other)
	write(t, filepath.Join(dir, "good.json"), `{"tls":{"certFile":"cert.pem","keyFile":"key.pem"},"agents":{
  "a":{"url":"https://x","auth":{"type":"mtls","certFile":"cert.pem","keyFile":"key.pem"}}}}`)
	write(t, filepath.Join(dir, "bad.json"), `{"tls":{"certFile":"cert.pem","keyFile":"other.pem"},"agents":{
  "a":{"url":"https://x","auth":{"type":"mtls","certFile":"cert.pem","keyFile":"other.pem"}},
  "off":{"enabled":false,"url":"https://x","auth":{"type":"mtls","certFile":"cert.pem","keyFile":"other.pem"}}}}`)
	check := func(name string) (code int, stdout, stderr string) {
		return shell{dir: dir}.run(t.Context(), "check", filepath.Join(dir, name))
	}
	if code, out, errs := check("good.json"); code != 0 || !strings.Contains(out, ": ok, 1 agent, ") || errs != "" {
		t.Errorf("good: exit %d, %s%s", code, out, errs)
	}
	code, out, errs := check("bad.json")
	lines := strings.Split(strings.ReplaceAll(errs, dir+string(filepath.Separator), ""), "\n")
	if code != 1 || out != "" || len(lines) != 3 {
		t.Fatalf("bad: exit %d, %s%s", code, out, errs)
	}
	if want := `bad.json:1:8: tls: the certificate "cert.pem" with the key "other.pem" cannot be used: tls: private key does not match public key`; lines[0] != want {
		t.Errorf("got  %s\nwant %s", lines[0], want)
	}
	if want := `bad.json:2:7: agents.a: `; !strings.HasPrefix(lines[1], want) || !strings.Contains(lines[1], "private key does not match public key") {
		t.Errorf("%s, want %s…", lines[1], want)
	}
}

func TestItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, url string
		itself      bool
	}{
		{"127.0.0.1:8931", "http://127.0.0.1:8931/mcp", true},
		{"127.0.0.1:8931", "http://localhost:8931", true},
		{"localhost:8931", "http://127.0.0.1:8931", true},
		{"0.0.0.0:8931", "http://127.0.0.1:8931/x", true},
		{"[::]:8931", "http://[::1]:8931/x", true},
		{"gate.lan:80", "http://GATE.lan:80", true},
		{"127.0.0.1:8931", "http://127.0.0.1:8932", false},
		{"127.0.0.1:8931", "http://127.0.0.2:8931", false},
		{"127.0.0.1:8931", "http://agent.lan:8931", false},
		{"0.0.0.0:8931", "http://10.0.0.1:8931", false},
		{"127.0.0.1:0", "http://127.0.0.1:0", false},
		{"127.0.0.1:8931", "http://127.0.0.1", false},
	} {
		err := itself(&config.Config{Listen: c.listen}, config.Agent{URL: c.url})
		if (err != nil) != c.itself {
			t.Errorf("%s at %s: %v", c.url, c.listen, err)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents.json"), `{"agents":{"a":{"url":"http://127.0.0.1:8931/mcp"}}}`)
	for _, command := range []string{"check", "serve"} {
		code, out, errs := shell{dir: dir}.run(t.Context(), command)
		if want := "agents.a: http://127.0.0.1:8931/mcp is where this gateway listens, not an agent; name an agent's own address, or listen elsewhere with --listen\n"; code != 1 || out != "" || !strings.HasSuffix(errs, want) {
			t.Errorf("%s: exit %d, %s%s", command, code, out, errs)
		}
	}
}
