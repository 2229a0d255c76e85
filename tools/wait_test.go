package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/fixtures"
)

// timed runs f and returns how long it took by the fake clock.
func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func TestBudgets(t *testing.T) {
	tests := []struct {
		name     string
		say      string
		progress bool
		seconds  int
		timeout  time.Duration
		want     time.Duration
	}{
		{"without progress", "slow 600", false, 0, 0, 50 * time.Second},
		{"with progress", "slow 600", true, 0, 0, 240 * time.Second},
		{"the call says", "slow 600", true, 7, 0, 7 * time.Second},
		{"the agent says", "slow 600", true, 0, 90 * time.Second, 90 * time.Second},
		{"the call before the agent", "slow 600", false, 120, 90 * time.Second, 120 * time.Second},
	}
	for _, unary := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("unary=%v/%s", unary, tt.name), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: unary}}, func(o *Options) { o.Agents[0].Timeout = tt.timeout })
					arguments := `{"text":"` + tt.say + `"}`
					if tt.seconds > 0 {
						arguments = fmt.Sprintf(`{"text":%q,"timeoutSeconds":%d}`, tt.say, tt.seconds)
					}
					var got answerSeen
					took := timed(func() { got = g.seen(g.call(ToolSend, arguments, func(c *Call) { c.Progress = tt.progress })) })
					wantEqual(t, "waited", took.Round(time.Second), tt.want)
					wantEqual(t, "status", got.str("status"), "working")
					wantEqual(t, "isError", got.IsError, false)
					wantText(t, got.text, "is still working")
					wantText(t, got.text, `To collect the answer, call a2a_get_task with {"taskHandle":"`+got.str("taskHandle")+`","waitSeconds":50}`)
					wantEqual(t, "cancels", len(g.demo().Calls("CancelTask")), 0)
				})
			})
		}
	}
}

func TestCollectLater(t *testing.T) {
	for _, unary := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: unary}}, nil)
			got := g.send(`{"text":"slow 300 abc"}`)
			handle := got.str("taskHandle")
			var took time.Duration
			took = timed(func() { got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`"}`, nil)) })
			wantEqual(t, "status", got.str("status"), "working")
			wantEqual(t, "quick", took < time.Second, true)
			// Many wait, one request or stream upstream.
			var wg sync.WaitGroup
			g.demo().ForgetRecord()
			for range 20 {
				wg.Go(func() {
					r := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`","waitSeconds":300}`, nil))
					if r.str("status") != "completed" || r.str("taskHandle") != handle {
						t.Errorf("%v", r.envelope)
					}
				})
			}
			took = timed(wg.Wait)
			if took < 200*time.Second || took > 260*time.Second {
				t.Errorf("took %v", took)
			}
			if n := len(g.demo().Requests()); n > 70 {
				t.Errorf("%d requests upstream", n)
			}
			g.noComplaints()
		})
	}
}

func TestNonBlocking(t *testing.T) {
	for _, unary := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: unary}}, nil)
			var got answerSeen
			took := timed(func() { got = g.send(`{"text":"slow 30 abc","blocking":false}`) })
			wantEqual(t, "quick", took < time.Second, true)
			wantEqual(t, "status", got.str("status"), "working")
			if got.str("taskHandle") == "" {
				t.Fatal("no handle")
			}
			got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+got.str("taskHandle")+`","waitSeconds":60}`, nil))
			wantEqual(t, "status", got.str("status"), "completed")
			got = g.send(`{"text":"echo at once","blocking":false}`)
			wantEqual(t, "message", got.first, "at once")
		})
	}
}

func TestProgress(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		s := &sink{}
		got := g.seen(g.callWith(t.Context(), s, ToolSend, `{"text":"progress 4 2"}`, func(c *Call) { c.Progress = true }))
		wantEqual(t, "status", got.str("status"), "completed")
		wantEqual(t, "agent", s.agent, "Demo agent")
		if len(s.progress) < 4 {
			t.Errorf("progress: %q", s.progress)
		}
		for _, line := range s.progress {
			if strings.ContainsAny(line, "\n\x1b") || len([]rune(line)) > 200 {
				t.Errorf("not one clean line: %q", line)
			}
		}
	})
}

