package config

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long a file must be quiet before it is looked at: an
	// editor saves in several steps.
	settle = 100 * time.Millisecond
	// patience bounds settle where something writes all the time.
	patience = time.Second
	// pollEvery is how often files are looked at without being told, for
	// network mounts and folders far above, which tell nothing.
	pollEvery = 10 * time.Second
	// maxLinks bounds a chain of symbolic links.
	maxLinks = 40
)

// Watch calls onChange after each change to what path or one of the files in
// also contain, one of them disappearing or coming back included, until ctx
// ends; then it returns nil. It compares contents, so a save without a change
// is none.
//
// Files may be replaced by rename, deleted and made anew, be reached through
// symbolic links that are swapped (as Kubernetes does with mounted
// configuration), and need not exist yet. onChange runs in the caller's
// goroutine, and is told neither which file nor whether it is in order. A
// change before Watch has begun is not seen.
func Watch(ctx context.Context, path string, also []string, onChange func()) error {
	return WatchReady(ctx, path, also, func() {}, onChange)
}

// WatchReady is Watch; ready is called once, from when on no change is missed.
// Whoever reads the files again then has missed none before it either.
func WatchReady(ctx context.Context, path string, also []string, ready, onChange func()) error {
	if path == "" {
		return errors.New("config: no file to watch")
	}
	w := watch{onChange: onChange, settle: settle, poll: pollEvery}
	for _, p := range append([]string{path}, also...) {
		abs, err := filepath.Abs(p)
		if err != nil {
			return err
		}
		w.files = append(w.files, abs)
	}
	return w.run(ctx, ready, func() {})
}

// watch is one running Watch; it is used by one goroutine.
type watch struct {
	files        []string
	onChange     func()
	settle, poll time.Duration

	notify *fsnotify.Watcher
	// dirs are the watched folders, with what stood there when they were
	// added: a folder that was replaced must be added again.
	dirs map[string]os.FileInfo
	last []fingerprint
}

// run is Watch; ready is called when nothing can be missed any more, looked
// after each look at the files.
func (w *watch) run(ctx context.Context, ready, looked func()) error {
	var events chan fsnotify.Event
	var failures chan error
	notify, err := fsnotify.NewWatcher()
	if err == nil {
		defer notify.Close()
		w.notify, w.dirs = notify, make(map[string]os.FileInfo)
		events, failures = notify.Events, notify.Errors
	} else { // out of inotify instances, say: polling does
		w.poll = min(w.poll, time.Second)
	}
	w.follow()
	w.last = w.look()
	ready()

	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	var first time.Time // of the events that were not looked into yet
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-failures: //nolint:errcheck // an overflow: look at everything
			quiet.Reset(w.settle)
			continue
		case <-events:
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			quiet.Reset(min(w.settle, max(0, first.Add(patience).Sub(now))))
			continue
		case <-quiet.C:
		case <-poll.C:
		}
		first = time.Time{}
		w.follow()
		if now := w.look(); !slices.Equal(now, w.last) {
			w.last = now
			w.onChange()
		}
		looked()
	}
}

// fingerprint is what a file contains; the zero value is no readable file.
type fingerprint struct {
	there bool
	sum   [sha256.Size]byte
}

func (w *watch) look() []fingerprint {
	prints := make([]fingerprint, len(w.files))
	for i, path := range w.files {
		prints[i] = fingerprintOf(path)
	}
	return prints
}

func fingerprintOf(path string) fingerprint {
	f, err := os.Open(path)
	if err != nil {
		return fingerprint{}
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxSize+1)); err != nil {
		return fingerprint{}
	}
	return fingerprint{there: true, sum: [sha256.Size]byte(h.Sum(nil))}
}

// follow watches the folders that decide what the files are, and no others.
// It goes over them again while there is something to do: what appeared below
// a folder before it was watched was not told.
func (w *watch) follow() {
	const rounds = 5
	for range rounds {
		if w.notify == nil || !w.followOnce() {
			return
		}
	}
}

func (w *watch) followOnce() (changed bool) {
	want := make(map[string]os.FileInfo)
	for _, path := range w.files {
		for _, dir := range deciders(path) {
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				want[dir] = info
			}
		}
	}
	for dir, was := range w.dirs {
		if now, ok := want[dir]; !ok || !os.SameFile(was, now) {
			_ = w.notify.Remove(dir) // it may be gone, and its watch with it
			delete(w.dirs, dir)
			changed = true
		}
	}
	for dir, info := range want {
		if _, ok := w.dirs[dir]; ok {
			continue
		}
		if w.notify.Add(dir) == nil { // else polling does
			w.dirs[dir] = info
			changed = true
		}
	}
	return changed
}

// deciders returns the folders in which a change may make path another file:
// those that hold path's symbolic links, and its own, or the nearest above it
// that exists.
func deciders(path string) []string {
	var dirs []string
	volume := filepath.VolumeName(path)
	at := volume + string(filepath.Separator) // resolved so far, no links in it
	rest := strings.Split(strings.TrimPrefix(path[len(volume):], string(filepath.Separator)), string(filepath.Separator))
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		info, err := os.Lstat(next)
		if err != nil {
			return append(dirs, at)
		}
		rest = rest[1:]
		if info.Mode()&os.ModeSymlink == 0 {
			if len(rest) == 0 {
				return append(dirs, at)
			}
			at = next
			continue
		}
		dirs = append(dirs, at)
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return dirs
		}
		parts := strings.Split(filepath.Clean(target), string(filepath.Separator))
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
			parts = parts[1:]
		}
		rest = append(parts, rest...)
	}
	return append(dirs, at)
}
