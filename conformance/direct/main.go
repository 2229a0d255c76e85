// Command direct runs this module's own A2A client and follower, without the
// gateway, against agents on the official SDKs: @a2a-js/sdk and a2a-go, each on
// each of four bindings.
//
//	direct NAME=COMMAND …
//
// COMMAND starts an agent, which prints its base URL as its first line; the
// words "--interface 1.0-rpc" and so on are put behind it, once for each
// binding. It prints a table, what went wrong below it, and a closing line; the
// exit code is 1 unless all went well.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"a2agate/a2a"
)

// bindings are the interfaces by the name that the agents know them by.
var bindings = []struct {
	name    string
	version a2a.Version
	binding a2a.Binding
}{
	{"1.0-rpc", a2a.V10, a2a.JSONRPC}, {"1.0-rest", a2a.V10, a2a.REST},
	{"0.3-rpc", a2a.V03, a2a.JSONRPC}, {"0.3-rest", a2a.V03, a2a.REST},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "direct:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

// column is one agent on one binding.
type column struct {
	name  string
	cells []string
}

func run(ctx context.Context, args []string) (bool, error) {
	if len(args) == 0 {
		return false, errors.New("name an agent: NAME=COMMAND")
	}
	var columns []column
	var wrong []string
	passed := 0
	for _, arg := range args {
		name, command, found := strings.Cut(arg, "=")
		if !found {
			return false, fmt.Errorf("%q is not NAME=COMMAND", arg)
		}
		for _, b := range bindings {
			col := column{name: name + " " + b.name}
			err := with(ctx, append(strings.Fields(command), "--interface", b.name), func(url string) error {
				p, err := newPeer(ctx, url, b.version, b.binding)
				if err != nil {
					return err
				}
				defer p.close()
				for _, s := range steps() {
					err := p.do(s)
					if err == nil {
						passed++
						col.cells = append(col.cells, "ok")
						continue
					}
					col.cells = append(col.cells, "FAIL")
					wrong = append(wrong, fmt.Sprintf("%s, %s: %v", col.name, s.name, err))
				}
				return nil
			})
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %v", col.name, err))
			}
			columns = append(columns, col)
		}
	}
	show(columns)
	for _, line := range wrong {
		fmt.Println("FAIL", line)
	}
	fmt.Printf("direct: %d passed, %d failed\n", passed, len(wrong))
	return len(wrong) == 0, nil
}

// show prints the table: one row a step, one column an agent and binding.
func show(columns []column) {
	width := 0
	for _, s := range steps() {
		width = max(width, len(s.name))
	}
	for i, c := range columns {
		fmt.Printf("%*s %d: %s\n", width, "", i+1, c.name)
	}
	fmt.Printf("%-*s", width, "")
	for i := range columns {
		fmt.Printf(" %-4d", i+1)
	}
	fmt.Println()
	for i, s := range steps() {
		fmt.Printf("%-*s", width, s.name)
		for _, c := range columns {
			cell := "-"
			if i < len(c.cells) {
				cell = c.cells[i]
			}
			fmt.Printf(" %-4s", cell)
		}
		fmt.Println()
	}
}

// with starts an agent, calls use with its URL, and ends it.
func with(ctx context.Context, command []string, use func(url string) error) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer // shown when the agent does not start
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", command[0], err)
	}
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		err = use(strings.TrimSpace(lines.Text()))
	} else {
		err = fmt.Errorf("%s printed no URL", strings.Join(command, " "))
		defer func() { fmt.Fprint(os.Stderr, said.String()) }()
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	for lines.Scan() {
	}
	_ = cmd.Wait() // ended by the signal
	return err
}

// peer is one agent as seen by the client.
type peer struct {
	ctx      context.Context
	agent    *a2a.Agent
	client   *a2a.Client
	follower *a2a.Follower
	version  a2a.Version
	binding  a2a.Binding
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu   sync.Mutex // guards sent
	sent int        // requests
}

func newPeer(ctx context.Context, url string, version a2a.Version, binding a2a.Binding) (*peer, error) {
	p := &peer{version: version, binding: binding}
	var err error
	p.agent, err = a2a.NewAgent(a2a.AgentConfig{Alias: "peer", URL: url, EmptyStreamFallback: true, Observe: func(a2a.Exchange) {
		p.mu.Lock()
		p.sent++
		p.mu.Unlock()
	}})
	if err != nil {
		return nil, err
	}
	p.ctx, p.stop = context.WithCancel(ctx)
	p.follower = a2a.NewFollower(a2a.FollowerOptions{Alias: "peer", Upstream: p.agent.Upstream})
	p.running.Go(func() { _ = p.follower.Run(p.ctx) })
	<-p.follower.Started()
	if p.client, err = p.agent.Client(ctx); err != nil {
		p.close()
		return nil, err
	}
	if got := p.agent.Status(); got.Version != version || got.Binding != binding {
		p.close()
		return nil, fmt.Errorf("the card was read as %s %s, not %s %s", got.Version, got.Binding, version, binding)
	}
	return p, nil
}

func (p *peer) close() {
	p.stop()
	p.running.Wait()
	p.agent.Close()
}

func (p *peer) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// do runs one step within its time.
func (p *peer) do(s step) error {
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	return s.do(ctx, p)
}
