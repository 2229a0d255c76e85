package tasksext

import (
	"errors"
	"strconv"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// unknownTask answers for a task that does not exist and for one that is
// somebody else's, in the same words.
func unknownTask(id string) *translate.Error {
	return invalid("unknown task " + strconv.Quote(translate.CutRunes(translate.CleanName(id), 64)) + ": it does not exist, or its time is over")
}

func invalid(message string) *translate.Error {
	return &translate.Error{Code: translate.CodeInvalidParams, Message: message}
}

// errorFromHandle words a failed look-up.
func errorFromHandle(id string, err error) *translate.Error {
	var h *handles.Error
	if errors.As(err, &h) {
		switch h.Code {
		case handles.CodeExpired:
			return invalid("the task " + strconv.Quote(id) + " has expired; call the tool again")
		case handles.CodeStore:
			return &translate.Error{Code: translate.CodeInternal, Message: "the handle store does not answer; try again"}
		}
	}
	return unknownTask(id)
}

// agentGone answers for a task of an agent that was taken out of the
// configuration.
func agentGone(entry handles.Entry) *translate.Error {
	return &translate.Error{Code: translate.CodeInternal, Message: "the agent " + strconv.Quote(entry.Agent) + " of this task is not configured any more"}
}

func unavailable(entry handles.Entry, err error) *translate.Error {
	var e *a2a.Error
	message := "the agent " + strconv.Quote(entry.Agent) + " cannot be reached; try again"
	if errors.As(err, &e) {
		return &translate.Error{Code: translate.CodeInternal, Message: e.Message, Data: translate.DataFromError(e)}
	}
	return &translate.Error{Code: translate.CodeInternal, Message: message}
}
