package tasksext

import (
	"context"
	"errors"
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

// Tasks that go on and that nobody reads stay without their content until they
// end: the sweep asks for it then, and a part at a time.
func TestTheSweepLeavesTasksThatGoOnWithoutContent(t *testing.T) {
	inWorldWith(t, fixtures.Options{}, a2a.FollowerOptions{ContentBytes: 32 << 10}, func(w *world) {
		t := w.t
		text := strings.Repeat("0123456789abcdef", 1<<10)
		w.agent.OnCommand("gather", func(_ context.Context, turn *fixtures.Turn) error {
			if err := turn.Artifact(fixtures.Artifact{ArtifactID: "a", Parts: []fixtures.Part{fixtures.Text(text)}}); err != nil {
				return err
			}
			for range 11 { // the stream stays open
				if err := errors.Join(turn.Sleep(30*time.Second), turn.Working("")); err != nil {
					return err
				}
			}
			return turn.Complete()
		})
		var ids []string
		for range 8 {
			ids = append(ids, w.start("gather"))
		}
		time.Sleep(20 * time.Second)
		before := len(w.agent.Calls("GetTask"))
		time.Sleep(4 * sweepEvery)
		if n := len(w.agent.Calls("GetTask")) - before; n > len(ids) {
			t.Errorf("%d GetTasks within %s for %d tasks that nobody reads", n, 4*sweepEvery, len(ids))
		}
		time.Sleep(3 * sweepEvery)
		if int(w.present.Load()) != len(ids) {
			t.Errorf("%d results were made", w.present.Load())
		}
		for _, id := range ids {
			d := w.get(w.call(id))
			if r := w.result(d); d.Status != translate.TaskCompleted || !strings.Contains(r.text(), text) || strings.Contains(r.Structured.Note, "dropped") {
				t.Errorf("%s is %s: %d bytes, note %q", d.ID, d.Status, len(r.text()), r.Structured.Note)
			}
		}
	})
}
