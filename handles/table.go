package handles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// The times of a Table that Options leaves at zero.
const (
	DefaultRunningTTL = 24 * time.Hour
	DefaultStateTTL   = 10 * time.Minute
)

const (
	// sweepEvery is how often Run sweeps, at most; short TTLs sweep more often.
	sweepEvery = 15 * time.Second
	// lease is how long an acquired handle stays taken when its gateway dies:
	// longer than the longest call (300 s).
	lease = 6 * time.Minute
	// lockWait bounds the time to ask a shared store for a lock.
	lockWait = 5 * time.Second
	// swapTries bounds how often Update starts again after other gateways
	// were quicker.
	swapTries = 32
)

// Options is what a Table is made of.
type Options struct {
	// TTL is how long a handle works after its last use, or after its task
	// has settled. It must be positive.
	TTL time.Duration
	// RunningTTL is how long the handle of a task that works or waits lives
	// after its last change, at least. 0 is DefaultRunningTTL.
	RunningTTL time.Duration
	// StateTTL is how long a state lives for which no time is given. 0 is
	// DefaultStateTTL. States never live longer through use.
	StateTTL time.Duration
	// Max bounds the entries of the Memory that is made when Store is nil;
	// 0 is DefaultMax.
	Max int
	// Store keeps the entries; nil makes a Memory. The Table owns it: Close
	// closes it.
	Store Store
	// Logger is told of sweeps that failed; nil discards.
	Logger *slog.Logger
}

// Table gives out handles and looks them up. Its methods may be called
// concurrently. Errors are *Error, or the error of the context.
type Table struct {
	ttl, runningTTL, stateTTL time.Duration

	store Store
	log   *slog.Logger
	// updating serialises Update on a handle, busy is what Acquire has given
	// out. Both are for this process; the store sees to the others.
	updating, busy keyedLocks
	// room is held by a Reservation while it changes its place for a task, and
	// shared by all others that make entries.
	room sync.RWMutex
}

