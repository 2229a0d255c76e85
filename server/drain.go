package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"a2agate/translate"
)

// hurry is how long calls have to answer once their time is up.
const hurry = 3 * time.Second

// activeStreams are the answers still owed.
type activeStreams struct {
	mu sync.Mutex
	of map[*stream]struct{}
}

func (a *activeStreams) add(s *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = make(map[*stream]struct{})
	}
	a.of[s] = struct{}{}
}

func (a *activeStreams) remove(s *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, s)
}

func (a *activeStreams) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.of)
}

func (a *activeStreams) list() []*stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]*stream, 0, len(a.of))
	for s := range a.of {
		out = append(out, s)
	}
	return out
}

// Serve accepts connections on the listeners until ctx ends, and returns when
// the last answer is written. Then, in this order: no new connections, every listen
// gets its completion result, calls have Options.Grace to end by themselves;
// after it (or at Cut) their context ends with cause
// context.DeadlineExceeded, so that they answer with what they have; a call
// that does not even then gets -32603. No stream ends without its answer.
//
// The error is nil after an orderly end, else what broke a listener. Serve is
// called once and closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	began := s.now.Load()
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: began.limits.HeaderTime,
		IdleTimeout:       began.limits.IdleTime,
		MaxHeaderBytes:    began.limits.HeaderBytes,
		// It counts from the start of each request; every later write has its own.
		WriteTimeout: began.limits.BodyTime + began.pace.Write,
		BaseContext:  func(net.Listener) context.Context { return s.base },
		ErrorLog:     slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, len(listeners))
	for _, ln := range listeners {
		go func() { served <- srv.Serve(ln) }() // ends with Shutdown or Close below; waited for
	}
	var broken error
	left := len(listeners)
	select {
	case broken = <-served:
		left--
		s.Cut() // one listener alone is not what was asked for
	case <-ctx.Done():
	}
	s.shutDown(srv)
	for range left {
		if err := <-served; broken == nil && !errors.Is(err, http.ErrServerClosed) {
			broken = err
		}
	}
	return broken
}

// Cut makes a running shutdown hurry: the grace is over now. It may be called
// at any time, more than once.
func (s *Server) Cut() { s.cutOnce.Do(func() { close(s.cut) }) }

func (s *Server) shutDown(srv *http.Server) {
	s.draining.Store(true)
	s.drainOnce.Do(func() { close(s.drain) })
	idle := make(chan struct{})
	waiting, stopWaiting := context.WithCancel(context.Background())
	defer func() {
		stopWaiting()
		<-idle
	}()
	go func() { // waited for in the defer above
		defer close(idle)
		_ = srv.Shutdown(waiting) // its error is the end of waiting
	}()
	grace := time.NewTimer(s.o.Grace)
	defer grace.Stop()
	select {
	case <-idle:
	case <-grace.C:
	case <-s.cut:
	}
	// Time is up: calls answer with what they have.
	s.endBase(context.DeadlineExceeded)
	last := time.NewTimer(hurry)
	defer last.Stop()
	select {
	case <-idle:
		return
	case <-last.C:
	}
	for _, st := range s.active.list() {
		st.abandon()
	}
	_ = srv.Close() // the connections that are left are of no use any more
}

// abandon answers for a call that does not end.
func (s *stream) abandon() {
	s.end(http.StatusOK, errorResponse(s.id, &translate.Error{
		Code: translate.CodeInternal, Message: "the gateway is shutting down and the call did not end in time"}), true)
}