func TestAuthRequiredIsWaitedThrough(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		s := &sink{}
		got := g.seen(g.callWith(t.Context(), s, ToolSend, `{"text":"auth 20"}`, as(bothClient)))
		wantEqual(t, "answer", got.first, "the protected answer")
		wantText(t, strings.Join(s.progress, "\n"), "https://login.example.com/device?code=ABCD-1234")

		got = g.send(`{"text":"auth 100"}`)
		wantEqual(t, "status", got.str("status"), "auth_required")
		wantEqual(t, "isError", got.IsError, true)
		wantText(t, got.text, "https://login.example.com/device?code=ABCD-1234")
		wantText(t, got.text, "After signing in, call a2a_get_task")
		before := len(g.demo().AllExecutions())
		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+got.str("taskHandle")+`","waitSeconds":100}`, nil))
		wantEqual(t, "answer", got.first, "the protected answer")
		wantEqual(t, "no message is sent while waiting", len(g.demo().AllExecutions()), before)
	})
}

func TestSilentAgentKeepsItsAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, nil)
		got := g.send(`{"text":"silent 120 at last"}`)
		wantEqual(t, "status", got.str("status"), "working")
		wantEqual(t, "isError", got.IsError, false)
		handle := got.str("taskHandle")
		if handle == "" {
			t.Fatal("no handle: the answer is lost")
		}
		wantText(t, got.text, handle)
		again := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`","waitSeconds":5}`, nil))
		wantEqual(t, "status", again.str("status"), "working")
		wantEqual(t, "the same handle", again.str("taskHandle"), handle)
		got = g.seen(g.call(ToolSend, `{"taskHandle":"`+handle+`","text":"and?"}`, nil))
		wantText(t, got.first, "has not answered "+handle+" yet")
		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`","waitSeconds":300}`, nil))
		wantEqual(t, "answer", got.first, "at last")
		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`"}`, nil))
		wantEqual(t, "answer, read again", got.first, "at last")
		// Somebody else does not get it.
		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`"}`, func(c *Call) { c.Principal = "other" }))
		wantText(t, got.first, "unknown task handle")
		time.Sleep(time.Hour)
		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`"}`, nil))
		wantText(t, got.first, "has expired")
		g.send(`{"text":"silent 60"}`) // sweeps
		g.svc.late.mu.Lock()
		defer g.svc.late.mu.Unlock()
		wantEqual(t, "late answers kept", len(g.svc.late.sends), 1)
		wantEqual(t, "order", len(g.svc.late.order), 1)
	})
}

func TestSilentAgentThenATask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, nil)
		g.demo().Delay(100 * time.Second) // every answer takes that long
		got := g.send(`{"text":"task abc"}`)
		handle := got.str("taskHandle")
		time.Sleep(200 * time.Second)
		g.demo().Delay(0)
		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`","waitSeconds":20}`, nil))
		wantEqual(t, "answer", got.first, "cba")
		wantEqual(t, "status", got.str("status"), "completed")
		// The first handle works on, and follows up in the conversation.
		got = g.send(`{"taskHandle":"` + handle + `","text":"echo more"}`)
		wantEqual(t, "follow-up", got.first, "more")
		g.noComplaints()
	})
}

func TestLateAnswerIsLostWithTheProcess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, nil)
		got := g.send(`{"text":"silent 120 at last"}`)
		g.svc.Close()
		handle := got.str("taskHandle")
		for _, tool := range []string{ToolGetTask, ToolCancel} {
			got = g.seen(g.call(tool, `{"taskHandle":"`+handle+`"}`, nil))
			wantEqual(t, tool, got.first, `the answer of agent "demo" to `+handle+` is not at hand, because the gateway was restarted before it came, or another instance waits for it: send the message again`)
		}
	})
}

