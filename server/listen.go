package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"a2agate/tools"
	"a2agate/translate"
)

// maxFilter bounds how many tasks or resources one listen names.
const maxFilter = 1000

// listenFilter is what a subscriptions/listen asks for (MCP 2026-07-28,
// subscriptions; tasks extension 3.5).
type listenFilter struct {
	tools, prompts, resources bool
	uris                      []string
	taskIDs                   []string
	wantsURIs, wantsTasks     bool
}

func parseFilter(raw json.RawMessage) (f listenFilter, bad failure) {
	if !isObject(raw) {
		return f, malformed("subscriptions/listen: params.notifications must be an object")
	}
	flag := func(key string, to *bool) {
		v, _ := lookup(raw, key)
		switch {
		case v == nil || string(v) == "false":
		case string(v) == "true":
			*to = true
		default:
			bad = malformed("subscriptions/listen: params.notifications.%s must be a boolean", key)
		}
	}
	flag("toolsListChanged", &f.tools)
	flag("promptsListChanged", &f.prompts)
	flag("resourcesListChanged", &f.resources)
	list := func(key string, to *[]string) (present bool) {
		v, _ := lookup(raw, key)
		if v == nil {
			return false
		}
		var ok bool
		if *to, ok = stringList(v); !ok {
			bad = malformed("subscriptions/listen: params.notifications.%s must be an array of at most %d strings", key, maxFilter)
		}
		return true
	}
	f.wantsURIs = list("resourceSubscriptions", &f.uris)
	f.wantsTasks = list("taskIds", &f.taskIDs)
	return f, bad
}

