package tools

import (
	"context"
	"testing"
	"time"

	"a2agate/fixtures"
	"a2agate/handles"
)

// Work that nobody could collect is not begun: with a table full of running
// tasks a message whose answer is a handle does not reach the agent.
func TestNoRoomForAHandle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		table, err := handles.New(handles.Options{TTL: 15 * time.Minute, Max: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = table.Close() })
		g := oneAgent(t, func(o *Options) { o.Handles = table })
		var last string
		for range 2 {
			got := g.send(`{"text":"slow 60 abc","blocking":false}`)
			if last = got.str("taskHandle"); last == "" {
				t.Fatalf("no handle while there is room: %s", got.text)
			}
		}
		messages := func() int { return len(g.demo().Calls("SendStreamingMessage")) }
		before := messages()
		for _, out := range []answerSeen{
			g.send(`{"text":"slow 60 abc","blocking":false}`),
			g.send(`{"text":"echo hi","blocking":false}`),
		} {
			wantEqual(t, "isError", out.IsError, true)
			wantText(t, out.text, "nothing was sent")
			wantText(t, out.text, "limits.handles")
		}
		wantEqual(t, "messages to the agent", messages(), before)

		// Whoever waits has the answer without a handle.
		wantText(t, g.send(`{"text":"echo hi"}`).text, "hi")
		// A message to a task has its handle already.
		got := g.send(`{"taskHandle":"` + last + `","text":"more","blocking":false}`)
		if got.str("taskHandle") != last {
			t.Errorf("a message to a task: %s", got.text)
		}
		// The room of a finished task serves the next one.
		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+last+`","waitSeconds":100}`, nil))
		wantEqual(t, "status", got.str("status"), "completed")
		if got = g.send(`{"text":"slow 60 abc","blocking":false}`); got.str("taskHandle") == "" {
			t.Errorf("no handle when there is room again: %s", got.text)
		}
	})
}

// An agent may take long to say a first word, where the configuration lets
// calls wait: the room is kept all the while.
func TestRoomIsKeptWhileAnAgentIsSilent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		table, err := handles.New(handles.Options{TTL: 15 * time.Minute, Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = table.Close() })
		g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, func(o *Options) { o.Handles, o.Wait.Without = table, 30*time.Minute })
		silent := make(chan struct{})
		g.demo().OnCommand("brood", func(_ context.Context, turn *fixtures.Turn) error {
			<-silent
			return turn.Working("")
		})
		first := make(chan answerSeen)
		go func() { first <- g.send(`{"text":"brood","blocking":false}`) }()
		time.Sleep(10 * time.Minute)
		got := g.send(`{"text":"slow 60 abc","blocking":false}`)
		wantEqual(t, "isError while the room is kept", got.IsError, true)
		wantText(t, got.text, "nothing was sent")
		close(silent)
		if got := <-first; got.str("taskHandle") == "" {
			t.Errorf("no handle: %s", got.text)
		}
	})
}
