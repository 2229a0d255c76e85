package tools

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.uber.org/goleak"

	"a2agate/a2a"
	"a2agate/fixtures"
	"a2agate/handles"
	"a2agate/internal/pipenet"
	"a2agate/translate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agentUnderTest is a scripted agent behind the real client and follower.
type agentUnderTest struct {
	*fixtures.Agent
	follower *a2a.Follower
	client   *a2a.Client

	mu      sync.Mutex // guards what follows
	card    *a2a.Card
	cardErr error
	status  a2a.AgentStatus
}

func (a *agentUnderTest) Card() *a2a.Card {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.card
}

func (a *agentUnderTest) FetchCard(context.Context) (*a2a.Card, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.card, a.cardErr
}

func (a *agentUnderTest) Status() a2a.AgentStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

func (a *agentUnderTest) Client(context.Context) (*a2a.Client, error) { return a.client, nil }

func (a *agentUnderTest) setCard(card *a2a.Card, err error, status a2a.AgentStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.card, a.cardErr, a.status = card, err, status
}

// gateway is a Service with its agents.
type gateway struct {
	t      *testing.T
	svc    *Service
	table  *handles.Table
	agents map[string]*agentUnderTest
	opts   Options
	tasks  *taskSink
}

// inBubble runs f with a fake clock.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// serveAgent starts an agent for the time of the test.
func serveAgent(t *testing.T, alias string, opt fixtures.Options) *agentUnderTest {
	t.Helper()
	if opt.IDPrefix == "" {
		opt.IDPrefix = "P"
	}
	a := &agentUnderTest{Agent: fixtures.New(opt)}
	network := pipenet.New()
	server := &http.Server{Handler: a.Agent}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(network)
	}()
	transport := &http.Transport{DialContext: network.Dial}
	base := "http://" + alias + ".test"
	card, err := a2a.ParseCard(a.Agent.Card(base, opt.Skills))
	if err != nil {
		t.Fatalf("card of %s: %v", alias, err)
	}
	card.URL = base + fixtures.PathCard
	version, binding, path := a2a.V10, a2a.JSONRPC, fixtures.PathRPC
	if len(opt.Versions) > 0 && opt.Versions[0] == a2a.V03 {
		version, path = a2a.V03, fixtures.PathRPC03
	}
	iface := a2a.Interface{URL: base + path, Binding: binding, Version: version}
	a.client, err = a2a.NewClient(a2a.ClientOptions{
		Alias: alias, Interfaces: []a2a.Interface{iface}, HTTP: &http.Client{Transport: transport},
		Streaming: !opt.Unary, EmptyStreamFallback: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	a.card = card
	a.status = a2a.AgentStatus{State: a2a.AgentReady, Since: time.Now(), CardURL: card.URL, Version: version, Binding: binding, URL: iface.URL}
	a.follower = a2a.NewFollower(a2a.FollowerOptions{
		Alias:    alias,
		Upstream: func(context.Context) (a2a.Upstream, error) { return a.client, nil },
	})
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = a.follower.Run(ctx)
	}()
	time.Sleep(time.Millisecond) // the follower has begun; the clock is fake
	t.Cleanup(func() {
		stop()
		<-ran
		a.Agent.Close()
		transport.CloseIdleConnections()
		_ = server.Close()
		network.Close()
		<-served
	})
	return a
}

// entry is an agent as the Service wants it.
func (a *agentUnderTest) entry(alias string) AgentEntry {
	return AgentEntry{Alias: alias, Agent: a, Follow: a.follower}
}

func newTable() (*handles.Table, error) { return handles.New(handles.Options{TTL: 15 * time.Minute}) }

// newGateway makes a Service over agents, by alias; edit may change the
// options.
func newGateway(t *testing.T, agents map[string]fixtures.Options, edit func(*Options)) *gateway {
	t.Helper()
	table, err := newTable()
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, table: table, agents: map[string]*agentUnderTest{}}
	o := Options{Handles: table}
	for alias, opt := range agents {
		a := serveAgent(t, alias, opt)
		g.agents[alias] = a
		o.Agents = append(o.Agents, a.entry(alias))
	}
	g.tasks = &taskSink{g: g}
	if edit != nil {
		edit(&o)
	}
	g.opts = o
	if g.svc, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.svc.Close()
		g.tasks.close()
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// oneAgent is a gateway with the agent "demo".
func oneAgent(t *testing.T, edit func(*Options)) *gateway {
	t.Helper()
	return newGateway(t, map[string]fixtures.Options{"demo": {}}, edit)
}

