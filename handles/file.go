package handles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// The layout of the file: bucket "meta" with the format's number under
// "format", bucket "entries" with one entry a handle, as JSON.
const (
	fileFormat = "1"
	// openWait is how long to wait for another process to let go of the file.
	openWait = time.Second
	// batchDelay is how long a write waits for others to share its fsync.
	batchDelay = time.Millisecond
)

var (
	metaBucket    = []byte("meta")
	entriesBucket = []byte("entries")
	formatKey     = []byte("format")
)

// File is a Store in memory and on disk. Reads cost what they cost with
// Memory. Every Create, Swap, Take and Delete is on disk, synced, before it
// returns and before anybody can see it, so it survives kill -9; one that
// cannot be written is an error and changes nothing. Uses are written by Sweep
// and Close only: after a crash a handle may expire as much earlier as the
// last Sweep lies back. Only one process can have the file. Make it with
// OpenFile.
type File struct {
	mem *Memory
	db  *bbolt.DB
	// writing serialises the writes of one handle or key, from the check in
	// memory to the change in memory.
	writing keyedLocks

	mu      sync.Mutex          // guards what follows; taken after mem.mu
	touched map[string]struct{} // used since they were written
	gone    map[string]struct{} // dropped from memory, still on disk
}

var _ Store = (*File)(nil)

// OpenFile opens or creates the file and reads what it holds; expired entries
// are left behind, and so is the oldest part of what is more than l.Max. An
// entry that cannot be read is skipped and logged; log may be nil. The error
// names the path and the remedy.
func OpenFile(path string, l Limits, log *slog.Logger) (*File, error) {
	return openFile(path, l, log, bbolt.Options{Timeout: openWait})
}

// openFile is OpenFile with bbolt's options, for tests that need a disk that
// fails.
func openFile(path string, l Limits, log *slog.Logger, o bbolt.Options) (*File, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	db, err := bbolt.Open(path, 0o600, &o)
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("store.path: %q is in use by another process; give each gateway its own file, or use the redis store", path)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("store.path: %q: the folder %q does not exist; create it", path, filepath.Dir(path))
	case err != nil:
		return nil, fmt.Errorf("store.path: %q cannot be opened as a handle store: %w; make it writable, or give another path", path, err)
	}
	db.MaxBatchDelay = batchDelay
	f := &File{
		mem: NewMemory(l), db: db,
		touched: make(map[string]struct{}), gone: make(map[string]struct{}),
	}
	f.mem.dropped = f.forget
	if err := f.load(log); err != nil {
		return nil, errors.Join(fmt.Errorf("store.path: %q: %w", path, err), db.Close())
	}
	return f, nil
}

