package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"a2agate/tools"
	"a2agate/translate"
)

// StdioOptions are those of ServeStdio; zero fields take the defaults.
type StdioOptions struct {
	Principal string // Local
	View      tools.View
	Pace      Pace
	Limits    Limits        // BodyBytes (a line), Depth, Batch
	Grace     time.Duration // 5 s for calls in flight when ctx ends
	// Observe and Trace are as in Options; the Status of an Exchange is 0.
	Observe func(Exchange)
	Trace   TraceFunc
	// Counting is given, once and before anything is read, what counts the work
	// at hand as Server.Counts does; may be nil.
	Counting func(counts func() Counts)
}

// stdioSession stands for the one client of a pipe, where HTTP has a signed id.
const stdioSession = "stdio"

// pipe is one client on a pair of streams.
type pipe struct {
	c       *Core
	o       StdioOptions
	out     lineWriter
	running running
	active  activeStreams
	listens atomic.Int64 // open subscriptions/listen
	drain   chan struct{}
	base    context.Context
	work    sync.WaitGroup

	// What initialize settled; owned by the goroutine of lines, copied into each
	// call.
	revision translate.Revision
	client   tools.ClientCapabilities
	// handshake is how far a legacy client is: only one that is through hears of
	// changed lists. Elements of a batch see it too.
	handshake atomic.Int32
}

// The stages of a handshake.
const (
	notGreeted int32 = iota
	greeted          // initialize was answered
	through          // and notifications/initialized came
)

// ServeStdio serves one client that writes messages to in, one a line, and
// reads them from out (MCP, transports, stdio), on every served revision. It
// returns when in is at its end and what was in flight has been answered; or
// when ctx ends, after giving calls in flight the grace to answer; or when one
// of the streams breaks, with its error. A Read or Write that is still blocked
// after that is left behind: the process is to end next.
func (c *Core) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, o StdioOptions) error {
	if o.Principal == "" {
		o.Principal = Local
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	o.Pace, o.Limits = o.Pace.withDefaults(), o.Limits.withDefaults()
	base, end := context.WithCancelCause(context.Background())
	p := &pipe{c: c, o: o, out: lineWriter{w: out, broken: make(chan struct{})}, drain: make(chan struct{}), base: base, revision: translate.Rev20250326}
	if o.Counting != nil {
		o.Counting(p.counts)
	}
	lines := make(chan line)
	stop := make(chan struct{})
	defer close(stop)
	go readLines(in, o.Limits.BodyBytes, lines, stop) // ends with in, see above
	over := make(chan error, 1)
	p.work.Go(func() { p.lines(lines, over) }) // may wait for the client too
	select {
	case err := <-over:
		if errors.Is(err, io.EOF) { // no more questions; the client still reads
			break
		}
		end(context.Canceled) // the client is gone
		p.wind(ctx, end)
		return err
	case <-p.out.broken:
	case <-ctx.Done():
	}
	p.wind(ctx, end)
	return p.out.failed()
}

// lines works off the lines until the pipe winds up, or says what ended them.
func (p *pipe) lines(in <-chan line, over chan<- error) {
	for {
		select {
		case <-p.drain:
			return
		case l := <-in:
			if l.err != nil {
				over <- l.err
				return
			}
			p.line(l)
		}
	}
}

// wind waits for what runs: as long as the calls take while nothing hurries
// them, for the grace once ctx has ended, and then in the order of
// Server.Serve. A client that does not read any more is waited for no longer.
func (p *pipe) wind(ctx context.Context, end context.CancelCauseFunc) {
	close(p.drain)
	idle := make(chan struct{})
	go func() { // ends with the calls; with one that never ends it is left behind
		defer close(idle)
		p.work.Wait()
	}()
	select {
	case <-idle:
		return
	case <-p.out.broken:
		end(context.Canceled)
	case <-p.base.Done():
	case <-ctx.Done():
	}
	wait := func(d time.Duration) (over bool) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-idle:
			return true
		case <-p.base.Done(): // the grace is for nobody
			return false
		case <-t.C:
			return false
		}
	}
	if wait(p.o.Grace) {
		return
	}
	end(context.DeadlineExceeded) // a first cause stays
	select {
	case <-idle:
	case <-time.After(hurry):
		for _, s := range p.active.list() {
			s.abandon()
		}
	}
}

// line works off one line. What may wait for an agent goes on by itself.
func (p *pipe) line(l line) {
	switch {
	case l.long:
		p.refuse(p.watch(&Envelope{}), &translate.Error{Code: translate.CodeInvalidRequest, Message: "invalid request: the line is longer than limits.bodyBytes"})
		return
	case isBatch(l.text):
		p.batch(l.text)
		return
	}
	e, err := ParseEnvelope(l.text, p.o.Limits.Depth)
	if err != nil {
		p.refuse(p.watch(e), err)
		return
	}
	if !p.unasked(e) {
		p.request(e)
		return
	}
	p.watch(e).over(p.revision, 0)
}

