package tools

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"a2agate/fixtures"
	"a2agate/handles"
)

// slowStore takes its time over the next Create once it is armed.
type slowStore struct {
	handles.Store
	wait atomic.Int64
}

func (s *slowStore) Create(ctx context.Context, key handles.Key, e handles.Entry) (handles.Entry, bool, error) {
	time.Sleep(time.Duration(s.wait.Swap(0)))
	return s.Store.Create(ctx, key, e)
}

// TestTaskEndsWhileItsAnswerIsMade: an answer that still shows a task at work
// does not leave its handle so when the task ends meanwhile, for nobody would
// settle it again.
func TestTaskEndsWhileItsAnswerIsMade(t *testing.T) {
	for name, tt := range map[string]struct{ text, tool, more string }{
		"look":           {"slow 10", ToolGetTask, ""},
		"look and wait":  {"slow 10", ToolGetTask, `,"waitSeconds":1`},
		"history":        {"slow 10", ToolGetTask, `,"historyLength":5`},
		"page":           {"slow 10", ToolGetTask, `,"artifactId":"none"`},
		"refused cancel": {"refusecancel 10", ToolCancel, ""},
		"late cancel":    {"latecancel 6", ToolCancel, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := oneAgent(t, nil)
				store := &slowStore{Store: handles.NewMemory(handles.Limits{})}
				table, err := handles.New(handles.Options{TTL: 15 * time.Minute, Store: store})
				if err != nil {
					t.Fatal(err)
				}
				defer table.Close()
				o := g.opts
				o.Handles = table
				if g.svc, err = New(o); err != nil {
					t.Fatal(err)
				}
				defer g.svc.Close()
				handle := g.send(`{"text":"` + tt.text + `","blocking":false}`).str("taskHandle")
				time.Sleep(8 * time.Second)
				store.wait.Store(int64(3 * time.Second))
				got := g.seen(g.call(tt.tool, `{"taskHandle":"`+handle+`"`+tt.more+`}`, nil))
				wantEqual(t, "status", got.str("status"), "working")
				time.Sleep(time.Minute)
				e, err := table.Peek(t.Context(), handles.KindTask, handle, "local")
				if err != nil {
					t.Fatal(err)
				}
				wantEqual(t, "running", e.Running, false)
			})
		})
	}
}

// TestTaskEndsAfterALateAnswer: so does the handle of a task whose message had
// no word of its agent within its call's time.
func TestTaskEndsAfterALateAnswer(t *testing.T) {
	for _, opt := range []fixtures.Options{{Unary: true}, {}} {
		inBubble(t, func(t *testing.T) {
			g := newGateway(t, map[string]fixtures.Options{"demo": opt}, nil)
			handle := g.send(`{"text":"ask size"}`).str("taskHandle")
			running := func() bool {
				e, err := g.table.Peek(t.Context(), handles.KindTask, handle, "local")
				if err != nil {
					t.Fatal(err)
				}
				return e.Running
			}
			g.demo().Delay(5 * time.Second)
			got := g.send(`{"text":"XL","taskHandle":"` + handle + `","timeoutSeconds":2}`)
			wantEqual(t, "handle", got.str("taskHandle"), handle)
			wantEqual(t, "running", running(), true)
			time.Sleep(30 * time.Second)
			wantEqual(t, "running after the end", running(), false)
			wantEqual(t, "status", g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`"}`, nil)).str("status"), "completed")
		})
	}
}
