package credential

import (
	"errors"
	"strings"
)

var errNotAString = errors.New("a secret must be a string")

// Error says why a credential could not be had. Message is one line, lower
// case, fit for a caller, and holds no secret.
type Error struct {
	Kind    Kind
	Message string
	// Err is the cause, for errors.Is; its text is never shown.
	Err error
}

// Error returns Message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errSpec names everything that is wrong with a Spec at once.
func errSpec(kind Kind, problems []string) error {
	return &Error{Kind: kind, Message: strings.Join(problems, "; ")}
}
