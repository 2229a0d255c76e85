package tasksext

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// Get is tasks/get: the task as it is now. It asks the agent where the last
// word is old, and answers with what is known when the agent is slow.
// An unknown, expired or foreign task is -32602.
func (s *Service) Get(ctx context.Context, c Call) (Detail, *translate.Error) {
	r, entry, fault := s.record(ctx, c)
	if fault != nil {
		return Detail{}, fault
	}
	r.mu.Lock()
	watch, over := r.watch, r.memo.Settled != nil
	r.mu.Unlock()
	if watch != nil && !over {
		refresh, cancel := context.WithTimeout(ctx, refreshTimeout)
		// What the refresh could not find out shows in the snapshot.
		_, _ = watch.Refresh(refresh)
		cancel()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.detail(ctx, r, entry, c), nil
}

// detail derives what a client that declared c sees. r.mu is held.
func (s *Service) detail(ctx context.Context, r *record, entry handles.Entry, c Call) Detail {
	if r.memo.Settled == nil && r.watch != nil {
		s.derive(ctx, r, entry, c)
	}
	if end := r.memo.Settled; end != nil {
		if entry.Running {
			// The handle's time is another since the work is over.
			if now, err := s.o.Handles.Peek(ctx, handles.KindTask, r.handle, r.principal); err == nil {
				entry = now
			}
		}
		return Detail{TaskInfo: s.info(r, entry, end.Status, end.Message), ResultJSON: end.Result, Err: end.Err}
	}
	if open := r.open(); len(open) > 0 {
		return Detail{TaskInfo: s.info(r, entry, translate.TaskInputRequired, r.message()), Asks: open}
	}
	return Detail{TaskInfo: s.info(r, entry, translate.TaskWorking, r.message())}
}

// message is the status line of a task that goes on. mu is held.
func (r *record) message() string {
	if r.memo.Trouble != "" {
		return r.memo.Trouble
	}
	if r.watch == nil {
		return ""
	}
	return statusMessage(r.now())
}

func statusMessage(snap a2a.Snapshot) string {
	if snap.Trouble != "" {
		return snap.Trouble
	}
	if snap.Task == nil {
		return ""
	}
	return translate.StatusMessageFromTask(snap.Task)
}

// derive takes the newest snapshot into the record. r.mu is held.
func (s *Service) derive(ctx context.Context, r *record, entry handles.Entry, c Call) {
	snap := r.now()
	if r.prior != nil {
		if s.answerFailed(ctx, r, snap) {
			snap = r.now()
		} else if snap.Task != nil || snap.Message != nil {
			r.prior.Close()
			r.prior = nil
		}
		if r.prior == nil && r.moving {
			s.move(ctx, r)
			snap = r.now()
		}
	}
	switch {
	case snap.Err != nil:
		s.settle(ctx, r, entry, settledLost(entry, snap))
	case snap.Message != nil:
		s.settleWith(ctx, r, entry, translate.TaskCompleted, snap)
	case snap.Task == nil:
	default:
		s.deriveTask(ctx, r, entry, snap, c)
	}
}

// answerFailed puts the question back when the answer to it never reached the
// agent, and reports whether it did. r.mu is held.
func (s *Service) answerFailed(ctx context.Context, r *record, snap a2a.Snapshot) bool {
	if snap.Err == nil || snap.Lost || snap.Task != nil {
		return false
	}
	r.watch.Close()
	r.watch, r.prior = r.prior, nil
	r.memo.Trouble = "the answer did not reach the agent: " + lineFromError(snap.Err)
	r.memo.Question, r.memo.Answered, r.memo.Held, r.memo.Asks = "", "", nil, nil
	s.keep(ctx, r)
	return true
}

func (s *Service) deriveTask(ctx context.Context, r *record, entry handles.Entry, snap a2a.Snapshot, c Call) {
	switch status := translate.TaskStatusFromState(snap.Task.Status.State); {
	case snap.Task.Status.State.Interrupted():
		s.deriveQuestion(ctx, r, entry, snap, c)
	case status == translate.TaskWorking:
		if len(r.memo.Asks) > 0 {
			// The question went away by itself: somebody else answered.
			r.memo.Asks, r.memo.Held = nil, nil
			s.keep(ctx, r)
		}
	default:
		s.settleWith(ctx, r, entry, status, snap)
	}
}

// deriveQuestion opens the asks of an interrupted task, or ends the MCP task
// with the question in its result where this client cannot be asked.
func (s *Service) deriveQuestion(ctx context.Context, r *record, entry handles.Entry, snap a2a.Snapshot, c Call) {
	question := questionID(snap.Task)
	if question == r.memo.Answered {
		return
	}
	asks := translate.AsksFromTask(snap.Task)
	if len(asks) == 0 || !askable(asks, c) {
		s.settleWith(ctx, r, entry, translate.TaskCompleted, snap)
		return
	}
	if question != r.memo.Question {
		r.ask(question, translate.AttributedAsks(asks, s.title(r.agent)))
		s.keep(ctx, r)
	}
}

// title is what users know the agent by.
func (s *Service) title(alias string) string {
	if s.o.Title != nil {
		if title := s.o.Title(alias); title != "" {
			return title
		}
	}
	return alias
}

// askable reports whether the client of c declared what all asks need.
func askable(asks []translate.Ask, c Call) bool {
	for _, a := range asks {
		if a.URL != "" && !c.ElicitURL || a.URL == "" && !c.ElicitForm {
			return false
		}
	}
	return true
}

// questionID tells one question of an agent from the next.
func questionID(t *a2a.Task) string {
	sum := sha256.New()
	sum.Write([]byte(t.Status.State))
	if m := t.Status.Message; m != nil {
		sum.Write([]byte(m.MessageID))
		for _, p := range m.Parts {
			sum.Write([]byte(p.Text))
			sum.Write(p.Data)
			sum.Write([]byte(p.URL))
		}
		if m.MessageID == "" {
			sum.Write([]byte(t.Status.Timestamp))
		}
	} else {
		sum.Write([]byte(t.Status.Timestamp))
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// settleEnded ends a record whose agent's task has ended, whoever is asking.
// r.mu is held.
func (s *Service) settleEnded(ctx context.Context, r *record, entry handles.Entry) {
	if r.memo.Settled == nil && r.watch != nil && r.prior == nil && r.now().Done {
		s.derive(ctx, r, entry, Call{})
	}
}

// settleWith ends the MCP task with what the call would have returned.
func (s *Service) settleWith(ctx context.Context, r *record, entry handles.Entry, status translate.TaskStatus, snap a2a.Snapshot) {
	end := &settled{Status: status}
	if status == translate.TaskCompleted {
		result := s.o.Present(ctx, entry, r.memo.Tool, snap)
		end.Result = translate.AppendResult(nil, result, translate.Rev20260728, nil)
	} else if snap.Task != nil {
		end.Message = translate.StatusMessageFromTask(snap.Task)
	}
	s.settle(ctx, r, entry, end)
	if snap.Done {
		// The handle first: whoever does not find the watch any more is to find
		// that the task has ended.
		if err := s.o.Handles.Settle(context.WithoutCancel(ctx), r.handle); err != nil {
			s.o.Logger.Debug("handle not settled", "agent", r.agent, "err", err)
		}
		r.release()
	}
}

func (s *Service) settle(ctx context.Context, r *record, _ handles.Entry, end *settled) {
	r.memo.Settled, r.memo.Asks, r.memo.Held, r.memo.Trouble = end, nil, nil, ""
	r.memo.Updated = time.Now()
	s.keep(ctx, r)
	r.touch()
}

// settledLost is the end of a task that can no longer be reached.
func settledLost(entry handles.Entry, snap a2a.Snapshot) *settled {
	var cause *a2a.Error
	if !errors.As(snap.Err, &cause) {
		cause = &a2a.Error{Cause: a2a.CauseProtocol, Agent: entry.Agent, Message: "the task can no longer be reached"}
	}
	fault := translate.ErrorFromLost(cause, translate.Options{Agent: entry.Agent, Handles: translate.Handles{Task: entry.Handle}})
	return &settled{Status: translate.TaskFailed, Message: fault.Message, Err: fault}
}

// info are the base fields as they are now; lastUpdatedAt moves only when
// what a client sees has changed. r.mu is held.
func (s *Service) info(r *record, entry handles.Entry, status translate.TaskStatus, message string) translate.TaskInfo {
	keys := make([]string, 0, len(r.memo.Asks)+2)
	keys = append(keys, string(status), message)
	for _, a := range r.open() {
		keys = append(keys, a.Key)
	}
	digest, _ := json.Marshal(keys) // strings have an encoding
	if r.digest != "" && r.digest != string(digest) && r.memo.Settled == nil {
		r.memo.Updated = time.Now()
	}
	r.digest = string(digest)
	return translate.TaskInfo{
		ID: r.handle, Status: status, StatusMessage: message,
		Created: r.memo.Created, Updated: r.memo.Updated,
		TTL: ttl(r, entry), PollInterval: s.o.PollInterval,
	}
}

// ttl counts from the task's creation to the end of its handle; a task that
// goes on never says less than a day.
func ttl(r *record, entry handles.Entry) time.Duration {
	left := entry.Expires.Sub(r.memo.Created)
	if r.memo.Settled == nil {
		left = max(left, runningTTL)
	}
	return left.Round(time.Millisecond)
}

// lineFromError is an error's one line for people.
func lineFromError(err error) string {
	var e *a2a.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "no answer"
}
