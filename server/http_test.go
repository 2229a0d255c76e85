package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"a2agate/tools"
	"a2agate/translate"
)

// real runs a Server on a TCP port.
func real(t *testing.T, s *Server) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return ln.Addr().String()
}

// exchangeRaw writes bytes to the server and reads one response.
func exchangeRaw(t *testing.T, addr, text string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	go func() { _, _ = io.WriteString(conn, text) }() // the server may close early
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%.60q: %v", text, err)
	}
	return resp, string(body)
}

// What strict clients send, over a real connection.
func TestRawHTTP(t *testing.T) {
	addr := real(t, newServer(t, echo, nil))
	body := modernBody("1", "tools/call", callTool)
	head := "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: invoice_helper\r\n"
	sized := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	huge := strings.Repeat("x", 5<<20)
	for _, tt := range []struct {
		name, request string
		status        int
		want          string
	}{
		{"plain", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + head + sized + "\r\n" + body, 200, `"result"`},
		{"connection close", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + head + sized + "\r\n" + body, 200, `"result"`},
		{"chunked", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" + head + fmt.Sprintf("\r\n%x\r\n", len(body)) + body + "\r\n0\r\n\r\n", 200, `"result"`},
		{"header names in lower case", "POST /mcp HTTP/1.1\r\nhost: LOCALHOST:" + addr[len("127.0.0.1:"):] + "\r\n" + strings.ToLower(head) + sized + "\r\n" + body, 200, `"result"`},
		{"5 MB", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + head + "Content-Length: 5242880\r\n\r\n" + huge, 413, "limits.bodyBytes"},
		{"5 MB in chunks", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" + head + fmt.Sprintf("\r\n%x\r\n", len(huge)) + huge + "\r\n0\r\n\r\n", 413, "limits.bodyBytes"},
		{"5 MB announced", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n" + head + "Content-Length: 5242880\r\n\r\n", 413, "limits.bodyBytes"},
		{"5 MB of another type", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 4000000\r\n\r\n" + huge[:4000000], 415, "application/json"},
		{"no host", "POST /mcp HTTP/1.1\r\n" + head + sized + "\r\n" + body, 400, "Host"},
		{"no host in HTTP/1.0", "POST /mcp HTTP/1.0\r\n" + head + sized + "\r\n" + body, 400, "Host"},
		{"empty host", "POST /mcp HTTP/1.1\r\nHost:\r\n" + head + sized + "\r\n" + body, 400, "Host"},
		{"two hosts", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n" + head + sized + "\r\n" + body, 400, "Bad Request"},
		{"malformed host", "POST /mcp HTTP/1.1\r\nHost: [::1\r\n" + head + sized + "\r\n" + body, 400, "Host"},
		{"host in the request line", "POST http://evil.test/mcp HTTP/1.1\r\nHost: localhost\r\n" + head + sized + "\r\n" + body, 421, "allowedHosts"},
		{"trace", "TRACE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "POST"},
		{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, ""},
		{"no method of HTTP", "FOO /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, ""},
		{"long headers", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 431, ""},
		{"nul in a header", "GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Name: a\x00b\r\n\r\n", 400, ""},
		{"dots in the path", "POST /mcp/../healthz HTTP/1.1\r\nHost: localhost\r\n" + head + sized + "\r\n" + body, 404, "/mcp"},
		{"two slashes", "POST //mcp HTTP/1.1\r\nHost: localhost\r\n" + head + sized + "\r\n" + body, 404, "/mcp"},
	} {
		resp, got := exchangeRaw(t, addr, tt.request)
		if resp.StatusCode != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %d %.300s", tt.name, resp.StatusCode, got)
		}
		if tt.status == 413 && resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v", tt.name, resp.Header)
		}
		if l := resp.Header.Get("Location"); l != "" {
			t.Errorf("%s: a redirect to %s", tt.name, l)
		}
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			t.Errorf("%s: a session id", tt.name)
		}
	}
}

// Slow peers: their time is bounded, and what they get says so.
func TestSlowPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, newServer(t, echo, nil))
		start := time.Now()
		slow := func(text string) (string, time.Duration) {
			conn, err := v.ln.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			begun := time.Now()
			go func() { _, _ = io.WriteString(conn, text) }() // stops in the middle
			answer, _ := io.ReadAll(conn)                     // the server ends it
			return string(answer), time.Since(begun)
		}
		if got, d := slow("POST /mcp HTTP/1.1\r\nHost: loc"); d > 11*time.Second || strings.Contains(got, "200 OK") {
			t.Errorf("slow headers: after %v %q", d, got)
		}
		got, d := slow("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		if d > 31*time.Second || !strings.HasPrefix(got, "HTTP/1.1 408") || !strings.Contains(got, "did not come within 30s") {
			t.Errorf("a slow body: after %v %q", d, got)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%v in all", d)
		}
		v.end()
	})
}

