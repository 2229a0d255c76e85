// Package tasksext is the MCP tasks extension (io.modelcontextprotocol/tasks):
// the records of tool calls that go on after they were answered, and the
// methods that read, answer and cancel them.
//
// A task's id is the handle of the A2A task behind it, so whoever has one has
// both. The record adds what only the MCP side knows: when it was created,
// which questions are open under which keys, which answers are held back
// until the set is complete, and how the task ended. An ended MCP task never
// changes again, even where the agent's task goes on (after a login, say):
// the handle then goes on following it for a2a_get_task.
//
// Records keep no goroutine. A record that is read asks the follower; a
// record that nobody reads costs what its Watch costs.
package tasksext

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// The times of the extension (design section 4).
const (
	// DefaultPollInterval is what clients are told to wait between two reads.
	DefaultPollInterval = 2 * time.Second
	// runningTTL is the least ttl that a task which still works reports.
	runningTTL = 24 * time.Hour
	// refreshTimeout bounds how long tasks/get waits for the agent before it
	// answers with what is known.
	refreshTimeout = 5 * time.Second
	// cancelTimeout bounds how long tasks/cancel waits for the agent.
	cancelTimeout = 10 * time.Second
	// sweepAsks bounds how long one sweep asks agents for content that their
	// followers have dropped.
	sweepAsks = 10 * time.Second
	// sweepEvery is how often records of expired handles are let go.
	sweepEvery = time.Minute
)

// Options is what a Service is made of. All but the last three are needed.
type Options struct {
	Handles *handles.Table
	// Follow returns the follower of an agent; ok is false for an alias that
	// is not configured any more.
	Follow func(alias string) (a2a.Follow, bool)
	// Present makes of a snapshot the Result that the tool call would have
	// returned by waiting.
	Present func(ctx context.Context, entry handles.Entry, tool string, snap a2a.Snapshot) translate.Result
	// Title is the agent's name in questions to users, who must see whose
	// words they are; nil, or "" from it, takes the alias.
	Title func(alias string) string
	// PollInterval is DefaultPollInterval when 0.
	PollInterval time.Duration
	// Logger gets what could not be stored; nil is silent.
	Logger *slog.Logger
}

// Service keeps the task records. Its methods may be called concurrently.
type Service struct {
	o Options
	// mu guards records; it is never held while an agent or the store is
	// asked.
	mu      sync.Mutex
	records map[string]*record // by task handle
}

// New makes a Service without records; records of a durable handle store are
// taken up again when they are asked for.
func New(o Options) (*Service, error) {
	if o.Handles == nil || o.Follow == nil || o.Present == nil {
		return nil, errors.New("tasksext: Handles, Follow and Present are needed")
	}
	if o.PollInterval <= 0 {
		o.PollInterval = DefaultPollInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{o: o, records: map[string]*record{}}, nil
}

// Call is one tasks/get, tasks/update or tasks/cancel, freed of its wire.
type Call struct {
	Principal string
	// Agents limits the call to tasks of these agents; nil means all.
	Agents map[string]bool
	TaskID string
	// ElicitForm and ElicitURL are what this very request declared.
	ElicitForm bool
	ElicitURL  bool
}

// Detail is the full state of an MCP task as tasks/get shows it
// (tasks extension 3.2).
type Detail = translate.DetailedTask

// Run lets go of the records of expired handles until ctx is done. It returns
// nil, after every record's watch has been closed.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sweep(ctx)
		case <-ctx.Done():
			for _, r := range s.all() {
				r.close()
			}
			return nil
		}
	}
}

// Len is the number of records in memory.
func (s *Service) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

func (s *Service) all() []*record {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*record, 0, len(s.records))
	for _, r := range s.records {
		list = append(list, r)
	}
	return list
}

// sweep settles what has ended unseen, and drops what no handle leads to.
func (s *Service) sweep(ctx context.Context) {
	asking, enough := context.WithTimeout(ctx, sweepAsks)
	defer enough()
	for _, r := range s.all() {
		entry, err := s.o.Handles.Peek(ctx, handles.KindTask, r.handle, r.principal)
		var gone *handles.Error
		switch {
		case err == nil:
			s.sweepRecord(ctx, asking, r, entry)
		case errors.As(err, &gone) && gone.Code != handles.CodeStore:
			s.drop(r)
		}
	}
}

