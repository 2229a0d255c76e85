package main

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFloodOfStrangers: more than a thousand requests a second without a good
// token leave nothing behind, whatever they send, over kept connections and
// new ones: not 60 bytes each.
func TestFloodOfStrangers(t *testing.T) { // measures the heap: no company
	issuer := newTokenIssuer(t)
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":"http://127.0.0.1:1"}},"log":{"level":"error"},
		"auth":{"tokens":[{"name":"ann","token":"ann-token"}],"oauth":{"issuer":%q,"audience":"x"}}}`, issuer.url))
	foreign := issuer.token(`"sub":"x"`) // of our issuer, for another audience
	base := strings.TrimSuffix(g.url, "/mcp")
	stranger := func(i int) error {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"cursor":"%d",%s}}`, i, i, meta(""))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s/mcp/p/profile-%d", base, i), strings.NewReader(body))
		if err != nil {
			return err
		}
		want := http.StatusUnauthorized
		switch i % 6 {
		case 0:
			req.Header.Set("Authorization", fmt.Sprintf("Bearer wrong-%d", i))
		case 1:
			req.Header.Set("Authorization", "Bearer "+foreign)
		case 2:
			req.Header.Set("Authorization", fmt.Sprintf("Bearer a.b.%d", i))
		case 3:
			req.Host, want = fmt.Sprintf("evil-%d.test", i), http.StatusMisdirectedRequest
		case 4:
			req.Header.Set("Origin", fmt.Sprintf("https://evil-%d.test", i))
			want = http.StatusForbidden
		}
		for name, v := range map[string]string{
			"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list", "Mcp-Session-Id": fmt.Sprintf("session-%d", i),
			"Traceparent": fmt.Sprintf("00-%032x-%016x-01", i+1, i+1), "X-Forwarded-For": fmt.Sprintf("192.0.2.%d", i%250),
		} {
			req.Header.Set(name, v)
		}
		req.Close = i%16 == 0
		resp, err := g.client.Do(req)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			return fmt.Errorf("request %d: %s, want %d", i, resp.Status, want)
		}
		return nil
	}
	flood := func(from, n int) (took time.Duration) {
		began := time.Now()
		const workers = 8
		var side sync.WaitGroup
		for w := range workers {
			side.Go(func() {
				for i := w; i < n; i += workers {
					if err := stranger(from + i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		side.Wait()
		return time.Since(began)
	}
	flood(0, 1500) // pools, connections and the issuer's keys are there then
	before, running := heap(), runtime.NumGoroutine()
	const n = 6000
	took := flood(1500, n)
	until(t, "the connections are closed", func() bool { return runtime.NumGoroutine() <= running+8 })
	grown := heap() - before
	t.Logf("%d requests in %v left %d bytes", n, took, grown)
	if grown > 60*n {
		t.Errorf("%d requests left %d bytes", n, grown)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
