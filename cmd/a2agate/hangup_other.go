//go:build !unix

package main

import "os"

// hangups: there is no SIGHUP here.
func hangups() (c <-chan os.Signal, stop func()) { return nil, func() {} }
