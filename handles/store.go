package handles

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Presence says what a Store knows of a handle.
type Presence uint8

// The presences. A Store may forget that a handle has expired or was used,
// and then calls it Absent.
const (
	Absent  Presence = iota
	Live             // there, and not expired
	Expired          // was there and ran out of time
	Used             // was there and has been taken
)

// Store keeps entries. Its methods may be called concurrently, also for one
// handle, and apply no rule of the table: they check no principal except
// where they say so and never mint. Errors are the backend's own; the Table
// wraps them. An error means that nothing has changed.
//
// An Entry passed in belongs to the store afterwards; one that comes out
// shares its Data with the store and must not be changed.
type Store interface {
	// Create stores e, whose handle is new, and binds key to it, unless key
	// is bound to a live entry: then that entry is returned and created is
	// false. The zero Key binds nothing. CodeFull when there is no room.
	Create(ctx context.Context, key Key, e Entry) (stored Entry, created bool, err error)
	// Get returns an entry. When it is Expired or Used, at least Handle, Kind
	// and Principal are set.
	Get(ctx context.Context, handle string) (Entry, Presence, error)
	// Touch notes a use and lets the entry live until expires at least; it
	// never shortens a life. ok is false when there is no live entry.
	Touch(ctx context.Context, e Entry, expires time.Time) (ok bool, err error)
	// Swap replaces a live entry by e if its Rev is still rev; e has the same
	// identity and the Rev after it. ok is false when it is not.
	Swap(ctx context.Context, rev uint64, e Entry) (ok bool, err error)
	// Take removes a live entry of this principal and returns it, to exactly
	// one of several callers. Later the handle is Used for a while.
	Take(ctx context.Context, handle, principal string) (Entry, Presence, error)
	// Delete removes an entry and its key; one that is not there is no error.
	Delete(ctx context.Context, handle string) error
	// Range calls fn with every live entry until fn returns false. fn may
	// call the store. Entries that come or go meanwhile may be left out.
	Range(ctx context.Context, fn func(Entry) bool) error
	// Len is the number of entries held, those not yet swept included.
	Len(ctx context.Context) (int, error)
	// Sweep drops what has expired and writes what was put off. It returns
	// how many entries it dropped.
	Sweep(ctx context.Context) (int, error)
	// Close writes what was put off and frees the store.
	Close() error
}

// Locker is a Store that several gateways share, which therefore has to keep
// the locks of Table.Acquire too.
type Locker interface {
	// Lock takes the lock of a name for at most lease; ok is false when
	// somebody else has it.
	Lock(ctx context.Context, name string, lease time.Duration) (unlock func(), ok bool, err error)
}

// Key stands for the A2A id behind a shared handle: a digest of kind,
// principal, agent and id. The zero Key stands for nothing.
type Key [16]byte

// key returns the Key of an entry, zero for a kind or an id that is never
// shared. A task is named by its own id alone: an agent may tell the context
// of a task late.
func (e Entry) key() Key {
	id := ""
	switch e.Kind {
	case KindContext:
		id = e.ContextID
	case KindTask:
		id = e.TaskID
	}
	if id == "" {
		return Key{}
	}
	// Lengths in front keep ("ab","c") and ("a","bc") apart.
	var buf []byte
	for _, s := range [...]string{string(e.Kind), e.Principal, e.Agent, id} {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	sum := sha256.Sum256(buf)
	return Key(sum[:len(Key{})])
}
