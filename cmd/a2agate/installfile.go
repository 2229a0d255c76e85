package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// backupSuffix is what the file as it was before is named by.
const backupSuffix = ".a2agate.bak"

// maxClientFile bounds what is read of a client's file, 64 MiB.
const maxClientFile = 64 << 20

// edited says what became of a file.
type edited struct {
	path    string // where it really is
	changed bool
	backup  string // of what it was before, "" for none
}

// editFile changes a file by edit, which gets nil for one that does not exist
// and may be called again when another program has written in between. The
// change is atomic: the file is the old or the new one, whole, with its mode;
// a link stays a link. A file that edit leaves without a byte is taken away.
func editFile(path string, edit func(old []byte) ([]byte, error)) (edited, error) {
	target, mode, err := locate(path)
	if err != nil {
		return edited{path: path}, err
	}
	r := edited{path: target}
	for range 5 {
		old, exists, err := readClientFile(target)
		if err != nil {
			return r, err
		}
		text, err := edit(old)
		if err != nil || bytes.Equal(text, old) {
			return r, err
		}
		if exists && mode&0o200 == 0 {
			return r, errors.New("the file is read-only; make it writable first")
		}
		written, err := r.replace(old, text, exists, mode)
		if err != nil || written {
			r.changed = err == nil
			return r, err
		}
	}
	return r, errors.New("another program keeps writing this file; close the client and try again")
}

// replace writes the new text, unless the file is not the old one any more.
func (r *edited) replace(old, text []byte, exists bool, mode fs.FileMode) (written bool, err error) {
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		return false, err
	}
	backup := r.path + backupSuffix
	restored := false
	if exists {
		before, err := os.ReadFile(backup)
		restored = err == nil && bytes.Equal(before, text)
		switch {
		case restored: // nothing of ours will be left, so nothing is to be kept
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false, err
		default:
			if err := writeAtomic(backup, old, r.path, mode); err != nil {
				return false, fmt.Errorf("the file as it was cannot be kept: %w", err)
			}
			r.backup = backup
		}
	}
	now, still, err := readClientFile(r.path)
	if err != nil || still != exists || !bytes.Equal(now, old) {
		return false, err
	}
	switch {
	case len(text) == 0 && !restored: // install had made the file
		err = os.Remove(r.path)
	default:
		err = writeAtomic(r.path, text, r.path, mode)
	}
	if err == nil && restored {
		_ = os.Remove(backup)
	}
	return err == nil, err
}

// locate follows links to the file itself, and returns its mode or that of a
// new one.
func locate(path string) (target string, mode fs.FileMode, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, 0o600, nil
	}
	if err != nil {
		return "", 0, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", 0, fmt.Errorf("this is a link that leads nowhere: %w", err)
		}
		if info, err = os.Stat(path); err != nil {
			return "", 0, err
		}
	}
	if !info.Mode().IsRegular() {
		return "", 0, errors.New("this is not a regular file")
	}
	if info.Size() > maxClientFile {
		return "", 0, fmt.Errorf("the file has %d bytes, more than the %d that are edited", info.Size(), maxClientFile)
	}
	return path, info.Mode().Perm(), nil
}

func readClientFile(path string) (text []byte, exists bool, err error) {
	text, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return text, err == nil, err
}

// writeAtomic writes a file under another name and then gives it its own. It
// gets the owner of like where that can be.
func writeAtomic(path string, text []byte, like string, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".a2agate-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails after the rename, as it should
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), sameOwner(f, like), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
