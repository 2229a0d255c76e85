package a2a

import "encoding/json"

// State is the state of a task in the spelling of A2A 1.0
// (specification 4.1.3). The decoder brings every other spelling to it
// (kebab case, upper case, two Ls, integers); a state nobody knows keeps the
// agent's own spelling.
type State string

// The states of A2A 1.0.
const (
	StateUnspecified   State = "TASK_STATE_UNSPECIFIED"
	StateSubmitted     State = "TASK_STATE_SUBMITTED"
	StateWorking       State = "TASK_STATE_WORKING"
	StateCompleted     State = "TASK_STATE_COMPLETED"
	StateFailed        State = "TASK_STATE_FAILED"
	StateCanceled      State = "TASK_STATE_CANCELED"
	StateInputRequired State = "TASK_STATE_INPUT_REQUIRED"
	StateRejected      State = "TASK_STATE_REJECTED"
	StateAuthRequired  State = "TASK_STATE_AUTH_REQUIRED"
)

// Terminal reports whether a task in this state never changes again.
func (s State) Terminal() bool {
	switch s {
	case StateCompleted, StateFailed, StateCanceled, StateRejected:
		return true
	}
	return false
}

// Interrupted reports whether a task in this state waits for its caller.
func (s State) Interrupted() bool {
	return s == StateInputRequired || s == StateAuthRequired
}

// Settled reports whether waiting longer brings nothing by itself: the state
// is terminal, interrupted or unspecified.
func (s State) Settled() bool {
	return s.Terminal() || s.Interrupted() || s == StateUnspecified
}

// Known reports whether s is one of the nine states of the specification.
func (s State) Known() bool {
	switch s {
	case StateUnspecified, StateSubmitted, StateWorking:
		return true
	}
	return s.Terminal() || s.Interrupted()
}

// Role says who wrote a message.
type Role string

// The roles of A2A 1.0.
const (
	RoleUser  Role = "ROLE_USER"
	RoleAgent Role = "ROLE_AGENT"
)

// PartKind names which of a part's contents is set.
type PartKind uint8

// The kinds of part. PartUnknown is a part nobody understands: Raw JSON in
// Part.Unknown, the reason in Part.Fault.
const (
	PartUnknown PartKind = iota
	PartText
	PartData
	PartURL
	PartRaw
)

// Part is one piece of content. Exactly one of Text, Data, URL, Base64 and
// Unknown carries it, by Kind. A Part is never changed after decoding.
type Part struct {
	Kind PartKind
	// Text is the content of a PartText, possibly empty.
	Text string
	// Data is the content of a PartData, byte for byte as the agent wrote it:
	// any JSON value, null included.
	Data json.RawMessage
	// URL is the content of a PartURL, as written.
	URL string
	// Base64 is the content of a PartRaw in padded standard base64; the
	// decoder has checked and normalised it.
	Base64 string
	// Filename is as the agent wrote it: untrusted, may hold a path.
	Filename  string
	MediaType string
	// Metadata is the raw JSON object, nil when absent.
	Metadata json.RawMessage
	// Unknown is the whole part as received, for PartUnknown only.
	Unknown json.RawMessage
	// Fault says in a few words why a part is PartUnknown.
	Fault string
}

// Message is one turn (specification 4.1.4).
type Message struct {
	MessageID        string
	ContextID        string
	TaskID           string
	Role             Role
	Parts            []Part
	Metadata         json.RawMessage
	Extensions       []string
	ReferenceTaskIDs []string
}

// Artifact is one output of a task (specification 4.1.7).
type Artifact struct {
	ArtifactID  string
	Name        string
	Description string
	Parts       []Part
	Metadata    json.RawMessage
	Extensions  []string
}

// Status is a task's state with the agent's word on it.
type Status struct {
	State   State
	Message *Message
	// Timestamp is as the agent wrote it; no form of it is refused.
	Timestamp string
}

// Task is a task as last seen (specification 4.1.1). A *Task that a Snapshot
// or a call has returned is never changed again; folding an event makes a new
// one.
type Task struct {
	ID        string
	ContextID string
	Status    Status
	Artifacts []Artifact
	History   []Message
	Metadata  json.RawMessage
	// Notes says in plain words what was odd about what the agent sent and
	// what was made of it. Empty for a well-behaved agent.
	Notes []string
}

// StatusUpdate is the stream event that changes a task's status.
type StatusUpdate struct {
	TaskID    string
	ContextID string
	Status    Status
	// Final is 0.3's mark of the last event; always false on 1.0.
	Final    bool
	Metadata json.RawMessage
}

// ArtifactUpdate is the stream event that brings an artifact or a piece of one.
type ArtifactUpdate struct {
	TaskID    string
	ContextID string
	Artifact  Artifact
	Append    bool
	LastChunk bool
	Metadata  json.RawMessage
}

// Event is one thing an agent says in answer to a message: exactly one field
// is set. A unary answer is an Event with Task or Message.
type Event struct {
	Task     *Task
	Message  *Message
	Status   *StatusUpdate
	Artifact *ArtifactUpdate
	// Notes as in Task.Notes.
	Notes []string
}

// SendRequest is one logical send. The zero value of each optional field
// leaves it out of the request.
type SendRequest struct {
	// Message is what is sent. Its MessageID must be set, fresh for each
	// logical send (NewMessageID), and stays the same over every retry and
	// fallback, so that an agent that deduplicates runs it once.
	Message Message
	// AcceptedOutputModes are media types; nil leaves the choice to the agent.
	AcceptedOutputModes []string
	// HistoryLength limits the returned history; nil is the agent's choice.
	HistoryLength *int
	// ReturnImmediately asks a unary send not to wait for the task to settle.
	ReturnImmediately bool
	// Metadata is the request's metadata object.
	Metadata json.RawMessage
	// Trace goes on to the agent as headers.
	Trace Trace
}

// Trace is the W3C trace context of the call that a request serves; empty
// fields are not sent.
type Trace struct {
	Parent string // traceparent
	State  string // tracestate
	// Request names the caller's request in the log. It is not sent.
	Request string
}
