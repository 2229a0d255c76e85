package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"a2agate/fixtures"
)

// child is a2agate as a process of its own.
type child struct {
	cmd *exec.Cmd
	log *output
}

// program is this test's binary as the program: TestMain goes by the name that
// it is called by.
func program(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a2agate")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}

func startProgram(t *testing.T, dir string, args ...string) *child {
	t.Helper()
	p := &child{cmd: program(t, dir, args...), log: newOutput()}
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() }) // it has ended, unless the test has failed
	return p
}

func (p *child) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end waits for the process and returns its exit code.
func (p *child) end(t *testing.T) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.cmd.Wait() // the exit code tells
	}()
	select {
	case <-done:
	case <-time.After(forever):
		t.Fatalf("the program does not end:\n%s", p.log)
	}
	return p.cmd.ProcessState.ExitCode()
}

// running is a gateway process with an agent that holds its answers.
func running(t *testing.T, more string) (g *gate, p *child, began <-chan struct{}, release func()) {
	t.Helper()
	agent := newAgentServer(t, fixtures.Options{})
	began, release = agent.hold()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents.json"), fmt.Sprintf(`{"listen":"127.0.0.1:0","agents":{"demo":{"url":%q}}%s}`, agent.url, more))
	p = startProgram(t, dir, "serve")
	g = &gate{t: t, dir: dir, file: filepath.Join(dir, "agents.json"), log: p.log, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(g.client.CloseIdleConnections)
	g.url = p.log.match(t, `listening on (\S+)`)[1]
	return g, p, began, release
}

// answering sends a call that the agent holds.
func (g *gate) answering(t *testing.T) <-chan answered {
	t.Helper()
	answer := make(chan answered, 1)
	go func() {
		a, err := g.ask(context.Background(), "tools/call", "a2a_send_message", `"name":"a2a_send_message","arguments":{"text":"hold"}`, "")
		if err != nil {
			t.Error(err)
		}
		answer <- a
	}()
	return answer
}

// An interrupt drains: the call in flight is answered, then the program ends
// well.
func TestInterruptDrains(t *testing.T) {
	t.Parallel()
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		g, p, began, release := running(t, "")
		answer := g.answering(t)
		<-began
		p.signal(t, s)
		g.log.match(t, "a2agate: shutting down, calls in flight are answered; interrupt again to stop at once")
		until(t, "new calls are kept out", func() bool {
			_, err := g.ask(t.Context(), "tools/list", "", "", "")
			return err != nil
		})
		release()
		if a := <-answer; !strings.Contains(string(a.Result), "let go") {
			t.Errorf("the call in flight ended with %s %+v", a.Result, a.Error)
		}
		if code := p.end(t); code != 0 {
			t.Errorf("%s: exit code %d:\n%s", s, code, p.log)
		}
	}
}

// A second interrupt cuts the drain short: the call is answered with what
// there is, and its handle.
func TestSecondInterruptCuts(t *testing.T) {
	t.Parallel()
	g, p, began, release := running(t, "")
	defer release()
	answer := g.answering(t)
	<-began
	p.signal(t, os.Interrupt)
	g.log.match(t, "interrupt again to stop at once")
	p.signal(t, os.Interrupt)
	a := <-answer
	var r toolResult
	if err := json.Unmarshal(a.Result, &r); err != nil || r.envelope().Status != "working" || r.envelope().Task == "" {
		t.Errorf("the call in flight ended with %s %+v (%v)", a.Result, a.Error, err)
	}
	if code := p.end(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
}

// SIGHUP reloads.
func TestHangupReloads(t *testing.T) {
	t.Parallel()
	g, p, _, release := running(t, "")
	defer release()
	p.signal(t, syscall.SIGHUP)
	g.log.match(t, "reloading the configuration on a signal")
	g.log.match(t, `msg="configuration unchanged" file=`)
	g.edit(t, strings.Replace(g.config(t), `"agents"`, `"toolPrefix":"x","agents"`, 1), reloaded)
	p.signal(t, os.Interrupt)
	if code := p.end(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
	// Without a file there is nothing to reload, and nothing breaks.
	p = startProgram(t, t.TempDir(), "serve", "--listen", "127.0.0.1:0", "http://127.0.0.1:1")
	p.log.match(t, `listening on (\S+)`)
	p.signal(t, syscall.SIGHUP)
	p.log.match(t, "there is nothing to reload but the agents' cards")
	p.signal(t, os.Interrupt)
	if code := p.end(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.log)
	}
}

// SIGHUP has the cards read again that are still fresh: a person asks for it.
func TestHangupReadsCards(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string]func(dir, url string) []string{
		"file": func(dir, url string) []string {
			write(t, filepath.Join(dir, "agents.json"), fmt.Sprintf(`{"listen":"127.0.0.1:0","agents":{"demo":{"url":%q}}}`, url))
			return []string{"serve"}
		},
		"no file": func(_, url string) []string { return []string{"serve", "--listen", "127.0.0.1:0", url} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := newAgentServer(t, fixtures.Options{CardMaxAge: time.Hour})
			dir := t.TempDir()
			p := startProgram(t, dir, arguments(dir, agent.url)...)
			until(t, "the agent is ready", func() bool { return strings.Contains(p.log.String(), "agent ready") })
			before := len(agent.Requests())
			p.signal(t, syscall.SIGHUP)
			until(t, "the card is read again", func() bool { return len(agent.Requests()) > before })
			if r := agent.Requests()[before]; r.Path != fixtures.PathCard {
				t.Errorf("%s %s", r.Method, r.Path)
			}
			p.signal(t, os.Interrupt)
			if code := p.end(t); code != 0 {
				t.Errorf("exit code %d:\n%s", code, p.log)
			}
		})
	}
}

