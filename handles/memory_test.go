package handles

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// check re-verifies what must hold of a Memory at any time.
func (m *Memory) check(t testing.TB) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := m.settled.Len() + m.running.Len(); got != len(m.due) {
		t.Errorf("%d entries in the lists, %d in the heap", got, len(m.due))
	}
	for i, r := range m.due {
		if r.index != i || m.find(r.entry.Handle, false) != r {
			t.Errorf("heap place %d: index %d, handle %s", i, r.index, r.entry.Handle)
		}
		if r.due > r.entry.Expires.UnixNano() {
			t.Errorf("%s is due after it expires", r.entry.Handle)
		}
		if i > 0 && m.due[(i-1)/2].due > r.due {
			t.Errorf("heap order broken at %d", i)
		}
		if _, ok := m.list(r.entry.Running).Peek(r.entry.Handle); !ok {
			t.Errorf("%s is in the wrong list", r.entry.Handle)
		}
	}
	for k, r := range m.keys {
		if r.entry.key() != k || r.index >= len(m.due) || m.due[r.index] != r {
			t.Errorf("key of %s stands for an entry that is gone", r.entry.Handle)
		}
	}
	if m.limits.Max > 0 && len(m.due) > m.limits.Max+m.reserved {
		t.Errorf("%d entries, at most %d", len(m.due), m.limits.Max)
	}
	if m.tombs.Len() > tombstones {
		t.Errorf("%d tombstones", m.tombs.Len())
	}
}

func TestEvictionOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		m := NewMemory(Limits{Max: 4, Idle: testTTL})
		tab := newTable(t, Options{Store: m})
		lives := func(e Entry) bool {
			_, p, _ := m.Get(ctx, e.Handle)
			return p == Live
		}
		run1 := must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run1", true))
		ctx1 := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
		done := must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "done", false))
		state := must[Entry](t)(tab.State(ctx, "ann", "billing", nil, 0))
		must[Entry](t)(tab.Lookup(ctx, KindContext, ctx1.Handle, "ann"))

		// The oldest settled by use goes, the older running one stays.
		ctx2 := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c2"))
		if lives(done) || !lives(run1) || !lives(ctx1) || !lives(state) {
			t.Fatal("the wrong entry made room")
		}
		// What was evicted is unknown, not expired.
		_, err := tab.Lookup(ctx, KindTask, done.Handle, "ann")
		wantCode(t, err, CodeUnknown)

		// A task that settles joins the others as the youngest.
		if err := tab.Settle(ctx, run1.Handle); err != nil {
			t.Fatal(err)
		}
		must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run2", true))
		if lives(state) || !lives(run1) {
			t.Fatal("the wrong entry made room")
		}
		must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run3", true))
		must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run4", true))
		if lives(ctx1) || lives(ctx2) || !lives(run1) {
			t.Fatal("the wrong entry made room")
		}
		run2 := must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run2", true))
		must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run5", true))
		m.check(t)

		// All are running and in use: new work is refused, old work is not lost.
		_, err = tab.Task(ctx, "ann", "billing", "", "run6", true)
		wantCode(t, err, CodeFull)
		_, err = tab.State(ctx, "ann", "billing", nil, 0)
		wantCode(t, err, CodeFull)
		if again := must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run2", true)); again.Handle != run2.Handle {
			t.Error("a known task needs room")
		}
		// One that nobody has asked for in a while may go, even though it runs.
		time.Sleep(testTTL - time.Second)
		must[Entry](t)(tab.Lookup(ctx, KindTask, run2.Handle, "ann"))
		time.Sleep(2 * time.Second)
		must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run6", true))
		must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run7", true))
		must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run8", true))
		_, err = tab.Task(ctx, "ann", "billing", "", "run9", true)
		wantCode(t, err, CodeFull)
		if !lives(run2) {
			t.Error("a task in use was dropped")
		}
		m.check(t)

		// The dead make room before the living.
		time.Sleep(25 * time.Hour)
		must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "run9", true))
		m.check(t)
	})
}

