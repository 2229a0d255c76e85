package server

import (
	"net/http"

	"a2agate/translate"
)

// batch serves a JSON array, which only revision 2025-03-26 has: its messages
// are worked off in their order, and the answers come as one array, or each as
// an event of its own once a stream had to be opened.
func (x *exchange) batch(body []byte) {
	items, err := parseBatch(body, x.set.limits.Depth, x.set.limits.Batch)
	if err != nil {
		x.refuse(http.StatusBadRequest, failure{err: err})
		return
	}
	header := headerValue(x.r.Header, headerVersion)
	x.openLegacy(header)
	if x.req.Revision != translate.Rev20250326 {
		x.refuse(http.StatusBadRequest, failure{err: &translate.Error{Code: translate.CodeInvalidRequest,
			Message: "invalid request: a batch needs protocol version 2025-03-26, later ones have one message to a body"}})
		return
	}
	requests := 0
	for i := range items {
		if items[i].problem != "" || items[i].Kind == KindRequest {
			requests++
		}
	}
	if requests == 0 {
		for i := range items {
			x.single(&items[i])
		}
		x.accepted()
		return
	}
	x.stream.id = firstID(items)
	x.s.active.add(&x.stream)
	defer x.s.active.remove(&x.stream)
	var answers [][]byte
	for i := range items {
		if a := x.single(&items[i]); a != nil {
			answers = append(answers, a)
		}
	}
	x.finishBatch(answers)
}

func firstID(items []batchItem) []byte {
	for i := range items {
		if items[i].Kind == KindRequest && items[i].ID != nil {
			return items[i].ID
		}
	}
	return nil
}

// single works off one message of a batch; nil for one without an answer.
func (x *exchange) single(it *batchItem) []byte {
	invalid := func(reason string) []byte {
		return errorResponse(it.ID, &translate.Error{Code: translate.CodeInvalidRequest, Message: "invalid request: " + reason})
	}
	switch {
	case it.problem != "":
		return invalid(it.problem)
	case it.Kind == KindNotification:
		x.notified(&it.Envelope)
		return nil
	case it.Kind == KindResponse:
		x.answered(&it.Envelope)
		return nil
	case it.Method == "initialize":
		return invalid("initialize cannot be part of a batch")
	case eraOf(&it.Envelope, "") != eraLegacy:
		return invalid("a batch holds no requests of protocol version 2026-07-28")
	}
	x.env = it.Envelope
	x.begin()
	x.fillLegacy()
	release, wait, ok := x.metered()
	if !ok {
		_, f := tooMany(wait)
		x.traced(http.StatusOK, f.err.Code, false)
		return errorResponse(it.ID, withRequestID(f.err, x.ctx.Request.ID))
	}
	defer release()
	ctx, done := x.legacyContext()
	defer done()
	x.stream.begin(it.Meta.ProgressToken)
	a := x.s.core.Handle(ctx, &x.req)
	x.traced(http.StatusOK, a.Code, false)
	return a.Message
}

// finishBatch writes the answers: one JSON array, or one event each.
func (x *exchange) finishBatch(answers [][]byte) {
	x.env = Envelope{Method: "batch"} // for the observer
	last := len(answers) - 1
	if x.stream.isOpened() {
		for _, a := range answers[:last] {
			x.stream.send(a)
		}
		x.stream.finish(http.StatusOK, answers[last])
		x.observe(http.StatusOK, 0, true)
		return
	}
	array := []byte{'['}
	for i, a := range answers {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, a...)
	}
	streamed := x.stream.finish(http.StatusOK, append(array, ']'))
	x.observe(http.StatusOK, 0, streamed)
}
