package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/fixtures"
)

// commands teaches the agent work that goes on when a conversation says
// "step", so that nothing in a conversation depends on time.
func (c *conversation) commands() {
	working := func(f func(t *fixtures.Turn) error) fixtures.Handler {
		return func(ctx context.Context, t *fixtures.Turn) error {
			if err := t.Working("Working on it."); err != nil {
				return err
			}
			c.begun.Add(1)
			if err := c.stepped(ctx); err != nil {
				return err
			}
			return f(t)
		}
	}
	result := func(t *fixtures.Turn, text string) error {
		if err := t.Artifact(fixtures.Artifact{Name: "result", Parts: []fixtures.Part{fixtures.Text(text)}}); err != nil {
			return err
		}
		return t.Complete()
	}
	c.agent.OnCommand("held", working(func(t *fixtures.Turn) error { return result(t, t.Text()) }))
	c.agent.OnCommand("askheld", func(ctx context.Context, t *fixtures.Turn) error {
		m, err := t.Ask(fixtures.Text("Which " + t.Text() + "?"))
		if err != nil {
			return err
		}
		if err := c.stepped(ctx); err != nil {
			return err
		}
		return result(t, m.Text())
	})
	c.agent.OnCommand("heldstubborn", func(ctx context.Context, t *fixtures.Turn) error {
		if err := t.Working("Working on it."); err != nil {
			return err
		}
		t.RefuseCancel()
		c.begun.Add(1)
		if err := c.stepped(ctx); err != nil {
			return err
		}
		return result(t, t.Text())
	})
	c.agent.OnCommand("heldfail", working(func(t *fixtures.Turn) error { return t.Fail(fixtures.Text("no paper left")) }))
	c.agent.OnCommand("heldask", working(func(t *fixtures.Turn) error {
		given := []string{}
		for _, what := range strings.Fields(t.Text()) {
			m, err := t.Ask(fixtures.Text("Which " + what + "?"))
			if err != nil {
				return err
			}
			given = append(given, what+"="+m.Text()+string(m.Data()))
		}
		return result(t, strings.Join(given, " "))
	}))
	c.agent.OnCommand("heldmulti", working(func(t *fixtures.Turn) error {
		got, _, err := t.AskForm("Two questions.",
			fixtures.Ask{Key: "name", Message: "What is your name?", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)},
			fixtures.Ask{Key: "confirm", Message: "Are you sure?", Schema: json.RawMessage(`{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`)})
		if err != nil {
			return err
		}
		raw, err := json.Marshal(got)
		if err != nil {
			return err
		}
		return result(t, string(raw))
	}))
	c.agent.OnCommand("heldlogin", func(ctx context.Context, t *fixtures.Turn) error {
		return working(func(t *fixtures.Turn) error {
			if err := t.Status(a2a.StateAuthRequired, fixtures.Text("Please sign in at https://login.example.com/device to go on.")); err != nil {
				return err
			}
			if err := c.stepped(ctx); err != nil {
				return err
			}
			if err := t.Working("Signed in."); err != nil {
				return err
			}
			return result(t, "the protected answer")
		})(ctx, t)
	})
}

func (c *conversation) stepped(ctx context.Context) error {
	select {
	case <-c.step:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// act lets the agent, or the time, do something:
//
//	step            what is held goes on
//	await N OP      the agent has received N requests of that operation
//	begun N         N calls have been held
//	forget          all connections break and every task is unknown
//	restart         all connections break
//	down, up        the agent is out of reach, and back
//	fail N OP CODE  the next N of those fail with an HTTP status, 0: the connection breaks
//	pause D         time goes by
//	stop            the gateway is told to stop, and has stopped
func (c *conversation) act(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "", "", "")
		n, _ := strconv.Atoi(words[1])
		switch words[0] {
		case "step":
			select {
			case c.step <- struct{}{}:
			case <-time.After(forever):
				t.Fatal("nothing is held")
			}
		case "await":
			until(t, strings.TrimSpace(line), func() bool { return c.count(words[2]) >= n })
		case "begun":
			until(t, strings.TrimSpace(line), func() bool { return int(c.begun.Load()) >= n })
		case "forget", "restart":
			c.agent.Restart(words[0] == "forget")
		case "down", "up":
			c.agent.Down(words[0] == "down")
		case "fail":
			status, _ := strconv.Atoi(words[3])
			c.agent.FailNext(n, fixtures.Outage{Op: words[2], Status: status})
		case "pause":
			pause(t, words[1])
		case "stop":
			c.g.stop()
		default:
			t.Fatalf("the agent cannot %q", line)
		}
	}
}

// count is how often the agent has received an operation; "Send" is a message
// of either kind.
func (c *conversation) count(op string) (n int) {
	for _, r := range c.agent.Requests() {
		if r.RPCMethod == op || op == "Send" && strings.HasPrefix(r.RPCMethod, "Send") {
			n++
		}
	}
	return n
}

// saw lists what has reached the agent since the last time, other than looks.
func (c *conversation) saw() string {
	var b strings.Builder
	requests := c.agent.Requests()
	for _, r := range requests[c.seen:] {
		var m struct {
			Params struct {
				Message struct {
					TaskID string          `json:"taskId"`
					Parts  json.RawMessage `json:"parts"`
				} `json:"message"`
			} `json:"params"`
		}
		switch {
		case r.RPCMethod == "CancelTask":
			b.WriteString("CancelTask\n")
		case strings.HasPrefix(r.RPCMethod, "Send"):
			_ = json.Unmarshal(r.Body, &m) // shows as nothing
			to := "new task"
			if m.Params.Message.TaskID != "" {
				to = "same task"
			}
			fmt.Fprintf(&b, "message, %s: %s\n", to, m.Params.Message.Parts)
		}
	}
	c.seen = len(requests)
	return b.String()
}
