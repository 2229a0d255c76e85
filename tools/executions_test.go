package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/a2a/credential"
	"a2agate/fixtures"
)

// lane is one of the eight ways to a fixture agent.
type lane struct {
	version a2a.Version
	binding a2a.Binding
	unary   bool
}

func (l lane) String() string {
	form := "stream"
	if l.unary {
		form = "unary"
	}
	return fmt.Sprintf("%s %s %s", l.version, l.binding, form)
}

func lanes() []lane {
	var all []lane
	for _, v := range []a2a.Version{a2a.V10, a2a.V03} {
		for _, b := range []a2a.Binding{a2a.JSONRPC, a2a.REST} {
			all = append(all, lane{v, b, false}, lane{v, b, true})
		}
	}
	return all
}

// path is where the fixture agent serves the lane's interface.
func (l lane) path() string {
	switch {
	case l.version == a2a.V10 && l.binding == a2a.JSONRPC:
		return fixtures.PathRPC
	case l.version == a2a.V10:
		return fixtures.PathREST
	case l.binding == a2a.JSONRPC:
		return fixtures.PathRPC03
	}
	return fixtures.PathREST03
}

// counted is a gateway before one fixture agent, over HTTP, that counts what
// the agent executes.
type counted struct {
	*gateway
	lane   lane
	agent  *fixtures.Agent
	server *httptest.Server
	// gate, where not nil, answers requests in place of the agent.
	gate atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func newCounted(t *testing.T, l lane, edit func(c *counted, cfg *a2a.AgentConfig)) *counted {
	t.Helper()
	c := &counted{lane: l}
	c.agent = fixtures.New(fixtures.Options{
		Versions: []a2a.Version{l.version}, Bindings: []a2a.Binding{l.binding}, Unary: l.unary,
	})
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gate := c.gate.Load(); gate != nil && (*gate)(w, r) {
			return
		}
		c.agent.ServeHTTP(w, r)
	}))
	cfg := a2a.AgentConfig{Alias: "demo", URL: c.server.URL, EmptyStreamFallback: true}
	if edit != nil {
		edit(c, &cfg)
	}
	agent, err := a2a.NewAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	follower := a2a.NewFollower(a2a.FollowerOptions{Alias: "demo", Upstream: agent.Upstream})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = follower.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		agent.Close()
		c.agent.Close()
		c.server.CloseClientConnections()
		c.server.Close()
	})
	<-follower.Started()
	c.gateway = over(t, nil, AgentEntry{Alias: "demo", Agent: agent, Follow: follower})
	if _, err := agent.FetchCard(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// through lets gate answer requests first.
func (c *counted) through(gate func(http.ResponseWriter, *http.Request) bool) { c.gate.Store(&gate) }

// advertise makes the card name one interface, as of version, at this path.
func (c *counted) advertise(path string, version a2a.Version) {
	card := map[string]any{
		"name": "Demo agent", "description": "x", "version": "1", "skills": []any{},
		"capabilities": map[string]any{"streaming": !c.lane.unary},
		"supportedInterfaces": []any{map[string]any{
			"url": c.server.URL + path, "protocolBinding": c.lane.binding, "protocolVersion": version,
		}},
	}
	raw, _ := json.Marshal(card) // plain values
	c.agent.SetCard(raw)
}

// rewrite sends a request on to the agent under another path.
func (c *counted) rewrite(w http.ResponseWriter, r *http.Request, path string) bool {
	to := r.Clone(r.Context())
	to.URL.Path, to.URL.RawPath = path, ""
	c.agent.ServeHTTP(w, to)
	return true
}

// ran is how often a message is to be executed, and whether its caller gets an
// answer that is no error.
type ran struct {
	times int
	well  bool
}

// sendFault is one way in which a send goes wrong.
type sendFault struct {
	name string
	// text is the message; "task abc" where it is empty.
	text string
	args string
	// config edits the agent before it is looked for, prepare comes behind it.
	config         func(c *counted, cfg *a2a.AgentConfig)
	prepare        func(t *testing.T, c *counted)
	streamed, sent ran
	// restIsWell says that HTTP+JSON has no such fault.
	restIsWell bool
}

func same(times int, well bool) (streamed, sent ran) { return ran{times, well}, ran{times, well} }

// TestNoMessageIsExecutedTwice: through tools, follower, agent and client, over
// HTTP, on both versions and bindings, streamed and not, no fault makes the
// gateway run a message twice (design section 6; reference 3.6). The only
// exception is the documented one, an empty stream, and it can be switched off.
func TestNoMessageIsExecutedTwice(t *testing.T) {
	for _, f := range executionFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup // most of the time is waiting
			for _, l := range lanes() {
				all.Go(func() { t.Run(l.String(), func(t *testing.T) { f.run(t, l) }) })
			}
			all.Wait()
		})
	}
}

