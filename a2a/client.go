package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Limits and Timeouts.
const (
	defaultCardBytes   = 1 << 20
	defaultReplyBytes  = 16 << 20
	defaultEventBytes  = 8 << 20
	defaultStreamBytes = 64 << 20
	defaultErrorBytes  = 64 << 10

	defaultDialTimeout   = 10 * time.Second
	defaultHeaderTimeout = 30 * time.Second
	defaultStreamIdle    = 120 * time.Second

	// brokenStreamFor is how long an agent whose stream brought nothing is
	// sent to without streams.
	brokenStreamFor = 10 * time.Minute
)

// withDefaults returns l with its zero fields set.
func (l Limits) withDefaults() Limits {
	if l.CardBytes <= 0 {
		l.CardBytes = defaultCardBytes
	}
	if l.ReplyBytes <= 0 {
		l.ReplyBytes = defaultReplyBytes
	}
	if l.EventBytes <= 0 {
		l.EventBytes = defaultEventBytes
	}
	if l.StreamBytes <= 0 {
		l.StreamBytes = defaultStreamBytes
	}
	if l.ErrorBytes <= 0 {
		l.ErrorBytes = defaultErrorBytes
	}
	return l
}

// withDefaults returns t with its zero fields set. Unary stays as it is: 0
// leaves a send to its own deadline.
func (t Timeouts) withDefaults() Timeouts {
	if t.Dial <= 0 {
		t.Dial = defaultDialTimeout
	}
	if t.Header <= 0 {
		t.Header = defaultHeaderTimeout
	}
	if t.StreamIdle <= 0 {
		t.StreamIdle = defaultStreamIdle
	}
	return t
}

// Client speaks to one agent whose interfaces are known. It puts right what a
// card has wrong (version, path, address) where the agent certainly did not
// act on the request, and remembers it; it repeats requests only where that
// cannot run a message twice. Its methods may be called concurrently and are
// bounded by their context; errors are *Error.
type Client struct {
	o      ClientOptions
	http   *http.Client
	origin *url.URL  // the configured URL, nil when unknown
	home   webOrigin // its origin, where credentials may go
	// secrets are kept out of errors.
	secrets secrets
	slots   chan struct{}
	nextID  atomic.Int64
	bodies  sync.Pool // *replyBuffer
	idle    idlePurge

	mu sync.Mutex
	// current is the route that worked last, with every correction.
	current route
	// proven has a bit for each operation that the agent has answered over
	// current: what is not found then is not the path.
	proven uint16
	// brokenUntil is when streams may be tried again.
	brokenUntil time.Time
}

var _ Upstream = (*Client)(nil)

// ListRequest is what ListTasks asks for (specification 1.0.1, 3.1.4). The zero
// value of each field leaves it out.
type ListRequest struct {
	ContextID string
	Status    State
	// PageSize is 1 to 100; the agent's default is 50.
	PageSize      int
	PageToken     string
	HistoryLength *int
	// StatusTimestampAfter is RFC 3339.
	StatusTimestampAfter string
	IncludeArtifacts     bool
}

// TaskPage is one page of tasks, newest first.
type TaskPage struct {
	Tasks []*Task
	// NextPageToken is "" on the last page.
	NextPageToken string
	PageSize      int
	TotalSize     int
	// Notes as in Task.Notes.
	Notes []string
}

// NewClient returns a Client. It fails where the options name no interface or
// one that is not spoken.
func NewClient(o ClientOptions) (*Client, error) {
	if len(o.Interfaces) == 0 {
		return nil, errors.New("no interface")
	}
	o.Limits, o.Timeouts = o.Limits.withDefaults(), o.Timeouts.withDefaults()
	for i, in := range o.Interfaces {
		u, err := url.Parse(in.URL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return nil, fmt.Errorf("interface %d: url is not an http(s) URL", i)
		case in.Version != V10 && in.Version != V03:
			return nil, fmt.Errorf("interface %d: version %q is not spoken", i, in.Version)
		case in.Binding != JSONRPC && in.Binding != REST:
			return nil, fmt.Errorf("interface %d: binding %q is not spoken", i, in.Binding)
		}
	}
	c := &Client{o: o, http: &http.Client{}, secrets: secretsOf(o.Auth, o.Headers)}
	if o.HTTP != nil {
		*c.http = *o.HTTP
	}
	c.http.CheckRedirect = checkRedirect
	if o.FallbackURL != "" {
		u, err := url.Parse(o.FallbackURL)
		if err != nil || u.Host == "" {
			return nil, errors.New("fallback url is not an http(s) URL")
		}
		c.origin, c.home = u, originOf(u)
	}
	if o.MaxConcurrent > 0 {
		c.slots = make(chan struct{}, o.MaxConcurrent)
	}
	c.current = route{Interface: o.Interfaces[0]}
	return c, nil
}

