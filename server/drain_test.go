package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/tools"
	"a2agate/translate"
)

// pipeListener is a listener in memory, fit for a synctest bubble.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8931} }

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// served is a Server that runs on a pipeListener.
type served struct {
	*Server
	t      *testing.T
	ln     *pipeListener
	client *http.Client
	stop   context.CancelFunc
	ended  chan error
}

func serve(t *testing.T, s *Server) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	v := &served{Server: s, t: t, ln: newPipeListener(), stop: cancel, ended: make(chan error, 1)}
	v.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return v.ln.dial(ctx) }}}
	go func() { v.ended <- s.Serve(ctx, v.ln) }()
	return v
}

// end stops the server and waits for it.
func (v *served) end() {
	v.t.Helper()
	v.stop()
	if err := <-v.ended; err != nil {
		v.t.Errorf("Serve: %v", err)
	}
	v.client.CloseIdleConnections()
}

// send makes a request without waiting for its body.
func (v *served) send(r *http.Request) (*http.Response, error) {
	r.RequestURI = ""
	return v.client.Do(r)
}

// answerText reads an answer to its end; the error says how it ended.
func (v *served) answerText(r *http.Request) (string, error) {
	resp, err := v.send(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

type textOrError struct {
	text string
	err  error
	at   time.Time
}

func (v *served) inBackground(r *http.Request) <-chan textOrError {
	c := make(chan textOrError, 1)
	go func() {
		text, err := v.answerText(r)
		c <- textOrError{text, err, time.Now()}
	}()
	synctest.Wait()
	return c
}

// Shutdown: listens get their completion at once, calls end by themselves
// within the grace, then Serve returns (mcp-go hangs there).
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		v := serve(t, newServer(t, func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			select {
			case <-ctx.Done():
				return says("cut")
			case <-time.After(10 * time.Second):
				return says("finished")
			}
		}, nil))
		modern := v.inBackground(modernPost(callWithToken("1")))
		legacy := v.inBackground(legacyPost(legacyCall(""), "2025-11-25"))
		ears := v.inBackground(modernPost(modernBody(`"ear"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)))
		time.Sleep(5 * time.Second)
		v.stop()
		synctest.Wait()
		if w := do(v.Server, ready()); w.Code != 503 {
			t.Errorf("readyz while draining: %d", w.Code)
		}
		if _, err := v.answerText(modernPost(callWithToken(""))); err == nil {
			t.Error("a new connection was taken")
		}
		ear := <-ears
		if ear.at.Sub(start) != 5*time.Second || ear.err != nil || !strings.HasSuffix(ear.text, `data: {"jsonrpc":"2.0","id":"ear","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"ear","io.modelcontextprotocol/serverInfo":{"name":"a2agate","version":"1.2.3"}}}}`+"\n\n") {
			t.Errorf("the listen ended after %v: %v %s", ear.at.Sub(start), ear.err, ear.text)
		}
		for _, c := range []<-chan textOrError{modern, legacy} {
			if got := <-c; got.err != nil || !strings.Contains(got.text, "finished") {
				t.Errorf("%v %s", got.err, got.text)
			}
		}
		v.end()
		if d := time.Since(start); d > 11*time.Second {
			t.Errorf("ended after %v", d)
		}
	})
}

func ready() *http.Request {
	r := post("")
	r.Method, r.URL.Path = http.MethodGet, "/readyz"
	return r
}

// After the grace the calls' time is up: they answer with what they have. The
// cause tells them that nobody gave up.
func TestDrainAfterTheGrace(t *testing.T) {
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v := serve(t, newServer(t, blocked, nil))
			modern := v.inBackground(modernPost(callWithToken("1")))
			quick := v.inBackground(modernPost(callWithToken(""), "Accept", "application/json"))
			legacy := v.inBackground(legacyPost(legacyCall(""), "2025-11-25"))
			time.Sleep(2 * time.Second)
			stopped := time.Now()
			v.stop()
			want := 30 * time.Second
			if cut {
				time.Sleep(time.Second)
				v.Cut()
				v.Cut()
				want = time.Second
			}
			for name, c := range map[string]<-chan textOrError{"modern": modern, "json": quick, "legacy": legacy} {
				got := <-c
				if d := got.at.Sub(stopped); d != want || got.err != nil || !strings.Contains(got.text, context.DeadlineExceeded.Error()) {
					t.Errorf("%s: after %v, want %v: %v %s", name, d, want, got.err, got.text)
				}
			}
			v.end()
		})
	}
}

// A call that does not even end then gets -32603, never an empty end.
func TestDrainOfAStuckCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		v := serve(t, newServer(t, func(context.Context, tools.Call, tools.Sink) translate.Outcome {
			<-release
			return says("too late")
		}, func(o *Options) { o.Grace = time.Second }))
		stream := v.inBackground(modernPost(callWithToken("1")))
		jsonOnly := v.inBackground(modernPost(modernBody(`"j"`, "tools/call", callTool), "Accept", "application/json"))
		batch := v.inBackground(legacyPost(`[`+legacyCall("")+`]`, "2025-03-26"))
		time.Sleep(3 * time.Second)
		stopped := time.Now()
		v.stop()
		for name, c := range map[string]<-chan textOrError{"stream": stream, "json": jsonOnly, "batch": batch} {
			got := <-c
			if !strings.Contains(got.text, `"code":-32603`) || strings.Contains(got.text, "too late") || got.at.Sub(stopped) > 5*time.Second {
				t.Errorf("%s: after %v: %v %q", name, got.at.Sub(stopped), got.err, got.text)
			}
		}
		v.end()
		close(release)
		synctest.Wait()
	})
}