func TestCallerGoes(t *testing.T) {
	tests := []struct {
		name    string
		before  string // a send whose task goes on, "" for none
		say     string
		cancels int
	}{
		{"a new task", "", `{"text":"slow 600"}`, 1},
		{"a task that has no handle yet because the agent is silent", "", `{"text":"silent 5"}`, 0},
		{"a task whose handle was given out", "then", `{"text":"go on","taskHandle":"%s"}`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := oneAgent(t, nil)
				g.demo().OnCommand("then", func(_ context.Context, turn *fixtures.Turn) error {
					if _, err := turn.Ask(fixtures.Text("go on?")); err != nil {
						return err
					}
					_ = turn.Working("going on")
					return turn.Sleep(10 * time.Minute)
				})
				arguments := tt.say
				if tt.before != "" {
					handle := g.send(`{"text":"` + tt.before + `"}`).str("taskHandle")
					arguments = fmt.Sprintf(tt.say, handle)
				}
				ctx, cancel := context.WithCancel(t.Context())
				stop := time.AfterFunc(3*time.Second, cancel)
				defer stop.Stop()
				var took time.Duration
				took = timed(func() {
					if out := g.callWith(ctx, &sink{}, ToolSend, arguments, nil); out.Err == nil {
						t.Errorf("%+v", out.Result)
					}
				})
				wantEqual(t, "took", took, 3*time.Second)
				time.Sleep(3 * time.Minute)
				wantEqual(t, "cancels", len(g.demo().Calls("CancelTask")), tt.cancels)
			})
		})
	}
}

func TestWaitingReaderGoes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		handle := g.send(`{"text":"slow 600","blocking":false}`).str("taskHandle")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		gone, leave := context.WithCancel(ctx)
		time.AfterFunc(time.Second, leave)
		out := g.callWith(gone, &sink{}, ToolGetTask, `{"taskHandle":"`+handle+`","waitSeconds":100}`, nil)
		if out.Err == nil {
			t.Errorf("%+v", out.Result)
		}
		time.Sleep(time.Minute)
		wantEqual(t, "cancels", len(g.demo().Calls("CancelTask")), 0)
	})
}

func TestShutdownAnswersAndCancelsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(context.DeadlineExceeded) })
		got := g.seen(g.callWith(ctx, &sink{}, ToolSend, `{"text":"slow 600"}`, nil))
		wantEqual(t, "status", got.str("status"), "working")
		if got.str("taskHandle") == "" {
			t.Error("no handle")
		}
		time.Sleep(3 * time.Minute)
		wantEqual(t, "cancels", len(g.demo().Calls("CancelTask")), 0)
		handle := got.str("taskHandle")
		got = g.seen(g.callWith(ctx, &sink{}, ToolGetTask, `{"taskHandle":"`+handle+`","waitSeconds":9}`, nil))
		wantText(t, got.text, handle)
	})
}

// P25: "submitted" is no answer.
func TestSubmittedIsPolled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, nil)
		got := g.send(`{"text":"early 20 abc"}`)
		wantEqual(t, "status", got.str("status"), "completed")
		if n := len(g.demo().Calls("GetTask")); n < 2 || n > 30 {
			t.Errorf("%d polls", n)
		}
		got = g.send(`{"text":"pollbusy 7"}`)
		wantEqual(t, "status", got.str("status"), "completed")
		g.noComplaints()
	})
}

