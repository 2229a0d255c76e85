package tasksext

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"a2agate/a2a"
	"a2agate/fixtures"
	"a2agate/handles"
	"a2agate/internal/pipenet"
	"a2agate/translate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Service over one scripted agent, behind the real client,
// follower and handle table, in fake time.
type world struct {
	t        *testing.T
	agent    *fixtures.Agent
	follower *a2a.Follower
	table    *handles.Table
	svc      *Service
	present  atomic.Int64 // results made

	client *a2a.Client
	run    func(func(context.Context) error) // until the world ends
}

func inWorld(t *testing.T, opt fixtures.Options, f func(w *world)) {
	t.Helper()
	inWorldWith(t, opt, a2a.FollowerOptions{}, f)
}

// inWorldWith is inWorld with a follower of these options.
func inWorldWith(t *testing.T, opt fixtures.Options, o a2a.FollowerOptions, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, agent: fixtures.New(opt)}
		network := pipenet.New()
		server := &http.Server{Handler: w.agent}
		var running sync.WaitGroup
		running.Go(func() { _ = server.Serve(network) })
		transport := &http.Transport{DialContext: network.Dial}
		client, err := a2a.NewClient(a2a.ClientOptions{
			Alias: "demo", HTTP: &http.Client{Transport: transport}, Streaming: !opt.Unary,
			Interfaces: []a2a.Interface{{URL: "http://demo.test" + fixtures.PathRPC, Binding: a2a.JSONRPC, Version: a2a.V10}},
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Alias, o.Upstream = "demo", func(context.Context) (a2a.Upstream, error) { return client, nil }
		w.follower = a2a.NewFollower(o)
		ctx, stop := context.WithCancel(t.Context())
		w.client, w.run = client, func(f func(context.Context) error) { running.Go(func() { _ = f(ctx) }) }
		w.run(w.follower.Run)
		if w.table, err = handles.New(handles.Options{TTL: 15 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		w.svc = w.newService()
		running.Go(func() { _ = w.svc.Run(ctx) })
		synctest.Wait()
		defer func() {
			stop()
			w.agent.Close()
			transport.CloseIdleConnections()
			_ = server.Close()
			network.Close()
			running.Wait()
			if err := w.table.Close(); err != nil {
				t.Error(err)
			}
			for _, complaint := range w.agent.Complaints() {
				t.Errorf("the agent complains: %s", complaint)
			}
		}()
		f(w)
	})
}

func (w *world) newService() *Service {
	w.t.Helper()
	svc, err := New(Options{
		Handles: w.table,
		Follow: func(alias string) (a2a.Follow, bool) {
			if alias != "demo" {
				return nil, false
			}
			return w.follower, true
		},
		Present: func(_ context.Context, e handles.Entry, _ string, s a2a.Snapshot) translate.Result {
			w.present.Add(1)
			return translate.ResultFromSnapshot(s, translate.Options{Agent: "demo", Handles: translate.Handles{Task: e.Handle}})
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return svc
}

// start sends a message and makes an MCP task of what comes of it.
func (w *world) start(text string) string { return w.goOn(handles.Entry{}, text) }

// goOn is start with a message to a task that there is.
func (w *world) goOn(task handles.Entry, text string) string {
	w.t.Helper()
	watch, err := w.follower.Send(w.t.Context(), a2a.SendRequest{Message: a2a.Message{
		MessageID: a2a.NewMessageID(), Role: a2a.RoleUser, Parts: []a2a.Part{{Kind: a2a.PartText, Text: text}},
		TaskID: task.TaskID, ContextID: task.ContextID,
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	snap, err := watch.Next(w.t.Context(), 0)
	if err != nil || snap.Task == nil {
		w.t.Fatalf("%s: no task: %v %v", text, err, snap.Err)
	}
	entry, err := w.table.Task(w.t.Context(), "ann", "demo", snap.Task.ContextID, snap.Task.ID, true)
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := w.svc.Create(w.t.Context(), entry, watch, "a2a_send_message")
	if err != nil {
		w.t.Fatal(err)
	}
	if info.ID != entry.Handle || info.Status != translate.TaskWorking || info.TTL < 24*time.Hour || info.PollInterval != 2*time.Second {
		w.t.Fatalf("created as %+v", info)
	}
	return info.ID
}

func (w *world) call(id string) Call {
	return Call{Principal: "ann", TaskID: id, ElicitForm: true, ElicitURL: true}
}

func (w *world) get(c Call) Detail {
	w.t.Helper()
	d, fault := w.svc.Get(w.t.Context(), c)
	if fault != nil {
		w.t.Fatalf("tasks/get: %v", fault)
	}
	return d
}

// until reads the task every poll interval until it has the status.
func (w *world) until(c Call, want translate.TaskStatus) Detail {
	w.t.Helper()
	var d Detail
	for range 200 {
		if d = w.get(c); d.Status == want {
			return d
		}
		time.Sleep(2 * time.Second)
	}
	w.t.Fatalf("the task is %s (%s), want %s", d.Status, d.StatusMessage, want)
	return d
}

func (w *world) update(c Call, inputResponses string) {
	w.t.Helper()
	if fault := w.svc.Update(w.t.Context(), c, json.RawMessage(inputResponses)); fault != nil {
		w.t.Fatalf("tasks/update %s: %v", inputResponses, fault)
	}
}

// result is what a completed task shows.
type result struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured struct {
		Status string `json:"status"`
		Task   string `json:"taskHandle"`
		Note   string `json:"note"`
	} `json:"structuredContent"`
	IsError bool `json:"isError"`
}

func (r result) text() string {
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n")
}

func (w *world) result(d Detail) result {
	w.t.Helper()
	var r result
	if err := json.Unmarshal(d.ResultJSON, &r); err != nil {
		w.t.Fatalf("result %s: %v", d.ResultJSON, err)
	}
	return r
}

func keys(d Detail) string {
	var list []string
	for _, a := range d.Asks {
		list = append(list, a.Key)
	}
	return strings.Join(list, " ")
}

// calls counts what reached the agent.
func (w *world) calls(method string) int { return len(w.agent.Calls(method)) }

func wantFault(t *testing.T, fault *translate.Error, code int, part string) {
	t.Helper()
	if fault == nil || fault.Code != code || !strings.Contains(fault.Message, part) {
		t.Errorf("got %v, want code %d and %q in it", fault, code, part)
	}
}
