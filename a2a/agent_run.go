package a2a

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Run keeps the agent up to date until ctx ends, and then returns nil: it
// looks for the card at once, again with backoff while the agent is not
// ready, and refreshes it when its lifetime is over. It is called once.
func (a *Agent) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.ctx.Done():
			return nil
		case <-a.wake:
		case <-timer.C:
		}
		a.mu.Lock()
		wait := time.Until(a.due)
		var f *cardFlight
		if wait <= 0 {
			f = a.startLocked()
		}
		a.mu.Unlock()
		if f != nil {
			select {
			case <-f.over:
			case <-ctx.Done():
				f.cancel()
				<-f.over
				return nil
			}
			a.mu.Lock()
			wait = time.Until(a.due)
			a.mu.Unlock()
		}
		timer.Reset(max(wait, 0))
	}
}

// demandLocked returns the flight that a caller may wait for: one under way,
// or a new one unless the last has ended too recently. Needs mu.
func (a *Agent) demandLocked() *cardFlight {
	if a.flight != nil {
		return a.flight
	}
	if !a.checked.IsZero() && time.Since(a.checked) < max(demandGap, a.took) {
		return nil
	}
	return a.startLocked()
}

// startLocked starts a discovery unless one is under way; nil after Close.
// Needs mu. The discovery's goroutine belongs to the agent: Close waits for it.
func (a *Agent) startLocked() *cardFlight {
	if a.flight != nil || a.ctx.Err() != nil {
		return a.flight
	}
	ctx, cancel := context.WithTimeoutCause(a.ctx, discoveryRounds*a.cfg.Timeouts.Header, errHeaderTimeout)
	f := &cardFlight{done: make(chan struct{}), over: make(chan struct{}), cancel: cancel}
	a.flight = f
	last := a.cached
	a.flights.Go(func() {
		defer close(f.over)
		defer cancel()
		started := time.Now()
		found := a.discover(ctx, last)
		a.settle(f, found, time.Since(started))
	})
	return f
}

// discovery is what one look for the agent has brought.
type discovery struct {
	find     *cardFind
	extended *Card
	choice   choice
	placed   placedCredential
	// options are what the client is to be made of; no Interfaces when none
	// is usable. state and reason are then why.
	options ClientOptions
	state   AgentState
	reason  string
	notes   []string
}