// New returns a table. It refuses a TTL that is not positive: a handle that is
// dead on arrival helps nobody.
func New(o Options) (*Table, error) {
	if o.TTL <= 0 {
		return nil, fmt.Errorf("handles: ttl %s is not positive; give how long a handle lives after its last use, such as 15m", o.TTL)
	}
	if o.RunningTTL < 0 || o.StateTTL < 0 || o.Max < 0 {
		return nil, fmt.Errorf("handles: runningTTL %s, stateTTL %s and max %d must not be negative", o.RunningTTL, o.StateTTL, o.Max)
	}
	t := &Table{ttl: o.TTL, runningTTL: o.RunningTTL, stateTTL: o.StateTTL, store: o.Store, log: o.Logger}
	if t.runningTTL == 0 {
		t.runningTTL = DefaultRunningTTL
	}
	if t.stateTTL == 0 {
		t.stateTTL = DefaultStateTTL
	}
	if t.store == nil {
		t.store = NewMemory(Limits{Max: o.Max, Idle: o.TTL})
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	return t, nil
}

// TTL is how long a handle works after its last use.
func (t *Table) TTL() time.Duration { return t.ttl }

// expiry returns when an entry expires that is used or changed now.
func (t *Table) expiry(running bool, now time.Time) time.Time {
	if running {
		return now.Add(max(t.ttl, t.runningTTL))
	}
	return now.Add(t.ttl)
}

// Context returns the handle of an agent's context: the same one as before
// while that lives, else a new one. An empty contextID names no context and
// is never shared: the answer is the zero Entry.
func (t *Table) Context(ctx context.Context, principal, agent, contextID string) (Entry, error) {
	if contextID == "" {
		return Entry{}, nil
	}
	return t.share(ctx, Entry{Kind: KindContext, Principal: principal, Agent: agent, ContextID: contextID})
}

// Task returns the handle of an agent's task: the same one as before while
// that lives, with Running and ContextID brought up to date, else a new one.
// An empty taskID names no task and is never shared: the answer is the zero
// Entry. An empty contextID leaves a known one alone.
func (t *Table) Task(ctx context.Context, principal, agent, contextID, taskID string, running bool) (Entry, error) {
	if taskID == "" {
		return Entry{}, nil
	}
	e, err := t.share(ctx, Entry{Kind: KindTask, Principal: principal, Agent: agent, ContextID: contextID, TaskID: taskID, Running: running})
	if err != nil {
		return Entry{}, err
	}
	if e.Running == running && (contextID == "" || e.ContextID == contextID) {
		return e, nil
	}
	return t.update(ctx, e.Handle, func(e *Entry) error {
		e.Running = running
		if contextID != "" {
			e.ContextID = contextID
		}
		return nil
	})
}

// share stores e under a new handle, or uses the entry that its key has.
func (t *Table) share(ctx context.Context, e Entry) (Entry, error) {
	for range swapTries {
		now := time.Now().UTC()
		e.Handle, e.Created, e.Expires = mint(e.Kind), now, t.expiry(e.Running, now)
		stored, created, err := t.create(ctx, e.key(), e)
		if err != nil {
			return Entry{}, storeFailed(e.Kind, "", err)
		}
		if created {
			return stored.clone(), nil
		}
		used, err := t.slide(ctx, stored)
		if err == nil {
			return used, nil
		}
		if !errors.Is(err, ErrExpired) { // expired just now: mint after all
			return Entry{}, err
		}
	}
	return Entry{}, contended(e.Kind, "")
}

// State stores what a caller has to give back with its answers, under a
// single-use handle for ttl; a ttl that is not positive is StateTTL.
func (t *Table) State(ctx context.Context, principal, agent string, data json.RawMessage, ttl time.Duration) (Entry, error) {
	if ttl <= 0 {
		ttl = t.stateTTL
	}
	now := time.Now().UTC()
	e := Entry{
		Handle: mint(KindState), Kind: KindState, Principal: principal, Agent: agent,
		Created: now, Expires: now.Add(ttl), Data: data,
	}
	stored, _, err := t.create(ctx, Key{}, e.clone())
	if err != nil {
		return Entry{}, storeFailed(KindState, "", err)
	}
	return stored.clone(), nil
}

// Lookup returns what a handle of this principal stands for, and lets it live
// on for TTL at least (a state keeps its time).
func (t *Table) Lookup(ctx context.Context, kind Kind, handle, principal string) (Entry, error) {
	e, err := t.find(ctx, kind, handle, principal)
	if err != nil {
		return Entry{}, err
	}
	return t.slide(ctx, e)
}

// Peek is Lookup without counting as a use.
func (t *Table) Peek(ctx context.Context, kind Kind, handle, principal string) (Entry, error) {
	e, err := t.find(ctx, kind, handle, principal)
	if err != nil {
		return Entry{}, err
	}
	return e.clone(), nil
}

// find checks form, kind, principal and expiry, in this order.
func (t *Table) find(ctx context.Context, kind Kind, handle, principal string) (Entry, error) {
	if err := checkForm(kind, handle); err != nil {
		return Entry{}, err
	}
	e, p, err := t.store.Get(ctx, handle)
	if err != nil {
		return Entry{}, storeFailed(kind, handle, err)
	}
	return e, judge(e, p, kind, handle, principal)
}

func checkForm(kind Kind, handle string) error {
	got, err := Parse(handle)
	if err != nil {
		return err
	}
	if got != kind {
		return wrongKind(kind, handle)
	}
	return nil
}

// judge turns what a store knows of a handle into an error, nil for a live
// entry of this principal. Somebody else's handle is unknown whatever has
// become of it.
func judge(e Entry, p Presence, kind Kind, handle, principal string) error {
	switch {
	case p == Absent || e.Principal != principal || e.Kind != kind:
		return unknown(kind, handle)
	case p == Used:
		return used(kind, handle)
	case p == Expired:
		return expired(kind, handle)
	}
	return nil
}

// slide notes a use of a live entry.
func (t *Table) slide(ctx context.Context, e Entry) (Entry, error) {
	if e.Kind == KindState {
		return e.clone(), nil
	}
	expires := time.Now().UTC().Add(t.ttl)
	ok, err := t.store.Touch(ctx, e, expires)
	if err != nil {
		return Entry{}, storeFailed(e.Kind, e.Handle, err)
	}
	if !ok {
		return Entry{}, expired(e.Kind, e.Handle)
	}
	if expires.After(e.Expires) {
		e.Expires = expires
	}
	return e.clone(), nil
}

// Take returns a state of this principal and uses it up: of many callers
// exactly one gets it, the others are told that it is used or unknown.
func (t *Table) Take(ctx context.Context, handle, principal string) (Entry, error) {
	if err := checkForm(KindState, handle); err != nil {
		return Entry{}, err
	}
	e, p, err := t.store.Take(ctx, handle, principal)
	if err != nil {
		return Entry{}, storeFailed(KindState, handle, err)
	}
	if err := judge(e, p, KindState, handle, principal); err != nil {
		return Entry{}, err
	}
	return e.clone(), nil
}

// Update changes an entry through fn, atomically: no other change to the
// entry comes between what fn reads and what it leaves. It is for the owner of
// an entry's Data and checks no principal.
//
// An error of fn changes nothing and is returned as it is. fn must be quick
// and must not call Update for the same handle; on a store that several
// gateways share it may run more than once. What it does to Handle, Kind,
// Principal, Agent, TaskID and a context's ContextID is an error. Expires is
// the table's: a running task gets RunningTTL from now, one that fn settles
// gets TTL from now, and a state keeps its time.
func (t *Table) Update(ctx context.Context, handle string, fn func(*Entry) error) error {
	_, err := t.update(ctx, handle, fn)
	return err
}

func (t *Table) update(ctx context.Context, handle string, fn func(*Entry) error) (Entry, error) {
	kind, err := Parse(handle)
	if err != nil {
		return Entry{}, err
	}
	unlock, err := t.updating.lock(ctx, handle)
	if err != nil {
		return Entry{}, err
	}
	defer unlock()
	for range swapTries {
		old, p, err := t.store.Get(ctx, handle)
		if err != nil {
			return Entry{}, storeFailed(kind, handle, err)
		}
		if err := judge(old, p, kind, handle, old.Principal); err != nil {
			return Entry{}, err
		}
		e := old.clone()
		if err := fn(&e); err != nil {
			return Entry{}, err
		}
		if !sameIdentity(old, e) {
			return Entry{}, fmt.Errorf("handles: an update of %s changed what it stands for", handle)
		}
		t.renew(&e, old)
		ok, err := t.store.Swap(ctx, old.Rev, e.clone())
		if err != nil {
			return Entry{}, storeFailed(kind, handle, err)
		}
		if ok {
			return e, nil
		}
	}
	return Entry{}, contended(kind, handle)
}

// contended is the error after swapTries.
func contended(kind Kind, handle string) error {
	return storeFailed(kind, handle, errors.New("handles: too many changes at once to one entry"))
}

func sameIdentity(a, b Entry) bool {
	return a.Handle == b.Handle && a.Kind == b.Kind && a.Principal == b.Principal &&
		a.Agent == b.Agent && a.TaskID == b.TaskID && a.Created.Equal(b.Created) &&
		(a.ContextID == b.ContextID || a.Kind == KindTask)
}

// renew sets the table's own fields of a changed entry.
func (t *Table) renew(e *Entry, old Entry) {
	e.Rev, e.Expires = old.Rev+1, old.Expires
	if e.Kind == KindState {
		e.Running = false
		return
	}
	at := t.expiry(e.Running, time.Now().UTC())
	settled := old.Running && !e.Running
	if settled || at.After(e.Expires) {
		e.Expires = at
	}
}

// Settle says that a task neither works nor waits any longer: its handle lives
// TTL from now on. Settling a settled task is a use like any other.
func (t *Table) Settle(ctx context.Context, handle string) error {
	return t.SetRunning(ctx, handle, false)
}

// SetRunning says whether a task works or waits.
func (t *Table) SetRunning(ctx context.Context, handle string, running bool) error {
	return t.Update(ctx, handle, func(e *Entry) error {
		e.Running = running
		return nil
	})
}

// Delete forgets a handle. One that does not exist is no error.
func (t *Table) Delete(ctx context.Context, handle string) error {
	kind, err := Parse(handle)
	if err != nil {
		return err
	}
	unlock, err := t.updating.lock(ctx, handle)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.store.Delete(ctx, handle); err != nil {
		return storeFailed(kind, handle, err)
	}
	return nil
}

// Each calls fn with every live entry of a kind, in no order, until fn returns
// false; it is how the owner of a kind finds its entries after a restart.
// Entries that come or go meanwhile may be left out, and a Reservation, which
// stands for no task yet, is. fn may call the table.
func (t *Table) Each(ctx context.Context, kind Kind, fn func(Entry) bool) error {
	err := t.store.Range(ctx, func(e Entry) bool { return e.Kind != kind || e.reserved() || fn(e.clone()) })
	if err != nil {
		return storeFailed(kind, "", err)
	}
	return nil
}

// Len is the number of entries held, those not yet swept included.
func (t *Table) Len(ctx context.Context) (int, error) {
	n, err := t.store.Len(ctx)
	if err != nil {
		return 0, storeFailed("", "", err)
	}
	return n, nil
}

// Acquire takes a handle for an exchange that must happen once at a time, such
// as answering a question: of two callers one gets ok, the other is told that
// it is busy. The handle is not looked up. release must be called, and may be
// called once only. With a shared store all gateways see the same, a lock ends
// after some minutes when its gateway died, and a store that fails says busy.
func (t *Table) Acquire(handle string) (release func(), ok bool) {
	local, ok := t.busy.try(handle)
	if !ok {
		return nil, false
	}
	locker, shared := t.store.(Locker)
	if !shared {
		return local, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	unlock, ok, err := locker.Lock(ctx, handle, lease)
	if err != nil {
		t.log.Warn("handle store cannot lock", "error", err)
	}
	if err != nil || !ok {
		local()
		return nil, false
	}
	return func() { unlock(); local() }, true
}

// Run drops what has expired, and lets the store write what it put off, until
// ctx ends; then it returns nil. A table works without it, but keeps the dead
// until their room is needed. Whoever owns the table runs it, and waits for it
// before Close.
func (t *Table) Run(ctx context.Context) error {
	tick := time.NewTicker(min(sweepEvery, max(t.ttl/4, 10*time.Millisecond)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if _, err := t.store.Sweep(ctx); err != nil && ctx.Err() == nil {
				t.log.Warn("handle store cannot be swept", "error", err)
			}
		}
	}
}

// Close closes the store. Nothing may be called afterwards.
func (t *Table) Close() error {
	if err := t.store.Close(); err != nil {
		return storeFailed("", "", err)
	}
	return nil
}
