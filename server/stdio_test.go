package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/internal/schematest"
	"a2agate/tools"
	"a2agate/translate"
)

// piped is a Core that serves a pipe in a synctest bubble.
type piped struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	stop  context.CancelFunc
	ended chan error
}

func pipeTo(t *testing.T, s *Server, o StdioOptions) *piped {
	t.Helper()
	in, write := io.Pipe()
	read, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	p := &piped{t: t, in: write, lines: make(chan string, 1000), stop: cancel, ended: make(chan error, 1)}
	go func() {
		p.ended <- s.Core().ServeStdio(ctx, in, out, o)
		_ = in.Close()
		_ = out.Close()
	}()
	go func() {
		defer close(p.lines)
		sc := bufio.NewScanner(read)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			p.lines <- sc.Text()
		}
	}()
	return p
}

func (p *piped) write(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(p.in, l+"\n"); err != nil {
			p.t.Fatal(err)
		}
	}
}

// next returns the next line, which must come within a minute.
func (p *piped) next() string {
	p.t.Helper()
	select {
	case l := <-p.lines:
		return l
	case <-time.After(time.Minute):
		p.t.Fatal("no line came")
		return ""
	}
}

func (p *piped) quiet() {
	p.t.Helper()
	synctest.Wait()
	if n := len(p.lines); n != 0 {
		p.t.Errorf("%d lines, the first %s", n, <-p.lines)
	}
}

// end closes the input and waits.
func (p *piped) end() {
	p.t.Helper()
	_ = p.in.Close()
	if err := <-p.ended; err != nil {
		p.t.Errorf("ServeStdio: %v", err)
	}
	for range p.lines { // until it is closed
	}
	p.stop()
}

const initLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

// Both eras on one pipe, each answer one line, errors with their ids.
func TestStdio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeTo(t, newServer(t, echo, nil), StdioOptions{})
		for _, tt := range []struct{ rev, method, line, want string }{
			{"2026-07-28", "server/discover", modernBody("1", "server/discover", ""), `"supportedVersions":["2026-07-28"`},
			{"2026-07-28", "tools/call", modernBody(`"a"`, "tools/call", callTool), `"id":"a","result":{"resultType":"complete"`},
			{"2026-07-28", "ping", modernBody("2", "ping", ""), `"code":-32601`},
			{"2026-07-28", "tools/list", modernBodyWith("3", "tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), `"code":-32602`},
			{"2026-07-28", "tools/list", modernBodyWith("3", "tools/list", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"v9","io.modelcontextprotocol/clientCapabilities":{}}`), `"code":-32022`},
			{"2026-07-28", "tasks/get", modernBody("4", "tasks/get", `"taskId":"tk_1"`), `"code":-32021`},
			{"2026-07-28", "tasks/get", modernBodyWith("4", "tasks/get", `"taskId":"tk_1"`, metaOf(withTasks, "")), `"status":"working"`},
			{"2025-11-25", "initialize", initLine, `"protocolVersion":"2025-11-25"`},
			{"2025-11-25", "ping", `{"jsonrpc":"2.0","id":5,"method":"ping"}`, `{"jsonrpc":"2.0","id":5,"result":{}}`},
			{"2025-11-25", "tools/call", legacyCall(""), `"structuredContent"`},
			{"2025-11-25", "", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `"code":-32600`},
			{"2025-11-25", "", `{broken`, `"code":-32700`},
			{"2025-11-25", "", `[` + legacyCall("") + `]`, `"code":-32600`},
		} {
			p.write(tt.line)
			got := p.next()
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s\n got %s\nwant %s", tt.line, got, tt.want)
			}
			if schematest.Available() {
				schematest.Message(t, tt.rev, tt.method, []byte(got))
			}
		}
		p.write("", "  ", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":9,"result":{}}`)
		p.quiet()
		p.end()
	})
}

func TestStdioBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeTo(t, newServer(t, echo, nil), StdioOptions{})
		p.write(`[{"jsonrpc":"2.0","id":1,"method":"ping"},5,{"jsonrpc":"2.0","method":"notifications/initialized"},` + initLine + `,` + legacyCall("") + `]`)
		got := p.next()
		if !strings.HasPrefix(got, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","error"`) || strings.Contains(got, "structuredContent") || strings.Count(got, "jsonrpc") != 4 {
			t.Errorf("%s", got)
		}
		p.write(`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`)
		p.quiet()
		p.end()
	})
}