// refuse answers a message with an error.
func (p *pipe) refuse(w *pipeWatch, err *translate.Error) {
	err = withRequestID(err, w.ctx.Request.ID)
	p.say(errorResponse(w.env.ID, err))
	w.over(p.revision, err.Code)
}

func (p *pipe) say(msg []byte) { _ = p.out.put(p.out.frame(nil, msg)) } // failed() has the error

func (p *pipe) key(id string) callKey {
	return callKey{principal: p.o.Principal, session: stdioSession, id: id}
}

// unasked obeys a message that has no answer; false for a request.
func (p *pipe) unasked(e *Envelope) bool {
	switch e.Kind {
	case KindNotification:
		switch {
		case e.Method == "notifications/cancelled" && validID(e.P.RequestID):
			p.running.cancel(p.key(idKey(e.P.RequestID)))
		case e.Method == "notifications/initialized" && p.handshake.CompareAndSwap(greeted, through):
			p.announce()
		}
	case KindResponse:
		p.running.answer(p.key(idKey(e.ID)), e)
	default:
		return false
	}
	return true
}

// announce tells a legacy client of changed lists as long as the pipe is open.
func (p *pipe) announce() {
	l := p.c.announcer(p.o.View) // watches before the client can list anything
	p.work.Go(func() {
		l.announce(p.base, p.drain, func(msg []byte) error { return p.out.put(p.out.frame(nil, msg)) })
	})
}

func (p *pipe) request(e *Envelope) {
	call, f := p.newCall(e)
	switch {
	case f.failed():
		p.refuse(call.watch, f.err)
	case methods[e.Method].slow:
		p.work.Go(call.run)
	case e.Method == "subscriptions/listen" && call.req.Revision.Modern():
		p.work.Go(call.listen)
	default:
		call.run()
	}
}

// pipeCall is one request on its way; it is the Sink of its call.
type pipeCall struct {
	p      *pipe
	watch  *pipeWatch // its ctx is that of the call
	req    Request
	stream stream
	done   func()
}

func (p *pipe) newCall(e *Envelope) (*pipeCall, failure) {
	call := &pipeCall{p: p, watch: p.watch(e), req: Request{Envelope: e, Revision: p.revision, Principal: p.o.Principal, View: p.o.View, Client: p.client}}
	call.req.Sink = call
	if eraOf(e, "") == eraModern {
		version, f := checkMeta(e)
		if f.failed() {
			return call, f
		}
		if version != string(translate.Rev20260728) {
			return call, failure{err: unsupportedVersion(version)}
		}
		call.req.Revision = translate.Rev20260728
		call.req.Client = modernClient(e.Meta.ClientCapabilities)
	} else {
		call.req.NewSession = func(rev translate.Revision, client tools.ClientCapabilities) string {
			p.revision, p.client = rev, client
			p.handshake.CompareAndSwap(notGreeted, greeted)
			return ""
		}
		call.req.Announces = true
	}
	call.stream.out, call.stream.pace, call.stream.messages, call.stream.id = &p.out, &p.o.Pace, true, e.ID
	ctx, cancel := context.WithCancel(p.base)
	remove := p.running.add(p.key(idKey(e.ID)), cancel)
	call.watch.ctx.Context, call.done = ctx, func() {
		remove()
		cancel()
	}
	call.req.Trace = call.watch.trace()
	return call, failure{}
}

func (c *pipeCall) run() {
	defer c.done()
	if methods[c.req.Method].slow {
		c.stream.begin(c.req.Meta.ProgressToken)
		c.p.active.add(&c.stream)
		defer c.p.active.remove(&c.stream)
	}
	a := c.p.c.Handle(&c.watch.ctx, &c.req)
	c.stream.finish(http.StatusOK, a.Message)
	c.watch.over(c.req.Revision, a.Code)
}

func (c *pipeCall) listen() {
	defer c.done()
	c.p.listens.Add(1)
	defer c.p.listens.Add(-1)
	code := 0
	refused := c.p.c.Listen(&c.watch.ctx, &c.req, c.p.drain, c.p.o.Pace.KeepAlive, func(msg []byte) error {
		if msg == nil {
			return c.p.out.failed()
		}
		return c.p.out.put(c.p.out.frame(nil, msg))
	})
	if refused != nil {
		c.p.say(refused.Message)
		code = refused.Code
	}
	c.watch.over(c.req.Revision, code)
}

