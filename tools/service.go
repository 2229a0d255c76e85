package tools

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"a2agate/a2a"
	"a2agate/translate"
)

// Service answers calls. Its methods may be called concurrently. It has no
// goroutine of its own.
type Service struct {
	// generic are the tools that stand for no one agent, by name; assigned
	// once.
	generic map[string]*tool
	// agentCheck checks the arguments of agent tools; assigned once.
	agentCheck *checker
	// state is replaced as a whole; a call finishes on the one it began with.
	state atomic.Pointer[state]
	late  lateAnswers

	// mu guards building the next state and the subscribers.
	mu   sync.Mutex
	subs map[int]chan struct{}
	next int
}

// state is one immutable picture of what is offered.
type state struct {
	opts Options
	// agents are sorted by alias.
	agents  []*agent
	byAlias map[string]*agent
	// tools are all tools by name, whatever a view shows of them.
	tools      map[string]*tool
	agentCheck *checker
	// names are the tool names of agents and skills, shown or not.
	names map[translate.Key]string

	// viewMu guards views, the catalogues made so far.
	viewMu sync.Mutex
	views  map[View]*Catalogue
}

// agent is an AgentEntry with what its card says, as of one state.
type agent struct {
	AgentEntry
	expose []Exposure
	card   *a2a.Card
	info   agentInfo
	// offer are its tools and prompts before names are given out.
	offer offer
}

// handler answers one tool's calls.
type handler func(*invocation, context.Context) translate.Outcome

// tool is a tool as it is called.
type tool struct {
	// shown is the tool in lists; of the generic ones, which differ by view,
	// only the name.
	shown  Tool
	handle handler
	// schema checks arguments, known names them in messages; both empty for a
	// tool that takes anything.
	schema *checker
	known  []string
	// opaque are arguments that may be any JSON value, null too; allNulls
	// keeps null for all.
	opaque   []string
	allNulls bool
	// agent and skill are set for agent tools and skill tools.
	agent *agent
	skill *skillInfo
	// output is the compiled output schema, nil where none is declared.
	output *checker
}

// New returns a Service for the agents of o. Agents may be dead or unknown as
// yet. It fails only on options that cannot work.
func New(o Options) (*Service, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	generic, err := genericHandlers()
	if err != nil {
		return nil, err
	}
	check, err := compileOwn(agentSchema(1))
	if err != nil {
		return nil, fmt.Errorf("tools: schema of agent tools: %w", err)
	}
	s := &Service{generic: generic, agentCheck: check, subs: map[int]chan struct{}{}}
	s.state.Store(s.build(o, nil))
	return s, nil
}

// genericHandlers makes the tools that stand for no one agent. Calls are
// checked against schemas without the enum of aliases.
func genericHandlers() (map[string]*tool, error) {
	out := map[string]*tool{}
	for _, g := range []struct {
		name     string
		props    []property
		required []string
		opaque   []string
		handle   handler
	}{
		{ToolDiscover, discoverProperties(nil, false), nil, nil, (*invocation).discover},
		{ToolSend, sendProperties(nil, false), nil, []string{"data"}, (*invocation).send},
		{ToolGetTask, getTaskProperties(nil, false), []string{"taskHandle"}, nil, (*invocation).getTask},
		{ToolCancel, cancelProperties(nil, false), []string{"taskHandle"}, nil, (*invocation).cancelTask},
		{ToolQuery, queryProperties(nil, false), []string{"method"}, nil, (*invocation).query},
	} {
		schema, err := compileOwn(objectSchema(g.props, g.required...))
		if err != nil {
			return nil, fmt.Errorf("tools: schema of %s: %w", g.name, err)
		}
		out[g.name] = &tool{
			shown: Tool{Name: g.name}, handle: g.handle,
			schema: schema, known: propertyNames(g.props), opaque: g.opaque,
		}
	}
	return out, nil
}

// SetAgents replaces the agents. Calls in flight finish on what they started
// with; subscribers are told what changed for them.
func (s *Service) SetAgents(entries []AgentEntry) error {
	return s.change(func(o *Options) { o.Agents = entries })
}

// Reconfigure replaces the options that say what is offered (Agents, Expose,
// ToolPrefix, ParamHeaders, Structured, Profiles, Wait, Limits); Handles,
// Tasks and Observer stay as they were.
func (s *Service) Reconfigure(o Options) error {
	return s.change(func(now *Options) {
		o.Handles, o.Tasks, o.Observer = now.Handles, now.Tasks, now.Observer
		*now = o
	})
}

// Refresh looks at cards and states anew. It is to be called when an agent's
// card or state has changed, may be called at any time, costs little when
// nothing did, and does not touch an agent.
func (s *Service) Refresh() {
	// The look belongs under the lock: a card that comes while the next state
	// is being built is in neither state otherwise.
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.state.Load().stale() {
		return
	}
	// The options are those that were valid before.
	_ = s.changeLocked(func(*Options) {})
}

