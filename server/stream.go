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
// Whoever writes holds writing: a turn of the timer, which opens the stream,
// writes what is due and sets the next turn; or the end, which is the caller's
// own goroutine. So a quick call costs a timer, a waiting one no goroutine of
// its own, Progress never waits for the network, and nothing can be written
// after the answer.
type stream struct {
	out  carrier
	pace *Pace
	// messages says that the client takes more than the answer.
	messages bool
	// id is the raw id of the request, for the answer that abandon writes.
	id []byte

	writing sync.Mutex // taken before mu
	mu      sync.Mutex // guards what follows
	opened  bool       // the first turn has been
	over    bool       // the answer is written, or the client is gone
	busy    bool       // a turn is on its way
	again   bool       // another was wanted meanwhile
	timer   *time.Timer
	at      time.Time // when the timer is set to
	written time.Time // when something was written last
	queue   []byte    // framed messages to write before the answer
	final   []byte    // the answer, once it is known
	status  int       // of a plain answer
	lane    lane
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
	if s.timer == nil && s.messages {
		s.at = now.Add(s.pace.FirstByte)
		s.timer = time.AfterFunc(s.pace.FirstByte, s.turn)
	}
}

// Progress notes what the agent is doing. It is written when its turn comes;
// of several in the meantime the last one wins.
func (s *stream) Progress(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane.token == nil || s.timer == nil || s.final != nil {
		return
	}
	s.lane.message, s.lane.due = translate.CutRunes(message, maxProgressRunes), true
	s.turnAt(s.lane.sent.Add(s.pace.Progress))
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
	if s.timer == nil || s.over || s.final != nil {
		return false
	}
	s.queue = s.out.frame(s.queue, msg)
	s.turnAt(time.Now())
	return true
}

// turnAt brings the next turn forward. mu is held.
func (s *stream) turnAt(at time.Time) {
	if s.over || !at.Before(s.at) {
		return
	}
	s.at = at
	s.timer.Reset(max(0, time.Until(at)))
}

// isOpened reports whether the answer goes out on a stream.
func (s *stream) isOpened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// turn runs on the goroutine of the timer.
func (s *stream) turn() {
	s.mu.Lock()
	if s.busy { // on a slow client; one that waits is enough
		s.again = true
		s.mu.Unlock()
		return
	}
	s.busy = true
	s.mu.Unlock()

	s.writing.Lock()
	out, first, ok := s.collect()
	if ok && first {
		s.out.open()
	}
	broken := ok && len(out) > 0 && s.out.put(out) != nil
	s.writing.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if broken {
		s.over = true
	}
	if s.again && !s.over {
		s.again, s.at = false, time.Now()
		s.timer.Reset(0)
	}
}

// collect gathers what is due before the answer and sets the next turn. first
// says that the stream is to be opened; ok is false when there is nothing to
// do any more. writing is held.
func (s *stream) collect() (out []byte, first, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.final != nil {
		return nil, false, false
	}
	first, s.opened = !s.opened, true
	now := time.Now()
	l := &s.lane
	out, s.queue = s.queue, nil
	quiet := now.Sub(l.sent)
	switch {
	case l.due && quiet >= s.pace.Progress:
		out = s.out.frame(out, l.take(now))
	case l.token != nil && !l.due && quiet >= s.pace.KeepAlive:
		l.message = ""
		out = s.out.frame(out, l.take(now))
	case l.token == nil && len(out) == 0 && now.Sub(s.written) >= s.pace.KeepAlive:
		out, s.written = s.out.idle(), now
	}
	if len(out) > 0 {
		s.written = now
	}
	switch {
	case l.token == nil:
		s.at = s.written.Add(s.pace.KeepAlive)
	case l.due:
		s.at = l.sent.Add(s.pace.Progress)
	default:
		s.at = l.sent.Add(s.pace.KeepAlive)
	}
	s.timer.Reset(max(0, s.at.Sub(now)))
	return out, first, true
}

// finish writes the answer and returns when it is written or cannot be. Only
// the first answer counts. streamed tells whether it went out on a stream.
func (s *stream) finish(status int, msg []byte) (streamed bool) {
	return s.end(status, msg, false)
}

// end is finish; flush is for an answer whose handler will not return to have
// it sent.
func (s *stream) end(status int, msg []byte, flush bool) (streamed bool) {
	s.mu.Lock()
	if s.final == nil {
		s.final, s.status = msg, status
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()

	s.writing.Lock() // a turn that writes comes to its end first
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return s.opened
	}
	s.over = true
	now := time.Now()
	out := s.queue
	if s.lane.due {
		out = s.out.frame(out, s.lane.take(now))
	}
	if !s.opened && len(out) == 0 {
		age := time.Duration(0)
		if !s.lane.started.IsZero() {
			age = now.Sub(s.lane.started)
		}
		return s.out.whole(s.status, s.final, age, flush)
	}
	if !s.opened { // the answer is quicker than the first turn
		s.opened = true
		s.out.open()
	}
	_ = s.out.put(s.out.frame(out, s.final)) // a client that is gone needs no answer
	return true
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
