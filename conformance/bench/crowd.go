package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The crowd: many calls that wait and many tasks that nobody asks about,
// spread over many agents.
const (
	crowdAgents = 50
	crowdWaits  = 2000
	crowdTasks  = 10000
	// crowdPrograms serve the agents: one fixture agent keeps 4,096 tasks, and
	// a task that it has forgotten is lost and measures nothing.
	crowdPrograms = 4
	// quiet is how long the gateway is watched while nothing changes.
	quiet = 20 * time.Second
	// settled is when tasks that nobody asks about are polled seldom.
	settled = 4 * time.Minute
)

// crowd measures memory for each wait and each idle task, processor time while
// nothing changes, and what is left when all have gone.
func crowd(ctx context.Context, s settings, out io.Writer) error {
	w := &world{}
	defer func() { w.end() }()
	var programs []*process
	defer func() {
		for _, p := range programs {
			p.end()
		}
	}()
	for range crowdPrograms {
		p, err := start(anyURL, s.binary, "agent", "--listen", "127.0.0.1:0")
		if err != nil {
			return err
		}
		programs = append(programs, p)
	}
	if err := w.startCrowdGateway(s, programs); err != nil {
		return err
	}
	if err := w.warm(ctx); err != nil {
		return err
	}
	base, err := w.rest(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "crowd: %d agents, %.1f MiB in use, %d goroutines\n", crowdAgents, base.heap/(1<<20), base.goroutines)
	if err := w.waits(ctx, s, out, base); err != nil {
		return fmt.Errorf("waits: %w", err)
	}
	if base, err = w.rest(ctx); err != nil {
		return err
	}
	if err := w.tasks(ctx, s, out, base); err != nil {
		return fmt.Errorf("tasks: %w", err)
	}
	return nil
}

func (w *world) startCrowdGateway(s settings, programs []*process) error {
	var err error
	if w.dir, err = os.MkdirTemp("", "a2agate-bench-"); err != nil {
		return err
	}
	debug, err := freeAddress()
	if err != nil {
		return err
	}
	w.debugURL = "http://" + debug
	var agents []string
	for i := range crowdAgents {
		agents = append(agents, fmt.Sprintf(`"agent%d":{"url":%q}`, i, programs[i%len(programs)].url))
	}
	file := filepath.Join(w.dir, "agents.json")
	body := fmt.Sprintf(`{"agents":{%s},"listen":"127.0.0.1:0","debugListen":%q,"wait":{"without":"5m","taskGrace":"0s"}}`, strings.Join(agents, ","), debug)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		return err
	}
	w.gateway, err = start(mcpURL, s.binary, "serve", "--config", file)
	return err
}

// warm calls every agent once, so that cards and clients are there.
func (w *world) warm(ctx context.Context) error {
	for i := range crowdAgents {
		if err := once(ctx, http.DefaultClient, w.crowdCall(i, `"echo hello"`, "", "hello"), new(bytes.Buffer)); err != nil {
			return err
		}
	}
	return nil
}

// crowdCall is a send to one of the agents; more are further arguments.
func (w *world) crowdCall(i int, text, more, must string) request {
	return request{method: http.MethodPost, url: w.gateway.url, must: must, header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"a2a_send_message"},
	}, body: fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a2a_send_message","arguments":{"agent":"agent%d","text":%s%s},%s}}`,
		i, i%crowdAgents, text, more, metaJSON)}
}

// waits opens many calls to silent agents at once.
func (w *world) waits(ctx context.Context, s settings, out io.Writer, base holding) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: -1, DisableKeepAlives: true}}
	var wg sync.WaitGroup
	opened := make(chan error, crowdWaits)
	for i := range crowdWaits {
		wg.Go(func() { opened <- waitOne(ctx, client, w.crowdCall(i, `"slow 300"`, "", "")) })
		if i%50 == 49 { // a queue of connections, not a flood
			time.Sleep(20 * time.Millisecond)
		}
	}
	for range crowdWaits {
		select {
		case err := <-opened:
			if err != nil {
				return err
			}
		case <-time.After(60 * time.Second):
			return errors.New("not every call had its first byte within a minute")
		}
	}
	full, err := w.rest(ctx)
	if err != nil {
		return err
	}
	if err := w.keepProfiles(ctx, s, "waits"); err != nil {
		return err
	}
	busy, err := w.processor()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d waiting calls: %.1f KiB a wait in use (%.1f heap, %.1f stacks; aim: at most 40), %.2f goroutines a wait, %.1f%% of a core while nothing changes\n",
		crowdWaits, (full.total()-base.total())/crowdWaits/1024, (full.heap-base.heap)/crowdWaits/1024, (full.stacks-base.stacks)/crowdWaits/1024, float64(full.goroutines-base.goroutines)/crowdWaits, busy*100)
	leave()
	wg.Wait()
	left, err := w.settle(ctx, base)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "after they left: %d goroutines more than before\n", left.goroutines-base.goroutines)
	return nil
}

