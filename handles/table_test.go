package handles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// everyStore is each backend, made inside a synctest bubble.
var everyStore = []struct {
	name string
	make func(t *testing.T) Store
}{

	{"memory", func(*testing.T) Store { return NewMemory(Limits{}) }},
	{"file", func(t *testing.T) Store { return openTestFile(t, filepath.Join(t.TempDir(), "handles.db")) }},
	{"redis", func(t *testing.T) Store { return newFakeRedis(t).open(t) }},
}

const testTTL = 15 * time.Minute

// onEveryStore runs test in a bubble for each backend.
func onEveryStore(t *testing.T, test func(t *testing.T, tab *Table)) {
	t.Helper()
	for _, s := range everyStore {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tab := newTable(t, Options{Store: s.make(t)})
				test(t, tab)
			})
		})
	}
}

func newTable(t testing.TB, o Options) *Table {
	t.Helper()
	if o.TTL == 0 {
		o.TTL = testTTL
	}
	tab, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	})
	return tab
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantCode(t testing.TB, err error, code Code) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
}

func TestNewRefusesTTL(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {TTL: -time.Second}, {TTL: 1, RunningTTL: -1}, {TTL: 1, StateTTL: -1}, {TTL: 1, Max: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("New(%+v) made a table", o)
		}
	}
}

// A handle is the same for the same thing while it lives, and never shows
// what it stands for.
func TestSharedHandles(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx := t.Context()
		c1 := must[Entry](t)(tab.Context(ctx, "ann", "billing", "ctx-7"))
		if again := must[Entry](t)(tab.Context(ctx, "ann", "billing", "ctx-7")); again.Handle != c1.Handle {
			t.Errorf("second handle %s for one context, first %s", again.Handle, c1.Handle)
		}
		seen := map[string]bool{c1.Handle: true}
		for _, o := range []struct{ principal, agent, id string }{
			{"bob", "billing", "ctx-7"}, {"ann", "travel", "ctx-7"}, {"ann", "billing", "ctx-8"},
			// Joined by hand these would be one.
			{"annb", "illing", "ctx-7"}, {"ann", "billingc", "tx-7"},
		} {
			e := must[Entry](t)(tab.Context(ctx, o.principal, o.agent, o.id))
			if seen[e.Handle] {
				t.Errorf("%v shares a handle", o)
			}
			seen[e.Handle] = true
		}
		task := must[Entry](t)(tab.Task(ctx, "ann", "billing", "ctx-7", "ctx-7", true))
		if seen[task.Handle] || strings.Contains(task.Handle+c1.Handle, "7") && strings.Contains(task.Handle, "ctx") {
			t.Errorf("task handle %s", task.Handle)
		}
		for h := range seen {
			if kind, err := Parse(h); err != nil || kind != KindContext || !strings.HasPrefix(h, "cx_") {
				t.Errorf("Parse(%q) = %q, %v", h, kind, err)
			}
		}
		if want := 7; must[int](t)(tab.Len(ctx)) != want {
			t.Errorf("Len = %d, want %d", must[int](t)(tab.Len(ctx)), want)
		}
	})
}

// An agent that gives no contextId had all its conversations share one
// context handle in an earlier bridge, and all its tasks one task handle.
func TestEmptyIDsAreNeverShared(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		if e := must[Entry](t)(tab.Context(t.Context(), "ann", "billing", "")); e.Handle != "" {
			t.Errorf("a handle for no context: %+v", e)
		}
		if e := must[Entry](t)(tab.Task(t.Context(), "ann", "billing", "c1", "", true)); e.Handle != "" {
			t.Errorf("a handle for no task: %+v", e)
		}
		a := must[Entry](t)(tab.Task(t.Context(), "ann", "billing", "", "t1", true))
		b := must[Entry](t)(tab.Task(t.Context(), "ann", "billing", "", "t2", true))
		if a.Handle == "" || a.Handle == b.Handle {
			t.Errorf("two tasks without a context: %q and %q", a.Handle, b.Handle)
		}
		if n := must[int](t)(tab.Len(t.Context())); n != 2 {
			t.Errorf("Len = %d, want 2", n)
		}
	})
}

