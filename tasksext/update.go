package tasksext

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// Update is tasks/update: it takes answers to open questions. Answers are
// held until the set is complete and then sent as one message; they show in
// the next Get at once. Keys that are unknown, answered or of an earlier
// question are ignored. A malformed answer, or one that its question's schema
// refuses, is -32602 and changes nothing.
func (s *Service) Update(ctx context.Context, c Call, inputResponses json.RawMessage) *translate.Error {
	answers, fault := answersFromJSON(inputResponses)
	if fault != nil {
		return fault
	}
	r, entry, fault := s.record(ctx, c)
	if fault != nil {
		return fault
	}
	s.whole(ctx, r)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memo.Settled != nil || r.watch == nil {
		return nil
	}
	s.derive(ctx, r, entry, c)
	taken := map[string]translate.Answer{}
	for _, open := range r.open() {
		raw, given := answers[open.Key]
		if !given {
			continue
		}
		answer, err := translate.AnswerFromJSON(raw, open)
		if err != nil {
			return invalid("inputResponses." + open.Key + ": " + err.Error())
		}
		taken[open.Key] = answer
	}
	if len(taken) == 0 {
		return nil
	}
	return s.take(ctx, r, entry, taken)
}

// take holds answers, and acts on them when the set is complete. r.mu is held.
func (s *Service) take(ctx context.Context, r *record, entry handles.Entry, taken map[string]translate.Answer) *translate.Error {
	before := maps.Clone(r.memo.Held)
	if r.memo.Held == nil {
		r.memo.Held = map[string]translate.Answer{}
	}
	maps.Copy(r.memo.Held, taken)
	r.memo.Trouble = ""
	defer r.touch()
	if len(r.open()) > 0 {
		s.keep(ctx, r)
		return nil
	}
	for _, a := range r.memo.Asks {
		if action := r.memo.Held[a.Key].Action; action != "accept" {
			s.refuse(ctx, r, entry, action)
			return nil
		}
	}
	if err := s.answer(ctx, r, entry); err != nil {
		r.memo.Held = before
		return err
	}
	s.keep(ctx, r)
	return nil
}

// refuse ends the MCP task with the question and the handle, as a call whose
// user declined would have ended; the agent's task is left waiting.
func (s *Service) refuse(ctx context.Context, r *record, entry handles.Entry, action string) {
	snap := r.now()
	note := "the user declined to answer"
	if action == "cancel" {
		note = "the user closed the question without an answer"
	}
	snap.Notes = append(snap.Notes[:len(snap.Notes):len(snap.Notes)], note+"; the agent's task still waits")
	s.settleWith(ctx, r, entry, translate.TaskCompleted, snap)
}

// answer sends the complete set to the agent. A question that is answered
// elsewhere (a login page) sends nothing: the agent goes on by itself.
// r.mu is held.
func (s *Service) answer(ctx context.Context, r *record, entry handles.Entry) *translate.Error {
	snap := r.now()
	question := r.memo.Question
	if snap.Task != nil && snap.Task.Status.State == a2a.StateAuthRequired {
		r.memo.Answered, r.memo.Asks, r.memo.Held = question, nil, nil
		return nil
	}
	release, ok := s.o.Handles.Acquire(r.handle)
	if !ok {
		return invalid("another answer to this question is on its way; read the task again")
	}
	defer release()
	follow, ok := s.o.Follow(r.agent)
	if !ok {
		return agentGone(entry)
	}
	asks := make([]translate.Ask, len(r.memo.Asks))
	answers := map[string]translate.Answer{}
	for i, a := range r.memo.Asks {
		asks[i] = a.Ask
		answers[a.Ask.Key] = r.memo.Held[a.Key]
	}
	watch, err := follow.Send(ctx, a2a.SendRequest{Message: a2a.Message{
		MessageID: a2a.NewMessageID(), ContextID: r.contextID, TaskID: r.taskID, Role: a2a.RoleUser,
		Parts: translate.MessageFromAnswers(asks, answers),
	}})
	if err != nil {
		return unavailable(entry, err)
	}
	r.prior, r.watch = r.watch, watch
	r.memo.Answered, r.memo.Asks, r.memo.Held = question, nil, nil
	r.memo.Updated = time.Now()
	return nil
}

// Cancel is tasks/cancel: it asks the agent to cancel and returns when that
// is known or has taken long enough. A task that has ended is acknowledged
// all the same, and so is an agent that refuses: the task then goes on.
func (s *Service) Cancel(ctx context.Context, c Call) *translate.Error {
	r, entry, fault := s.record(ctx, c)
	if fault != nil {
		return fault
	}
	s.whole(ctx, r)
	r.mu.Lock()
	s.settleEnded(ctx, r, entry)
	watch, over := r.watch, r.memo.Settled != nil
	r.mu.Unlock()
	if over || watch == nil {
		return nil
	}
	cancel, done := context.WithTimeout(ctx, cancelTimeout)
	defer done()
	// A refusal shows in what the task does next.
	_, _ = watch.Cancel(cancel)
	s.whole(ctx, r)
	r.mu.Lock()
	s.settleEnded(ctx, r, entry)
	r.touch()
	r.mu.Unlock()
	return nil
}

// answersFromJSON reads inputResponses: an object whose values are objects.
func answersFromJSON(raw json.RawMessage) (map[string]json.RawMessage, *translate.Error) {
	var answers map[string]json.RawMessage
	if err := json.Unmarshal(raw, &answers); err != nil || answers == nil {
		return nil, invalid("inputResponses is not an object; send {\"<key>\": {\"action\": \"accept\", \"content\": {…}}}")
	}
	return answers, nil
}
