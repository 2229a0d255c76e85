package a2a

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxRoutes bounds the requests of one walk over routes.
const maxRoutes = 8

// route is an interface with what had to be put right about it. It is
// comparable, so that no route is tried twice.
type route struct {
	Interface
	index int // in ClientOptions.Interfaces
	// FlipV1 turns the /v1 prefix of REST paths round.
	FlipV1 bool
	// SubscribeGET subscribes over REST by GET, as the proto has it, instead
	// of POST, as the specification's text has it.
	SubscribeGET bool
	// PlainJSON sends REST bodies as application/json, the type before 1.0.1.
	PlainJSON bool
	// atFallback says that URL has been replaced by the configured one.
	atFallback bool
}

// candidate is a route to try and the correction that it is, "" for none.
type candidate struct {
	route route
	label string
}

// run does an operation: over the routes in turn, and again where the rules
// for repeating allow it. It returns the route that answered.
func (c *Client) run(ctx context.Context, op *operation, handle func(*roundTrip) *Error) (route, *Error) {
	for retry := 0; ; retry++ {
		r, e := c.walk(ctx, c.candidates(op), op, retry, handle)
		if e == nil || !c.again(ctx, op, e, retry) {
			return r, e
		}
	}
}

// candidates are the routes in the order of trying: the one that worked last,
// then the card's other interfaces in its order.
func (c *Client) candidates(op *operation) []candidate {
	c.mu.Lock()
	current := c.current
	c.mu.Unlock()
	list := []candidate{{route: current}}
	for i, in := range c.o.Interfaces {
		if i != current.index || in.URL != current.URL {
			list = append(list, candidate{route{Interface: in, index: i}, "interface"})
		}
	}
	if op.kind != opQuery {
		return list
	}
	// Raw methods exist over JSON-RPC only.
	var rpc []candidate
	for _, cand := range list {
		if cand.route.Binding == JSONRPC {
			rpc = append(rpc, cand)
		}
	}
	return rpc
}

// walk tries routes until one answers. It goes on to the next only where the
// agent certainly did not act on the request.
func (c *Client) walk(ctx context.Context, todo []candidate, op *operation, retry int, handle func(*roundTrip) *Error) (route, *Error) {
	if len(todo) == 0 {
		return route{}, &Error{Cause: CauseUnavailable, Code: CodeUnsupportedOperation, Unsent: true, Err: errNoQuery, Message: errNoQuery.Error()}
	}
	tried := make(map[route]bool, 2)
	var first *Error
	for len(todo) > 0 && len(tried) < maxRoutes {
		cand := todo[0]
		todo = todo[1:]
		if tried[cand.route] {
			continue
		}
		tried[cand.route] = true
		e := c.try(ctx, cand, op, retry, handle)
		guess := first != nil
		if e == nil || e.Cause == CauseAgent && !c.correctable(cand.route, op, e) && !(guess && nothingThere(e)) {
			c.remember(cand.route, op)
			return cand.route, e
		}
		switch {
		case !guess:
			first = e
		case e.Cause == CauseUnavailable && e.Unsent, nothingThere(e):
			continue // this route has no such operation
		}
		fixes, next := c.corrections(cand.route, op, e)
		if len(fixes) == 0 && !next || ctx.Err() != nil {
			return cand.route, e
		}
		if !next {
			todo = nil
		}
		todo = append(fixes, todo...)
	}
	return route{}, first
}

// try does one request, and once more with a fresh credential where the agent
// refused the one it got.
func (c *Client) try(ctx context.Context, cand candidate, op *operation, retry int, handle func(*roundTrip) *Error) *Error {
	e := c.attempt(ctx, cand, op, retry, handle)
	if e == nil || e.HTTPStatus != http.StatusUnauthorized || c.o.Auth == nil {
		return e
	}
	if u, err := url.Parse(cand.route.URL); err != nil || !c.trusts(&cand.route, u) || !c.o.Auth.Refresh(ctx) {
		return e
	}
	cand.label = "auth"
	return c.attempt(ctx, cand, op, retry, handle)
}

