package server

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"a2agate/internal/telemetry"
	"a2agate/tools"
	"a2agate/translate"
)

// exchange is one POST on its way through the server: one allocation for all
// that a request needs. It is the Sink and the ParamHeaders of its call.
type exchange struct {
	s     *Server
	set   *inForce
	r     *http.Request
	start time.Time
	// ctx is the context of the request; it tells who the request is.
	ctx telemetry.Context
	// endTrace ends the trace of the message under way; nil without one.
	endTrace func(Exchange)
	id       Identity
	view     tools.View
	env      Envelope
	req      Request
	// legacy is the session of a legacy request.
	legacy session
	http   httpCarrier
	stream stream
}

// serveMCP is the MCP endpoint. The order of the checks is that of MCP
// 2026-07-28, transports: who, method, size and type, JSON, shape, era, and
// then what the era asks for.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	set := s.now.Load()
	id, denied := s.o.Authenticate(r)
	if denied != nil {
		s.turnedAway(denied.status())
		writeDenied(w, denied)
		return
	}
	v, ok := view(r, id)
	if !ok || v.Profile != "" && s.core.o.Catalogues.Catalogue(v) == nil {
		s.notFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		allow := "POST"
		if len(set.guard.origins) > 0 {
			allow = "POST, OPTIONS"
		}
		w.Header().Set("Allow", allow)
		refuseHTTP(w, http.StatusMethodNotAllowed, "the MCP endpoint takes POST only; there is no stream to GET")
		return
	}
	body, no := readBody(w, r, set.limits)
	if no != nil {
		refuseBody(w, r, no, set.limits)
		return
	}
	x := &exchange{s: s, set: set, r: r, start: time.Now(), id: id, view: v}
	x.ctx.Context = r.Context()
	s.core.numbers.Number(&x.ctx.Request)
	x.http = httpCarrier{w: w, limit: set.pace.Write}
	x.http.json, x.http.sse = accepts(r.Header["Accept"])
	x.stream.out, x.stream.pace, x.stream.messages = &x.http, &set.pace, x.http.sse
	if isBatch(body) {
		x.batch(body)
		return
	}
	if err := x.env.parse(body, set.limits.Depth); err != nil {
		x.refuse(http.StatusBadRequest, failure{err: err})
		return
	}
	x.route()
}

// route decides the era of a message and hands it on.
func (x *exchange) route() {
	x.begin()
	header := headerValue(x.r.Header, headerVersion)
	switch eraOf(&x.env, header) {
	case eraModern:
		x.modern()
	case eraLegacy:
		x.legacyMessage(header)
	default:
		x.refuse(http.StatusBadRequest, failure{err: unsupportedVersion(header)})
	}
}

func headerValue(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return trimOWS(v[0])
	}
	return ""
}

// refuse answers with an error under an HTTP status, always as JSON.
func (x *exchange) refuse(status int, f failure) {
	f.err = withRequestID(f.err, x.ctx.Request.ID)
	writeJSON(x.http.w, status, errorResponse(x.env.ID, f.err))
	x.observe(status, f.err.Code, false)
}

// accepted answers a notification or a response: 202 and nothing else.
func (x *exchange) accepted() {
	x.http.w.WriteHeader(http.StatusAccepted)
	x.observe(http.StatusAccepted, 0, false)
}

// unsupportedVersion is -32022.
func unsupportedVersion(asked string) *translate.Error {
	data := []byte(`{"supported":[`)
	for i, r := range supported {
		if i > 0 {
			data = append(data, ',')
		}
		data = translate.AppendString(data, string(r))
	}
	data = append(data, `],"requested":`...)
	data = append(translate.AppendString(data, asked), '}')
	return &translate.Error{Code: translate.CodeUnsupportedVersion, Message: "unsupported protocol version " + strconv.Quote(asked), Data: data}
}

// answer runs an admitted request and writes its answer; status makes an HTTP
// status of the Answer.
func (x *exchange) answer(ctx context.Context, status func(Answer) int) {
	if methods[x.env.Method].slow {
		x.stream.id = x.env.ID
		x.stream.begin(x.env.Meta.ProgressToken)
		x.s.active.add(&x.stream)
		defer x.s.active.remove(&x.stream)
	}
	a := x.s.core.Handle(ctx, &x.req)
	if a.Session != "" {
		x.http.w.Header()[headerSession] = []string{a.Session}
	}
	code := status(a)
	streamed := x.stream.finish(code, a.Message)
	if streamed {
		code = http.StatusOK
	}
	recycle(a.Message)
	x.observe(code, a.Code, streamed)
}

