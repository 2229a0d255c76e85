package server

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// httpCarrier carries a stream as an HTTP response: one JSON message, or
// server-sent events.
type httpCarrier struct {
	w http.ResponseWriter
	// json and sse are what the client accepts; at least one is true.
	json, sse bool
	limit     time.Duration // for one write
}

// quickAnswer is the age of a request up to which the deadline that the server
// set at its start is good enough for its answer.
const quickAnswer = time.Second

func (c *httpCarrier) whole(status int, msg []byte, age time.Duration, flush bool) (streamed bool) {
	if age > quickAnswer {
		c.extend()
	}
	if !c.json && status == http.StatusOK {
		c.open()
		_ = c.put(c.frame(nil, msg)) // a client that is gone needs no answer
		return true
	}
	writeJSON(c.w, status, msg)
	if flush {
		_ = http.NewResponseController(c.w).Flush() // the connection is closed next either way
	}
	return false
}

func (c *httpCarrier) open() {
	streamHeaders(c.w.Header())
	c.w.WriteHeader(http.StatusOK)
}

func (c *httpCarrier) frame(dst, msg []byte) []byte { return appendEvent(dst, msg) }

func (c *httpCarrier) idle() []byte { return keepAliveComment }

func (c *httpCarrier) put(out []byte) error {
	c.extend()
	if _, err := c.w.Write(out); err != nil {
		return err
	}
	return http.NewResponseController(c.w).Flush()
}

// extend gives the next write its full time.
func (c *httpCarrier) extend() {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.limit)) // not every writer has deadlines
}

// streamHeaders are those of an SSE response.
func streamHeaders(h http.Header) {
	h["Content-Type"] = sseType
	h["Cache-Control"] = noStore
	h["X-Accel-Buffering"] = noBuffering
}

// Header values are shared between responses, never changed.
var (
	jsonType    = []string{"application/json"}
	sseType     = []string{"text/event-stream"}
	noStore     = []string{"no-store"}
	noBuffering = []string{"no"}

	keepAliveComment = []byte(":\n\n")
)

// appendEvent appends a message as one event on one data line.
func appendEvent(dst, msg []byte) []byte {
	dst = append(dst, "data: "...)
	return append(appendOneLine(dst, msg), "\n\n"...)
}

// appendOneLine appends a message as one line. A line break in a JSON text
// stands only between its tokens, so a blank can take its place.
func appendOneLine(dst, msg []byte) []byte {
	from := len(dst)
	dst = append(dst, msg...)
	if bytes.IndexByte(msg, '\n') >= 0 || bytes.IndexByte(msg, '\r') >= 0 {
		for i, c := range dst[from:] {
			if c == '\n' || c == '\r' {
				dst[from+i] = ' '
			}
		}
	}
	return dst
}

// writeJSON writes a JSON answer.
func writeJSON(w http.ResponseWriter, status int, msg []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(msg))}
	w.WriteHeader(status)
	_, _ = w.Write(msg) // a client that is gone needs no answer
}
