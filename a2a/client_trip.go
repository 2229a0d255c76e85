package a2a

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What a well-formed answer can still lack.
var (
	errNoTask    = errors.New("a message where a task was asked for")
	errEmptyBody = errors.New("empty body")
)

// pooledBody is the largest body buffer that is kept for the next answer.
const pooledBody = 1 << 20

// replyBuffer is what reading a unary answer needs, kept for the next one.
type replyBuffer struct {
	bytes.Buffer
	scratch replyScratch
}

// roundTrip is one HTTP request and its answer.
type roundTrip struct {
	c     *Client
	op    *operation
	route route
	label string // the correction that led here
	retry int
	req   wireRequest
	// trace is what is sent of the trace context, over what Start wants to be
	// called with when the request is over.
	trace Trace
	over  func(Exchange)

	ctx       context.Context
	cancel    context.CancelCauseFunc
	host      string
	started   time.Time
	connected atomic.Bool
	resp      *http.Response
	body      *watchedBody // of a stream
	scratch   *replyScratch
	ending    sync.Once
}

// attempt does one HTTP request. handle gets the 2xx answer; where it returns
// nil for a stream it has taken over the round trip, else the trip is over.
func (c *Client) attempt(ctx context.Context, cand candidate, op *operation, retry int, handle func(*roundTrip) *Error) *Error {
	rt := &roundTrip{c: c, op: op, route: cand.route, label: or(cand.label, op.cause), retry: retry, started: time.Now()}
	var id string
	var err error
	if cand.route.Binding == REST {
		rt.req, err = cand.route.restRequest(op)
	} else {
		id = strconv.FormatInt(c.nextID.Add(1), 10)
		rt.req, err = cand.route.rpcRequest(op, id)
	}
	switch {
	case errors.Is(err, errTaskID):
		return &Error{Cause: CauseInvalid, Unsent: true, Err: err, Message: fmt.Sprintf("%q is not a task id", plainLine(op.taskID, 40))}
	case err != nil:
		return &Error{Cause: CauseUnavailable, Code: CodeUnsupportedOperation, Unsent: true, Err: err, Message: err.Error()}
	}
	if rt.trace = op.trace; rt.trace == (Trace{}) {
		rt.trace = traceFromContext(ctx)
	}
	if c.o.Start != nil {
		ctx, rt.trace, rt.over = c.o.Start(ctx, rt.exchange(), rt.trace)
	}
	rt.ctx, rt.cancel = context.WithCancelCause(ctx)
	e := rt.do(handle)
	if e != nil || !op.stream() {
		rt.end(e)
	}
	return e
}

// do sends the request and has the answer handled.
func (rt *roundTrip) do(handle func(*roundTrip) *Error) *Error {
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { rt.connected.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(rt.ctx, trace), rt.req.method, rt.req.url, nil)
	if err != nil {
		return &Error{Cause: CauseUnavailable, Unsent: true, Err: withoutURL(err), Message: "the interface's url cannot be used"}
	}
	if rt.req.body != nil {
		body := rt.req.body
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.ContentLength = int64(len(body))
	}
	rt.host = hostPort(req.URL)
	if e := rt.headers(req); e != nil {
		return e
	}
	if !rt.op.read() {
		rt.c.idle.beforeSend(rt.c.http)
	}
	stop := rt.limitHeaderWait()
	resp, err := rt.c.http.Do(req) //nolint:bodyclose // handle and refused close it
	if err != nil {
		stop()
		return rt.fail(err)
	}
	rt.resp = resp
	if rt.op.kind != opSend {
		stop() // a send's limit covers its body too
	} else {
		defer stop()
	}
	rt.c.idle.learn(resp)
	if resp.StatusCode/100 != 2 {
		return rt.refused()
	}
	return handle(rt)
}

// limitHeaderWait bounds the wait for the response header, or for all of a
// unary send's answer.
func (rt *roundTrip) limitHeaderWait() (stop func()) {
	limit, cause := rt.c.o.Timeouts.Header, errHeaderTimeout
	switch {
	case rt.op.stream():
		limit, cause = rt.c.o.Timeouts.StreamIdle, errIdleTimeout
	case rt.op.kind == opSend || rt.op.kind == opQuery:
		limit, cause = rt.c.o.Timeouts.Unary, errUnaryTimeout
	}
	if limit <= 0 {
		return func() {}
	}
	t := time.AfterFunc(limit, func() { rt.cancel(cause) })
	return func() { t.Stop() }
}

// headers sets the configured headers, the protocol's own and the credential.
func (rt *roundTrip) headers(req *http.Request) *Error {
	h, o := req.Header, &rt.c.o
	trusted := rt.c.trusts(&rt.route, req.URL)
	if trusted {
		for name, values := range o.Headers {
			if http.CanonicalHeaderKey(name) == "Host" && len(values) > 0 {
				req.Host = values[0]
				continue
			}
			h[http.CanonicalHeaderKey(name)] = values
		}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{"a2agate"}
	}
	h["Accept"] = []string{rt.req.accept}
	if rt.req.contentType != "" {
		h["Content-Type"] = []string{rt.req.contentType}
	}
	if rt.route.Version == V10 {
		h["A2a-Version"] = []string{string(V10)}
	}
	if len(o.Extensions) > 0 {
		h[rt.extensionHeader()] = []string{strings.Join(o.Extensions, ",")}
	}
	if rt.trace.Parent != "" {
		h["Traceparent"] = []string{rt.trace.Parent}
		if rt.trace.State != "" {
			h["Tracestate"] = []string{rt.trace.State}
		}
	}
	if rt.op.stream() {
		h["Accept-Encoding"] = []string{"identity"} // a compressor would hold events back
	}
	if rt.op.read() {
		// Lets net/http repeat it on a fresh connection when a kept one turns
		// out to be dead; the header itself is not sent.
		h["Idempotency-Key"] = []string{}
	}
	if o.Auth == nil || !trusted {
		return nil
	}
	if err := o.Auth.Authorize(req); err != nil {
		return authError(err)
	}
	return nil
}

// trusts reports whether a request to u may carry the agent's credential and
// configured headers: they belong to the configured origin.
func (c *Client) trusts(r *route, u *url.URL) bool {
	return !r.Anonymous && (c.origin == nil || originOf(u) == c.home)
}

// extensionHeader is the canonical name of the header that negotiates
// extensions.
func (rt *roundTrip) extensionHeader() string {
	if rt.route.Version == V03 {
		return "X-A2a-Extensions"
	}
	return "A2a-Extensions"
}

// authError is a credential that could not be had. Authorizer's errors are fit
// for a caller.
func authError(err error) *Error {
	var coded *Error
	if errors.As(err, &coded) {
		e := *coded
		e.Unsent = true
		return &e
	}
	return &Error{Cause: CauseAuth, Unsent: true, Err: err, Message: plainLine(err.Error(), messageBytes)}
}

// fail sorts an error of the network.
func (rt *roundTrip) fail(err error) *Error {
	return netError(trip{
		ctx: rt.ctx, host: rt.host, started: rt.started,
		connected: rt.connected.Load(), answered: rt.resp != nil,
	}, err)
}

// refused reads an answer that is not 2xx.
func (rt *roundTrip) refused() *Error {
	body, err := io.ReadAll(io.LimitReader(rt.resp.Body, rt.c.o.Limits.ErrorBytes))
	if err != nil && rt.ctx.Err() != nil {
		return rt.fail(err)
	}
	if code := rt.resp.StatusCode; code >= 300 && code < 400 {
		return rt.redirected()
	}
	if values := rt.resp.Header["Www-Authenticate"]; len(values) > 0 {
		rt.resp.Header["Www-Authenticate"] = []string{rt.c.secrets.text(strings.Join(values, ", "))}
	}
	return errorFromHTTP(rt.resp, rt.c.secrets.body(body), rt.op.task(), time.Now())
}

// redirected is a redirect that is not followed. Its query is not shown: it
// may hold a ticket.
func (rt *roundTrip) redirected() *Error {
	e := &Error{Cause: CauseHTTP, HTTPStatus: rt.resp.StatusCode, Err: errNotFollowed}
	to := "another address"
	if u, err := rt.resp.Location(); err == nil {
		if at := rt.resp.StatusCode; (at == http.StatusMovedPermanently || at == http.StatusFound) && rt.slashMoved(u) {
			e.Err = errSlashMoved
		}
		u.RawQuery, u.Fragment, u.User = "", "", nil
		to = plainLine(rt.c.secrets.text(u.String()), 200)
	}
	e.Message = fmt.Sprintf("%s redirects to %s (HTTP %d), which a call does not follow; configure the agent's final url",
		rt.host, to, e.HTTPStatus)
	return e
}

