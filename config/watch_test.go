package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// watching is a running watch with the means to wait for it instead of
// sleeping.
type watching struct {
	t       *testing.T
	changes chan struct{}
	looks   chan struct{}
}

// startWatch watches files until the test ends, and returns when nothing can
// be missed any more.
func startWatch(t *testing.T, poll time.Duration, files ...string) *watching {
	t.Helper()
	w := &watching{t: t, changes: make(chan struct{}, 1000), looks: make(chan struct{}, 1000)}
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	inner := watch{files: files, settle: 20 * time.Millisecond, poll: poll, onChange: func() { w.changes <- struct{}{} }}
	go func() {
		done <- inner.run(ctx, func() { close(ready) }, func() { w.looks <- struct{}{} })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-ready
	return w
}

const soon = 20 * time.Second

// changed waits for a change.
func (w *watching) changed(what string) {
	w.t.Helper()
	select {
	case <-w.changes:
	case <-time.After(soon):
		w.t.Fatalf("%s: not noticed", what)
	}
}

// unchanged waits for a look at the files that finds nothing new.
func (w *watching) unchanged(what string) {
	w.t.Helper()
	for len(w.looks) > 0 {
		<-w.looks
	}
	select {
	case <-w.looks:
	case <-time.After(soon):
		w.t.Fatalf("%s: nobody looked", what)
	}
	if len(w.changes) > 0 {
		w.t.Errorf("%s: taken for a change", what)
	}
}

func (w *watching) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watching) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

const never = time.Hour // no polling: only what is told counts

func TestWatchSaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, token := filepath.Join(dir, "agents.json"), filepath.Join(dir, "secrets", "token")
	if err := os.WriteFile(file, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWatch(t, never, file, token)

	w.write(file, "2")
	w.changed("a save in place")
	w.write(file+".tmp", "3")
	w.do(os.Rename(file+".tmp", file))
	w.changed("a save by rename")
	w.do(os.Rename(file, file+"~"))
	w.write(file, "4")
	w.changed("a save with a backup")
	w.do(os.Remove(file))
	w.changed("the end of the file")
	w.write(file, "5")
	w.changed("the file's return")

	w.write(file, "5")
	w.unchanged("a save without a change")
	w.write(filepath.Join(dir, "other"), "x")
	w.unchanged("another file")

	// A file that does not exist yet, in a folder that does not either.
	w.do(os.Mkdir(filepath.Dir(token), 0o700))
	w.write(token, "s")
	w.changed("a named file that appears")
	w.do(os.RemoveAll(filepath.Dir(token)))
	w.changed("the end of its folder")
	w.do(os.Mkdir(filepath.Dir(token)+".new", 0o700))
	w.write(filepath.Join(filepath.Dir(token)+".new", "token"), "t")
	w.do(os.Rename(filepath.Dir(token)+".new", filepath.Dir(token)))
	w.changed("a folder that is moved in")
	w.write(token, "u")
	w.changed("a save in the new folder")
}

// A folder that is replaced by another of the same name must be watched anew.
func TestWatchReplacedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conf := filepath.Join(dir, "conf")
	file := filepath.Join(conf, "agents.json")
	for i, d := range []string{conf, conf + ".2"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "agents.json"), fmt.Append(nil, i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := startWatch(t, never, file)
	w.do(os.Rename(conf, conf+".1"))
	w.do(os.Rename(conf+".2", conf))
	w.changed("another folder")
	for i := range 3 {
		w.write(file, fmt.Sprint("again ", i))
		w.changed("a save in it")
	}
	w.write(filepath.Join(conf+".1", "agents.json"), "old")
	w.write(filepath.Join(conf, "other"), "x")
	w.unchanged("a save in the old one")
}

