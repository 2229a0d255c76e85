package credential

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Times of the token cache. They are not settings: each bounds a risk that no
// deployment wants larger.
const (
	// earlyRefresh is how long before its end a token is renewed; half the
	// lifetime where that is shorter, so that a short-lived token is not
	// fetched for every call.
	earlyRefresh = 60 * time.Second
	// fetchTimeout bounds one fetch.
	fetchTimeout = 30 * time.Second
	// renewQuiet is how long after a renewal that followed a 401 no further
	// 401 drops the token: late answers to requests with the old token must
	// not throw away the new one, and an agent that refuses every token must
	// not make the gateway hammer the token endpoint.
	renewQuiet = 5 * time.Second
)

// token is what a source hands out.
type token struct {
	value Secret
	// scheme is the word before the token in the Authorization header.
	scheme string
	// expires is zero when the source did not say: valid until a 401.
	expires time.Time
}

// tokenCache stands in front of a token source. One fetch runs at a time;
// those who wait for it can be cancelled each by its own context; a failure is
// remembered for a while, so that a broken source is not hammered. It starts
// no goroutine: whoever holds turn fetches in its own context.
type tokenCache struct {
	// fetch gets a new token; called by the holder of turn only.
	fetch func(ctx context.Context) (token, error)
	// negativeMin and negativeMax bound how long a failure is remembered; it
	// doubles with each failure in a row.
	negativeMin, negativeMax time.Duration
	// turn holds one element while nobody fetches.
	turn chan struct{}

	mu        sync.Mutex // guards what follows
	current   token
	have      bool
	last      Secret    // of current, kept when a 401 drops it
	refreshAt time.Time // zero: no need
	dropped   bool      // a 401 dropped the last token
	renewed   time.Time // when a fetch last followed a drop
	failure   error
	failUntil time.Time
	failures  int
}

func newTokenCache(fetch func(context.Context) (token, error), negativeMin, negativeMax time.Duration) *tokenCache {
	c := &tokenCache{fetch: fetch, negativeMin: negativeMin, negativeMax: negativeMax, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// get returns a usable token: the cached one, or a new one.
func (c *tokenCache) get(ctx context.Context) (token, error) {
	if t, err, ok := c.cached(); ok {
		return t, err
	}
	select {
	case <-c.turn:
	default:
		// Somebody fetches. A token that is merely due for renewal still
		// serves; without one there is nothing but to wait.
		if t, ok := c.stillValid(); ok {
			return t, nil
		}
		select {
		case <-c.turn:
		case <-ctx.Done():
			return token{}, fmt.Errorf("gave up waiting for a token: %w", ctx.Err())
		}
	}
	defer func() { c.turn <- struct{}{} }()
	if t, err, ok := c.cached(); ok {
		return t, err
	}
	bounded, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	fresh, err := c.fetch(bounded)
	if err != nil && ctx.Err() != nil {
		// The caller went away: that says nothing about the source.
		return token{}, fmt.Errorf("gave up fetching a token: %w", ctx.Err())
	}
	return c.settle(fresh, err)
}

// cached returns what can be answered without a fetch.
func (c *tokenCache) cached() (token, error, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.have && (c.refreshAt.IsZero() || now.Before(c.refreshAt)) {
		return c.current, nil, true
	}
	if now.Before(c.failUntil) {
		if c.valid(now) {
			return c.current, nil, true
		}
		return token{}, c.failure, true
	}
	return token{}, nil, false
}

// latest is the token that was handed out last, also one that a 401 has
// dropped; empty before the first.
func (c *tokenCache) latest() Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// stillValid returns the current token if it has not ended yet.
func (c *tokenCache) stillValid() (token, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, c.valid(time.Now())
}

// valid reports whether the current token has not ended yet; needs mu.
func (c *tokenCache) valid(now time.Time) bool {
	return c.have && (c.current.expires.IsZero() || now.Before(c.current.expires))
}

// settle stores the outcome of a fetch. A token that is due for renewal but
// still valid outlives a failed renewal.
func (c *tokenCache) settle(fresh token, err error) (token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if err != nil {
		c.failure = err
		c.failUntil = now.Add(min(c.negativeMin<<min(c.failures, 8), c.negativeMax))
		c.failures++
		if c.valid(now) {
			return c.current, nil
		}
		return token{}, err
	}
	c.failure, c.failUntil, c.failures = nil, time.Time{}, 0
	c.current, c.have, c.refreshAt, c.last = fresh, true, time.Time{}, fresh.value
	if !fresh.expires.IsZero() {
		c.refreshAt = fresh.expires.Add(-min(earlyRefresh, fresh.expires.Sub(now)/2))
	}
	if c.dropped {
		c.dropped, c.renewed = false, now
	}
	return fresh, nil
}

// drop forgets the token after a 401, and reports whether another try can
// help: with a token that is yet to be fetched, or with one that another call
// has renewed in the meantime.
func (c *tokenCache) drop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case now.Before(c.failUntil):
		return false
	case !c.have:
		return c.dropped
	case !c.renewed.IsZero() && now.Before(c.renewed.Add(renewQuiet)):
		return true
	}
	c.current, c.have, c.refreshAt = token{}, false, time.Time{}
	c.dropped = true
	return true
}
