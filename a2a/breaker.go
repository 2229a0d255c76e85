package a2a

import (
	"fmt"
	"time"
)

// trialGap is the least time between two calls that try whether an agent that
// could not be connected to is back; an attempt that took longer is not
// repeated within its own duration.
const trialGap = time.Second

// breaker keeps calls from an agent that the last one could not connect to:
// they fail at once, and one at a time is let through to see whether the agent
// is back. Only calls open it; a card that cannot be had says nothing about
// them. It is guarded by Agent.mu.
type breaker struct {
	// cause is why the last call could not connect, "" while all is well.
	cause Cause
	// trialAt is when the next call may try.
	trialAt time.Time
}

// open reports whether calls are to fail at once. Where it is false although
// something is wrong, the caller is the one who tries, within hold.
func (b *breaker) open(now time.Time, hold time.Duration) bool {
	switch {
	case b.cause == "":
		return false
	case now.Before(b.trialAt):
		return true
	}
	b.trialAt = now.Add(hold)
	return false
}

// learn takes the outcome of a call.
func (b *breaker) learn(x Exchange, now time.Time) {
	switch {
	case x.Status > 0:
		*b = breaker{}
	case x.Cause == CauseDial || x.Cause == CauseDNS || x.Cause == CauseTLS:
		b.cause, b.trialAt = x.Cause, now.Add(max(trialGap, x.Duration))
	case b.cause != "":
		b.trialAt = now // the trial ended without a verdict
	}
}

// downLocked is the error of a call that is not made because the agent is
// down; needs mu.
func (a *Agent) downLocked() *Error {
	return &Error{
		Cause: a.breaker.cause, Agent: a.cfg.Alias, Op: "connect", Unsent: true,
		Message: a.sinceLocked(a.status.Reason),
	}
}

// sinceLocked adds to a reason since when the agent has been down; needs mu.
func (a *Agent) sinceLocked(reason string) string {
	if a.status.State != AgentDown {
		return reason
	}
	return fmt.Sprintf("the agent is down since %s (%s ago), it is tried again by itself: %s",
		a.status.Since.UTC().Format(time.RFC3339), time.Since(a.status.Since).Round(time.Second), reason)
}