func (f sendFault) run(t *testing.T, l lane) {
	c := newCounted(t, l, f.config)
	if f.prepare != nil {
		f.prepare(t, c)
	}
	text := f.text
	if text == "" {
		text = "task abc"
	}
	got := c.send(fmt.Sprintf(`{"text":%q%s}`, text, f.args))
	want := f.streamed
	if l.unary {
		want = f.sent
	}
	all := 0
	for id, n := range c.agent.AllExecutions() {
		all += n
		if n > 1 && want.times < 2 {
			t.Errorf("the message %s was executed %d times", id, n)
		}
	}
	if n := c.agent.ExecutionsOf(text); n != want.times || all != want.times {
		t.Errorf("executed %d times by its text, %d messages in all, want %d", n, all, want.times)
	}
	if want.times > 1 && len(c.agent.AllExecutions()) != 1 {
		t.Errorf("the fallback has another messageId: %v", c.agent.AllExecutions())
	}
	if got.IsError == (want.well || f.restIsWell && l.binding == a2a.REST) {
		t.Errorf("isError is %v: %s", got.IsError, got.text)
	}
}

// outage fails the next send of either form.
func outage(o fixtures.Outage) func(*testing.T, *counted) {
	return func(_ *testing.T, c *counted) {
		for _, op := range []string{"SendMessage", "SendStreamingMessage"} {
			next := o
			next.Op = op
			c.agent.FailNext(1, next)
		}
	}
}

