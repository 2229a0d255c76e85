package a2a

import "time"

// The places for upstream streams: FollowerOptions.MaxStreams at once, of which
// IdleStreams stay with tasks that nobody waits for.

// takeSlot makes room for one more upstream stream: a free place, or that of
// a stream nobody waits for.
func (f *Follower) takeSlot(s *source) bool {
	f.mu.Lock()
	full := len(f.sources) >= f.o.MaxStreams
	var others []*source
	if len(f.sources) >= min(f.o.IdleStreams, f.o.MaxStreams) {
		for o := range f.sources {
			others = append(others, o)
		}
	}
	f.mu.Unlock()
	if f.replaceIdle(s, others) {
		return true
	}
	if full {
		return false
	}
	f.mu.Lock()
	full = len(f.sources) >= f.o.MaxStreams
	if !full {
		f.sources[s] = struct{}{}
	}
	f.mu.Unlock()
	if !full {
		f.count(FollowerCounts{Streams: 1})
	}
	return !full
}

// replaceIdle gives s the place of one of others that nobody waits for.
func (f *Follower) replaceIdle(s *source, others []*source) bool {
	for _, o := range others {
		if !o.x.Load().idleStream(o) {
			continue
		}
		f.mu.Lock()
		_, there := f.sources[o]
		if there {
			delete(f.sources, o)
			f.sources[s] = struct{}{}
		}
		f.mu.Unlock()
		if there {
			o.evicted.Store(true)
			o.stop()
			return true
		}
	}
	return false
}

// trimIdle closes s, whose task nobody waits for any more, when there are more
// such streams than are kept.
func (f *Follower) trimIdle(s *source) {
	f.mu.Lock()
	others := make([]*source, 0, len(f.sources))
	for o := range f.sources {
		others = append(others, o)
	}
	f.mu.Unlock()
	idle := 0
	for _, o := range others {
		if o.x.Load().idleStream(o) {
			idle++
		}
	}
	if idle > f.o.IdleStreams && s.x.Load().idleStream(s) {
		s.evicted.Store(true)
		s.stop()
	}
}

func (f *Follower) freeSlot(s *source) {
	f.mu.Lock()
	_, there := f.sources[s]
	delete(f.sources, s)
	f.mu.Unlock()
	if there {
		f.count(FollowerCounts{Streams: -1})
	}
}

// idleStream reports whether s may be closed in favour of another: its task
// can be polled and nobody waits for it.
func (x *exchange) idleStream(s *source) bool {
	x.mu.Lock()
	defer x.unlock()
	return x.src == s && s.open && x.taskID != "" && x.graceAt.IsZero() && !x.hot(time.Now())
}
