package server

import (
	"encoding/json"

	"a2agate/translate"
)

// askPrompt settles the arguments of a prompts/get whose client can be asked
// for what is missing (MCP 2026-07-28, MRTR). It returns the question to put,
// or the arguments with the answer to it, or neither, where the request stands
// as it is. The retry carries the whole request again, so nothing is kept in
// between and there is no requestState.
func (c *Core) askPrompt(req *Request) (ask *translate.Ask, args map[string]string, f failure) {
	asker, ok := c.o.Prompts.(PromptAsker)
	if !ok || req.Method != "prompts/get" || !req.Revision.Modern() {
		return nil, nil, failure{}
	}
	given := map[string]json.RawMessage{}
	if r := req.P.InputResponses; r != nil && json.Unmarshal(r, &given) != nil {
		return nil, nil, malformed("prompts/get: params.inputResponses must be an object")
	}
	if a := req.P.Arguments; a != nil && json.Unmarshal(a, &args) != nil {
		return nil, nil, failure{} // the shape is wrong, which mcp-go says
	}
	name, _ := stringValue(req.P.Name)
	question, ok := asker.AskPrompt(req.View, name, args)
	if !ok {
		return nil, nil, failure{}
	}
	if raw, answered := given[question.Key]; answered {
		answer, err := translate.AnswerFromJSON(raw, question)
		switch {
		case err != nil:
			question.Message = "The last answer cannot be used: " + err.Error() + "\n" + question.Message
		case answer.Action != "accept":
			return nil, nil, failure{} // the error says what is missing
		default:
			return nil, withAnswer(args, answer.Content), failure{}
		}
	}
	if !req.Client.ElicitForm {
		return nil, nil, failure{}
	}
	return &question, nil, failure{}
}

// withAnswer adds the fields of a form to the arguments of a prompt, which are
// text.
func withAnswer(args map[string]string, content json.RawMessage) map[string]string {
	merged := map[string]string{}
	for k, v := range args {
		merged[k] = v
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(content, &fields) // an object that has been checked
	for k, raw := range fields {
		if s, ok := stringValue(raw); ok {
			merged[k] = s
		}
	}
	return merged
}
