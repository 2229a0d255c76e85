package handles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// realRedis starts the redis-server of this machine on a Unix socket, and
// skips the test where there is none.
func realRedis(t *testing.T) (url string) {
	t.Helper()
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on this machine")
	}
	dir, err := os.MkdirTemp("", "redis") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(dir, "s")
	cmd := exec.Command(bin, "--port", "0", "--unixsocket", sock, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", sock)
		if err == nil {
			conn.Close()
			return "unix://" + sock
		}
	}
	t.Fatal("redis-server does not listen")
	return ""
}

// replicas runs test with two gateways on one server: the fake one in a
// bubble, and the real one where it is installed.
func replicas(t *testing.T, test func(t *testing.T, a, b *Table)) {
	t.Helper()
	t.Run("fake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeRedis(t)
			test(t, newTable(t, Options{Store: f.open(t)}), newTable(t, Options{Store: f.open(t)}))
		})
	})
	t.Run("real", func(t *testing.T) {
		url := realRedis(t)
		test(t, newTable(t, Options{Store: openReal(t, url)}), newTable(t, Options{Store: openReal(t, url)}))
	})
}

func openReal(t *testing.T, url string) *Redis {
	t.Helper()
	r, err := OpenRedis(t.Context(), RedisOptions{URL: url, Prefix: "test*[1]:"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplicasShareEverything(t *testing.T) {
	t.Parallel()
	replicas(t, func(t *testing.T, a, b *Table) {
		ctx := t.Context()
		c := must[Entry](t)(a.Context(ctx, "ann", "billing", "c1"))
		if again := must[Entry](t)(b.Context(ctx, "ann", "billing", "c1")); again.Handle != c.Handle {
			t.Error("two handles for one context")
		}
		task := must[Entry](t)(a.Task(ctx, "ann", "billing", "c1", "t1", true))
		got := must[Entry](t)(b.Lookup(ctx, KindTask, task.Handle, "ann"))
		if left := time.Until(got.Expires); left < 24*time.Hour-time.Minute || left > 24*time.Hour {
			t.Errorf("expires in %s after a look-up", left)
		}
		if err := b.Settle(ctx, task.Handle); err != nil {
			t.Fatal(err)
		}
		got = must[Entry](t)(a.Lookup(ctx, KindTask, task.Handle, "ann"))
		if left := time.Until(got.Expires); got.Running || left < testTTL-time.Minute || left > testTTL {
			t.Errorf("after settling: running %v, expires in %s", got.Running, left)
		}
		_, err := b.Lookup(ctx, KindTask, task.Handle, "bob")
		wantCode(t, err, CodeUnknown)

		s := must[Entry](t)(a.State(ctx, "ann", "billing", json.RawMessage(`{"a":1}`), time.Minute))
		if e := must[Entry](t)(b.Take(ctx, s.Handle, "ann")); string(e.Data) != `{"a":1}` {
			t.Errorf("data %s", e.Data)
		}
		_, err = a.Take(ctx, s.Handle, "ann")
		wantCode(t, err, CodeUsed)

		if n := must[int](t)(a.Len(ctx)); n != 2 {
			t.Errorf("Len = %d, want 2", n)
		}
		if err := a.Delete(ctx, c.Handle); err != nil {
			t.Fatal(err)
		}
		_, err = b.Lookup(ctx, KindContext, c.Handle, "ann")
		wantCode(t, err, CodeUnknown)
	})
}

func TestReplicasAtOnce(t *testing.T) {
	t.Parallel()
	replicas(t, func(t *testing.T, a, b *Table) {
		ctx := t.Context()
		both := func(fn func(tab *Table)) {
			var wg sync.WaitGroup
			for range 8 {
				for _, tab := range []*Table{a, b} {
					wg.Go(func() { fn(tab) })
				}
			}
			wg.Wait()
		}
		var handles sync.Map
		both(func(tab *Table) {
			handles.Store(must[Entry](t)(tab.Task(ctx, "ann", "billing", "c1", "t1", true)).Handle, true)
		})
		n := 0
		var handle string
		handles.Range(func(k, _ any) bool { n++; handle = k.(string); return true })
		if n != 1 {
			t.Fatalf("%d handles for one task", n)
		}
		both(func(tab *Table) {
			if err := tab.Update(ctx, handle, func(e *Entry) error {
				n := 0
				_ = json.Unmarshal(e.Data, &n)
				e.Data = fmt.Append(nil, n+1)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		if e := must[Entry](t)(a.Peek(ctx, KindTask, handle, "ann")); string(e.Data) != "16" {
			t.Errorf("16 updates left %s", e.Data)
		}
		s := must[Entry](t)(a.State(ctx, "ann", "billing", nil, 0))
		var won, got atomic.Int32
		both(func(tab *Table) {
			if _, err := tab.Take(ctx, s.Handle, "ann"); err == nil {
				won.Add(1)
			} else if !errors.Is(err, ErrUsed) {
				t.Error(err)
			}
			if _, ok := tab.Acquire(handle); ok {
				got.Add(1)
			}
		})
		if won.Load() != 1 || got.Load() != 1 {
			t.Errorf("%d took the state, %d got the handle", won.Load(), got.Load())
		}
	})
}

// A gateway that dies with a lock blocks the others for the lease only, and
// one that comes back late does not break the lock of the next.
func TestRedisLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRedis(t)
		a, b := newTable(t, Options{Store: f.open(t)}), newTable(t, Options{Store: f.open(t)})
		h := mint(KindTask)
		late, ok := a.Acquire(h)
		if !ok {
			t.Fatal("busy")
		}
		if _, ok := b.Acquire(h); ok {
			t.Fatal("two have one handle")
		}
		time.Sleep(lease + time.Second)
		if _, ok := b.Acquire(h); !ok {
			t.Fatal("a dead gateway's lock stays")
		}
		late()
		if _, ok := a.Acquire(h); ok {
			t.Error("a late release broke another's lock")
		}
	})
}

func TestRedisRaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFakeRedis(t)
		a, b := newTable(t, Options{Store: f.open(t)}), newTable(t, Options{Store: f.open(t)})

		// Between a's WATCH and its EXEC, b makes the handle.
		var other Entry
		f.set(func() {
			f.before["exec"] = func() { other = must[Entry](t)(b.Context(ctx, "ann", "billing", "c1")) }
		})
		if e := must[Entry](t)(a.Context(ctx, "ann", "billing", "c1")); e.Handle != other.Handle || other.Handle == "" {
			t.Errorf("two handles for one context: %q, %q", e.Handle, other.Handle)
		}
		// Between a's read and its write, b changes the entry.
		task := must[Entry](t)(a.Task(ctx, "ann", "billing", "c1", "t1", true))
		f.set(func() {
			f.before["exec"] = func() {
				if err := b.Update(ctx, task.Handle, func(e *Entry) error { e.Data = json.RawMessage(`1`); return nil }); err != nil {
					t.Error(err)
				}
			}
		})
		seen := ""
		if err := a.Update(ctx, task.Handle, func(e *Entry) error { seen = string(e.Data); e.Running = false; return nil }); err != nil {
			t.Fatal(err)
		}
		if e := must[Entry](t)(b.Peek(ctx, KindTask, task.Handle, "ann")); seen != "1" || string(e.Data) != "1" || e.Running {
			t.Errorf("saw %q, left %+v", seen, e)
		}
		// Between a's look and its GETDEL, b takes the state.
		s := must[Entry](t)(a.State(ctx, "ann", "billing", nil, 0))
		f.set(func() { f.before["getdel"] = func() { must[Entry](t)(b.Take(ctx, s.Handle, "ann")) } })
		_, err := a.Take(ctx, s.Handle, "ann")
		wantCode(t, err, CodeUsed)
	})
}

func TestRedisTroubles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFakeRedis(t)
		tab := newTable(t, Options{Store: f.open(t)})
		c := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
		s := must[Entry](t)(tab.State(ctx, "ann", "billing", nil, 0))

		f.set(func() { f.oom = true })
		_, err := tab.State(ctx, "ann", "billing", nil, 0)
		wantCode(t, err, CodeFull)
		_, err = tab.Context(ctx, "ann", "billing", "c2")
		wantCode(t, err, CodeFull)
		must[Entry](t)(tab.Lookup(ctx, KindContext, c.Handle, "ann"))
		f.set(func() { f.oom = false })

		f.set(func() { f.down = true })
		_, err = tab.Lookup(ctx, KindContext, c.Handle, "ann")
		wantCode(t, err, CodeStore)
		_, err = tab.Take(ctx, s.Handle, "ann")
		wantCode(t, err, CodeStore)
		_, err = tab.Context(ctx, "ann", "billing", "c1")
		wantCode(t, err, CodeStore)
		_, err = tab.Len(ctx)
		wantCode(t, err, CodeStore)
		wantCode(t, tab.Each(ctx, KindTask, func(Entry) bool { return true }), CodeStore)
		if _, ok := tab.Acquire(c.Handle); ok {
			t.Error("a lock without a server")
		}
		f.set(func() { f.down = false })
		time.Sleep(2 * time.Second) // the client knocks once a second
		must[Entry](t)(tab.Lookup(ctx, KindContext, c.Handle, "ann"))
		must[Entry](t)(tab.Take(ctx, s.Handle, "ann"))

		// What somebody else wrote under our name is an error, not an entry.
		h := mint(KindTask)
		f.set(func() { f.keys["a2agate:h:"+h] = fakeValue{value: `{"handle":"x"}`} })
		_, err = tab.Lookup(ctx, KindTask, h, "ann")
		wantCode(t, err, CodeStore)
	})
}