// P14 and the meaning of handles.
func TestContinue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := twoAgents(t, nil)
		g.agents["billing"].ForgetRecord()
		asked := g.send(`{"agent":"billing","text":"ask size"}`)
		task, conv := asked.str("taskHandle"), asked.str("contextHandle")
		got := g.send(`{"taskHandle":"` + task + `","text":"large"}`) // the handle names the agent
		wantEqual(t, "answer", got.first, "size = large")
		wantEqual(t, "task", got.str("taskHandle"), task)
		wantEqual(t, "context", got.str("contextHandle"), conv)
		// Finished: the same handle follows up in the conversation, not on the task.
		got = g.send(`{"taskHandle":"` + task + `","text":"meta"}`)
		wantEqual(t, "context", got.str("contextHandle"), conv)
		var sent []struct{ Message a2a.Message }
		for _, r := range g.agents["billing"].Requests() {
			var body struct {
				Params struct{ Message a2aMessage }
			}
			if json.Unmarshal(r.Body, &body) == nil && body.Params.Message.MessageID != "" {
				m := body.Params.Message
				sent = append(sent, struct{ Message a2a.Message }{a2a.Message{MessageID: m.MessageID, TaskID: m.TaskID, ContextID: m.ContextID, ReferenceTaskIDs: m.ReferenceTaskIDs}})
			}
		}
		if len(sent) != 3 {
			t.Fatalf("%d messages", len(sent))
		}
		if m := sent[1].Message; m.TaskID == "" || m.ContextID == "" {
			t.Errorf("the answer: %+v", m)
		}
		if m := sent[2].Message; m.TaskID != "" || m.ContextID == "" || len(m.ReferenceTaskIDs) != 1 || m.ReferenceTaskIDs[0] != sent[1].Message.TaskID {
			t.Errorf("the follow-up: %+v", m)
		}
		if sent[0].Message.MessageID == sent[1].Message.MessageID {
			t.Error("the same message id twice")
		}
		// A call without a handle is another conversation.
		got = g.send(`{"agent":"billing","text":"echo x"}`)
		if got.str("contextHandle") == conv {
			t.Error("the conversation leaks into a new one")
		}
		for arguments, want := range map[string]string{
			`{"agent":"travel","taskHandle":"` + task + `","text":"x"}`:                                   task + ` belongs to agent "billing", not "travel": leave agent out, or start anew without the handle`,
			`{"agent":"travel","contextHandle":"` + conv + `","text":"x"}`:                                conv + ` belongs to agent "billing", not "travel": leave agent out, or start anew without the handle`,
			`{"contextHandle":"` + got.str("contextHandle") + `","taskHandle":"` + task + `","text":"x"}`: got.str("contextHandle") + ` and ` + task + ` belong to different conversations: send one of them`,
			`{"contextHandle":"` + task + `","text":"x"}`:                                                 `"` + task + `" is not a context handle; a context handle begins with "cx_"`,
		} {
			bad := g.send(arguments)
			wantEqual(t, arguments, bad.first, want)
			wantEqual(t, "isError", bad.IsError, true)
		}
		foreign := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+task+`"}`, func(c *Call) { c.Principal = "mallory" }))
		unknown := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+flip(task)+`"}`, nil))
		wantEqual(t, "foreign reads as unknown", strings.ReplaceAll(foreign.first, task, flip(task)), unknown.first)
		hidden := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+task+`"}`, func(c *Call) { c.Agents = map[string]bool{"travel": true} }))
		wantEqual(t, "a hidden agent's reads as unknown", hidden.first, foreign.first)
		g.noComplaints()
	})
}

// a2aMessage is a message of A2A 1.0 on the wire.
type a2aMessage struct {
	MessageID        string   `json:"messageId"`
	TaskID           string   `json:"taskId"`
	ContextID        string   `json:"contextId"`
	ReferenceTaskIDs []string `json:"referenceTaskIds"`
}

// A task that finished while nobody looked refuses the message; the gateway
// follows up in its conversation instead.
func TestTaskFinishedMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, nil)
		got := g.send(`{"text":"slow 5 abc","blocking":false}`)
		time.Sleep(time.Minute)
		got = g.send(`{"taskHandle":"` + got.str("taskHandle") + `","text":"echo after"}`)
		wantEqual(t, "answer", got.first, "after")
		g.noComplaints()
	})
}

