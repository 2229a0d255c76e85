package a2a

import (
	"runtime"
	"sync"
	"testing"
)

// Tasks that are waited for and not by turns, more than there are places for
// polls: each place that is taken is given back as what it was taken for.
func TestPlacesForPollsAreGivenBack(t *testing.T) {
	f := NewFollower(FollowerOptions{MaxPolls: 16})
	type task struct {
		x    *exchange
		poll sync.Mutex // one poll at a time, as exchange.poll has it
	}
	var tasks [64]task
	for i := range tasks {
		tasks[i].x = newExchange(f)
		tasks[i].x.watches = 1 // its steps do nothing: it has no id
	}
	var work sync.WaitGroup
	for g := range 48 {
		work.Go(func() {
			for n := range 50_000 {
				one := &tasks[(g*7+n*5)%len(tasks)]
				if !one.poll.TryLock() {
					continue
				}
				if f.takePoll(one.x, (g+n/3)%3 == 0) {
					runtime.Gosched()
					f.pollDone(one.x)
				}
				one.poll.Unlock()
			}
		})
	}
	work.Wait()
	if f.polls != 0 || f.cold != 0 {
		t.Errorf("with no poll under way %d places are taken, %d of them for tasks that nobody waits for", f.polls, f.cold)
	}
}
