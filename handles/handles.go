// Package handles is the table of what must outlive a request: opaque
// handles that stand for A2A contexts and tasks, and the single-use states of
// questions. A2A ids stay behind the handles; every look-up checks the
// principal that the handle was made for, and answers the same for a handle
// that is unknown and for one that is somebody else's.
//
// Table holds the rules (expiry, principals, one handle for one task), Store
// the entries. Three stores exist: Memory, File (the entries of Memory, also
// on disk) and Redis (shared by several gateways). The package imports nothing
// of this module and starts no goroutine; what must happen by itself happens
// in Table.Run.
package handles

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"
)

// Kind says what a handle stands for.
type Kind string

// The kinds of handle, each with the prefix its handles carry.
const (
	KindContext Kind = "context" // cx_
	KindTask    Kind = "task"    // tk_
	KindState   Kind = "state"   // rs_: an MCP requestState, single use
)

// Entry is what a handle stands for. Entries are values: changing one changes
// nothing in the table.
type Entry struct {
	// Handle is the opaque id: prefix, then at least 128 random bits in lower case.
	Handle string `json:"handle"`
	Kind   Kind   `json:"kind"`
	// Principal is who the handle was given to; nobody else can use it.
	Principal string `json:"principal"`
	// Agent is the alias of the agent that the ids belong to.
	Agent string `json:"agent"`
	// ContextID and TaskID are the agent's own ids, either may be empty.
	ContextID string `json:"contextId,omitempty"`
	TaskID    string `json:"taskId,omitempty"`
	// Created is when the handle was minted, Expires when it stops working
	// unless it is used or renewed before.
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	// Running says that the task still works or waits: it does not expire
	// before RunningTTL has passed since its last change.
	Running bool `json:"running,omitempty"`
	// Data is what the owner of the kind keeps with the entry (the binding of
	// a requestState, the record of an MCP task), opaque to this package.
	Data json.RawMessage `json:"data,omitempty"`
	// Rev counts the changes to the entry, uses not included. It belongs to
	// the table; a Store compares it to notice that somebody was quicker.
	Rev uint64 `json:"rev,omitempty"`
}

// clone returns e with its own copy of Data.
func (e Entry) clone() Entry {
	if e.Data != nil {
		e.Data = append(json.RawMessage(nil), e.Data...)
	}
	return e
}

// randomLen is the length of a handle behind its prefix: crypto/rand.Text
// returns 26 letters of base32, 130 bits.
const randomLen = 26

// prefixLen is the length of "cx_".
const prefixLen = 3

// prefix returns what the handles of a kind begin with, "" for no kind of ours.
func (k Kind) prefix() string {
	switch k {
	case KindContext:
		return "cx_"
	case KindTask:
		return "tk_"
	case KindState:
		return "rs_"
	}
	return ""
}

// mint returns a new handle of a kind. Handles are lower case throughout,
// because some clients fold the case of what a model repeats.
func mint(k Kind) string { return k.prefix() + strings.ToLower(rand.Text()) }

// Parse tells the kind of a handle from its form alone: a known prefix, then
// exactly 26 letters out of a-z and 2-7. Anything else is an *Error with
// CodeMalformed. That a handle parses says nothing about its existence.
func Parse(handle string) (Kind, error) {
	if len(handle) != prefixLen+randomLen {
		return "", malformed(handle)
	}
	var kind Kind
	switch handle[:prefixLen] {
	case "cx_":
		kind = KindContext
	case "tk_":
		kind = KindTask
	case "rs_":
		kind = KindState
	default:
		return "", malformed(handle)
	}
	for i := prefixLen; i < len(handle); i++ {
		if c := handle[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return "", malformed(handle)
		}
	}
	return kind, nil
}