// slashMoved reports whether to is where the request went but for the last
// slash of its path. Only a JSON-RPC address can be corrected so.
func (rt *roundTrip) slashMoved(to *url.URL) bool {
	from, err := url.Parse(rt.req.url)
	if err != nil {
		return false
	}
	a, b := from.EscapedPath(), to.EscapedPath()
	return rt.route.Binding == JSONRPC && sameOrigin(from, to) && a != b && strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// readUnary reads the whole body and has it decoded.
func (rt *roundTrip) readUnary(decode func(*roundTrip, []byte) error) *Error {
	buf, _ := rt.c.bodies.Get().(*replyBuffer)
	if buf == nil {
		buf = new(replyBuffer)
	}
	buf.Reset()
	rt.scratch = &buf.scratch
	defer func() {
		rt.scratch = nil
		buf.scratch.reset()
		if buf.Cap() <= pooledBody {
			rt.c.bodies.Put(buf)
		}
	}()
	limit := rt.c.o.Limits.ReplyBytes
	if n := rt.resp.ContentLength; n > 0 && n <= limit {
		buf.Grow(int(n) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(io.LimitReader(rt.resp.Body, limit+1)); err != nil {
		return rt.fail(err)
	}
	if int64(buf.Len()) > limit {
		return rt.tooLarge("answer", limit)
	}
	if len(bytes.TrimSpace(buf.Bytes())) == 0 {
		return rt.unreadable(errEmptyBody, nil)
	}
	if err := decode(rt, buf.Bytes()); err != nil {
		return rt.unreadable(err, buf.Bytes())
	}
	return nil
}

func (rt *roundTrip) tooLarge(what string, limit int64) *Error {
	return &Error{Cause: CauseLimit, HTTPStatus: rt.resp.StatusCode, Message: fmt.Sprintf("the agent's %s is over the limit of %d bytes", what, limit)}
}

// unreadable turns a decoding error into an *Error; an error that the agent
// answered with gets the HTTP status.
func (rt *roundTrip) unreadable(err error, body []byte) *Error {
	var said *Error
	if errors.As(err, &said) {
		said.HTTPStatus = rt.resp.StatusCode
		return said
	}
	e := &Error{Cause: CauseProtocol, HTTPStatus: rt.resp.StatusCode, Err: err}
	kind, _, _ := mime.ParseMediaType(rt.resp.Header.Get("Content-Type"))
	kind = plainLine(kind, 60)
	if kind == "" {
		kind = "no content type"
	}
	var what string
	switch {
	case errors.Is(err, errEmptyBody):
		what = "an empty body"
	case errors.Is(err, errNoTask):
		what = "a message instead of the task"
	case errors.Is(err, errOtherID):
		what = "the answer to another request"
	case errors.Is(err, errNotAnswer):
		what = "JSON that is no A2A answer"
	case looksHTML(body):
		what = "a web page instead of an A2A answer"
	case errors.Is(err, errCutJSON):
		what = "JSON that ends in the middle"
	case errors.Is(err, errDeepJSON):
		what = "JSON that nests too deeply to be read"
	default:
		what = "something that is not JSON"
	}
	e.Message = fmt.Sprintf("%s answered HTTP %d (%s) with %s", rt.host, e.HTTPStatus, kind, what)
	if errors.Is(err, errNoTask) || errors.Is(err, errOtherID) {
		return e
	}
	if text := quoted(rt.c.secrets.body(body[:min(len(body), excerptFrom)])); text != "" {
		e.Message += ": " + text
	}
	return e
}

func (rt *roundTrip) decoder() decoder {
	return decoder{id: rt.req.id, proto: rt.route.Version == V03 && rt.route.Binding == REST, scratch: rt.scratch, secrets: &rt.c.secrets}
}

// end frees the connection and tells the observer, once. A connection whose
// answer has been read to its end is kept for the next request.
func (rt *roundTrip) end(e *Error) {
	rt.ending.Do(func() {
		rt.cancel(errClosed)
		if rt.body != nil {
			rt.body.stop()
		}
		if rt.resp != nil {
			rt.resp.Body.Close()
		}
		if rt.c.o.Observe == nil && rt.over == nil {
			return
		}
		x := rt.exchange()
		x.Duration = time.Since(rt.started)
		if rt.resp != nil {
			x.Status = rt.resp.StatusCode
		}
		if e != nil {
			x.Cause = e.Cause
		}
		if rt.over != nil {
			rt.over(x)
		}
		if rt.c.o.Observe != nil {
			rt.c.o.Observe(x)
		}
	})
}

// exchange is what is known of the request before it is made.
func (rt *roundTrip) exchange() Exchange {
	return Exchange{
		Alias: rt.c.o.Alias, Op: rt.op.name(), Version: rt.route.Version, Binding: rt.route.Binding,
		Retry: rt.retry, Fallback: rt.label,
	}
}

// idlePurge spares sends the connections that an agent is about to close: a
// POST on one of them may or may not have been seen. It goes by the timeout
// that the agent announces in its Keep-Alive header.
type idlePurge struct {
	timeout atomic.Int64 // nanoseconds, 0 when none is announced
	purged  atomic.Int64 // UnixNano: no idle connection is older
}

func (k *idlePurge) learn(resp *http.Response) {
	v := resp.Header.Get("Keep-Alive")
	if v == "" {
		return
	}
	for field := range strings.SplitSeq(v, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		if secs, err := strconv.Atoi(value); err == nil && strings.EqualFold(name, "timeout") && secs >= 0 && secs < 3600 {
			k.timeout.Store(int64(time.Duration(secs)*time.Second) + 1)
		}
	}
}

// beforeSend closes idle connections that may be near their end.
func (k *idlePurge) beforeSend(c *http.Client) {
	timeout := time.Duration(k.timeout.Load())
	if timeout == 0 {
		return
	}
	safe := timeout - max(time.Second, timeout/5)
	now := time.Now().UnixNano()
	last := k.purged.Load()
	if now-last >= int64(safe) && k.purged.CompareAndSwap(last, now) {
		c.CloseIdleConnections()
	}
}
