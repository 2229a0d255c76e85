package tasksext

import (
	"context"

	"a2agate/a2a"
)

// Rebind moves the tasks of an agent that go on to the follower that
// Options.Follow now returns for it: to be called after the agent's client
// was replaced. What clients see does not change by it. The old watch is kept
// until the new follower has heard of the task, and for good where the agent
// does not know the task any more: it may have moved, and the old one works
// on. Tasks of an agent that is not configured any more stay where they are.
func (s *Service) Rebind(ctx context.Context, alias string) {
	for _, r := range s.all() {
		if r.agent != alias {
			continue
		}
		r.mu.Lock()
		if !r.closed && r.memo.Settled == nil && r.watch != nil {
			s.move(ctx, r)
		}
		r.mu.Unlock()
	}
}

// move puts a record on the agent's present follower, or notes that it is to
// be moved when the answer that is on its way has arrived. r.mu is held.
func (s *Service) move(ctx context.Context, r *record) {
	r.moving = r.prior != nil
	if r.moving {
		return
	}
	follow, ok := s.o.Follow(r.agent)
	if !ok {
		return
	}
	watch, err := follow.Task(ctx, r.taskID, r.contextID)
	if err != nil {
		s.o.Logger.Warn("task stays with the replaced agent", "agent", r.agent, "err", err)
		return
	}
	if r.former == nil {
		r.former = r.watch
	} else { // replaced again before the task was heard of
		r.watch.Close()
	}
	r.watch = watch
	r.touch()
}

// now is the newest snapshot of the record's task. After a move it is the old
// follower's until the new one has the task. r.watch is not nil; mu is held.
func (r *record) now() a2a.Snapshot {
	snap := r.watch.Now()
	if r.former == nil {
		return snap
	}
	switch {
	case snap.Err != nil:
		r.watch.Close()
		r.watch, r.former = r.former, nil
		return r.watch.Now()
	case snap.Task != nil && snap.Trouble == "":
		r.former.Close()
		r.former = nil
		return snap
	}
	return r.former.Now()
}