// Sixty expired tasks of 1 MB stayed in the memory of an earlier bridge for
// ever. Here they go, with and without Sweep.
func TestExpiredDataIsFreed(t *testing.T) {
	t.Parallel()
	for _, sweep := range []bool{true, false} {
		t.Run(fmt.Sprint("sweep ", sweep), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := NewMemory(Limits{})
				tab := newTable(t, Options{Store: m})
				var mu sync.Mutex
				freed := 0
				for i := range 60 {
					data := make(json.RawMessage, 1<<20)
					s := must[Entry](t)(tab.State(t.Context(), "ann", "billing", nil, time.Minute))
					// Straight into the store, to watch the very array.
					s.Data, s.Rev = data, 1
					if ok, err := m.Swap(t.Context(), 0, s); !ok || err != nil {
						t.Fatal(i, err)
					}
					runtime.AddCleanup(&data[0], func(int) { mu.Lock(); freed++; mu.Unlock() }, 0)
				}
				time.Sleep(2 * time.Minute)
				if sweep {
					if n := must[int](t)(m.Sweep(t.Context())); n != 60 {
						t.Errorf("swept %d", n)
					}
				} else {
					for i := range 60 { // each new entry buries some of the dead
						must[Entry](t)(tab.Context(t.Context(), "ann", "billing", fmt.Sprint(i)))
					}
				}
				m.check(t)
				for range 20 {
					runtime.GC()
					time.Sleep(time.Millisecond)
					mu.Lock()
					n := freed
					mu.Unlock()
					if n == 60 {
						return
					}
				}
				t.Errorf("%d of 60 freed", freed)
			})
		})
	}
}

func TestTombstonesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(Limits{})
		tab := newTable(t, Options{Store: m})
		first := must[Entry](t)(tab.State(t.Context(), "ann", "billing", nil, time.Second))
		for range tombstones + 3*sweepBatch {
			must[Entry](t)(tab.State(t.Context(), "ann", "billing", nil, 2*time.Second))
		}
		time.Sleep(3 * time.Second)
		must[int](t)(m.Sweep(t.Context()))
		m.check(t)
		if n := must[int](t)(tab.Len(t.Context())); n != 0 {
			t.Errorf("Len = %d", n)
		}
		// The oldest grave is forgotten: unknown instead of expired.
		_, err := tab.Take(t.Context(), first.Handle, "ann")
		wantCode(t, err, CodeUnknown)
	})
}

func BenchmarkLookup(b *testing.B) {
	tab := newTable(b, Options{})
	var handles []string
	for i := range 100_000 {
		handles = append(handles, must[Entry](b)(tab.Task(b.Context(), "ann", "billing", "c", fmt.Sprint("t", i), i%2 == 0)).Handle)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := tab.Lookup(b.Context(), KindTask, handles[i%len(handles)], "ann"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkEntry measures the heap that one entry takes, ids included.
func BenchmarkEntry(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		tab := newTable(b, Options{})
		for i := range n {
			id := fmt.Sprintf("0190d1a2-7b3c-7d4e-8f50-%012d", i)
			must[Entry](b)(tab.Task(b.Context(), strings.Clone("ann"), strings.Clone("billing"), id, id, i%2 == 0))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/entry")
		runtime.KeepAlive(tab)
	}
}

func BenchmarkMassExpiry(b *testing.B) {
	for b.Loop() {
		m := NewMemory(Limits{})
		now := time.Now()
		for range 100_000 {
			h := mint(KindState)
			if _, _, err := m.Create(b.Context(), Key{}, Entry{Handle: h, Kind: KindState, Expires: now}); err != nil {
				b.Fatal(err)
			}
		}
		var worst time.Duration
		done := make(chan struct{})
		go func() { defer close(done); _, _ = m.Sweep(b.Context()) }()
		for {
			start := time.Now()
			_, _, _ = m.Get(b.Context(), "x")
			worst = max(worst, time.Since(start))
			select {
			case <-done:
				b.ReportMetric(float64(worst.Microseconds()), "worst-us")
			default:
				continue
			}
			break
		}
	}
}