// remember makes a route the first to be tried from now on.
func (c *Client) remember(r route, op *operation) {
	if op.kind == opQuery {
		return // went where JSON-RPC is, whatever the others use
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != r {
		c.current, c.proven = r, 0
	}
	c.proven |= 1 << op.kind
}

// fresh reports whether a failure of op may lie in the route: nothing has
// worked over it yet, or this very operation has.
func (c *Client) fresh(r route, op *operation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != r || c.proven == 0 || c.proven&(1<<op.kind) != 0
}

// correctable reports whether an error that the agent answered with is about
// the request's form rather than about the request.
func (c *Client) correctable(r route, op *operation, e *Error) bool {
	return c.otherVersion(r, op, e) || wrongType(r, e) || op.kind == opSubscribe && noRoute(e) && c.subscribeFix(r) != nil
}

// corrections returns the routes to try next after e, best first, and whether
// the agent's other interfaces may be tried after them.
func (c *Client) corrections(r route, op *operation, e *Error) (fixes []candidate, next bool) {
	switch {
	case wrongType(r, e):
		r.PlainJSON = true
		return []candidate{{r, "content_type"}}, false
	case c.otherVersion(r, op, e):
		if e.Code == rpcMethodNotFound && r.Binding == REST {
			fixes = c.pathFixes(r, op, e) // no such operation is no such path there
		}
		return append(append(fixes, c.listed(r)...), candidate{otherVersion(r), "version"}), true
	case e.Unsent && (e.Cause == CauseDial || e.Cause == CauseDNS || e.Cause == CauseTLS):
		return c.fallbacks(r, true), true
	case errors.Is(e.Err, errSlashMoved):
		return []candidate{{toggleSlash(r), "slash"}}, false
	case (notHere(e) || e.HTTPStatus == http.StatusBadRequest && bare(e) && c.doubtful(r)) && c.fresh(r, op):
		return append(c.pathFixes(r, op, e), c.fallbacks(r, false)...), true
	case op.kind == opSubscribe && noRoute(e):
		return c.subscribeFix(r), false
	}
	return nil, false
}

// subscribeFix is the other method to subscribe by over REST: a read, which
// cannot do harm.
func (c *Client) subscribeFix(r route) (fixes []candidate) {
	if r.Binding == REST && !r.SubscribeGET {
		r.SubscribeGET = true
		fixes = []candidate{{r, "subscribe_get"}}
	}
	return fixes
}

// doubtful reports whether the card's address for r may not be meant: it ends
// in the path of an operation or of the card.
func (c *Client) doubtful(r route) bool {
	for _, in := range c.o.Interfaces {
		base, _, _ := strings.Cut(in.URL, "?")
		own, _, _ := strings.Cut(r.URL, "?")
		base, own = strings.TrimRight(base, "/"), strings.TrimRight(own, "/")
		meant := trimOperation(base)
		if meant != base && (r.atFallback || own == base || own == meant || own == strings.TrimSuffix(meant, "/v1")) {
			return true
		}
	}
	return false
}

// listed are the interfaces that the card has in the other version: better
// than the guess that this address speaks it.
func (c *Client) listed(r route) (fixes []candidate) {
	for i, in := range c.o.Interfaces {
		if in.Version != r.Version && in.Binding == r.Binding {
			fixes = append(fixes, candidate{route{Interface: in, index: i}, "version"})
		}
	}
	return fixes
}

// pathFixes are the other paths that an interface may mean.
func (c *Client) pathFixes(r route, op *operation, e *Error) (fixes []candidate) {
	if r.Binding == REST {
		if op.kind == opSubscribe {
			fixes = c.subscribeFix(r)
		}
		if noRoute(e) && !r.FlipV1 {
			r.FlipV1 = true
			fixes = append(fixes, candidate{r, "path"})
		}
		return fixes
	}
	base, query, has := strings.Cut(r.URL, "?")
	if has {
		query = "?" + query
	}
	if whole := strings.TrimRight(base, "/"); trimOperation(whole) != whole {
		cut := r
		cut.URL = trimOperation(whole) + query
		fixes = append(fixes, candidate{cut, "path"})
	}
	return append(fixes, candidate{toggleSlash(r), "slash"})
}

// toggleSlash is the route whose address ends in a slash where r's does not.
func toggleSlash(r route) route {
	base, query, has := strings.Cut(r.URL, "?")
	if has {
		query = "?" + query
	}
	if cut, ok := strings.CutSuffix(base, "/"); ok {
		r.URL = cut + query
	} else {
		r.URL = base + "/" + query
	}
	return r
}

// fallbacks are the same interface at the configured address: with the
// interface's own path where the address was at fault, then as configured.
func (c *Client) fallbacks(r route, address bool) (fixes []candidate) {
	if c.origin == nil || r.atFallback {
		return nil
	}
	r.atFallback = true
	r.Anonymous = false
	if u, err := url.Parse(r.URL); err == nil && address && !sameOrigin(u, c.origin) {
		moved := r
		u.Scheme, u.Host = c.origin.Scheme, c.origin.Host
		moved.URL = u.String()
		fixes = append(fixes, candidate{moved, "url"})
	}
	if r.URL != c.o.FallbackURL {
		r.URL, r.FlipV1 = c.o.FallbackURL, false
		fixes = append(fixes, candidate{r, "url"})
	}
	return fixes
}

// otherVersion reports whether e says that the agent speaks the other version
// and did not execute the request. An operation that fails where others have
// worked is not supported, whatever the version.
func (c *Client) otherVersion(r route, op *operation, e *Error) bool {
	if op.kind == opQuery {
		return false
	}
	names := namesVersion(e.Message, r.Version)
	switch {
	case e.Reason == "VERSION_NOT_SUPPORTED":
		return true
	case e.Code == CodeVersionNotSupported:
		// 0.3 has not assigned the code, and some of its agents mean a refused
		// credential by it.
		return r.Version == V10 || strings.Contains(strings.ToLower(e.Message), "version")
	case e.Code == rpcMethodNotFound:
		return c.fresh(r, op)
	case e.Code == rpcInvalidRequest, e.HTTPStatus == http.StatusBadRequest && (e.Code == 0 || e.Code == rpcInvalidParams):
		return names
	}
	return false
}

// namesVersion reports whether an error message is about the protocol version.
func namesVersion(message string, sent Version) bool {
	m := strings.ToLower(message)
	if !strings.Contains(m, "version") {
		return false
	}
	return strings.Contains(m, "a2a") || strings.Contains(m, "protocol") || strings.Contains(m, string(sent)) ||
		strings.Contains(m, "unsupported version") || strings.Contains(m, "version not supported")
}

func otherVersion(r route) route {
	if r.Version == V10 {
		r.Version = V03
	} else {
		r.Version = V10
	}
	r.FlipV1, r.SubscribeGET, r.PlainJSON = false, false, false
	return r
}

// wrongType reports whether a REST agent refused the media type of 1.0.1.
func wrongType(r route, e *Error) bool {
	return r.Binding == REST && r.Version == V10 && !r.PlainJSON && e.HTTPStatus == http.StatusUnsupportedMediaType
}

// notHere reports whether an answer says that nothing is at this path. An A2A
// error with the same status comes from an agent that is.
func notHere(e *Error) bool {
	return (e.HTTPStatus == http.StatusNotFound || e.HTTPStatus == http.StatusMethodNotAllowed) && bare(e)
}

// noRoute is notHere for REST, where an A2A error may say it too: the agent's
// router answers, not the operation.
func noRoute(e *Error) bool {
	return notHere(e) || e.Code == rpcMethodNotFound
}

// bare reports whether an answer carries no A2A error.
func bare(e *Error) bool { return e.Code == 0 && e.Reason == "" }

// nothingThere reports whether an agent says in its own words that it has no
// such operation at this path: of a guessed path that is no more than notHere.
func nothingThere(e *Error) bool {
	return (e.HTTPStatus == http.StatusNotFound || e.HTTPStatus == http.StatusMethodNotAllowed) &&
		(e.Code == CodeUnsupportedOperation || e.Code == rpcMethodNotFound)
}

// again waits and reports whether to repeat an operation after e: reads after
// trouble with the connection or the server, a cancellation once, a send only
// when it certainly was not seen.
func (c *Client) again(ctx context.Context, op *operation, e *Error, retry int) bool {
	times := 0
	switch {
	case op.read():
		times = 2
	case op.kind == opCancel:
		times = 1
	case e.Unsent && e.Cause == CauseDial:
		times = 2
	}
	if retry >= times || !passing(e) || ctx.Err() != nil {
		return false
	}
	wait := time.Duration(100<<retry) * time.Millisecond
	wait += rand.N(wait / 2)
	if e.RetryAfter > 0 {
		wait = e.RetryAfter
	}
	limit := 30 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	if wait >= limit {
		return false
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// passing reports whether an error may pass by itself.
func passing(e *Error) bool {
	switch e.Cause {
	case CauseDial, CauseReset:
		return true
	case CauseHTTP, CauseAgent:
		switch e.HTTPStatus {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
	}
	return false
}
