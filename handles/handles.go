// Package handles is the table of what must outlive a request: opaque
// handles that stand for A2A contexts and tasks, and the single-use states of
// questions. A2A ids stay behind the handles; every look-up checks the
// principal that the handle was made for, and answers the same for a handle
// that is unknown and for one that is somebody else's.
//
// Table holds the rules (expiry, principals, one handle for one task), Store
// the entries. The package imports nothing of this module.
package handles

import (
	"encoding/json"
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
	// Handle is the opaque id: prefix, then 128 random bits in lower case.
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
}
