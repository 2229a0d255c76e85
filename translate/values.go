// Package translate turns A2A values into MCP values and back.
//
// Everything here is a pure function named XFromY: no I/O, no clock, no
// logger, no context, no state. What cannot be carried over is said in the
// envelope's note, never dropped in silence. The package also has the encoder
// that writes results: raw JSON from an agent leaves the gateway byte for
// byte.
package translate

import (
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Revision is a revision of the MCP specification; revisions compare as
// strings in order of time.
type Revision string

// The revisions served.
const (
	Rev20250326 Revision = "2025-03-26"
	Rev20250618 Revision = "2025-06-18"
	Rev20251125 Revision = "2025-11-25"
	Rev20260728 Revision = "2026-07-28"
)

// Modern reports whether the revision is stateless (2026-07-28 and later):
// results carry resultType, and server information travels in _meta.
func (r Revision) Modern() bool { return r >= Rev20260728 }

// Result is the answer of a tool, not yet encoded for a revision.
type Result struct {
	// Content is never empty in an answer to a caller.
	Content []mcp.Content
	// Structured is the structuredContent, verbatim; nil leaves it out.
	Structured json.RawMessage
	IsError    bool
	// Meta are the result's own _meta entries, in order.
	Meta []MetaEntry
}

// MetaEntry is one key of a _meta object with its raw JSON value.
type MetaEntry struct {
	Key   string
	Value json.RawMessage
}

// Error is a JSON-RPC error as a caller sees it. A2A codes never become its
// Code; they go into Data.
type Error struct {
	Code    int
	Message string
	// Data is the raw JSON of error.data; nil leaves it out.
	Data json.RawMessage
}

func (e *Error) Error() string { return e.Message }

// The JSON-RPC and MCP error codes the gateway emits (specification
// 2026-07-28, basic; only these three of the reserved band).
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

// Ask is one question an agent puts to the caller's user.
type Ask struct {
	// Key is the agent's own name for the answer, "answer" without one.
	Key     string
	Message string
	// Schema is the flat form schema of the answer, raw JSON; nil for a url ask.
	Schema json.RawMessage
	// URL is where the user does what is asked; empty for a form.
	URL string
	// Structured says that the agent asked through AskExtension, so that the
	// answer goes back as data too.
	Structured bool
	// ElicitationID is the opaque id that revision 2025-11-25 wants of a url
	// ask; the caller makes it. Key stands in where it is empty.
	ElicitationID string
	// Note says in plain words what of the agent's question could not be kept;
	// "" when all is well.
	Note string
}

// Answer is a caller's answer to one Ask (MCP ElicitResult).
type Answer struct {
	// Action is "accept", "decline" or "cancel".
	Action string
	// Content is the raw JSON object of an accepted form, nil otherwise.
	Content json.RawMessage
}

// InputRequired is the result that asks before it goes on (MCP MRTR).
type InputRequired struct {
	Asks []Ask
	// RequestState is what the caller echoes with its answers.
	RequestState string
}

// TaskStatus is the status of an MCP task (tasks extension 3.2).
type TaskStatus string

// The statuses of an MCP task.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskCancelled     TaskStatus = "cancelled"
	TaskFailed        TaskStatus = "failed"
)

// TaskInfo are the base fields of an MCP task. Its ID is the task's handle.
type TaskInfo struct {
	ID            string
	Status        TaskStatus
	StatusMessage string
	Created       time.Time
	Updated       time.Time
	// TTL counts from Created; PollInterval is what a client should wait.
	TTL          time.Duration
	PollInterval time.Duration
}

// Outcome is how a tool call ends: exactly one field is set.
type Outcome struct {
	Result        *Result
	InputRequired *InputRequired
	Task          *TaskInfo
	Err           *Error
}
