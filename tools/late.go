package tools

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// maxLate bounds the sends kept whose agent has not said a word within its
// call's time; the oldest gives way.
const maxLate = 1024

// latePrefix marks the place of a task id that is not known yet. No agent can
// use it: ids of agents never reach this package's own constants, and one
// that begins with a control character is the agent's own trouble.
const latePrefix = "\x00late-"

// lateAnswers keeps the watches of sends that outlived their calls before the
// agent named a task: agents that answer a blocking send after minutes do so
// without a word before. Each has a task handle, so that nothing is lost.
type lateAnswers struct {
	mu    sync.Mutex
	sends map[string]lateSend // by handle
	order []string
}

type lateSend struct {
	watch     *a2a.Watch
	principal string
}

// add keeps a watch and takes it over.
func (l *lateAnswers) add(handle string, send lateSend) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sends == nil {
		l.sends = map[string]lateSend{}
	}
	for len(l.order) >= maxLate {
		l.drop(l.order[0])
	}
	l.sends[handle] = send
	l.order = append(l.order, handle)
}

func (l *lateAnswers) get(handle string) *a2a.Watch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sends[handle].watch
}

// forget drops a watch that is no longer needed.
func (l *lateAnswers) forget(handle string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(handle)
}

// drop closes and removes; mu is held.
func (l *lateAnswers) drop(handle string) {
	send, ok := l.sends[handle]
	if !ok {
		return
	}
	send.watch.Close()
	delete(l.sends, handle)
	l.order = slices.DeleteFunc(l.order, func(h string) bool { return h == handle })
}

// sweep drops the watches whose handles nobody can use any more.
func (l *lateAnswers) sweep(live func(handle, principal string) bool) {
	l.mu.Lock()
	known := maps.Clone(l.sends)
	l.mu.Unlock()
	for h, send := range known {
		if !live(h, send.principal) {
			l.forget(h)
		}
	}
}

// Close gives up what the Service still holds: sends without an answer. The
// agents work on. Calls in flight are not touched.
func (s *Service) Close() {
	s.late.sweep(func(_, _ string) bool { return false })
}

// lateTask is what the handle of a late answer stands for once the agent has
// named the task.
type lateTask struct {
	TaskID    string `json:"taskId"`
	ContextID string `json:"contextId,omitempty"`
}

// unanswered is the answer when the call's time is over and the agent has not
// said a word: a handle under which the answer can be had when it comes. It
// takes the watch over.
func (x *exchange) unanswered(ctx context.Context, watch *a2a.Watch, s a2a.Snapshot) translate.Outcome {
	tctx, cancel := tidy(ctx)
	defer cancel()
	inv := x.inv
	if x.task.Handle != "" { // a message to a task, whose handle finds the answer
		defer watch.Close()
		out := x.answer(ctx, s)
		inv.keepAnswer(watch, x.task)
		return out
	}
	table := inv.st.opts.Handles
	inv.s.late.sweep(func(handle, principal string) bool {
		_, err := table.Peek(tctx, handles.KindTask, handle, principal)
		return !errors.Is(err, handles.ErrExpired) && !errors.Is(err, handles.ErrUnknown)
	})
	entry, err := inv.taskHandle(tctx, x.contextID, latePrefix+rand.Text(), true)
	if err != nil {
		watch.Close()
		return x.answer(ctx, s, "no handle could be given out: "+noteFrom(err))
	}
	inv.s.late.add(entry.Handle, lateSend{watch, inv.call.Principal})
	x.task = entry
	return x.answer(ctx, s)
}

// keepAnswer is keep for a message whose agent has not said a word. The agent
// may answer it with another task, whose end is not that of task.
func (inv *invocation) keepAnswer(watch *a2a.Watch, task handles.Entry) {
	table := inv.st.opts.Handles
	watch.Keep(inv.st.opts.HandleTTL)
	watch.AtEnd(task.Handle, func(ctx context.Context) {
		if s := watch.Now(); s.Task != nil && s.Task.ID == task.TaskID {
			_ = table.Settle(ctx, task.Handle) // expires later otherwise
		}
	})
}

// isLate reports whether an entry stands for a send without an answer.
func isLate(e handles.Entry) bool { return strings.HasPrefix(e.TaskID, latePrefix) }

// resolveLate returns the task that a late handle has come to stand for, or
// the watch on the send when there is none yet. Exactly one is set, or err.
func (inv *invocation) resolveLate(ctx context.Context, e handles.Entry) (handles.Entry, *a2a.Watch, error) {
	table := inv.st.opts.Handles
	var known lateTask
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &known) == nil && known.TaskID != "" {
		task, err := table.Task(ctx, e.Principal, e.Agent, known.ContextID, known.TaskID, e.Running)
		return task, nil, err
	}
	watch := inv.s.late.get(e.Handle)
	if watch == nil {
		return e, nil, fault(fmt.Sprintf("the answer of agent %q to %s is not at hand, because the gateway was restarted before it came, or another instance waits for it: send the message again", e.Agent, e.Handle))
	}
	snap := watch.Now()
	if snap.Task == nil || snap.Task.ID == "" {
		return e, watch, nil
	}
	known = lateTask{TaskID: snap.Task.ID, ContextID: snap.Task.ContextID}
	data, err := json.Marshal(known)
	if err != nil {
		return e, nil, err
	}
	task, err := table.Task(ctx, e.Principal, e.Agent, known.ContextID, known.TaskID, stillOpen(snap))
	if err != nil {
		return e, nil, err
	}
	err = table.Update(ctx, e.Handle, func(e *handles.Entry) error {
		e.Data, e.Running = data, stillOpen(snap)
		return nil
	})
	if err != nil {
		return e, nil, err
	}
	// The follower goes on with the task by its id.
	inv.keep(watch, e.Handle, task.Handle)
	inv.s.late.forget(e.Handle)
	return task, nil, nil
}

// namedLate is for calls that need the task itself.
func (inv *invocation) namedLate(ctx context.Context, e handles.Entry) (handles.Entry, error) {
	if !isLate(e) {
		return e, nil
	}
	task, watch, err := inv.resolveLate(ctx, e)
	if err == nil && watch != nil {
		return e, fault(fmt.Sprintf("agent %q has not answered %s yet: wait for it with a2a_get_task and waitSeconds", e.Agent, e.Handle))
	}
	return task, err
}