func executionFaults() []sendFault {
	var list []sendFault
	add := func(f sendFault) { list = append(list, f) }
	both := func(name, text string, times int, well bool, prepare func(*testing.T, *counted)) {
		f := sendFault{name: name, text: text, prepare: prepare}
		f.streamed, f.sent = same(times, well)
		add(f)
	}
	// The fixture agent's own faults.
	both("failbefore", "failbefore", 0, false, nil)
	both("failafter", "failafter x", 1, false, nil)
	both("badjson", "badjson x", 1, false, nil)
	both("cutjson", "cutjson x", 1, false, nil)
	add(sendFault{name: "wrongid", text: "wrongid", streamed: ran{1, false}, sent: ran{1, false}, restIsWell: true})
	both("nullresult", "nullresult", 1, false, nil)
	both("created", "created x", 1, true, nil)
	both("html", "html", 0, false, nil)
	both("retryafter", "retryafter 1", 0, false, nil)
	both("errorevent", "errorevent -32603", 1, false, nil)
	for _, code := range []int{-32001, -32002, -32004, -32005, -32006, -32602, -32700, -32050} {
		both(fmt.Sprintf("errorevent %d", code), fmt.Sprintf("errorevent %d", code), 1, false, nil)
		both(fmt.Sprintf("error %d", code), fmt.Sprintf("error %d", code), 1, false, nil)
	}
	both("errormid", "errormid", 1, true, nil)
	both("cutstream", "cutstream 0.2", 1, true, nil)
	both("shortstream", "shortstream 0.2", 1, true, nil)
	both("halfevent", "halfevent 0.2", 1, true, nil)
	both("plainjson", "plainjson x", 1, true, nil)
	both("ndjson", "ndjson x", 1, true, nil)
	both("holdopen", "holdopen x", 1, true, nil)
	both("dupes", "dupes x", 1, true, nil)
	both("late", "late x", 1, true, nil)
	both("vanish", "vanish", 1, false, nil)
	for _, status := range []int{400, 403, 404, 405, 409, 429, 500, 501, 502, 503, 504} {
		both(fmt.Sprintf("httperror %d", status), fmt.Sprintf("httperror %d", status), 0, false, nil)
		switch status {
		case 404, 405, 501: // nobody is there who could have done it
		default:
			both(fmt.Sprintf("%d behind the deed", status), "", 1, false, outage(fixtures.Outage{Status: status, After: true}))
		}
	}
	both("reset before", "", 0, false, outage(fixtures.Outage{}))
	both("reset behind the deed", "", 1, false, outage(fixtures.Outage{After: true}))
	add(sendFault{name: "emptystream", text: "emptystream", streamed: ran{2, true}, sent: ran{1, true}})
	add(sendFault{name: "emptystream, switched off", text: "emptystream", streamed: ran{1, false}, sent: ran{1, true},
		config: func(_ *counted, cfg *a2a.AgentConfig) { cfg.EmptyStreamFallback = false }})
	// Time.
	hang := sendFault{name: "silence behind the deed", args: `,"timeoutSeconds":1`, prepare: outage(fixtures.Outage{Hang: true, After: true})}
	hang.streamed, hang.sent = same(1, true) // an answer that says so, and a handle
	add(hang)
	hang = sendFault{name: "silence before", args: `,"timeoutSeconds":1`, prepare: outage(fixtures.Outage{Hang: true})}
	hang.streamed, hang.sent = same(0, true)
	add(hang)
	slow := sendFault{name: "budget", text: "slow 30", args: `,"timeoutSeconds":1`}
	slow.streamed, slow.sent = same(1, true)
	add(slow)
	idle := sendFault{name: "idle stream", text: "silent 1 x", config: func(_ *counted, cfg *a2a.AgentConfig) { cfg.Timeouts.StreamIdle = 200 * time.Millisecond }}
	idle.streamed, idle.sent = ran{1, false}, ran{1, true}
	add(idle)
	// Addresses.
	late := sendFault{name: "refused, then up", prepare: func(t *testing.T, c *counted) { c.restartLater(t, 150*time.Millisecond) },
		config: func(c *counted, _ *a2a.AgentConfig) {
			c.through(func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Connection", "close") // or the send might still go out on it
				return false
			})
		}}
	late.streamed, late.sent = same(1, true)
	add(late)
	both("refused for good", "", 0, false, func(_ *testing.T, c *counted) { c.server.CloseClientConnections(); c.server.Close() })
	return append(list, correctedFaults()...)
}

// restartLater closes the listener and opens it again at the same address.
func (c *counted) restartLater(t *testing.T, after time.Duration) {
	t.Helper()
	address, handler := c.server.Listener.Addr().String(), c.server.Config.Handler
	c.server.CloseClientConnections()
	c.server.Close()
	time.AfterFunc(after, func() {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Errorf("listening again: %v", err)
			return
		}
		again := &httptest.Server{Listener: ln, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
		again.Start()
		t.Cleanup(func() { again.CloseClientConnections(); again.Close() })
	})
}

