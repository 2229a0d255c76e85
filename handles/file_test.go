package handles

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
)

func openTestFile(t testing.TB, path string) *File {
	t.Helper()
	f, err := OpenFile(path, Limits{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// childEnv makes the test binary write handles to the file it names until it
// is killed.
const childEnv = "HANDLES_CHILD_FILE"

func childMain() bool {
	path := os.Getenv(childEnv)
	if path == "" {
		return false
	}
	f, err := OpenFile(path, Limits{}, nil)
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	tab, err := New(Options{TTL: testTTL, Store: f})
	if err != nil {
		fmt.Println("error", err)
		return true
	}
	ctx := context.Background()
	for i := 0; ; i++ {
		e, err := tab.Task(ctx, "ann", "billing", "c1", fmt.Sprint("t", i), true)
		if err == nil {
			err = tab.Update(ctx, e.Handle, func(e *Entry) error { e.Data = fmt.Append(nil, i); return nil })
		}
		s, err2 := tab.State(ctx, "ann", "billing", nil, time.Hour)
		if err2 == nil && i%2 == 0 {
			_, err2 = tab.Take(ctx, s.Handle, "ann")
		}
		if err = errors.Join(err, err2); err != nil {
			fmt.Println("error", err)
			return true
		}
		fmt.Println(e.Handle, s.Handle)
	}
}

// Everything that a killed process had answered for is there again.
func TestFileSurvivesKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handles.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	in := bufio.NewScanner(out)
	for in.Scan() {
		if strings.HasPrefix(in.Text(), "error") {
			t.Fatal(in.Text())
		}
		if lines = append(lines, in.Text()); len(lines) == 20 {
			if err := cmd.Process.Kill(); err != nil { // SIGKILL
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if len(lines) < 20 {
		t.Fatalf("the child wrote %d lines", len(lines))
	}

	tab := newTable(t, Options{Store: openTestFile(t, path)})
	for i, line := range lines {
		task, state, ok := strings.Cut(line, " ")
		if !ok || len(state) != 29 {
			continue // cut off by the kill
		}
		e, err := tab.Lookup(t.Context(), KindTask, task, "ann")
		if err != nil || e.TaskID != fmt.Sprint("t", i) || string(e.Data) != fmt.Sprint(i) || !e.Running {
			t.Errorf("task %d: %+v, %v", i, e, err)
		}
		if again := must[Entry](t)(tab.Task(t.Context(), "ann", "billing", "c1", fmt.Sprint("t", i), true)); again.Handle != task {
			t.Errorf("task %d has a second handle after the restart", i)
		}
		_, err = tab.Take(t.Context(), state, "ann")
		if used := i%2 == 0; used != (err != nil) {
			t.Errorf("state %d, used %v: %v", i, used, err)
		}
	}
}

// Uses are written late, by Sweep and Close.
func TestFileKeepsUses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "handles.db")
		tab := must[*Table](t)(New(Options{TTL: testTTL, Store: openTestFile(t, path)}))
		c := must[Entry](t)(tab.Context(t.Context(), "ann", "billing", "c1"))
		gone := must[Entry](t)(tab.Context(t.Context(), "ann", "billing", "c2"))
		time.Sleep(testTTL - time.Minute)
		must[Entry](t)(tab.Lookup(t.Context(), KindContext, c.Handle, "ann"))
		time.Sleep(2 * time.Minute)
		if n, err := tab.store.Sweep(t.Context()); n != 1 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}

		tab = newTable(t, Options{Store: openTestFile(t, path)})
		must[Entry](t)(tab.Lookup(t.Context(), KindContext, c.Handle, "ann"))
		_, err := tab.Lookup(t.Context(), KindContext, gone.Handle, "ann")
		wantCode(t, err, CodeUnknown)
		if n := onDisk(t, tab.store.(*File)); n != 1 {
			t.Errorf("%d entries on disk, want 1", n)
		}
	})
}