// Chosen returns the interface in use, after all corrections.
func (c *Client) Chosen() Interface {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Interface
}

// Streams reports whether the agent offers streams and its last one was not
// empty.
func (c *Client) Streams() bool {
	return c.o.Streaming && !c.streamsBroken()
}

func (c *Client) streamsBroken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.brokenUntil)
}

// Send sends a message and returns the agent's Task or Message
// (specification 1.0.1, 3.1.1).
func (c *Client) Send(ctx context.Context, req SendRequest) (Event, error) {
	return c.event(ctx, &operation{kind: opSend, send: &req, trace: req.Trace})
}

// GetTask reads a task (specification 1.0.1, 3.1.3).
func (c *Client) GetTask(ctx context.Context, taskID string, historyLength *int) (*Task, error) {
	ev, err := c.event(ctx, &operation{kind: opGet, taskID: taskID, history: historyLength})
	return ev.Task, err
}

// CancelTask asks the agent to cancel a task (specification 1.0.1, 3.1.5). It
// does not wait for a place among MaxConcurrent: it is what frees one.
func (c *Client) CancelTask(ctx context.Context, taskID string) (*Task, error) {
	ev, err := c.event(ctx, &operation{kind: opCancel, taskID: taskID})
	return ev.Task, err
}

// event runs an operation whose answer is a Task or, for a send, a Message.
func (c *Client) event(ctx context.Context, op *operation) (Event, error) {
	var ev Event
	err := c.unary(ctx, op, func(rt *roundTrip, body []byte) (err error) {
		ev, err = rt.event(body)
		return err
	})
	if err != nil {
		return Event{}, err
	}
	return ev, nil
}

// event decodes a unary answer. Agents that answer with a stream all the same
// have its events folded.
func (rt *roundTrip) event(body []byte) (Event, error) {
	ev, err := rt.decoder().event(body)
	if errors.Is(err, errNotJSON) || errors.Is(err, errNotAnswer) {
		if folded, ferr := rt.foldEvents(body); ferr == nil || isAgentError(ferr) {
			ev, err = folded, ferr
		}
	}
	switch {
	case err != nil:
		return Event{}, err
	case ev.Message != nil && rt.op.task():
		return Event{}, errNoTask
	}
	return ev, settleEvent(&ev)
}

func isAgentError(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

// foldEvents reads a unary answer that is an event stream, or several JSON
// values in a row or in an array.
func (rt *roundTrip) foldEvents(body []byte) (Event, error) {
	var events frames
	switch first := firstByte(body); {
	case strings.IndexByte(":deir", first) >= 0:
		events = newSSEEvents(nil, bytes.NewReader(body), len(body)+1)
	case first == '{' || first == '[':
		events = newJSONFrames(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), eofReader{}, int64(len(body))+1, errAnswerTooLarge)
	default:
		return Event{}, errNotJSON
	}
	agg := NewAggregate(rt.c.o.Limits.ReplyBytes)
	for {
		_, data, err := events.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Event{}, err
		}
		if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "[DONE]" {
			continue
		}
		ev, err := rt.decoder().event(data)
		if err != nil {
			return Event{}, err
		}
		if err := agg.Add(ev); err != nil {
			return Event{}, err
		}
	}
	agg.note("the agent answered with a stream where a single answer was asked for")
	switch {
	case agg.Message() != nil:
		return Event{Message: agg.Message(), Notes: agg.Notes()}, nil
	case agg.Task() != nil:
		return Event{Task: agg.Task(), Notes: agg.Notes()}, nil
	}
	return Event{}, errNotJSON
}

// settleEvent makes a unary answer a Task or a Message: an update stands for
// the task it is about.
func settleEvent(ev *Event) error {
	switch {
	case ev.Task != nil:
		ev.Task.Notes = ev.Notes
		statedTask(ev.Task)
		ev.Notes = ev.Task.Notes
	case ev.Message == nil:
		agg := NewAggregate(0)
		if err := agg.Add(*ev); err != nil {
			return err
		}
		*ev = Event{Task: agg.Task(), Notes: agg.Notes()}
	}
	return nil
}

