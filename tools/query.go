package tools

import (
	"context"
	"encoding/json"
	"strings"

	"a2agate/translate"
)

// maxMethod bounds a method name.
const maxMethod = 200

// query is a2a_query: any JSON-RPC method, sent as it is. The answer is the
// agent's result, byte for byte.
func (inv *invocation) query(ctx context.Context) translate.Outcome {
	if inv.call.RequestState != nil {
		return badState("this tool asks no questions")
	}
	if problem := inv.chooseAgent(); problem != "" {
		return inv.fault(problem)
	}
	if !inv.agent.exposes(ExposeQuery) {
		return inv.fault("agent " + jsonString(inv.agent.Alias) + " does not take raw requests: use a2a_send_message")
	}
	method := inv.args.text("method")
	if method == "" || len(method) > maxMethod || strings.ContainsAny(method, "\r\n\x00") {
		return inv.fault(`"method" must be the name of a JSON-RPC method, such as GetTask`)
	}
	bounded, cancel := context.WithTimeout(ctx, inv.budget())
	defer cancel()
	client, err := inv.agent.Agent.Client(bounded)
	if err != nil {
		return inv.failure(agentError(err))
	}
	raw, err := client.Query(bounded, method, inv.args.fields["params"])
	if err != nil {
		if gone(ctx) {
			return cancelled()
		}
		return inv.failure(agentError(err))
	}
	return result(inv.queryResult(raw))
}

// queryResult shows the raw result in both halves, within the limit.
func (inv *invocation) queryResult(raw json.RawMessage) translate.Result {
	limit := inv.st.opts.Limits.ResultChars
	text := string(raw)
	if len(text) > limit {
		cutText := translate.CutRunes(text, limit)
		note := "The answer has " + sizeWords(len(text)) + " and stands cut: ask for less with the method's own params."
		return translate.Result{Content: textBlocks(cutText, note)}
	}
	r := translate.Result{Content: textBlocks(text)}
	if inv.st.opts.Structured != translate.StructuredNever {
		r.Structured = json.RawMessage(`{"agent":` + jsonString(inv.agent.Alias) + `,"result":` + text + `}`)
	}
	return r
}
