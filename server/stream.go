package server

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
	"time"

	"a2agate/translate"
)

// Pace says when a waiting call is heard of; zero fields take the defaults.
type Pace struct {
	FirstByte time.Duration // 1 s until a response is opened as a stream
	KeepAlive time.Duration // 15 s between two signs of life
	Progress  time.Duration // 500 ms at least between two progress messages
	Write     time.Duration // 30 s for one write to a slow client
}

func (p Pace) withDefaults() Pace {
	def := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&p.FirstByte, time.Second)
	def(&p.KeepAlive, 15*time.Second)
	def(&p.Progress, 500*time.Millisecond)
	def(&p.Write, 30*time.Second)
	return p
}

type streamState uint8

const (
	streamWaiting streamState = iota // nothing written, the handler owns w
	streamOpen                       // the pump owns w
	streamOver                       // the answer is written
)

// stream writes the answer to one POST: as plain JSON when it comes in time,
// else as server-sent events (MCP, transports).
//
// The ResponseWriter has one owner at a time. Before the stream opens it is
// the handler's goroutine, which runs the call; from then on it is the pump,
// a goroutine that the opening timer starts and that finish waits for. So a
// quick call costs a timer and no goroutine, Progress never waits for the
// network, and nothing can be written after the answer.
type stream struct {
	w    http.ResponseWriter
	pace *Pace
	// json and sse are what the client accepts; at least one is true.
	json, sse bool
	// id is the raw id of the request, for the answer that abandon writes.
	id []byte

	mu     sync.Mutex // guards what follows
	state  streamState
	timer  *time.Timer // opens the stream; nil where it never opens by itself
	queue  []byte      // events to write before the answer
	final  []byte      // the answer, once it is known
	status int         // of a JSON answer
	lane   lane
	wake   chan struct{} // made by open; tells the pump of news
	done   chan struct{} // made by open; closed when the pump is gone
	// broken says that a write failed: the client is gone.
	broken bool
}

// lane is the progress of the call that runs on a stream.
type lane struct {
	token   []byte // raw JSON; nil: nobody asked for progress
	agent   string
	started time.Time
	count   int64
	due     bool // message has not been written
	message string
	sent    time.Time // when progress was written last
}

// begin starts the clock of a call. It is called once per stream, or once per
// message of a batch.
func (s *stream) begin(token []byte) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane.due {
		s.queue = s.lane.appendDue(s.queue, now)
	}
	s.lane = lane{token: token, started: now}
	if s.timer == nil && s.sse && s.state == streamWaiting {
		s.timer = time.AfterFunc(s.pace.FirstByte, s.pump)
	}
}

// Progress notes what the agent is doing. The pump writes it when its turn
// comes; of several in the meantime the last one wins.
func (s *stream) Progress(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane.token == nil || !s.sse || s.final != nil {
		return
	}
	s.lane.message, s.lane.due = translate.CutRunes(message, maxProgressRunes), true
	s.kick()
}

// Agent names who works, for the words of an idle progress message.
func (s *stream) Agent(name string) {
	s.mu.Lock()
	s.lane.agent = name
	s.mu.Unlock()
}

// send queues a message for the client; it reports false where it cannot be
// sent.
func (s *stream) send(msg []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sse || s.broken || s.final != nil || s.state == streamOver {
		return false
	}
	s.queue = appendEvent(s.queue, msg)
	s.kick()
	return true
}

