package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"a2agate/translate"
)

// meter counts the tool calls of each principal against limits.callsPerSecond
// and limits.concurrentCalls.
type meter struct {
	mu sync.Mutex
	of map[string]*meterEntry
}

type meterEntry struct {
	running int
	bucket  *rate.Limiter // nil without a rate
	used    time.Time
}

// maxMeters is how many principals are remembered before the idle ones are
// forgotten.
const maxMeters = 1024

// take counts a call in; wait says how long to wait where it is too many.
func (m *meter) take(principal string, l Limits) (wait time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	e := m.of[principal]
	if e == nil {
		if len(m.of) >= maxMeters {
			m.forget(now)
		}
		e = &meterEntry{}
		m.of[principal] = e
	}
	e.used = now
	e.refit(l.CallsPerSecond)
	if l.ConcurrentCalls > 0 && e.running >= l.ConcurrentCalls {
		return time.Second, false
	}
	if e.bucket != nil {
		r := e.bucket.ReserveN(now, 1)
		if d := r.DelayFrom(now); d > 0 {
			r.CancelAt(now)
			return d, false
		}
	}
	e.running++
	return 0, true
}

// refit makes a new bucket where another rate is in force.
func (e *meterEntry) refit(perSecond float64) {
	limit := rate.Limit(perSecond)
	switch {
	case perSecond <= 0:
		e.bucket = nil
	case e.bucket == nil || e.bucket.Limit() != limit:
		e.bucket = rate.NewLimiter(limit, max(1, int(perSecond)))
	}
}

func (m *meter) release(principal string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.of[principal]; e != nil {
		e.running--
	}
}

// forget drops those that have been idle long enough for a full bucket.
func (m *meter) forget(now time.Time) {
	for p, e := range m.of {
		if e.running == 0 && now.Sub(e.used) > time.Minute {
			delete(m.of, p)
		}
	}
}

// metered counts the tool call x.env in. release is to be called when it is
// over; wait says how long to wait where it is one too many.
func (x *exchange) metered() (release func(), wait time.Duration, ok bool) {
	l := x.set.limits
	if x.env.Method != "tools/call" || l.CallsPerSecond <= 0 && l.ConcurrentCalls <= 0 {
		return func() {}, 0, true
	}
	if wait, ok := x.s.meter.take(x.id.Principal, l); !ok {
		return nil, wait, false
	}
	return func() { x.s.meter.release(x.id.Principal) }, 0, true
}

func tooMany(wait time.Duration) (seconds string, f failure) {
	seconds = strconv.Itoa(int((wait + time.Second - 1) / time.Second))
	return seconds, refuse(translate.CodeInternal,
		"too many tool calls from this caller (limits.callsPerSecond, limits.concurrentCalls): try again in %s s", seconds)
}

// meter counts a tool call in, or answers 429.
func (x *exchange) meter() (release func(), ok bool) {
	release, wait, ok := x.metered()
	if !ok {
		seconds, f := tooMany(wait)
		x.http.w.Header().Set("Retry-After", seconds)
		x.refuse(http.StatusTooManyRequests, f)
	}
	return release, ok
}