// As Kubernetes mounts a ConfigMap: agents.json -> ..data/agents.json,
// ..data -> ..2026_1, and an update swaps ..data by rename.
func TestWatchKubernetes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	release := func(n int) {
		t.Helper()
		d := filepath.Join(dir, fmt.Sprint("..2026_", n))
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "agents.json"), fmt.Append(nil, n), 0o600); err != nil {
			t.Fatal(err)
		}
		tmp := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(filepath.Base(d), tmp); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		if n > 1 {
			if err := os.RemoveAll(filepath.Join(dir, fmt.Sprint("..2026_", n-1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	release(1)
	file := filepath.Join(dir, "agents.json")
	if err := os.Symlink(filepath.Join("..data", "agents.json"), file); err != nil {
		t.Fatal(err)
	}
	w := startWatch(t, never, file)
	for n := 2; n < 6; n++ {
		release(n)
		w.changed(fmt.Sprint("release ", n))
		for len(w.changes) > 0 { // the swap and the end of the old one may show apart
			<-w.changes
		}
	}
}

// A link to a file elsewhere, a link to a folder, and both swapped.
func TestWatchLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := &watching{t: t}
	for _, d := range []string{"a", "b", "conf"} {
		w.do(os.Mkdir(filepath.Join(dir, d), 0o700))
		w.write(filepath.Join(dir, d, "real.json"), d)
	}
	w.do(os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "current")))
	file := filepath.Join(dir, "conf", "agents.json")
	w.do(os.Symlink(filepath.Join("..", "current", "real.json"), file))
	w = startWatch(t, never, file)

	w.write(filepath.Join(dir, "a", "real.json"), "a2")
	w.changed("a save where the links end")
	w.do(os.Symlink(filepath.Join(dir, "b"), filepath.Join(dir, "current.new")))
	w.do(os.Rename(filepath.Join(dir, "current.new"), filepath.Join(dir, "current")))
	w.changed("a swapped link to a folder")
	w.write(filepath.Join(dir, "b", "real.json"), "b2")
	w.changed("a save behind the new link")
	w.do(os.Remove(file))
	w.changed("the end of the first link")
	w.do(os.Symlink(filepath.Join(dir, "a", "real.json"), file))
	w.changed("another first link")
	w.do(os.Remove(file))
	w.changed("its end")
	w.do(os.Symlink("agents.json", file)) // to itself
	w.write(filepath.Join(dir, "conf", "x"), "x")
	w.unchanged("a link in a circle")
}

// What nobody tells is found by looking now and then.
func TestWatchPolls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "agents.json")
	if err := os.WriteFile(file, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	changes := make(chan struct{}, 10)
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	w := watch{files: []string{file}, settle: time.Hour, poll: 10 * time.Millisecond, onChange: func() { changes <- struct{}{} }}
	done := make(chan error, 1)
	go func() { done <- w.run(ctx, func() { close(ready) }, func() {}) }()
	<-ready
	if err := os.WriteFile(file, []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changes:
	case <-time.After(soon):
		t.Error("not noticed")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The exported way in, with its real times.
func TestWatch(t *testing.T) {
	t.Parallel()
	if err := Watch(t.Context(), "", nil, func() {}); err == nil {
		t.Error("watched nothing")
	}
	file := filepath.Join(t.TempDir(), "agents.json")
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 10)
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, file, []string{file + ".key"}, func() { changed <- struct{}{} }) }()
	// Watch does not say when it has begun: write until it notices.
	deadline := time.After(soon)
	for i := 0; ; i++ {
		if err := os.WriteFile(file, fmt.Append(nil, i), 0o600); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(settle):
			continue
		case <-deadline:
			t.Fatal("not noticed")
		}
		break
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// What is changed after ready is seen, whenever that is.
func TestWatchReady(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agents.json")
	if err := os.WriteFile(file, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	ready, changed := make(chan struct{}), make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- WatchReady(ctx, file, nil, func() { close(ready) }, func() { changed <- struct{}{} })
	}()
	<-ready
	if err := os.WriteFile(file, []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-changed
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
