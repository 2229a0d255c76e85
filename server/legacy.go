package server

import (
	"context"
	"net/http"

	"a2agate/tools"
	"a2agate/translate"
)

// legacyMessage serves one message of the wires with an initialize handshake:
// 2025-11-25, 2025-06-18, 2025-03-26.
func (x *exchange) legacyMessage(header string) {
	x.openLegacy(header)
	switch x.env.Kind {
	case KindNotification:
		x.notified(&x.env)
		x.accepted()
	case KindResponse:
		x.answered(&x.env)
		x.accepted()
	default:
		x.fillLegacy()
		release, ok := x.meter()
		if !ok {
			return
		}
		defer release()
		ctx, done := x.legacyContext()
		defer done()
		x.answer(ctx, func(Answer) int { return http.StatusOK })
	}
}

// openLegacy reads the session and settles the revision.
func (x *exchange) openLegacy(header string) {
	if x.env.Method != "initialize" {
		if id := headerValue(x.r.Header, headerSession); id != "" {
			x.legacy = x.s.sessions.read(x.id.Principal, id)
		}
	}
	x.req.Revision = legacyOf(header, x.legacy)
}

// fillLegacy makes the Request of x.env.
func (x *exchange) fillLegacy() {
	x.req.Envelope, x.req.Principal, x.req.View = &x.env, x.id.Principal, x.view
	x.req.Client = x.legacy.client
	x.req.Trace, x.req.Sink = x.trace(), x
	if x.env.Method == "initialize" {
		x.req.NewSession = func(rev translate.Revision, client tools.ClientCapabilities) string {
			return x.s.sessions.mint(x.id.Principal, rev, client)
		}
	}
}

// notified obeys a notification; only a cancellation means anything. It is
// matched by principal, session and request, and ignored without a session:
// request ids are small numbers, and some clients cancel every call that is
// over.
func (x *exchange) notified(e *Envelope) {
	if e.Method == "notifications/cancelled" && x.legacy.id != "" && validID(e.P.RequestID) {
		x.s.running.cancel(x.key(idKey(e.P.RequestID)))
	}
}

// answered delivers the client's answer to a question asked in mid-call; one
// that nobody waits for is ignored.
func (x *exchange) answered(e *Envelope) {
	if x.legacy.id != "" {
		x.s.running.answer(x.key(idKey(e.ID)), e)
	}
}

func (x *exchange) key(id string) callKey {
	return callKey{principal: x.id.Principal, session: x.legacy.id, id: id}
}

// legacyContext is the life of a legacy request. A dropped connection does
// not end it (MCP 2025-11-25, transports); notifications/cancelled, its own
// deadline and the end of the server do.
func (x *exchange) legacyContext() (context.Context, func()) {
	m := methods[x.env.Method]
	if !m.slow {
		return &x.ctx, func() {}
	}
	life, cancel := context.WithTimeout(x.s.base, x.set.limits.LegacyCall)
	ctx := valued{life, &x.ctx}
	if x.legacy.id == "" || x.env.ID == nil {
		return ctx, cancel
	}
	done := x.s.running.add(x.key(idKey(x.env.ID)), cancel)
	return ctx, func() {
		done()
		cancel()
	}
}

// valued has the life of one context, and the values of another where it has
// none itself.
type valued struct {
	context.Context
	values context.Context
}

// Value implements context.Context. The own context comes first: package
// context finds a parent's cancellation and its cause through Value.
func (v valued) Value(key any) any {
	if own := v.Context.Value(key); own != nil {
		return own
	}
	return v.values.Value(key)
}