func onDisk(t *testing.T, f *File) int {
	t.Helper()
	n := 0
	if err := f.db.View(func(tx *bbolt.Tx) error {
		n = tx.Bucket(entriesBucket).Stats().KeyN
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// A disk that fails costs the call, not what the table knows.
func TestFileThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handles.db")
	var fd *os.File
	f, err := openFile(path, Limits{}, nil, bbolt.Options{OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		fd2, err := os.OpenFile(name, flag, mode)
		fd = fd2
		return fd2, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	tab := must[*Table](t)(New(Options{TTL: testTTL, Store: f}))
	ctx := t.Context()
	c := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1"))
	task := must[Entry](t)(tab.Task(ctx, "ann", "billing", "c1", "t1", true))
	s := must[Entry](t)(tab.State(ctx, "ann", "billing", nil, 0))
	if err := fd.Close(); err != nil { // from here on every write fails
		t.Fatal(err)
	}

	_, err = tab.Context(ctx, "ann", "billing", "c2")
	wantCode(t, err, CodeStore)
	_, err = tab.State(ctx, "ann", "billing", nil, 0)
	wantCode(t, err, CodeStore)
	wantCode(t, tab.Settle(ctx, task.Handle), CodeStore)
	_, err = tab.Take(ctx, s.Handle, "ann")
	wantCode(t, err, CodeStore)
	wantCode(t, tab.Delete(ctx, c.Handle), CodeStore)

	// All is as it was.
	if n := must[int](t)(tab.Len(ctx)); n != 3 {
		t.Errorf("Len = %d, want 3", n)
	}
	must[Entry](t)(tab.Lookup(ctx, KindContext, c.Handle, "ann"))
	must[Entry](t)(tab.Peek(ctx, KindState, s.Handle, "ann"))
	if e := must[Entry](t)(tab.Lookup(ctx, KindTask, task.Handle, "ann")); !e.Running {
		t.Error("a failed update changed the entry")
	}
	if again := must[Entry](t)(tab.Context(ctx, "ann", "billing", "c1")); again.Handle != c.Handle {
		t.Error("a known context needs the disk")
	}
	if _, err := tab.store.Sweep(ctx); err == nil {
		t.Error("uses that cannot be written are no error")
	}
	if len(f.touched) == 0 {
		t.Error("uses that cannot be written are forgotten")
	}
	if f.mem.reserved != 0 {
		t.Errorf("%d places reserved for ever", f.mem.reserved)
	}
	if err := tab.Close(); err == nil {
		t.Error("Close of a broken file is no error")
	}
}

// The same for a full disk, which bbolt's MaxSize plays.
func TestFileFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handles.db")
	f, err := openFile(path, Limits{}, nil, bbolt.Options{MaxSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	tab := must[*Table](t)(New(Options{TTL: testTTL, Store: f}))
	data := json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)
	var held []string
	for range 100 {
		var e Entry
		if e, err = tab.State(t.Context(), "ann", "billing", data, 0); err != nil {
			break
		}
		held = append(held, e.Handle)
	}
	wantCode(t, err, CodeStore)
	if len(held) == 0 || must[int](t)(tab.Len(t.Context())) != len(held) {
		t.Fatalf("%d held", len(held))
	}
	for _, h := range held {
		must[Entry](t)(tab.Peek(t.Context(), KindState, h, "ann"))
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	// The disk has room again.
	tab = newTable(t, Options{Store: openTestFile(t, path)})
	for _, h := range held {
		if e := must[Entry](t)(tab.Take(t.Context(), h, "ann")); len(e.Data) != len(data) {
			t.Fatal("data lost")
		}
	}
}

func TestOpenFileErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	held := openTestFile(t, filepath.Join(dir, "held.db"))
	defer held.Close()
	newer := filepath.Join(dir, "newer.db")
	f := openTestFile(t, newer)
	if err := f.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(formatKey, []byte("2")) }); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "no", "such", "handles.db"): "does not exist; create it",
		filepath.Join(dir, "held.db"):                  "in use by another process",
		dir:                                            "make it writable, or give another path",
		write("text.db", strings.Repeat("not a database ", 1000)): "make it writable, or give another path",
		newer: `format "2" is not known to this version`,
	} {
		f, err := OpenFile(path, Limits{}, nil)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store.path: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("OpenFile(%s): %v\nwant %s", path, err, want)
		}
	}
	if runtime.GOOS == "linux" && os.Getuid() != 0 {
		path := write("readonly.db", "")
		if err := os.Chmod(path, 0o400); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(path, Limits{}, nil); err == nil {
			t.Error("an unwritable file was opened")
		}
	}
}

// One entry that cannot be read costs itself only, and stays on disk.
func TestFileSkipsBadEntries(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handles.db")
	f := openTestFile(t, path)
	tab := must[*Table](t)(New(Options{TTL: testTTL, Store: f}))
	c := must[Entry](t)(tab.Context(t.Context(), "ann", "billing", "c1"))
	bad := map[string]string{
		mint(KindTask):    `{"handle":`,
		mint(KindContext): `{"handle":"` + mint(KindContext) + `","kind":"context"}`,
		"nonsense":        `{"handle":"nonsense"}`,
		mint(KindState):   `[]`,
	}
	if err := f.db.Update(func(tx *bbolt.Tx) error {
		for k, v := range bad {
			if err := tx.Bucket(entriesBucket).Put([]byte(k), []byte(v)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	f = openTestFile(t, path)
	tab = newTable(t, Options{Store: f})
	must[Entry](t)(tab.Lookup(t.Context(), KindContext, c.Handle, "ann"))
	if n := must[int](t)(tab.Len(t.Context())); n != 1 {
		t.Errorf("Len = %d, want 1", n)
	}
	if n := onDisk(t, f); n != 1+len(bad) {
		t.Errorf("%d on disk", n)
	}
}

// A file over the bound loses its oldest settled entries, on disk too.
func TestFileKeepsToItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "handles.db")
		tab := must[*Table](t)(New(Options{TTL: testTTL, Store: openTestFile(t, path)}))
		var all []string
		for i := range 10 {
			all = append(all, must[Entry](t)(tab.Context(t.Context(), "ann", "billing", fmt.Sprint("c", i))).Handle)
			time.Sleep(time.Second)
		}
		if err := tab.Close(); err != nil {
			t.Fatal(err)
		}
		f := must[*File](t)(OpenFile(path, Limits{Max: 4}, nil))
		tab = newTable(t, Options{Store: f})
		for i, h := range all {
			_, err := tab.Peek(t.Context(), KindContext, h, "ann")
			if (err == nil) != (i >= 6) {
				t.Errorf("entry %d: %v", i, err)
			}
		}
		must[Entry](t)(tab.Context(t.Context(), "ann", "billing", "new"))
		if _, err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := onDisk(t, f); n != 4 {
			t.Errorf("%d on disk, want 4", n)
		}
	})
}

// BenchmarkFileCreate has sixteen callers at once, who share fsyncs.
func BenchmarkFileCreate(b *testing.B) {
	tab := newTable(b, Options{Store: openTestFile(b, filepath.Join(b.TempDir(), "handles.db"))})
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := tab.State(b.Context(), "ann", "billing", nil, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}
