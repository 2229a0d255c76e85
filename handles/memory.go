package handles

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
)

// The bounds of Memory and File.
const (
	// DefaultMax is how many entries a store holds.
	DefaultMax = 100_000
	// DefaultIdle is how long a running entry is safe from eviction after its
	// last use.
	DefaultIdle = 15 * time.Minute
	// tombstones is how many expired and used handles are remembered.
	tombstones = 10_000
	// sweepBatch is how many entries are dropped under one lock, so that mass
	// expiry delays nobody.
	sweepBatch = 512
)

// Limits bound a Memory or a File; zero fields take the defaults.
//
// A full store makes room in this order: expired entries, then the settled
// entry (also a context or a state) whose last use is longest ago, then the
// running one whose last use is longest ago if that is more than Idle. When
// every entry is running and was used within Idle, or is room kept for a task
// (Table.Reserve), Create answers CodeFull:
// work that somebody waits for is not dropped for new work.
type Limits struct {
	Max  int
	Idle time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.Max <= 0 {
		l.Max = DefaultMax
	}
	if l.Idle <= 0 {
		l.Idle = DefaultIdle
	}
	return l
}

// Memory is a Store in the memory of this process. Make it with NewMemory.
//
// Recency is kept by two expirable caches, without their clock: they are made
// with size 0 and time-to-live 0, so that they start no goroutine (it could
// never be stopped), evict nothing by themselves and need no callback (it
// would run under their lock). Lives differ from entry to entry and grow with
// use, so expiry is a heap of our own.
type Memory struct {
	limits Limits

	mu      sync.Mutex // guards everything below, records included
	settled *expirable.LRU[string, *record]
	running *expirable.LRU[string, *record]
	keys    map[Key]*record
	due     dueHeap
	tombs   *expirable.LRU[string, tombstone]
	// reserved is how many entries File is about to insert; they count.
	reserved int
	// dropped is told of each entry that expired or made room, under mu; nil
	// when nobody asks. File forgets them on disk too.
	dropped func(handle string)
}

// record is an entry with its place in the heap.
type record struct {
	entry Entry
	// due is when the heap looks at the record, Unix nanoseconds. It may be
	// earlier than entry.Expires, never later: a use moves only Expires.
	due   int64
	index int   // in the heap
	used  int64 // last use, Unix nanoseconds
}

// tombstone remembers why a handle no longer works, and whose it was.
type tombstone struct {
	kind      Kind
	principal string
	presence  Presence
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory(l Limits) *Memory {
	return &Memory{
		limits:  l.withDefaults(),
		settled: expirable.NewLRU[string, *record](0, nil, 0),
		running: expirable.NewLRU[string, *record](0, nil, 0),
		keys:    make(map[Key]*record),
		tombs:   expirable.NewLRU[string, tombstone](tombstones, nil, 0),
	}
}

// Create implements Store.
func (m *Memory) Create(_ context.Context, key Key, e Entry) (Entry, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if shared, ok := m.shared(key, now); ok {
		return shared, false, nil
	}
	if err := m.makeRoom(now); err != nil {
		return Entry{}, false, err
	}
	m.insert(key, e, now)
	return e, true, nil
}

// reserve is the first half of Create for File, which writes between the
// halves: it answers for a shared key, or checks that there is room. Nothing
// makes room yet, so that a failing disk costs no entry.
func (m *Memory) reserve(key Key) (shared Entry, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if shared, ok := m.shared(key, now); ok {
		return shared, true, nil
	}
	if m.len()+m.reserved >= m.limits.Max && !m.dropExpired(now) && m.victim(now) == nil {
		return Entry{}, false, &Error{Code: CodeFull}
	}
	m.reserved++
	return Entry{}, false, nil
}

// release gives a reservation back.
func (m *Memory) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reserved--
}

// insertReserved is the second half. Entries that came meanwhile may have
// taken the room; then there is one too many until the next makes room.
func (m *Memory) insertReserved(key Key, e Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.reserved--
	_ = m.makeRoom(now)
	m.insert(key, e, now)
}

// shared returns the live entry of a key. The caller holds mu.
func (m *Memory) shared(key Key, now time.Time) (Entry, bool) {
	if key == (Key{}) {
		return Entry{}, false
	}
	r := m.keys[key]
	if r == nil || !now.Before(r.entry.Expires) {
		return Entry{}, false
	}
	return r.entry, true
}

// makeRoom leaves room for one entry. The caller holds mu.
func (m *Memory) makeRoom(now time.Time) error {
	// Two for one: a store whose Sweep nobody calls still cannot fill up with
	// the dead, at a constant price a call.
	for range 2 {
		m.dropExpired(now)
	}
	for m.len() >= m.limits.Max {
		if m.dropExpired(now) {
			continue
		}
		r := m.victim(now)
		if r == nil {
			return &Error{Code: CodeFull}
		}
		m.remove(r)
		m.tell(r.entry.Handle)
	}
	return nil
}

func (m *Memory) tell(handle string) {
	if m.dropped != nil {
		m.dropped(handle)
	}
}

// victim is the entry that has to go first, nil when none may. The caller
// holds mu.
func (m *Memory) victim(now time.Time) *record {
	if _, r, ok := m.settled.GetOldest(); ok {
		return r
	}
	for range maxPassed {
		_, r, ok := m.running.GetOldest()
		if ok && r.entry.reserved() && now.Before(r.entry.Expires) {
			m.running.Get(r.entry.Handle) // behind the others: it is used by whoever waits
			continue
		}
		if ok && now.UnixNano()-r.used > int64(m.limits.Idle) {
			return r
		}
		break
	}
	return nil
}

// maxPassed bounds the reservations that are passed over in the search for an
// entry that may go.
const maxPassed = 16

