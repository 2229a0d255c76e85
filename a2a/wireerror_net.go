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
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Why a request's own context was cancelled by this package.
var (
	errHeaderTimeout = errors.New("no response header in time")
	errIdleTimeout   = errors.New("stream idle")
	errUnaryTimeout  = errors.New("no answer in time")
	errClosed        = errors.New("closed by the caller")
	errNotFollowed   = errors.New("redirect not followed")
	// errSlashMoved is a redirect to the same address with or without its last
	// slash, which a router sends before anybody has seen the request.
	errSlashMoved = errors.New("redirect that adds or drops a slash")
)

// trip is what is known of one request when it fails.
type trip struct {
	ctx     context.Context // the request's
	host    string          // host:port, for people
	started time.Time
	// connected is false when no connection was ever had: nothing was sent.
	connected bool
	// answered says that the failure came while the answer was being read.
	answered bool
}

// netError sorts a failed round trip or read by what can be done about it and
// puts it in plain words. No text of err reaches the message, and no URL the
// chain.
func netError(t trip, err error) *Error {
	err = withoutURL(err)
	var coded *Error
	if errors.As(err, &coded) {
		// The dial policy refused, or a credential could not be had.
		e := *coded
		e.Unsent = e.Unsent || !t.connected
		return &e
	}
	if e := contextError(t, err); e != nil {
		return e
	}
	e := &Error{Err: err}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		e.Cause, e.Unsent = CauseDNS, true
		e.Message = fmt.Sprintf("the host name %q cannot be resolved", plainLine(dns.Name, 100))
		if dns.IsTimeout || dns.IsTemporary && !dns.IsNotFound {
			e.Message = fmt.Sprintf("the name server did not answer for %q", plainLine(dns.Name, 100))
		}
	case tlsText(err) != "":
		e.Cause, e.Unsent = CauseTLS, !t.connected
		e.Message = fmt.Sprintf("TLS to %s failed: %s", t.host, tlsText(err))
	case errors.As(err, &op) && op.Op == "dial":
		e.Cause, e.Unsent = CauseDial, true
		e.Message = dialText(t.host, err, op)
	case isTimeout(err):
		e.Cause, e.Unsent = CauseTimeout, !t.connected
		e.Message = fmt.Sprintf("%s did not answer within %s", t.host, since(t.started))
	case isReset(err):
		e.Cause = CauseReset
		e.Message = fmt.Sprintf("%s closed the connection before it answered", t.host)
		if t.answered {
			e.Message = fmt.Sprintf("%s closed the connection in the middle of its answer", t.host)
		}
	case strings.Contains(err.Error(), "parse Location header"):
		e.Cause, e.Err = CauseHTTP, errNotFollowed // its text repeats the address
		e.Message = fmt.Sprintf("%s redirects to an address that cannot be read", t.host)
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), spokeFirst):
		e.Cause = CauseProtocol
		e.Message = fmt.Sprintf("%s does not speak HTTP", t.host)
	default:
		e.Cause, e.Unsent = CauseReset, !t.connected && errors.As(err, &op)
		e.Message = fmt.Sprintf("the connection to %s failed", t.host)
	}
	return e
}

// spokeFirst is in the error of package http where a server has sent something
// before it was asked, as those of mail and of SSH do; the error it wraps is nil.
const spokeFirst = "readLoopPeekFailLocked: %!w(<nil>)"

// withoutURL is what lies beneath an error of net/http or net/url, whose text
// repeats the URL: a key may stand in its query.
func withoutURL(err error) error {
	var outer *url.Error
	for errors.As(err, &outer) {
		err = outer.Err
	}
	return err
}

// contextError tells the caller's deadline and cancellation from the limits of
// this package; nil when the context is still alive.
func contextError(t trip, err error) *Error {
	cause := context.Cause(t.ctx)
	if cause == nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		cause = err
	}
	e := &Error{Cause: CauseTimeout, Err: cause, Unsent: !t.connected && !t.answered}
	switch {
	case errors.Is(cause, errIdleTimeout):
		e.Message = fmt.Sprintf("%s sent nothing for too long and the stream was given up", t.host)
	case errors.Is(cause, errHeaderTimeout), errors.Is(cause, errUnaryTimeout), errors.Is(cause, context.DeadlineExceeded):
		e.Message = fmt.Sprintf("%s did not answer within %s", t.host, since(t.started))
		if e.Unsent {
			e.Message = fmt.Sprintf("no connection to %s within %s", t.host, since(t.started))
		}
	default:
		e.Cause = CauseCanceled
		e.Message = "the call was cancelled"
	}
	return e
}

// dialText says why no connection could be made.
func dialText(host string, err error, op *net.OpError) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refused the connection: nothing listens there", host)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return fmt.Sprintf("%s cannot be reached from here", host)
	case op.Timeout():
		return fmt.Sprintf("%s did not accept a connection in time", host)
	}
	return fmt.Sprintf("no connection to %s could be made", host)
}

// tlsText says what is wrong with a TLS handshake, "" for any other error.
func tlsText(err error) string {
	var (
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return "it does not speak TLS there; use http:// or another port"
	case errors.As(err, &name):
		return "its certificate is for another host name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &verify), errors.As(err, &invalid):
		return "its certificate is not valid"
	case errors.As(err, &alert):
		return "it refused the handshake (" + strings.TrimPrefix(alert.Error(), "tls: ") + ")"
	case strings.Contains(err.Error(), "TLS handshake timeout"):
		return "the handshake took too long"
	case strings.Contains(err.Error(), "tls: "):
		return "the handshake failed"
	}
	return ""
}

func isReset(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNABORTED) ||
		strings.Contains(err.Error(), "server closed idle connection") ||
		strings.Contains(err.Error(), "GOAWAY") || strings.Contains(err.Error(), "stream error")
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// since rounds a waiting time for people.
func since(started time.Time) time.Duration {
	d := time.Since(started)
	if d < 100*time.Millisecond {
		return max(d.Round(time.Millisecond), time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// hostPort is the address of a URL for people, with its port.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}
