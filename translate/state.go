package translate

import "a2agate/a2a"

// Status is the envelope's word for how a task or call stands.
type Status string

// The statuses of an envelope.
const (
	StatusWorking       Status = "working"
	StatusInputRequired Status = "input_required"
	StatusAuthRequired  Status = "auth_required"
	StatusCompleted     Status = "completed"
	StatusFailed        Status = "failed"
	StatusRejected      Status = "rejected"
	StatusCancelled     Status = "cancelled"
)

// StatusFromState maps an A2A state (A2A 4.1.3) to the envelope's status. A
// state nobody knows counts as working: the agent may well go on; the caller
// names it in a note. A missing state counts as UNSPECIFIED.
func StatusFromState(s a2a.State) Status {
	switch s {
	case a2a.StateSubmitted, a2a.StateWorking:
		return StatusWorking
	case a2a.StateInputRequired:
		return StatusInputRequired
	case a2a.StateAuthRequired:
		return StatusAuthRequired
	case a2a.StateCompleted:
		return StatusCompleted
	case a2a.StateFailed, a2a.StateUnspecified, "":
		return StatusFailed
	case a2a.StateRejected:
		return StatusRejected
	case a2a.StateCanceled:
		return StatusCancelled
	}
	return StatusWorking
}

// IsError reports whether a result with this status carries isError.
func (s Status) IsError() bool {
	return s == StatusFailed || s == StatusRejected || s == StatusAuthRequired
}

// Open reports whether the task goes on or waits: its handle is needed.
func (s Status) Open() bool {
	return s == StatusWorking || s == StatusInputRequired || s == StatusAuthRequired
}

// TaskStatusFromState maps an A2A state to the status of an MCP task (tasks
// extension 3.3). FAILED, REJECTED and UNSPECIFIED are completed: the result
// says isError. AUTH_REQUIRED is completed too, with isError; where the client
// takes URL elicitation and the agent gave a url (AsksFromStatus has one), the
// task is TaskInputRequired instead, which the caller decides. TaskFailed is
// never a state's: it means that the gateway has lost the task.
func TaskStatusFromState(s a2a.State) TaskStatus {
	switch StatusFromState(s) {
	case StatusWorking:
		return TaskWorking
	case StatusInputRequired:
		return TaskInputRequired
	case StatusCancelled:
		return TaskCancelled
	case StatusCompleted, StatusFailed, StatusRejected, StatusAuthRequired:
		return TaskCompleted
	}
	return TaskWorking
}

// Terminal reports whether an MCP task in this status never changes again.
func (s TaskStatus) Terminal() bool {
	return s == TaskCompleted || s == TaskCancelled || s == TaskFailed
}

// noteFromState says what the status alone does not tell, "" for most states.
func noteFromState(s a2a.State) string {
	switch {
	case s == "" || s == a2a.StateUnspecified:
		return "the agent reports no state for the task (TASK_STATE_UNSPECIFIED); it counts as failed"
	case !s.Known():
		return "the agent reports the unknown state " + quoteName(string(s)) + "; it counts as working"
	}
	return ""
}