// load prepares the buckets and fills the memory.
func (f *File) load(log *slog.Logger) error {
	err := f.db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucketIfNotExists(entriesBucket); err != nil {
			return err
		}
		switch format := string(meta.Get(formatKey)); format {
		case fileFormat:
			return nil
		case "":
			return meta.Put(formatKey, []byte(fileFormat))
		default:
			return fmt.Errorf("format %q is not known to this version; use the version that wrote it, or another path", format)
		}
	})
	if err != nil {
		return err
	}
	var live []Entry
	err = f.db.View(func(tx *bbolt.Tx) error {
		now := time.Now()
		return tx.Bucket(entriesBucket).ForEach(func(k, v []byte) error {
			e, err := readEntry(k, v)
			switch {
			case err != nil:
				log.Warn("handle store: entry skipped", "entry", string(k), "error", err)
			case !now.Before(e.Expires):
				f.forget(e.Handle)
			default:
				live = append(live, e)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	// In the order of their last use, so that the bound drops the oldest.
	slices.SortFunc(live, func(a, b Entry) int { return a.Expires.Compare(b.Expires) })
	for _, e := range live {
		if _, created, err := f.mem.Create(context.Background(), e.key(), e); err != nil || !created {
			f.forget(e.Handle)
		}
	}
	return nil
}

// readEntry decodes one entry of the file.
func readEntry(key, value []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(value, &e); err != nil {
		return Entry{}, err
	}
	if kind, err := Parse(e.Handle); err != nil || kind != e.Kind || e.Handle != string(key) {
		return Entry{}, fmt.Errorf("entry %q says that it is %s %q", key, e.Kind, e.Handle)
	}
	return e, nil
}

// forget notes a handle to delete on disk. It may run under mem.mu.
func (f *File) forget(handle string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[handle] = struct{}{}
	delete(f.touched, handle)
}

// write puts entries and deletes handles in one synced transaction, shared
// with other writers. Its function is run again by bbolt when a stranger's
// part of the batch failed, so it changes nothing but the file.
func (f *File) write(put []Entry, remove []string) error {
	values := make([][]byte, len(put))
	for i, e := range put {
		v, err := json.Marshal(e)
		if err != nil {
			return err
		}
		values[i] = v
	}
	return f.db.Batch(func(tx *bbolt.Tx) error {
		b := tx.Bucket(entriesBucket)
		for _, h := range remove {
			if err := b.Delete([]byte(h)); err != nil {
				return err
			}
		}
		for i, e := range put {
			if err := b.Put([]byte(e.Handle), values[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Create implements Store.
func (f *File) Create(ctx context.Context, key Key, e Entry) (Entry, bool, error) {
	if key != (Key{}) {
		unlock, err := f.writing.lock(ctx, string(key[:]))
		if err != nil {
			return Entry{}, false, err
		}
		defer unlock()
	}
	if shared, ok, err := f.mem.reserve(key); err != nil || ok {
		return shared, false, err
	}
	if err := f.write([]Entry{e}, nil); err != nil {
		f.mem.release()
		return Entry{}, false, err
	}
	f.mem.insertReserved(key, e)
	return e, true, nil
}

// Get implements Store.
func (f *File) Get(ctx context.Context, handle string) (Entry, Presence, error) {
	return f.mem.Get(ctx, handle)
}

// Touch implements Store. The disk learns of it at the next Sweep.
func (f *File) Touch(ctx context.Context, e Entry, expires time.Time) (bool, error) {
	ok, err := f.mem.Touch(ctx, e, expires)
	if ok {
		f.mu.Lock()
		f.touched[e.Handle] = struct{}{}
		f.mu.Unlock()
	}
	return ok, err
}

// Swap implements Store.
func (f *File) Swap(ctx context.Context, rev uint64, e Entry) (bool, error) {
	unlock, err := f.writing.lock(ctx, e.Handle)
	if err != nil {
		return false, err
	}
	defer unlock()
	old, p, err := f.mem.Get(ctx, e.Handle)
	if err != nil || p != Live || old.Rev != rev {
		return false, err
	}
	if err := f.write([]Entry{e}, nil); err != nil {
		return false, err
	}
	ok, err := f.mem.Swap(ctx, rev, e)
	if !ok { // it expired while it was written
		f.forget(e.Handle)
	}
	return ok, err
}

// Take implements Store. The entry is off the disk before it is handed out:
// a state that a crash brought back could be used twice.
func (f *File) Take(ctx context.Context, handle, principal string) (Entry, Presence, error) {
	unlock, err := f.writing.lock(ctx, handle)
	if err != nil {
		return Entry{}, Absent, err
	}
	defer unlock()
	e, p, err := f.mem.Get(ctx, handle)
	if err != nil || p != Live || e.Principal != principal {
		return e, p, err
	}
	if err := f.write(nil, []string{handle}); err != nil {
		return Entry{}, Absent, err
	}
	return f.mem.Take(ctx, handle, principal)
}

// Delete implements Store.
func (f *File) Delete(ctx context.Context, handle string) error {
	unlock, err := f.writing.lock(ctx, handle)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.write(nil, []string{handle}); err != nil {
		return err
	}
	return f.mem.Delete(ctx, handle)
}

// Range implements Store.
func (f *File) Range(ctx context.Context, fn func(Entry) bool) error { return f.mem.Range(ctx, fn) }

// Len implements Store.
func (f *File) Len(ctx context.Context) (int, error) { return f.mem.Len(ctx) }

// Sweep implements Store.
func (f *File) Sweep(ctx context.Context) (int, error) {
	n, err := f.mem.Sweep(ctx)
	return n, errors.Join(err, f.flush(ctx))
}

// flush writes what was put off, in batches. What cannot be written stays put
// off.
func (f *File) flush(ctx context.Context) error {
	for ctx.Err() == nil {
		touched, gone := f.pending(sweepBatch)
		if len(touched)+len(gone) == 0 {
			return nil
		}
		if err := f.flushSome(ctx, touched, gone); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pending takes at most n handles of each sort from what was put off.
func (f *File) pending(n int) (touched, gone []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return drain(f.touched, n), drain(f.gone, n)
}

func drain(set map[string]struct{}, n int) []string {
	var out []string
	for h := range set {
		if len(out) == n {
			break
		}
		out = append(out, h)
		delete(set, h)
	}
	return out
}

func (f *File) flushSome(ctx context.Context, touched, gone []string) error {
	// Only the expiry is new, and a Swap or Take between here and the write
	// must win: each entry is read again inside the transaction.
	expires := make(map[string]time.Time, len(touched))
	for _, h := range touched {
		if e, p, _ := f.mem.Get(ctx, h); p == Live {
			expires[h] = e.Expires
		}
	}
	err := f.db.Batch(func(tx *bbolt.Tx) error {
		b := tx.Bucket(entriesBucket)
		for _, h := range gone {
			if err := b.Delete([]byte(h)); err != nil {
				return err
			}
		}
		for h, at := range expires {
			if err := lengthen(b, h, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, h := range gone {
			f.gone[h] = struct{}{}
		}
		for h := range expires {
			f.touched[h] = struct{}{}
		}
	}
	return err
}

// lengthen moves the expiry of an entry on disk, if the entry is still there.
func lengthen(b *bbolt.Bucket, handle string, at time.Time) error {
	v := b.Get([]byte(handle))
	if v == nil {
		return nil
	}
	e, err := readEntry([]byte(handle), v)
	if err != nil || !at.After(e.Expires) {
		return nil //nolint:nilerr // an unreadable entry is nobody's to change
	}
	e.Expires = at
	if v, err = json.Marshal(e); err != nil {
		return err
	}
	return b.Put([]byte(handle), v)
}

// Close implements Store.
func (f *File) Close() error {
	return errors.Join(f.flush(context.Background()), f.db.Close())
}
