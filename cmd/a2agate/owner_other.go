//go:build !unix

package main

import "os"

// sameOwner does nothing: here files have the owner of who made them.
func sameOwner(*os.File, string) error { return nil }