func TestLookupErrors(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx := t.Context()
		c := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
		never := mint(KindContext)
		for _, look := range []func(context.Context, Kind, string, string) (Entry, error){tab.Lookup, tab.Peek} {
			got, err := look(ctx, KindContext, c.Handle, "ann")
			if err != nil || got.ContextID != "c1" || got.Agent != "billing" || got.Principal != "ann" {
				t.Errorf("lookup = %+v, %v", got, err)
			}
			_, err = look(ctx, KindTask, c.Handle, "ann")
			wantCode(t, err, CodeWrongKind)
			_, err = look(ctx, KindContext, "cx_nonsense", "ann")
			wantCode(t, err, CodeMalformed)

			// Somebody else's handle and none at all: the same words.
			_, foreign := look(ctx, KindContext, c.Handle, "bob")
			wantCode(t, foreign, CodeUnknown)
			_, unknown := look(ctx, KindContext, never, "bob")
			wantCode(t, unknown, CodeUnknown)
			if f := strings.ReplaceAll(foreign.Error(), c.Handle, never); f != unknown.Error() {
				t.Errorf("foreign says %q, unknown %q", f, unknown)
			}
		}
	})
}

func TestSlidingExpiry(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx := t.Context()
		c := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
		for range 20 { // many turns, five hours
			time.Sleep(testTTL - time.Second)
			c2 := must[Entry](t)(tab.Lookup(ctx, KindContext, c.Handle, "ann"))
			if left := time.Until(c2.Expires); left < testTTL-time.Second || left > testTTL {
				t.Fatalf("expires in %s, want %s", left, testTTL)
			}
		}
		// Minting again is a use; a peek and somebody else's look-up are none.
		time.Sleep(testTTL - time.Second)
		if again := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1")); again.Handle != c.Handle {
			t.Fatal("minting again gave a new handle")
		}
		time.Sleep(testTTL - time.Second)
		must[Entry](t)(tab.Peek(ctx, KindContext, c.Handle, "ann"))
		_, err := tab.Lookup(ctx, KindContext, c.Handle, "bob")
		wantCode(t, err, CodeUnknown)
		time.Sleep(2 * time.Second)

		_, err = tab.Lookup(ctx, KindContext, c.Handle, "ann")
		wantCode(t, err, CodeExpired)
		_, err = tab.Lookup(ctx, KindContext, c.Handle, "bob")
		wantCode(t, err, CodeUnknown)
		fresh := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
		if fresh.Handle == c.Handle {
			t.Error("an expired handle came back")
		}
		if _, err = tab.Lookup(ctx, KindContext, c.Handle, "ann"); !errors.Is(err, ErrExpired) && !errors.Is(err, ErrUnknown) {
			t.Errorf("old handle: %v", err)
		}
		must[Entry](t)(tab.Lookup(ctx, KindContext, fresh.Handle, "ann"))
	})
}

func TestRunningTasksLive24Hours(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx := t.Context()
		e := must[Entry](t)(tab.Task(ctx, "ann", "billing", "c1", "t1", true))
		time.Sleep(24*time.Hour - time.Minute)
		// A use near the end does not cut the task short, nor does a look-up early on.
		e = must[Entry](t)(tab.Lookup(ctx, KindTask, e.Handle, "ann"))
		time.Sleep(testTTL - time.Second)
		e = must[Entry](t)(tab.Lookup(ctx, KindTask, e.Handle, "ann"))

		// A change starts the day again.
		if err := tab.Update(ctx, e.Handle, func(e *Entry) error { e.Data = json.RawMessage(`{"n":1}`); return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23 * time.Hour)
		e = must[Entry](t)(tab.Peek(ctx, KindTask, e.Handle, "ann"))
		if !e.Running || string(e.Data) != `{"n":1}` {
			t.Fatalf("entry %+v", e)
		}

		// Settled: 15 minutes from then on, through Settle and through Task.
		if err := tab.Settle(ctx, e.Handle); err != nil {
			t.Fatal(err)
		}
		time.Sleep(testTTL - time.Second)
		e = must[Entry](t)(tab.Peek(ctx, KindTask, e.Handle, "ann"))
		if e.Running || e.TaskID != "t1" {
			t.Fatalf("entry %+v", e)
		}
		again := must[Entry](t)(tab.Task(ctx, "ann", "billing", "c2", "t1", true))
		if again.Handle != e.Handle || !again.Running || again.ContextID != "c2" {
			t.Fatalf("entry %+v", again)
		}
		time.Sleep(20 * time.Hour)
		again = must[Entry](t)(tab.Task(ctx, "ann", "billing", "", "t1", false))
		if again.Handle != e.Handle || again.Running || again.ContextID != "c2" || string(again.Data) != `{"n":1}` {
			t.Fatalf("entry %+v", again)
		}
		time.Sleep(testTTL + time.Second)
		_, err := tab.Lookup(ctx, KindTask, e.Handle, "ann")
		wantCode(t, err, CodeExpired)
		wantCode(t, tab.Settle(ctx, e.Handle), CodeExpired)
	})
}

