package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"a2agate/fixtures"
)

// authority signs the certificates of these tests; made once a run.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

var testAuthority = sync.OnceValue(func() authority { return newAuthority("test authority") })

func newAuthority(name string) authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return authority{cert, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// issue makes a certificate for 127.0.0.1 that is good for a while; a negative
// while is over already.
func (a authority) issue(t *testing.T, name string, while time.Duration) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(while),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// newTLSAgent serves the fixture agent over TLS. With clients set only their
// certificates are let in.
func newTLSAgent(t *testing.T, while time.Duration, clients *x509.CertPool) *httptest.Server {
	t.Helper()
	cert, key := testAuthority().issue(t, "agent.example.com", while)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	agent := fixtures.New(fixtures.Options{})
	s := httptest.NewUnstartedServer(agent)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, clients
	}
	s.StartTLS()
	t.Cleanup(func() { agent.Close(); s.Close() })
	return s
}

// strangers are authorities that sign no certificate of ours.
func strangers(*testing.T) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(newAuthority("somebody else").cert)
	return pool
}

// certificateAuth writes a client certificate into dir and returns the auth
// that names it.
func certificateAuth(t *testing.T, dir, serverName string) string {
	t.Helper()
	cert, key := testAuthority().issue(t, "gateway", time.Hour)
	write(t, filepath.Join(dir, "client.pem"), cert)
	write(t, filepath.Join(dir, "client.key"), key)
	write(t, filepath.Join(dir, "ca.pem"), testAuthority().pem)
	name := ""
	if serverName != "" {
		name = fmt.Sprintf(`,"serverName":%q`, serverName)
	}
	return `{"type":"mtls","certFile":"client.pem","keyFile":"client.key","caFile":"ca.pem"` + name + `}`
}
