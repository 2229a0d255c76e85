package server

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"a2agate/translate"
)

// Ask implements tools.Sink: on the legacy wires it sends elicitation/create
// on the stream of the call and waits for the client's POST with the answer.
// A client asks for that by declaring elicitation at initialize; the signed
// session id carries the declaration, and a call that comes with one is after
// the handshake. Everybody else gets ok false.
//
// Questions go one after the other. The first that is not accepted ends the
// asking: the answers so far are returned.
func (x *exchange) Ask(ctx context.Context, asks []translate.Ask) (map[string]translate.Answer, bool, error) {
	params := x.askable(asks)
	if params == nil {
		return nil, false, nil
	}
	answers := make(map[string]translate.Answer, len(asks))
	for i, a := range asks {
		answer, ok, err := x.askOne(ctx, params[i])
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
func (x *exchange) askable(asks []translate.Ask) []json.RawMessage {
	if x.req.Revision.Modern() || x.legacy.id == "" {
		return nil
	}
	var params []json.RawMessage
	for _, a := range asks {
		if a.URL != "" && !x.legacy.client.ElicitURL || a.URL == "" && !x.legacy.client.ElicitForm {
			return nil
		}
		p := translate.ElicitParamsFromAsk(a, x.req.Revision)
		if p == nil {
			return nil // the revision has no words for it
		}
		params = append(params, p)
	}
	return params
}

func (x *exchange) askOne(ctx context.Context, params json.RawMessage) (translate.Answer, bool, error) {
	id := rand.Text() // nobody else can answer what they cannot name
	reply, done := x.s.running.ask(x.key("s" + id))
	defer done()
	msg := append([]byte(`{"jsonrpc":"2.0","id":"`+id+`","method":"elicitation/create","params":`),
		params...)
	if !x.stream.send(append(msg, '}')) {
		return translate.Answer{}, false, nil
	}
	select {
	case e := <-reply:
		answer, ok := answerOf(e.Result)
		return answer, ok, nil
	case <-ctx.Done():
		x.stream.send([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"` + id + `","reason":"the question is no longer open"}}`))
		return translate.Answer{}, false, ctx.Err()
	case <-x.s.drain:
		// The client cannot reach this process any more.
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