// correctedFaults are refusals that the client puts right by itself, each
// behind a gate that the card leads to.
func correctedFaults() []sendFault {
	other := map[a2a.Version]a2a.Version{a2a.V10: a2a.V03, a2a.V03: a2a.V10}
	spoken := func(r *http.Request) a2a.Version {
		if r.Header.Get("A2A-Version") == "1.0" {
			return a2a.V10
		}
		return a2a.V03
	}
	var list []sendFault
	gate := func(name string, path string, wrongVersion bool, answer func(c *counted, w http.ResponseWriter, r *http.Request, rest string) bool) {
		f := sendFault{name: name, config: func(c *counted, _ *a2a.AgentConfig) {
			version := c.lane.version
			if wrongVersion {
				version = other[version]
			}
			c.advertise(path, version)
			c.through(func(w http.ResponseWriter, r *http.Request) bool {
				rest, ours := strings.CutPrefix(r.URL.Path, "/gate")
				return ours && answer(c, w, r, rest)
			})
		}}
		f.streamed, f.sent = same(1, true)
		list = append(list, f)
	}
	refusals := map[string]func(w http.ResponseWriter, l lane){
		"-32601": func(w http.ResponseWriter, l lane) { refuse(w, l, 404, -32601, "Method not found", "UNIMPLEMENTED") },
		"-32009": func(w http.ResponseWriter, l lane) {
			refuse(w, l, 400, a2a.CodeVersionNotSupported, "version is not supported", "FAILED_PRECONDITION")
		},
		"400": func(w http.ResponseWriter, _ lane) { http.Error(w, "unsupported A2A protocol version", 400) },
	}
	for name, refuse := range refusals {
		gate("version refused by "+name, "/gate", true, func(c *counted, w http.ResponseWriter, r *http.Request, rest string) bool {
			if spoken(r) != c.lane.version {
				refuse(w, c.lane)
				return true
			}
			return c.rewrite(w, r, c.lane.path()+rest)
		})
	}
	for _, status := range []int{404, 405} {
		gate(fmt.Sprintf("a path that is %d but for its slash or /v1", status), "/gate", false, func(c *counted, w http.ResponseWriter, r *http.Request, rest string) bool {
			good := rest == "/"
			if c.lane.binding == a2a.REST {
				good = strings.HasPrefix(rest, "/v1/") == (c.lane.version == a2a.V10)
				rest = strings.TrimPrefix(rest, "/v1")
				if c.lane.version == a2a.V03 {
					rest = "/v1" + rest
				}
			} else {
				rest = ""
			}
			if !good {
				w.WriteHeader(status)
				return true
			}
			return c.rewrite(w, r, c.lane.path()+rest)
		})
	}
	for _, status := range []int{307, 308} {
		gate(fmt.Sprintf("redirect %d at home", status), "/gate", false, func(c *counted, w http.ResponseWriter, r *http.Request, rest string) bool {
			w.Header().Set("Location", c.server.URL+c.lane.path()+rest)
			w.WriteHeader(status)
			return true
		})
	}
	login := sendFault{name: "401 until the token is renewed", config: func(c *counted, cfg *a2a.AgentConfig) {
		var tokens atomic.Int32
		c.through(func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case r.URL.Path == "/token":
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"access_token":"T%d","token_type":"Bearer","expires_in":3600}`, tokens.Add(1))
				return true
			case r.Method == http.MethodPost && r.Header.Get("Authorization") != "Bearer T2":
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			return false
		})
		auth, err := credential.FromConfig(credential.Spec{Type: "oauth2", ClientID: "id", ClientSecret: credential.NewSecret("cs"), TokenURL: c.server.URL + "/token"})
		if err != nil {
			panic(err) // a fault of the test
		}
		cfg.Authorizer = auth
	}}
	login.streamed, login.sent = same(1, true)
	return append(list, login)
}

// refuse answers with an A2A error on either binding.
func refuse(w http.ResponseWriter, l lane, status, code int, message, grpc string) {
	w.Header().Set("Content-Type", "application/json")
	if l.binding == a2a.JSONRPC {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`, code, message)
		return
	}
	reason := ""
	if code == a2a.CodeVersionNotSupported {
		reason = "VERSION_NOT_SUPPORTED"
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%d,"status":%q,"message":%q,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":%q}]}}`, status, grpc, message, reason)
}
