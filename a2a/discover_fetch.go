package a2a

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	maxRedirects = 5
	// cardRetries bounds the repeated requests of one discovery, after a
	// connection that broke or a 429, 502, 503 or 504.
	cardRetries = 2
	// cardRetryPause is the first pause before a repetition; it doubles.
	cardRetryPause = 100 * time.Millisecond
	// maxRetryAfter is the longest Retry-After that is waited for within one
	// discovery.
	maxRetryAfter = 2 * time.Second
)

// AuthOnCard says when the credential goes along with a request for the card.
type AuthOnCard string

// The values of AuthOnCard. Auto asks without it first, and with it after a
// 401 or 403.
const (
	AuthOnCardAuto   AuthOnCard = "auto"
	AuthOnCardAlways AuthOnCard = "always"
	AuthOnCardNever  AuthOnCard = "never"
)

// cardFetcher looks for a card. It is used by one discovery at a time.
type cardFetcher struct {
	place   cardPlace
	http    *http.Client // follows no redirect by itself; its transport has the address policy
	own     webOrigin
	auth    Authorizer // nil without a credential
	mode    AuthOnCard
	headers http.Header
	secrets secrets
	limit   int64
	timeout time.Duration
}

// cardVariant is how a card was asked for; a cached answer serves only the
// same variant (the header A2A-Version and the credential may change it).
type cardVariant struct {
	url        string
	versioned  bool
	authorized bool
}

// cachedCard is the last good card with what HTTP says about keeping it.
type cachedCard struct {
	card         *Card
	variant      cardVariant
	legacy       bool
	etag         string
	lastModified string
	lifetime     time.Duration
}

// cardFind is the outcome of one discovery.
type cardFind struct {
	// cached is the card found or confirmed, nil when there is none.
	cached *cachedCard
	// attempts are the requests made; without a card the most telling one
	// gives state and reason.
	attempts []CardAttempt
	// retryAfter is the longest wait that an agent asked for.
	retryAfter time.Duration
	// canceled says that the discovery was broken off and tells nothing.
	canceled bool
}

// worst is the attempt that says best why there is no card. Those that were
// repeated in another form have no error and do not count.
func (f *cardFind) worst() CardAttempt {
	var best CardAttempt
	for _, t := range f.attempts {
		if t.err != nil && (best.err == nil || t.rank() > best.rank()) {
			best = t
		}
	}
	return best
}

// find tries the candidates in order, that of the last good card first.
func (f *cardFetcher) find(ctx context.Context, last *cachedCard) *cardFind {
	find := &cardFind{}
	candidates := f.place.candidates
	if last != nil && !last.legacy {
		candidates = []cardCandidate{{url: last.variant.url}}
		for _, c := range f.place.candidates {
			if c.url != last.variant.url {
				candidates = append(candidates, c)
			}
		}
	}
	retries := cardRetries
	dead := map[webOrigin]bool{}
	for _, c := range candidates {
		at := candidateOrigin(c)
		if dead[at] {
			continue
		}
		cached, hopeless := f.try(ctx, c, last, find, &retries)
		if cached != nil {
			find.cached = cached
			return find
		}
		if find.canceled || ctx.Err() != nil {
			return find
		}
		dead[at] = hopeless
	}
	return find
}

func candidateOrigin(c cardCandidate) webOrigin {
	u, err := url.Parse(c.url)
	if err != nil {
		return webOrigin{}
	}
	return originOf(u)
}

// try asks one candidate: with the version header, without it after a 400 or
// 406, with the credential after a 401 or 403, and once more with a renewed
// credential. hopeless says that the host itself cannot be reached.
func (f *cardFetcher) try(ctx context.Context, c cardCandidate, last *cachedCard, find *cardFind, retries *int) (cached *cachedCard, hopeless bool) {
	v := cardVariant{url: c.url, versioned: true, authorized: f.mode == AuthOnCardAlways && f.auth != nil}
	if last != nil && last.variant.url == c.url {
		v = last.variant
	}
	renewed := false
	for {
		answer := f.get(ctx, v, last)
		attempt := CardAttempt{URL: showURL(v.url), Status: answer.status, ContentType: answer.contentType, Authorized: answer.authorized}
		if answer.err != nil && answer.err.Cause == CauseCanceled {
			find.canceled = true
			return nil, true
		}
		find.retryAfter = max(find.retryAfter, answer.retryAfter)
		if answer.retryable() && *retries > 0 && pause(ctx, answer.retryAfter, cardRetries-*retries) {
			*retries--
			continue
		}
		refused := answer.status == http.StatusUnauthorized || answer.status == http.StatusForbidden
		switch {
		case (answer.status == http.StatusBadRequest || answer.status == http.StatusNotAcceptable) && v.versioned:
			v.versioned = false
		case refused && !v.authorized && f.auth != nil && f.mode != AuthOnCardNever:
			v.authorized = true
		case answer.status == http.StatusUnauthorized && answer.authorized && !renewed && f.auth.Refresh(ctx):
			renewed = true
		default:
			cached = f.settle(c, v, answer, last, &attempt)
			find.attempts = append(find.attempts, attempt)
			return cached, answer.hopeless()
		}
		attempt.Problem = statusText(answer.status, "")
		attempt.state = AgentNotACard
		find.attempts = append(find.attempts, attempt)
	}
}