// kick makes the pump look, starting it if need be. mu is held.
func (s *stream) kick() {
	switch s.state {
	case streamWaiting:
		if s.timer != nil {
			s.timer.Reset(0)
		}
	case streamOpen:
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// opened reports whether the answer goes out on a stream.
func (s *stream) opened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done != nil
}

// finish writes the answer and returns when it is written or cannot be. Only
// the first answer counts. opened tells whether it went out on a stream.
func (s *stream) finish(status int, msg []byte) (opened bool) {
	return s.end(status, msg, false)
}

// end is finish; flush is for an answer whose handler will not return to have
// it sent.
func (s *stream) end(status int, msg []byte, flush bool) (opened bool) {
	s.mu.Lock()
	if s.final == nil {
		s.final, s.status = msg, status
	}
	if s.state == streamWaiting && s.timer != nil {
		s.timer.Stop()
	}
	if s.state == streamWaiting {
		s.state = streamOver
		defer s.mu.Unlock()
		if began := s.lane.started; !began.IsZero() && time.Since(began) > quickAnswer {
			s.extend()
		}
		if !s.json && s.status == http.StatusOK {
			s.writeSingle()
			return true
		}
		writeJSON(s.w, s.status, s.final)
		if flush {
			_ = http.NewResponseController(s.w).Flush() // the connection is closed next either way
		}
		return false
	}
	s.kick()
	done := s.done
	s.mu.Unlock()
	if done != nil {
		<-done
	}
	return done != nil
}

// writeSingle writes an answer for a client that takes nothing but streams.
func (s *stream) writeSingle() {
	streamHeaders(s.w.Header())
	s.w.WriteHeader(http.StatusOK)
	s.write(appendEvent(nil, s.final))
}

// pump opens the stream and writes it to its end. It runs on the goroutine of
// the timer; finish waits for it.
func (s *stream) pump() {
	s.mu.Lock()
	if s.state != streamWaiting || s.final != nil {
		s.mu.Unlock()
		return
	}
	s.state = streamOpen
	s.wake = make(chan struct{}, 1)
	s.done = make(chan struct{})
	s.mu.Unlock()
	defer close(s.done)

	streamHeaders(s.w.Header())
	s.w.WriteHeader(http.StatusOK)
	tick := time.NewTimer(s.pace.KeepAlive)
	defer tick.Stop()
	idle := true // the first byte is due at once
	for {
		out, next, last := s.take(idle)
		if len(out) > 0 && !s.write(out) {
			return
		}
		if last {
			return
		}
		tick.Reset(next)
		select {
		case <-s.wake:
			idle = false
		case <-tick.C:
			idle = true
		}
	}
}

// take collects what is to be written now, and says how long to wait for the
// next sign of life. idle: the wait is over, so something must be written.
func (s *stream) take(idle bool) (out []byte, next time.Duration, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := &s.lane
	out, s.queue = s.queue, nil
	next = s.pace.KeepAlive
	if s.final != nil {
		if l.due {
			out = l.appendDue(out, now)
		}
		s.state = streamOver
		return appendEvent(out, s.final), 0, true
	}
	quiet := now.Sub(l.sent)
	switch {
	case l.due && quiet >= s.pace.Progress:
		out = l.appendDue(out, now)
	case l.due:
		next = s.pace.Progress - quiet
	case idle && l.token != nil && quiet >= s.pace.KeepAlive:
		l.message, l.due = "", true
		out = l.appendDue(out, now)
	case idle && l.token == nil:
		out = append(out, keepAliveComment...)
	}
	if l.token != nil && !l.due {
		next = max(0, s.pace.KeepAlive-now.Sub(l.sent))
	}
	return out, next, false
}

// quickAnswer is the age of a call up to which the deadline that the server
// set at the start of the request is good enough for its answer.
const quickAnswer = time.Second

// extend gives the next write its full time.
func (s *stream) extend() {
	_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(s.pace.Write)) // not every writer has deadlines
}

// write sends bytes to the client within the time for one write.
func (s *stream) write(out []byte) bool {
	s.extend()
	_, err := s.w.Write(out)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	if err != nil {
		s.mu.Lock()
		s.broken, s.state = true, streamOver
		s.mu.Unlock()
	}
	return err == nil
}

// maxProgressRunes is the most a progress message carries.
const maxProgressRunes = 200

// appendDue appends the progress notification that is due, numbered one
// higher than the last (MCP, progress: strictly rising).
func (l *lane) appendDue(dst []byte, now time.Time) []byte {
	l.count++
	l.due, l.sent = false, now
	dst = append(dst, `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	dst = append(dst, l.token...)
	dst = append(dst, `,"progress":`...)
	dst = strconv.AppendInt(dst, l.count, 10)
	dst = append(dst, `,"message":`...)
	msg := l.message
	if msg == "" {
		msg = l.idleWords(now)
	}
	dst = translate.AppendString(dst, msg)
	return append(dst, "}}\n\n"...)
}

// idleWords is "<agent>: working, 1m15s".
func (l *lane) idleWords(now time.Time) string {
	words := "working, " + now.Sub(l.started).Truncate(time.Second).String()
	if l.agent != "" {
		words = translate.CutRunes(l.agent, 100) + ": " + words
	}
	return words
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

// appendEvent appends a message as one event on one data line. A line break
// in a JSON text stands only between its tokens, so a blank can take its place.
func appendEvent(dst, msg []byte) []byte {
	dst = append(dst, "data: "...)
	from := len(dst)
	dst = append(dst, msg...)
	if bytes.IndexByte(msg, '\n') >= 0 || bytes.IndexByte(msg, '\r') >= 0 {
		for i, c := range dst[from:] {
			if c == '\n' || c == '\r' {
				dst[from+i] = ' '
			}
		}
	}
	return append(dst, "\n\n"...)
}

// writeJSON writes a JSON answer.
func writeJSON(w http.ResponseWriter, status int, msg []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(msg))}
	w.WriteHeader(status)
	_, _ = w.Write(msg) // a client that is gone needs no answer
}