func TestOpenRedisErrors(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:6379", "http://user:hunter2@x", "redis://user:hunter2@127.0.0.1:99999999"} {
		_, err := OpenRedis(t.Context(), RedisOptions{URL: url, dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("refused")
		}})
		if err == nil || !strings.HasPrefix(err.Error(), "store.url: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("OpenRedis(%q): %v", url, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRedis(t)
		f.down = true
		_, err := OpenRedis(t.Context(), RedisOptions{URL: "redis://:hunter2@cache:6379", dial: f.dial})
		if err == nil || !strings.Contains(err.Error(), "cache:6379 does not answer") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("OpenRedis: %v", err)
		}
	})
}

// A real server keeps the table's promises about time. Keys are aged by hand
// instead of waiting for them.
func TestRealRedisTime(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := openReal(t, realRedis(t))
	tab := newTable(t, Options{Store: r})
	age := func(key string, left time.Duration) {
		t.Helper()
		if ok, err := r.db.PExpire(ctx, key, grace+left).Result(); !ok || err != nil {
			t.Fatalf("%s: %v, %v", key, ok, err)
		}
	}
	lives := func(key string) time.Duration {
		t.Helper()
		return must[time.Duration](t)(r.db.PTTL(ctx, key).Result()) - grace
	}
	c := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
	s := must[Entry](t)(tab.State(ctx, "ann", "billing", nil, time.Hour))
	task := must[Entry](t)(tab.Task(ctx, "ann", "billing", "c1", "t1", true))
	entry, bind := r.entryKey(c.Handle), r.bindKey(c.key())

	age(entry, time.Minute)
	age(bind, time.Minute)
	must[Entry](t)(tab.Peek(ctx, KindContext, c.Handle, "ann"))
	if left := lives(entry); left > time.Minute {
		t.Errorf("a peek lengthened a life to %s", left)
	}
	must[Entry](t)(tab.Lookup(ctx, KindContext, c.Handle, "ann"))
	if e, b := lives(entry), lives(bind); e <= testTTL-time.Minute || e > testTTL || b <= testTTL-time.Minute {
		t.Errorf("after a use the entry lives %s, its binding %s", e, b)
	}
	must[Entry](t)(tab.Lookup(ctx, KindTask, task.Handle, "ann"))
	if left := lives(r.entryKey(task.Handle)); left <= 24*time.Hour-time.Minute {
		t.Errorf("a use shortened the life of a running task to %s", left)
	}

	age(r.entryKey(s.Handle), 0)
	_, err := tab.Take(ctx, s.Handle, "ann")
	wantCode(t, err, CodeExpired)
	age(entry, 0)
	_, err = tab.Lookup(ctx, KindContext, c.Handle, "ann")
	wantCode(t, err, CodeExpired)
	if again := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1")); again.Handle == c.Handle {
		t.Error("an expired handle came back")
	}
	seen := 0
	if err := tab.Each(ctx, KindTask, func(Entry) bool { seen++; return true }); err != nil || seen != 1 {
		t.Errorf("Each gave %d, %v", seen, err)
	}
}

func TestRealRedisFull(t *testing.T) {
	t.Parallel()
	url := realRedis(t)
	r := openReal(t, url)
	tab := newTable(t, Options{Store: r})
	c := must[Entry](t)(tab.Context(t.Context(), "ann", "billing", "c1"))
	if err := r.db.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := tab.Context(t.Context(), "ann", "billing", "c2")
	wantCode(t, err, CodeFull)
	_, err = tab.State(t.Context(), "ann", "billing", nil, 0)
	wantCode(t, err, CodeFull)
	must[Entry](t)(tab.Lookup(t.Context(), KindContext, c.Handle, "ann"))
}
