package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/tools"
	"a2agate/translate"
)

// discardWriter is the cheapest ResponseWriter.
type discardWriter struct{ h http.Header }

func (w *discardWriter) Header() http.Header         { return w.h }
func (w *discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *discardWriter) WriteHeader(int)             {}
func (w *discardWriter) Flush()                      {}

// bench measures a handler without a network.
func bench(b *testing.B, h http.Handler, template *http.Request, body string) {
	b.ReportAllocs()
	for b.Loop() {
		r := *template
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		h.ServeHTTP(&discardWriter{h: make(http.Header, 4)}, &r)
	}
}

func smallCall(context.Context, tools.Call, tools.Sink) translate.Outcome {
	return translate.Outcome{Result: smallResult}
}

var smallResult = &translate.Result{
	Content:    []mcp.Content{mcp.NewTextContent("Hello, world.")},
	Structured: json.RawMessage(`{"kind":"message","status":"completed","text":"Hello, world."}`),
}

// BenchmarkFloor is what net/http and encoding/json alone cost.
func BenchmarkFloor(b *testing.B) {
	body := modernBody("1", "tools/call", callTool)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments map[string]any
			}
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{"content": []any{map[string]string{"type": "text", "text": "Hello, world."}}}})
	})
	bench(b, h, modernPost(body), body)
}

func BenchmarkCall(b *testing.B) {
	s := newBenchServer(b, smallCall, basicCatalogue())
	modern, legacy := callWithToken("7"), legacyCall("")
	session := initialize(b, s, "2025-11-25", `{"elicitation":{}}`)
	b.Run("modern", func(b *testing.B) { bench(b, s.Handler(), modernPost(modern), modern) })
	b.Run("legacy", func(b *testing.B) { bench(b, s.Handler(), legacyPost(legacy, "2025-11-25"), legacy) })
	b.Run("legacy with a session", func(b *testing.B) {
		bench(b, s.Handler(), legacyPost(legacy, "2025-11-25", "Mcp-Session-Id", session), legacy)
	})
	large := &translate.Result{Content: smallResult.Content, Structured: json.RawMessage(`{"data":"` + strings.Repeat("x", 64<<10) + `"}`)}
	s = newBenchServer(b, func(context.Context, tools.Call, tools.Sink) translate.Outcome {
		return translate.Outcome{Result: large}
	}, basicCatalogue())
	b.Run("64 KiB", func(b *testing.B) { bench(b, s.Handler(), modernPost(modern), modern) })
}

func newBenchServer(b *testing.B, call callFunc, cat *tools.Catalogue) *Server {
	s, err := New(Options{CoreOptions: CoreOptions{Caller: call, Catalogues: newCatalogues(cat), Prompts: fakeContents{}, Resources: fakeContents{}, Tasks: newTasks()}})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkList(b *testing.B) {
	for _, n := range []int{4, 300} {
		s := newBenchServer(b, smallCall, largeCatalogue(n))
		body := modernBody("1", "tools/list", "")
		b.Run(fmt.Sprintf("%d tools", n), func(b *testing.B) { bench(b, s.Handler(), modernPost(body), body) })
	}
	b.Run("snapshot of 300", func(b *testing.B) {
		s := newBenchServer(b, smallCall, basicCatalogue())
		cat := largeCatalogue(300)
		b.ReportAllocs()
		for b.Loop() {
			newSnapshot(s.core, tools.View{}, cat)
		}
	})
}

func BenchmarkDiscover(b *testing.B) {
	s := newBenchServer(b, smallCall, basicCatalogue())
	body := modernBody("1", "server/discover", "")
	bench(b, s.Handler(), modernPost(body), body)
}

func BenchmarkEnvelope(b *testing.B) {
	small := []byte(modernBody("1", "tools/call", callTool))
	large := []byte(modernBody("1", "tools/call", `"name":"x","arguments":{"text":"`+strings.Repeat("lorem ipsum ", 5000)+`"}`))
	for name, body := range map[string][]byte{"small": small, "60 KB": large} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var e Envelope
				if err := e.parse(body, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoopback is a call over TCP.
func BenchmarkLoopback(b *testing.B) {
	s := newBenchServer(b, smallCall, basicCatalogue())
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	body := callWithToken("")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequest(http.MethodPost, srv.URL+"/mcp", strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "invoice_helper"} {
				r.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

// The edge's share of a small call stays near that of a bare handler.
func TestCallAllocations(t *testing.T) {
	s := newServer(t, smallCall, nil)
	for name, tt := range map[string]struct {
		r    *http.Request
		body string
	}{
		"modern": {modernPost(callWithToken("7")), callWithToken("7")},
		"legacy": {legacyPost(legacyCall(""), "2025-11-25"), legacyCall("")},
	} {
		n := testing.AllocsPerRun(200, func() {
			r := *tt.r
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(tt.body)), int64(len(tt.body))
			s.Handler().ServeHTTP(&discardWriter{h: make(http.Header, 4)}, &r)
		})
		if n > 60 {
			t.Errorf("%s: %v allocations a call", name, n)
		}
	}
}

// BenchmarkWaiting states what a waiting call and an open listen cost in memory
// (heap and stacks, the server's side and a silent pipe).
func BenchmarkWaiting(b *testing.B) {
	const n = 2000
	for name, body := range map[string]string{
		"call": callWithToken("1"), "listen": modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := newBenchServer(b, blocked, basicCatalogue())
				if err := s.Reconfigure(Settings{Limits: Limits{Listens: n}}); err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				ln := newPipeListener()
				ended := make(chan error, 1)
				go func() { ended <- s.Serve(ctx, ln) }()
				before := memory()
				var conns []net.Conn
				for range n {
					conn, err := ln.dial(ctx)
					if err != nil {
						b.Fatal(err)
					}
					conns = append(conns, conn)
					if err := modernPost(body).Write(conn); err != nil {
						b.Fatal(err)
					}
				}
				status := make([]byte, 12) // "HTTP/1.1 200": the stream is open
				for _, c := range conns {
					if _, err := io.ReadFull(c, status); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(memory()-before)/n, "B/wait")
				for _, c := range conns {
					_ = c.Close()
				}
				s.Cut()
				cancel()
				<-ended
			}
		})
	}
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
