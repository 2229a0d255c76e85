package tasksext

import (
	"strings"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/fixtures"
	"a2agate/translate"
)

// Tasks whose content the follower has dropped, since nobody read them, end
// with all of it: by the sweep, for a listener, and for whoever asks.
func TestResultsAreWholeAfterContentWasDropped(t *testing.T) {
	for _, unary := range []bool{false, true} {
		inWorldWith(t, fixtures.Options{Unary: unary}, a2a.FollowerOptions{ContentBytes: 32 << 10}, func(w *world) {
			t := w.t
			var ids []string
			for range 8 {
				ids = append(ids, w.start("kb 16"))
			}
			time.Sleep(20 * time.Second)
			dropped := 0
			for _, r := range w.svc.all() {
				if r.watch.Now().Partial {
					dropped++
				}
			}
			if dropped < 5 {
				t.Fatalf("of %d tasks %d have lost their content, so this tests nothing", len(ids), dropped)
			}
			listener := w.svc.Listen(w.call(""), ids[:2])
			<-listener.Wake()
			time.Sleep(time.Second)
			details := listener.Take(t.Context())
			listener.Close()
			details = append(details, w.get(w.call(ids[2])))
			time.Sleep(2 * sweepEvery)
			if int(w.present.Load()) != len(ids) {
				t.Errorf("%d results were made", w.present.Load())
			}
			for _, id := range ids[3:] {
				details = append(details, w.get(w.call(id)))
			}
			if len(details) != len(ids) {
				t.Errorf("%d details", len(details))
			}
			for _, d := range details {
				r := w.result(d)
				if d.Status != translate.TaskCompleted || !strings.Contains(r.text(), "line 0000256") || strings.Contains(r.Structured.Note, "dropped") {
					t.Errorf("%s is %s: %d bytes, note %q", d.ID, d.Status, len(r.text()), r.Structured.Note)
				}
			}
		})
	}
}
