package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"a2agate/config"
)

// certificate is the gateway's own certificate. It is read again when its
// files have changed; a pair that does not load then leaves the old one in use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex // guards what follows
	current *tls.Certificate
	stamp   [2]fileStamp
}

// fileStamp tells whether a file has changed.
type fileStamp struct {
	modified time.Time
	size     int64
}

// newCertificate loads the pair that tls names.
func newCertificate(cfg config.TLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: cfg.CertFile, keyFile: cfg.KeyFile, log: log}
	c.stamp = c.stampNow()
	pair, err := loadPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c.current = pair
	return c, nil
}

// loadPair reads a certificate and its key. The error names both.
func loadPair(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("the certificate %q with the key %q cannot be used: %w", certFile, keyFile, plainFileError(err))
	}
	return &pair, nil
}

func plainFileError(err error) error {
	var in *fs.PathError
	if errors.As(err, &in) {
		return in.Err
	}
	return err
}

// config is for the listener. A stream a call is cheap over HTTP/2, which
// browsers need for more than six of them.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.stampNow()
	if now == c.stamp {
		return c.current, nil
	}
	c.stamp = now // a pair that does not load is told of once
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Error("the changed certificate cannot be used, the old one stays", "certFile", c.certFile, "keyFile", c.keyFile, "err", plainFileError(err))
		return c.current, nil
	}
	c.current = &pair
	c.log.Info("certificate reloaded", "certFile", c.certFile)
	return c.current, nil
}

func (c *certificate) stampNow() (s [2]fileStamp) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			s[i] = fileStamp{modified: info.ModTime(), size: info.Size()}
		}
	}
	return s
}
