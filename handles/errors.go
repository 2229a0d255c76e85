package handles

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
)

// Code sorts what can be wrong with a handle. It is a closed set and safe as
// a metrics label.
type Code string

// The codes.
const (
	// CodeUnknown is a handle that does not exist, or belongs to another
	// principal: the two are never told apart.
	CodeUnknown Code = "unknown"
	// CodeExpired is a handle of this principal that was not used in time.
	CodeExpired Code = "expired"
	// CodeUsed is a single-use state that this principal has used before.
	CodeUsed Code = "used"
	// CodeWrongKind is a well-formed handle of another kind.
	CodeWrongKind Code = "wrong_kind"
	// CodeMalformed is a string that cannot be a handle.
	CodeMalformed Code = "malformed"
	// CodeFull is a table without room for one more entry.
	CodeFull Code = "full"
	// CodeStore is a store that does not work: disk full, Redis away.
	CodeStore Code = "store"
)

// Error is the one error type that leaves this package. Its text is fit for a
// caller: one line that quotes the handle and names the remedy. It never holds
// a path, an address or a Go error chain; Err has those, for the log.
type Error struct {
	Code Code
	// Handle is what the caller sent, as sent; "" where no handle was involved.
	Handle string
	// Kind is what was asked for, "" where nothing was.
	Kind Kind
	// Err is the underlying error of CodeStore, nil otherwise.
	Err error
}

// The errors to compare with by errors.Is, which looks at the code alone.
var (
	ErrUnknown   = &Error{Code: CodeUnknown}
	ErrExpired   = &Error{Code: CodeExpired}
	ErrUsed      = &Error{Code: CodeUsed}
	ErrWrongKind = &Error{Code: CodeWrongKind}
	ErrMalformed = &Error{Code: CodeMalformed}
	ErrFull      = &Error{Code: CodeFull}
	ErrStore     = &Error{Code: CodeStore}
)

// Is reports whether target is an *Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Error returns the one line for the caller.
func (e *Error) Error() string {
	switch e.Code {
	case CodeExpired:
		return fmt.Sprintf("%s %s has expired; start anew without it", e.noun(), quote(e.Handle))
	case CodeUsed:
		return fmt.Sprintf("%s %s has been used already; it works once", e.noun(), quote(e.Handle))
	case CodeWrongKind:
		return fmt.Sprintf("%s is not a %s; a %s begins with %q", quote(e.Handle), e.noun(), e.noun(), e.Kind.prefix())
	case CodeMalformed:
		return fmt.Sprintf("%s is not a handle; pass a handle exactly as an earlier result gave it", quote(e.Handle))
	case CodeFull:
		return "the gateway holds as many handles as it may; try again later, or raise limits.handles"
	case CodeStore:
		return "the gateway cannot reach its handle store (" + reason(e.Err) + "); try again later"
	}
	return fmt.Sprintf("unknown %s %s; pass a handle exactly as an earlier result gave it", e.noun(), quote(e.Handle))
}

// noun is the kind in the words of the tools' arguments.
func (e *Error) noun() string {
	switch e.Kind {
	case KindContext:
		return "context handle"
	case KindTask:
		return "task handle"
	case KindState:
		return "requestState"
	}
	return "handle"
}

// quotedLen bounds how much of a caller's string an error repeats, in bytes.
const quotedLen = 64

// quote returns s in quotes, control characters escaped, cut to quotedLen.
func quote(s string) string {
	if len(s) > quotedLen {
		return strconv.QuoteToASCII(s[:quotedLen]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

// reason is a store's failure in words without a path or an address.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return "the log of the gateway says why"
}

func malformed(handle string) *Error { return &Error{Code: CodeMalformed, Handle: handle} }

func unknown(kind Kind, handle string) *Error {
	return &Error{Code: CodeUnknown, Handle: handle, Kind: kind}
}

func expired(kind Kind, handle string) *Error {
	return &Error{Code: CodeExpired, Handle: handle, Kind: kind}
}

func used(kind Kind, handle string) *Error {
	return &Error{Code: CodeUsed, Handle: handle, Kind: kind}
}

func wrongKind(want Kind, handle string) *Error {
	return &Error{Code: CodeWrongKind, Handle: handle, Kind: want}
}

// storeFailed wraps what a Store returned, unless it is an *Error already or
// the caller has gone away.
func storeFailed(kind Kind, handle string, err error) error {
	var own *Error
	if errors.As(err, &own) || errors.Is(err, context.Canceled) {
		return err
	}
	return &Error{Code: CodeStore, Handle: handle, Kind: kind, Err: err}
}
