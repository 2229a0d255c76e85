package main

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"a2agate/config"
	"a2agate/handles"
	"a2agate/internal/clientfile"
	"a2agate/internal/web"
	"a2agate/server"
	"a2agate/tools"
	"a2agate/translate"
)

// The most that the status page takes from a card and shows of tasks.
const (
	shownSkills = 500
	shownChars  = 2000
	shownTasks  = 20
)

// statusPage fits the gateway to the status page. It is the tools' Observer
// for the list of recent calls.
type statusPage struct {
	g       *gateway
	calls   *web.Calls
	tasks   openTasks
	started time.Time
	// clients makes the blocks to copy for an endpoint.
	clients func(endpoint string) []web.Client
	// every is how often a page asks for news, 0 for the usual.
	every time.Duration
}

func newStatusPage(g *gateway) *statusPage {
	return &statusPage{
		g: g, calls: web.NewCalls(), started: time.Now(), tasks: openTasks{table: g.handles},
		clients: func(endpoint string) []web.Client { return clientBlocks(endpoint, g.cfg) },
	}
}

// add puts the page on the paths of the edge.
func (p *statusPage) add(o *server.Options) error {
	pages, err := web.New(web.Options{Version: version, Status: p.status, Every: p.every})
	if err != nil {
		return err
	}
	if o.Routes == nil {
		o.Routes = map[string]http.Handler{}
	}
	o.Routes["/api/status"] = pages.API()
	o.Page = &server.Page{Page: pages.Page(), SignIn: pages.SignIn(), Assets: pages.Assets()}
	return nil
}

// Observe notes a call for the list of recent ones.
func (p *statusPage) Observe(_ context.Context, r tools.CallRecord) {
	p.calls.Add(r.Principal, web.Call{
		Tool: r.Tool, Agent: r.Agent, Outcome: r.Outcome,
		At: time.Now().UTC().Truncate(time.Millisecond), Millis: r.Duration.Milliseconds(),
	})
}

// status is what the sender of a request may see.
func (p *statusPage) status(r *http.Request) web.Status {
	id, _ := server.IdentityFrom(r.Context())
	scope := p.g.tools.Scope(id.View)
	sees := func(alias string) bool { return scope == nil || scope[alias] }
	s := web.Status{Gateway: version, Endpoint: p.endpoint(r), Started: p.started.UTC().Truncate(time.Second)}
	if p.g.cfg.Auth.Enabled() {
		s.Principal = id.Principal
	}
	if scope == nil { // the file is about agents that others must not know of
		s.Notices = p.notices()
	}
	problems := map[string][]string{}
	for _, problem := range p.g.tools.Problems() {
		problems[problem.Agent] = append(problems[problem.Agent], problem.Text)
	}
	for _, m := range p.g.fleet.list() {
		if sees(m.alias()) {
			a := shownOf(m)
			a.Notes = append(a.Notes, problems[a.Alias]...)
			s.Agents = append(s.Agents, a)
		}
	}
	if c := p.g.tools.Catalogue(id.View); c != nil {
		for _, t := range c.Tools {
			s.Tools = append(s.Tools, web.Tool{
				Name: t.Name, Title: t.Title, Description: t.Description,
				InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Agent: t.Agent, Skill: t.Skill,
			})
		}
	}
	for _, c := range p.calls.Of(id.Principal) {
		if c.Agent == "" || sees(c.Agent) {
			s.Calls = append(s.Calls, c)
		}
	}
	s.Tasks = p.tasks.of(r.Context(), id.Principal, sees)
	s.Clients = p.clients(s.Endpoint)
	return s
}

// endpoint is where the sender of a request reaches MCP: the configured
// address, and for a gateway that listens everywhere the host that was asked
// for, which the guard has let in.
func (p *statusPage) endpoint(r *http.Request) string {
	addr := p.g.address
	if tcp, ok := addr.(*net.TCPAddr); *p.g.public.Load() == "" && ok && tcp.IP.IsUnspecified() {
		return urlScheme(p.g.cfg.TLS) + "://" + r.Host + "/mcp"
	}
	if addr == nil { // the handler alone, without a listener
		return "http://" + r.Host + "/mcp"
	}
	return p.g.endpoint(addr)
}

// notices say how the configuration stands, where there is something to say.
func (p *statusPage) notices() []string {
	r := p.g.reloads.Load()
	if r == nil {
		return nil
	}
	var notices []string
	status := r.Status()
	if status.Problem != "" {
		notices = append(notices, "The configuration file is not in force, the last good one is: "+status.Problem)
	}
	if len(status.Restart) > 0 {
		notices = append(notices, "These settings have changed and take effect after a restart: "+strings.Join(status.Restart, ", "))
	}
	return notices
}

