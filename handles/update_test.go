package handles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTakeOnce(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		s := must[Entry](t)(tab.State(t.Context(), "ann", "billing", json.RawMessage(`1`), 0))
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, err := tab.Take(t.Context(), s.Handle, "ann")
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ErrUsed) && !errors.Is(err, ErrUnknown):
					t.Errorf("take: %v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d callers took one state", won.Load())
		}
	})
}

func TestUpdateIsAtomic(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx := t.Context()
		e := must[Entry](t)(tab.Task(ctx, "ann", "billing", "c1", "t1", true))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				err := tab.Update(ctx, e.Handle, func(e *Entry) error {
					n := 0
					_ = json.Unmarshal(e.Data, &n)
					e.Data = fmt.Append(nil, n+1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				must[Entry](t)(tab.Lookup(ctx, KindTask, e.Handle, "ann"))
			})
		}
		wg.Wait()
		if e = must[Entry](t)(tab.Peek(ctx, KindTask, e.Handle, "ann")); string(e.Data) != "20" {
			t.Errorf("20 updates left %s", e.Data)
		}

		// An error of the function changes nothing and comes back as it is.
		stop := errors.New("stop")
		if err := tab.Update(ctx, e.Handle, func(e *Entry) error { e.Running = false; return stop }); err != stop {
			t.Errorf("update: %v", err)
		}
		for name, change := range map[string]func(*Entry){
			"handle":    func(e *Entry) { e.Handle = mint(KindTask) },
			"principal": func(e *Entry) { e.Principal = "bob" },
			"agent":     func(e *Entry) { e.Agent = "travel" },
			"task":      func(e *Entry) { e.TaskID = "t2" },
			"kind":      func(e *Entry) { e.Kind = KindState },
		} {
			if err := tab.Update(ctx, e.Handle, func(e *Entry) error { change(e); return nil }); err == nil {
				t.Errorf("an update could change the %s", name)
			}
		}
		after := must[Entry](t)(tab.Peek(ctx, KindTask, e.Handle, "ann"))
		if after.Rev != e.Rev || !after.Running || after.Principal != "ann" {
			t.Errorf("refused updates left %+v", after)
		}
		wantCode(t, tab.Update(ctx, mint(KindTask), func(*Entry) error { return nil }), CodeUnknown)
		wantCode(t, tab.Update(ctx, "tk_", func(*Entry) error { return nil }), CodeMalformed)
	})
}

// Many callers who learn of one task at once get one handle.
func TestMintAtOnce(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		var mu sync.Mutex
		got := map[string]int{}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				e, err := tab.Task(t.Context(), "ann", "billing", "c1", "t1", true)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				got[e.Handle]++
				mu.Unlock()
			})
		}
		wg.Wait()
		if len(got) != 1 {
			t.Errorf("handles for one task: %v", got)
		}
	})
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		h := mint(KindTask)
		release, ok := tab.Acquire(h)
		if !ok {
			t.Fatal("a free handle is busy")
		}
		if _, ok := tab.Acquire(h); ok {
			t.Error("two have one handle")
		}
		other, ok := tab.Acquire(mint(KindTask))
		if !ok {
			t.Error("another handle is busy")
		}
		other()
		release()
		release, ok = tab.Acquire(h)
		if !ok {
			t.Fatal("a released handle is busy")
		}
		release()

		var won atomic.Int32
		start := make(chan struct{})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, ok := tab.Acquire(h); ok {
					won.Add(1)
				}
				<-start
			})
		}
		close(start)
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of 20 got the handle", won.Load())
		}
	})
}

func TestUpdateWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(t, Options{})
		e := must[Entry](t)(tab.Context(t.Context(), "ann", "billing", "c1"))
		entered, leave := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = tab.Update(t.Context(), e.Handle, func(*Entry) error { close(entered); <-leave; return nil })
		})
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tab.Update(ctx, e.Handle, func(*Entry) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("update: %v", err)
		}
		close(leave)
		wg.Wait()
		if n := len(tab.updating.held); n != 0 {
			t.Errorf("%d locks left over", n)
		}
	})
}

// slowStore is a Memory to which others are always quicker.
type slowStore struct {
	*Memory
	swaps, touches int
}

func (s *slowStore) Swap(context.Context, uint64, Entry) (bool, error) { s.swaps++; return false, nil }

// Touch lets the first entry expire between its look-up and its use.
func (s *slowStore) Touch(ctx context.Context, e Entry, at time.Time) (bool, error) {
	if s.touches++; s.touches == 1 {
		return false, s.Delete(ctx, e.Handle)
	}
	return s.Memory.Touch(ctx, e, at)
}

func TestOthersAreQuicker(t *testing.T) {
	t.Parallel()
	s := &slowStore{Memory: NewMemory(Limits{})}
	tab := newTable(t, Options{Store: s})
	ctx := t.Context()
	c := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
	// It expires just when it is used again: a new one, not an error.
	again := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
	if again.Handle == c.Handle || again.Handle == "" {
		t.Errorf("handles %q and %q", c.Handle, again.Handle)
	}
	// An update that never gets through ends, and says that the store is why.
	err := tab.Update(ctx, again.Handle, func(*Entry) error { return nil })
	wantCode(t, err, CodeStore)
	if s.swaps != swapTries {
		t.Errorf("%d tries", s.swaps)
	}
	if tab.TTL() != testTTL {
		t.Errorf("TTL %s", tab.TTL())
	}
}