// stale reports whether any agent has another card than when the state was
// made.
func (st *state) stale() bool {
	for _, a := range st.agents {
		if a.Agent.Card() != a.card {
			return true
		}
	}
	return false
}

// change builds the next state and tells the subscribers.
func (s *Service) change(edit func(*Options)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeLocked(edit)
}

// changeLocked is change for one who holds mu.
func (s *Service) changeLocked(edit func(*Options)) error {
	old := s.state.Load()
	o := old.opts
	edit(&o)
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	next := s.build(o, old)
	changed := next.adopt(old)
	s.state.Store(next)
	if changed {
		s.tell()
	}
	return nil
}

// build makes the state for o, reusing what old has of unchanged agents.
func (s *Service) build(o Options, old *state) *state {
	st := &state{
		opts:    o,
		byAlias: make(map[string]*agent, len(o.Agents)),
		tools:   make(map[string]*tool, len(s.generic)+len(o.Agents)),
		views:   map[View]*Catalogue{},

		agentCheck: s.agentCheck,
	}
	for _, e := range o.Agents {
		var before *agent
		if old != nil {
			before = old.byAlias[e.Alias]
		}
		a := newAgent(e, o, before)
		st.agents = append(st.agents, a)
		st.byAlias[e.Alias] = a
	}
	sort.Slice(st.agents, func(i, j int) bool { return st.agents[i].Alias < st.agents[j].Alias })
	for name, t := range s.generic {
		st.tools[name] = t
	}
	st.nameTools()
	return st
}

// newAgent looks at an agent's card and state once, and derives from them
// what is offered; before is the agent of the same alias in the last state.
func newAgent(e AgentEntry, o Options, before *agent) *agent {
	expose := e.Expose
	if len(expose) == 0 {
		expose = o.Expose
	}
	a := &agent{AgentEntry: e, expose: expose, card: e.Agent.Card()}
	if before != nil && before.sameOffer(a) {
		a.info, a.offer = before.info, before.offer
		return a
	}
	a.info = infoFromCard(a.card, e)
	a.offer = newOffer(a)
	return a
}

// sees reports whether the call may know of an alias.
func (c *Call) sees(alias string) bool { return c.Agents == nil || c.Agents[alias] }

// visible are the agents that a call may know of.
func (st *state) visible(c *Call) []*agent {
	if c.Agents == nil {
		return st.agents
	}
	var out []*agent
	for _, a := range st.agents {
		if c.Agents[a.Alias] {
			out = append(out, a)
		}
	}
	return out
}

func (a *agent) exposes(x Exposure) bool { return slices.Contains(a.expose, x) }

// title is the agent's name for sentences.
func (a *agent) title() string {
	if a.info.name != "" {
		return a.info.name
	}
	return a.Alias
}

func aliasesOf(agents []*agent) []string {
	out := make([]string, len(agents))
	for i, a := range agents {
		out[i] = a.Alias
	}
	return out
}

// Changed returns a channel that receives after something that is offered has
// changed for anybody, several changes being one, and a function that ends the
// subscription. What really changed in a view is seen by comparing its
// catalogues: the pointer stays the same while nothing did.
func (s *Service) Changed() (wake <-chan struct{}, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan struct{}, 1)
	id := s.next
	s.next++
	s.subs[id] = ch
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subs, id)
	}
}

// tell wakes the subscribers; mu is held.
func (s *Service) tell() {
	for _, ch := range s.subs {
		select {
		case ch <- struct{}{}:
		default: // a change is waiting to be looked at already
		}
	}
}

// Scope returns the aliases that calls of this view may reach, nil for all.
func (s *Service) Scope(v View) map[string]bool {
	return s.state.Load().scope(v)
}

func (st *state) scope(v View) map[string]bool {
	if v == (View{}) {
		return nil
	}
	var own map[string]bool
	if v.Agents != "" {
		own = map[string]bool{}
		for alias := range strings.SplitSeq(v.Agents, ",") {
			own[alias] = true
		}
	}
	if v.Profile == "" {
		return own
	}
	both := map[string]bool{}
	for _, alias := range st.opts.Profiles[v.Profile] {
		if own == nil || own[alias] {
			both[alias] = true
		}
	}
	return both
}

// Problem is something of an agent's card that is not offered as it stands, or
// that some clients may not take.
type Problem struct {
	// Agent is the alias.
	Agent string
	// Text says it in plain words; names in it are quoted.
	Text string
}

// Problems lists what of the agents' cards could not be offered as it stands
// (schemas that are not usable, for instance), by agent.
func (s *Service) Problems() []Problem {
	var out []Problem
	for _, a := range s.state.Load().agents {
		out = append(out, a.offer.problems...)
	}
	return out
}

// elapsedSince is rounded down to milliseconds, for records.
func elapsedSince(t time.Time) time.Duration { return time.Since(t).Truncate(time.Millisecond) }
