package a2a

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// What went wrong on the network is told in plain words with the address.
func TestNetworkErrors(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := closed.Addr().String()
	closed.Close()

	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	defer tlsServer.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	hang := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { hangUp() })
	half := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"jsonrpc":"2.0",`)
		w.(http.Flusher).Flush()
		hangUp()
	})
	noise, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer noise.Close()
	go func() {
		for {
			conn, err := noise.Accept()
			if err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, conn, 1)
			fmt.Fprint(conn, "SSH-2.0-OpenSSH_9.9\r\n")
			conn.Close()
		}
	}()

	mute := newScriptedAgent(t, nil)
	release := make(chan struct{})
	arrived := make(chan struct{}, 10)
	mute.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)

	address := func(url string) string { return strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://") }
	tests := []struct {
		name, url string
		client    *http.Client
		cause     Cause
		unsent    bool
		text      string
	}{
		{"refused", "http://" + refused, nil, CauseDial, true, refused + " refused the connection"},
		{"no such host", "http://no-such-host.invalid/x", nil, CauseDNS, true, `the host name "no-such-host.invalid" cannot be resolved`},
		{"unknown authority", tlsServer.URL, nil, CauseTLS, true, "TLS to " + address(tlsServer.URL) + " failed: its certificate is signed by an unknown authority"},
		{"plain HTTP behind https", strings.Replace(plain.URL, "http:", "https:", 1), nil, CauseTLS, true, "does not speak TLS"},
		{"TLS behind http", strings.Replace(tlsServer.URL, "https:", "http:", 1), nil, CauseHTTP, false, "HTTP 400"},
		{"closed without an answer", hang.URL, nil, CauseReset, false, address(hang.URL) + " closed the connection before it answered"},
		{"closed in the middle", half.URL, nil, CauseReset, false, address(half.URL) + " closed the connection in the middle of its answer"},
		{"not HTTP", "http://" + noise.Addr().String(), nil, CauseProtocol, false, noise.Addr().String() + " does not speak HTTP"},
		{"deadline", mute.URL, nil, CauseTimeout, false, address(mute.URL) + " did not answer within"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := testContext(t)
			if tt.cause == CauseTimeout {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			c, err := NewClient(ClientOptions{
				Alias: "alpha", HTTP: &http.Client{Transport: transport},
				Interfaces: []Interface{{URL: tt.url, Version: V10, Binding: JSONRPC}},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Send(ctx, hello())
			e := wantError(t, err, tt.cause)
			if !strings.Contains(e.Message, tt.text) || e.Unsent != tt.unsent {
				t.Errorf("message %q, unsent %v", e.Message, e.Unsent)
			}
			if tt.cause == CauseTimeout && !errors.Is(err, context.DeadlineExceeded) {
				t.Error("the deadline is not under it")
			}
		})
	}

	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(testContext(t))
		for len(arrived) > 0 {
			<-arrived
		}
		go func() {
			<-arrived
			cancel()
		}()
		_, err := mute.client(V10, JSONRPC).Send(ctx, hello())
		wantError(t, err, CauseCanceled)
	})
	t.Run("cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(testContext(t))
		cancel()
		_, err := mute.client(V10, JSONRPC).Send(ctx, hello())
		if e := wantError(t, err, CauseCanceled); !e.Unsent {
			t.Error("not marked unsent")
		}
	})
	t.Run("no header in time", func(t *testing.T) {
		_, err := mute.client(V10, JSONRPC, func(o *ClientOptions) { o.Timeouts.Header = 30 * time.Millisecond }).GetTask(testContext(t), "t1", nil)
		wantError(t, err, CauseTimeout)
	})
	t.Run("unary limit", func(t *testing.T) {
		_, err := mute.client(V10, JSONRPC, func(o *ClientOptions) { o.Timeouts.Unary = 30 * time.Millisecond }).Send(testContext(t), hello())
		wantError(t, err, CauseTimeout)
	})
}

// The dial policy's own error is passed on as it is.
func TestDialPolicyError(t *testing.T) {
	policy := &Error{Cause: CauseUnavailable, Message: "169.254.169.254 is not allowed"}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, policy }}
	c := fakeClient(t, transport)
	_, err := c.Send(testContext(t), hello())
	e := wantError(t, err, CauseUnavailable)
	if e.Message != policy.Message || !e.Unsent {
		t.Errorf("%+v", e)
	}
	if policy.Agent != "" || policy.Op != "" {
		t.Errorf("the policy's own error was changed: %+v", policy)
	}
}

func TestTLSTexts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}}, "another host name"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "expired"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "unknown authority"},
		{&tls.CertificateVerificationError{Err: errors.New("odd")}, "not valid"},
		{tls.RecordHeaderError{}, "does not speak TLS"},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(40)}, "refused the handshake"},
		{errors.New("net/http: TLS handshake timeout"), "took too long"},
		{errors.New("tls: failed to parse"), "handshake failed"},
		{os.ErrDeadlineExceeded, ""},
		{io.EOF, ""},
	} {
		if got := tlsText(fmt.Errorf("wrapped: %w", tt.err)); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

// closing tells when its connection is closed.
type closing struct {
	net.Conn
	closed chan struct{}
	once   sync.Once
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A server that speaks first may be heard before the request is written, which
// package http tells of in other words.
func TestServerThatSpeaksFirst(t *testing.T) {
	mine, theirs := net.Pipe()
	defer theirs.Close()
	conn := &closing{Conn: mine, closed: make(chan struct{})}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	defer transport.CloseIdleConnections()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		_, _ = io.WriteString(theirs, "220 mail.test ESMTP\r\n")
		<-conn.closed
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://mail.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = transport.RoundTrip(req)
	if err == nil {
		t.Fatal("an answer came")
	}
	if e := netError(trip{ctx: ctx, host: "mail.test:80"}, err); e.Cause != CauseProtocol || e.Message != "mail.test:80 does not speak HTTP" {
		t.Errorf("%v: %+v", err, e)
	}
}
