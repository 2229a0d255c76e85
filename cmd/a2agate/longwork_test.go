package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"a2agate/fixtures"
)

// cancellations counts the CancelTask requests of an agent by their task.
func cancellations(a agentServer) map[string]int {
	counts := map[string]int{}
	for _, r := range a.Requests() {
		if r.RPCMethod != "CancelTask" {
			continue
		}
		var body struct{ Params struct{ ID string } }
		_ = json.Unmarshal(r.Body, &body) // counts under ""
		counts[body.Params.ID]++
	}
	return counts
}

// longWork is a conversation without a script.
func longWork(t *testing.T, options ...string) *conversation {
	t.Helper()
	return newConversation(t, options)
}

func (c *conversation) send(t *testing.T, text, capabilities string) toolResult {
	t.Helper()
	return c.g.callWith(t, "a2a_send_message", fmt.Sprintf(`{"text":%q}`, text), capabilities)
}

// However many want a task cancelled at once, the agent hears of it once, and
// everybody is answered. A client's stop button sends two of them.
func TestCancellationsAtOnce(t *testing.T) {
	c := longWork(t)
	task := c.send(t, "held x", tasksCapability).TaskID
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			method, name, params := "tasks/cancel", task, fmt.Sprintf(`"taskId":%q`, task)
			if i%2 == 0 {
				method, name, params = "tools/call", "a2a_cancel_task", fmt.Sprintf(`"name":"a2a_cancel_task","arguments":{"taskHandle":%q}`, task)
			}
			a, err := c.g.ask(context.Background(), method, name, params, tasksCapability)
			if err != nil || a.Error != nil || strings.Contains(string(a.Result), `"isError":true`) {
				t.Errorf("%s: %+v %s %v", method, a.Error, a.Result, err)
			}
		})
	}
	all.Wait()
	c.g.stop()
	if got := cancellations(c.agent); len(got) != 1 || !once(got) {
		t.Errorf("cancellations: %v", got)
	}
}

func once(counts map[string]int) bool {
	for _, n := range counts {
		if n != 1 {
			return false
		}
	}
	return true
}

// A caller that leaves while its task completes: the agent hears of it once or
// not at all, and never of another task.
func TestCancellationAgainstCompletion(t *testing.T) {
	c := longWork(t)
	session := c.initialize(t)
	for i := range 40 {
		s := &step{name: "call", text: "modern\n" + `tools/call {"name":"a2a_send_message","arguments":{"text":"held x"}}`}
		legacy := i%2 == 1
		if legacy {
			s.text = "legacy session id 5\n" + `tools/call {"name":"a2a_send_message","arguments":{"text":"held x"}}`
		}
		c.open(t, *s)
		until(t, "work begins", func() bool { return int(c.begun.Load()) > i })
		var race sync.WaitGroup
		race.Go(func() {
			select {
			case c.step <- struct{}{}:
			case <-c.opened["call"].done:
			}
		})
		if legacy {
			c.ask(t, step{name: "cancel", text: "legacy session id none\n" + `notifications/cancelled {"requestId":5}`})
			if got := c.end(t, "call"); !strings.Contains(got, `"id":5,`) || !strings.HasSuffix(got, "200\n") {
				t.Errorf("a cancelled call of session %q ends with %s", session, got)
			}
		} else {
			c.leave("call")
		}
		race.Wait()
		delete(c.opened, "call")
	}
	c.g.stop()
	if got := cancellations(c.agent); !once(got) {
		t.Errorf("cancellations: %v", got)
	}
}

func (c *conversation) initialize(t *testing.T) string {
	t.Helper()
	c.ask(t, step{name: "initialize", text: "legacy form\ninitialize {}"})
	return c.session
}

// A caller that leaves before the agent has named the task: the agent hears of
// it as soon as it has.
func TestDisconnectBeforeTheTaskIsNamed(t *testing.T) {
	for _, unary := range []bool{false, true} {
		t.Run(fmt.Sprintf("unary %t", unary), func(t *testing.T) {
			var options []string
			if unary {
				options = []string{"unary"}
			}
			c := longWork(t, options...)
			named := make(chan struct{})
			c.agent.OnCommand("late", func(ctx context.Context, t *fixtures.Turn) error {
				c.begun.Add(1)
				select {
				case <-named:
				case <-ctx.Done():
					return ctx.Err()
				}
				if err := t.Working("Here I am."); err != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			})
			c.open(t, step{name: "call", text: "modern\n" + `tools/call {"name":"a2a_send_message","arguments":{"text":"late"}}`})
			until(t, "work begins", func() bool { return c.begun.Load() == 1 })
			c.leave("call")
			delete(c.opened, "call")
			close(named)
			until(t, "the agent hears of it", func() bool { return c.count("CancelTask") > 0 })
			c.g.stop()
			if got := cancellations(c.agent); len(got) != 1 || !once(got) {
				t.Errorf("cancellations: %v", got)
			}
		})
	}
}

// Several answers to one question at once: one reaches the agent.
func TestAnswersAtOnce(t *testing.T) {
	c := longWork(t)
	const caps = tasksCapability + `,"elicitation":{}`
	task := c.send(t, "heldask size", caps).TaskID
	c.act(t, "step")
	name := fmt.Sprintf(`"taskId":%q`, task)
	until(t, "the question", func() bool {
		a, err := c.g.ask(t.Context(), "tasks/get", task, name, caps)
		return err == nil && strings.Contains(string(a.Result), "input_required")
	})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if a, err := c.g.ask(context.Background(), "tasks/update", task, name+`,"inputResponses":{"answer":{"action":"accept","content":{"answer":"large"}}}`, caps); err != nil || a.Error != nil {
				t.Errorf("%+v %v", a.Error, err)
			}
		})
	}
	all.Wait()
	until(t, "the end", func() bool {
		a, err := c.g.ask(t.Context(), "tasks/get", task, name, caps)
		return err == nil && strings.Contains(string(a.Result), `"status":"completed"`)
	})
	c.g.stop()
	if n := c.count("Send"); n != 2 {
		t.Errorf("%d messages, want the call and one answer", n)
	}
}

// Dropped subscriptions leave no trace: a client opens and drops one several
// times a session.
func TestDroppedListens(t *testing.T) {
	c := longWork(t, "listens 3")
	task := c.send(t, "held x", tasksCapability).TaskID
	for range 60 {
		// Its place is free when the gateway has noticed that it is gone.
		until(t, "a place", func() bool {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := c.g.post(ctx, "/mcp", "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":[%q]}`, task), tasksCapability)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode == 200
		})
	}
	c.act(t, "step")
	c.g.stop()
	if got := cancellations(c.agent); len(got) != 0 {
		t.Errorf("a dropped subscription has cancelled: %v", got)
	}
}