func (g *gateway) demo() *agentUnderTest { return g.agents["demo"] }

// taskSink keeps what would be MCP tasks.
type taskSink struct {
	g       *gateway
	mu      sync.Mutex
	created []createdTask
	fail    error
}

type createdTask struct {
	entry handles.Entry
	watch *a2a.Watch
	tool  string
}

func (s *taskSink) Create(_ context.Context, entry handles.Entry, watch *a2a.Watch, tool string) (translate.TaskInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		watch.Close()
		return translate.TaskInfo{}, s.fail
	}
	s.created = append(s.created, createdTask{entry, watch, tool})
	return translate.TaskInfo{ID: entry.Handle, Status: translate.TaskWorking}, nil
}

func (s *taskSink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.created {
		c.watch.Close()
	}
}

// sink records progress and answers questions.
type sink struct {
	progress []string
	agent    string
	// answer, when set, answers in mid-call.
	answer func(asks []translate.Ask) (map[string]translate.Answer, error)
	asked  [][]translate.Ask
}

func (s *sink) Progress(line string) { s.progress = append(s.progress, line) }
func (s *sink) Agent(name string)    { s.agent = name }

func (s *sink) Ask(_ context.Context, asks []translate.Ask) (map[string]translate.Answer, bool, error) {
	if s.answer == nil {
		return nil, false, nil
	}
	s.asked = append(s.asked, asks)
	got, err := s.answer(asks)
	return got, true, err
}

// call is one tools/call; edit may be nil.
func (g *gateway) call(tool, arguments string, edit func(*Call)) translate.Outcome {
	g.t.Helper()
	return g.callWith(context.Background(), &sink{}, tool, arguments, edit)
}

func (g *gateway) callWith(ctx context.Context, s Sink, tool, arguments string, edit func(*Call)) translate.Outcome {
	g.t.Helper()
	c := Call{Principal: "local", Tool: tool}
	if arguments != "" {
		c.Arguments = json.RawMessage(arguments)
	}
	if edit != nil {
		edit(&c)
	}
	return g.svc.Call(ctx, c, s)
}

// send is a2a_send_message with these arguments, which must end in a Result.
func (g *gateway) send(arguments string) answerSeen {
	g.t.Helper()
	return g.seen(g.call(ToolSend, arguments, nil))
}

// answerSeen is a Result as a client sees it.
type answerSeen struct {
	translate.Result
	text     string // all text blocks
	first    string // the first block, when it is text
	envelope map[string]any
}

func (g *gateway) seen(out translate.Outcome) answerSeen {
	g.t.Helper()
	if out.Result == nil {
		g.t.Fatalf("no result: %+v %v", out, out.Err)
	}
	return see(g.t, *out.Result)
}

func see(t testing.TB, r translate.Result) answerSeen {
	t.Helper()
	a := answerSeen{Result: r}
	if len(r.Content) == 0 {
		t.Fatal("a result without content")
	}
	for i, c := range r.Content {
		if tc, ok := c.(mcp.TextContent); ok {
			a.text += tc.Text + "\n"
			if i == 0 {
				a.first = tc.Text
			}
		}
	}
	raw := r.Structured
	if raw == nil {
		raw = envelopeOf(r)
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &a.envelope); err != nil {
			t.Fatalf("structured content %s: %v", raw, err)
		}
	}
	return a
}

// str is a member of the envelope.
func (a answerSeen) str(name string) string {
	s, _ := a.envelope[name].(string)
	return s
}

func (g *gateway) noComplaints() {
	g.t.Helper()
	for alias, a := range g.agents {
		if c := a.Complaints(); len(c) > 0 {
			g.t.Errorf("agent %s complains: %q", alias, c)
		}
	}
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("got %q\nwant it to contain %q", got, want)
	}
}

func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
