package a2a

import (
	"encoding/json"
	"strconv"
	"time"
)

// The codes of the nine A2A errors (specification 1.0.1, 5.4).
const (
	CodeTaskNotFound                   = -32001
	CodeTaskNotCancelable              = -32002
	CodePushNotificationNotSupported   = -32003
	CodeUnsupportedOperation           = -32004
	CodeContentTypeNotSupported        = -32005
	CodeInvalidAgentResponse           = -32006
	CodeExtendedAgentCardNotConfigured = -32007
	CodeExtensionSupportRequired       = -32008
	CodeVersionNotSupported            = -32009
)

// Cause sorts errors by what a caller or operator can do about them. It is a
// closed set and safe as a metrics label.
type Cause string

// The causes.
const (
	// CauseAgent is an error that the agent itself answered with.
	CauseAgent Cause = "agent"
	// CauseDial is a connection that could not be made: nothing was sent.
	CauseDial Cause = "dial"
	// CauseDNS is a host name that does not resolve: nothing was sent.
	CauseDNS Cause = "dns"
	// CauseTLS is a failed TLS handshake: nothing was sent.
	CauseTLS Cause = "tls"
	// CauseReset is a connection that broke after the request had been
	// written: the agent may have acted.
	CauseReset Cause = "reset"
	// CauseTimeout is a deadline or idle limit that passed.
	CauseTimeout Cause = "timeout"
	// CauseCanceled is the caller's own cancellation.
	CauseCanceled Cause = "canceled"
	// CauseHTTP is an HTTP status that carries no A2A error.
	CauseHTTP Cause = "http"
	// CauseAuth is 401 or 403, or a credential that could not be had.
	CauseAuth Cause = "auth"
	// CauseProtocol is an answer that is not A2A (HTML, broken JSON, wrong id).
	CauseProtocol Cause = "protocol"
	// CauseLimit is an answer over a configured size.
	CauseLimit Cause = "limit"
	// CauseEmptyStream is a stream that ended without one event.
	CauseEmptyStream Cause = "empty_stream"
	// CauseTruncated is a stream that ended before the task settled.
	CauseTruncated Cause = "truncated"
	// CauseUnavailable is an agent without a usable card or interface, or one
	// that the address policy refuses.
	CauseUnavailable Cause = "unavailable"
	// CauseBusy is the gateway's own limit on calls to this agent.
	CauseBusy Cause = "busy"
	// CauseInvalid is a request that cannot be sent as it is: nothing was sent.
	CauseInvalid Cause = "invalid"
)

// Error is the one error type that leaves this package. Message is fit for a
// caller: one line, lower case, what is wrong and where; it never holds a
// credential, a Go error chain or an agent's HTML.
type Error struct {
	Cause Cause
	// Agent is the alias, Op the operation ("send", "get", "card", …).
	Agent string
	Op    string
	// Message is one line for people.
	Message string
	// Code is the agent's own numeric code, 0 when it gave none.
	Code int
	// Reason is google.rpc.ErrorInfo's reason, "" when absent.
	Reason string
	// Data is the agent's error.data or details as sent; nil when absent.
	Data json.RawMessage
	// HTTPStatus is the status of the answer, 0 when none came.
	HTTPStatus int
	// RetryAfter is the agent's Retry-After, 0 when absent.
	RetryAfter time.Duration
	// Challenge is the WWW-Authenticate header of a 401 or 403.
	Challenge string
	// Unsent is true when the agent certainly did not see the request.
	Unsent bool
	// Err is the underlying error, for errors.Is and the log; never shown.
	Err error
}

// Error returns Message with the code where there is one.
func (e *Error) Error() string {
	if e.Code != 0 {
		return e.Message + " (code " + strconv.Itoa(e.Code) + ")"
	}
	return e.Message
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }
