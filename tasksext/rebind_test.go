package tasksext

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/a2a"
	"a2agate/fixtures"
	"a2agate/internal/pipenet"
	"a2agate/translate"
)

// replace puts another follower in the place of the agent's, as a reload does,
// and returns the old one. upstream nil is the same agent again.
func (w *world) replace(upstream func(context.Context) (a2a.Upstream, error)) *a2a.Follower {
	w.t.Helper()
	old := w.follower
	if upstream == nil {
		upstream = func(context.Context) (a2a.Upstream, error) { return w.client, nil }
	}
	w.follower = a2a.NewFollower(a2a.FollowerOptions{Alias: "demo", Upstream: upstream})
	w.run(w.follower.Run)
	synctest.Wait()
	w.svc.Rebind(w.t.Context(), "demo")
	return old
}

// other is the upstream of an agent that knows no task.
func (w *world) other() func(context.Context) (a2a.Upstream, error) {
	w.t.Helper()
	agent := fixtures.New(fixtures.Options{})
	network := pipenet.New()
	server := &http.Server{Handler: agent}
	transport := &http.Transport{DialContext: network.Dial}
	w.run(func(context.Context) error { return server.Serve(network) })
	w.run(func(ctx context.Context) error {
		<-ctx.Done()
		agent.Close()
		transport.CloseIdleConnections()
		_ = network.Close()
		return server.Close()
	})
	client, err := a2a.NewClient(a2a.ClientOptions{
		Alias: "demo", HTTP: &http.Client{Transport: transport}, Streaming: true,
		Interfaces: []a2a.Interface{{URL: "http://other.test" + fixtures.PathRPC, Binding: a2a.JSONRPC, Version: a2a.V10}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return func(context.Context) (a2a.Upstream, error) { return client, nil }
}

func dead(context.Context) (a2a.Upstream, error) {
	return nil, &a2a.Error{Cause: a2a.CauseDial, Message: "nothing listens there", Unsent: true}
}

// A running task goes on over a reload, whatever has become of its agent.
func TestRebindKeepsTasksRunning(t *testing.T) {
	tests := map[string]func(w *world) func(context.Context) (a2a.Upstream, error){
		"the same agent":             func(*world) func(context.Context) (a2a.Upstream, error) { return nil },
		"one that knows no task":     (*world).other,
		"one that cannot be reached": func(*world) func(context.Context) (a2a.Upstream, error) { return dead },
	}
	for name, upstream := range tests {
		for _, unary := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inWorld(t, fixtures.Options{Unary: unary}, func(w *world) {
					t := w.t
					id := w.start("slow 60 abc")
					time.Sleep(5 * time.Second)
					before := w.get(w.call(id))
					w.replace(upstream(w))
					after := w.get(w.call(id))
					if after.Status != translate.TaskWorking || after.StatusMessage != before.StatusMessage || !after.Updated.Equal(before.Updated) {
						t.Errorf("before %+v, after %+v", before.TaskInfo, after.TaskInfo)
					}
					if r := w.result(w.until(w.call(id), translate.TaskCompleted)); r.IsError || !strings.Contains(r.text(), "abc") {
						t.Errorf("result %+v", r)
					}
				})
			})
		}
	}
}

// The old follower is left alone when the new one has the task, so that it
// can end.
func TestRebindFreesTheOldFollower(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 600")
		time.Sleep(5 * time.Second)
		old := w.replace(nil)
		w.get(w.call(id))
		time.Sleep(5 * time.Second)
		w.get(w.call(id))
		if n := old.Counts().Watches; n != 0 {
			t.Errorf("%d watches on the replaced follower", n)
		}
		if n := w.follower.Counts().Watches; n != 1 {
			t.Errorf("%d watches on the new follower, want 1", n)
		}
		// Twice in a row, and for an agent that has no task.
		w.svc.Rebind(t.Context(), "demo")
		w.svc.Rebind(t.Context(), "demo")
		w.svc.Rebind(t.Context(), "billing")
		w.get(w.call(id))
		time.Sleep(5 * time.Second)
		w.get(w.call(id))
		if n := w.follower.Counts().Watches; n != 1 {
			t.Errorf("%d watches after moving to the same follower, want 1", n)
		}
		if fault := w.svc.Cancel(t.Context(), w.call(id)); fault != nil {
			t.Fatal(fault)
		}
		w.until(w.call(id), translate.TaskCancelled)
	})
}

// A question stays open over a reload, and its answer goes through the new
// client.
func TestRebindKeepsQuestions(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("worksask 1 size")
		c := w.call(id)
		w.until(c, translate.TaskInputRequired)
		w.replace(nil)
		if d := w.get(c); d.Status != translate.TaskInputRequired || keys(d) != "answer" {
			t.Fatalf("after the reload: %s %q", d.Status, keys(d))
		}
		w.update(c, `{"answer":{"action":"accept","content":{"answer":"large"}}}`)
		if r := w.result(w.until(c, translate.TaskCompleted)); r.IsError || !strings.Contains(r.text(), "large") {
			t.Errorf("result %+v", r)
		}
	})
}

// An answer that is on its way when the agent is replaced arrives once.
func TestRebindWaitsForAnAnswerOnItsWay(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("worksask 1 size")
		c := w.call(id)
		w.until(c, translate.TaskInputRequired)
		w.agent.Delay(3 * time.Second)
		w.update(c, `{"answer":{"action":"accept","content":{"answer":"large"}}}`)
		old := w.replace(nil)
		w.agent.Delay(0)
		if r := w.result(w.until(c, translate.TaskCompleted)); r.IsError || !strings.Contains(r.text(), "large") {
			t.Errorf("result %+v", r)
		}
		if n := len(w.agent.Tasks()); n != 1 {
			t.Errorf("the agent has %d tasks, want 1", n)
		}
		time.Sleep(10 * time.Second)
		if n := old.Counts().Watches; n != 0 {
			t.Errorf("%d watches on the replaced follower", n)
		}
	})
}

// A listener hears of what happens after the reload, and of no reload.
func TestRebindIsSilent(t *testing.T) {
	inWorld(t, fixtures.Options{}, func(w *world) {
		t := w.t
		id := w.start("slow 60 abc")
		time.Sleep(5 * time.Second)
		watch := w.svc.Listen(w.call(""), []string{id})
		defer watch.Close()
		<-watch.Wake()
		synctest.Wait()
		if got := watch.Take(t.Context()); len(got) != 1 {
			t.Fatalf("%d states at first", len(got))
		}
		for len(watch.Wake()) > 0 {
			<-watch.Wake()
		}
		w.replace(nil)
		time.Sleep(10 * time.Second)
		select {
		case <-watch.Wake():
			t.Errorf("told of a reload: %+v", watch.Take(t.Context()))
		default:
		}
		for {
			<-watch.Wake()
			got := watch.Take(t.Context())
			if len(got) == 1 && got[0].Status == translate.TaskCompleted {
				break
			}
		}
	})
}