// A body that breaks off is no crash and no call.
func TestBrokenBody(t *testing.T) {
	called := false
	s := newServer(t, func(context.Context, tools.Call, tools.Sink) translate.Outcome { called = true; return says("x") }, nil)
	for name, r := range map[string]*http.Request{
		"error":          withBody(io.MultiReader(strings.NewReader(`{"jsonrpc"`), failing{}), -1),
		"short":          withBody(strings.NewReader(`{"jsonrpc":"2.0"`), 500),
		"error at once":  withBody(failing{}, 10),
		"length unknown": withBody(bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":1`)), -1),
	} {
		if w := do(s, r); w.Code != 400 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if called {
		t.Error("a tool was called")
	}
}

func withBody(r io.Reader, length int64) *http.Request {
	q := post("")
	q.Body, q.ContentLength = io.NopCloser(r), length
	return q
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestReady(t *testing.T) {
	var state error
	s := newServer(t, echo, func(o *Options) { o.Ready = func() error { return state } })
	get := func(path string) (int, string) {
		r := post("")
		r.Method, r.URL.Path = http.MethodGet, path
		w := do(s, r)
		return w.Code, w.Body.String()
	}
	if c, body := get("/readyz"); c != 200 || body != `{"status":"ready"}` {
		t.Errorf("%d %s", c, body)
	}
	state = errors.New(`store "redis" is down`)
	if c, body := get("/readyz"); c != 503 || body != `{"status":"not ready","reason":"store \"redis\" is down"}` {
		t.Errorf("%d %s", c, body)
	}
	if c, _ := get("/healthz"); c != 200 {
		t.Errorf("%d", c)
	}
}

// Further routes stand behind the guard and the authentication, /.well-known
// behind the guard alone.
func TestRoutes(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	s := newServer(t, echo, func(o *Options) {
		o.Authenticate, o.WellKnown = tokenAuth, ok
		o.Routes = map[string]http.Handler{"/metrics": ok, "/": ok}
	})
	for _, tt := range []struct {
		path, token string
		want        int
	}{
		{"/metrics", "", 401}, {"/metrics", "one", 418}, {"/", "", 401}, {"/", "one", 418}, {"/.well-known/oauth-protected-resource/mcp", "", 418}, {"/other", "one", 404}, {"/healthz", "", 200},
	} {
		r := post("", "Authorization", "Bearer "+tt.token)
		r.Method, r.URL.Path = http.MethodGet, tt.path
		if w := do(s, r); w.Code != tt.want {
			t.Errorf("%+v: %d", tt, w.Code)
		}
	}
}

// Calls beyond the limits are told when to try again (MCP, tools, security).
func TestCallLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(_ context.Context, c tools.Call, _ tools.Sink) translate.Outcome {
			if c.Tool == "invoice_helper" {
				time.Sleep(10 * time.Second)
			}
			return says("x")
		}, func(o *Options) {
			o.Limits.ConcurrentCalls, o.Limits.CallsPerSecond = 2, 4
			o.Authenticate = tokenAuth
		})
		one := func(token, tool string) *http.Request {
			return modernPost(modernBody("1", "tools/call", `"name":"`+tool+`"`), "Authorization", "Bearer "+token)
		}
		for range 2 {
			go do(s, one("one", "invoice_helper"))
			synctest.Wait()
		}
		w := do(s, one("one", "a2a_discover"))
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "limits.concurrentCalls") {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		if w := do(s, one("two", "a2a_discover")); w.Code != 200 {
			t.Errorf("another principal: %d", w.Code)
		}
		if w := do(s, modernPost(modernBody("1", "tools/list", ""), "Authorization", "Bearer one")); w.Code != 200 {
			t.Errorf("only calls are counted: %d", w.Code)
		}
		time.Sleep(11 * time.Second)
		refused := 0
		for range 10 {
			if w := do(s, one("one", "a2a_discover")); w.Code == 429 {
				refused++
			}
		}
		if refused != 6 {
			t.Errorf("%d of 10 at once were refused", refused)
		}
		batch := do(s, legacyPost(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a2a_discover"}}]`, "2025-03-26", "Authorization", "Bearer one"))
		if !strings.Contains(batch.Body.String(), "too many tool calls") {
			t.Errorf("%s", batch.Body)
		}
		time.Sleep(time.Second)
		if w := do(s, one("one", "a2a_discover")); w.Code != 200 {
			t.Errorf("after a second: %d", w.Code)
		}
	})
}

func TestObserve(t *testing.T) {
	var got []Exchange
	s := newServer(t, echo, func(o *Options) {
		o.Observe = func(x Exchange) { x.Duration, x.Request = 0, nil; got = append(got, x) }
	})
	do(s, modernPost(callWithToken("")))
	do(s, modernPost(modernBody("1", "no/such", "")))
	do(s, post("{"))
	do(s, legacyPost(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "2025-06-18"))
	do(s, legacyPost(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "2025-03-26"))
	want := []Exchange{
		{Method: "tools/call", Tool: "invoice_helper", Principal: Local, Revision: "2026-07-28", Status: 200},
		{Method: "no/such", Principal: Local, Revision: "2026-07-28", Status: 404, Code: -32601},
		{Principal: Local, Status: 400, Code: -32700},
		{Method: "ping", Principal: Local, Revision: "2025-06-18", Status: 200},
		{Method: "batch", Principal: Local, Revision: "2025-03-26", Status: 200},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// A body takes memory as it comes, not as it is announced.
func TestReadAll(t *testing.T) {
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 3*firstRead + 7, 1 << 20} {
		for _, known := range []bool{true, false} {
			want := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
			r := httptest.NewRequest(http.MethodPost, "/mcp", iotest.HalfReader(bytes.NewReader(want)))
			r.ContentLength = -1
			if known {
				r.ContentLength = int64(size)
			}
			got, err := readAll(r, 1<<20)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, length known %v: %d bytes, %v", size, known, len(got), err)
			}
		}
	}
	for _, sent := range []string{"", "{", strings.Repeat("x", firstRead+1)} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(sent))
		r.ContentLength = 4 << 20
		got, err := readAll(r, 4<<20)
		if err == nil || string(got) != sent || cap(got) > 4*firstRead {
			t.Errorf("%d of 4 MiB sent: %d bytes, room for %d, %v", len(sent), len(got), cap(got), err)
		}
	}
}