// pause waits before a repetition; false when that would take too long.
func pause(ctx context.Context, asked time.Duration, done int) bool {
	wait := cardRetryPause << done
	wait += rand.N(wait / 2)
	if asked > maxRetryAfter {
		return false
	}
	timer := time.NewTimer(max(wait, asked))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// cardAnswer is the last answer of one request, its redirects followed.
type cardAnswer struct {
	status      int
	contentType string
	header      http.Header
	body        []byte
	retryAfter  time.Duration
	challenge   string
	// from is where the answer came from.
	from *url.URL
	// authorized says that the credential went along to the end.
	authorized bool
	// redirected says that the answer or error is that of a redirect's target.
	redirected bool
	// err is set when there was no answer, or one over the limit.
	err *Error
}

func (a *cardAnswer) retryable() bool {
	switch a.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return a.err != nil && a.err.Cause == CauseReset
}

// hopeless reports whether the agent's own host could not be reached: its
// other paths will not do better.
func (a *cardAnswer) hopeless() bool {
	return a.err != nil && !a.redirected && a.err.Cause != CauseAuth && a.err.Cause != CauseLimit && a.err.Cause != CauseProtocol
}

// get makes one request and follows its redirects, at most five, each judged
// by the address policy. Credentials and configured headers go to the
// configured origin only, and never again once a redirect has left it.
func (f *cardFetcher) get(ctx context.Context, v cardVariant, last *cachedCard) *cardAnswer {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, errHeaderTimeout)
	defer cancel()
	answer := &cardAnswer{}
	target, err := url.Parse(v.url)
	if err != nil {
		answer.err = errUnavailable("the card's address is not a URL", withoutURL(err))
		return answer
	}
	home := true
	for hop := 0; ; hop++ {
		home = home && originOf(target) == f.own
		req, problem := f.request(ctx, target, v, last, home)
		if problem != nil {
			answer.err = problem
			return answer
		}
		answer.from, answer.authorized, answer.redirected = target, home && v.authorized, hop > 0
		started := time.Now()
		var connected atomic.Bool
		trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
		resp, err := f.http.Do(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
		if err != nil {
			answer.err = netError(trip{ctx: ctx, host: hostPort(target), started: started, connected: connected.Load()}, err)
			return answer
		}
		next := redirectTarget(resp, target)
		if next == nil {
			f.read(ctx, answer, resp, started)
			return answer
		}
		discardBody(resp)
		answer.status, answer.header = resp.StatusCode, resp.Header
		if hop == maxRedirects {
			answer.redirected = true
			answer.err = errUnavailable(fmt.Sprintf("GET %s is redirected more than %d times", showURL(v.url), maxRedirects), nil)
			return answer
		}
		target = next
	}
}

// request builds the request of one hop.
func (f *cardFetcher) request(ctx context.Context, target *url.URL, v cardVariant, last *cachedCard, home bool) (*http.Request, *Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, errUnavailable(fmt.Sprintf("%s is not a valid URL", showURL(target.String())), withoutURL(err))
	}
	if home {
		for name, values := range f.headers {
			if name == "Host" && len(values) > 0 {
				req.Host = values[0]
				continue
			}
			req.Header[name] = values
		}
	}
	if req.Header["User-Agent"] == nil {
		req.Header["User-Agent"] = []string{"a2agate"}
	}
	req.Header.Set("Accept", "application/json, application/a2a+json;q=0.9, */*;q=0.1")
	if v.versioned {
		req.Header.Set("A2A-Version", string(V10))
	}
	if last != nil && last.variant == v {
		if last.etag != "" {
			req.Header.Set("If-None-Match", last.etag)
		}
		if last.lastModified != "" {
			req.Header.Set("If-Modified-Since", last.lastModified)
		}
	}
	if home && v.authorized {
		if err := f.auth.Authorize(req); err != nil {
			var coded *Error
			if errors.As(err, &coded) {
				return nil, coded
			}
			return nil, &Error{Cause: CauseAuth, Message: err.Error(), Unsent: true, Err: err}
		}
	}
	return req, nil
}

// redirectTarget is where a redirect points; nil for any other answer.
func redirectTarget(resp *http.Response, from *url.URL) *url.URL {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	next, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" || (next.Scheme != "http" && next.Scheme != "https") || next.Host == "" {
		return nil
	}
	next.User, next.Fragment, next.RawFragment = nil, "", ""
	return next
}

// discardBody reads what little a redirect says, so that its connection is kept.
func discardBody(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}

