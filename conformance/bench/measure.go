package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// request is one prepared call; must is what a good answer contains.
type request struct {
	method, url string
	header      http.Header
	body        string
	must        string
}

// comparison is one case: the same work through the gateway and the proxy.
type comparison struct {
	name           string
	gateway, proxy request
}

// outcome is what a case measured, medians over the rounds.
type outcome struct {
	gateway, proxy, ratio float64
	gatewayP99, proxyP99  time.Duration
	p99Ratio              float64
	allocs, bytes         float64
}

const (
	metaJSON = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
)

func (w *world) cases() []comparison {
	modern := func(tool, args, must string) request {
		return request{method: http.MethodPost, url: w.gateway.url, must: must, header: http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool},
		}, body: fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, tool, args, metaJSON)}
	}
	legacy := func(tool, args, must string) request {
		return request{method: http.MethodPost, url: w.gateway.url, must: must, header: http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2025-11-25"},
		}, body: fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args)}
	}
	a2a := func(p *process, method, text, must string) request {
		return request{method: http.MethodPost, url: p.url + "/a2a", must: must, header: http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "A2a-Version": {"1.0"},
		}, body: fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","method":%q,"params":{"message":{"messageId":"bench","role":"ROLE_USER","parts":[{"text":%q}]}}}`, method, text)}
	}
	send := func(agent, text string) string { return fmt.Sprintf(`{"agent":%q,"text":%q}`, agent, text) }
	return []comparison{
		{"small reply, modern", modern("a2a_send_message", send("plain", "echo hello"), "hello"), a2a(w.plainProxy, "SendMessage", "echo hello", "hello")},
		{"small reply, legacy", legacy("a2a_send_message", send("plain", "echo hello"), "hello"), a2a(w.plainProxy, "SendMessage", "echo hello", "hello")},
		{"small reply, streaming agent", modern("a2a_send_message", send("stream", "echo hello"), "hello"), a2a(w.proxy, "SendStreamingMessage", "echo hello", "hello")},
		{"64 KiB data artifact", modern("a2a_send_message", send("plain", "datakb 64"), "artifact"), a2a(w.plainProxy, "SendMessage", "datakb 64", "artifact")},
		{"discover one card", modern("a2a_discover", `{"agent":"plain"}`, "skills"), request{method: http.MethodGet, url: w.plainProxy.url + "/.well-known/agent-card.json", must: "skills", header: http.Header{"A2a-Version": {"1.0"}}}},
	}
}

// once does one call and checks the answer, which it reads into buf: the one
// who measures shares the processors with those who are measured.
func once(ctx context.Context, c *http.Client, r request, buf *bytes.Buffer) error {
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
	defer resp.Body.Close()
	buf.Reset()
	_, err = buf.ReadFrom(resp.Body)
	body := buf.Bytes()
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %.300s", resp.Status, body)
	case !bytes.Contains(body, []byte(r.must)) || bytes.Contains(body, []byte(`"isError":true`)):
		return fmt.Errorf("unexpected answer: %.300s", body)
	}
	return nil
}

// load does r over and over on n connections for d and returns the rate and
// the 99th percentile.
func load(ctx context.Context, r request, n int, d time.Duration) (float64, time.Duration, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: n, MaxConnsPerHost: n}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithTimeout(ctx, d+10*time.Second)
	defer cancel()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		all   []time.Duration
		first error
	)
	began := time.Now()
	for range n {
		wg.Go(func() {
			var mine []time.Duration
			var buf bytes.Buffer
			for time.Since(began) < d {
				t := time.Now()
				if err := once(ctx, client, r, &buf); err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
					return
				}
				mine = append(mine, time.Since(t))
			}
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	if first != nil {
		return 0, 0, first
	}
	rate := float64(len(all)) / time.Since(began).Seconds()
	slices.Sort(all)
	return rate, all[len(all)*99/100], nil
}

// measure runs a case's two sides in turns and takes medians.
func (w *world) measure(ctx context.Context, s settings, c comparison) (outcome, error) {
	var gw, px, ratio, p99 []float64
	var gp, pp []time.Duration
	var allocs, size []float64
	for range s.rounds {
		before, err := w.memory(ctx)
		if err != nil {
			return outcome{}, err
		}
		g, gq, err := load(ctx, c.gateway, s.connections, s.round)
		if err != nil {
			return outcome{}, fmt.Errorf("gateway: %w (it said: %s)", err, w.gateway.said())
		}
		after, err := w.memory(ctx)
		if err != nil {
			return outcome{}, err
		}
		calls := g * s.round.Seconds()
		allocs = append(allocs, (after.mallocs-before.mallocs)/calls)
		size = append(size, (after.bytes-before.bytes)/calls)
		p, pq, err := load(ctx, c.proxy, s.connections, s.round)
		if err != nil {
			return outcome{}, fmt.Errorf("proxy: %w (it said: %s; %s; its agents: %s; %s)", err, w.proxy.said(), w.plainProxy.said(), w.agent.said(), w.plain.said())
		}
		gw, px, ratio = append(gw, g), append(px, p), append(ratio, g/p)
		gp, pp, p99 = append(gp, gq), append(pp, pq), append(p99, float64(gq)/float64(pq))
	}
	return outcome{
		gateway: median(gw), proxy: median(px), ratio: median(ratio), gatewayP99: median(gp), proxyP99: median(pp),
		p99Ratio: median(p99), allocs: median(allocs), bytes: median(size),
	}, nil
}

func median[T int | float64 | time.Duration](v []T) T {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// memory is the gateway's allocation counters.
type memory struct{ mallocs, bytes float64 }

var memstat = regexp.MustCompile(`(?m)^# (Mallocs|TotalAlloc) = (\d+)`)

// memory reads the counters from the heap profile's text form.
func (w *world) memory(ctx context.Context) (memory, error) {
	body, err := fetch(ctx, w.debugURL+"/debug/pprof/heap?debug=1")
	if err != nil {
		return memory{}, err
	}
	var m memory
	for _, match := range memstat.FindAllSubmatch(body, -1) {
		v, err := strconv.ParseFloat(string(match[2]), 64)
		if err != nil {
			return memory{}, err
		}
		if string(match[1]) == "Mallocs" {
			m.mallocs = v
		} else {
			m.bytes = v
		}
	}
	if m.mallocs == 0 {
		return memory{}, fmt.Errorf("no memory statistics at %s", w.debugURL)
	}
	return m, nil
}

// profiles writes a CPU profile of a case's call under load and an allocation
// profile, where asked for.
func (w *world) profiles(ctx context.Context, s settings, c comparison) error {
	if s.profileDir == "" {
		return nil
	}
	if err := os.MkdirAll(s.profileDir, 0o755); err != nil {
		return err
	}
	loaded := make(chan error, 1)
	go func() { // waited for below
		_, _, err := load(ctx, c.gateway, s.connections, 6*time.Second)
		loaded <- err
	}()
	for name, path := range map[string]string{"cpu.prof": "/debug/pprof/profile?seconds=5", "allocs.prof": "/debug/pprof/allocs"} {
		body, err := fetch(ctx, w.debugURL+path)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.profileDir, name), body, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return <-loaded
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func notifyTerm(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
