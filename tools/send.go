package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// send is a2a_send_message.
func (inv *invocation) send(ctx context.Context) translate.Outcome {
	if inv.call.RequestState != nil {
		return inv.resume(ctx)
	}
	x, err := inv.sending(ctx)
	if err != nil {
		return inv.trouble(err)
	}
	return x.begin(ctx)
}

// sending is the exchange that the arguments of a2a_send_message ask for.
func (inv *invocation) sending(ctx context.Context) (*exchange, error) {
	if problem := inv.namedAgent(); problem != "" {
		return nil, fault(problem)
	}
	x := inv.newExchange()
	if err := x.continueFrom(ctx, inv.args.text("contextHandle"), inv.args.text("taskHandle")); err != nil {
		return nil, err
	}
	if inv.agent == nil {
		if problem := inv.chooseAgent(); problem != "" {
			return nil, fault(problem)
		}
	}
	m, err := messageFromSend(inv.args)
	if err != nil {
		return nil, fault(err.Error())
	}
	x.message = m
	x.blocking = inv.args.flag("blocking", true)
	return x, nil
}

// messageFromSend makes the message of a2a_send_message's arguments.
func messageFromSend(args arguments) (a2a.Message, error) {
	in := translate.Arguments{Text: args.text("text"), Data: args.fields["data"], Metadata: args.fields["metadata"]}
	if raw := args.fields["files"]; raw != nil {
		if err := json.Unmarshal(raw, &in.Files); err != nil {
			return a2a.Message{}, errors.New(`"files" must be an array of objects with bytes or url`)
		}
	}
	return translate.MessageFromArguments(in)
}

// exchange is one message to an agent and what comes of it, over as many
// questions and answers as the call can carry. It belongs to one goroutine.
type exchange struct {
	inv *invocation
	// message is what is sent next, without ids.
	message  a2a.Message
	blocking bool
	policy   TaskPolicy
	budget   time.Duration
	// contextID is the conversation that the message belongs to, "" for a new
	// one; task is the task that it goes on with, zero for none. given says
	// that the caller holds a handle of that task.
	contextID string
	task      handles.Entry
	given     bool
	// told is the handle of the task in the last answer.
	told string
	// refers are finished tasks that the message follows up on.
	refers []string
	// release gives back the task that Acquire took; nil when nothing is held.
	release func()
	// cold are answers that came before their questions, by key.
	cold map[string]json.RawMessage
	// memory is where an agent tool keeps its conversation, "" elsewhere.
	memory string
}

func (inv *invocation) newExchange() *exchange {
	return &exchange{inv: inv, blocking: true}
}

// continueFrom looks the handles up, task before context, and settles what
// the message continues.
func (x *exchange) continueFrom(ctx context.Context, contextHandle, taskHandle string) error {
	inv := x.inv
	var task handles.Entry
	if taskHandle != "" {
		var err error
		if task, err = inv.lookup(ctx, handles.KindTask, taskHandle); err != nil {
			return err
		}
		if task, err = inv.namedLate(ctx, task); err != nil {
			return err
		}
	}
	if contextHandle != "" {
		agent := inv.agent
		conv, err := inv.lookup(ctx, handles.KindContext, contextHandle)
		if err != nil {
			return err
		}
		if task.Handle != "" && (inv.agent != agent || task.ContextID != "" && task.ContextID != conv.ContextID) {
			return fault(fmt.Sprintf("%s and %s belong to different conversations: send one of them", contextHandle, taskHandle))
		}
		x.contextID = conv.ContextID
	}
	if task.Handle != "" {
		return x.continueTask(ctx, task)
	}
	return nil
}

// continueTask goes on with a task that still takes messages, and follows up
// in its conversation on one that is finished (A2A 3.4.3).
func (x *exchange) continueTask(ctx context.Context, task handles.Entry) error {
	if task.ContextID != "" {
		x.contextID = task.ContextID
	}
	if x.finished(ctx, task) {
		x.refers = []string{task.TaskID}
		return nil
	}
	x.task, x.given = task, true
	return nil
}

// finished reports whether a task takes no more messages, asking the agent
// when the gateway does not know.
func (x *exchange) finished(ctx context.Context, task handles.Entry) bool {
	if !task.Running {
		return true
	}
	watch, err := x.inv.agent.Follow.Task(ctx, task.TaskID, task.ContextID)
	if err != nil {
		return false
	}
	defer watch.Close()
	snap := watch.Now()
	if snap.Task == nil {
		ask, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		snap, _ = watch.Refresh(ask) // what it cannot say, the send will
	}
	return snap.Task != nil && snap.Task.Status.State.Terminal()
}

// askTimeout bounds a look at a task before a message to it.
const askTimeout = 10 * time.Second

