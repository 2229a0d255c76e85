package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
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
