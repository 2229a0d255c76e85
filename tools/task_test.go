package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/fixtures"
	"a2agate/handles"
	"a2agate/translate"
)

var taskClient = ClientCapabilities{Tasks: true, ElicitForm: true, ElicitURL: true}

// withTasks lets calls become tasks, with a policy for the agent.
func withTasks(g **gateway, policy TaskPolicy, grace time.Duration) func(*Options) {
	return func(o *Options) {
		o.Agents[0].Tasks = policy
		o.Wait = DefaultWait()
		o.Wait.TaskGrace = grace
		o.Tasks = taskSinkOf{g}
	}
}

// taskSinkOf finds the sink of a gateway that is still being made.
type taskSinkOf struct{ g **gateway }

func (s taskSinkOf) Create(ctx context.Context, entry handles.Entry, watch *a2a.Watch, tool string) (translate.TaskInfo, error) {
	return (*s.g).tasks.Create(ctx, entry, watch, tool)
}

func TestFirstStateDecides(t *testing.T) {
	declared, plain := taskClient, ClientCapabilities{ElicitForm: true}
	onlyTasks := ClientCapabilities{Tasks: true}
	tests := []struct {
		name   string
		say    string
		client ClientCapabilities
		policy TaskPolicy
		grace  time.Duration
		want   string // result, question, task, error
		after  time.Duration
	}{
		{"message", "echo x", declared, "", 0, "result", 0},
		{"message, required", "echo x", declared, TasksRequired, 10 * time.Second, "result", 0},
		{"terminal at once", "instant x", declared, "", 0, "result", 0},
		{"question first", "ask x", declared, "", 10 * time.Second, "question", 0},
		{"question first, required", "ask x", declared, TasksRequired, 10 * time.Second, "question", 0},
		{"question first, nobody to ask", "ask x", onlyTasks, "", 0, "result", 0},
		{"question within the grace", "worksask 3 x", declared, "", 10 * time.Second, "question", 3 * time.Second},
		{"question after the grace", "worksask 30 x", declared, "", 10 * time.Second, "task", 10 * time.Second},
		{"quick work", "slow 5 x", declared, "", 10 * time.Second, "result", 5 * time.Second},
		{"long work", "slow 60 x", declared, "", 10 * time.Second, "task", 10 * time.Second},
		{"long work, at once", "slow 60 x", declared, "", 0, "task", 0},
		{"long work, required", "slow 60 x", declared, TasksRequired, 10 * time.Second, "task", 0},
		{"quick work, required", "fail x", declared, TasksRequired, 10 * time.Second, "task", 0},
		{"long work, never", "slow 60 x", declared, TasksNever, 0, "result", 50 * time.Second},
		{"long work, not declared", "slow 60 x", plain, "", 0, "result", 50 * time.Second},
		{"required, not declared", "slow 60 x", plain, TasksRequired, 0, "error", 0},
		{"login, url client", "authstuck", declared, "", 10 * time.Second, "task", 10 * time.Second},
		{"login, no url client", "auth 30", onlyTasks, "", 10 * time.Second, "task", 30 * time.Second},
		{"refused", "error -32004", declared, TasksRequired, 0, "result", 0},
	}
	for _, unary := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("unary=%v/%s", unary, tt.name), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					var g *gateway
					g = newGateway(t, map[string]fixtures.Options{"demo": {Unary: unary}}, withTasks(&g, tt.policy, tt.grace))
					var out translate.Outcome
					took := timed(func() { out = g.call(ToolSend, `{"text":`+jsonString(tt.say)+`}`, as(tt.client)) })
					got := "result"
					switch {
					case out.InputRequired != nil:
						got = "question"
					case out.Task != nil:
						got = "task"
					case out.Err != nil:
						got = "error"
					}
					if tt.name == "login, no url client" {
						// The login is over before the budget: the agent works on
						// and the answer comes in the call or as a task.
						if got != "result" && got != "task" {
							t.Errorf("got %s", got)
						}
						return
					}
					if tt.name == "terminal at once" || tt.name == "quick work" {
						wantEqual(t, "is an error", out.Result != nil && out.Result.IsError, false)
					}
					wantEqual(t, "outcome", got, tt.want)
					if d := took - tt.after; d < -time.Second || d > 6*time.Second {
						t.Errorf("after %v, want %v", took, tt.after)
					}
				})
			})
		}
	}
}

func TestRequiredNamesTheExtension(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g *gateway
		g = oneAgent(t, withTasks(&g, TasksRequired, 0))
		out := g.call(ToolSend, `{"text":"slow 9"}`, nil)
		wantEqual(t, "code", out.Err.Code, translate.CodeMissingCapability)
		wantEqual(t, "data", string(out.Err.Data), `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`)
		wantEqual(t, "requests", len(g.demo().Requests()), 0)
		// Not waiting needs no task.
		got := g.send(`{"text":"slow 9","blocking":false}`)
		wantEqual(t, "status", got.str("status"), "working")
	})
}

func TestTaskIsHandedOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g *gateway
		g = oneAgent(t, withTasks(&g, "", 0))
		out := g.call(ToolSend, `{"text":"slow 60 abc"}`, as(taskClient))
		if out.Task == nil || len(g.tasks.created) != 1 {
			t.Fatalf("%+v", out)
		}
		made := g.tasks.created[0]
		wantEqual(t, "id", out.Task.ID, made.entry.Handle)
		wantEqual(t, "running", made.entry.Running, true)
		wantEqual(t, "tool", made.tool, ToolSend)
		// The handle is a task handle like any other.
		got := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+out.Task.ID+`"}`, nil))
		wantEqual(t, "status", got.str("status"), "working")
		snap := made.watch.Now()
		for !snap.Done {
			var err error
			if snap, err = made.watch.Next(t.Context(), snap.Seq); err != nil {
				t.Fatal(err)
			}
		}
		later := see(t, g.svc.Present(t.Context(), made.entry, made.tool, snap))
		now := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+out.Task.ID+`","historyLength":0}`, nil))
		wantEqual(t, "the same answer", string(later.Structured), string(now.Structured))
		wantEqual(t, "text", later.text, now.text)
		// Also when the agent has left the configuration.
		if err := g.svc.SetAgents(nil); err != nil {
			t.Fatal(err)
		}
		gone := see(t, g.svc.Present(t.Context(), made.entry, "demo_gone", snap))
		wantEqual(t, "first", gone.first, now.first)
		wantEqual(t, "agent", gone.str("agent"), "demo")
		wantEqual(t, "handle", gone.str("taskHandle"), made.entry.Handle)
	})
}

func TestTaskThatCannotBeKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g *gateway
		g = oneAgent(t, withTasks(&g, "", 0))
		g.tasks.fail = errors.New("disk full at /var/lib")
		got := g.seen(g.call(ToolSend, `{"text":"slow 60 abc"}`, as(taskClient)))
		wantEqual(t, "status", got.str("status"), "working")
		wantText(t, got.text, "could not keep this as an MCP task")
		got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+got.str("taskHandle")+`","waitSeconds":100}`, nil))
		wantEqual(t, "status", got.str("status"), "completed")
	})
}

// The suite's composition: a question first, then work, then an answer.
func TestQuestionThenTask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g *gateway
		g = oneAgent(t, withTasks(&g, "", 0))
		g.demo().OnCommand("compose", func(_ context.Context, turn *fixtures.Turn) error {
			m, err := turn.Ask(fixtures.Text("What is your name?"))
			if err != nil {
				return err
			}
			if err := turn.Working("thinking"); err != nil {
				return err
			}
			if err := turn.Sleep(30 * time.Second); err != nil {
				return err
			}
			return turn.Complete(fixtures.Text("Hello " + m.Text()))
		})
		q := g.asked(g.call(ToolSend, `{"text":"compose"}`, as(taskClient)))
		out := g.call(ToolSend, `{"text":"compose"}`, retry(taskClient, q.RequestState, `{"answer":{"action":"accept","content":{"answer":"Alice"}}}`))
		if out.Task == nil {
			t.Fatalf("%+v %+v", out.Result, out.Err)
		}
		got := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+out.Task.ID+`","waitSeconds":60}`, nil))
		wantText(t, got.first, "Hello Alice")
		g.noComplaints()
	})
}

func TestGetTask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		handle := g.send(`{"text":"history 6"}`).str("taskHandle")
		for n, want := range map[string]int{`,"historyLength":1`: 1, `,"historyLength":0`: 0, `,"historyLength":3`: 3, ``: 6} {
			got := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`"`+n+`}`, nil))
			turns, _ := got.envelope["history"].([]any)
			if len(turns) != want && (n != "" || len(turns) < want) {
				t.Errorf("%s: %d turns, want %d", n, len(turns), want)
			}
		}
		lost := g.send(`{"text":"vanish"}`)
		if lost.str("taskHandle") == "" {
			t.Fatalf("no handle: %s", lost.text)
		}
		got := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+lost.str("taskHandle")+`"}`, nil))
		wantEqual(t, "isError", got.IsError, true)
		wantText(t, got.text, "TaskNotFound (-32001)")
		wantEqual(t, "code", fmt.Sprint(got.envelope["a2aErrorCode"]), "-32001")
		wantText(t, got.text, lost.str("taskHandle"))
	})
}

