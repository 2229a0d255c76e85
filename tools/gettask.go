package tools

import (
	"context"
	"errors"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// getTask is a2a_get_task: a fresh look at a task, a wait for it, or one page
// of a long text.
func (inv *invocation) getTask(ctx context.Context) translate.Outcome {
	if inv.call.RequestState != nil {
		return badState("this tool asks no questions")
	}
	artifact := inv.args.text("artifactId")
	offset, hasOffset := inv.args.integer("offset")
	if hasOffset && offset > 0 && artifact == "" {
		return inv.fault(`"offset" needs "artifactId": name the artifact to read`)
	}
	entry, out := inv.lookupTask(ctx)
	if out != nil {
		return *out
	}
	x := &exchange{inv: inv, task: entry, contextID: entry.ContextID, given: true}
	snap, watch, out := x.look(ctx)
	if watch != nil {
		defer watch.Close()
	}
	if out != nil {
		return *out
	}
	var answer translate.Outcome
	if artifact != "" {
		answer = x.page(ctx, snap, artifact, offset)
	} else {
		answer = x.withHistory(ctx, snap)
	}
	switch {
	case watch == nil || snap.Task == nil || !stillOpen(snap):
	case settled(snap):
		inv.settle(watch, entry.Handle, x.task.Handle)
	default:
		inv.keep(watch, entry.Handle, x.task.Handle)
	}
	return answer
}

// look waits as long as the call says and returns what is known of the task,
// and the watch on it, which is to be closed; nil for none.
func (x *exchange) look(ctx context.Context) (a2a.Snapshot, *a2a.Watch, *translate.Outcome) {
	inv := x.inv
	seconds, _ := inv.args.integer("waitSeconds")
	deadline := inv.began.Add(time.Duration(seconds) * time.Second)
	if isLate(x.task) {
		snap, out := x.lookLate(ctx, deadline)
		if out != nil || isLate(x.task) {
			return snap, nil, out
		}
	}
	watch, err := inv.agent.Follow.Task(ctx, x.task.TaskID, x.task.ContextID)
	if err != nil {
		out := x.unreachable(ctx, err)
		return a2a.Snapshot{}, nil, &out
	}
	snap, err := watch.Refresh(ctx)
	if seconds > 0 {
		w := &wait{watch: watch, until: settled, deadline: deadline, progress: inv.progress}
		var end ending
		snap, end = w.run(ctx)
		if end == endGone {
			out := cancelled()
			return snap, watch, &out
		}
	}
	if gone(ctx) {
		out := cancelled()
		return snap, watch, &out
	}
	if snap.Task == nil && snap.Err == nil && err != nil {
		out := x.unreachable(ctx, err)
		return snap, watch, &out
	}
	return snap, watch, nil
}

// unreachable is the answer when the agent cannot be asked about a task that
// is not lost: its handle still works.
func (x *exchange) unreachable(ctx context.Context, err error) translate.Outcome {
	tctx, cancel := tidy(ctx)
	defer cancel()
	o := x.inv.options()
	x.inv.mint(tctx, &o, a2a.Snapshot{}, x.contextID, x.task)
	if x.task.Running {
		o.Status = translate.StatusWorking
	}
	return result(translate.ResultFromError(agentError(err), o))
}

// agentError finds the *a2a.Error in err; anything else becomes one without
// its text.
func agentError(err error) *a2a.Error {
	var e *a2a.Error
	if errors.As(err, &e) {
		return e
	}
	e = &a2a.Error{Cause: a2a.CauseProtocol, Message: "the call to the agent failed", Err: err}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Cause, e.Message = a2a.CauseTimeout, "the agent did not answer in time"
	}
	return e
}

// lookLate waits for a send that had no answer within its call's time. When
// the agent has named the task, x.task is that task.
func (x *exchange) lookLate(ctx context.Context, deadline time.Time) (a2a.Snapshot, *translate.Outcome) {
	task, watch, err := x.inv.resolveLate(ctx, x.task)
	if err == nil && watch != nil {
		w := &wait{watch: watch, until: known, deadline: deadline, progress: x.inv.progress}
		snap, end := w.run(ctx)
		if end == endGone {
			out := cancelled()
			return snap, &out
		}
		if snap.Task == nil {
			if snap.Done {
				tctx, cancel := tidy(ctx)
				defer cancel()
				_ = x.inv.st.opts.Handles.Settle(tctx, x.task.Handle) // expires later otherwise
			}
			return snap, nil
		}
		task, _, err = x.inv.resolveLate(ctx, x.task)
	}
	if err != nil {
		out := x.inv.trouble(err)
		return a2a.Snapshot{}, &out
	}
	x.task, x.contextID = task, task.ContextID
	return a2a.Snapshot{}, nil
}

// page is one piece of an artifact's text.
func (x *exchange) page(ctx context.Context, s a2a.Snapshot, artifact string, offset int) translate.Outcome {
	if s.Task == nil {
		return x.answer(ctx, s)
	}
	tctx, cancel := tidy(ctx)
	defer cancel()
	o := x.inv.options()
	x.inv.mint(tctx, &o, s, x.contextOf(s), x.task)
	r, err := translate.ResultFromPage(s.Task, artifact, offset, o)
	if err != nil {
		o.Status = translate.StatusFromState(s.Task.Status.State)
		return result(translate.ResultFromFault(err.Error(), o))
	}
	return result(r)
}

