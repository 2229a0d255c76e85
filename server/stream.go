package server

import (
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

// carrier is how a stream reaches its client. Its methods are called by the
// stream's owner only.
type carrier interface {
	// whole writes the only message of an answer and reports whether it went
	// out as a stream all the same. age is how long the request has run; flush
	// says that its handler will not return to have it sent.
	whole(status int, msg []byte, age time.Duration, flush bool) (streamed bool)
	// open begins a stream of messages.
	open()
	// frame appends a message the way the stream carries it.
	frame(dst, msg []byte) []byte
	// idle is a sign of life that is no message; nil where none is needed.
	idle() []byte
	// put writes framed messages.
	put(out []byte) error
}

// stream writes the answer to one request: as one message when it comes in
// time, else as a stream of messages that ends with it (MCP, transports).
//
// The carrier has one owner at a time. Before the stream opens it is the
// goroutine that runs the call; from then on it is the pump, a goroutine that
// the opening timer starts and that finish waits for. So a quick call costs a
// timer and no goroutine, Progress never waits for the network, and nothing
// can be written after the answer.
type stream struct {
	out  carrier
	pace *Pace
	// messages says that the client takes more than the answer.
	messages bool
	// id is the raw id of the request, for the answer that abandon writes.
	id []byte

	mu     sync.Mutex // guards what follows
	state  streamState
	timer  *time.Timer // opens the stream; nil where it never opens by itself
	queue  []byte      // framed messages to write before the answer
	final  []byte      // the answer, once it is known
	status int         // of a plain answer
	lane   lane
	wake   chan struct{} // made by the pump; tells it of news
	done   chan struct{} // made by the pump; closed when it is gone
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
		s.queue = s.out.frame(s.queue, s.lane.take(now))
	}
	s.lane = lane{token: token, started: now}
	if s.timer == nil && s.messages && s.state == streamWaiting {
		s.timer = time.AfterFunc(s.pace.FirstByte, s.pump)
	}
}

// Progress notes what the agent is doing. The pump writes it when its turn
// comes; of several in the meantime the last one wins.
func (s *stream) Progress(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane.token == nil || !s.messages || s.final != nil {
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
	if !s.messages || s.broken || s.final != nil || s.state == streamOver {
		return false
	}
	s.queue = s.out.frame(s.queue, msg)
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
		if s.messages && (s.lane.due || len(s.queue) > 0) {
			s.flushAll()
			return true
		}
		age := time.Duration(0)
		if began := s.lane.started; !began.IsZero() {
			age = time.Since(began)
		}
		return s.out.whole(s.status, s.final, age, flush)
	}
	s.kick()
	done := s.done
	s.mu.Unlock()
	if done != nil {
		<-done
	}
	return done != nil
}

// flushAll writes what waits and the answer, when the answer is quicker than
// the pump. mu is held.
func (s *stream) flushAll() {
	out := s.queue
	if s.lane.due {
		out = s.out.frame(out, s.lane.take(time.Now()))
	}
	s.out.open()
	_ = s.out.put(s.out.frame(out, s.final)) // a client that is gone needs no answer
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

	s.out.open()
	tick := time.NewTimer(s.pace.KeepAlive)
	defer tick.Stop()
	idle := true // the first byte is due at once
	for {
		out, next, last := s.collect(idle)
		if len(out) > 0 && s.out.put(out) != nil {
			s.mu.Lock()
			s.broken, s.state = true, streamOver
			s.mu.Unlock()
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

// collect gathers what is to be written now, and says how long to wait for the
// next sign of life. idle: the wait is over, so something must be written.
func (s *stream) collect(idle bool) (out []byte, next time.Duration, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	l := &s.lane
	out, s.queue = s.queue, nil
	next = s.pace.KeepAlive
	if s.final != nil {
		if l.due {
			out = s.out.frame(out, l.take(now))
		}
		s.state = streamOver
		return s.out.frame(out, s.final), 0, true
	}
	quiet := now.Sub(l.sent)
	switch {
	case l.due && quiet >= s.pace.Progress:
		out = s.out.frame(out, l.take(now))
	case l.due:
		next = s.pace.Progress - quiet
	case idle && l.token != nil && quiet >= s.pace.KeepAlive:
		l.message, l.due = "", true
		out = s.out.frame(out, l.take(now))
	case idle && l.token == nil:
		out = append(out, s.out.idle()...)
	}
	if l.token != nil && !l.due {
		next = max(0, s.pace.KeepAlive-now.Sub(l.sent))
	}
	return out, next, false
}

// maxProgressRunes is the most a progress message carries.
const maxProgressRunes = 200

// take returns the progress notification that is due, numbered one higher than
// the last (MCP, progress: strictly rising).
func (l *lane) take(now time.Time) []byte {
	l.count++
	l.due, l.sent = false, now
	dst := append([]byte(nil), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	dst = append(dst, l.token...)
	dst = append(dst, `,"progress":`...)
	dst = strconv.AppendInt(dst, l.count, 10)
	dst = append(dst, `,"message":`...)
	msg := l.message
	if msg == "" {
		msg = l.idleWords(now)
	}
	dst = translate.AppendString(dst, msg)
	return append(dst, "}}"...)
}

// idleWords is "<agent>: working, 1m15s".
func (l *lane) idleWords(now time.Time) string {
	words := "working, " + now.Sub(l.started).Truncate(time.Second).String()
	if l.agent != "" {
		words = translate.CutRunes(l.agent, 100) + ": " + words
	}
	return words
}