func (g *gate) config(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Nothing of a gateway is left when it has ended: no goroutine, whatever was
// going on.
func TestNothingLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	func() {
		agent := fixtures.New(fixtures.Options{})
		s := httptest.NewServer(agent)
		defer s.Close()
		defer agent.Close()
		hang := httptest.NewServer(http.HandlerFunc(silent))
		defer hang.Close()
		dir := t.TempDir()
		file := filepath.Join(dir, "agents.json")
		text := `{"agents":{"demo":{"url":%q},"hang":{"url":%q},"dead":{"url":"http://127.0.0.1:1"}},"wait":{"taskGrace":"0s"}%s}`
		write(t, file, fmt.Sprintf(text, s.URL, hang.URL, ""))
		ctx, cancel := context.WithCancel(context.Background())
		g := &gate{t: t, dir: dir, file: file, log: newOutput(), done: make(chan int, 1), client: &http.Client{Transport: &http.Transport{}}, cancel: cancel}
		go func() {
			g.done <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, shell{dir: dir}.process(nil, io.Discard, g.log))
		}()
		g.url = g.log.match(t, `listening on (\S+)`)[1]
		g.call(t, "a2a_send_message", `{"agent":"demo","text":"echo hi"}`)
		if g.callWith(t, "a2a_send_message", `{"agent":"demo","text":"slow 600"}`, tasksCapability).TaskID == "" {
			t.Error("no task")
		}
		l := g.listen(t)
		g.edit(t, fmt.Sprintf(text, s.URL, hang.URL, `,"toolPrefix":"x"`), reloaded)
		if code := g.stop(); code != 0 {
			t.Errorf("exit code %d:\n%s", code, g.log)
		}
		l.rest()
	}()
	goleak.VerifyNone(t, before)
}

// The gateway listens before any agent has answered.
func TestStartWaitsForNoAgent(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	agent := served(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		silent(w, r)
	})(t)
	g := newGate(t, fmt.Sprintf(`{"agents":{"hang":{"url":%q}}}`, agent))
	if state := g.agents(t)["hang"].State; state != "connecting" {
		t.Errorf("the agent that does not answer is %s", state)
	}
	<-asked
}

// readyLimit is what fifty agents may take.
const readyLimit = 3 * time.Second

// Fifty agents, ten of them dead or silent, are looked for side by side.
func TestFiftyAgentsAreReadySoon(t *testing.T) {
	farm := newAgentFarm(t, 40)
	entries := strings.TrimSuffix(strings.TrimPrefix(farm.file(""), `{"agents":{`), `}}`)
	hang := served(silent)(t)
	for i := range 5 {
		entries += fmt.Sprintf(`,"dead%d":{"url":"http://127.0.0.1:1"},"silent%d":{"url":"%s/%d"}`, i, i, hang, i)
	}
	started := time.Now()
	g := newGate(t, `{"agents":{`+entries+`},"expose":["generic","agents"]}`)
	if body := g.get(t, "/readyz"); body != `{"status":"ready"}` {
		t.Errorf("readyz says %s", body)
	}
	until(t, "forty agents are ready", func() bool {
		n := 0
		for _, a := range g.agents(t) {
			if a.State == "ready" {
				n++
			}
		}
		return n == 40
	})
	if took := time.Since(started); took > readyLimit {
		t.Errorf("ready after %s, want %s", took, readyLimit)
	}
	// P29: the list stays small, and the names are those of the agents.
	resp, err := g.post(t.Context(), "/mcp", "tools/list", "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	list, err := io.ReadAll(resp.Body)
	if err != nil || len(list) >= 20_000 {
		t.Errorf("tools/list has %d bytes (%v), want less than 20 kB", len(list), err)
	}
	if tools := g.tools(t, "/mcp"); len(tools) != 54 || tools["agent7"].Name == "" {
		t.Errorf("%d tools", len(tools))
	}
	if r := g.call(t, "a2a_discover", `{"query":"skill 3 of agent 7"}`); strings.Count(string(r.Structured), `"alias"`) > 10 {
		t.Errorf("more than ten hits: %s", r.Structured)
	}
	if r := g.call(t, "a2a_send_message", `{"agent":"agnt7","text":"x"}`); !r.IsError || !strings.Contains(r.text(), `the nearest are "agent7"`) {
		t.Errorf("a wrong name: %s", r.text())
	}
}

// The scripted agent alone: it says where it is, and what it was told to be.
func TestAgentCommand(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out := newOutput()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"agent", "--listen", "127.0.0.1:0", "--no-streaming", "--protocol", "0.3", "--binding", "HTTP+JSON"},
			shell{}.process(nil, out, io.Discard))
	}()
	url := out.match(t, `agent: (\S+)\n`)[1]
	code, stdout, stderr := shell{dir: t.TempDir()}.run(t.Context(), "doctor", url, "--send", "task hello")
	for _, want := range []string{"streaming false", "A2A 0.3 over HTTP+JSON at " + url, "the agent does not stream"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, stdout, stderr)
		}
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
