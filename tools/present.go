package tools

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// contextOf is the conversation that an answer belongs to: what the agent
// says, else what the message said.
func (x *exchange) contextOf(s a2a.Snapshot) string {
	switch {
	case s.Task != nil && s.Task.ContextID != "":
		return s.Task.ContextID
	case s.Message != nil && s.Message.ContextID != "":
		return s.Message.ContextID
	}
	return x.contextID
}

// answer is the Result for what is known, with handles for every id the agent
// gave.
func (x *exchange) answer(ctx context.Context, s a2a.Snapshot, notes ...string) translate.Outcome {
	tctx, cancel := tidy(ctx)
	defer cancel()
	inv := x.inv
	o := inv.options()
	o.Notes = notes
	o.Elapsed = time.Since(inv.began)
	task := inv.mint(tctx, &o, s, x.contextOf(s), x.task)
	x.recall(tctx, s, task)
	x.told = task.Handle
	return result(inv.tool.fit(translate.ResultFromSnapshot(s, o), s))
}

// mint fills in the handles of an answer: the context's, and that of the task
// that the snapshot shows or that the call went on with. A table that has no
// room or cannot be reached costs the handles, not the answer; the note says
// so.
func (inv *invocation) mint(ctx context.Context, o *translate.Options, s a2a.Snapshot, contextID string, task handles.Entry) handles.Entry {
	table := inv.st.opts.Handles
	taskID, running := task.TaskID, task.Running
	switch {
	case s.Task != nil && s.Task.ID != "":
		taskID, running = s.Task.ID, stillOpen(s)
	case s.Message != nil:
		taskID = "" // a message is an answer by itself (A2A 3.1.1)
	case s.Lost:
		running = false
	}
	task, err := inv.taskHandle(ctx, contextID, taskID, running)
	if err == nil {
		o.Handles.Task = task.Handle
		var conv handles.Entry
		conv, err = table.Context(ctx, inv.call.Principal, inv.agent.Alias, contextID)
		o.Context = conv.Handle
	}
	switch {
	case err != nil && o.Handles.Task != "":
		o.Notes = append(o.Notes, "no contextHandle could be given out: "+noteFrom(err))
	case err != nil:
		o.Notes = append(o.Notes, "no handle could be given out: "+noteFrom(err))
		return handles.Entry{}
	}
	return task
}

// taskHandle is the handle of the agent's task, in the room that is kept for
// it where there is no other.
func (inv *invocation) taskHandle(ctx context.Context, contextID, taskID string, running bool) (handles.Entry, error) {
	if inv.room != nil {
		return inv.room.Task(ctx, contextID, taskID, running)
	}
	return inv.st.opts.Handles.Task(ctx, inv.call.Principal, inv.agent.Alias, contextID, taskID, running)
}

// keep goes on following a task whose handles are out. When it ends they
// settle, though nobody may ask: what lists tasks that work is right then.
func (inv *invocation) keep(watch *a2a.Watch, out ...string) {
	watch.Keep(inv.st.opts.HandleTTL)
	inv.settle(watch, out...)
}

// settle has the handles settled when the task ends, as long as it is followed.
// It comes after the answer that shows the task open: that answer notes so in
// the handles, though the task may have ended meanwhile.
func (inv *invocation) settle(watch *a2a.Watch, out ...string) {
	table := inv.st.opts.Handles
	for _, handle := range out { // "" where none could be given
		watch.AtEnd(handle, func(ctx context.Context) { _ = table.Settle(ctx, handle) }) // expires later otherwise
	}
}

// noteFrom words an error of the handle table without its cause.
func noteFrom(err error) string {
	var bad *handles.Error
	if errors.As(err, &bad) {
		return bad.Error()
	}
	return "the handle table did not answer in time"
}

// stillOpen says that the task goes on or waits: its handle lives on.
func stillOpen(s a2a.Snapshot) bool {
	return !s.Lost && !s.Task.Status.State.Terminal()
}

// Present is the Result that a call of tool would have returned had it waited
// for snap: what an MCP task shows when it ends. entry is the task's handle.
// It needs neither the agent nor the call, so it works after a restart and
// after the agent has left the configuration.
func (s *Service) Present(ctx context.Context, entry handles.Entry, toolName string, snap a2a.Snapshot) translate.Result {
	st := s.state.Load()
	t := st.tools[toolName]
	if t == nil {
		t = s.generic[ToolSend]
	}
	o := st.options(st.byAlias[entry.Agent], t)
	if o.Agent == "" {
		o.Agent = entry.Agent
	}
	o.Handles.Task = entry.Handle
	contextID := entry.ContextID
	if snap.Task != nil && snap.Task.ContextID != "" {
		contextID = snap.Task.ContextID
	}
	conv, err := st.opts.Handles.Context(ctx, entry.Principal, entry.Agent, contextID)
	if err == nil {
		o.Context = conv.Handle
	}
	return t.fit(translate.ResultFromSnapshot(snap, o), snap)
}

// fit makes a result agree with the tool's declared output schema: clients
// refuse a result that does not. The agent's data stands there alone when it
// conforms; everything else becomes an error result, whose text has it all.
func (t *tool) fit(r translate.Result, s a2a.Snapshot) translate.Result {
	if t.output == nil || r.IsError {
		return r
	}
	if r.Structured != nil {
		if t.conforms(r.Structured) {
			return r
		}
		r.Structured = nil
	}
	if e := envelopeOf(r); e != nil && t.conforms(e) {
		r.Structured = e
		return r
	}
	r.IsError = true
	if settled(s) && !asks(s) {
		r.Content = append(r.Content, textBlock("The answer does not fit the output schema that the agent declares for this skill; it stands above as the agent gave it."))
	}
	return r
}

// conforms reports whether a value keeps the tool's output schema.
func (t *tool) conforms(raw json.RawMessage) bool {
	v, err := decodeExact(raw)
	if err != nil {
		return false
	}
	problem, err := t.output.verdict(v)
	return problem == "" && err == nil
}

// envelopeOf finds the envelope in a result's _meta.
func envelopeOf(r translate.Result) json.RawMessage {
	for _, m := range r.Meta {
		if m.Key == translate.EnvelopeMetaKey {
			return m.Value
		}
	}
	return nil
}