func TestAgentAwayKeepsTheHandle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: true}}, nil)
		handle := g.send(`{"text":"slow 400 abc","blocking":false}`).str("taskHandle")
		g.demo().Down(true)
		for _, arguments := range []string{`{"taskHandle":"` + handle + `"}`, `{"taskHandle":"` + handle + `","waitSeconds":20}`} {
			got := g.seen(g.call(ToolGetTask, arguments, nil))
			wantEqual(t, "status", got.str("status"), "working")
			wantText(t, got.text, handle)
		}
		g.demo().Down(false)
		g.call(ToolGetTask, `{"taskHandle":"`+handle+`","waitSeconds":300}`, nil)
		got := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`","waitSeconds":300}`, nil))
		wantEqual(t, "status", got.str("status"), "completed")
	})
}

func TestPages(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, func(o *Options) { o.Limits.ResultChars = 3000 })
		got := g.send(`{"text":"kb 20"}`)
		handle := got.str("taskHandle")
		wantText(t, got.text, "characters left out. Call a2a_get_task")
		artifacts, _ := got.envelope["artifacts"].([]any)
		id, _ := artifacts[0].(map[string]any)["artifactId"].(string)
		var whole string
		for offset := 0; offset >= 0; {
			page := g.seen(g.call(ToolGetTask, fmt.Sprintf(`{"taskHandle":%q,"artifactId":%q,"offset":%d}`, handle, id, offset), nil))
			whole += page.first
			info, _ := page.envelope["page"].(map[string]any)
			next, more := info["nextOffset"].(float64)
			offset = int(next)
			if !more {
				break
			}
		}
		if len(whole) < 20_000 {
			t.Errorf("%d bytes", len(whole))
		}
		contents, err := g.svc.ReadResource(t.Context(), "local", View{}, translate.ArtifactURI(handle, id))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(contents[0])
		var one struct{ Text string }
		_ = json.Unmarshal(raw, &one)
		wantEqual(t, "pages make the whole", whole, one.Text)
		bad := g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`","artifactId":"nope"}`, nil))
		wantText(t, bad.first, `artifactId: "nope" is not an artifact of this task, which has`)
		bad = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+handle+`","artifactId":"`+id+`","offset":99999999}`, nil))
		wantText(t, bad.first, "offset: 99999999 is outside the text")
	})
}

func TestCancel(t *testing.T) {
	for _, unary := range []bool{false, true} {
		t.Run(fmt.Sprintf("unary=%v", unary), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: unary}}, nil)
				running := g.send(`{"text":"slow 600","blocking":false}`).str("taskHandle")
				got := g.seen(g.call(ToolCancel, `{"taskHandle":"`+running+`"}`, nil))
				wantEqual(t, "status", got.str("status"), "cancelled")
				wantEqual(t, "state", got.str("a2aState"), "TASK_STATE_CANCELED")
				wantEqual(t, "isError", got.IsError, false)
				wantEqual(t, "requests", len(g.demo().Calls("CancelTask")), 1)

				done := g.send(`{"text":"task abc"}`).str("taskHandle")
				got = g.seen(g.call(ToolCancel, `{"taskHandle":"`+done+`"}`, nil))
				wantEqual(t, "isError", got.IsError, true)
				wantText(t, got.first, "TaskNotCancelable (-32002)")
				wantEqual(t, "code", fmt.Sprint(got.envelope["a2aErrorCode"]), "-32002")
				wantText(t, got.text, done)
				// What the envelope says of the task is the task's, not the cancel's.
				wantEqual(t, "status", got.str("status"), "completed")
				again := g.seen(g.call(ToolCancel, `{"taskHandle":"`+running+`"}`, nil))
				wantEqual(t, "isError", again.IsError, false)
				wantEqual(t, "status", again.str("status"), "cancelled")
				// Nobody is asked to cancel what is known to have ended.
				wantEqual(t, "requests", len(g.demo().Calls("CancelTask")), 1)

				stubborn := g.send(`{"text":"refusecancel 600","blocking":false}`).str("taskHandle")
				time.Sleep(time.Second) // until the agent has begun
				got = g.seen(g.call(ToolCancel, `{"taskHandle":"`+stubborn+`"}`, nil))
				wantEqual(t, "isError", got.IsError, true)
				wantEqual(t, "status", got.str("status"), "working")
				// A refused cancel poisons nothing.
				got = g.seen(g.call(ToolGetTask, `{"taskHandle":"`+stubborn+`"}`, nil))
				wantEqual(t, "status", got.str("status"), "working")

				late := g.send(`{"text":"latecancel 3","blocking":false}`).str("taskHandle")
				time.Sleep(time.Second)
				got = g.seen(g.call(ToolCancel, `{"taskHandle":"`+late+`"}`, nil))
				wantEqual(t, "status", got.str("status"), "cancelled")

				waits := g.send(`{"text":"ask size"}`).str("taskHandle")
				got = g.seen(g.call(ToolCancel, `{"taskHandle":"`+waits+`"}`, nil))
				wantEqual(t, "status", got.str("status"), "cancelled")
			})
		})
	}
}