// discover looks for the card and works out what it means. It changes nothing
// of the agent.
func (a *Agent) discover(ctx context.Context, last *cachedCard) *discovery {
	fetcher := cardFetcher{
		place: a.setup.place, own: a.own,
		http: &http.Client{Transport: a.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		mode: a.cfg.AuthOnCard, headers: a.cfg.canonicalHeaders(), limit: a.cfg.Limits.CardBytes, timeout: a.cfg.Timeouts.Header,
	}
	a.mu.Lock()
	placed := a.placed
	a.mu.Unlock()
	if auth := placed.auth; auth != nil {
		fetcher.auth = originBound{auth, a.own}
	} else if a.cfg.Authorizer != nil {
		fetcher.auth = originBound{a.cfg.Authorizer, a.own}
	}
	fetcher.secrets = secretsOf(fetcher.auth, fetcher.headers)
	d := &discovery{find: fetcher.find(ctx, last), placed: placed}
	if d.find.cached == nil {
		return d
	}
	card := d.find.cached.card
	d.read(a, card)
	if card.ExtendedCard && a.cfg.credentialed() && len(d.options.Interfaces) > 0 && !d.options.Interfaces[0].Anonymous {
		a.extend(ctx, d)
	}
	return d
}

// read works out interfaces, credential and extensions of a card.
func (d *discovery) read(a *Agent, card *Card) {
	if a.cfg.Authorizer != nil {
		if key := placementFrom(card).key(); d.placed.auth == nil || d.placed.key != key {
			var notes []string
			d.placed.key = key
			d.placed.auth, notes = a.setup.placeCredential(a.cfg.Authorizer, card, &http.Client{Transport: a.transport})
			d.notes = append(d.notes, notes...)
		}
	}
	rules := interfaceRules{
		configured: a.setup.place.agent, call: a.setup.place.call, fetched: fetchedFrom(card, a.setup.place), policy: a.cfg.URLPolicy, allow: a.setup.allow,
		protocol: a.cfg.Protocol, binding: a.cfg.Binding, credentialed: a.cfg.Authorizer != nil || len(a.cfg.Headers) > 0,
	}
	d.choice = chooseInterfaces(card, rules)
	d.options = a.clientOptions(card, d)
	switch missing := unspokenExtension(card, a.cfg.Extensions); {
	case missing != "":
		d.options.Interfaces = nil
		d.state, d.reason = AgentNoInterface, fmt.Sprintf("the agent requires the extension %q, which the gateway does not speak", plainLine(missing, 200))
	case len(d.choice.usable) > 0:
		d.state, d.reason = AgentReady, ""
	case len(d.choice.blocked) > 0:
		d.state, d.reason = AgentBlockedOrigin, d.choice.reason()
	default:
		d.state, d.reason = AgentNoInterface, d.choice.reason()
	}
}

func (a *Agent) clientOptions(card *Card, d *discovery) ClientOptions {
	o := ClientOptions{
		Alias: a.cfg.Alias, Interfaces: d.choice.usable, FallbackURL: a.setup.place.call,
		HTTP:    &http.Client{Transport: a.transport},
		Headers: a.cfg.canonicalHeaders(), Streaming: card.Streaming,
		EmptyStreamFallback: a.cfg.EmptyStreamFallback, Limits: a.cfg.Limits, Timeouts: a.cfg.Timeouts,
		MaxConcurrent: a.cfg.MaxConcurrent, Observe: a.observe, Start: a.cfg.Start, elsewhere: a.elsewhere,
	}
	if d.placed.auth != nil {
		o.Auth = originBound{d.placed.auth, a.own}
	}
	for _, e := range card.Extensions {
		if slices.Contains(a.cfg.Extensions, e.URI) && !slices.Contains(o.Extensions, e.URI) {
			o.Extensions = append(o.Extensions, e.URI)
		}
	}
	return o
}

// unspokenExtension is the first extension that the card requires and we do
// not speak (specification 4.6).
func unspokenExtension(card *Card, spoken []string) string {
	for _, e := range card.Extensions {
		if e.Required && !slices.Contains(spoken, e.URI) {
			return e.URI
		}
	}
	return ""
}

// extend fetches the card that the agent shows to this credential
// (specification 3.1.11) and works with it in place of the public one. Its
// failure leaves the public card.
func (a *Agent) extend(ctx context.Context, d *discovery) {
	options := d.options
	options.Observe, options.elsewhere = nil, nil // it is part of a look at the card
	client, err := NewClient(options)
	if err != nil {
		return
	}
	raw, err := client.ExtendedCard(ctx)
	var card *Card
	if err == nil {
		card, err = ParseCard(raw)
	}
	if err != nil {
		d.notes = append(d.notes, "the extended card could not be had: "+plainLine(err.Error(), 200))
		if card = a.lastExtended(d.find.cached.card); card == nil {
			return
		}
	}
	if card.URL == "" {
		card.URL = d.find.cached.card.URL
	}
	public := *d
	if d.read(a, card); len(d.options.Interfaces) == 0 && len(public.options.Interfaces) > 0 {
		*d = public
		d.notes = append(d.notes, "the interfaces of the public card are used: the extended card has none that can be")
	}
	d.extended = card
}

// lastExtended is the extended card had before, as long as the public one has
// not changed.
func (a *Agent) lastExtended(public *Card) *Card {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cached == nil || !bytes.Equal(a.cached.card.Raw, public.Raw) {
		return nil
	}
	return a.extended
}

// fetchedFrom is the address that relative urls of a card are joined to: that
// of the card, unless a redirect has led to it on another origin.
func fetchedFrom(card *Card, place cardPlace) *url.URL {
	u, err := url.Parse(card.URL)
	if err != nil {
		return place.agent
	}
	o, own := originOf(u), originOf(place.agent)
	if o.same(own) || o.host == own.host && o.scheme == "https" {
		return u
	}
	return place.agent
}

// settle takes over what a discovery brought and tells those who wait.
func (a *Agent) settle(f *cardFlight, d *discovery, took time.Duration) {
	a.mu.Lock()
	before, cardBefore := a.status, a.cardLocked()
	a.flight = nil
	switch {
	case d.find.canceled:
		a.due = time.Now().Add(backoffMin)
	case d.find.cached == nil:
		a.failedLocked(d, took)
	default:
		a.foundLocked(d, took)
	}
	if a.worked {
		a.worked = false
		a.revisitLocked()
	}
	if a.asked {
		a.asked, a.due = false, time.Now()
	}
	changed := a.differsLocked(before, cardBefore)
	a.mu.Unlock()
	a.poke()
	close(f.done)
	if changed {
		a.changed(before.State, before.Notes)
	}
}

// failedLocked notes a discovery without a card. An agent that was found
// before keeps its card and client: calls may still reach it. Only one that
// cannot be connected to is down.
func (a *Agent) failedLocked(d *discovery, took time.Duration) {
	worst := d.find.worst()
	a.checked, a.took, a.attempts = time.Now(), took, d.find.attempts
	a.failures++
	a.due = a.checked.Add(max(a.backoffLocked(), min(d.find.retryAfter, maxFresh)))
	known := a.cached != nil
	if known && !(worst.state == AgentDown && worst.Status == 0) {
		stale := "the card could not be refreshed, the last good one is used: " + worst.Problem
		a.status.Notes = append(slices.DeleteFunc(slices.Clone(a.status.Notes), isStaleNote), stale)
		return
	}
	a.trouble = worst.err
	a.setStateLocked(worst.state, worst.Problem)
}

func isStaleNote(note string) bool {
	return strings.HasPrefix(note, "the card could not be refreshed")
}

// foundLocked takes over a card.
func (a *Agent) foundLocked(d *discovery, took time.Duration) {
	now := time.Now()
	a.checked, a.took, a.attempts, a.failures = now, took, d.find.attempts, 0
	a.cached, a.extended, a.placed = d.find.cached, d.extended, d.placed
	a.fresh = now.Add(a.cached.lifetime)
	refresh := max(a.cached.lifetime, refreshMin)
	if d.state != AgentReady {
		refresh = refreshMin
	}
	a.due = now.Add(refresh + rand.N(refresh/10))
	a.replaceClientLocked(d)
	if d.state != AgentReady {
		a.trouble = errUnavailable(d.reason, nil)
	}
	a.status.CardURL = showURL(a.cached.card.URL)
	a.status.Notes = a.notes(d)
	a.setStateLocked(d.state, d.reason)
}

// replaceClientLocked makes a new client where the options differ in what a
// client is made of; the old one finishes its calls.
func (a *Agent) replaceClientLocked(d *discovery) {
	if len(d.options.Interfaces) == 0 {
		a.client, a.options = nil, ClientOptions{}
		return
	}
	same := a.client != nil && slices.Equal(a.options.Interfaces, d.options.Interfaces) &&
		slices.Equal(a.options.Extensions, d.options.Extensions) &&
		a.options.Streaming == d.options.Streaming && sameAuth(a.options.Auth, d.options.Auth)
	if same {
		return
	}
	client, err := NewClient(d.options)
	if err != nil {
		d.state, d.reason = AgentNoInterface, "the card's interface cannot be used: "+plainLine(err.Error(), 200)
		a.client, a.options = nil, ClientOptions{}
		return
	}
	a.client, a.options = client, d.options
}

// sameAuth reports whether two placed credentials are one and the same. They
// are told by identity: what they hold changes under calls in flight.
func sameAuth(a, b Authorizer) bool {
	x, placed := a.(originBound)
	y, alsoPlaced := b.(originBound)
	if !placed || !alsoPlaced {
		return a == nil && b == nil
	}
	return x.own == y.own && reflect.ValueOf(x.Authorizer).Comparable() && reflect.ValueOf(y.Authorizer).Comparable() &&
		x.Authorizer == y.Authorizer
}

// notes are all that was odd about the card and the choice made of it.
func (a *Agent) notes(d *discovery) []string {
	card := d.find.cached.card
	var out []string
	if d.find.cached.legacy {
		out = append(out, "the card stands at the legacy path "+wellKnownLegacyCard+"; newer clients look at "+wellKnownCard)
	}
	if d.extended != nil {
		card = d.extended
	}
	out = append(out, card.Notes...)
	out = append(out, d.choice.notes...)
	if len(d.choice.usable) > 0 {
		out = append(out, d.choice.blocked...)
	}
	if demand := a.cfg.unmetDemand(card); demand != "" {
		out = append(out, demand)
	}
	return append(out, d.notes...)
}

func (a *Agent) setStateLocked(state AgentState, reason string) {
	if a.status.State != state {
		a.status.Since = time.Now()
	}
	a.status.State, a.status.Reason = state, reason
}

// backoffLocked is the pause after so many failures in a row.
func (a *Agent) backoffLocked() time.Duration {
	pause := min(backoffMin<<min(max(a.failures-1, 0), 16), backoffMax)
	return pause*4/5 + rand.N(pause*2/5)
}

// poke makes Run read due again.
func (a *Agent) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// differsLocked reports whether what others see has changed.
func (a *Agent) differsLocked(before AgentStatus, cardBefore *Card) bool {
	now, card := a.status, a.cardLocked()
	if now.State != before.State || now.Reason != before.Reason || !slices.Equal(now.Notes, before.Notes) {
		return true
	}
	if (card == nil) != (cardBefore == nil) {
		return true
	}
	return card != nil && card != cardBefore && !bytes.Equal(card.Raw, cardBefore.Raw)
}

// changed logs a change and tells OnChange. from is the state before, notes
// the notes that have been logged already.
func (a *Agent) changed(from AgentState, notes []string) {
	a.poke()
	status := a.Status()
	switch {
	case status.State == from:
	case status.State == AgentReady:
		a.logger.Info("agent ready", "card", status.CardURL, "url", status.URL, "version", status.Version, "binding", status.Binding)
	default:
		a.logger.Warn("agent not ready", "state", status.State, "reason", status.Reason)
	}
	for _, note := range status.Notes {
		if !slices.Contains(notes, note) {
			a.logger.Warn("agent card", "note", note)
		}
	}
	if a.cfg.OnChange != nil {
		a.notify.Lock()
		defer a.notify.Unlock()
		a.cfg.OnChange()
	}
}
