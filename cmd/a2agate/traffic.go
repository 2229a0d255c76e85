package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"a2agate/a2a"
)

// The levels of log.debug.
const (
	trafficFlow      = 1 // what is called and how it ends
	trafficSummaries = 2 // types and sizes of requests and responses
	trafficPayloads  = 3 // the beginning of each body
	trafficShapes    = 4 // the events of streams
	trafficRaw       = 5 // everything
)

const (
	// trafficExcerpt is what trafficPayloads shows of a body, in bytes.
	trafficExcerpt = 200
	// trafficLine bounds a line of trafficRaw, in bytes.
	trafficLine = 64 << 10
	// leastSecret is the shortest secret that is looked for in contents:
	// shorter ones are words.
	leastSecret = 6
)

// traffic logs what goes to and fro between the gateway and one agent, as much
// as log.debug says; nil logs nothing. Headers are not logged, nor are the
// values of queries and anything but JSON and streams: credentials stand
// there. Secrets of the configuration are taken out of what is logged.
type traffic struct {
	level   int
	log     *slog.Logger
	secrets []string
}

func newTraffic(log *slog.Logger, r recipe) *traffic {
	if r.debug == 0 {
		return nil
	}
	t := &traffic{level: r.debug, log: log.With("agent", r.agent.Alias)}
	auth := r.agent.Auth
	known := []string{auth.Token.Reveal(), auth.Key.Reveal(), auth.Password.Reveal(), auth.ClientSecret.Reveal()}
	for _, h := range r.agent.Headers {
		known = append(known, h.Value.Reveal())
	}
	for _, s := range known {
		if len(s) >= leastSecret {
			t.secrets = append(t.secrets, s)
		}
	}
	return t
}

// wrap is for a2a.AgentConfig.Wrap.
func (t *traffic) wrap() func(http.RoundTripper) http.RoundTripper {
	if t == nil {
		return nil
	}
	return func(next http.RoundTripper) http.RoundTripper { return tracedTransport{t, next} }
}

// observing adds the flow of calls, with their corrections, to observe.
func (t *traffic) observing(observe func(a2a.Exchange)) func(a2a.Exchange) {
	if t == nil {
		return observe
	}
	return func(x a2a.Exchange) {
		attrs := []any{"op", x.Op, "version", x.Version, "binding", x.Binding, "status", x.Status, "took", x.Duration.Round(time.Millisecond)}
		for name, value := range map[string]string{"cause": string(x.Cause), "fallback": x.Fallback} {
			if value != "" {
				attrs = append(attrs, name, value)
			}
		}
		if x.Retry > 0 {
			attrs = append(attrs, "retry", x.Retry)
		}
		t.log.Info("agent call", attrs...)
		if observe != nil {
			observe(x)
		}
	}
}

// tracedTransport logs the requests that go through it.
type tracedTransport struct {
	t    *traffic
	next http.RoundTripper
}

// RoundTrip does the request.
func (x tracedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t := x.t
	started := time.Now()
	where := shownURL(req.URL)
	legible := legibleType(req.Header.Get("Content-Type"))
	secrets := t.secrets
	if _, token, ok := strings.Cut(req.Header.Get("Authorization"), " "); ok && len(token) >= leastSecret {
		secrets = append(secrets[:len(secrets):len(secrets)], token)
	}
	line := bodyLine{t: t, ctx: req.Context(), secrets: secrets}
	if t.level >= trafficSummaries && req.Body != nil && legible {
		body, copied, err := readBack(req)
		if err != nil {
			return nil, err
		}
		req = copied
		line.write("agent request body", req.Header.Get("Content-Type"), body)
	}
	resp, err := x.next.RoundTrip(req)
	if err != nil {
		t.log.Info("agent request failed", "method", req.Method, "url", where, "took", time.Since(started).Round(time.Millisecond))
		return resp, err
	}
	t.log.Info("agent request", "method", req.Method, "url", where, "status", resp.StatusCode,
		"type", resp.Header.Get("Content-Type"), "took", time.Since(started).Round(time.Millisecond))
	if t.level >= trafficSummaries && (legible || req.Body == nil) && legibleType(resp.Header.Get("Content-Type")) {
		resp.Body = &tracedBody{ReadCloser: resp.Body, line: line, kind: resp.Header.Get("Content-Type")}
	}
	return resp, nil
}

