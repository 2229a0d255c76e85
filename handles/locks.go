package handles

import (
	"context"
	"sync"
)

// keyedLocks is one lock a name. Names without a holder or waiter cost
// nothing. The zero value is ready.
type keyedLocks struct {
	mu   sync.Mutex // guards held; never held while waiting
	held map[string]*keyedLock
}

type keyedLock struct {
	sem  chan struct{} // has the one token while the lock is taken
	refs int           // holders and waiters; guarded by keyedLocks.mu
}

// lock waits for the lock of name until ctx ends.
func (l *keyedLocks) lock(ctx context.Context, name string) (unlock func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[string]*keyedLock)
	}
	k := l.held[name]
	if k == nil {
		k = &keyedLock{sem: make(chan struct{}, 1)}
		l.held[name] = k
	}
	k.refs++
	l.mu.Unlock()

	select {
	case k.sem <- struct{}{}:
		return func() { <-k.sem; l.drop(name, k) }, nil
	default:
	}
	select {
	case k.sem <- struct{}{}:
		return func() { <-k.sem; l.drop(name, k) }, nil
	case <-ctx.Done():
		l.drop(name, k)
		return nil, ctx.Err()
	}
}

// try takes the lock of name if it is free.
func (l *keyedLocks) try(name string) (unlock func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[string]*keyedLock)
	}
	if l.held[name] != nil {
		return nil, false
	}
	k := &keyedLock{sem: make(chan struct{}, 1), refs: 1}
	k.sem <- struct{}{}
	l.held[name] = k
	return func() { <-k.sem; l.drop(name, k) }, true
}

func (l *keyedLocks) drop(name string, k *keyedLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.refs--; k.refs == 0 {
		delete(l.held, name)
	}
}