func stringList(raw json.RawMessage) (out []string, ok bool) {
	s := newScanner(raw)
	if !s.open('[') {
		return nil, false
	}
	for n := 0; s.element(n); n++ {
		v, ok := stringValue(s.value())
		if !ok || n >= maxFilter {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// listener is one open subscriptions/listen. It belongs to one goroutine.
type listener struct {
	c        *Core
	req      *Request
	filter   listenFilter
	versions map[string]string // of the subscribed resources
	sums     listSums
	watch    TaskWatch // nil without tasks
	wake     <-chan struct{}
	stop     func()
	// revoked is closed when the caller is let in no more; nil is never.
	revoked <-chan struct{}
}

// Listen serves a subscriptions/listen until ctx ends, which writes nothing
// more, or until done is closed, which writes the completion result. emit
// writes one message; nil asks for a sign of life. It is called from the
// calling goroutine only. An error of emit ends the stream. refused is the
// answer when the request is not taken up; then nothing was emitted.
func (c *Core) Listen(ctx context.Context, req *Request, done <-chan struct{}, keepAlive time.Duration, emit func(msg []byte) error) (refused *Answer) {
	l, f := c.newListener(req)
	if f.failed() {
		a := failed(c.numbered(ctx, req), req.ID, f)
		return &a
	}
	l.run(ctx, done, keepAlive, emit)
	return nil
}

// announcer watches the lists of a view from now on, for a legacy client, which
// hears of changes without having asked (MCP 2025-11-25, tools, list changed
// notification). Its announce is to be called.
func (c *Core) announcer(view tools.View) *listener {
	l := &listener{c: c, req: &Request{Envelope: &Envelope{}, View: view}, filter: listenFilter{tools: true, prompts: true, resources: true}}
	l.open()
	return l
}

// announce emits until ctx ends, done is closed or emit fails.
func (l *listener) announce(ctx context.Context, done <-chan struct{}, emit func(msg []byte) error) {
	defer l.close()
	defer func() {
		if p := recover(); p != nil {
			l.c.panicked(l.c.numbered(ctx, l.req), l.req, p) // logs it; there is no request to answer
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-done:
			return
		case <-l.wake:
		}
		select {
		case <-done: // at the same time: nobody could ask for the list any more
			return
		default:
		}
		if l.changes(emit) != nil {
			return
		}
	}
}

// newListener checks a listen request. close frees what it holds.
func (c *Core) newListener(req *Request) (*listener, failure) {
	if f := c.admit(req); f.failed() {
		return nil, f
	}
	filter, f := parseFilter(req.P.Notifications)
	if f.failed() {
		return nil, f
	}
	if filter.wantsTasks && c.o.Tasks != nil && !req.Client.Tasks {
		return nil, failure{err: missingTasks()}
	}
	return &listener{c: c, req: req, filter: filter}, failure{}
}

// open starts watching. The subscription comes before the first look at the
// catalogue, so no change falls between.
func (l *listener) open() {
	l.wake, l.stop = l.c.o.Catalogues.Changed()
	if snap := l.c.snapshots.of(l.c, l.req.View); snap != nil {
		l.sums = snap.sums
	}
	l.filter.prompts = l.filter.prompts && l.c.o.Prompts != nil
	l.filter.resources = l.filter.resources && l.c.o.Resources != nil
	if v, ok := l.c.o.Catalogues.(ResourceVersions); ok && l.filter.wantsURIs && l.c.o.Resources != nil {
		l.versions = make(map[string]string)
		for _, uri := range l.filter.uris {
			if version, ok := v.ResourceVersion(l.req.View, uri); ok {
				l.versions[uri] = version
			}
		}
	}
	if l.filter.wantsTasks && l.c.o.Tasks != nil {
		call := TaskCall{Principal: l.req.Principal, Agents: l.c.o.Catalogues.Scope(l.req.View), Client: l.req.Client}
		l.watch = l.c.o.Tasks.Watch(call, l.filter.taskIDs)
	}
}

func (l *listener) close() {
	if l.stop != nil {
		l.stop()
	}
	if l.watch != nil {
		l.watch.Close()
	}
}

// run is the stream: the acknowledgement first, then what was asked for, each
// message tagged with the id of the request.
func (l *listener) run(ctx context.Context, done <-chan struct{}, keepAlive time.Duration, emit func([]byte) error) {
	defer l.close()
	defer func() {
		if p := recover(); p != nil {
			_ = emit(l.c.panicked(l.c.numbered(ctx, l.req), l.req, p)) // the stream ends either way
		}
	}()
	l.open()
	if emit(l.acknowledgement()) != nil || l.tasksDue(emit) != nil {
		return
	}
	var tasks <-chan struct{}
	if l.watch != nil {
		tasks = l.watch.Wake()
	}
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		var due func(func([]byte) error) error
		select {
		case <-ctx.Done():
			return
		case <-l.revoked:
			return
		case <-done:
			_ = emit(l.completion()) // the stream ends either way
			return
		case <-l.wake:
			due = l.changes
		case <-tasks:
			due = l.tasksDue
		case <-tick.C:
			due = func(emit func([]byte) error) error { return emit(nil) }
		}
		if l.over() || due(emit) != nil {
			return
		}
	}
}

// over reports whether the caller is let in no more: then it hears of nothing,
// whatever else has happened at the same time.
func (l *listener) over() bool {
	select {
	case <-l.revoked:
		return true
	default:
		return false
	}
}

// tag appends "_meta":{…} with the subscription's id in its own JSON type.
func (l *listener) tag(dst []byte) []byte {
	dst = append(dst, `"_meta":{"`+metaSubscription+`":`...)
	dst = append(dst, l.req.ID...)
	return append(dst, '}')
}

// notification is a message without parameters of its own. On the legacy wires
// no request asked for it, so nothing names one.
func (l *listener) notification(method string) []byte {
	dst := append([]byte(`{"jsonrpc":"2.0","method":"`), method...)
	if l.req.ID == nil {
		return append(dst, `"}`...)
	}
	return append(l.tag(append(dst, `","params":{`...)), '}', '}')
}

// acknowledgement names what is honoured, and nothing else.
func (l *listener) acknowledgement() []byte {
	dst := []byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{`)
	start := len(dst)
	member := func(key string) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(dst, `"`+key+`":`...)
	}
	flag := func(key string, on bool) {
		if on {
			member(key)
			dst = append(dst, "true"...)
		}
	}
	flag("toolsListChanged", l.filter.tools)
	flag("promptsListChanged", l.filter.prompts)
	flag("resourcesListChanged", l.filter.resources)
	if l.versions != nil {
		member("resourceSubscriptions")
		dst = appendStrings(dst, l.filter.uris, func(uri string) bool { _, ok := l.versions[uri]; return ok })
	}
	if l.watch != nil {
		member("taskIds")
		dst = appendStrings(dst, l.watch.Accepted(), func(string) bool { return true })
	}
	return append(l.tag(append(dst, '}', ',')), '}', '}')
}

func appendStrings(dst []byte, list []string, keep func(string) bool) []byte {
	dst = append(dst, '[')
	first := true
	for _, v := range list {
		if !keep(v) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = translate.AppendString(dst, v)
	}
	return append(dst, ']')
}

// changes tells of the lists that differ from what they were, and of the
// resources whose content does.
func (l *listener) changes(emit func([]byte) error) error {
	snap := l.c.snapshots.of(l.c, l.req.View)
	if snap == nil {
		return nil
	}
	old := l.sums
	l.sums = snap.sums
	tell := func(wanted, changed bool, method string) error {
		if !wanted || !changed {
			return nil
		}
		return emit(l.notification(method))
	}
	if err := tell(l.filter.tools, old.tools != l.sums.tools, "notifications/tools/list_changed"); err != nil {
		return err
	}
	if err := tell(l.filter.prompts, old.prompts != l.sums.prompts, "notifications/prompts/list_changed"); err != nil {
		return err
	}
	if err := tell(l.filter.resources, old.resources != l.sums.resources, "notifications/resources/list_changed"); err != nil {
		return err
	}
	return l.updatedResources(emit)
}

func (l *listener) updatedResources(emit func([]byte) error) error {
	v, ok := l.c.o.Catalogues.(ResourceVersions)
	if !ok {
		return nil
	}
	for _, uri := range l.filter.uris {
		old, watched := l.versions[uri]
		if !watched {
			continue
		}
		if now, _ := v.ResourceVersion(l.req.View, uri); now != old {
			l.versions[uri] = now
			dst := []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":`)
			dst = append(translate.AppendString(dst, uri), ',')
			if err := emit(append(l.tag(dst), '}', '}')); err != nil {
				return err
			}
		}
	}
	return nil
}

