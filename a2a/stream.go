package a2a

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// eventStream is one open stream. Next belongs to one goroutine at a time;
// Close may come from any.
type eventStream struct {
	rt      *roundTrip // nil for the answer of a unary call
	frames  frames
	dec     decoder
	guessed bool   // the content type did not say that this is an event stream
	release func() // gives the client's place back
	closing sync.Once
	closed  atomic.Bool

	// ahead is the first event, read before the stream was handed out.
	ahead *Event
	notes []string // for the next event
	odd   []byte   // the first JSON event that is none of A2A's
	// fault is a malformed event, held back until it is known whether the
	// stream makes sense without it.
	fault *Error
	bad   int // malformed events
	// final says that a terminal state has been seen since.
	final bool
	done  error // what Next returns for ever after
	// outcome is done for Close, which may run beside Next.
	outcome atomic.Pointer[Error]
}

// Next returns the next event, io.EOF at a clean end, else a *Error.
func (s *eventStream) Next() (Event, error) {
	if s.ahead != nil {
		ev := *s.ahead
		s.ahead = nil
		return ev, nil
	}
	if s.done != nil {
		return Event{}, s.done
	}
	ev, err := s.read()
	if err != nil {
		if !errors.Is(err, io.EOF) && s.closed.Load() {
			err = &Error{Cause: CauseCanceled, Message: "the stream was closed", Err: errClosed}
		}
		var e *Error
		if errors.As(err, &e) && s.rt != nil {
			err = s.rt.c.own(e, s.rt.op)
			s.outcome.Store(e)
		}
		s.done = err
	}
	return ev, err
}

// Close frees the connection and the client's place.
func (s *eventStream) Close() {
	s.closing.Do(func() {
		s.closed.Store(true)
		if s.rt != nil {
			s.rt.end(s.outcome.Load())
		}
		if s.release != nil {
			s.release()
		}
	})
}

// first reads the first event ahead, so that an error in its place can still
// be put right by another route.
func (s *eventStream) first() *Error {
	ev, err := s.read()
	if err == nil {
		s.ahead = &ev
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	// A clean end without an event. It is an empty stream only if the agent
	// said nothing at all: what it said otherwise was an answer.
	if s.odd != nil {
		return s.protocolError("JSON that is no A2A answer", s.odd)
	}
	if events, ok := s.frames.(*sseEvents); ok && events.stray != nil {
		return s.protocolError("something that is no event", events.stray)
	}
	if s.guessed {
		return s.protocolError("something that is no event", nil)
	}
	return &Error{
		Cause: CauseEmptyStream, HTTPStatus: s.rt.resp.StatusCode, Err: io.EOF,
		Message: fmt.Sprintf("the stream of %s ended without one event", s.rt.host),
	}
}

// read returns the next event; skips what says nothing.
func (s *eventStream) read() (Event, error) {
	for {
		name, data, err := s.frames.next()
		if err != nil {
			return Event{}, s.ending(err)
		}
		data = bytes.TrimSpace(data)
		if len(data) == 0 || string(data) == "[DONE]" {
			continue
		}
		ev, err := s.dec.event(data)
		if err == nil {
			return s.accept(ev), nil
		}
		if e := s.refuse(name, data, err); e != nil {
			return Event{}, e
		}
	}
}

// accept looks whether an event settles what was odd before it.
func (s *eventStream) accept(ev Event) Event {
	switch {
	case ev.Task != nil:
		s.final = s.final || ev.Task.Status.State.Terminal()
	case ev.Status != nil:
		s.final = s.final || ev.Status.Status.State.Terminal()
	case ev.Message != nil:
		s.final = true
	}
	if s.final && s.fault != nil {
		s.notes = append(s.notes, fmt.Sprintf("%d malformed events of the stream were skipped", s.bad))
		s.fault = nil
	}
	if len(s.notes) > 0 {
		ev.Notes = append(ev.Notes, s.notes...)
		s.notes = nil
	}
	return ev
}

// refuse deals with an event that could not be decoded. It returns the error
// that ends the stream, nil to go on.
func (s *eventStream) refuse(name string, data []byte, err error) *Error {
	var said *Error
	if errors.As(err, &said) {
		said.HTTPStatus = s.rt.resp.StatusCode
		return said
	}
	isJSON := errors.Is(err, errNotAnswer)
	switch {
	case errors.Is(err, errOtherID):
		return s.protocolError("an event that belongs to another request", nil)
	case name == "error" && isJSON:
		e := s.dec.failure(bytes.Clone(data))
		e.HTTPStatus = s.rt.resp.StatusCode
		return e
	case name == "error":
		return &Error{Cause: CauseAgent, HTTPStatus: s.rt.resp.StatusCode, Message: or(s.quoted(data), codeText(0))}
	case isJSON:
		if s.odd == nil {
			s.odd = bytes.Clone(data[:min(len(data), excerptBytes)])
			s.notes = append(s.notes, "an event of unknown kind was skipped")
		}
	case name != "" && name != "message":
		// A heartbeat in words.
	default:
		s.bad++
		what := "an event that is not JSON"
		if errors.Is(err, errDeepJSON) {
			what = "an event of JSON that nests too deeply to be read"
		}
		if s.fault == nil {
			s.fault = s.protocolError(what, data)
		}
	}
	return nil
}

// ending turns what ended the frames into what Next returns.
func (s *eventStream) ending(err error) error {
	limits := s.rt.c.o.Limits
	switch {
	case errors.Is(err, io.EOF) && s.fault != nil:
		return s.fault
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, errEventTooLarge):
		return s.rt.tooLarge("stream event", int64(limits.EventBytes))
	case errors.Is(err, errAnswerTooLarge):
		return s.rt.tooLarge("answer", limits.ReplyBytes)
	case errors.Is(err, errStreamTooLarge):
		return s.rt.tooLarge("stream", limits.StreamBytes)
	case errors.Is(err, errNotJSON):
		return s.protocolError("something that is not JSON", nil)
	case errors.Is(err, errDeepJSON):
		return s.protocolError("JSON that nests too deeply to be read", nil)
	case errors.Is(err, errCutJSON):
		return s.protocolError("JSON that ends in the middle", nil)
	}
	return s.rt.fail(err)
}

