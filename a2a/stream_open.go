package a2a

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"strings"
	"time"
)

// frames yields the events of a body, however it is framed. name is the SSE
// event type, "" where there is none. Results are valid until the next call;
// io.EOF is a clean end; no call may follow an error.
type frames interface {
	next() (name string, data []byte, err error)
}

// Stream sends a message and returns the stream of what comes of it
// (specification 1.0.1, 3.1.2). It returns once the first event is there. A
// stream that ends without one is followed by the same message in a unary send,
// where the options allow it.
func (c *Client) Stream(ctx context.Context, req SendRequest) (EventStream, error) {
	op := &operation{kind: opStream, send: &req, trace: req.Trace}
	if c.o.EmptyStreamFallback && c.streamsBroken() {
		ev, err := c.Send(ctx, req)
		if err != nil {
			return nil, err
		}
		return oneEvent(ev), nil
	}
	return c.open(ctx, op)
}

// Subscribe joins the stream of a task (specification 1.0.1, 3.1.6). It returns
// once the first event, a snapshot of the task, is there.
func (c *Client) Subscribe(ctx context.Context, taskID string) (EventStream, error) {
	return c.open(ctx, &operation{kind: opSubscribe, taskID: taskID})
}

func (c *Client) open(ctx context.Context, op *operation) (EventStream, error) {
	if err := c.check(op); err != nil {
		return nil, c.own(err, op)
	}
	release, err := c.acquire(ctx, op)
	if err != nil {
		return nil, c.own(err, op)
	}
	var s *eventStream
	r, err := c.run(ctx, op, func(rt *roundTrip) (e *Error) {
		s, e = rt.openStream()
		return e
	})
	if err != nil && err.Cause == CauseEmptyStream && op.kind == opStream {
		s, err = c.afterEmpty(ctx, r, op, err)
	}
	if err == nil {
		s.release = release
		return s, nil
	}
	release()
	next, again := c.moved(ctx, op, err)
	switch {
	case next == nil:
		return nil, c.own(err, op)
	case again.stream():
		return next.open(ctx, again)
	}
	ev, failed := next.event(ctx, again)
	if failed != nil {
		return nil, failed
	}
	return oneEvent(ev), nil
}

// afterEmpty is what follows a stream without an event: the unary send of the
// same message, then, where the agent does not know that method or version,
// the other version's stream and unary send. Every one keeps the messageId.
func (c *Client) afterEmpty(ctx context.Context, r route, op *operation, empty *Error) (*eventStream, *Error) {
	c.mu.Lock()
	c.brokenUntil = time.Now().Add(brokenStreamFor)
	c.mu.Unlock()
	if !c.o.EmptyStreamFallback {
		return nil, empty
	}
	s, e := c.unaryInstead(ctx, r, op)
	if e == nil || !c.otherVersion(r, &operation{kind: opSend}, e) {
		return s, e
	}
	r = otherVersion(r)
	other := *op
	other.cause = "version"
	e = c.try(ctx, candidate{route: r}, &other, 0, func(rt *roundTrip) (e *Error) {
		s, e = rt.openStream()
		return e
	})
	switch {
	case e == nil:
		c.remember(r, op)
		return s, nil
	case e.Cause == CauseEmptyStream:
		return c.unaryInstead(ctx, r, op)
	}
	return nil, e
}

// unaryInstead sends the message of a stream operation without a stream. Like
// a stream it is to tell of the task as soon as there is one: who reads it goes
// on by GetTask.
func (c *Client) unaryInstead(ctx context.Context, r route, op *operation) (*eventStream, *Error) {
	again := *op.send
	again.ReturnImmediately = true
	unary := &operation{kind: opSend, send: &again, trace: op.trace, cause: "empty_stream"}
	var ev Event
	e := c.try(ctx, candidate{route: r}, unary, 0, func(rt *roundTrip) *Error {
		return rt.readUnary(func(rt *roundTrip, body []byte) (err error) {
			ev, err = rt.event(body)
			return err
		})
	})
	if e != nil {
		return nil, e
	}
	c.remember(r, unary)
	ev.Notes = append(ev.Notes, "the agent's stream was empty; the message was sent again without streaming")
	return oneEvent(ev), nil
}

// oneEvent is the stream of a unary answer.
func oneEvent(ev Event) *eventStream {
	return &eventStream{ahead: &ev, done: io.EOF}
}

// openStream chooses how to read the body of a 2xx answer to a stream request
// and reads the first event. The content type decides, except where the first
// byte says otherwise: agents mislabel.
func (rt *roundTrip) openStream() (*eventStream, *Error) {
	var plain io.Reader = rt.resp.Body
	if strings.EqualFold(rt.resp.Header.Get("Content-Encoding"), "gzip") {
		plain = &gzipBody{body: plain} // though identity was asked for
	}
	body := newWatchedBody(plain, rt.c.o.Limits.StreamBytes, rt.c.o.Timeouts.StreamIdle, rt.cancel)
	rt.body = body
	rt.scratch = new(replyScratch)
	s := &eventStream{rt: rt, dec: rt.decoder()}
	head, err := sniff(body)
	first := firstByte(head)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, rt.streamError(s, err)
	case first == 0 && errors.Is(err, io.EOF):
		s.frames = noFrames{}
	default:
		var src io.Reader = body
		if errors.Is(err, io.EOF) {
			src = eofReader{}
		}
		kind, _, _ := mime.ParseMediaType(rt.resp.Header.Get("Content-Type"))
		if s.frames = rt.framing(kind, head, first, src); s.frames == nil {
			return nil, rt.unreadable(errNotJSON, rt.more(head, src))
		}
		s.guessed = kind != typeSSE
	}
	if e := s.first(); e != nil {
		return nil, e
	}
	return s, nil
}

