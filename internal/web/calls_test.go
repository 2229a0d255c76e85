package web

import (
	"fmt"
	"sync"
	"testing"
)

func TestCallsKeepTheLatestOfEachPrincipal(t *testing.T) {
	t.Parallel()
	c := NewCalls()
	if got := c.Of("nobody"); got != nil {
		t.Errorf("an unknown principal has %v", got)
	}
	for i := range callsKept + 7 {
		c.Add("a", Call{Tool: fmt.Sprintf("tool%d", i)})
		got := c.Of("a")
		if want := min(i+1, callsKept); len(got) != want {
			t.Fatalf("after %d calls %d are kept, want %d", i+1, len(got), want)
		}
		for j, call := range got { // the newest first, without a gap
			if want := fmt.Sprintf("tool%d", i-j); call.Tool != want || call.ID != uint64(i-j+1) {
				t.Fatalf("after %d calls: [%d] is %s, ID %d; want %s", i+1, j, call.Tool, call.ID, want)
			}
		}
	}
	c.Add("b", Call{Tool: "other"})
	if got := c.Of("b"); len(got) != 1 || got[0].Tool != "other" {
		t.Errorf("b has %v", got)
	}
	if got := c.Of("a"); len(got) != callsKept || got[0].Tool == "other" {
		t.Errorf("a sees b's call: %v", got[0])
	}
	got := c.Of("b")
	got[0].Tool = "changed"
	if c.Of("b")[0].Tool != "other" {
		t.Error("what Of returns is not the caller's own")
	}
}

// Tokens of an authorization server name any number of principals.
func TestCallsForgetTheSilent(t *testing.T) {
	t.Parallel()
	c := NewCalls()
	name := func(i int) string { return fmt.Sprint("p", i) }
	for i := range principalsKept {
		c.Add(name(i), Call{})
	}
	c.Add(name(0), Call{}) // p1 is now the most silent
	for i := range callsKept {
		c.Add(name(2), Call{Tool: fmt.Sprint(i)})
	}
	c.Add("new", Call{})
	if len(c.rings) != principalsKept {
		t.Errorf("%d principals are kept", len(c.rings))
	}
	for principal, want := range map[string]int{"new": 1, name(0): 2, name(1): 0, name(2): callsKept, name(3): 1} {
		if got := len(c.Of(principal)); got != want {
			t.Errorf("%s has %d calls, want %d", principal, got, want)
		}
	}
}

func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	c := NewCalls()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 200 {
				c.Add(fmt.Sprint("p", i%3), Call{})
				if got := c.Of("p0"); len(got) > callsKept {
					t.Errorf("%d calls", len(got))
				}
			}
		})
	}
	all.Wait()
	if c.last != 1600 {
		t.Errorf("%d calls were counted", c.last)
	}
}

func BenchmarkCallsAdd(b *testing.B) {
	c := NewCalls()
	for b.Loop() {
		c.Add("local", Call{Tool: "a2a_send_message", Agent: "demo", Outcome: "result"})
	}
}