// shownOf is an agent and what its card says, made harmless.
func shownOf(m *member) web.Agent {
	st := m.shown.Status()
	a := web.Agent{
		Alias: m.alias(), State: string(st.State), Reason: shownName(st.Reason), Since: st.Since.UTC().Truncate(time.Second),
		Version: string(st.Version), Binding: string(st.Binding), URL: st.URL, CardURL: st.CardURL,
	}
	for _, n := range st.Notes {
		a.Notes = append(a.Notes, shownName(n))
	}
	card := m.shown.Card()
	if card == nil {
		return a
	}
	a.Name, a.Release, a.Description = shownName(card.Name), shownName(card.Version), shownText(card.Description)
	a.Documentation = shownName(card.DocumentationURL)
	for _, sk := range card.Skills[:min(len(card.Skills), shownSkills)] {
		shown := web.Skill{ID: shownName(sk.ID), Name: shownName(sk.Name), Description: shownText(sk.Description)}
		for _, tag := range sk.Tags {
			shown.Tags = append(shown.Tags, shownName(tag))
		}
		a.Skills = append(a.Skills, shown)
	}
	return a
}

func shownName(s string) string { return translate.CutRunes(translate.CleanName(s), shownChars) }
func shownText(s string) string { return translate.CutRunes(translate.CleanDescription(s), shownChars) }

// clientBlocks is what to paste into each client, the same as install prints.
func clientBlocks(endpoint string, cfg *config.Config) []web.Client {
	srv := clientServer(endpoint, cfg)
	// Whose browser it is, is not known: the folders are those that most have.
	places := clientfile.Places{OS: runtime.GOOS, Home: "~", AppData: "%APPDATA%"}
	var list []web.Client
	for _, c := range clientfile.Clients() {
		shown := web.Client{ID: c.ID, Title: c.Title}
		entry, err := c.Entry(srv)
		if err != nil {
			shown.Note = err.Error() + "."
			list = append(list, shown)
			continue
		}
		if line := c.Command(srv, clientfile.User); line != "" {
			shown.Blocks = append(shown.Blocks, web.Block{Where: "In a terminal:", Text: line})
		}
		if path, err := c.File(clientfile.User, places); err == nil {
			shown.Blocks = append(shown.Blocks, web.Block{
				Where: "In " + path + ", beside what is there:", Text: string(clientfile.Block(c.Format, entry)),
			})
		}
		shown.Note = "Then: " + c.After + "."
		list = append(list, shown)
	}
	return list
}

// observers are told of each call, all of them.
type observers []tools.Observer

func (o observers) Observe(ctx context.Context, r tools.CallRecord) {
	for _, each := range o {
		each.Observe(ctx, r)
	}
}

// Times and bounds of the walk over open tasks: the store may be another
// machine's, and several pages may be open.
const (
	tasksWalk   = 2 * time.Second // for one walk
	tasksPause  = 2 * time.Second // between two walks at least
	tasksRest   = 20              // and that many times as long as the last one took
	tasksWalked = 50_000          // entries seen in one walk
)

// openTasks finds the tasks that work or wait, of all principals at once.
type openTasks struct {
	table *handles.Table

	mu sync.Mutex // held during a walk; guards what follows
	// next is when the last walk is too old to be shown.
	next time.Time
	all  map[string][]web.Task // by principal, the newest first
	more bool
}

// of returns the open tasks of a principal with the agents that it sees.
func (o *openTasks) of(ctx context.Context, principal string, sees func(alias string) bool) web.Tasks {
	o.mu.Lock()
	if time.Now().After(o.next) {
		o.walk(ctx)
	}
	all, more := o.all[principal], o.more
	o.mu.Unlock()
	tasks := web.Tasks{More: more}
	for _, t := range all {
		if !sees(t.Agent) {
			continue
		}
		tasks.Open++
		if len(tasks.List) < shownTasks {
			tasks.List = append(tasks.List, t)
		}
	}
	return tasks
}

// walk looks at every task's handle. What a slow or broken store did not give
// is a number of tasks that is "at least". mu is held.
func (o *openTasks) walk(ctx context.Context) {
	// The result is for others too: it does not end with this request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tasksWalk)
	defer cancel()
	began, seen := time.Now(), 0
	o.all = map[string][]web.Task{}
	err := o.table.Each(ctx, handles.KindTask, func(e handles.Entry) bool {
		if e.Running {
			o.all[e.Principal] = append(o.all[e.Principal], web.Task{
				Handle: web.ShortHandle(e.Handle), Agent: e.Agent, Since: e.Created.UTC().Truncate(time.Second),
			})
		}
		seen++
		return seen < tasksWalked
	})
	o.more = err != nil || seen >= tasksWalked
	for _, list := range o.all {
		slices.SortFunc(list, func(a, b web.Task) int {
			return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Handle, b.Handle))
		})
	}
	o.next = time.Now().Add(max(tasksPause, tasksRest*time.Since(began)))
}
