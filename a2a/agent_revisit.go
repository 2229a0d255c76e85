package a2a

import "time"

// revisit brings the next look at the card forward after the agent has worked,
// where the lifetime that it gave the card is over: what an agent offers may
// change by what it has just done, and callers are told of it soon. Like all
// that callers cause, it keeps demandGap. An agent whose card cannot be had at
// the moment keeps its backoff.
func (a *Agent) revisit() {
	a.mu.Lock()
	now := time.Now()
	soon := a.checked.Add(max(demandGap, a.took))
	wanted := a.cached != nil && a.status.State == AgentReady && a.failures == 0 && a.flight == nil &&
		!now.Before(a.fresh) && soon.Before(a.due)
	if wanted {
		a.due = soon
	}
	a.mu.Unlock()
	if wanted {
		a.poke()
	}
}

// works reports whether an exchange was one in which the agent may have done
// something.
func (x Exchange) works() bool {
	return x.Cause == "" && (x.Op == opTable[opSend].name || x.Op == opTable[opStream].name || x.Op == opTable[opSubscribe].name)
}