// Progress implements tools.Sink.
func (c *pipeCall) Progress(message string) { c.stream.Progress(message) }

// Agent implements agentNamer.
func (c *pipeCall) Agent(name string) { c.stream.Agent(name) }

// Ask implements tools.Sink.
func (c *pipeCall) Ask(ctx context.Context, asks []translate.Ask) (map[string]translate.Answer, bool, error) {
	q := questioner{
		running: &c.p.running, stream: &c.stream, principal: c.p.o.Principal, session: stdioSession,
		revision: c.req.Revision, client: c.req.Client, gone: c.p.drain,
	}
	return q.ask(ctx, asks)
}

// batch works off a JSON array (MCP 2025-03-26); its answers are one line.
func (p *pipe) batch(text []byte) {
	items, err := parseBatch(text, p.o.Limits.Depth, p.o.Limits.Batch)
	if err == nil && p.revision != translate.Rev20250326 {
		err = &translate.Error{Code: translate.CodeInvalidRequest, Message: "invalid request: a batch needs protocol version 2025-03-26"}
	}
	w := p.watch(&Envelope{Method: "batch"}) // for the observer, as over HTTP
	if err != nil {
		p.refuse(w, err)
		return
	}
	p.work.Go(func() {
		defer w.over(translate.Rev20250326, 0)
		array := []byte{'['}
		for i := range items {
			if a := p.batchItem(&items[i]); a != nil {
				if len(array) > 1 {
					array = append(array, ',')
				}
				array = append(array, a...)
			}
		}
		if len(array) > 1 {
			p.say(append(array, ']'))
		}
	})
}

func (p *pipe) batchItem(it *batchItem) []byte {
	e := &it.Envelope
	switch {
	case it.problem == "" && p.unasked(e):
		return nil
	case it.problem == "" && (e.Method == "initialize" || eraOf(e, "") != eraLegacy):
		it.problem = "this request cannot be part of a batch"
	}
	if it.problem != "" {
		return errorResponse(e.ID, &translate.Error{Code: translate.CodeInvalidRequest, Message: "invalid request: " + it.problem})
	}
	w := p.watch(e)
	ctx, cancel := context.WithCancel(p.base)
	defer cancel()
	defer p.running.add(p.key(idKey(e.ID)), cancel)()
	w.ctx.Context = ctx
	req := Request{Envelope: e, Revision: translate.Rev20250326, Principal: p.o.Principal, View: p.o.View, Trace: w.trace()}
	a := p.c.Handle(&w.ctx, &req)
	w.traced(req.Revision, a.Code)
	return a.Message
}

// lineWriter is a carrier that writes each message as a line. It may be used
// concurrently.
type lineWriter struct {
	mu  sync.Mutex
	w   io.Writer
	err error // the first that a write gave
	// broken is closed with it.
	broken chan struct{}
}

func (l *lineWriter) whole(_ int, msg []byte, _ time.Duration, _ bool) bool {
	_ = l.put(l.frame(nil, msg)) // failed() has the error
	return false
}

func (l *lineWriter) open() {}

func (l *lineWriter) frame(dst, msg []byte) []byte {
	return append(appendOneLine(dst, msg), '\n')
}

func (l *lineWriter) idle() []byte { return nil }

func (l *lineWriter) put(out []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		if _, l.err = l.w.Write(out); l.err != nil {
			close(l.broken)
		}
	}
	return l.err
}

// failed is the error of a write, nil while there is none. It does not wait for
// a write that a client who has stopped reading holds up.
func (l *lineWriter) failed() error {
	select {
	case <-l.broken:
		return l.err // is not written any more
	default:
		return nil
	}
}

// line is one line of input, or the end.
type line struct {
	text []byte
	long bool // it was longer than allowed, and is not here
	err  error
}

// readLines reads until the end of in or of stop.
func readLines(in io.Reader, limit int64, to chan<- line, stop <-chan struct{}) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l := readLine(r, limit)
		if len(l.text) > 0 || l.long {
			l2 := line{text: l.text, long: l.long}
			select {
			case to <- l2:
			case <-stop:
				return
			}
		}
		if l.err == nil {
			continue
		}
		select {
		case to <- line{err: l.err}:
		case <-stop:
		}
		return
	}
}

// readLine reads one line, without its end and without blanks around it.
func readLine(r *bufio.Reader, limit int64) (l line) {
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(l.text)+len(part)) > limit {
			l.long, l.text = true, nil
		}
		if !l.long {
			l.text = append(l.text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			l.err = err
			l.text = trimBlanks(l.text)
			return l
		}
	}
}

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] <= ' ') {
		b = b[:len(b)-1]
	}
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	return b
}
