package translate

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"a2agate/a2a"
)

// ErrorName is the name of one of the nine A2A errors by its code (A2A 5.4),
// "" for any other code.
func ErrorName(code int) string {
	switch code {
	case a2a.CodeTaskNotFound:
		return "TaskNotFound"
	case a2a.CodeTaskNotCancelable:
		return "TaskNotCancelable"
	case a2a.CodePushNotificationNotSupported:
		return "PushNotificationNotSupported"
	case a2a.CodeUnsupportedOperation:
		return "UnsupportedOperation"
	case a2a.CodeContentTypeNotSupported:
		return "ContentTypeNotSupported"
	case a2a.CodeInvalidAgentResponse:
		return "InvalidAgentResponse"
	case a2a.CodeExtendedAgentCardNotConfigured:
		return "ExtendedAgentCardNotConfigured"
	case a2a.CodeExtensionSupportRequired:
		return "ExtensionSupportRequired"
	case a2a.CodeVersionNotSupported:
		return "VersionNotSupported"
	}
	return ""
}

// ResultFromError renders an agent's error, or the lack of an agent, as a
// result with isError: one line that says what is wrong and what to do, and
// the envelope. The A2A code never becomes a JSON-RPC code.
func ResultFromError(err *a2a.Error, o Options) Result {
	a := answer{o: &o}
	a.addNotes(o.Notes)
	a.fail(err)
	return a.result()
}

// ResultFromFault renders trouble on the gateway's side that the caller can
// put right (an unknown handle, a bad argument): text is one line of ours.
func ResultFromFault(text string, o Options) Result {
	a := answer{o: &o, isError: true, status: o.Status}
	if a.status == "" {
		a.status = StatusFailed
	}
	if o.Task != "" {
		a.kind = "task"
	}
	a.addNotes(o.Notes)
	a.say(oneLine(text, faultChars))
	return a.result()
}

// faultChars bounds the line of an error.
const faultChars = 2000

// ErrorFromLost is the JSON-RPC error of a task that the gateway can no longer
// reach: -32603, with what the agent last said in data. The
// message alone says all, since some clients show nothing else. err may be nil.
func ErrorFromLost(err *a2a.Error, o Options) *Error {
	msg := upperFirst(o.title()) + " can no longer be asked about this task"
	d := newObject(nil)
	if err != nil {
		if line := errorLine(err); line != "" {
			msg += ": " + line
		}
		if err.Code != 0 {
			d.key("a2aErrorCode")
			d.dst = strconv.AppendInt(d.dst, int64(err.Code), 10)
		}
		d.str("a2aErrorReason", oneLine(err.Reason, 200))
	}
	if o.Task != "" {
		msg += " (taskHandle " + o.Task + ")"
	}
	d.str("agent", agentOf(err, &o))
	d.str("taskHandle", o.Task)
	return &Error{Code: CodeInternal, Message: CutRunes(msg, faultChars), Data: d.end()}
}

func agentOf(err *a2a.Error, o *Options) string {
	if o.Agent == "" && err != nil {
		return oneLine(err.Agent, 200)
	}
	return oneLine(o.Agent, 200)
}

// errorFrom finds the *a2a.Error in err; a foreign error is named as such,
// without its text, which may hold anything.
func errorFrom(err error, o *Options) *a2a.Error {
	var e *a2a.Error
	if errors.As(err, &e) && e != nil {
		return e
	}
	return &a2a.Error{Cause: a2a.CauseProtocol, Agent: o.Agent, Message: "the call to the agent failed"}
}

func (a *answer) fail(err *a2a.Error) {
	if err == nil {
		err = errorFrom(nil, a.o)
	}
	if a.o.Agent == "" {
		a.o.Agent = err.Agent
	}
	a.isError = true
	a.status = StatusFailed
	if a.o.Status != "" {
		a.status = a.o.Status
	}
	if a.o.Task != "" {
		a.kind = "task"
	}
	a.errCode, a.errReason = err.Code, err.Reason
	a.say(CutRunes(errorLine(err), faultChars))
}

// errorLine is one line: the name and code of a typed error, what the agent
// said, how it said it over HTTP, and what to do about it.
func errorLine(err *a2a.Error) string {
	line := oneLine(err.Message, faultChars)
	if line == "" {
		line = "the agent gave no reason"
	}
	if name := ErrorName(err.Code); name != "" {
		line = name + " (" + strconv.Itoa(err.Code) + "): " + line
	}
	var more []string
	if ErrorName(err.Code) == "" && err.Code != 0 && !mentions(line, err.Code) {
		more = append(more, "agent error code "+strconv.Itoa(err.Code))
	}
	if err.Reason != "" && !strings.Contains(line, err.Reason) {
		more = append(more, "reason "+oneLine(err.Reason, 200))
	}
	if err.HTTPStatus >= 300 && !mentions(line, err.HTTPStatus) {
		more = append(more, "HTTP "+strconv.Itoa(err.HTTPStatus))
	}
	if err.Challenge != "" && !strings.Contains(line, err.Challenge) {
		more = append(more, "the agent asks for "+oneLine(err.Challenge, 200))
	}
	if len(more) > 0 {
		line += " (" + strings.Join(more, "; ") + ")"
	}
	if cure := remedy(err); cure != "" && !strings.Contains(line, cure) {
		line += "; " + cure
	}
	return line
}

// mentions reports whether the line already has the number, on its own.
func mentions(line string, n int) bool {
	digits := strconv.Itoa(n)
	for at := 0; ; {
		i := strings.Index(line[at:], digits)
		if i < 0 {
			return false
		}
		i += at
		end := i + len(digits)
		if (i == 0 || !isDigit(line[i-1])) && (end == len(line) || !isDigit(line[end])) {
			return true
		}
		at = i + 1
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// remedy says what the caller can do, by cause; "" where the error says it all.
func remedy(err *a2a.Error) string {
	if err.RetryAfter > 0 {
		return "try again in " + retryText(err.RetryAfter)
	}
	switch err.Cause {
	case a2a.CauseDial, a2a.CauseDNS, a2a.CauseTLS:
		return "nothing was sent: check that the agent runs, then try again"
	case a2a.CauseReset, a2a.CauseTruncated:
		return "the agent may have acted: check before sending it again"
	case a2a.CauseTimeout:
		if err.Unsent {
			return "nothing was sent: try again"
		}
		return "the agent may still be at work: check before sending it again"
	case a2a.CauseAuth:
		return "set the agent's auth in the gateway's configuration"
	case a2a.CauseBusy:
		return "wait for other calls to this agent to end, then try again"
	case a2a.CauseHTTP:
		if err.HTTPStatus == 429 || err.HTTPStatus == 503 {
			return "try again later"
		}
	case a2a.CauseLimit:
		return "ask the agent for less"
	case a2a.CauseAgent, a2a.CauseCanceled, a2a.CauseProtocol, a2a.CauseEmptyStream, a2a.CauseUnavailable:
	}
	return ""
}

func retryText(d time.Duration) string {
	s := int64((d + time.Second - 1) / time.Second)
	return strconv.FormatInt(s, 10) + " s"
}

// DataFromError is the JSON of an error for error.data of other JSON-RPC
// errors that an agent's error leads to: code, reason and agent.
func DataFromError(err *a2a.Error) json.RawMessage {
	d := newObject(nil)
	if err.Code != 0 {
		d.key("a2aErrorCode")
		d.dst = strconv.AppendInt(d.dst, int64(err.Code), 10)
	}
	d.str("a2aErrorReason", oneLine(err.Reason, 200))
	d.str("agent", oneLine(err.Agent, 200))
	return d.end()
}
