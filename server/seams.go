package server

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/tools"
	"a2agate/translate"
)

// Caller runs tool calls. It is called concurrently.
//
// When ctx ends, context.Cause tells why: context.Canceled means that the
// caller gave up (an agent may be told to stop), context.DeadlineExceeded that
// time is up or the gateway goes down (the agent works on, and the outcome
// names its handle).
type Caller interface {
	Call(ctx context.Context, c tools.Call, sink tools.Sink) translate.Outcome
}

// Catalogues gives what one kind of caller sees. Its methods are called
// concurrently and never wait for an agent.
type Catalogues interface {
	// Catalogue returns the current snapshot of a view: the same pointer while
	// nothing changed, nil for a profile that does not exist.
	Catalogue(v tools.View) *tools.Catalogue
	// Scope returns the aliases that calls of this view may reach, nil for all.
	Scope(v tools.View) map[string]bool
	// Changed returns a channel that receives after a catalogue may have
	// changed, several changes being one, and a function that ends the
	// subscription. What really changed is seen by comparing snapshots.
	Changed() (wake <-chan struct{}, stop func())
}

// ResourceVersions is what a Catalogues may also do: then clients can
// subscribe to single resources.
type ResourceVersions interface {
	// ResourceVersion returns a value that differs whenever the content of the
	// resource differs; ok is false for one that cannot be watched.
	ResourceVersion(v tools.View, uri string) (version string, ok bool)
}

// Prompts answers prompts/get. A *translate.Error goes to the caller as it
// is; any other error is internal and logged.
type Prompts interface {
	GetPrompt(ctx context.Context, v tools.View, name string, args map[string]string) (*mcp.GetPromptResult, error)
}

// PromptAsker is what a Prompts may also do: then a client that can be asked
// gets a question for the arguments that its prompts/get lacks (MCP
// 2026-07-28, MRTR), others the error.
type PromptAsker interface {
	// AskPrompt returns the question; ok is false where there is none to put.
	AskPrompt(v tools.View, name string, args map[string]string) (ask translate.Ask, ok bool)
}

// Resources answers resources/read. An unknown uri is a *translate.Error with
// code -32602, to which the edge adds data.uri where it is missing. Other
// errors are as for Prompts.
type Resources interface {
	ReadResource(ctx context.Context, principal string, v tools.View, uri string) ([]mcp.ResourceContents, error)
}

// Completions answers completion/complete; exactly one of prompt (its name)
// and template (its uri) is set. Errors are as for Prompts.
type Completions interface {
	Complete(ctx context.Context, v tools.View, prompt, template, argument, value string, earlier map[string]string) (*mcp.Completion, error)
}

// TaskCall is one tasks/get, tasks/update or tasks/cancel.
type TaskCall struct {
	Principal string
	// Agents limits the call to tasks of these agents; nil means all.
	Agents map[string]bool
	TaskID string
	// Client is what this very request declared.
	Client tools.ClientCapabilities
	// InputResponses is the raw JSON object of tasks/update.
	InputResponses json.RawMessage
}

// Tasks keeps MCP tasks (the tasks extension). A task that is unknown, has
// expired or is somebody else's is -32602. Methods are called concurrently.
type Tasks interface {
	// Get appends the result object of tasks/get, with meta as its _meta.
	Get(ctx context.Context, dst []byte, c TaskCall, meta []translate.MetaEntry) ([]byte, *translate.Error)
	// Update and Cancel return once the change is visible to Get.
	Update(ctx context.Context, c TaskCall) *translate.Error
	Cancel(ctx context.Context, c TaskCall) *translate.Error
	// Watch follows those of ids that are c.Principal's (c.TaskID is unused)
	// until the watch is closed.
	Watch(c TaskCall, ids []string) TaskWatch
}

// TaskWatch is one listener's view of some tasks. It is used from one
// goroutine.
type TaskWatch interface {
	// Accepted are the ids that are followed, in the order asked for.
	Accepted() []string
	// Wake receives when Take has something.
	Wake() <-chan struct{}
	// Take returns the params of the notifications/tasks that are due, without
	// _meta, each as one JSON object: at first the present state of every
	// accepted task, later the newest state of each that changed.
	Take() []json.RawMessage
	Close()
}
