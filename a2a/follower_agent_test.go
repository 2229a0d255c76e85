package a2a_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/a2a"
	"a2agate/fixtures"
)

// memoryNet is a listener without sockets, so that fake time passes while
// everybody waits.
type memoryNet struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (m *memoryNet) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memoryNet) Close() error   { close(m.closed); return nil }
func (m *memoryNet) Addr() net.Addr { return &net.IPAddr{} }

func (m *memoryNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case m.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rig is the fixture agent behind the real client and a running follower.
type rig struct {
	*fixtures.Agent
	f *a2a.Follower
}

type wire struct {
	unary   bool
	binding a2a.Binding
}

func (w wire) String() string { return fmt.Sprintf("%s,unary=%v", w.binding, w.unary) }

// onEveryWire runs test against a fresh agent on each binding, with and
// without streams, in fake time.
func onEveryWire(t *testing.T, test func(t *testing.T, r *rig)) {
	for _, w := range []wire{{false, a2a.JSONRPC}, {true, a2a.JSONRPC}, {false, a2a.REST}, {true, a2a.REST}} {
		t.Run(w.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, end := newRig(t, w)
				defer end()
				test(t, r)
			})
		})
	}
}

func newRig(t *testing.T, w wire) (*rig, func()) {
	t.Helper()
	r := &rig{Agent: fixtures.New(fixtures.Options{Unary: w.unary, Bindings: []a2a.Binding{w.binding}})}
	network := &memoryNet{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: r.Agent}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(network)
	}()
	transport := &http.Transport{DialContext: network.dial}
	path := fixtures.PathRPC
	if w.binding == a2a.REST {
		path = fixtures.PathREST
	}
	client, err := a2a.NewClient(a2a.ClientOptions{
		Alias:      "demo",
		Interfaces: []a2a.Interface{{URL: "http://demo.test" + path, Binding: w.binding, Version: a2a.V10}},
		HTTP:       &http.Client{Transport: transport}, Streaming: !w.unary, EmptyStreamFallback: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.f = a2a.NewFollower(a2a.FollowerOptions{Alias: "demo", Upstream: func(context.Context) (a2a.Upstream, error) { return client, nil }})
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- r.f.Run(ctx) }()
	synctest.Wait()
	return r, func() {
		synctest.Wait()
		if c := r.f.Counts(); c != (a2a.FollowerCounts{}) {
			t.Errorf("left in the follower: %+v", c)
		}
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		for _, c := range r.Complaints() {
			t.Errorf("the agent complains: %s", c)
		}
		r.Agent.Close()
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	}
}

