package telemetry

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// tapBytes bounds what is held of one body or one event to be shown; what is
// longer is shown cut.
const tapBytes = 64 << 10

// Tap shows, at the debug levels from LevelSummary on, what goes to the agents
// and comes from them. Below LevelRaw nothing of the contents shows, and
// credentials never do: no header is logged, and what the request's own
// headers and query say is masked wherever it comes back. Requests for tokens
// are not shown at all.
type Tap struct {
	// Log must be of kind KindAgents.
	Log *slog.Logger
}

// Around returns base with the tap around it, for one agent. While the level
// is off, a request costs one comparison more.
func (t Tap) Around(agent string, base http.RoundTripper) http.RoundTripper {
	return &tapped{base: base, log: t.Log.With("agent", agent)}
}

type tapped struct {
	base http.RoundTripper
	log  *slog.Logger
}

// CloseIdleConnections hands on what http.Client asks of its transport.
func (t *tapped) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *tapped) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if !t.log.Enabled(ctx, LevelSummary) || !showable(req) {
		return t.base.RoundTrip(req)
	}
	x := &exchange{ctx: ctx, log: t.log.With("to", req.URL.Scheme+"://"+req.URL.Host+req.URL.Path), secrets: secretsOf(req), started: time.Now()}
	x.request(req)
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		// The error's text may have the URL with its query: the caller reports it.
		x.log.Log(ctx, LevelSummary, "no agent answer", "ms", x.ms())
		return nil, err
	}
	x.response(resp)
	return resp, nil
}

// showable reports whether a request is one of A2A: tokens are asked for with
// a form.
func showable(req *http.Request) bool {
	kind := req.Header.Get("Content-Type")
	return kind == "" && req.Body == nil || strings.Contains(kind, "json")
}

// exchange is one request that is shown.
type exchange struct {
	ctx     context.Context
	log     *slog.Logger
	secrets [][]byte
	started time.Time
}

func (x *exchange) ms() int64 { return time.Since(x.started).Milliseconds() }

func (x *exchange) on(l slog.Level) bool { return x.log.Enabled(x.ctx, l) }

func (x *exchange) request(req *http.Request) {
	x.log.Log(x.ctx, LevelSummary, "agent request", "method", req.Method, "bytes", req.ContentLength)
	if !x.on(LevelPayload) || req.GetBody == nil {
		return
	}
	body, err := req.GetBody()
	if err != nil {
		return
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, tapBytes+1))
	if err != nil {
		return
	}
	x.show("agent request body", LevelPayload, raw)
}

func (x *exchange) response(resp *http.Response) {
	x.log.Log(x.ctx, LevelSummary, "agent answer", "status", resp.StatusCode, "type", cut(resp.Header.Get("Content-Type"), 60), "bytes", resp.ContentLength, "ms", x.ms())
	if !x.on(LevelPayload) || resp.Body == nil {
		return
	}
	events := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	if events && !x.on(LevelShape) {
		return
	}
	resp.Body = &tappedBody{ReadCloser: resp.Body, x: x, events: events}
}

// show logs a body or an event: what is in it at LevelRaw, else its shape.
func (x *exchange) show(what string, level slog.Level, raw []byte) {
	cutOff := len(raw) > tapBytes
	if cutOff {
		raw = raw[:tapBytes]
	}
	switch {
	case x.on(LevelRaw):
		text := Mask(raw, x.secrets)
		if cutOff && len(x.secrets) > 0 { // a secret may have been cut in the middle
			text = text[:max(0, len(text)-len(x.secrets[0]))]
		}
		x.log.Log(x.ctx, LevelRaw, what, "raw", string(text), "cut", cutOff)
	case cutOff:
		x.log.Log(x.ctx, level, what, "shape", "more than can be shown")
	default:
		x.log.Log(x.ctx, level, what, "shape", string(Mask([]byte(Shape(raw)), x.secrets)))
	}
}

// tappedBody shows what is read through it: a whole body at its end, the
// events of a stream as they come. It has one reader, as bodies have.
type tappedBody struct {
	io.ReadCloser
	x      *exchange
	events bool
	held   []byte
	// skipping says that the event under way has been shown, cut.
	skipping bool
	over     bool
}

// Read implements io.Reader.
func (b *tappedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for fresh := p[:n]; len(fresh) > 0; {
		room := min(len(fresh), tapBytes+1-len(b.held))
		if room <= 0 {
			break
		}
		b.held = append(b.held, fresh[:room]...)
		fresh = fresh[room:]
		if b.events {
			b.showEvents()
		}
	}
	if err != nil {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *tappedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

func (b *tappedBody) end() {
	if b.over {
		return
	}
	b.over = true
	if len(b.held) > 0 && !b.skipping {
		b.show(b.held)
	}
	b.held = nil
}

// showEvents shows the events that are complete. One that is longer than what
// may be held is shown cut, and its rest not at all.
func (b *tappedBody) showEvents() {
	for {
		end, skip := eventEnd(b.held)
		switch {
		case end < 0 && len(b.held) <= tapBytes:
			return
		case end < 0:
			if !b.skipping {
				b.show(b.held)
			}
			b.skipping = true
			b.held = append(b.held[:0], b.held[len(b.held)-3:]...) // the blank line may have begun
			return
		case end > 0 && !b.skipping:
			b.show(b.held[:end])
		}
		b.skipping = false
		b.held = append(b.held[:0], b.held[skip:]...)
	}
}

// eventEnd finds the blank line that ends an event.
func eventEnd(p []byte) (end, skip int) {
	end, skip = -1, 0
	for _, sep := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(p, []byte(sep)); i >= 0 && (end < 0 || i < end) {
			end, skip = i, i+len(sep)
		}
	}
	return end, skip
}

func (b *tappedBody) show(raw []byte) {
	if !b.events {
		b.x.show("agent answer body", LevelPayload, raw)
		return
	}
	if !b.x.on(LevelRaw) {
		raw = eventData(raw)
	}
	if len(raw) > 0 {
		b.x.show("agent event", LevelShape, raw)
	}
}

// eventData joins the data lines of an event.
func eventData(event []byte) []byte {
	var data []byte
	for line := range bytes.Lines(event) {
		if v, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimRight(v, "\r\n")...)
		}
	}
	return bytes.TrimSpace(data)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}

// CauseOf sorts an error of a transport by the words that the metrics have.
func CauseOf(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var record tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &dns):
		return "dns"
	case errors.As(err, &record), errors.As(err, &verification):
		return "tls"
	case errors.As(err, &op) && op.Op == "dial":
		return "dial"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return "reset"
}
