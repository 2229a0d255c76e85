package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"a2agate/handles"
	"a2agate/translate"
)

// tidyTimeout bounds what is done for a call after its caller may have gone:
// the handles of an answer, the end of a question.
const tidyTimeout = 5 * time.Second

// invocation is one call on its way: what it came with and what has been
// found out about it. It belongs to one goroutine.
type invocation struct {
	s    *Service
	st   *state
	call Call
	sink Sink
	tool *tool
	args arguments
	// began is when the call came in; budgets count from it.
	began time.Time
	// agent is the one that the call went to, nil before it is known.
	agent *agent
	// room is kept for the handle of the task that the call begins; nil for
	// calls that can do without.
	room *handles.Reservation
}

// Call answers one tools/call. It blocks until the agent has answered, the
// call's time is used up, or ctx ends, and never panics on what a caller or
// an agent sends. Trouble that the model can do something about is a Result
// with IsError; Err is for requests that are wrong as such: an unknown tool,
// arguments that are no object, a requestState that is not good, a missing
// capability.
//
// When ctx ends, its cause tells why. context.Canceled is a caller who has
// gone: a task that the call has started is cancelled at the agent, once,
// unless somebody holds a handle for it. Any other cause is the gateway's own
// (it shuts down): the call answers with what is known and the handle, and the
// agent works on.
func (s *Service) Call(ctx context.Context, call Call, sink Sink) translate.Outcome {
	st := s.state.Load()
	inv := &invocation{s: s, st: st, call: call, sink: sink, began: time.Now()}
	out := inv.run(ctx)
	if o := st.opts.Observer; o != nil {
		o.Observe(ctx, inv.record(out))
	}
	return out
}

func (inv *invocation) run(ctx context.Context) translate.Outcome {
	if out := inv.prepare(); out != nil {
		return *out
	}
	return inv.tool.handle(inv, ctx)
}

// prepare finds the tool and checks the arguments; it returns the answer of a
// call that goes no further. It is apart from run for the sake of the stack
// that a waiting call keeps, and so are other steps before a wait.
func (inv *invocation) prepare() *translate.Outcome {
	refuse := func(out translate.Outcome) *translate.Outcome { return &out }
	t, problem := inv.st.find(inv.call)
	if problem != "" {
		return refuse(protocolError(translate.CodeInvalidParams, problem, nil))
	}
	inv.tool = t
	args, err := argumentsFromRaw(inv.call.Arguments, t.opaque...)
	if err != nil {
		return refuse(protocolError(translate.CodeInvalidParams, fmt.Sprintf("tool %s: %s", t.shown.Name, err), nil))
	}
	if !t.allNulls {
		args.dropNulls(t.opaque...)
	}
	inv.args = args
	if t.agent != nil {
		inv.meet(t.agent)
	}
	if t.schema != nil {
		if problem := args.check(t.schema, t.known); problem != "" {
			return refuse(inv.fault(problem))
		}
	}
	return nil
}

// find returns the tool that a call names, if the call may use it.
func (st *state) find(call Call) (*tool, string) {
	t := st.tools[call.Tool]
	if t != nil && st.offers(t, &call) {
		return t, ""
	}
	var names []string
	for name, t := range st.tools {
		if st.offers(t, &call) {
			names = append(names, name)
		}
	}
	return nil, UnknownTool(call.Tool, names)
}

// UnknownTool is the message for a tool that is not among names.
func UnknownTool(name string, names []string) string {
	return fmt.Sprintf("unknown tool %q: the nearest are %s; tools/list has all", cut(name, 64), nameList(nearest(name, names, 3)))
}

// offers reports whether a caller may use a tool.
func (st *state) offers(t *tool, call *Call) bool {
	if t.agent != nil {
		return call.sees(t.agent.Alias)
	}
	if t.shown.Name != ToolQuery {
		return true
	}
	for _, a := range st.agents {
		if a.exposes(ExposeQuery) && call.sees(a.Alias) {
			return true
		}
	}
	return false
}

// record describes the finished call.
func (inv *invocation) record(out translate.Outcome) CallRecord {
	r := CallRecord{Tool: inv.call.Tool, Principal: inv.call.Principal, Duration: elapsedSince(inv.began)}
	if inv.tool == nil {
		r.Tool = "" // a name that somebody made up is no label
	}
	if inv.agent != nil {
		r.Agent = inv.agent.Alias
	}
	switch {
	case out.Err != nil:
		r.Outcome = "protocol_error"
	case out.InputRequired != nil:
		r.Outcome = "input_required"
	case out.Task != nil:
		r.Outcome = "task"
	case out.Result != nil && out.Result.IsError:
		r.Outcome = "tool_error"
	default:
		r.Outcome = "result"
	}
	return r
}

// options are translate's for this call, without handles.
func (inv *invocation) options() translate.Options {
	return inv.st.options(inv.agent, inv.tool)
}