// begin sends and waits, first checking what the client must be able to do.
func (x *exchange) begin(ctx context.Context) translate.Outcome {
	inv := x.inv
	x.policy = inv.policy()
	if x.policy == TasksRequired && x.blocking && !inv.call.Client.Tasks && inv.st.opts.Tasks != nil {
		return tasksMissing(inv.tool.shown.Name)
	}
	cold, err := responsesFromRaw(inv.call.InputResponses)
	if err != nil {
		return protocolError(translate.CodeInvalidParams, err.Error(), nil)
	}
	x.cold = cold
	x.budget = inv.budget()
	return x.run(ctx)
}

// tasksMissing is the error for a client that cannot have tasks where nothing
// else is offered (tasks extension 3.1).
func tasksMissing(tool string) translate.Outcome {
	return protocolError(translate.CodeMissingCapability,
		fmt.Sprintf("tool %q runs only as an MCP task: declare the extension io.modelcontextprotocol/tasks", tool),
		json.RawMessage(`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`))
}

// policy is the task policy of the call's skill, else of its agent.
func (inv *invocation) policy() TaskPolicy {
	if sk := inv.tool.skill; sk != nil && sk.tasks != "" {
		return sk.tasks
	}
	if inv.agent.Tasks != "" {
		return inv.agent.Tasks
	}
	return TasksAuto
}

// budget is how long the call may wait: its own word, else the agent's, else
// the configuration's.
func (inv *invocation) budget() time.Duration {
	if inv.tool.shown.Name == ToolSend { // a skill's own arguments are not ours
		if n, ok := inv.args.integer("timeoutSeconds"); ok {
			return time.Duration(n) * time.Second
		}
	}
	if inv.agent != nil && inv.agent.Timeout > 0 {
		return inv.agent.Timeout
	}
	if inv.call.Progress {
		return inv.st.opts.Wait.WithProgress
	}
	return inv.st.opts.Wait.Without
}

// run is the loop over questions: each round sends one message.
func (x *exchange) run(ctx context.Context) translate.Outcome {
	defer x.letGo()
	defer x.unreserve(ctx)
	for began := x.inv.began; ; began = time.Now() {
		out, again := x.round(ctx, began)
		if !again {
			return out
		}
	}
}

// reserveSpare is for what a call does beside waiting for the agent.
const reserveSpare = time.Minute

// reserve makes sure of a handle before a message is sent whose answer could
// not be collected without one.
func (x *exchange) reserve(ctx context.Context) error {
	inv := x.inv
	asTask := x.policy == TasksRequired && inv.call.Client.Tasks && inv.st.opts.Tasks != nil
	if x.blocking && !asTask || x.task.Handle != "" || inv.room != nil {
		return nil
	}
	room, err := inv.st.opts.Handles.Reserve(ctx, inv.call.Principal, inv.agent.Alias, x.budget+reserveSpare)
	var bad *handles.Error
	if errors.As(err, &bad) {
		return fault("nothing was sent, for its result could not be collected: " + bad.Error())
	}
	inv.room = room
	return err
}

func (x *exchange) unreserve(ctx context.Context) {
	if x.inv.room == nil {
		return
	}
	tctx, cancel := tidy(ctx)
	defer cancel()
	x.inv.room.Release(tctx)
	x.inv.room = nil
}

func (x *exchange) letGo() {
	if x.release != nil {
		x.release()
		x.release = nil
	}
}

// take makes sure that one message at a time goes to a task.
func (x *exchange) take() bool {
	if x.task.Handle == "" || x.release != nil {
		return true
	}
	release, ok := x.inv.st.opts.Handles.Acquire(x.task.Handle)
	if ok {
		x.release = release
	}
	return ok
}

func (x *exchange) busy() translate.Outcome {
	return x.inv.fault(fmt.Sprintf("%s is busy with another message: read it with a2a_get_task before sending more", x.task.Handle))
}

// round sends one message and waits for what comes of it; again means that
// the agent's question has been answered and x.message is the answer.
func (x *exchange) round(ctx context.Context, began time.Time) (out translate.Outcome, again bool) {
	watch, refused := x.dispatch(ctx)
	if refused != nil {
		return *refused, false
	}
	snap, end := x.wait(watch, began).run(ctx)
	x.letGo()
	return x.conclude(ctx, watch, snap, end)
}

// dispatch sends the message; the answer is that of a call which could not.
func (x *exchange) dispatch(ctx context.Context) (*a2a.Watch, *translate.Outcome) {
	var out translate.Outcome
	if !x.take() {
		out = x.busy()
		return nil, &out
	}
	if err := x.reserve(ctx); err != nil {
		out = x.inv.trouble(err)
		return nil, &out
	}
	watch, err := x.inv.agent.Follow.Send(ctx, x.request())
	switch {
	case err == nil:
		return watch, nil
	case gone(ctx):
		out = cancelled()
	default:
		out = x.inv.failure(err)
	}
	return nil, &out
}

