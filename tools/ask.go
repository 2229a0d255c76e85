package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// maxReasks bounds how often one question is put again in the middle of a
// call because its answer could not be used.
const maxReasks = 3

// openQuestion is what a requestState stands for: the question, what has been
// answered of it, and the call that it belongs to. It is the Data of a state
// entry and survives a restart.
type openQuestion struct {
	Tool string `json:"tool"`
	// Digest binds the state to the arguments of the call.
	Digest    string                      `json:"digest"`
	ContextID string                      `json:"contextId,omitempty"`
	TaskID    string                      `json:"taskId"`
	Asks      []translate.Ask             `json:"asks"`
	Answers   map[string]translate.Answer `json:"answers,omitempty"`
	// Given says that the caller holds a handle of the task.
	Given bool `json:"given,omitempty"`
	// Memory is where an agent tool keeps its conversation.
	Memory string `json:"memory,omitempty"`
}

// digest is over the arguments' values, so that a client may spell them anew.
func (a arguments) digest() string {
	values := make(map[string]any, len(a.fields))
	for name, raw := range a.fields {
		v, err := valueFromRaw(raw)
		if err != nil {
			v = string(raw)
		}
		values[name] = v
	}
	raw, err := json.Marshal(values) // sorts the names
	if err != nil {
		raw = a.raw
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// canAsk reports whether this client can be asked all of it. Nobody is asked
// by a mode that it has not declared (MCP 2026-07-28, MRTR).
func canAsk(asks []translate.Ask, c ClientCapabilities) bool {
	for i := range asks {
		if asks[i].URL != "" && !c.ElicitURL || asks[i].URL == "" && !c.ElicitForm {
			return false
		}
	}
	return len(asks) > 0
}

// question puts what the agent asks to the caller: with an answer that came
// beforehand, in the middle of the call, or as an InputRequired. A caller that
// cannot be asked, or does not want to answer, gets the question in the
// envelope; the task waits on. again means that x.message is the answer.
func (x *exchange) question(ctx context.Context, s a2a.Snapshot) (out translate.Outcome, again bool) {
	asks := translate.AttributedAsks(translate.AsksFromTask(s.Task), x.inv.agent.title())
	if !canAsk(asks, x.inv.call.Client) || s.Task.ID == "" {
		return x.answer(ctx, s, notesOf(asks)...), false
	}
	tctx, cancel := tidy(ctx)
	defer cancel()
	inv := x.inv
	task, err := inv.st.opts.Handles.Task(tctx, inv.call.Principal, inv.agent.Alias, x.contextOf(s), s.Task.ID, true)
	if err != nil {
		return x.answer(ctx, s), false
	}
	x.contextID, x.task, x.refers = x.contextOf(s), task, nil
	if answers, ok := x.coldAnswers(asks); ok {
		return out, x.reply(asks, answers)
	}
	if inv.sink != nil {
		answers, asked, problem := x.askInCall(ctx, asks)
		switch {
		case asked && problem == "":
			if x.reply(asks, answers) {
				return out, true
			}
			return x.answer(ctx, s, "the question was not answered"), false
		case asked:
			return x.afterAsking(ctx, s, problem), false
		}
	}
	if inv.call.Client.MidCallOnly {
		return x.afterAsking(ctx, s, "the question could not be put to the user"), false
	}
	x.recall(tctx, s, task)
	return x.askLater(tctx, s, openQuestion{Asks: asks}), false
}

// afterAsking is the answer when asking in mid-call brought nothing: the
// caller may have gone meanwhile.
func (x *exchange) afterAsking(ctx context.Context, s a2a.Snapshot, problem string) translate.Outcome {
	if gone(ctx) {
		x.abandon(ctx)
		return cancelled()
	}
	return x.answer(ctx, s, problem)
}

// abandon cancels the task of a question whose asker has gone, unless it
// holds a handle.
func (x *exchange) abandon(ctx context.Context) {
	if x.given {
		return
	}
	watch, err := x.inv.agent.Follow.Task(context.WithoutCancel(ctx), x.task.TaskID, x.task.ContextID)
	if err == nil {
		watch.Abandon()
	}
}

// notesOf are what could not be kept of the questions.
func notesOf(asks []translate.Ask) []string {
	var out []string
	for i := range asks {
		if asks[i].Note != "" {
			out = append(out, asks[i].Note)
		}
	}
	return out
}

// reply makes x.message the answers; false when none is left to send.
func (x *exchange) reply(asks []translate.Ask, answers map[string]translate.Answer) bool {
	parts := translate.MessageFromAnswers(asks, answers)
	if parts == nil {
		return false
	}
	x.message = a2a.Message{Role: a2a.RoleUser, Parts: parts}
	return true
}

// coldAnswers uses answers that came with a call before anything was asked
// (MCP 2026-07-28: a retry without a state is legal). Each is used once, and
// only if every question has a good one.
func (x *exchange) coldAnswers(asks []translate.Ask) (map[string]translate.Answer, bool) {
	if len(x.cold) == 0 {
		return nil, false
	}
	answers := map[string]translate.Answer{}
	for _, a := range asks {
		raw, ok := x.cold[a.Key]
		if !ok {
			return nil, false
		}
		ans, err := translate.AnswerFromJSON(raw, a)
		if err != nil || ans.Action != "accept" {
			return nil, false
		}
		answers[a.Key] = ans
	}
	for _, a := range asks {
		delete(x.cold, a.Key)
	}
	return answers, true
}

// askInCall asks through the sink. asked is false where this wire cannot;
// problem says in plain words why there is no answer.
func (x *exchange) askInCall(ctx context.Context, asks []translate.Ask) (answers map[string]translate.Answer, asked bool, problem string) {
	got := map[string]translate.Answer{}
	left := asks
	bounded, cancel := context.WithTimeout(ctx, stateTTL)
	defer cancel()
	for range maxReasks {
		given, ok, err := x.inv.sink.Ask(bounded, left)
		if !ok {
			return nil, false, ""
		}
		if bounded.Err() != nil {
			return nil, true, "the user did not answer in time; the task still waits"
		}
		if err != nil {
			return nil, true, "the question could not be put to the user"
		}
		var refused string
		left, refused = sortAnswers(left, given, got)
		if refused != "" {
			return nil, true, refused
		}
		if len(left) == 0 {
			return got, true, ""
		}
	}
	return nil, true, "the user's answers did not fit the question"
}

// sortAnswers moves the good answers into got and returns the questions that
// are to be asked again; refused is set when the user declined or cancelled.
func sortAnswers(asks []translate.Ask, given, got map[string]translate.Answer) (left []translate.Ask, refused string) {
	for _, a := range asks {
		ans, ok := given[a.Key]
		switch {
		case !ok:
			left = append(left, a)
		case ans.Action == "decline":
			return nil, "the user declined to answer; the task still waits"
		case ans.Action == "cancel":
			return nil, "the question was dismissed without an answer; the task still waits"
		default:
			checked, err := translate.AnswerFromJSON(jsonFromAnswer(ans), a)
			if err != nil {
				left = append(left, askAgain(a, err))
				continue
			}
			got[a.Key] = checked
		}
	}
	return left, ""
}

func jsonFromAnswer(a translate.Answer) json.RawMessage {
	b := append([]byte(`{"action":`), jsonString(a.Action)...)
	if a.Content != nil {
		b = append(append(b, `,"content":`...), a.Content...)
	}
	return append(b, '}')
}

// askAgain is the question with what was wrong with its last answer.
func askAgain(a translate.Ask, err error) translate.Ask {
	a.Message = fmt.Sprintf("The last answer cannot be used: %s.\n%s", err, a.Message)
	return a
}

// askLater stores the question under a new single-use state and returns it as
// an InputRequired. Without a place to store it the envelope asks.
func (x *exchange) askLater(ctx context.Context, s a2a.Snapshot, q openQuestion) translate.Outcome {
	inv := x.inv
	q.Tool, q.Digest = inv.tool.shown.Name, inv.args.digest()
	q.ContextID, q.TaskID = x.contextID, x.task.TaskID
	q.Given, q.Memory = x.given, x.memory
	data, err := json.Marshal(q)
	if err != nil {
		return x.answer(ctx, s)
	}
	entry, err := inv.st.opts.Handles.State(ctx, inv.call.Principal, inv.agent.Alias, data, stateTTL)
	if err != nil {
		return x.answer(ctx, s, "the question could not be kept for an answer: "+noteFrom(err))
	}
	return translate.Outcome{InputRequired: &translate.InputRequired{Asks: q.left(), RequestState: entry.Handle}}
}

// left are the questions that have no answer yet.
func (q *openQuestion) left() []translate.Ask {
	var out []translate.Ask
	for _, a := range q.Asks {
		if _, ok := q.Answers[a.Key]; !ok {
			out = append(out, a)
		}
	}
	return out
}

// responsesFromRaw reads inputResponses; null and absent are none.
func responsesFromRaw(raw json.RawMessage) (map[string]json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var out map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &out) != nil {
		return nil, errors.New(`inputResponses must be an object of answers by key, such as {"answer": {"action": "accept", "content": {…}}}`)
	}
	return out, nil
}

// badState is the error for a requestState that is not good for this call.
func badState(why string) translate.Outcome {
	return protocolError(translate.CodeInvalidParams, "requestState is not valid for this call: "+why+"; call the tool again without it",
		json.RawMessage(`{"reason":"invalid_request_state"}`))
}

// resume goes on with a question that this call answers. Nothing reaches the
// agent unless the state is this principal's, unused, in time, and made for
// this tool and these arguments.
func (inv *invocation) resume(ctx context.Context) translate.Outcome {
	table, handle := inv.st.opts.Handles, *inv.call.RequestState
	given, err := responsesFromRaw(inv.call.InputResponses)
	if err != nil {
		return protocolError(translate.CodeInvalidParams, err.Error(), nil)
	}
	entry, err := table.Peek(ctx, handles.KindState, handle, inv.call.Principal)
	if err != nil {
		return inv.stateError(err)
	}
	var q openQuestion
	if json.Unmarshal(entry.Data, &q) != nil || !inv.call.sees(entry.Agent) {
		return badState("it is unknown")
	}
	if q.Tool != inv.tool.shown.Name {
		return badState("it belongs to another tool")
	}
	if q.Digest != inv.args.digest() {
		return badState("it belongs to a call with other arguments")
	}
	a := inv.st.byAlias[entry.Agent]
	if a == nil {
		return badState(fmt.Sprintf("agent %q is no longer configured", entry.Agent))
	}
	inv.meet(a)
	x := inv.newExchange()
	x.contextID, x.given, x.memory = q.ContextID, q.Given, q.Memory
	x.policy, x.budget = inv.policy(), inv.budget()
	defer x.letGo()
	if x.task, err = table.Task(ctx, inv.call.Principal, entry.Agent, q.ContextID, q.TaskID, true); err != nil {
		return inv.failure(err)
	}
	if !x.take() {
		return x.busy()
	}
	if _, err := table.Take(ctx, handle, inv.call.Principal); err != nil {
		return inv.stateError(err)
	}
	return x.answered(ctx, q, given)
}

// stateError words an error of the handle table about a requestState.
func (inv *invocation) stateError(err error) translate.Outcome {
	var bad *handles.Error
	if errors.As(err, &bad) {
		switch bad.Code {
		case handles.CodeExpired:
			return badState("it has expired")
		case handles.CodeUsed:
			return badState("it has been used already")
		case handles.CodeUnknown, handles.CodeWrongKind, handles.CodeMalformed:
			return badState("it is unknown")
		case handles.CodeFull, handles.CodeStore:
		}
	}
	return inv.failure(err)
}

// answered works the answers into the question: asks for what is missing or
// not usable, gives up when the user does, else sends them.
func (x *exchange) answered(ctx context.Context, q openQuestion, given map[string]json.RawMessage) translate.Outcome {
	if q.Answers == nil {
		q.Answers = map[string]translate.Answer{}
	}
	again := false
	for i, a := range q.Asks {
		raw, ok := given[a.Key]
		if _, done := q.Answers[a.Key]; done {
			continue
		}
		if !ok {
			again = true
			continue
		}
		ans, err := translate.AnswerFromJSON(raw, a)
		switch {
		case err != nil:
			again = true
			q.Asks[i] = askAgain(plainAsk(a), err)
		case ans.Action == "decline":
			return x.waiting(ctx, q, "the user declined to answer; the task still waits")
		case ans.Action == "cancel":
			return x.waiting(ctx, q, "the question was dismissed without an answer; the task still waits")
		default:
			q.Answers[a.Key] = ans
		}
	}
	if again {
		if !canAsk(q.left(), x.inv.call.Client) {
			return x.waiting(ctx, q, "the question is still open, and this request declares no way to put it")
		}
		tctx, cancel := tidy(ctx)
		defer cancel()
		return x.askLater(tctx, x.lastSeen(ctx, q), q)
	}
	if !x.reply(q.Asks, q.Answers) {
		return x.waiting(ctx, q, "the question was not answered; the task still waits")
	}
	return x.run(ctx)
}

// plainAsk takes an earlier complaint out of a question.
func plainAsk(a translate.Ask) translate.Ask {
	const mark = "The last answer cannot be used: "
	if len(a.Message) > len(mark) && a.Message[:len(mark)] == mark {
		if i := bytes.IndexByte([]byte(a.Message), '\n'); i >= 0 {
			a.Message = a.Message[i+1:]
		}
	}
	return a
}

// waiting is the envelope of a task that still waits for its answer.
func (x *exchange) waiting(ctx context.Context, q openQuestion, note string) translate.Outcome {
	return x.answer(ctx, x.lastSeen(ctx, q), note)
}

// lastSeen is the task of a question as far as it can be had: from the
// follower, else the agent, else from the question itself.
func (x *exchange) lastSeen(ctx context.Context, q openQuestion) a2a.Snapshot {
	watch, err := x.inv.agent.Follow.Task(ctx, q.TaskID, q.ContextID)
	if err == nil {
		defer watch.Close()
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		if s, err := watch.Refresh(ask); err == nil && s.Task != nil {
			return s
		}
	}
	m := &a2a.Message{Role: a2a.RoleAgent}
	for _, a := range q.Asks {
		m.Parts = append(m.Parts, a2a.Part{Kind: a2a.PartText, Text: plainAsk(a).Message})
	}
	return a2a.Snapshot{Task: &a2a.Task{
		ID: q.TaskID, ContextID: q.ContextID,
		Status: a2a.Status{State: a2a.StateInputRequired, Message: m},
	}}
}