// Slow calls run side by side; progress has its pace; cancelling ends one.
func TestStdioSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeTo(t, newServer(t, func(ctx context.Context, c tools.Call, sink tools.Sink) translate.Outcome {
			sink.Progress("on it")
			select {
			case <-ctx.Done():
				return says(context.Cause(ctx).Error())
			case <-time.After(20 * time.Second):
				return says("finished")
			}
		}, nil), StdioOptions{})
		start := time.Now()
		p.write(modernBodyWith(`"a"`, "tools/call", callTool, metaOf("{}", `,"progressToken":"pa"`)), modernBody(`"b"`, "tools/call", callTool))
		if got := p.next(); !strings.Contains(got, `"progressToken":"pa","progress":1,"message":"on it"`) || time.Since(start) != 0 {
			t.Errorf("%v %s", time.Since(start), got)
		}
		p.write(cancelled(`"b"`))
		if got := p.next(); !strings.Contains(got, `"id":"b"`) || !strings.Contains(got, "context canceled") {
			t.Errorf("%s", got)
		}
		if got := p.next(); !strings.Contains(got, `"message":"Invoice Helper: working, 15s"`) {
			t.Errorf("%s", got)
		}
		if got := p.next(); !strings.Contains(got, `"id":"a"`) || !strings.Contains(got, "finished") || time.Since(start) != 20*time.Second {
			t.Errorf("%v %s", time.Since(start), got)
		}
		p.end()
	})
}

func TestStdioElicitation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{asks: []translate.Ask{formAsk}}
		p := pipeTo(t, newServer(t, a.call, nil), StdioOptions{})
		p.write(legacyCall("")) // before initialize nobody can be asked
		if got := p.next(); !strings.Contains(got, "asked") || a.ok {
			t.Errorf("%s", got)
		}
		p.write(initLine)
		p.next()
		p.write(legacyCall(""))
		question := decode(t, []byte(p.next()))
		if question.Method != "elicitation/create" {
			t.Fatalf("%+v", question)
		}
		p.write(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{"action":"accept","content":{"answer":"2025"}}}`)
		if got := p.next(); !strings.Contains(got, "asked") || string(a.got["answer"].Content) != `{"answer":"2025"}` {
			t.Errorf("%s %+v", got, a.got)
		}
		p.write(modernBodyWith("1", "tools/call", callTool, metaOf(`{"elicitation":{}}`, ""))) // a modern call is not
		if got := p.next(); !strings.Contains(got, "asked") || a.ok {
			t.Errorf("%s", got)
		}
		p.end()
	})
}

func TestStdioListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cats := newCatalogues(basicCatalogue())
		s := newServer(t, echo, func(o *Options) { o.Catalogues = cats })
		p := pipeTo(t, s, StdioOptions{})
		p.write(modernBody(`"l"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
		if got := p.next(); !strings.Contains(got, "subscriptions/acknowledged") {
			t.Errorf("%s", got)
		}
		time.Sleep(time.Hour)
		p.quiet()
		cats.change(func(f *fakeCatalogues) { f.cats[tools.View{}] = largeCatalogue(2) })
		if got := p.next(); !strings.Contains(got, "tools/list_changed") {
			t.Errorf("%s", got)
		}
		p.write(cancelled(`"l"`))
		synctest.Wait()
		if n := cats.subscribers(); n != 0 {
			t.Errorf("%d subscribers", n)
		}
		p.write(modernBody("2", "subscriptions/listen", `"notifications":5`))
		if got := p.next(); !strings.Contains(got, `"code":-32602`) {
			t.Errorf("%s", got)
		}
		p.write(modernBody(`"m"`, "subscriptions/listen", `"notifications":{}`))
		p.next()
		p.stop()
		if got := p.next(); !strings.Contains(got, `"id":"m","result"`) {
			t.Errorf("%s", got)
		}
		p.end()
	})
}