// waitOne sends a call, reads its first byte, and says so by returning; the
// connection stays open until ctx is done.
func waitOne(ctx context.Context, c *http.Client, r request) error {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, strings.NewReader(r.body))
	if err != nil {
		return err
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	_, err = bufio.NewReaderSize(resp.Body, 16).ReadByte()
	return err
}

// tasks makes many MCP tasks and asks about none.
func (w *world) tasks(ctx context.Context, s settings, out io.Writer, base holding) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, MaxConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	for n := range 16 {
		wg.Go(func() {
			for i := n; i < crowdTasks; i += 16 {
				r := w.crowdCall(i, `"slow 3600"`, `,"blocking":true`, `"resultType":"task"`)
				r.body = strings.Replace(r.body, `clientCapabilities":{}`, `clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)
				if err := once(ctx, client, r, new(bytes.Buffer)); err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	if first != nil {
		return first
	}
	client.CloseIdleConnections()
	early, err := w.processor()
	if err != nil {
		return err
	}
	full, err := w.rest(ctx)
	if err != nil {
		return err
	}
	if err := w.keepProfiles(ctx, s, "tasks"); err != nil {
		return err
	}
	late, err := w.processor()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d idle tasks: %.1f KiB a task in use (aim: at most 8), %.3f goroutines a task, %.1f%% of a core in the first %s, %.1f%% in the next\n",
		crowdTasks, (full.total()-base.total())/crowdTasks/1024, float64(full.goroutines-base.goroutines)/crowdTasks, early*100, quiet, late*100)
	time.Sleep(settled)
	if late, err = w.processor(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s later: %.1f%% of a core\n", settled, late*100)
	return nil
}

// holding is what the gateway holds at one moment, in bytes.
type holding struct {
	heap, stacks float64
	goroutines   int
}

func (l holding) total() float64 { return l.heap + l.stacks }

// rest has the gateway collect its garbage and reads what is left.
func (w *world) rest(ctx context.Context) (holding, error) {
	var l holding
	time.Sleep(time.Second)
	var body []byte
	var err error
	for range 4 { // each collection halves a stack that is too large
		if body, err = fetch(ctx, w.debugURL+"/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return l, err
		}
	}
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "# ")), " = ")
		if !ok {
			continue
		}
		switch name {
		case "HeapAlloc":
			l.heap, _ = strconv.ParseFloat(value, 64)
		case "Stack":
			used, _, _ := strings.Cut(value, " / ")
			l.stacks, _ = strconv.ParseFloat(used, 64)
		}
	}
	body, err = fetch(ctx, w.debugURL+"/debug/pprof/goroutine?debug=1")
	if err != nil {
		return l, err
	}
	_, after, _ := strings.Cut(string(body), "total ")
	count, _, _ := strings.Cut(after, "\n")
	if l.goroutines, err = strconv.Atoi(strings.TrimSpace(count)); err != nil || l.heap == 0 || l.stacks == 0 {
		return l, fmt.Errorf("no figures at %s: %+v", w.debugURL, l)
	}
	return l, nil
}

// keepProfiles writes what the gateway holds at this moment, with -profile: the
// heap in use, and the goroutines by what they wait in.
func (w *world) keepProfiles(ctx context.Context, s settings, when string) error {
	if s.profileDir == "" {
		return nil
	}
	if err := os.MkdirAll(s.profileDir, 0o755); err != nil {
		return err
	}
	for file, path := range map[string]string{
		when + "-heap.pprof":     "/debug/pprof/heap?gc=1",
		when + "-goroutines.txt": "/debug/pprof/goroutine?debug=1",
	} {
		body, err := fetch(ctx, w.debugURL+path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.profileDir, file), body, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the gateway's goroutines are back where they were: the
// pool keeps idle connections for half a minute, so three quarters at most.
func (w *world) settle(ctx context.Context, base holding) (holding, error) {
	for range 45 {
		l, err := w.rest(context.WithoutCancel(ctx))
		if err != nil || l.goroutines <= base.goroutines+20 {
			return l, err
		}
	}
	return w.rest(context.WithoutCancel(ctx))
}

// processor is the share of one core that the gateway uses while it is watched.
func (w *world) processor() (float64, error) {
	before, err := processorTime(w.gateway.pid())
	if err != nil {
		return 0, err
	}
	time.Sleep(quiet)
	after, err := processorTime(w.gateway.pid())
	return (after - before).Seconds() / quiet.Seconds(), err
}

// clockTick is the unit of /proc/PID/stat; Linux fixes it at 100 a second.
const clockTick = 10 * time.Millisecond

func processorTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(after)
	if !ok || len(fields) < 13 {
		return 0, errors.New("/proc stat is not as expected")
	}
	var total time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * clockTick
	}
	return total, nil
}