// read takes in the final answer.
func (f *cardFetcher) read(ctx context.Context, answer *cardAnswer, resp *http.Response, started time.Time) {
	defer resp.Body.Close()
	answer.status, answer.header = resp.StatusCode, resp.Header
	answer.contentType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	answer.contentType = or(answer.contentType, plainLine(resp.Header.Get("Content-Type"), 60))
	answer.challenge = plainLine(f.secrets.text(resp.Header.Get("WWW-Authenticate")), 200) // masked before it is cut
	answer.retryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	if resp.StatusCode == http.StatusNotModified {
		return
	}
	limit := f.limit
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		limit = 4 << 10 // of no use; read so that the connection is kept
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
	case err != nil:
		answer.err = netError(trip{ctx: ctx, host: hostPort(answer.from), started: started, connected: true, answered: true}, err)
	case int64(len(body)) > limit:
		answer.err = &Error{Cause: CauseLimit, HTTPStatus: resp.StatusCode,
			Message: fmt.Sprintf("the card at %s is larger than %d bytes", showURL(answer.from.String()), limit)}
	default:
		answer.body = body
	}
}

// settle judges the final answer of a candidate: a card, or why it is none.
func (f *cardFetcher) settle(c cardCandidate, v cardVariant, answer *cardAnswer, last *cachedCard, attempt *CardAttempt) *cachedCard {
	fail := func(state AgentState, cause Cause, format string, args ...any) *cachedCard {
		attempt.state, attempt.Problem = state, f.secrets.text(fmt.Sprintf(format, args...))
		attempt.err = &Error{Cause: cause, Op: "card", Message: attempt.Problem, HTTPStatus: answer.status,
			Challenge: answer.challenge, RetryAfter: answer.retryAfter}
		return nil
	}
	where := showURL(c.url)
	if answer.err != nil {
		attempt.state, attempt.Problem, attempt.err = stateOf(answer.err), answer.err.Message, answer.err
		answer.err.Op = "card"
		return nil
	}
	got := statusLine(answer)
	switch status := answer.status; {
	case status == http.StatusNotModified:
		if last == nil || last.variant != v {
			return fail(AgentNotACard, CauseProtocol, "GET %s answered 304 without having been asked for it", where)
		}
		return f.keep(*last, answer)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fail(AgentAuthRequired, CauseAuth, "GET %s answered %s%s", where, got, authRemedy(answer, f.auth != nil))
	case status == http.StatusTooManyRequests || status >= 500:
		return fail(AgentDown, CauseHTTP, "GET %s answered %s", where, got)
	case status < 200 || status > 299:
		return fail(AgentNotACard, CauseHTTP, "GET %s answered %s, not a card", where, got)
	}
	if isPage(answer) {
		return fail(AgentNotACard, CauseProtocol, "GET %s answered %s, not a card", where, got)
	}
	card, err := ParseCard(answer.body)
	if err != nil {
		var coded *Error
		errors.As(err, &coded)
		return fail(AgentInvalidCard, CauseProtocol, "the card at %s %s", where, coded.Message)
	}
	card.URL = answer.from.String()
	return f.keep(cachedCard{card: card, variant: v, legacy: c.legacy}, answer)
}

// keep stores what HTTP says about keeping the card.
func (f *cardFetcher) keep(cached cachedCard, answer *cardAnswer) *cachedCard {
	if etag := answer.header.Get("ETag"); etag != "" || answer.status != http.StatusNotModified {
		cached.etag = etag
	}
	if modified := answer.header.Get("Last-Modified"); modified != "" || answer.status != http.StatusNotModified {
		cached.lastModified = modified
	}
	if strings.TrimSpace(answer.header.Get("Vary")) == "*" {
		// Something we cannot see decides the answer: none is ever reused.
		cached.etag, cached.lastModified, cached.lifetime = "", "", 0
		return &cached
	}
	cached.lifetime = freshFor(answer.header, time.Now())
	return &cached
}

// isPage tells a login page or any other text from a JSON document that is
// merely broken.
func isPage(answer *cardAnswer) bool {
	body := bytes.TrimSpace(bytes.TrimPrefix(answer.body, []byte("\xef\xbb\xbf")))
	if strings.HasSuffix(answer.contentType, "json") {
		return len(body) > 0 && body[0] == '<'
	}
	return len(body) == 0 || body[0] != '{' && body[0] != '['
}

func stateOf(err *Error) AgentState {
	switch err.Cause {
	case CauseAuth:
		return AgentAuthRequired
	case CauseUnavailable:
		return AgentBlockedOrigin
	case CauseLimit:
		return AgentInvalidCard
	}
	return AgentDown
}

// statusLine is status, name and content type of an answer, for a reason.
func statusLine(answer *cardAnswer) string {
	line := fmt.Sprintf("%d %s", answer.status, http.StatusText(answer.status))
	line = strings.TrimSpace(line)
	if answer.contentType != "" && answer.status < 400 {
		return line + " with " + answer.contentType
	}
	if answer.contentType != "" {
		return line + " (" + answer.contentType + ")"
	}
	return line
}

func authRemedy(answer *cardAnswer, configured bool) string {
	text := ""
	if answer.challenge != "" {
		text = ", WWW-Authenticate: " + answer.challenge
	}
	switch {
	case answer.authorized:
		return text + ": the configured credential is refused"
	case configured:
		return text + ": the credential was not sent"
	}
	return text + ": set auth for this agent"
}