// withHistory is the whole answer with the turns that the call asks for. A
// length that it names goes to the agent too, which may keep more turns than
// the gateway has seen.
func (x *exchange) withHistory(ctx context.Context, s a2a.Snapshot) translate.Outcome {
	n, named := x.inv.args.integer("historyLength")
	if !named {
		n = translate.AllHistory
	}
	if named && n > 0 && s.Task != nil && len(s.Task.History) < n && !s.Lost {
		if turns := x.turns(ctx, n); len(turns) > len(s.Task.History) {
			task := *s.Task
			task.History = turns
			s.Task = &task
		}
	}
	tctx, cancel := tidy(ctx)
	defer cancel()
	o := x.inv.options()
	o.HistoryLength = n
	x.inv.mint(tctx, &o, s, x.contextOf(s), x.task)
	if s.Task == nil && s.Message == nil && s.Err == nil {
		o.Elapsed = time.Since(x.task.Created)
	}
	return result(translate.ResultFromSnapshot(s, o))
}

// turns asks the agent for the newest n turns; none when it does not answer.
func (x *exchange) turns(ctx context.Context, n int) []a2a.Message {
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client, err := x.inv.agent.Agent.Client(ask)
	if err != nil {
		return nil
	}
	task, err := client.GetTask(ask, x.task.TaskID, &n)
	if err != nil || task == nil {
		return nil
	}
	return task.History
}

// cancelWait is how long a cancelled task may take to say so, and the time
// for the request itself.
const (
	cancelWait    = 5 * time.Second
	cancelTimeout = 30 * time.Second
)

// cancelTask is a2a_cancel_task: exactly one CancelTask, then a short wait for
// a task that still says working.
func (inv *invocation) cancelTask(ctx context.Context) translate.Outcome {
	if inv.call.RequestState != nil {
		return badState("this tool asks no questions")
	}
	entry, out := inv.lookupTask(ctx)
	if out != nil {
		return *out
	}
	x := &exchange{inv: inv, task: entry, contextID: entry.ContextID, given: true}
	if isLate(entry) {
		task, watch, err := inv.resolveLate(ctx, entry)
		if err != nil {
			return inv.trouble(err)
		}
		if watch != nil {
			return x.cancelOn(ctx, watch)
		}
		x.task, x.contextID = task, task.ContextID
	}
	watch, err := inv.agent.Follow.Task(ctx, x.task.TaskID, x.task.ContextID)
	if err != nil {
		return x.unreachable(ctx, err)
	}
	defer watch.Close()
	x.lookBeforeCancel(ctx, watch)
	return x.cancelOn(ctx, watch)
}

// lookBeforeCancel asks how a task stands whose handle says that it has ended,
// where the follower has forgotten it: then the agent is not asked to cancel
// once more. The handle is read again, since a cancel at the same time may have
// ended the task after the call has looked it up.
func (x *exchange) lookBeforeCancel(ctx context.Context, watch *a2a.Watch) {
	now, err := x.inv.st.opts.Handles.Peek(ctx, handles.KindTask, x.task.Handle, x.inv.call.Principal)
	if err != nil || now.Running || watch.Now().Done {
		return
	}
	ask, stop := context.WithTimeout(ctx, askTimeout)
	defer stop()
	_, _ = watch.Refresh(ask) // what it could not find out, the cancel does
}

func (x *exchange) cancelOn(ctx context.Context, watch *a2a.Watch) translate.Outcome {
	request, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	snap, err := watch.Cancel(request)
	if gone(ctx) {
		return cancelled()
	}
	if err != nil {
		return x.notCancelled(ctx, watch, err)
	}
	if !snap.Done {
		w := &wait{watch: watch, until: func(s a2a.Snapshot) bool { return s.Done }, deadline: time.Now().Add(cancelWait)}
		var end ending
		if snap, end = w.run(ctx); end == endGone {
			return cancelled()
		}
	}
	out := x.answer(ctx, snap)
	x.settleAtEnd(watch, snap)
	return out
}

// settleAtEnd has the handle of a task that has not ended by the time of the
// answer settled when it does.
func (x *exchange) settleAtEnd(watch *a2a.Watch, s a2a.Snapshot) {
	if s.Task != nil && stillOpen(s) {
		x.inv.settle(watch, x.told)
	}
}

// notCancelled is the error with what the task is now; none where it has been
// cancelled already.
func (x *exchange) notCancelled(ctx context.Context, watch *a2a.Watch, err error) translate.Outcome {
	tctx, cancel := tidy(ctx)
	defer cancel()
	snap := watch.Now()
	var bad *a2a.Error
	if snap.Task == nil && !snap.Done && errors.As(err, &bad) && bad.Cause == a2a.CauseAgent {
		// The agent says why it does not cancel; how the task stands is another
		// question, and what it cannot answer stays unsaid.
		ask, stop := context.WithTimeout(ctx, askTimeout)
		snap, _ = watch.Refresh(ask)
		stop()
	}
	if snap.Task != nil && snap.Task.Status.State == a2a.StateCanceled {
		return x.answer(ctx, snap) // another cancel was quicker
	}
	o := x.inv.options()
	x.told = x.inv.mint(tctx, &o, snap, x.contextOf(snap), x.task).Handle
	x.settleAtEnd(watch, snap)
	switch {
	case snap.Task != nil && !snap.Lost:
		o.Status = translate.StatusFromState(snap.Task.Status.State)
	case x.task.Running && !snap.Lost:
		o.Status = translate.StatusWorking
	}
	return result(translate.ResultFromError(agentError(err), o))
}
