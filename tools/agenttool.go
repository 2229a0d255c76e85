package tools

import (
	"context"
	"encoding/json"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// memoryKey names the entry in which an agent tool keeps the conversation of
// one principal with one agent. It stands in the place of an A2A context id;
// no agent can use it as one, since it begins with a control character.
const memoryKey = "\x00conversation"

// memory is the Data of that entry. The entry expires like any handle.
type memory struct {
	ContextID string `json:"contextId,omitempty"`
	// Task is the handle of the last task, as long as it is not finished.
	Task string `json:"task,omitempty"`
}

// agentTool is a tool that stands for a whole agent: it goes on with the last
// conversation of this principal and agent, and with its task when that waits
// for an answer, unless it is told to start fresh.
func (inv *invocation) agentTool(ctx context.Context) translate.Outcome {
	if inv.call.RequestState != nil {
		return inv.resume(ctx)
	}
	message := inv.args.text("message")
	if message == "" {
		return inv.fault(`"message" is empty: say what to ask or tell the agent`)
	}
	x := inv.newExchange()
	entry, err := inv.st.opts.Handles.Context(ctx, inv.call.Principal, inv.agent.Alias, memoryKey)
	if err != nil {
		return inv.failure(err)
	}
	x.memory = entry.Handle
	if !inv.args.flag("start_fresh", false) {
		x.goOn(ctx, entry)
	}
	x.message = a2a.Message{Role: a2a.RoleUser, Parts: []a2a.Part{{Kind: a2a.PartText, Text: message}}}
	return x.begin(ctx)
}

// goOn continues the conversation that an entry remembers. What cannot be
// continued (a handle that has expired) starts a new one.
func (x *exchange) goOn(ctx context.Context, entry handles.Entry) {
	var m memory
	if json.Unmarshal(entry.Data, &m) != nil {
		return
	}
	x.contextID = m.ContextID
	if m.Task == "" {
		return
	}
	task, err := x.inv.st.opts.Handles.Peek(ctx, handles.KindTask, m.Task, x.inv.call.Principal)
	if err != nil || !task.Running || task.Agent != x.inv.agent.Alias || isLate(task) {
		return
	}
	watch, err := x.inv.agent.Follow.Task(ctx, task.TaskID, task.ContextID)
	if err != nil {
		return
	}
	defer watch.Close()
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	snap, _ := watch.Refresh(ask) // without an answer: a new message in the conversation
	if asks(snap) {
		x.task, x.given = task, true
	}
}

// recall writes down where the conversation stands, for agent tools.
func (x *exchange) recall(ctx context.Context, s a2a.Snapshot, task handles.Entry) {
	if x.memory == "" {
		return
	}
	m := memory{ContextID: x.contextOf(s)}
	if s.Task != nil && stillOpen(s) {
		m.Task = task.Handle
	}
	data, err := json.Marshal(m)
	if err != nil {
		return
	}
	// A conversation that cannot be remembered begins anew next time; its
	// handles are in the answer.
	_ = x.inv.st.opts.Handles.Update(ctx, x.memory, func(e *handles.Entry) error {
		e.Data = data
		return nil
	})
}
