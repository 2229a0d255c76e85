package tasksext

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/fixtures"
	"a2agate/translate"
)

func TestListenShowsEveryStateOnce(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("worksask 5 size")
		c := w.call(id)
		listen := w.svc.Listen(c, []string{id, "tk_aaaaaaaaaaaaaaaaaaaaaaaaaa", id})
		defer listen.Close()
		if got := listen.Accepted(); len(got) != 1 || got[0] != id {
			t.Fatalf("accepted %v", got)
		}
		var seen []string
		next := func() Detail {
			t.Helper()
			select {
			case <-listen.Wake():
			case <-time.After(time.Minute):
				t.Fatalf("nothing came after %v", seen)
			}
			list := listen.Take(t.Context())
			if len(list) == 0 {
				return Detail{}
			}
			d := list[0]
			shown := fmt.Sprintf("%s %q %s", d.Status, d.StatusMessage, keys(d))
			if len(seen) > 0 && seen[len(seen)-1] == shown {
				t.Errorf("shown twice: %s", shown)
			}
			seen = append(seen, shown)
			return d
		}
		if d := next(); d.Status != translate.TaskWorking {
			t.Fatalf("first %s", d.Status)
		}
		for d := next(); d.Status != translate.TaskInputRequired; d = next() {
			continue
		}
		w.update(c, `{"answer":{"action":"accept","content":{"answer":"large"}}}`)
		for d := next(); d.Status != translate.TaskCompleted; d = next() {
			continue
		}
		synctest.Wait()
		select {
		case <-listen.Wake():
			if more := listen.Take(t.Context()); len(more) != 0 {
				t.Errorf("after the end came %+v", more)
			}
		default:
		}
	})
}

// What has changed between a wake and its taking is shown by the taking, and
// the wake of the change itself has nothing more to show.
func TestListenTakesAChangeOnce(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 5 abc")
		synctest.Wait() // SUBMITTED shows as working too
		listen := w.svc.Listen(w.call(id), []string{id})
		defer listen.Close()
		var shown []string
		take := func() {
			for _, d := range listen.Take(t.Context()) {
				shown = append(shown, string(d.Status))
			}
		}
		take()
		synctest.Wait()
		take() // the same state, seen by the listener's own goroutine
		time.Sleep(time.Minute)
		take()
		synctest.Wait()
		take()
		if want := []string{"working", "completed"}; !slices.Equal(shown, want) {
			t.Errorf("shown %v, want %v", shown, want)
		}
	})
}
