package a2a

import "context"

// Snapshot is what is known of a followed exchange at one moment. Its Task
// and Message are never changed afterwards.
type Snapshot struct {
	// Seq rises with every change and starts at 1 with the first thing known.
	Seq uint64
	// Task is the task as folded so far, nil before one is known.
	Task *Task
	// Message is the agent's direct reply, nil unless it gave one.
	Message *Message
	// Progress is the agent's latest status text, "" before one came.
	Progress string
	// Trouble says in plain words that the agent cannot be reached at the
	// moment and what is being done about it; "" when all is well.
	Trouble string
	// Err is why the exchange ended without an answer: the send failed, or
	// the task is lost (Lost). Always a *Error.
	Err error
	// Lost says that a task existed and can no longer be reached (design
	// section 4); Err then has the agent's last word.
	Lost bool
	// Done says that nothing more will come: a Message, a terminal task or Err.
	Done bool
	// Partial says that artifacts and history of the task are missing from
	// Task: they were dropped while nobody read it. Watch.Refresh asks the
	// agent for them.
	Partial bool
	// Notes says what was odd about how the answer arrived (a stream that
	// broke and was resumed, an empty stream sent again).
	Notes []string
}

// Follow is what tools and tasksext need of a Follower.
//
// A Watch that either method returns must be closed, or abandoned. With the
// last Watch on it an exchange is forgotten, unless Watch.Keep says otherwise;
// the agent works on. Errors are *Error: nothing was sent then.
type Follow interface {
	// Send sends one message and follows what comes of it. It returns at
	// once; what became of the send shows in the Watch. The exchange belongs
	// to the follower, not to ctx: a caller who goes away leaves it running
	// until it calls Cancel or Abandon. A message to a task that is followed
	// already goes into the same exchange; its Watch shows what comes after
	// the agent has taken the message.
	Send(ctx context.Context, req SendRequest) (*Watch, error)
	// Task joins the followed task of that id, and begins to follow it where
	// nobody does yet. Many watches share one upstream stream or poll.
	Task(ctx context.Context, taskID, contextID string) (*Watch, error)
}
