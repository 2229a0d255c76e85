package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"a2agate/a2a"
)

// shakeHands makes the TLS handshake that the gateway makes with an agent.
func shakeHands(ctx context.Context, options a2a.AgentConfig, at *url.URL, address string) (tls.ConnectionState, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if a, ok := options.Authorizer.(interface{ TLSConfig() *tls.Config }); ok {
		cfg = a.TLSConfig()
	}
	if cfg.ServerName == "" {
		cfg.ServerName = at.Hostname()
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	client := tls.Client(conn, cfg)
	if err := client.HandshakeContext(ctx); err != nil {
		return tls.ConnectionState{}, err
	}
	return client.ConnectionState(), nil
}

// tlsFinding sorts a failed handshake.
func tlsFinding(err error) string {
	var (
		record    tls.RecordHeaderError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
		alert     tls.AlertError
	)
	switch {
	case errors.As(err, &record):
		return "tls_plain"
	case errors.As(err, &name):
		return "tls_name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "tls_expired"
	case errors.As(err, &authority):
		return "tls_authority"
	case errors.As(err, &alert):
		return "tls_client"
	}
	return "tls_failed"
}

// tlsWords is the innermost cause of a failed handshake.
func tlsWords(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return "the connection was closed"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}
	text := oneLine(err.Error())
	for _, prefix := range []string{"tls: ", "x509: ", "remote error: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	text, _, _ = strings.Cut(text, ": current time") // a certificate's dates are told by its own line
	return text
}

// certificateNames are the names that a certificate is for, a few of them.
func certificateNames(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		names = []string{oneLine(c.Subject.CommonName)}
	}
	const most = 3
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return names
}