func TestStates(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx := t.Context()
		data := json.RawMessage(`{"tool":"a2a_send_message"}`)
		s := must[Entry](t)(tab.State(ctx, "ann", "billing", data, time.Minute))
		data[2] = 'X'
		got := must[Entry](t)(tab.Peek(ctx, KindState, s.Handle, "ann"))
		if string(got.Data) != `{"tool":"a2a_send_message"}` {
			t.Errorf("the table shares data with its caller: %s", got.Data)
		}
		got.Data[2] = 'Y'
		time.Sleep(50 * time.Second)
		if got = must[Entry](t)(tab.Lookup(ctx, KindState, s.Handle, "ann")); got.Data[2] != 't' {
			t.Errorf("an entry shares data with the table: %s", got.Data)
		}
		// Nobody else uses it up, whoever owns it once.
		_, err := tab.Take(ctx, s.Handle, "bob")
		wantCode(t, err, CodeUnknown)
		_, err = tab.Take(ctx, "cx_"+s.Handle[3:], "ann")
		wantCode(t, err, CodeWrongKind)
		must[Entry](t)(tab.Take(ctx, s.Handle, "ann"))
		_, err = tab.Take(ctx, s.Handle, "ann")
		wantCode(t, err, CodeUsed)
		_, err = tab.Peek(ctx, KindState, s.Handle, "ann")
		wantCode(t, err, CodeUsed)
		_, err = tab.Take(ctx, s.Handle, "bob")
		wantCode(t, err, CodeUnknown)

		// Use does not lengthen a state's life, nor does a change.
		s = must[Entry](t)(tab.State(ctx, "ann", "billing", nil, time.Minute))
		time.Sleep(40 * time.Second)
		must[Entry](t)(tab.Lookup(ctx, KindState, s.Handle, "ann"))
		if err := tab.Update(ctx, s.Handle, func(e *Entry) error { e.Data = json.RawMessage(`1`); return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(21 * time.Second)
		_, err = tab.Take(ctx, s.Handle, "ann")
		wantCode(t, err, CodeExpired)

		s = must[Entry](t)(tab.State(ctx, "ann", "billing", nil, 0))
		if left := time.Until(s.Expires); left < DefaultStateTTL-time.Second || left > DefaultStateTTL {
			t.Errorf("expires in %s, want %s", left, DefaultStateTTL)
		}
	})
}

func TestDeleteAndEach(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx := t.Context()
		c := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
		want := map[string]bool{}
		for i := range 7 {
			want[must[Entry](t)(tab.Task(ctx, "ann", "billing", "c1", fmt.Sprint("t", i), i%2 == 0)).Handle] = true
		}
		must[Entry](t)(tab.State(ctx, "ann", "billing", nil, 0))
		got := map[string]bool{}
		if err := tab.Each(ctx, KindTask, func(e Entry) bool {
			if e.Kind != KindTask || got[e.Handle] {
				t.Errorf("Each gave %+v", e)
			}
			got[e.Handle] = true
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("Each gave %d of %d", len(got), len(want))
		}
		n := 0
		if err := tab.Each(ctx, KindTask, func(Entry) bool { n++; return n < 3 }); err != nil || n != 3 {
			t.Errorf("Each went on after false: %d, %v", n, err)
		}

		for range 2 {
			if err := tab.Delete(ctx, c.Handle); err != nil {
				t.Fatal(err)
			}
		}
		_, err := tab.Lookup(ctx, KindContext, c.Handle, "ann")
		wantCode(t, err, CodeUnknown)
		if again := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1")); again.Handle == c.Handle {
			t.Error("a deleted handle came back")
		}
		wantCode(t, tab.Delete(ctx, "x"), CodeMalformed)
	})
}

// Run drops expired entries with their data, and ends with its context.
func TestRunSweeps(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- tab.Run(ctx) }()
		for i := range 50 {
			must[Entry](t)(tab.Context(t.Context(), "ann", "billing", fmt.Sprint("c", i)))
		}
		kept := must[Entry](t)(tab.Task(t.Context(), "ann", "billing", "c1", "t1", true))
		time.Sleep(testTTL + grace + time.Minute)
		if n := must[int](t)(tab.Len(t.Context())); n != 1 {
			t.Errorf("%d entries after their time, want 1", n)
		}
		must[Entry](t)(tab.Lookup(t.Context(), KindTask, kept.Handle, "ann"))
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
