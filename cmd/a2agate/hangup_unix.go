//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups receives SIGHUP until stop is called.
func hangups() (c <-chan os.Signal, stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGHUP)
	return ch, func() { signal.Stop(ch) }
}