// Fault 16: agents without ids share nothing.
func TestAgentsWithoutIDs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		a, b := g.send(`{"text":"nocontext abc"}`), g.send(`{"text":"nocontext def"}`)
		wantEqual(t, "answers", a.first+b.first, "cbafed")
		wantEqual(t, "no invented context", a.str("contextHandle")+b.str("contextHandle"), "")
		if a.str("taskHandle") == "" || a.str("taskHandle") == b.str("taskHandle") {
			t.Errorf("task handles %q %q", a.str("taskHandle"), b.str("taskHandle"))
		}
		a, b = g.send(`{"text":"noid abc"}`), g.send(`{"text":"noid def"}`)
		wantText(t, a.text, "cba")
		wantText(t, b.text, "fed")
		if h := a.str("taskHandle"); h != "" && h == b.str("taskHandle") {
			t.Errorf("two tasks share %q", h)
		}
		unary := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, nil)
		a = unary.send(`{"text":"noid abc"}`)
		wantEqual(t, "unary", a.first, "cba")
		wantEqual(t, "unary: isError", a.IsError, false)
		wantEqual(t, "unary: no handle for what nobody can ask for", a.str("taskHandle"), "")
	})
}

// A cancel before the task has a name goes out as soon as it has one.
func TestCancelBeforeTheTaskIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, nil)
		g.demo().Delay(70 * time.Second)
		handle := g.send(`{"text":"slow 600"}`).str("taskHandle")
		g.demo().Delay(0)
		got := g.seen(g.call(ToolCancel, `{"taskHandle":"`+handle+`"}`, nil))
		wantEqual(t, "status", got.str("status"), "cancelled")
		wantEqual(t, "cancels", len(g.demo().Calls("CancelTask")), 1)
	})
}

// A skill's own argument of that name is not the gateway's.
func TestSkillsTimeoutIsItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := skillAgent(t, nil, fixtures.Skill{ID: "w", Name: "W", Description: "w", InputSchema: json.RawMessage(`{"type":"object"}`)})
		g.demo().OnCommand("w", func(_ context.Context, turn *fixtures.Turn) error {
			_ = turn.Working("on it")
			if err := turn.Sleep(20 * time.Second); err != nil {
				return err
			}
			return turn.Complete(fixtures.Text("done"))
		})
		got := g.seen(g.call("demo_w", `{"timeoutSeconds":1,"agent":"x","taskHandle":"y"}`, nil))
		wantEqual(t, "status", got.str("status"), "completed")
	})
}

// hangingUpstream takes messages and never answers them.
type hangingUpstream struct{ a2a.Upstream }

func (hangingUpstream) Streams() bool { return false }

func (hangingUpstream) Send(ctx context.Context, _ a2a.SendRequest) (a2a.Event, error) {
	<-ctx.Done()
	return a2a.Event{}, &a2a.Error{Cause: a2a.CauseCanceled, Message: "cancelled", Err: ctx.Err()}
}

// A wait ends with its follower, or with its watch, long before its own time:
// asking again would only be answered the same at once.
func TestWaitEndsWithWhatItWaitsFor(t *testing.T) {
	for _, ends := range []string{"follower", "watch"} {
		inBubble(t, func(t *testing.T) {
			f := a2a.NewFollower(a2a.FollowerOptions{Alias: "demo", Upstream: func(context.Context) (a2a.Upstream, error) { return hangingUpstream{}, nil }})
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = f.Run(ctx) })
			<-f.Started()
			watch, err := f.Send(ctx, a2a.SendRequest{Message: a2a.Message{MessageID: "m", Role: a2a.RoleUser, Parts: []a2a.Part{{Kind: a2a.PartText, Text: "x"}}}})
			if err != nil {
				t.Fatal(err)
			}
			asked, began := 0, time.Now()
			w := &wait{watch: watch, deadline: began.Add(time.Hour), until: func(s a2a.Snapshot) bool { asked++; return settled(s) }}
			time.AfterFunc(time.Second, func() {
				if ends == "watch" {
					watch.Close()
				}
				stop()
			})
			snap, end := w.run(t.Context())
			if end != endBudget || known(snap) || asked > 10 || time.Since(began) > 5*time.Second {
				t.Errorf("%s ends: ending %d after %v, %d looks, %+v", ends, end, time.Since(began), asked, snap)
			}
			stop()
			watch.Close()
			running.Wait()
		})
	}
}
