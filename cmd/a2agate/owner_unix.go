//go:build unix

package main

import (
	"os"
	"syscall"
)

// sameOwner gives a file the owner of another, which matters to root only:
// nobody else owns files of others.
func sameOwner(f *os.File, like string) error {
	info, err := os.Stat(like)
	if err != nil || os.Geteuid() != 0 {
		return nil //nolint:nilerr // a file that is not there yet has no owner
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(st.Uid), int(st.Gid))
	}
	return nil
}
