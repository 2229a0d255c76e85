// Package tools is what a caller can ask: the catalogue of tools with their
// schemas, and the calls behind them. A call goes agent → A2A → translate →
// handle → Outcome. The package knows no HTTP; what it needs of others (a
// place to report progress and ask questions, a keeper of MCP tasks) it
// declares as small interfaces that cmd wires.
package tools

import (
	"context"
	"encoding/json"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// Call is one tools/call, freed of its wire.
type Call struct {
	// Principal is who calls; "local" without authentication.
	Principal string
	// Agents limits the call to these aliases; nil means all.
	Agents map[string]bool
	Tool   string
	// Arguments is the raw JSON object, nil when the member is absent.
	Arguments json.RawMessage
	// Client is what this request's client declared.
	Client ClientCapabilities
	// Progress says that the caller gave a progress token, which lengthens
	// the wait.
	Progress bool
	// InputResponses and RequestState are the answers to an earlier
	// InputRequired, nil when absent.
	InputResponses json.RawMessage
	RequestState   *string
	Trace          a2a.Trace
}

// ClientCapabilities is what a client declared for this request (modern) or
// at initialize (legacy).
type ClientCapabilities struct {
	ElicitForm bool
	ElicitURL  bool
	// Tasks is the tasks extension; always false on a legacy wire.
	Tasks bool
	// MidCallOnly is set on legacy wires: a client can be asked in mid-call,
	// by the Sink, and knows no InputRequired.
	MidCallOnly bool
}

// Sink takes what a running call has to say before it ends. Its methods are
// called from one goroutine at a time and never after Call has returned. A
// Sink that also has a method Agent(title string) is told which agent the call
// goes to, before the agent says anything.
type Sink interface {
	// Progress reports what the agent is doing: the agent's current status
	// line, sanitised, possibly "". The edge coalesces and numbers.
	Progress(message string)
	// Ask puts questions to the caller in the middle of the call and waits
	// for the answers, by Ask.Key. ok is false where this wire cannot ask in
	// mid-call (the caller then gets an InputRequired or the envelope).
	Ask(ctx context.Context, asks []translate.Ask) (answers map[string]translate.Answer, ok bool, err error)
}

// TaskSink keeps MCP tasks; package tasksext implements it.
type TaskSink interface {
	// Create stores an MCP task under the entry's handle and follows watch
	// from now on; it takes over watch and closes it. tool is the tool that
	// was called: when the task ends, Service.Present makes of the snapshot
	// the Result that the call would have returned by waiting, also after a
	// restart. The task can be read back before Create returns.
	Create(ctx context.Context, entry handles.Entry, watch *a2a.Watch, tool string) (translate.TaskInfo, error)
}
