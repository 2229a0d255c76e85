package server

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A body that is announced and does not come: one too large holds back no
// answer, and none holds the connection for longer than the body's time,
// whatever becomes of the request.
func TestAnnouncedBodies(t *testing.T) {
	const typed = "Content-Type: application/json\r\nAuthorization: Bearer one\r\n"
	const large = "Content-Length: 100000000000000\r\n"
	for name, tt := range map[string]struct {
		head   string
		status int
		within time.Duration
	}{
		"larger than allowed":    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + typed + large, 413, 0},
		"a little too large":     {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + typed + "Content-Length: 4194305\r\n", 413, 0},
		"as large as allowed":    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + typed + "Content-Length: 4194304\r\n", 408, bodyTime},
		"of another type":        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer one\r\nContent-Type: text/plain\r\nContent-Length: 2000\r\n", 415, bodyTime},
		"of another type, large": {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer one\r\nContent-Type: text/plain\r\nContent-Length: 4000000\r\n", 415, 0},
		"nobody's":               {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n", 401, bodyTime},
		"nobody's, large":        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + large, 401, 0},
		"nobody's, in chunks":    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n", 401, bodyTime},
		"of a foreign host":      {"POST /mcp HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 2000\r\n", 421, bodyTime},
		"of a foreign origin":    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.test\r\nContent-Length: 2000\r\n", 403, bodyTime},
		"of a probe":             {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n", 200, bodyTime},
		"of nothing":             {"POST /nothing HTTP/1.1\r\nHost: localhost\r\n" + large, 404, 0},
		"of another method":      {"PUT /mcp HTTP/1.1\r\nHost: localhost\r\n" + typed + "Content-Length: 2000\r\n", 405, bodyTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { announced(t, tt.head, tt.status, tt.within) })
		})
	}
}

// bodyTime is Limits.BodyTime in these tests.
const bodyTime = 20 * time.Second

func announced(t *testing.T, head string, status int, within time.Duration) {
	t.Helper()
	v := serve(t, newServer(t, echo, func(o *Options) {
		o.Authenticate = tokenAuth
		o.Limits.BodyTime = bodyTime
	}))
	conn, err := v.ln.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	send(t, conn, head+"\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	if took := time.Since(began); resp.StatusCode != status || took > within {
		t.Errorf("%d after %v, want %d within %v", resp.StatusCode, took, status, within)
	}
	_, err = in.ReadByte()
	if held := time.Since(began); err == nil || held > bodyTime+time.Second {
		t.Errorf("the connection is held for %v (%v)", held, err)
	}
	v.end()
}

// A client that sends all of a body before it reads gets to read why it was
// refused.
func TestRefusedWhileSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, newServer(t, echo, nil))
		conn, err := v.ln.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answer := make(chan *http.Response, 1)
		go func() { // the pipe has no buffer, a network has
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Error(err)
			}
			answer <- resp
		}()
		send(t, conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 6000000\r\n\r\n")
		for range 6 {
			time.Sleep(time.Second)
			send(t, conn, strings.Repeat("x", 1_000_000))
		}
		if resp := <-answer; resp == nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%+v", resp)
		}
		v.end()
	})
}

// Over HTTP/2 too, and the connection goes on: only the stream ends.
func TestAnnouncedBodyOverHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(newServer(t, echo, nil).Handler())
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	var dialled atomic.Int32
	client := srv.Client()
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	for range 3 {
		never, stop := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/mcp", never)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = 1e14
		req.Header.Set("Content-Type", "application/json")
		began := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		stop.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusRequestEntityTooLarge || err != nil || !bytes.Contains(text, []byte("limits.bodyBytes")) {
			t.Errorf("%s %s: %s, %v", resp.Proto, resp.Status, text, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("after %v", took)
		}
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err)
	}
}
