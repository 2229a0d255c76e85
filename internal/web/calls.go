package web

import (
	"slices"
	"sync"
	"time"
)

// Call is one call that is over. It holds no contents.
type Call struct {
	// ID rises with every call of the process.
	ID uint64 `json:"id"`
	// Tool is "" for a name that is no tool's.
	Tool string `json:"tool"`
	// Agent is the alias the call went to, "" for none.
	Agent string `json:"agent,omitempty"`
	// Outcome is one of a closed set of words.
	Outcome string `json:"outcome"`
	// At is when the call was over.
	At time.Time `json:"at"`
	// Millis is how long it took, in milliseconds.
	Millis int64 `json:"durationMs"`
}

// The most that Calls keeps: of one principal, and principals.
const (
	callsKept      = 50
	principalsKept = 256
)

// Calls keeps the latest calls of each principal. Its methods may be called
// concurrently. Its memory is bounded: of many principals the ones that have
// been silent for longest are forgotten.
type Calls struct {
	mu    sync.Mutex // guards what follows
	last  uint64
	rings map[string]*ring
}

// ring is the latest calls of one principal, the oldest at next once it is
// full.
type ring struct {
	calls []Call
	next  int
}

// NewCalls returns an empty Calls.
func NewCalls() *Calls { return &Calls{rings: map[string]*ring{}} }

// Add notes a call of a principal that has just ended and gives it its ID.
func (c *Calls) Add(principal string, call Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	call.ID = c.last
	r := c.rings[principal]
	if r == nil {
		if len(c.rings) >= principalsKept {
			c.forget()
		}
		r = &ring{}
		c.rings[principal] = r
	}
	if len(r.calls) < callsKept {
		r.calls = append(r.calls, call)
		return
	}
	r.calls[r.next] = call
	r.next = (r.next + 1) % callsKept
}

// forget drops the principal whose latest call is the oldest. mu is held.
func (c *Calls) forget() {
	var silent string
	oldest := c.last + 1
	for principal, r := range c.rings {
		if id := r.latest(); id < oldest {
			silent, oldest = principal, id
		}
	}
	delete(c.rings, silent)
}

// latest is the ID of the newest call.
func (r *ring) latest() uint64 {
	return r.calls[(r.next+len(r.calls)-1)%len(r.calls)].ID
}

// Of returns the latest calls of a principal, the newest first.
func (c *Calls) Of(principal string) []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.rings[principal]
	if r == nil {
		return nil
	}
	out := append(slices.Clone(r.calls[r.next:]), r.calls[:r.next]...)
	slices.Reverse(out)
	return out
}