// conclude makes of what the wait has brought the answer of the round. It takes
// the watch over.
func (x *exchange) conclude(ctx context.Context, watch *a2a.Watch, snap a2a.Snapshot, end ending) (out translate.Outcome, again bool) {
	if end == endGone || gone(ctx) && !snap.Done {
		x.gone(watch)
		return cancelled(), false
	}
	if end == endTask {
		return x.becomeTask(ctx, watch, snap), false
	}
	if !known(snap) {
		return x.unanswered(ctx, watch, snap), false
	}
	defer watch.Close()
	if x.refused(ctx, snap) {
		return out, true
	}
	if x.blocking && asks(snap) {
		return x.question(ctx, snap)
	}
	if out = x.answer(ctx, snap); !settled(snap) {
		x.inv.keep(watch, x.told)
	}
	return out, false
}

// gone ends an exchange whose caller has gone: a task that nobody has a
// handle for must not run on.
func (x *exchange) gone(watch *a2a.Watch) {
	if x.given {
		watch.Close()
		return
	}
	watch.Abandon()
}

// request is the message with its ids.
func (x *exchange) request() a2a.SendRequest {
	m := x.message
	m.MessageID = a2a.NewMessageID()
	m.ContextID, m.TaskID, m.ReferenceTaskIDs = x.contextID, x.task.TaskID, x.refers
	return a2a.SendRequest{Message: m, ReturnImmediately: !x.blocking, Trace: x.inv.call.Trace}
}

func (x *exchange) wait(watch *a2a.Watch, began time.Time) *wait {
	inv := x.inv
	w := &wait{watch: watch, until: known, deadline: began.Add(x.budget), progress: inv.progress, first: x.letGo}
	if !x.blocking {
		return w
	}
	w.until = settled
	if inv.call.Client.Tasks && inv.st.opts.Tasks != nil && x.policy != TasksNever {
		w.becomes, w.grace = x.becomes, began.Add(inv.st.opts.Wait.TaskGrace)
		if x.policy == TasksRequired {
			w.grace = began
			// A task that is over by the time it is seen is still a task.
			w.until = func(s a2a.Snapshot) bool { return settled(s) && !x.becomes(s) }
		}
	}
	return w
}

// becomes reports whether a call whose grace is over becomes an MCP task in
// this state (design section 4, "First state decides").
func (x *exchange) becomes(s a2a.Snapshot) bool {
	if s.Task == nil || s.Task.ID == "" || s.Err != nil || asks(s) {
		return false
	}
	state := s.Task.Status.State
	if x.policy == TasksRequired {
		return true
	}
	if state == a2a.StateAuthRequired {
		// As a task it shows the user where to sign in; a client that cannot
		// be shown a URL is better served by waiting here.
		return x.inv.call.Client.ElicitURL && translate.AuthURLFromStatus(s.Task.Status) != ""
	}
	return !state.Settled()
}

// becomeTask hands the watch over to the keeper of MCP tasks.
func (x *exchange) becomeTask(ctx context.Context, watch *a2a.Watch, snap a2a.Snapshot) translate.Outcome {
	tctx, cancel := tidy(ctx)
	defer cancel()
	inv := x.inv
	entry, err := inv.taskHandle(tctx, x.contextOf(snap), snap.Task.ID, true)
	if err != nil {
		defer watch.Close()
		watch.Keep(inv.st.opts.HandleTTL)
		return x.answer(ctx, snap, "no MCP task: "+err.Error())
	}
	x.recall(tctx, snap, entry)
	info, err := inv.st.opts.Tasks.Create(tctx, entry, watch, inv.tool.shown.Name)
	if err != nil {
		return x.answer(ctx, snap, "the gateway could not keep this as an MCP task; read it with a2a_get_task")
	}
	return translate.Outcome{Task: &info}
}

// refused reports whether the agent turned a message away because its task
// had finished meanwhile; x is then set to follow up on it instead. Nothing
// was done by the agent, so sending again is safe.
func (x *exchange) refused(ctx context.Context, s a2a.Snapshot) bool {
	var bad *a2a.Error
	if x.task.TaskID == "" || s.Task != nil || !errors.As(s.Err, &bad) || bad.Cause != a2a.CauseAgent {
		return false
	}
	if bad.Code != a2a.CodeUnsupportedOperation && bad.Code != translate.CodeInvalidParams {
		return false
	}
	watch, err := x.inv.agent.Follow.Task(ctx, x.task.TaskID, x.task.ContextID)
	if err != nil {
		return false
	}
	defer watch.Close()
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	now, _ := watch.Refresh(ask)
	if now.Task == nil || !now.Task.Status.State.Terminal() {
		return false
	}
	x.refers = []string{x.task.TaskID}
	x.task = handles.Entry{}
	return true
}

// progress tells the caller what the agent is doing.
func (inv *invocation) progress(line string) {
	if inv.sink != nil {
		inv.sink.Progress(line)
	}
}
