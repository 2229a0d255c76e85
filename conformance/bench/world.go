package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// world is the programs of one run.
type world struct {
	agent, plain, gateway, proxy, plainProxy *process
	debugURL                                 string
	startup                                  time.Duration
	dir                                      string
}

// process is one started program; url is the first one it printed.
type process struct {
	cmd  *exec.Cmd
	url  string
	out  io.ReadCloser
	done chan struct{}

	mu   sync.Mutex
	last []string // the newest lines it printed, lastLines at most
}

// lastLines are kept of what a program prints, to say why a case broke.
const lastLines = 5

// said returns the newest lines of the program.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.last, "; ")
}

func (p *process) hear(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last = append(p.last, line); len(p.last) > lastLines {
		p.last = p.last[1:]
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// end asks the program to stop and waits for it, five seconds at most.
func (p *process) end() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	<-p.done
	_ = p.cmd.Wait()
	kill.Stop()
}

// start runs a program until it prints a match of want on either stream.
func start(want *regexp.Regexp, name string, args ...string) (*process, error) {
	cmd := exec.Command(name, args...)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, out: r, done: make(chan struct{})}
	found := make(chan string, 1)
	go func() { // end waits for it through done
		defer close(p.done)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			p.hear(lines.Text())
			if m := want.FindString(lines.Text()); m != "" {
				select {
				case found <- m:
				default:
				}
			}
		}
	}()
	exited := make(chan struct{})
	go func() { // ends with the program
		_, _ = cmd.Process.Wait()
		_ = w.Close()
		close(exited)
	}()
	select {
	case p.url = <-found:
		return p, nil
	case <-exited:
		return nil, fmt.Errorf("%s %s ended before it printed a URL", name, strings.Join(args, " "))
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("%s printed no URL within 20 s", name)
	}
}

var (
	anyURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	mcpURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)
)

func startWorld(ctx context.Context, s settings) (_ *world, err error) {
	w := &world{}
	defer func() {
		if err != nil {
			w.end()
		}
	}()
	if w.dir, err = os.MkdirTemp("", "a2agate-bench-"); err != nil {
		return nil, err
	}
	if w.startup, err = startToListening(s.binary); err != nil {
		return nil, err
	}
	if w.agent, err = start(anyURL, s.binary, "agent", "--listen", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if w.plain, err = start(anyURL, s.binary, "agent", "--listen", "127.0.0.1:0", "--no-streaming"); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if w.proxy, err = start(anyURL, self, "-proxy", w.agent.url); err != nil {
		return nil, err
	}
	if w.plainProxy, err = start(anyURL, self, "-proxy", w.plain.url); err != nil {
		return nil, err
	}
	debug, err := freeAddress()
	if err != nil {
		return nil, err
	}
	w.debugURL = "http://" + debug
	file := filepath.Join(w.dir, "agents.json")
	body := fmt.Sprintf(`{"agents":{"stream":{"url":%q},"plain":{"url":%q}},"listen":"127.0.0.1:0","debugListen":%q,"limits":{"resultChars":200000}}`, w.agent.url, w.plain.url, debug)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		return nil, err
	}
	if w.gateway, err = start(mcpURL, s.binary, "serve", "--config", file); err != nil {
		return nil, err
	}
	return w, w.ready(ctx)
}

// ready calls the gateway until both agents answer, so that no round measures
// discovery.
func (w *world) ready(ctx context.Context) error {
	deadline := time.Now().Add(10 * time.Second)
	for _, c := range w.cases() {
		for {
			err := once(ctx, http.DefaultClient, c.gateway, new(bytes.Buffer))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s: the gateway does not answer: %w", c.name, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if err := once(ctx, http.DefaultClient, c.proxy, new(bytes.Buffer)); err != nil {
			return fmt.Errorf("%s: the proxy does not answer: %w", c.name, err)
		}
	}
	return nil
}

func (w *world) end() {
	for _, p := range []*process{w.gateway, w.proxy, w.plainProxy, w.agent, w.plain} {
		p.end()
	}
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

// startToListening times the gateway from exec to its first answer on
// /healthz, with an agent whose port accepts and never answers.
func startToListening(binary string) (time.Duration, error) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer silent.Close()
	began := time.Now()
	p, err := start(mcpURL, binary, "serve", "http://"+silent.Addr().String(), "--listen", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer p.end()
	resp, err := http.Get(strings.TrimSuffix(p.url, "/mcp") + "/healthz")
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("/healthz answers %s", resp.Status)
	}
	return time.Since(began), nil
}

// resident is a process's memory in MiB: all that is mapped and in memory, and
// what of it is its own and not pages of the program file.
type resident struct{ all, own float64 }

// residentMiB reads a process's memory after it has rested.
func residentMiB(pid int) (resident, error) {
	time.Sleep(2 * time.Second)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return resident{}, err
	}
	var r resident
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || fields[0] != "VmRSS:" && fields[0] != "RssAnon:" {
			continue
		}
		kib, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return resident{}, err
		}
		if fields[0] == "VmRSS:" {
			r.all = kib / 1024
		} else {
			r.own = kib / 1024
		}
	}
	if r.all == 0 {
		return resident{}, errors.New("no VmRSS in /proc")
	}
	return r, nil
}

// freeAddress finds a free loopback address for the debug listener, which has
// no way to say which port it took.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// serveProxy is the yardstick: the standard library's reverse proxy, with as
// many idle connections as there are callers.
func serveProxy(ctx context.Context, target string, out io.Writer) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = 256, 256
	proxy.Transport, proxy.FlushInterval = transport, -1
	// The agent answers as soon as it has read the message, at times before the
	// transport has seen the end of the body it sends. Once the answer's head is
	// on its way, the server closes that body under the transport, which then
	// drops the connection and cuts the answer. A body read beforehand is not the
	// server's to close.
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "http://"+ln.Addr().String())
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	term, stop := notifyTerm(ctx)
	defer stop()
	closed := make(chan error, 1)
	go func() { // waited for below
		<-term.Done()
		closed <- srv.Close()
	}()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-closed
}