// readBack reads the body of a request and returns the request to send in its
// place.
func readBack(req *http.Request) ([]byte, *http.Request, error) {
	body, err := io.ReadAll(req.Body)
	if closed := req.Body.Close(); err == nil {
		err = closed
	}
	copied := *req
	copied.Body = io.NopCloser(bytes.NewReader(body))
	return body, &copied, err
}

// legibleType reports whether a body of that type may be logged.
func legibleType(contentType string) bool {
	return strings.Contains(contentType, "json") || strings.HasPrefix(contentType, "text/event-stream")
}

// shownURL is a URL without the values of its query, which may be keys.
func shownURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.RawQuery != "" {
		return shown.String() + "?…"
	}
	return shown.String()
}

// bodyLine writes log lines about bodies.
type bodyLine struct {
	t       *traffic
	ctx     context.Context
	secrets []string
}

func (l bodyLine) write(message, kind string, body []byte) {
	attrs := []any{"type", kind, "bytes", len(body)}
	switch {
	case l.t.level >= trafficRaw:
		attrs = append(attrs, "body", l.scrub(body, trafficLine))
	case l.t.level >= trafficPayloads:
		attrs = append(attrs, "begins", l.scrub(body, trafficExcerpt))
	}
	l.t.log.InfoContext(l.ctx, message, attrs...)
}

// scrub takes the secrets out of a text and cuts it.
func (l bodyLine) scrub(body []byte, most int) string {
	s := strings.ToValidUTF8(string(body), "\uFFFD")
	for _, secret := range l.secrets {
		s = strings.ReplaceAll(s, secret, "***")
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// tracedBody logs a response's body when it is over, and the events of a
// stream as they come.
type tracedBody struct {
	io.ReadCloser
	line bodyLine
	kind string

	size  int
	kept  bytes.Buffer // of the body, at most trafficLine; of a stream, the event that has begun
	ended bool
}

// Read reads on.
func (b *tracedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size += n
	if room := trafficLine - b.kept.Len(); room > 0 {
		b.kept.Write(p[:min(n, room)])
	}
	if b.streams() && b.line.t.level >= trafficShapes {
		b.events()
	}
	if err != nil {
		b.end()
	}
	return n, err
}

// Close closes the body.
func (b *tracedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

func (b *tracedBody) streams() bool { return strings.HasPrefix(b.kind, "text/event-stream") }

// events logs the events that are complete.
func (b *tracedBody) events() {
	for {
		data := b.kept.Bytes()
		i := bytes.Index(data, []byte("\n\n"))
		skip := 2
		if j := bytes.Index(data, []byte("\r\n\r\n")); j >= 0 && (i < 0 || j < i) {
			i, skip = j, 4
		}
		if i < 0 {
			return
		}
		b.line.event(data[:i])
		b.kept.Next(i + skip)
	}
}

// event logs one event: its fields and sizes, and the whole at trafficRaw.
func (l bodyLine) event(event []byte) {
	attrs := []any{"bytes", len(event)}
	if l.t.level >= trafficRaw {
		attrs = append(attrs, "event", l.scrub(event, trafficLine))
	} else {
		attrs = append(attrs, "shape", eventShape(event))
	}
	l.t.log.InfoContext(l.ctx, "agent event", attrs...)
}

func (b *tracedBody) end() {
	if b.ended {
		return
	}
	b.ended = true
	if b.streams() {
		b.line.t.log.InfoContext(b.line.ctx, "agent stream ended", "bytes", b.size)
		return
	}
	b.line.write("agent response body", b.kind, b.kept.Bytes())
}
