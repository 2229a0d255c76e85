package server

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"a2agate/tools"
	"a2agate/translate"
)

// questioner asks a legacy client in the middle of a call: elicitation/create
// goes out on the call's own stream, the answer comes as a message of its own.
// Modern clients are never asked that way (MCP 2026-07-28, transports).
type questioner struct {
	running *running
	stream  *stream
	// principal and session are who may answer.
	principal, session string
	revision           translate.Revision
	client             tools.ClientCapabilities
	// gone is closed when answers can no longer reach this process.
	gone <-chan struct{}
}

// Ask implements tools.Sink. A client asks for that by declaring elicitation at
// initialize; the signed session id carries the declaration, and a call that
// comes with one is after the handshake. Everybody else gets ok false.
func (x *exchange) Ask(ctx context.Context, asks []translate.Ask) (map[string]translate.Answer, bool, error) {
	q := questioner{
		running: &x.s.running, stream: &x.stream, principal: x.id.Principal, session: x.legacy.id,
		revision: x.req.Revision, client: x.legacy.client, gone: x.s.drain,
	}
	return q.ask(ctx, asks)
}

// ask puts the questions one after the other. The first that is not accepted
// ends the asking: the answers so far are returned.
func (q *questioner) ask(ctx context.Context, asks []translate.Ask) (map[string]translate.Answer, bool, error) {
	params := q.askable(asks)
	if params == nil {
		return nil, false, nil
	}
	answers := make(map[string]translate.Answer, len(asks))
	for i, a := range asks {
		answer, ok, err := q.askOne(ctx, params[i])
		if err != nil || !ok {
			return nil, false, err
		}
		answers[a.Key] = answer
		if answer.Action != "accept" {
			break
		}
	}
	return answers, true, nil
}

// askable returns the params of each question, nil when this client cannot be
// asked every one of them.
func (q *questioner) askable(asks []translate.Ask) []json.RawMessage {
	if q.revision.Modern() || q.session == "" {
		return nil
	}
	var params []json.RawMessage
	for _, a := range asks {
		if a.URL != "" && !q.client.ElicitURL || a.URL == "" && !q.client.ElicitForm {
			return nil
		}
		p := translate.ElicitParamsFromAsk(a, q.revision)
		if p == nil {
			return nil // the revision has no words for it
		}
		params = append(params, p)
	}
	return params
}

func (q *questioner) askOne(ctx context.Context, params json.RawMessage) (translate.Answer, bool, error) {
	id := rand.Text() // nobody else can answer what they cannot name
	reply, done := q.running.ask(callKey{principal: q.principal, session: q.session, id: "s" + id})
	defer done()
	msg := append([]byte(`{"jsonrpc":"2.0","id":"`+id+`","method":"elicitation/create","params":`), params...)
	if !q.stream.send(append(msg, '}')) {
		return translate.Answer{}, false, nil
	}
	select {
	case e := <-reply:
		answer, ok := answerOf(e.Result)
		return answer, ok, nil
	case <-ctx.Done():
		q.stream.send([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"` + id + `","reason":"the question is no longer open"}}`))
		return translate.Answer{}, false, ctx.Err()
	case <-q.gone:
		return translate.Answer{}, false, nil
	}
}

// answerOf reads an ElicitResult. ok is false for an error response and for
// what is no such result: the client cannot be asked.
func answerOf(result json.RawMessage) (translate.Answer, bool) {
	raw, _ := lookup(result, "action")
	action, _ := stringValue(raw)
	a := translate.Answer{Action: action}
	switch action {
	case "accept":
		content, _ := lookup(result, "content")
		if content != nil && !isObject(content) {
			return a, false
		}
		a.Content = content
		return a, true
	case "decline", "cancel":
		return a, true
	}
	return a, false
}
