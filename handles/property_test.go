package handles

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tenant is one principal of the property test with all that it was given.
type tenant struct {
	name string

	mu   sync.Mutex // guards seen, which the other principal reads
	seen []string
}

func (p *tenant) note(e Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Handle != "" {
		p.seen = append(p.seen, e.Handle)
	}
}

func (p *tenant) pick(r *rand.Rand) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) == 0 {
		return mint(KindTask)
	}
	return p.seen[r.IntN(len(p.seen))]
}

// Two principals talk to the same agents with the same ids and know each
// other's handles. Whatever they do, at once and as time passes, neither ever
// gets an entry of the other's, an error that tells one apart from nothing, or
// a change to one.
func TestPrincipalsNeverMeet(t *testing.T) {
	t.Parallel()
	for _, s := range everyStore {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(4) {
				synctest.Test(t, func(t *testing.T) {
					tab := newTable(t, Options{Store: s.make(t)})
					ann, bob := &tenant{name: "ann"}, &tenant{name: "bob"}
					var wg sync.WaitGroup
					for i := range uint64(3) {
						wg.Go(func() { act(t, tab, ann, bob, rand.New(rand.NewPCG(seed, i))) })
						wg.Go(func() { act(t, tab, bob, ann, rand.New(rand.NewPCG(seed, 100+i))) })
					}
					wg.Wait()
					if m, ok := tab.store.(*Memory); ok {
						m.check(t)
					}
					if f, ok := tab.store.(*File); ok {
						f.mem.check(t)
					}
				})
			}
		})
	}
}

// act is one goroutine of a principal.
func act(t *testing.T, tab *Table, me, other *tenant, r *rand.Rand) {
	ctx := t.Context()
	own := func(e Entry, err error) {
		if err == nil && e.Handle != "" && e.Principal != me.name {
			t.Errorf("%s was given %+v", me.name, e)
		}
		var coded *Error
		if err != nil && !errors.As(err, &coded) {
			t.Errorf("uncoded error %v", err)
		}
		me.note(e)
	}
	for range 200 {
		agent, id := fmt.Sprint("agent", r.IntN(2)), fmt.Sprint(r.IntN(5))
		kind := []Kind{KindContext, KindTask, KindState}[r.IntN(3)]
		switch r.IntN(12) {
		case 0, 1:
			own(tab.Context(ctx, me.name, agent, id))
		case 2, 3:
			own(tab.Task(ctx, me.name, agent, id, id, r.IntN(2) == 0))
		case 4:
			own(tab.State(ctx, me.name, agent, json.RawMessage(`"`+me.name+`"`), time.Duration(r.IntN(600))*time.Second))
		case 5:
			own(tab.Lookup(ctx, kind, me.pick(r), me.name))
		case 6:
			own(tab.Take(ctx, me.pick(r), me.name))
		case 7:
			_ = tab.Settle(ctx, me.pick(r))
		case 8:
			_ = tab.Delete(ctx, me.pick(r))
		case 9:
			time.Sleep(time.Duration(r.IntN(1000)) * time.Second)
		default:
			steal(t, tab, me, other.pick(r), kind, r)
		}
	}
}

// steal uses another principal's handle in every way a caller can.
func steal(t *testing.T, tab *Table, me *tenant, handle string, kind Kind, r *rand.Rand) {
	ctx := t.Context()
	var err error
	switch r.IntN(3) {
	case 0:
		_, err = tab.Lookup(ctx, kind, handle, me.name)
	case 1:
		_, err = tab.Peek(ctx, kind, handle, me.name)
	case 2:
		kind = KindState
		_, err = tab.Take(ctx, handle, me.name)
	}
	want := CodeUnknown
	if real, _ := Parse(handle); real != kind {
		want = CodeWrongKind // the prefix says so to everybody
	}
	var coded *Error
	if !errors.As(err, &coded) || coded.Code != want {
		t.Errorf("%s used %s as %s: %v, want %s", me.name, handle, kind, err, want)
	}
}