func (s *eventStream) protocolError(what string, data []byte) *Error {
	e := &Error{
		Cause: CauseProtocol, HTTPStatus: s.rt.resp.StatusCode, Err: errNotAnswer,
		Message: fmt.Sprintf("%s sent %s in a stream", s.rt.host, what),
	}
	if text := s.quoted(data); text != "" {
		e.Message += ": " + text
	}
	return e
}

// quoted is what of an agent's bytes may be shown.
func (s *eventStream) quoted(data []byte) string {
	return quoted(s.rt.c.secrets.body(data[:min(len(data), excerptFrom)]))
}

// errStreamTooLarge is a stream over Limits.StreamBytes.
var errStreamTooLarge = errors.New("stream over the limit")

// watchedBody reads a stream's body within its total limit and gives it up
// when a read brings no byte for too long. Time that nobody spends reading does
// not count: a slow consumer is not a silent agent.
type watchedBody struct {
	body   io.Reader
	left   int64
	idle   time.Duration
	since  atomic.Int64 // when the read in progress began, 0 for none
	origin time.Time
	timer  atomic.Pointer[time.Timer]
	ended  atomic.Bool
	cancel context.CancelCauseFunc
}

func newWatchedBody(body io.Reader, limit int64, idle time.Duration, cancel context.CancelCauseFunc) *watchedBody {
	w := &watchedBody{body: body, left: limit, idle: idle, origin: time.Now(), cancel: cancel}
	w.timer.Store(time.AfterFunc(idle, w.check))
	return w
}

func (w *watchedBody) Read(p []byte) (int, error) {
	if w.left < 0 {
		return 0, errStreamTooLarge
	}
	w.since.Store(int64(time.Since(w.origin)) + 1)
	n, err := w.body.Read(p)
	w.since.Store(0)
	if w.left -= int64(n); w.left < 0 {
		return 0, errStreamTooLarge
	}
	return n, err
}

// check runs on the timer: it looks how long the read in progress has waited.
func (w *watchedBody) check() {
	wait := w.idle
	if began := w.since.Load(); began != 0 {
		waited := time.Since(w.origin) - time.Duration(began-1)
		if waited >= w.idle {
			w.cancel(errIdleTimeout)
			return
		}
		wait -= waited
	}
	if t := w.timer.Load(); t != nil && !w.ended.Load() {
		t.Reset(wait)
	}
}

// stop ends the watch. A check that runs at this moment may look once more.
func (w *watchedBody) stop() {
	w.ended.Store(true)
	w.timer.Load().Stop()
}
