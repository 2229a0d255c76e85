package a2a

import (
	"context"
	"net/http"
	"time"
)

// Upstream is what a Follower needs of a Client, and all that a *Client does
// for the tools. Methods may be called concurrently. Errors are *Error.
type Upstream interface {
	// Send sends a message and returns the agent's Task or Message.
	Send(ctx context.Context, req SendRequest) (Event, error)
	// Stream sends a message and returns the stream of what comes of it, once
	// its first event is there: an error in place of it is returned here.
	Stream(ctx context.Context, req SendRequest) (EventStream, error)
	// GetTask reads a task; historyLength nil leaves the history's length to
	// the agent.
	GetTask(ctx context.Context, taskID string, historyLength *int) (*Task, error)
	// CancelTask asks the agent to cancel and returns the task as it then is,
	// which may still be working.
	CancelTask(ctx context.Context, taskID string) (*Task, error)
	// Subscribe joins the stream of a task; its first event is a snapshot.
	Subscribe(ctx context.Context, taskID string) (EventStream, error)
	// Streams reports whether the agent offers streams and they are not known
	// to be broken.
	Streams() bool
}

// EventStream is one open upstream stream. Next returns io.EOF at a clean end
// (which says nothing about the task: see CauseTruncated) and *Error
// otherwise. Next and Close may be called from different goroutines; Close
// frees the connection and is needed exactly once.
type EventStream interface {
	Next() (Event, error)
	Close()
}

// Limits bound what is read from an agent; zero fields take the defaults.
type Limits struct {
	CardBytes   int64 // 1 MiB
	ReplyBytes  int64 // 16 MiB, a unary answer
	EventBytes  int   // 8 MiB, one stream event
	StreamBytes int64 // 64 MiB, a whole stream
	ErrorBytes  int64 // 64 KiB read of an error body
}

// Timeouts bound how long an agent may take; zero fields take the defaults.
type Timeouts struct {
	Dial       time.Duration // 10 s, TCP and TLS each
	Header     time.Duration // 30 s to the response header of card, get, cancel
	Unary      time.Duration // 0: the call's own deadline bounds a send
	StreamIdle time.Duration // 120 s without any byte, comments count
}

// Authorizer puts an agent's credential on a request to the configured
// origin; package credential implements it.
type Authorizer interface {
	// Authorize adds the credential. It may fetch a token, bounded by the
	// request's context. Errors are fit for a caller and hold no secret.
	Authorize(req *http.Request) error
	// Refresh drops what is cached after a 401; it reports whether trying
	// again can help.
	Refresh(ctx context.Context) bool
}

// ClientOptions is what a Client is made of.
type ClientOptions struct {
	// Alias names the agent in errors.
	Alias string
	// Interfaces are tried in order; at least one.
	Interfaces []Interface
	// FallbackURL is the configured URL, tried once when an interface's own
	// address cannot be dialled or answers 404/405; "" for none.
	FallbackURL string
	// HTTP does the requests. Its Transport has the dial policy; it must not
	// have a Timeout. CheckRedirect is set by the Client on a copy.
	HTTP *http.Client
	// Auth is nil for an agent without credentials.
	Auth Authorizer
	// Headers are the configured static headers, sent to the configured
	// origin only.
	Headers http.Header
	// Streaming is what the card says.
	Streaming bool
	// Extensions are the extension URIs to ask for (A2A-Extensions).
	Extensions []string
	// EmptyStreamFallback sends the same message again, with the same
	// messageId, after a stream that brought no event.
	EmptyStreamFallback bool
	Limits              Limits
	Timeouts            Timeouts
	// MaxConcurrent bounds requests in flight, streams included; 0 is none.
	MaxConcurrent int
	// Observe is told of each upstream request when it is over; may be nil.
	Observe func(Exchange)
	// Start is told of each upstream request before it is made; may be nil.
	Start StartFunc
	// elsewhere returns the client of the interfaces that the agent has moved
	// to, asked by the one that found nothing at its own; else nil and why
	// there is none. It may be nil.
	elsewhere func(context.Context, *Client) (*Client, string)
}

// StartFunc is told of an upstream request before it is made: of x, Status,
// Cause and Duration are not known yet. t is the trace context of the request
// that it serves. It returns the context to make the request with, which must
// derive from ctx, the trace context to send, and what to call when the
// request is over, or nil. It is called concurrently.
type StartFunc func(ctx context.Context, x Exchange, t Trace) (context.Context, Trace, func(Exchange))

// Exchange is one upstream HTTP request, for metrics and the log. It holds no
// contents.
type Exchange struct {
	Alias, Op string
	Version   Version
	Binding   Binding
	Status    int   // HTTP status, 0 without an answer
	Cause     Cause // "" when it went well
	Duration  time.Duration
	// Retry numbers repeated tries from 1; Fallback names the correction that
	// led to this request ("version", "url", "empty_stream", …), "" for none.
	Retry    int
	Fallback string
}