// When the client is gone its calls are cancelled; when the process is told to
// end, they have time to answer and then answer with what they have.
func TestStdioEnds(t *testing.T) {
	slow := func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
		select {
		case <-time.After(30 * time.Second):
			return says("done")
		case <-ctx.Done():
			return says(context.Cause(ctx).Error())
		}
	}
	for name, tt := range map[string]struct {
		stop func(p *piped)
		want string
		wait time.Duration
	}{
		"end of input": {func(p *piped) { _ = p.in.Close() }, "done", 30 * time.Second},
		"signal":       {func(p *piped) { p.stop() }, "deadline exceeded", 5 * time.Second},
		"both": {func(p *piped) {
			_ = p.in.Close()
			time.Sleep(10 * time.Second)
			p.stop()
		}, "deadline exceeded", 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pipeTo(t, newServer(t, slow, nil), StdioOptions{})
				p.write(legacyCall(""))
				synctest.Wait()
				start := time.Now()
				tt.stop(p)
				if got := p.next(); !strings.Contains(got, tt.want) || time.Since(start) != tt.wait {
					t.Errorf("after %v: %s", time.Since(start), got)
				}
				p.end()
			})
		})
	}
	t.Run("nobody reads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cause := make(chan error, 1)
			s := newServer(t, func(ctx context.Context, _ tools.Call, _ tools.Sink) translate.Outcome {
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return says("")
			}, nil)
			broken := errors.New("broken pipe")
			open, w := io.Pipe()
			defer w.Close()
			in := io.MultiReader(strings.NewReader(legacyCall("")+"\n"+`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n"), open)
			if err := s.Core().ServeStdio(t.Context(), in, errWriter{broken}, StdioOptions{}); !errors.Is(err, broken) {
				t.Errorf("%v", err)
			}
			if got := <-cause; !errors.Is(got, context.Canceled) {
				t.Errorf("the call ended by %v", got)
			}
		})
	})
	t.Run("a stuck call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			p := pipeTo(t, newServer(t, func(context.Context, tools.Call, tools.Sink) translate.Outcome {
				<-release
				return says("too late")
			}, nil), StdioOptions{Grace: time.Second})
			p.write(legacyCall(""))
			synctest.Wait()
			p.stop()
			if got := p.next(); !strings.Contains(got, `"id":1,"error":{"code":-32603`) {
				t.Errorf("%s", got)
			}
			close(release)
			p.end()
		})
	})
}

func TestStdioLongLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeTo(t, newServer(t, echo, nil), StdioOptions{Limits: Limits{BodyBytes: 100_000}})
		p.write(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 300_000) + `"}`)
		if got := p.next(); !strings.Contains(got, "limits.bodyBytes") {
			t.Errorf("%s", got)
		}
		p.write(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if got := p.next(); got != `{"jsonrpc":"2.0","id":2,"result":{}}` {
			t.Errorf("%s", got)
		}
		p.end()
	})
}

// What breaks a stream is said.
func TestStdioBrokenStreams(t *testing.T) {
	s := newServer(t, echo, nil)
	broken := errors.New("broken pipe")
	in := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n"), errReader{broken})
	if err := s.Core().ServeStdio(t.Context(), in, io.Discard, StdioOptions{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	in = strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if err := s.Core().ServeStdio(t.Context(), in, errWriter{broken}, StdioOptions{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

type errWriter struct{ err error }

func (w errWriter) Write([]byte) (int, error) { return 0, w.err }

// A client that began with initialize hears of changed lists once it is through
// with the handshake, and of each change once. One of the modern wire asks.
func TestStdioAnnounces(t *testing.T) {
	const through = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	for _, rev := range []string{"2025-11-25", "2025-06-18", "2025-03-26"} {
		synctest.Test(t, func(t *testing.T) {
			cats := newCatalogues(basicCatalogue())
			p := pipeTo(t, newServer(t, echo, func(o *Options) { o.Catalogues = cats }), StdioOptions{})
			other := func() {
				cats.change(func(f *fakeCatalogues) {
					c := *f.cats[tools.View{}]
					c.Tools = c.Tools[:len(c.Tools)-1]
					f.cats[tools.View{}] = &c
				})
			}
			p.write(modernBody("1", "server/discover", ""))
			_ = p.next()
			p.write(through) // of no handshake
			other()
			p.quiet()
			p.write(strings.ReplaceAll(initLine, "2025-11-25", rev))
			first := p.next()
			if n := strings.Count(first, `"listChanged":true`); n != 3 || strings.Contains(first, `"subscribe"`) {
				t.Errorf("%s: %s", rev, first)
			}
			other()
			p.quiet()
			p.write(through, through)
			p.quiet()
			if n := cats.subscribers(); n != 1 {
				t.Errorf("%d watch the catalogue", n)
			}
			other()
			want := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
			if got := p.next(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if schematest.Available() {
				schematest.Message(t, rev, "", []byte(want))
			}
			cats.change(func(*fakeCatalogues) {})
			p.quiet()
			p.end()
			if n := cats.subscribers(); n != 0 {
				t.Errorf("%d still watch the catalogue", n)
			}
		})
	}
}

// Once a pipe winds up, nobody is told of a list that cannot be asked for any
// more.
func TestStdioAnnouncesNothingAtItsEnd(t *testing.T) {
	done := make(chan struct{})
	close(done)
	for range 50 {
		cats := newCatalogues(basicCatalogue())
		l := newServer(t, echo, func(o *Options) { o.Catalogues = cats }).Core().announcer(tools.View{})
		cats.change(func(f *fakeCatalogues) {
			c := *f.cats[tools.View{}]
			c.Tools = c.Tools[:len(c.Tools)-1]
			f.cats[tools.View{}] = &c
		})
		l.announce(t.Context(), done, func(msg []byte) error {
			t.Errorf("said %s", msg)
			return nil
		})
		if n := cats.subscribers(); n != 0 {
			t.Errorf("%d still watch the catalogue", n)
		}
	}
}

// endsUnread waits for the end of ServeStdio, of which nobody reads.
func endsUnread(t *testing.T, ended <-chan error, read io.Closer) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for the client")
		_ = read.Close()
		<-ended
	}
}

// A client that has stopped reading does not keep the gateway from ending.
func TestStdioEndsWithoutAReader(t *testing.T) {
	t.Parallel()
	cats := newCatalogues(basicCatalogue())
	s := newServer(t, echo, func(o *Options) { o.Catalogues = cats })
	in, write := io.Pipe()
	read, out := io.Pipe()
	defer in.Close()
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Core().ServeStdio(ctx, in, out, StdioOptions{Grace: time.Millisecond}) }()
	sc := bufio.NewScanner(read)
	send := func(line string) {
		if _, err := io.WriteString(write, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	send(initLine)
	if !sc.Scan() {
		t.Fatal(sc.Err())
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","method":"notifications/none"}`) // the other has been seen to
	cats.change(func(f *fakeCatalogues) {
		c := *f.cats[tools.View{}]
		c.Tools = c.Tools[:len(c.Tools)-1]
		f.cats[tools.View{}] = &c
	})
	one := make([]byte, 1)
	if _, err := read.Read(one); err != nil { // the change is being written
		t.Fatal(err)
	}
	cancel()
	endsUnread(t, ended, read)
}

// Nor does one that has not read the answer to what was answered at once.
func TestStdioEndsWithAnAnswerNobodyReads(t *testing.T) {
	t.Parallel()
	in, write := io.Pipe()
	read, out := io.Pipe()
	defer in.Close()
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := newServer(t, echo, nil)
	go func() { ended <- s.Core().ServeStdio(ctx, in, out, StdioOptions{Grace: time.Millisecond}) }()
	if _, err := io.WriteString(write, initLine+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := read.Read(make([]byte, 1)); err != nil { // the answer is being written
		t.Fatal(err)
	}
	cancel()
	endsUnread(t, ended, read)
}
