package credential

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"time"
)

// MTLS is a client certificate. It puts nothing on a request: the transport of
// the agent presents the certificate in the handshake (TLSConfig).
type MTLS struct {
	certFile, keyFile string
	config            *tls.Config

	mu      sync.Mutex // guards what follows
	current *tls.Certificate
	stamp   [2]fileStamp
}

// fileStamp tells whether a file has changed.
type fileStamp struct {
	modified time.Time
	size     int64
}

// NewMTLS loads the certificate and key (PEM files) and, when caFile is set,
// the authorities that the agent's own certificate is checked against in place
// of the system's. The certificate is read again when its files change; a
// pair that does not load then leaves the old one in use. serverName, when
// set, is the name expected in the agent's certificate.
func NewMTLS(certFile, keyFile, caFile, serverName string) (*MTLS, error) {
	var problems []string
	if certFile == "" {
		problems = append(problems, "certFile is missing: an mtls credential needs it")
	}
	if keyFile == "" {
		problems = append(problems, "keyFile is missing: an mtls credential needs it")
	}
	if len(problems) > 0 {
		return nil, errSpec(KindMTLS, problems)
	}
	m := &MTLS{certFile: certFile, keyFile: keyFile}
	if err := m.load(); err != nil {
		return nil, errSpec(KindMTLS, []string{"certFile and keyFile " + quote(certFile) + ", " + quote(keyFile) + ": " + fileProblem(err)})
	}
	m.config = &tls.Config{
		MinVersion:           tls.VersionTLS12,
		ServerName:           serverName,
		GetClientCertificate: m.certificate,
	}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, errSpec(KindMTLS, []string{"caFile " + quote(caFile) + ": " + fileProblem(err)})
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errSpec(KindMTLS, []string{"caFile " + quote(caFile) + ": holds no certificate in PEM form"})
		}
		m.config.RootCAs = pool
	}
	return m, nil
}

// Authorize adds nothing.
func (*MTLS) Authorize(*http.Request) error { return nil }

// Refresh reports false.
func (*MTLS) Refresh(context.Context) bool { return false }

// Kind returns KindMTLS.
func (*MTLS) Kind() Kind { return KindMTLS }

// TLSConfig returns the configuration for the transport to the agent, a copy.
func (m *MTLS) TLSConfig() *tls.Config { return m.config.Clone() }

// certificate serves tls.Config.GetClientCertificate.
func (m *MTLS) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stamp != m.stampNow() {
		_ = m.loadLocked() // a half-written pair: the old one serves on, the next handshake tries again
	}
	return m.current, nil
}

func (m *MTLS) load() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loadLocked()
}

func (m *MTLS) loadLocked() error {
	stamp := m.stampNow()
	pair, err := tls.LoadX509KeyPair(m.certFile, m.keyFile)
	if err != nil {
		return err
	}
	m.current, m.stamp = &pair, stamp
	return nil
}

func (m *MTLS) stampNow() (s [2]fileStamp) {
	for i, name := range []string{m.certFile, m.keyFile} {
		if info, err := os.Stat(name); err == nil {
			s[i] = fileStamp{modified: info.ModTime(), size: info.Size()}
		}
	}
	return s
}

// fileProblem words an error of reading a certificate file; the text of a
// parse error names no contents.
func fileProblem(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read"
	}
	return scrub(err.Error(), 160)
}
