package a2a

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

// AgentState is what a configured agent is to the gateway (design section 6).
// It is a closed set and safe as a metrics label.
type AgentState string

// The states of an agent.
const (
	// AgentConnecting is an agent that has not been looked for yet.
	AgentConnecting AgentState = "connecting"
	// AgentReady has a card and an interface that can be called.
	AgentReady AgentState = "ready"
	// AgentAuthRequired answered 401 or 403, and no candidate is a card.
	AgentAuthRequired AgentState = "auth_required"
	// AgentNotACard answered with something that is not a card.
	AgentNotACard AgentState = "not_a_card"
	// AgentInvalidCard answered with a card that cannot be used.
	AgentInvalidCard AgentState = "invalid_card"
	// AgentBlockedOrigin is somewhere that the policies do not let us call.
	AgentBlockedOrigin AgentState = "blocked_origin"
	// AgentNoInterface offers only what we do not speak.
	AgentNoInterface AgentState = "no_interface"
	// AgentDown cannot be reached.
	AgentDown AgentState = "down"
)

// AgentStatus is the state of an agent at one moment. It holds no secret.
type AgentStatus struct {
	State AgentState
	// Reason says in one line why the agent is not ready; "" when it is.
	Reason string
	// Since is when State began.
	Since time.Time
	// CardURL is where the card was found, the values of its query hidden.
	CardURL string
	// Version, Binding and URL are those of the interface in use.
	Version Version
	Binding Binding
	URL     string
	// Notes says what was odd about the card and what was made of it.
	Notes []string
}

// Times of an agent that are no settings.
const (
	// backoffMin and backoffMax bound the pause before an agent that is not
	// ready is looked for again; it doubles, with jitter.
	backoffMin = time.Second
	backoffMax = time.Minute
	// refreshMin is the shortest time between two refreshes of a card by Run,
	// however short-lived the agent calls it.
	refreshMin = time.Minute
	// demandGap is the least time between discoveries that callers cause. A
	// discovery that took longer is not repeated within its own duration.
	demandGap = time.Second
	// demandWait bounds how long a caller waits for an agent that was down.
	demandWait = 5 * time.Second
	// discoveryRounds bounds a whole discovery, in card timeouts.
	discoveryRounds = 2
)

// Agent is one configured agent: it finds the card, keeps its state and hands
// out the Client that fits. Its methods may be called concurrently. Run keeps
// it up to date; without Run the methods that wait look for the card when it
// is needed.
type Agent struct {
	cfg   AgentConfig
	setup agentSetup
	own   webOrigin
	// transport is setup.transport; tests put an in-memory one in its place.
	transport http.RoundTripper
	logger    *slog.Logger
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	flights   sync.WaitGroup
	wake      chan struct{} // tells Run that due has changed
	// notify is held while OnChange runs, so that it runs once at a time.
	notify sync.Mutex

	mu     sync.Mutex // guards what follows
	status AgentStatus
	// trouble is the error that callers get while there is no client.
	trouble *Error
	// cached is the last good card with its HTTP lifetime; extended replaces
	// its card for this agent's credential.
	cached   *cachedCard
	extended *Card
	client   *Client
	// options are what client was made of, for comparison.
	options  ClientOptions
	placed   placedCredential
	attempts []CardAttempt
	flight   *cardFlight
	failures int
	// checked is when the last discovery ended, took how long it ran, fresh
	// until when its card may be used without asking, due when Run discovers
	// next.
	checked time.Time
	took    time.Duration
	fresh   time.Time
	due     time.Time
	// worked says that the agent has worked during flight, asked that somebody
	// has asked for a look meanwhile.
	worked, asked bool
	// sought is the last look because nothing was at the interface, begun at
	// soughtAt.
	sought   *cardFlight
	soughtAt time.Time
	breaker  breaker
}

// cardFlight is one discovery that all who need it wait for.
type cardFlight struct {
	done   chan struct{} // closed when its outcome can be read
	over   chan struct{} // closed when OnChange has been told too
	cancel context.CancelFunc
}

// NewAgent checks the configuration and returns the agent, in the state
// connecting. It starts nothing and calls nobody; the error names everything
// that is wrong with the configuration.
func NewAgent(cfg AgentConfig) (*Agent, error) {
	setup, err := cfg.check()
	if err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, setup: setup, own: originOf(setup.place.agent), transport: setup.transport, logger: cfg.Logger, wake: make(chan struct{}, 1)}
	if cfg.Wrap != nil {
		a.transport = cfg.Wrap(a.transport)
	}
	a.cfg.Limits, a.cfg.Timeouts = cfg.Limits.withDefaults(), cfg.Timeouts.withDefaults()
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	a.logger = a.logger.With("agent", cfg.Alias)
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.status = AgentStatus{State: AgentConnecting, Reason: "the agent has not been looked for yet", Since: time.Now()}
	a.trouble = errUnavailable(a.status.Reason, nil)
	return a, nil
}

// Alias returns the configured alias.
func (a *Agent) Alias() string { return a.cfg.Alias }

// Card returns the last good card, or nil before there was one. Where the
// agent shows its credential's owner an extended card, that is the one.
func (a *Agent) Card() *Card {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cardLocked()
}

func (a *Agent) cardLocked() *Card {
	switch {
	case a.extended != nil:
		return a.extended
	case a.cached != nil:
		return a.cached.card
	}
	return nil
}

// Status returns the state at this moment.
func (a *Agent) Status() AgentStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	status := a.status
	if a.client != nil {
		chosen := a.client.Chosen()
		status.Version, status.Binding, status.URL = chosen.Version, chosen.Binding, showURL(chosen.URL)
	}
	status.Notes = slices.Clone(status.Notes)
	return status
}