func (rt *roundTrip) streamError(s *eventStream, err error) *Error {
	var e *Error
	if errors.As(s.ending(err), &e) {
		return e
	}
	return rt.fail(err)
}

// framing returns the reader for a body of the media type kind that begins
// with head, nil when it is nothing that can be read.
func (rt *roundTrip) framing(kind string, head []byte, first byte, src io.Reader) frames {
	limits := rt.c.o.Limits
	switch {
	case first == '<':
		return nil
	case lineTypes[kind] && (first == '{' || first == '['):
		return &lineFrames{r: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), src), streamChunk), max: limits.EventBytes}
	case first == '{' || first == '[':
		if strings.HasSuffix(kind, "json") {
			return newJSONFrames(head, src, limits.ReplyBytes, errAnswerTooLarge)
		}
		return newJSONFrames(head, src, int64(limits.EventBytes), errEventTooLarge)
	case kind == typeSSE, strings.IndexByte(":deir", first) >= 0 && kind != "text/html":
		return newSSEEvents(head, src, limits.EventBytes)
	}
	return nil
}

// lineTypes are the media types of one JSON value a line.
var lineTypes = map[string]bool{
	"application/x-ndjson": true, "application/ndjson": true, "application/jsonl": true,
	"application/x-jsonlines": true, "application/jsonlines": true, "application/json-seq": true,
	"application/stream+json": true,
}

// sniffBytes is how much of a stream is looked at to tell what it is.
const sniffBytes = 512

// sniff reads until a byte that is not white space. It returns all it has
// read, without a byte order mark.
func sniff(r io.Reader) ([]byte, error) {
	buf := make([]byte, 0, sniffBytes)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil || firstByte(buf) != 0 && len(buf) >= 3 || len(buf) == cap(buf) || firstByte(buf) != 0 && buf[0] != 0xef {
			return bytes.TrimPrefix(buf, []byte("\xef\xbb\xbf")), err
		}
	}
}

// firstByte returns the first byte that is not white space, 0 for none.
func firstByte(b []byte) byte {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if b = bytes.TrimLeft(b, " \t\r\n\x1e"); len(b) > 0 {
		return b[0]
	}
	return 0
}

// more reads on for the excerpt of a body that is no stream.
func (rt *roundTrip) more(head []byte, src io.Reader) []byte {
	rest, _ := io.ReadAll(io.LimitReader(src, 4<<10))
	return append(bytes.Clone(head), rest...)
}

// gzipBody reads a compressed stream. It begins at the first Read, so that the
// wait for the first bytes is watched like any other.
type gzipBody struct {
	body io.Reader
	zr   *gzip.Reader
}

func (g *gzipBody) Read(p []byte) (int, error) {
	if g.zr == nil {
		zr, err := gzip.NewReader(g.body)
		if err != nil {
			return 0, err
		}
		g.zr = zr
	}
	return g.zr.Read(p)
}

// noFrames is an empty body.
type noFrames struct{}

func (noFrames) next() (string, []byte, error) { return "", nil, io.EOF }

type eofReader struct{}

func (eofReader) Read([]byte) (int, error) { return 0, io.EOF }

// lineFrames reads one JSON value a line.
type lineFrames struct {
	r    *bufio.Reader
	max  int
	long []byte
}

func (l *lineFrames) next() (string, []byte, error) {
	l.long = l.long[:0]
	for {
		line, err := l.r.ReadSlice('\n')
		if len(l.long)+len(line) > l.max {
			return "", nil, errEventTooLarge
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, line...)
			continue
		case err != nil && (err != io.EOF || len(line)+len(l.long) == 0):
			return "", nil, err
		}
		if len(l.long) > 0 {
			l.long = append(l.long, line...)
			line = l.long
		}
		return "", bytes.TrimLeft(line, "\x1e"), nil // RFC 7464 begins a record so
	}
}

// jsonFrames reads JSON values that follow one another: one whole answer, or
// several under a type that does not say so, in a row or as one array.
type jsonFrames struct {
	dec *json.Decoder
	cap *cappedReader
	// list says that the values are the elements of an array, inside that it
	// has been entered.
	list, inside bool
}

func newJSONFrames(head []byte, src io.Reader, max int64, over error) *jsonFrames {
	c := &cappedReader{r: io.MultiReader(bytes.NewReader(head), src), max: max, left: max, over: over}
	return &jsonFrames{dec: json.NewDecoder(c), cap: c, list: firstByte(head) == '['}
}

func (j *jsonFrames) next() (string, []byte, error) {
	j.cap.left = j.cap.max
	var raw json.RawMessage
	var err error
	if j.list && !j.inside {
		_, err = j.dec.Token()
		j.inside = err == nil
	}
	switch {
	case err != nil:
	case j.inside && !j.dec.More():
		if _, err = j.dec.Token(); err == nil {
			return "", nil, io.EOF
		}
	default:
		err = j.dec.Decode(&raw)
	}
	if j.inside && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the array has no end
	}
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return "", raw, nil
	case errors.As(err, &syntax):
		return "", nil, syntaxError(err)
	case errors.Is(err, io.ErrUnexpectedEOF) && !j.cap.cut:
		return "", nil, errCutJSON
	}
	return "", nil, err
}

// cappedReader bounds how much is read for one value. cut says that the body
// itself ended early, which json.Decoder reports in the same words as a value
// that does.
type cappedReader struct {
	r         io.Reader
	max, left int64
	over      error
	cut       bool
}

// errAnswerTooLarge is a JSON answer to a stream request over
// Limits.ReplyBytes.
var errAnswerTooLarge = errors.New("answer over the limit")

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, c.over
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	c.cut = c.cut || errors.Is(err, io.ErrUnexpectedEOF)
	return n, err
}
