package tools

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"a2agate/handles"
)

// fullStore is a handle store whose disk is full while full is set: what is
// kept can be read, nothing can be added or changed.
type fullStore struct {
	handles.Store
	full atomic.Bool
}

func (s *fullStore) Create(ctx context.Context, key handles.Key, e handles.Entry) (handles.Entry, bool, error) {
	if s.full.Load() {
		return handles.Entry{}, false, syscall.ENOSPC
	}
	return s.Store.Create(ctx, key, e)
}

func (s *fullStore) Swap(ctx context.Context, rev uint64, e handles.Entry) (bool, error) {
	if s.full.Load() {
		return false, syscall.ENOSPC
	}
	return s.Store.Swap(ctx, rev, e)
}

func (s *fullStore) Take(ctx context.Context, handle, principal string) (handles.Entry, handles.Presence, error) {
	if s.full.Load() {
		return handles.Entry{}, 0, syscall.ENOSPC
	}
	return s.Store.Take(ctx, handle, principal)
}

// A disk that is full takes handles away, never answers: what the agent has
// said arrives, with a note where something cannot be gone on with.
func TestFullDisk(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := &fullStore{Store: handles.NewMemory(handles.Limits{})}
		table, err := handles.New(handles.Options{TTL: 15 * time.Minute, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = table.Close() })
		g := oneAgent(t, func(o *Options) { o.Handles, o.Expose = table, []Exposure{ExposeGeneric, ExposeAgents} })
		elicits := as(ClientCapabilities{ElicitForm: true})
		asked := g.call(ToolSend, `{"text":"ask size"}`, elicits)
		if asked.InputRequired == nil {
			t.Fatalf("%+v", asked)
		}
		kept := g.send(`{"text":"slow 60 abc","blocking":false}`).str("taskHandle")

		store.full.Store(true)
		const note = "no handle could be given out"
		for _, tt := range []struct{ tool, arguments, text, status string }{
			{ToolSend, `{"text":"echo hi"}`, "hi", "completed"},
			{ToolSend, `{"text":"task abc"}`, "cba", "completed"},
			{ToolSend, `{"text":"slow 600","timeoutSeconds":2}`, note, "working"},
			{ToolSend, `{"text":"fail no paper"}`, "no paper", "failed"},
		} {
			got := g.seen(g.call(tt.tool, tt.arguments, elicits))
			wantText(t, got.text, tt.text)
			wantText(t, got.text, note)
			wantEqual(t, tt.arguments, got.str("status"), tt.status)
		}
		messages := len(g.demo().Calls("SendStreamingMessage"))
		got := g.seen(g.call("demo", `{"message":"task abc"}`, elicits))
		wantText(t, got.text, "no space left on device") // it could not go on with it
		wantEqual(t, "messages of a tool that needs a place", len(g.demo().Calls("SendStreamingMessage")), messages)
		got = g.seen(g.call(ToolSend, `{"text":"ask size"}`, elicits))
		wantText(t, got.text, "Which value should I use for size?")
		wantEqual(t, "status of a question", got.str("status"), "input_required")

		messages = len(g.demo().Calls("SendStreamingMessage"))
		got = g.seen(g.call(ToolSend, `{"text":"ask size"}`, func(c *Call) {
			elicits(c)
			c.RequestState = &asked.InputRequired.RequestState
			c.InputResponses = json.RawMessage(`{"answer":{"action":"accept","content":{"answer":"large"}}}`)
		}))
		wantEqual(t, "isError of an answer whose state cannot be used up", got.IsError, true)
		wantEqual(t, "messages", len(g.demo().Calls("SendStreamingMessage")), messages)

		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+kept+`","waitSeconds":100}`, nil))
		wantText(t, got.text, "abc")
		wantEqual(t, "status of a task with a handle", got.str("status"), "completed")

		messages = len(g.demo().Calls("SendStreamingMessage"))
		got = g.seen(g.call(ToolSend, `{"text":"slow 60 abc","blocking":false}`, elicits))
		wantEqual(t, "isError of a message that needs a handle", got.IsError, true)
		wantText(t, got.text, "nothing was sent")
		wantText(t, got.text, "no space left on device")
		wantEqual(t, "messages", len(g.demo().Calls("SendStreamingMessage")), messages)

		store.full.Store(false)
		out := g.call(ToolSend, `{"text":"ask size"}`, func(c *Call) {
			elicits(c)
			c.RequestState = &asked.InputRequired.RequestState
			c.InputResponses = json.RawMessage(`{"answer":{"action":"accept","content":{"answer":"large"}}}`)
		})
		wantText(t, g.seen(out).text, "size = large")
		g.noComplaints()
	})
}
