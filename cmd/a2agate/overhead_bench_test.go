//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"a2agate/config"
	"a2agate/fixtures"
)

// benchGate is a gateway without a log, with or without metrics.
func benchGate(b *testing.B, agent string, metrics bool) (call func()) {
	b.Helper()
	cfg, err := config.FromURLs([]string{"demo=" + agent})
	if err != nil {
		b.Fatal(err)
	}
	log, levels := newLogger(io.Discard, config.Log{Level: config.LevelError})
	g, err := newGateway(context.Background(), cfg, log, levels)
	if err != nil {
		b.Fatal(err)
	}
	if !metrics {
		g.observed.metrics = nil
	}
	agents, stop := context.WithCancel(context.Background())
	if err := g.fleet.start(agents, cfg); err != nil {
		b.Fatal(err)
	}
	if err := g.tools.SetAgents(g.fleet.entries()); err != nil {
		b.Fatal(err)
	}
	waitForStates(context.Background(), g.fleet.list(), time.Minute)
	b.Cleanup(func() {
		g.tools.Close()
		stop()
		if err := g.close(); err != nil {
			b.Error(err)
		}
	})
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a2a_send_message","arguments":{"text":"echo hello"},` + meta("") + `}}`
	handler := g.server.Handler()
	return func() {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8931/mcp", strings.NewReader(body))
		for name, v := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "a2a_send_message",
		} {
			r.Header.Set(name, v)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "hello") {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

// turnCalls is how many calls one turn makes.
const turnCalls = 5

// BenchmarkObservation makes the same small call through two gateways in turn,
// one without and one with metrics, tracing off in both, and reports what the
// metrics add in percent of the processor time: of the gateway, the caller and
// the agent, which are one process here. The time on the wall depends on what
// else the machine does; it is reported too.
func BenchmarkObservation(b *testing.B) {
	agent := newAgentServer(b, fixtures.Options{})
	without, with := benchGate(b, agent.url, false), benchGate(b, agent.url, true)
	var off, on, wallOff, wallOn []float64
	turn := func(call func(), cpu, wall *[]float64) {
		began, used := time.Now(), processor(b)
		for range turnCalls {
			call()
		}
		*cpu = append(*cpu, float64(processor(b)-used)/turnCalls/1000)
		*wall = append(*wall, float64(time.Since(began))/turnCalls/1000)
	}
	var warm []float64
	turn(without, &warm, &warm)
	turn(with, &warm, &warm)
	for n := 0; b.Loop(); n++ {
		if n%2 == 0 { // neither is always the one after the other
			turn(without, &off, &wallOff)
			turn(with, &on, &wallOn)
		} else {
			turn(with, &on, &wallOn)
			turn(without, &off, &wallOff)
		}
	}
	percent := 100 * (mean(on)/mean(off) - 1)
	b.ReportMetric(mean(off), "cpu-us/call-without")
	b.ReportMetric(mean(on), "cpu-us/call-with")
	b.ReportMetric(median(wallOff), "wall-us/call-without")
	b.ReportMetric(median(wallOn), "wall-us/call-with")
	b.ReportMetric(percent, "%overhead")
	b.ReportMetric(0, "ns/op")
	if len(off) > 1 {
		fmt.Printf("metrics add %.2f %% to a small call (%d turns of %d calls)\n", percent, len(off), turnCalls)
	}
}

// processor is the processor time that this process has used.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// mean is the mean of the middle half: what is above and below is a garbage
// collection more or less.
func mean(list []float64) (m float64) {
	slices.Sort(list)
	middle := list[len(list)/4 : len(list)-len(list)/4]
	for _, v := range middle {
		m += v / float64(len(middle))
	}
	return m
}