// insert adds a record. The caller holds mu and has made room.
func (m *Memory) insert(key Key, e Entry, now time.Time) {
	r := &record{entry: e, due: e.Expires.UnixNano(), used: now.UnixNano()}
	heap.Push(&m.due, r)
	m.list(e.Running).Add(e.Handle, r)
	if key != (Key{}) {
		m.keys[key] = r // an expired entry may have had it; it goes by itself
	}
}

func (m *Memory) list(running bool) *expirable.LRU[string, *record] {
	if running {
		return m.running
	}
	return m.settled
}

func (m *Memory) len() int { return len(m.due) }

// find returns a record and moves it to the young end of its list if used is
// true. The caller holds mu.
func (m *Memory) find(handle string, used bool) *record {
	for _, l := range [...]*expirable.LRU[string, *record]{m.settled, m.running} {
		if used {
			if r, ok := l.Get(handle); ok {
				return r
			}
		} else if r, ok := l.Peek(handle); ok {
			return r
		}
	}
	return nil
}

// remove takes a record out of every list. The caller holds mu.
func (m *Memory) remove(r *record) {
	m.list(r.entry.Running).Remove(r.entry.Handle)
	heap.Remove(&m.due, r.index)
	if key := r.entry.key(); m.keys[key] == r {
		delete(m.keys, key)
	}
}

// bury remembers why a handle no longer works. The caller holds mu.
func (m *Memory) bury(e Entry, p Presence) {
	m.tombs.Add(e.Handle, tombstone{kind: e.Kind, principal: e.Principal, presence: p})
}

// dropExpired drops the entry that is due first if it has expired, and puts
// off one that was used since. It reports whether there may be more to do.
// The caller holds mu.
func (m *Memory) dropExpired(now time.Time) bool {
	for len(m.due) > 0 && m.due[0].due <= now.UnixNano() {
		r := m.due[0]
		if now.Before(r.entry.Expires) {
			r.due = r.entry.Expires.UnixNano()
			heap.Fix(&m.due, 0)
			continue
		}
		m.remove(r)
		m.bury(r.entry, Expired)
		m.tell(r.entry.Handle)
		return true
	}
	return false
}

// Get implements Store.
func (m *Memory) Get(_ context.Context, handle string) (Entry, Presence, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, p := m.get(handle, time.Now())
	return e, p, nil
}

// get is Get for a caller that holds mu.
func (m *Memory) get(handle string, now time.Time) (Entry, Presence) {
	r := m.find(handle, false)
	if r == nil {
		t, ok := m.tombs.Peek(handle)
		if !ok {
			return Entry{}, Absent
		}
		return Entry{Handle: handle, Kind: t.kind, Principal: t.principal}, t.presence
	}
	if !now.Before(r.entry.Expires) {
		return r.entry, Expired
	}
	return r.entry, Live
}

// Touch implements Store.
func (m *Memory) Touch(_ context.Context, e Entry, expires time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	r := m.find(e.Handle, true)
	if r == nil || !now.Before(r.entry.Expires) {
		return false, nil
	}
	r.used = now.UnixNano()
	if expires.After(r.entry.Expires) {
		r.entry.Expires = expires
	}
	return true, nil
}

// Swap implements Store.
func (m *Memory) Swap(_ context.Context, rev uint64, e Entry) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	r := m.find(e.Handle, true)
	if r == nil || r.entry.Rev != rev || !now.Before(r.entry.Expires) {
		return false, nil
	}
	m.swap(r, e, now)
	return true, nil
}

// swap puts e in the place of r's entry. The caller holds mu.
func (m *Memory) swap(r *record, e Entry, now time.Time) {
	if r.entry.Running != e.Running {
		m.list(r.entry.Running).Remove(e.Handle)
		m.list(e.Running).Add(e.Handle, r)
	}
	r.entry, r.used = e, now.UnixNano()
	if at := e.Expires.UnixNano(); at < r.due {
		r.due = at
		heap.Fix(&m.due, r.index)
	}
}

// Take implements Store.
func (m *Memory) Take(_ context.Context, handle, principal string) (Entry, Presence, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, p := m.get(handle, time.Now())
	if p == Live && e.Principal == principal {
		m.remove(m.find(handle, false))
		m.bury(e, Used)
	}
	return e, p, nil
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, handle string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.find(handle, false); r != nil {
		m.remove(r)
	}
	m.tombs.Remove(handle)
	return nil
}

// Range implements Store.
func (m *Memory) Range(ctx context.Context, fn func(Entry) bool) error {
	m.mu.Lock()
	handles := append(m.settled.Keys(), m.running.Keys()...)
	m.mu.Unlock()
	for _, h := range handles {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e, p, _ := m.Get(ctx, h); p == Live && !fn(e) {
			return nil
		}
	}
	return nil
}

// Len implements Store.
func (m *Memory) Len(context.Context) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.len(), nil
}

// Sweep implements Store.
func (m *Memory) Sweep(ctx context.Context) (int, error) {
	total := 0
	for {
		n := m.sweepSome()
		total += n
		if n < sweepBatch {
			return total, nil
		}
		if err := ctx.Err(); err != nil {
			return total, err
		}
	}
}

func (m *Memory) sweepSome() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for n := range sweepBatch {
		if !m.dropExpired(now) {
			return n
		}
	}
	return sweepBatch
}

// Close implements Store; it frees nothing.
func (m *Memory) Close() error { return nil }

// dueHeap orders records by due; each record knows its index.
type dueHeap []*record

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	r := x.(*record)
	r.index = len(*h)
	*h = append(*h, r)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil // or the array keeps the record's Data alive
	*h = old[:len(old)-1]
	return r
}