// A question that is open when the server goes down is taken back.
func TestDrainWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{asks: []translate.Ask{formAsk}}
		v := serve(t, newServer(t, a.call, nil))
		session := initialize(t, v.Server, "2025-11-25", `{"elicitation":{}}`)
		c := v.inBackground(legacyPost(legacyCall(""), "2025-11-25", "Mcp-Session-Id", session))
		v.stop()
		if got := <-c; got.err != nil || !strings.Contains(got.text, "asked") {
			t.Errorf("%v %s", got.err, got.text)
		}
		if a.ok || a.err != nil {
			t.Errorf("%v %v", a.ok, a.err)
		}
		v.end()
	})
}

// Serve says what broke its listener.
func TestServeOnABrokenListener(t *testing.T) {
	s := newServer(t, echo, nil)
	ln := newPipeListener()
	_ = ln.Close()
	if err := s.Serve(t.Context(), ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// Several listeners are one server; one that breaks ends them all.
func TestServeOnSeveralListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, echo, nil)
		v4, v6 := newPipeListener(), newPipeListener()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, v4, v6) }()
		for _, ln := range []*pipeListener{v4, v6} {
			v := &served{Server: s, t: t, ln: ln, client: &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return ln.dial(ctx) }}}}
			if text, err := v.answerText(modernPost(callWithToken(""))); err != nil || !strings.Contains(text, `"result"`) {
				t.Errorf("%v %s", err, text)
			}
		}
		_ = v6.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v", err)
		}
		if _, err := v4.dial(ctx); err == nil {
			t.Error("the other listener is still open")
		}
	})
}

// A modern client that leaves cancels its call, over a real connection and
// both before and after the stream has opened (MCP
// 2026-07-28, cancellation).
func TestModernDisconnect(t *testing.T) {
	for name, wait := range map[string]time.Duration{"before the first byte": 10 * time.Millisecond, "on the stream": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan time.Time, 1)
				v := serve(t, newServer(t, func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
					<-ctx.Done()
					if context.Cause(ctx) != context.Canceled {
						t.Errorf("cause %v", context.Cause(ctx))
					}
					ended <- time.Now()
					return says("x")
				}, nil))
				ctx, cancel := context.WithCancel(context.Background())
				go func() { _, _ = v.answerText(modernPost(callWithToken("")).WithContext(ctx)) }() // its error is the cancel
				time.Sleep(wait)
				left := time.Now()
				cancel()
				if d := (<-ended).Sub(left); d > time.Second {
					t.Errorf("the call ended %v later", d)
				}
				v.end()
			})
		})
	}
}

// A legacy call whose client has left is not cancelled by the shutdown either:
// its time is up, and the agent may work on.
func TestDrainAfterLegacyDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		cause := make(chan error, 1)
		s := newServer(t, func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
			below, cancel := context.WithCancel(context.WithValue(ctx, key{}, 1))
			defer cancel()
			<-below.Done()
			cause <- context.Cause(below)
			if ctx.Value(http.ServerContextKey) == nil {
				t.Error("the request's values are lost")
			}
			return says("x")
		}, func(o *Options) { o.Grace = time.Second })
		v := serve(t, s)
		ctx, leave := context.WithCancel(context.Background())
		go func() { _, _ = v.answerText(legacyPost(legacyCall(""), "2025-11-25").WithContext(ctx)) }() // its error is the leaving
		synctest.Wait()
		leave()
		time.Sleep(time.Minute)
		if len(cause) != 0 {
			t.Fatalf("the disconnect ended the call: %v", <-cause)
		}
		v.end()
		if err := <-cause; err != context.DeadlineExceeded {
			t.Errorf("cause %v", err)
		}
	})
}

// Two clients with one id in flight do not touch each other.
func TestSameIDTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := serve(t, newServer(t, func(ctx context.Context, c tools.Call, sink tools.Sink) translate.Outcome {
			for range 5 {
				sink.Progress(string(c.Arguments))
				time.Sleep(time.Second)
			}
			return says(string(c.Arguments))
		}, nil))
		call := func(who string) *http.Request {
			return modernPost(modernBodyWith("1", "tools/call", `"name":"invoice_helper","arguments":{"who":"`+who+`"}`, metaOf("{}", `,"progressToken":1`)))
		}
		a, b := v.inBackground(call("anna")), v.inBackground(call("bert"))
		for who, c := range map[string]<-chan textOrError{"anna": a, "bert": b} {
			got := <-c
			other := map[string]string{"anna": "bert", "bert": "anna"}[who]
			if strings.Count(got.text, who) != 6 || strings.Contains(got.text, other) {
				t.Errorf("%s: %s", who, got.text)
			}
		}
		v.end()
	})
}

// A client that does not read is given up after the time for one write, and
// the call's end is not held up.
func TestClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Duration, 1)
		start := time.Now()
		v := serve(t, newServer(t, func(ctx context.Context, _ tools.Call, sink tools.Sink) translate.Outcome {
			<-ctx.Done()
			ended <- time.Since(start)
			return says("x")
		}, nil))
		conn, err := v.ln.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(conn)
		if err := modernPost(callWithToken("1")).Write(w); err != nil || w.Flush() != nil {
			t.Fatal(err)
		}
		if d := <-ended; d > 40*time.Second {
			t.Errorf("noticed after %v", d)
		}
		_ = conn.Close()
		v.end()
	})
}
