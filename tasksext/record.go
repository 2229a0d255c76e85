package tasksext

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// record is one MCP task of this process. What is fixed at its making is
// never changed; the rest is guarded by mu.
type record struct {
	handle, principal, agent, contextID, taskID string

	mu sync.Mutex
	// memo is what a restart must not lose, stored what of it the handle had
	// when it was last written or read here: another process that shares the
	// store may have written since.
	memo   memo
	stored json.RawMessage
	// watch follows the agent's task. After an answer it is the answer's
	// exchange and prior the watch from before, until the answer was taken.
	watch, prior *a2a.Watch
	// former is the watch on a follower that was replaced (Rebind), until
	// watch knows the task. moving says that the record is still on the
	// replaced follower, since an answer was on its way there.
	former *a2a.Watch
	moving bool
	// digest tells whether what a client sees has changed.
	digest string
	// changed ends, and is replaced, whenever listeners should look again.
	changed context.Context
	signal  context.CancelFunc
	closed  bool
}

// memo is stored as JSON with the handle.
type memo struct {
	// Version rises with every writing, whoever writes.
	Version int       `json:"version,omitempty"`
	Tool    string    `json:"tool"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// Question identifies what the agent asked last; Round counts questions,
	// so that no key is ever used twice.
	Question string `json:"question,omitempty"`
	Round    int    `json:"round,omitempty"`
	// Asks are the open question's asks with the keys that clients see; Held
	// are the answers that came so far, by that key.
	Asks []ask                       `json:"asks,omitempty"`
	Held map[string]translate.Answer `json:"held,omitempty"`
	// Answered is the question that has been answered in full: while the agent
	// still shows it, the task works.
	Answered string `json:"answered,omitempty"`
	// Trouble is why the last answer did not reach the agent.
	Trouble string   `json:"trouble,omitempty"`
	Settled *settled `json:"settled,omitempty"`
}

// ask is one ask under the key that clients see.
type ask struct {
	Key string        `json:"key"`
	Ask translate.Ask `json:"ask"`
}

// settled is how an MCP task ended; it never changes.
type settled struct {
	Status  translate.TaskStatus `json:"status"`
	Message string               `json:"message,omitempty"`
	// Result is the encoded CallToolResult of a completed task.
	Result json.RawMessage  `json:"result,omitempty"`
	Err    *translate.Error `json:"error,omitempty"`
}

func newRecord(entry handles.Entry, watch *a2a.Watch, m memo) *record {
	r := &record{
		handle: entry.Handle, principal: entry.Principal, agent: entry.Agent, contextID: entry.ContextID, taskID: entry.TaskID,
		memo: m, watch: watch,
	}
	r.changed, r.signal = context.WithCancel(context.Background())
	return r
}

// memoFromData reads a stored memo; ok is false where there is none.
func memoFromData(data json.RawMessage) (memo, bool) {
	var m memo
	if len(data) == 0 || json.Unmarshal(data, &m) != nil || m.Tool == "" {
		return memo{}, false
	}
	return m, true
}

// catchUp takes in what another process has stored since. It reports false
// for a record that had ended here and has been begun anew there.
func (r *record) catchUp(entry handles.Entry) (ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes.Equal(entry.Data, r.stored) {
		return true
	}
	// An entry that was read before this process wrote has an older version.
	m, ok := memoFromData(entry.Data)
	if !ok || m.Version <= r.memo.Version {
		return true
	}
	if r.memo.Settled != nil && m.Settled == nil {
		return false
	}
	r.memo, r.stored = m, entry.Data
	if m.Settled != nil {
		r.release()
	}
	r.touch()
	return true
}

// data encodes the memo. All its fields have an encoding.
func (m *memo) data() json.RawMessage {
	data, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return data
}

// touch wakes the listeners. mu is held.
func (r *record) touch() {
	r.signal()
	r.changed, r.signal = context.WithCancel(context.Background())
}

// close lets go of the watches; the agent's task goes on.
func (r *record) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	r.release()
	r.touch()
}

// release closes the watches. mu is held.
func (r *record) release() {
	for _, w := range []**a2a.Watch{&r.watch, &r.prior, &r.former} {
		if *w != nil {
			(*w).Close()
			*w = nil
		}
	}
}

// ask begins a new round: it names each ask with a key that this task has
// never used. mu is held.
func (r *record) ask(question string, asks []translate.Ask) {
	m := &r.memo
	m.Question, m.Answered, m.Held, m.Asks = question, "", nil, nil
	m.Round++
	for _, a := range asks {
		key := a.Key
		if m.Round > 1 {
			key += "#" + strconv.Itoa(m.Round)
		}
		for slices.ContainsFunc(m.Asks, func(o ask) bool { return o.Key == key }) {
			key += "+"
		}
		m.Asks = append(m.Asks, ask{Key: key, Ask: a})
	}
}

// open are the asks that have no answer yet, under their keys. mu is held.
func (r *record) open() []translate.Ask {
	var open []translate.Ask
	for _, a := range r.memo.Asks {
		if _, answered := r.memo.Held[a.Key]; !answered {
			shown := a.Ask
			shown.Key = a.Key
			open = append(open, shown)
		}
	}
	return open
}
