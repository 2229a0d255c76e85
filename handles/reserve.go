package handles

import (
	"context"
	"errors"
	"time"
)

// Reservation is room in the table for the handle of a task that has not begun
// yet: to be made before work that nobody could collect without a handle. It
// belongs to one goroutine and must be released.
type Reservation struct {
	t      *Table
	place  string // the handle of an entry that nobody knows; "" when released
	fields Entry
}

// Reserve keeps room for one task of this principal at an agent, for hold at
// least: how long the work may take to be known. It bounds for how long the room
// is lost when nobody releases it. CodeFull when there is none.
func (t *Table) Reserve(ctx context.Context, principal, agent string, hold time.Duration) (*Reservation, error) {
	now := time.Now().UTC()
	e := Entry{
		Handle: mint(KindTask), Kind: KindTask, Principal: principal, Agent: agent,
		Created: now, Expires: now.Add(max(lease, hold)), Running: true,
	}
	if _, _, err := t.create(ctx, Key{}, e); err != nil {
		return nil, storeFailed(KindTask, "", err)
	}
	return &Reservation{t: t, place: e.Handle, fields: e}, nil
}

// reserved reports whether e is the place of a Reservation: all other handles
// of tasks have an id of the task.
func (e Entry) reserved() bool { return e.Kind == KindTask && e.TaskID == "" }

// Task is Table.Task for the principal and the agent of the reservation. The
// room is used where there is no other, and no other call of this process can
// take it in between.
func (r *Reservation) Task(ctx context.Context, contextID, taskID string, running bool) (Entry, error) {
	e, err := r.t.Task(ctx, r.fields.Principal, r.fields.Agent, contextID, taskID, running)
	if !errors.Is(err, ErrFull) || r.place == "" {
		return e, err
	}
	r.t.room.Lock()
	defer r.t.room.Unlock()
	if err := r.t.store.Delete(ctx, r.place); err != nil {
		return Entry{}, storeFailed(KindTask, "", err)
	}
	r.place = ""
	now := time.Now().UTC()
	e = Entry{
		Handle: mint(KindTask), Kind: KindTask, Principal: r.fields.Principal, Agent: r.fields.Agent,
		ContextID: contextID, TaskID: taskID, Created: now, Expires: r.t.expiry(running, now), Running: running,
	}
	stored, _, err := r.t.store.Create(ctx, e.key(), e)
	if err != nil {
		return Entry{}, storeFailed(KindTask, "", err)
	}
	return stored.clone(), nil
}

// Release gives the room back. A store that cannot be reached keeps it until it
// expires.
func (r *Reservation) Release(ctx context.Context) {
	if r != nil && r.place != "" {
		_ = r.t.store.Delete(ctx, r.place)
		r.place = ""
	}
}

// create is Store.Create for entries that may not take the room which a
// Reservation is about to use.
func (t *Table) create(ctx context.Context, key Key, e Entry) (stored Entry, created bool, err error) {
	t.room.RLock()
	defer t.room.RUnlock()
	return t.store.Create(ctx, key, e)
}