// tasksDue emits notifications/tasks, each with the whole task.
func (l *listener) tasksDue(emit func([]byte) error) error {
	if l.watch == nil {
		return nil
	}
	for _, params := range l.watch.Take() {
		if !isObject(params) || len(params) < 2 {
			continue
		}
		dst := l.tag([]byte(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{`))
		if rest := params[1:]; string(rest) != "}" {
			dst = append(append(dst, ','), rest...)
		} else {
			dst = append(dst, '}')
		}
		if err := emit(append(dst, '}')); err != nil {
			return err
		}
	}
	return nil
}

// completion is the result that ends a listen from the server's side.
func (l *listener) completion() []byte {
	dst := append([]byte(`{"jsonrpc":"2.0","id":`), l.req.ID...)
	dst = append(dst, `,"result":{"resultType":"complete","_meta":`...)
	meta := append([]translate.MetaEntry{{Key: metaSubscription, Value: l.req.ID}}, l.c.serverInfo...)
	return append(translate.AppendMeta(dst, meta), '}', '}')
}

// listenCount bounds the open listen streams.
type listenCount struct {
	mu    sync.Mutex
	total int
	of    map[string]int
}

// take counts one in; false when a limit is met. Everybody is "local" where
// nobody is told apart, so that principal has the total for itself.
func (c *listenCount) take(principal string, l Limits) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total >= l.Listens || principal != Local && c.of[principal] >= l.ListensPerPrincipal {
		return false
	}
	c.total++
	c.of[principal]++
	return true
}

func (c *listenCount) release(principal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.of[principal]--; c.of[principal] == 0 {
		delete(c.of, principal)
	}
}

// listen serves subscriptions/listen over HTTP, on the handler's goroutine.
func (x *exchange) listen() {
	l, f := x.s.core.newListener(&x.req)
	if f.failed() {
		x.refuse(modernStatus(Answer{Code: f.err.Code, Shape: f.shape}), f)
		return
	}
	if !x.http.sse {
		x.refuse(http.StatusNotAcceptable, refuse(translate.CodeInvalidRequest, "subscriptions/listen answers with text/event-stream: add it to Accept"))
		return
	}
	if !x.s.listens.take(x.id.Principal, x.set.limits) {
		x.http.w.Header().Set("Retry-After", "60")
		x.refuse(http.StatusTooManyRequests, refuse(translate.CodeInternal, "too many open listen streams (limits.listens): close one first"))
		return
	}
	defer x.s.listens.release(x.id.Principal)
	var ctx context.Context = &x.ctx
	if !x.id.Expires.IsZero() {
		// A listen does not outlive what let it in.
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, x.id.Expires)
		defer cancel()
	}
	l.revoked = x.id.Revoked
	streamHeaders(x.http.w.Header())
	x.http.w.WriteHeader(http.StatusOK)
	l.run(ctx, x.s.drain, x.set.pace.KeepAlive, func(msg []byte) error {
		out := keepAliveComment
		if msg != nil {
			out = appendEvent(nil, msg)
		}
		return x.http.put(out)
	})
	x.observe(http.StatusOK, 0, true)
}