// Progress implements tools.Sink.
func (x *exchange) Progress(message string) { x.stream.Progress(message) }

// Agent implements agentNamer.
func (x *exchange) Agent(name string) { x.stream.Agent(name) }

// ParamHeader implements ParamHeaders. A header that stands there twice has a
// value that equals nothing.
func (x *exchange) ParamHeader(name string) (string, bool) {
	v := x.r.Header.Values(name)
	switch len(v) {
	case 0:
		return "", false
	case 1:
		return v[0], true
	}
	return "\x00", true
}

// accepts reads Accept leniently: what names neither form takes both.
func accepts(values []string) (json, sse bool) {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			kind, params, _ := strings.Cut(part, ";")
			if strings.Contains(params, "q=0") && strings.Trim(strings.TrimSpace(params), "q=0.") == "" {
				continue
			}
			switch lowered(strings.TrimSpace(kind)) {
			case "application/json", "application/*":
				json = true
			case "text/event-stream", "text/*":
				sse = true
			case "*/*":
				return true, true
			}
		}
	}
	if !json && !sse {
		return true, true
	}
	return json, sse
}

// readBody reads the body within its limit of size; that of its time has been
// set.
func readBody(w http.ResponseWriter, r *http.Request, limits Limits) ([]byte, *refusal) {
	limit := limits.BodyBytes
	tooLarge := &refusal{http.StatusRequestEntityTooLarge, "the body is larger than " + strconv.FormatInt(limit, 10) + " bytes (limits.bodyBytes)"}
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	if no := checkContentType(r.Header); no != nil {
		return nil, no
	}
	body, err := readAll(r, limit)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, &refusal{http.StatusRequestTimeout, "the body did not come within " + limits.BodyTime.String()}
	case err != nil:
		w.Header().Set("Connection", "close")
		return nil, &refusal{http.StatusBadRequest, "the body broke off"}
	case int64(len(body)) > limit:
		return nil, tooLarge
	}
	// A deadline left behind would end the connection during a long call.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return body, nil
}

// firstRead is what a body gets before any of it has come: a client that
// announces megabytes and sends none must not make them be held.
const firstRead = 64 << 10

// readAll reads up to one byte more than limit. A usual body of known length
// costs one allocation.
func readAll(r *http.Request, limit int64) ([]byte, error) {
	n := r.ContentLength
	if n < 0 {
		return io.ReadAll(io.LimitReader(r.Body, limit+1))
	}
	body := make([]byte, min(n, firstRead))
	got, err := io.ReadFull(r.Body, body)
	for err == nil && int64(got) < n {
		more := min(n-int64(got), int64(got))
		body = append(body, make([]byte, more)...)
		var k int
		k, err = io.ReadFull(r.Body, body[got:])
		got += k
	}
	return body[:got], err
}

// maxLeft is what net/http reads of a body that nobody has read, so that the
// connection serves further requests.
const maxLeft = 256 << 10

// refuseBody answers a body that is not read. One that is longer than net/http
// would read is answered at once, before it has come; then the client gets the
// time to send it and to read the answer, instead of a reset connection. A
// client that waits for "100 Continue" sends nothing.
func refuseBody(w http.ResponseWriter, r *http.Request, no *refusal, limits Limits) {
	if left := r.ContentLength; left >= 0 && left <= maxLeft || r.ProtoMajor != 1 { // a stream of HTTP/2 ends alone
		refuseHTTP(w, no.status, no.reason)
		return
	}
	w.Header().Set("Connection", "close")
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // what follows is for the client's sake, where it can be had
	refuseHTTP(w, no.status, no.reason)
	_ = rc.Flush()
	if r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, 4*limits.BodyBytes)
	}
}

func checkContentType(h http.Header) *refusal {
	v := headerValue(h, "Content-Type")
	if v != "application/json" {
		kind, params, err := mime.ParseMediaType(v)
		charset := strings.ToLower(params["charset"])
		if err != nil || kind != "application/json" || charset != "" && charset != "utf-8" && charset != "utf8" {
			return &refusal{http.StatusUnsupportedMediaType, "the Content-Type must be application/json, not " + strconv.Quote(v)}
		}
	}
	if enc := headerValue(h, "Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return &refusal{http.StatusUnsupportedMediaType, "the body must not be encoded; Content-Encoding is " + strconv.Quote(enc)}
	}
	return nil
}