// ListTasks reads one page of the agent's tasks (specification 1.0.1, 3.1.4).
// 0.3 agents offer it over REST only; others get an error without a request.
func (c *Client) ListTasks(ctx context.Context, req ListRequest) (*TaskPage, error) {
	op := &operation{kind: opList, list: &req}
	var page *TaskPage
	err := c.unary(ctx, op, func(rt *roundTrip, body []byte) error {
		var err error
		page, err = rt.decoder().page(body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// ExtendedCard returns the card that the agent shows to this credential, byte
// for byte (specification 1.0.1, 3.1.11).
func (c *Client) ExtendedCard(ctx context.Context) ([]byte, error) {
	var card []byte
	err := c.unary(ctx, &operation{kind: opExtendedCard}, func(rt *roundTrip, body []byte) error {
		if rt.route.Binding == REST {
			body, _ = cleanBody(body)
			if !json.Valid(body) {
				return errNotJSON
			}
			card = append([]byte(nil), body...)
			return nil
		}
		raw, err := rt.decoder().raw(body)
		card = raw
		return err
	})
	if err != nil {
		return nil, err
	}
	return card, nil
}

// Query calls any JSON-RPC method with raw params and returns the raw result.
// It is never repeated once it may have reached the agent.
func (c *Client) Query(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	op := &operation{kind: opQuery, method: method, params: params}
	var result json.RawMessage
	err := c.unary(ctx, op, func(rt *roundTrip, body []byte) error {
		var err error
		result, err = rt.decoder().raw(body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// unary runs one operation that is not a stream. decode is called with the
// body of a 2xx answer, which it may not keep, perhaps more than once.
func (c *Client) unary(ctx context.Context, op *operation, decode func(*roundTrip, []byte) error) error {
	if err := c.check(op); err != nil {
		return c.own(err, op)
	}
	release, err := c.acquire(ctx, op)
	if err != nil {
		return c.own(err, op)
	}
	defer release()
	if _, err = c.run(ctx, op, func(rt *roundTrip) *Error { return rt.readUnary(decode) }); err == nil {
		return nil
	}
	release()
	if next, again := c.moved(ctx, op, err); next != nil {
		return next.unary(ctx, again, decode)
	}
	return c.own(err, op)
}

// check refuses what cannot be sent.
func (c *Client) check(op *operation) *Error {
	var err error
	switch {
	case op.send != nil:
		err = checkSend(op.send)
	case op.task() && op.taskID == "":
		err = errTaskID
	case op.kind == opQuery && op.method == "":
		err = errors.New("the method is empty")
	case op.kind == opQuery && len(op.params) > 0:
		if !json.Valid(op.params) || !strings.ContainsRune("{[", rune(op.params[firstNonSpace(op.params)])) {
			err = errors.New("params is not a JSON object or array")
		}
	}
	if err != nil {
		return invalidError(err)
	}
	return nil
}

// invalidError is a request that cannot be sent as it is.
func invalidError(err error) *Error {
	return &Error{Cause: CauseInvalid, Message: err.Error(), Unsent: true, Err: err}
}

// own adds who was asked for what, and takes out what the agent may not repeat
// to a caller. Nobody else holds the error yet.
func (c *Client) own(e *Error, op *operation) *Error {
	c.secrets.clean(e)
	e.Agent = c.o.Alias
	if e.Op == "" {
		e.Op = op.name()
	}
	return e
}

// acquire takes one of MaxConcurrent places; release gives it back.
func (c *Client) acquire(ctx context.Context, op *operation) (release func(), e *Error) {
	if c.slots == nil || op.kind == opCancel {
		return func() {}, nil
	}
	select {
	case c.slots <- struct{}{}:
	default:
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, &Error{
				Cause: CauseBusy, Unsent: true, Err: context.Cause(ctx),
				Message: fmt.Sprintf("all %d places for calls to this agent stayed taken; raise maxConcurrent or try again", cap(c.slots)),
			}
		}
	}
	var once sync.Once
	return func() { once.Do(func() { <-c.slots }) }, nil
}

// checkRedirect follows redirects within the origin that keep the method: a
// credential must not leave its origin, and a POST must not become a GET.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 5 || req.Method != first.Method || !sameOrigin(req.URL, first.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}