// Attempts returns the requests of the last discovery, for diagnosis.
func (a *Agent) Attempts() []CardAttempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.attempts)
}

// FetchCard returns the card, fetching it where the last one is no longer
// fresh. Concurrent callers share one discovery. When it fails, the last good
// card is returned; without one the error is an *Error with the reason.
func (a *Agent) FetchCard(ctx context.Context) (*Card, error) {
	a.mu.Lock()
	if a.cached != nil && time.Now().Before(a.fresh) {
		defer a.mu.Unlock()
		return a.cardLocked(), nil
	}
	f := a.demandLocked()
	if a.cached != nil && a.failures > 0 {
		f = nil // the endpoint is in trouble: nobody waits while there is a card
	}
	a.mu.Unlock()
	if f != nil {
		if err := a.await(ctx, f, a.patience()); err != nil && a.Card() == nil {
			return nil, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if card := a.cardLocked(); card != nil {
		return card, nil
	}
	return nil, a.troubleLocked("card")
}

// Client returns the client for the agent's interfaces: the same one until
// they change. It waits for the first discovery, within ctx. An agent that was
// down is looked for once more, where the last attempt is not too recent. One
// that has been reached before is not waited for: of its callers one at a time
// gets the client, to see whether it is back, and the others are told at once
// since when it has been down.
func (a *Agent) Client(ctx context.Context) (*Client, error) {
	a.mu.Lock()
	client := a.client
	if client != nil && a.breaker.open(time.Now(), a.cfg.Timeouts.Dial+trialGap) {
		defer a.mu.Unlock()
		return nil, a.downLocked()
	}
	var f *cardFlight
	if a.status.State == AgentDown || client == nil && !(a.cached != nil && time.Now().Before(a.fresh)) {
		f = a.demandLocked()
	}
	a.mu.Unlock()
	if client != nil {
		return client, nil
	}
	if f != nil {
		if err := a.await(ctx, f, a.patience()); err != nil {
			return nil, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		return a.client, nil
	}
	return nil, a.troubleLocked("connect")
}

// Upstream is Client as the interface that a Follower takes.
func (a *Agent) Upstream(ctx context.Context) (Upstream, error) {
	client, err := a.Client(ctx)
	if err != nil {
		return nil, err // not client: a nil pointer inside it would not compare to nil
	}
	return client, nil
}

// patience is how long a caller waits for a discovery: the first one may take
// its time, a repeated one not.
func (a *Agent) patience() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status.State == AgentConnecting {
		return discoveryRounds*a.cfg.Timeouts.Header + time.Second
	}
	return demandWait
}

// await waits for a flight. Running out of patience is no error: the state of
// before then stands.
func (a *Agent) await(ctx context.Context, f *cardFlight, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
	case <-ctx.Done():
		e := contextError(trip{ctx: ctx, host: a.own.authority(), started: time.Now()}, ctx.Err())
		e.Agent, e.Op, e.Unsent = a.cfg.Alias, "card", true
		if e.Cause == CauseTimeout {
			e.Message = "the agent's card did not arrive in time"
		}
		return e
	}
	return nil
}

// troubleLocked is a copy of the current trouble for one caller; needs mu.
func (a *Agent) troubleLocked(op string) *Error {
	e := *a.trouble
	e.Agent, e.Op, e.Unsent = a.cfg.Alias, op, true
	if time.Since(a.status.Since) >= trialGap { // else it is what the caller has just seen happen
		e.Message = a.sinceLocked(e.Message)
	}
	return &e
}

// ReportDown tells the agent that a call could not connect to it. The agent
// does so itself for the calls of its own Client.
func (a *Agent) ReportDown(reason string) {
	a.mu.Lock()
	if a.status.State != AgentReady {
		a.mu.Unlock()
		return
	}
	a.setStateLocked(AgentDown, reason)
	a.failures = 1
	a.due = time.Now().Add(a.backoffLocked())
	notes := a.status.Notes
	a.mu.Unlock()
	a.changed(AgentReady, notes)
}

// ReportUp tells the agent that a call has reached it.
func (a *Agent) ReportUp() {
	a.mu.Lock()
	if a.status.State != AgentDown || a.client == nil {
		a.mu.Unlock()
		return
	}
	a.setStateLocked(AgentReady, "")
	a.failures = 0
	notes := a.status.Notes
	a.mu.Unlock()
	a.changed(AgentDown, notes)
}

// observe watches the agent's own calls.
func (a *Agent) observe(x Exchange) {
	a.mu.Lock()
	a.breaker.learn(x, time.Now())
	a.mu.Unlock()
	switch {
	case x.Status > 0:
		a.ReportUp()
	case x.Cause == CauseDial || x.Cause == CauseDNS || x.Cause == CauseTLS:
		a.ReportDown("the last call could not connect to " + a.callHost())
	}
	if x.works() {
		a.revisit()
	}
	if a.cfg.Observe != nil {
		a.cfg.Observe(x)
	}
}

func (a *Agent) callHost() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client == nil {
		return a.own.authority()
	}
	return showURL(a.client.Chosen().URL)
}

// Close ends a discovery under way, waits for it, and releases the agent's
// idle connections; calls under way finish and their connections close then.
func (a *Agent) Close() {
	a.mu.Lock() // no discovery starts between this and the wait
	a.cancel()
	a.mu.Unlock()
	a.flights.Wait()
	a.setup.transport.CloseIdleConnections()
}