// sweepRecord settles what has ended unseen. What the follower has dropped of
// it is asked for while asking has time; else it is the next sweep's. A task
// that goes on stays without: nobody reads it.
func (s *Service) sweepRecord(ctx, asking context.Context, r *record, entry handles.Entry) {
	asked := false
	for {
		r.mu.Lock()
		lacks := false
		if r.memo.Settled == nil && r.watch != nil {
			now := r.watch.Now()
			lacks = now.Done && now.Partial
		}
		if !lacks || asked {
			s.settleEnded(ctx, r, entry)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		if asking.Err() != nil || !s.whole(asking, r) && asking.Err() != nil {
			return
		}
		asked = true
	}
}

// whole has the agent asked for what the follower has dropped of a task since
// nobody read it (a2a.Snapshot.Partial): to be called before the task may end,
// for then its result is made. It reports whether all is there; what is not had
// again within the time is noted in the snapshot. r.mu is not held.
func (s *Service) whole(ctx context.Context, r *record) bool {
	r.mu.Lock()
	watch, over := r.watch, r.memo.Settled != nil
	r.mu.Unlock()
	if over || watch == nil || !watch.Now().Partial {
		return true
	}
	ask, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	snap, _ := watch.Refresh(ask)
	return !snap.Partial
}

// drop forgets a record, unless another has taken its place.
func (s *Service) drop(r *record) {
	s.mu.Lock()
	if s.records[r.handle] == r {
		delete(s.records, r.handle)
	}
	s.mu.Unlock()
	r.close()
}

// Create stores an MCP task under the entry's handle and follows watch from
// now on; it implements tools.TaskSink. It takes over watch, also when it
// fails. The error is one of the handle store.
func (s *Service) Create(ctx context.Context, entry handles.Entry, watch *a2a.Watch, tool string) (translate.TaskInfo, error) {
	now := time.Now()
	r := newRecord(entry, watch, memo{Tool: tool, Created: now, Updated: now})
	if err := s.store(ctx, r, true); err != nil {
		r.close()
		return translate.TaskInfo{}, err
	}
	s.mu.Lock()
	before := s.records[r.handle]
	s.records[r.handle] = r
	s.mu.Unlock()
	if before != nil {
		before.close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	info := s.info(r, entry, translate.TaskWorking, statusMessage(watch.Now()))
	return info, nil
}

// record finds the record of a call's task, taking it up from the handle
// store where this process does not know it yet. Its handle's life is
// renewed.
func (s *Service) record(ctx context.Context, c Call) (*record, handles.Entry, *translate.Error) {
	entry, err := s.o.Handles.Lookup(ctx, handles.KindTask, c.TaskID, c.Principal)
	if err != nil {
		return nil, entry, errorFromHandle(c.TaskID, err)
	}
	if c.Agents != nil && !c.Agents[entry.Agent] {
		return nil, entry, unknownTask(c.TaskID)
	}
	s.mu.Lock()
	r := s.records[c.TaskID]
	s.mu.Unlock()
	if r != nil && r.catchUp(entry) {
		return r, entry, nil
	}
	if r != nil {
		s.drop(r)
	}
	return s.restore(ctx, entry)
}

// restore takes up a record that another process, or this one before a
// restart, has stored with the handle.
func (s *Service) restore(ctx context.Context, entry handles.Entry) (*record, handles.Entry, *translate.Error) {
	m, ok := memoFromData(entry.Data)
	if !ok {
		// A handle of a plain call, never an MCP task.
		return nil, entry, unknownTask(entry.Handle)
	}
	follow, ok := s.o.Follow(entry.Agent)
	if !ok {
		return nil, entry, agentGone(entry)
	}
	watch, err := follow.Task(ctx, entry.TaskID, entry.ContextID)
	if err != nil {
		return nil, entry, unavailable(entry, err)
	}
	r := newRecord(entry, watch, m)
	r.stored = entry.Data
	s.mu.Lock()
	if other := s.records[entry.Handle]; other != nil {
		s.mu.Unlock()
		watch.Close()
		return other, entry, nil
	}
	s.records[entry.Handle] = r
	s.mu.Unlock()
	return r, entry, nil
}

// store writes a record's memo to its handle. An end that another process has
// stored meanwhile stays, and becomes this record's: an ended task never
// changes, unless a later call begins it anew under the same handle. r.mu is
// held, unless nobody else has r yet.
func (s *Service) store(ctx context.Context, r *record, anew bool) error {
	m := r.memo
	var data json.RawMessage
	err := s.o.Handles.Update(ctx, r.handle, func(e *handles.Entry) error {
		m = r.memo
		m.Version++
		if was, ok := memoFromData(e.Data); ok {
			if was.Settled != nil && !anew {
				m, data = was, e.Data
				return nil
			}
			m.Version = max(m.Version, was.Version+1)
		}
		data = m.data()
		e.Data = data
		return nil
	})
	if err == nil {
		r.memo, r.stored = m, data
	}
	return err
}

// keep stores a record's memo where failing to must not fail the caller: the
// record in memory is right, and only a restart would miss the change.
func (s *Service) keep(ctx context.Context, r *record) {
	if err := s.store(context.WithoutCancel(ctx), r, false); err != nil {
		s.o.Logger.Warn("task record not stored", "agent", r.agent, "err", err)
	}
}
