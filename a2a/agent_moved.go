package a2a

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// movedGap is the least time between two looks at an agent's card that calls
// cause because nothing is at its interface: a broken agent is not hammered.
const movedGap = 5 * time.Second

// elsewhere looks for an agent that is not at the interfaces of from any more.
// Its card is read again, once for all who ask at the same time and at most
// once in movedGap. The answer is the client for its new interfaces, else nil
// and what the card has to say.
func (a *Agent) elsewhere(ctx context.Context, from *Client) (next *Client, why string) {
	wait, cancel := context.WithTimeout(ctx, demandWait)
	defer cancel()
	for {
		look, mine := a.lookAgain(from)
		if look == nil || a.await(wait, look, demandWait) != nil || mine {
			break
		}
		// Another's look may have begun before the agent moved.
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.client == nil:
		return nil, "its card was read again: " + a.status.Reason
	case !slices.Equal(a.client.o.Interfaces, from.o.Interfaces):
		return a.client, ""
	case a.failures > 0 || a.flight != nil || a.ctx.Err() != nil:
		return nil, "its card could not be read again"
	}
	return nil, "its card was read again and still names this address, so A2A has to be served there"
}

// lookAgain returns the look at the card that a caller of from is to wait for,
// nil where there is none: the client has been replaced already, or the last
// such look is too recent. mine says that it has begun just now.
func (a *Agent) lookAgain(from *Client) (look *cardFlight, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.client != from:
		return nil, false
	case a.flight != nil:
		return a.flight, a.flight == a.sought
	case time.Since(a.soughtAt) < movedGap:
		return nil, false
	}
	a.sought, a.soughtAt = a.startLocked(), time.Now()
	return a.sought, true
}

// absent reports whether an answer says that nothing is at the interface any
// more, so that nothing was done. An agent that is there and lacks the task or
// the method says so in an A2A or JSON-RPC error.
func absent(e *Error) bool {
	switch e.HTTPStatus {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return bare(e)
	}
	return false
}

// moved returns the client that op, which failed with e, may be done by once
// more, nil for none. The operation is then a new one, with the same message.
func (c *Client) moved(ctx context.Context, op *operation, e *Error) (*Client, *operation) {
	if c.o.elsewhere == nil || op.cause == causeMoved || !absent(e) {
		return nil, nil
	}
	next, why := c.o.elsewhere(ctx, c)
	if next == nil {
		if op.send != nil || op.kind == opQuery {
			e.Message += "; " + why
		}
		return nil, nil
	}
	again := *op
	again.cause = causeMoved
	if op.kind == opStream && !next.Streams() {
		// Who reads a stream goes on by GetTask when it has ended.
		send := *op.send
		send.ReturnImmediately = true
		again.kind, again.send = opSend, &send
	}
	return next, &again
}

// causeMoved is the fallback of an operation that is done at the interface
// which the agent has moved to.
const causeMoved = "moved"
