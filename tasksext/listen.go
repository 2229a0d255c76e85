package tasksext

import (
	"context"
	"sync"

	"a2agate/handles"
)

// Watch is one listener's view of some tasks (notifications/tasks). Take is
// used from one goroutine; Close waits for the goroutines of the watch.
type Watch struct {
	s      *Service
	call   Call
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{}

	accepted []string
	// mu guards due: the tasks whose state the listener has not taken yet, in
	// the order in which they changed.
	mu  sync.Mutex
	due []string
	// taken is the digest of what the listener has last taken of each task. It
	// is for Take only.
	taken map[string]string
}

// Listen follows those of ids that are c.Principal's until the watch is
// closed. The present state of each is due at once.
func (s *Service) Listen(c Call, ids []string) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{s: s, call: c, cancel: cancel, wake: make(chan struct{}, 1), taken: map[string]string{}}
	seen := map[string]bool{}
	for _, id := range ids {
		c.TaskID = id
		if seen[id] {
			continue
		}
		seen[id] = true
		r, entry, fault := s.record(ctx, c)
		if fault != nil {
			continue
		}
		w.accepted = append(w.accepted, id)
		w.push(id)
		w.wg.Go(func() { w.follow(ctx, r, entry) })
	}
	return w
}

// Accepted are the ids that are followed, in the order asked for.
func (w *Watch) Accepted() []string { return w.accepted }

// Wake receives when Take has something.
func (w *Watch) Wake() <-chan struct{} { return w.wake }

// Take returns the newest state of each task that is another than the last
// Take's: what has changed since a wake comes with that wake already.
func (w *Watch) Take(ctx context.Context) []Detail {
	w.mu.Lock()
	due := w.due
	w.due = nil
	w.mu.Unlock()
	details := make([]Detail, 0, len(due))
	for _, id := range due {
		c := w.call
		c.TaskID = id
		d, digest, err := w.s.peek(ctx, c)
		if err != nil || w.taken[id] == digest {
			continue
		}
		w.taken[id] = digest
		details = append(details, d)
	}
	return details
}

// Close ends the watch and waits for its goroutines.
func (w *Watch) Close() {
	w.cancel()
	w.wg.Wait()
}

func (w *Watch) push(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.due {
		if d == id {
			return
		}
	}
	w.due = append(w.due, id)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// follow pushes the task's id whenever its record or its agent's task has
// changed, until it has ended.
func (w *Watch) follow(ctx context.Context, r *record, entry handles.Entry) {
	var seq uint64
	last := ""
	for ctx.Err() == nil {
		w.s.whole(ctx, r)
		r.mu.Lock()
		watch, changed, over := r.watch, r.changed, r.memo.Settled != nil || r.closed
		if !over && watch != nil {
			seq = watch.Now().Seq
			w.s.detail(ctx, r, entry, w.call)
			over = r.memo.Settled != nil
		}
		digest := r.digest
		r.mu.Unlock()
		if digest != last {
			last = digest
			w.push(r.handle)
		}
		if over || watch == nil {
			return
		}
		next, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(changed, cancel)
		// An error is the end of ctx, or a change of the record: look again.
		_, _ = watch.Next(next, seq)
		stop()
		cancel()
	}
}

// peek is Get without asking the agent and without renewing the handle. The
// digest tells one state that a client sees from the next.
func (s *Service) peek(ctx context.Context, c Call) (d Detail, digest string, err error) {
	entry, err := s.o.Handles.Peek(ctx, handles.KindTask, c.TaskID, c.Principal)
	if err != nil {
		return Detail{}, "", err
	}
	s.mu.Lock()
	r := s.records[c.TaskID]
	s.mu.Unlock()
	if r == nil || !r.catchUp(entry) {
		return Detail{}, "", unknownTask(c.TaskID)
	}
	s.whole(ctx, r)
	r.mu.Lock()
	defer r.mu.Unlock()
	d = s.detail(ctx, r, entry, c)
	return d, r.digest, nil
}
