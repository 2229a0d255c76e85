package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writePair writes a self-signed client certificate of that name.
func writePair(t *testing.T, certFile, keyFile, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, certFile, "CERTIFICATE", der)
	writePEM(t, keyFile, "PRIVATE KEY", pkcs8)
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestMTLSHandshake has a server tell which certificate it was shown; the
// files are replaced, first by a broken pair, then by a good one.
func TestMTLSHandshake(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()

	dir := t.TempDir()
	cert, key, ca := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), filepath.Join(dir, "ca.pem")
	writePair(t, cert, key, "first")
	writePEM(t, ca, "CERTIFICATE", server.Certificate().Raw)
	auth, err := FromConfig(Spec{Type: "mtls", CertFile: cert, KeyFile: key, CAFile: ca, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	m := auth.(*MTLS)
	shown := func() string {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: m.TLSConfig()}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	if got := shown(); got != "first" {
		t.Errorf("server saw %q", got)
	}
	if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shown(); got != "first" {
		t.Errorf("with a broken file the server saw %q", got)
	}
	writePair(t, cert, key, "second")
	if err := os.Chtimes(cert, time.Time{}, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := shown(); got != "second" {
		t.Errorf("after a change the server saw %q", got)
	}
	req := request(t, "https://a.test/")
	if err := m.Authorize(req); err != nil || len(req.Header) != 0 || m.Refresh(t.Context()) {
		t.Errorf("mtls touched the request: %v %v", req.Header, err)
	}
}

func TestMTLSBadFiles(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	writePair(t, cert, key, "x")
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ cert, key, ca, want string }{
		{cert, key, junk, `caFile "` + junk + `": holds no certificate in PEM form`},
		{cert, key, dir + "/no", `caFile "` + dir + `/no": no such file`},
		{junk, key, "", `certFile and keyFile "` + junk + `", "` + key + `": tls: failed to find any PEM data in certificate input`},
	} {
		if _, err := NewMTLS(tt.cert, tt.key, tt.ca, ""); err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}
