package a2a

import "time"

// revisitGap is the least time between looks at a card that an agent's own work
// causes.
const revisitGap = 500 * time.Millisecond

// revisit brings the next look at the card forward after the agent has worked,
// where the lifetime that it gave the card is over: what an agent offers may
// change by what it has just done, and callers are told of it soon. An agent
// whose card cannot be had at the moment keeps its backoff.
func (a *Agent) revisit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flight != nil {
		a.worked = true // the look under way may be too early
		return
	}
	if a.revisitLocked() {
		a.poke()
	}
}

// revisitLocked sets due and reports whether that changed it. Needs mu.
func (a *Agent) revisitLocked() bool {
	soon := a.checked.Add(max(revisitGap, a.took))
	if a.cached == nil || a.status.State != AgentReady || a.failures > 0 || time.Now().Before(a.fresh) || !soon.Before(a.due) {
		return false
	}
	a.due = soon
	return true
}

// Recheck has Run look at the card now, however fresh it is or however long an
// agent in trouble would be left alone: somebody has asked for it. A look under
// way may have begun too early, so another follows it. Recheck does not wait
// for the outcome.
func (a *Agent) Recheck() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flight != nil {
		a.asked = true
		return
	}
	a.due = time.Now()
	a.poke()
}

// works reports whether an exchange was one in which the agent may have done
// something.
func (x Exchange) works() bool {
	return x.Cause == "" && (x.Op == opTable[opSend].name || x.Op == opTable[opStream].name || x.Op == opTable[opSubscribe].name)
}