// options say how answers of an agent are rendered; both arguments may be nil.
func (st *state) options(a *agent, t *tool) translate.Options {
	o := translate.Options{
		ResultChars: st.opts.Limits.ResultChars,
		MediaBytes:  st.opts.Limits.MediaBytes,
		Structured:  st.opts.Structured,
		WaitSeconds: int(st.opts.Wait.Without / time.Second),
	}
	if a != nil {
		o.Agent, o.Title = a.Alias, a.title()
	}
	if t != nil && t.output != nil && o.Structured != translate.StructuredNever {
		o.Structured = translate.StructuredData
	}
	return o
}

// result wraps a Result.
func result(r translate.Result) translate.Outcome { return translate.Outcome{Result: &r} }

// fault is the answer to trouble that is not the agent's: one line that says
// what is wrong and what to do.
func (inv *invocation) fault(text string) translate.Outcome {
	return result(translate.ResultFromFault(text, inv.options()))
}

// failure is the answer to an error of the agent or of a handle.
func (inv *invocation) failure(err error) translate.Outcome {
	var bad *handles.Error
	if errors.As(err, &bad) {
		return inv.fault(bad.Error())
	}
	return result(translate.ResultFromError(agentError(err), inv.options()))
}

// protocolError is a JSON-RPC error; data may be nil.
func protocolError(code int, message string, data json.RawMessage) translate.Outcome {
	return translate.Outcome{Err: &translate.Error{Code: code, Message: message, Data: data}}
}

// cancelled is what a call returns whose caller has gone; nobody reads it.
func cancelled() translate.Outcome {
	return protocolError(translate.CodeInternal, "the call was cancelled by its caller", nil)
}

// namer is a Sink that wants to know which agent the call went to, before the
// agent says anything.
type namer interface{ Agent(title string) }

// meet notes the agent that the call goes to.
func (inv *invocation) meet(a *agent) {
	inv.agent = a
	if n, ok := inv.sink.(namer); ok {
		n.Agent(a.title())
	}
}

// chooseAgent finds the agent that a call names by alias, or the only one
// there is. It returns a fault's text when there is none.
func (inv *invocation) chooseAgent() string {
	visible := inv.st.visible(&inv.call)
	alias := inv.args.text("agent")
	if alias == "" {
		if len(visible) == 1 {
			inv.meet(visible[0])
			return ""
		}
		if len(visible) == 0 {
			return "no agent is configured for you"
		}
		return fmt.Sprintf("agent is missing: give one of %s", nameList(aliasesOf(visible)))
	}
	a := inv.st.byAlias[alias]
	if a == nil || !inv.call.sees(alias) {
		return unknownAgent(alias, aliasesOf(visible))
	}
	inv.meet(a)
	return ""
}

// lookup finds what a handle stands for and checks that its agent is one that
// the caller may use, and the one it named if it named one.
func (inv *invocation) lookup(ctx context.Context, kind handles.Kind, handle string) (handles.Entry, error) {
	entry, err := inv.st.opts.Handles.Lookup(ctx, kind, handle, inv.call.Principal)
	if err != nil {
		return handles.Entry{}, err
	}
	if !inv.call.sees(entry.Agent) {
		return handles.Entry{}, &handles.Error{Code: handles.CodeUnknown, Handle: handle, Kind: kind}
	}
	a := inv.st.byAlias[entry.Agent]
	if a == nil {
		return handles.Entry{}, fault(fmt.Sprintf("%s belongs to agent %q, which is no longer configured: start anew with another agent", handle, entry.Agent))
	}
	if named := inv.args.text("agent"); named != "" && named != entry.Agent {
		return handles.Entry{}, fault(fmt.Sprintf("%s belongs to agent %q, not %q: leave agent out, or start anew without the handle", handle, entry.Agent, named))
	}
	if inv.agent != a {
		inv.meet(a)
	}
	return entry, nil
}

// fault is an error whose text is fit for a caller.
type fault string

func (f fault) Error() string { return string(f) }

// namedAgent checks the agent argument by itself, before any handle is looked at.
func (inv *invocation) namedAgent() string {
	alias := inv.args.text("agent")
	if alias == "" {
		return ""
	}
	return inv.chooseAgent()
}

// lookupTask finds the task that the call's taskHandle names; it returns an
// Outcome when there is none.
func (inv *invocation) lookupTask(ctx context.Context) (handles.Entry, *translate.Outcome) {
	if problem := inv.namedAgent(); problem != "" {
		out := inv.fault(problem)
		return handles.Entry{}, &out
	}
	handle := inv.args.text("taskHandle")
	if handle == "" {
		out := inv.fault(`"taskHandle" is empty: give the taskHandle (tk_...) of an earlier result`)
		return handles.Entry{}, &out
	}
	entry, err := inv.lookup(ctx, handles.KindTask, handle)
	if err != nil {
		out := inv.trouble(err)
		return handles.Entry{}, &out
	}
	return entry, nil
}

// trouble is fault or failure, by the kind of error.
func (inv *invocation) trouble(err error) translate.Outcome {
	var f fault
	if errors.As(err, &f) {
		return inv.fault(string(f))
	}
	return inv.failure(err)
}

// tidy is a context for what must be done even though the caller may have
// gone.
func tidy(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
}