func (r *rig) send(t *testing.T, text, taskID, contextID string) *a2a.Watch {
	t.Helper()
	w, err := r.f.Send(context.Background(), a2a.SendRequest{Message: a2a.Message{
		MessageID: a2a.NewMessageID(), Role: a2a.RoleUser, TaskID: taskID, ContextID: contextID,
		Parts: []a2a.Part{{Kind: a2a.PartText, Text: text}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// await reads snapshots until ok, and checks that Seq rises.
func await(t *testing.T, w *a2a.Watch, d time.Duration, ok func(a2a.Snapshot) bool) a2a.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	s := w.Now()
	for !ok(s) {
		next, err := w.Next(ctx, s.Seq)
		if err != nil {
			t.Errorf("after %v: %v; last: %+v, task %+v", d, err, next, next.Task)
			return next
		}
		if next.Seq <= s.Seq {
			t.Errorf("Seq went from %d to %d", s.Seq, next.Seq)
		}
		s = next
	}
	return s
}

func ended(s a2a.Snapshot) bool { return s.Done }

func state(s a2a.Snapshot) a2a.State {
	if s.Task == nil {
		return ""
	}
	return s.Task.Status.State
}

// words are all texts of an answer.
func words(s a2a.Snapshot) string {
	var out []string
	add := func(parts []a2a.Part) {
		for _, p := range parts {
			out = append(out, p.Text)
		}
	}
	if s.Message != nil {
		add(s.Message.Parts)
	}
	if s.Task != nil {
		for _, a := range s.Task.Artifacts {
			add(a.Parts)
		}
		if m := s.Task.Status.Message; m != nil {
			add(m.Parts)
		}
	}
	return strings.Join(out, "|")
}

// Whatever happens to the answer on its way, the agent runs the message once,
// and the caller gets the answer.
func TestFollowerAgainstAnAgent(t *testing.T) {
	tests := []struct {
		say   string
		state a2a.State
		words string
	}{
		{say: "echo hello", words: "hello"},
		{say: "task hello", state: a2a.StateCompleted, words: "olleh"},
		{say: "instant hello", state: a2a.StateCompleted},
		{say: "early 30 hello", state: a2a.StateCompleted, words: "hello"},
		{say: "slow 300 hello", state: a2a.StateCompleted, words: "hello"},
		{say: "chunks 20 1", state: a2a.StateCompleted},
		{say: "interleave 5", state: a2a.StateCompleted},
		{say: "flood 200", state: a2a.StateCompleted},
		{say: "fail badly", state: a2a.StateFailed, words: "badly"},
		{say: "reject this", state: a2a.StateRejected, words: "this"},
		{say: "cancelme", state: a2a.StateCanceled},
		{say: "auth 90", state: a2a.StateCompleted},
		{say: "cutstream 5", state: a2a.StateCompleted},
		{say: "shortstream 5", state: a2a.StateCompleted},
		{say: "halfevent 5", state: a2a.StateCompleted},
		{say: "errormid", state: a2a.StateCompleted},
		{say: "holdopen hello", state: a2a.StateCompleted},
		{say: "late hello", state: a2a.StateCompleted, words: "hello"},
		{say: "dupes hello", state: a2a.StateCompleted},
		{say: "plainjson hello", state: a2a.StateCompleted},
		{say: "ndjson hello", state: a2a.StateCompleted},
		{say: "keepalive 200", state: a2a.StateCompleted},
		{say: "pollbusy 7", state: a2a.StateCompleted},
	}
	onEveryWire(t, func(t *testing.T, r *rig) {
		for _, tt := range tests {
			w := r.send(t, tt.say, "", "")
			s := await(t, w, 10*time.Minute, ended)
			if s.Err != nil || state(s) != tt.state || !strings.Contains(words(s), tt.words) {
				t.Errorf("%s: state %s, words %q, err %v, notes %q", tt.say, state(s), words(s), s.Err, s.Notes)
			}
			if n := r.ExecutionsOf(tt.say); n != 1 {
				t.Errorf("%s: the agent ran the message %d times", tt.say, n)
			}
			w.Close()
		}
	})
}

func TestFollowerLosesATask(t *testing.T) {
	tests := []struct {
		say  string
		code int
	}{
		{"vanish", a2a.CodeTaskNotFound},
		{"protoerror", -32603},
	}
	onEveryWire(t, func(t *testing.T, r *rig) {
		for _, tt := range tests {
			w := r.send(t, tt.say, "", "")
			s := await(t, w, 10*time.Minute, ended)
			var e *a2a.Error
			if !errors.As(s.Err, &e) || !s.Lost || e.Code != tt.code {
				t.Errorf("%s: lost %v, err %v, notes %q", tt.say, s.Lost, s.Err, s.Notes)
			}
			w.Close()
		}
	})
}

func TestFollowerThroughARestart(t *testing.T) {
	onEveryWire(t, func(t *testing.T, r *rig) {
		w := r.send(t, "early 100 hello", "", "")
		defer w.Close()
		await(t, w, time.Minute, func(s a2a.Snapshot) bool { return s.Task != nil })
		go func() {
			time.Sleep(10 * time.Second)
			r.Down(true)
			time.Sleep(30 * time.Second)
			r.Down(false)
		}()
		await(t, w, time.Minute, func(s a2a.Snapshot) bool { return strings.Contains(s.Trouble, "the agent cannot be reached (") })
		s := await(t, w, 5*time.Minute, ended)
		if s.Err != nil || s.Trouble != "" || !strings.Contains(words(s), "hello") {
			t.Errorf("state %s, words %q, err %v", state(s), words(s), s.Err)
		}
	})
}

func TestFollowerOutOfReach(t *testing.T) {
	onEveryWire(t, func(t *testing.T, r *rig) {
		w := r.send(t, "early 3000 hello", "", "")
		defer w.Close()
		await(t, w, time.Minute, func(s a2a.Snapshot) bool { return s.Task != nil })
		r.Down(true)
		start := time.Now()
		s := await(t, w, 10*time.Minute, ended)
		if took := time.Since(start); !s.Lost || took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("after %v: lost %v, err %v", took, s.Lost, s.Err)
		}
		r.Down(false)
	})
}

func TestFollowerAnswersAQuestion(t *testing.T) {
	onEveryWire(t, func(t *testing.T, r *rig) {
		asks := func(s a2a.Snapshot) bool { return state(s) == a2a.StateInputRequired }
		for _, keep := range []bool{true, false} {
			w := r.send(t, "ask2 size", "", "")
			s := await(t, w, time.Minute, asks)
			first := words(s)
			if !keep {
				w.Close()
			}
			w2 := r.send(t, "large", s.Task.ID, s.Task.ContextID)
			s = await(t, w2, time.Minute, asks)
			if words(s) == first {
				t.Errorf("the first question again: %q", first)
			}
			w3 := r.send(t, "red", s.Task.ID, s.Task.ContextID)
			s = await(t, w3, time.Minute, ended)
			if state(s) != a2a.StateCompleted || !strings.Contains(words(s), "large") || !strings.Contains(words(s), "red") {
				t.Errorf("state %s, words %q", state(s), words(s))
			}
			if keep {
				if s := await(t, w, time.Minute, ended); state(s) != a2a.StateCompleted {
					t.Errorf("the first watch: %s", state(s))
				}
			}
			for _, w := range []*a2a.Watch{w, w2, w3} {
				w.Close()
			}
		}
	})
}

func TestFollowerCancelsAtAnAgent(t *testing.T) {
	tests := []struct {
		say   string
		state a2a.State
		code  int
	}{
		{"early 100 hello", a2a.StateCanceled, 0},
		{"refusecancel 20", a2a.StateCompleted, a2a.CodeTaskNotCancelable},
		{"latecancel 10", a2a.StateCanceled, 0},
	}
	onEveryWire(t, func(t *testing.T, r *rig) {
		for _, tt := range tests {
			r.ForgetRecord()
			w := r.send(t, tt.say, "", "")
			_, err := w.Cancel(context.Background())
			var e *a2a.Error
			if code := 0; errors.As(err, &e) && e.Code != tt.code || err == nil && tt.code != code {
				t.Errorf("%s: %v", tt.say, err)
			}
			s := await(t, w, 2*time.Minute, ended)
			if state(s) != tt.state || s.Err != nil {
				t.Errorf("%s: state %s, err %v", tt.say, state(s), s.Err)
			}
			if n := len(r.Calls("CancelTask")); n != 1 {
				t.Errorf("%s: %d CancelTasks", tt.say, n)
			}
			w.Close()
		}
	})
}
