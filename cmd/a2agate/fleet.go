package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"a2agate/a2a"
	"a2agate/config"
	"a2agate/tools"
)

const (
	// retireGrace is how long a replaced agent goes on at least: a call in
	// flight may have it in hand and not have sent its message yet.
	retireGrace = time.Minute
	// retireAfter is how long it goes on at most for the calls and tasks in
	// flight: no call waits longer than the largest timeoutSeconds, a day.
	retireAfter = 24 * time.Hour
)

// fleet runs the configured agents: for each its card, its state and its
// follower. A new configuration touches only the agents that it changes.
type fleet struct {
	log      *slog.Logger
	observed *observation
	// changed is called after a card or a state has changed.
	changed func()
	pins    *pins

	// mu guards members and order; ctx is set once by start.
	mu      sync.Mutex
	ctx     context.Context
	members map[string]*member
	order   []string
	wg      sync.WaitGroup
}

// recipe is all that a member is made of: members of equal recipes are alike.
type recipe struct {
	agent  config.Agent
	limits a2a.Limits
	// files is the digest of the certificates that the agent names.
	files [sha256.Size]byte
}

func recipeOf(agent config.Agent, cfg *config.Config) recipe {
	r := recipe{agent: agent, limits: a2a.Limits{
		CardBytes: cfg.Limits.CardBytes, ReplyBytes: cfg.Limits.ReplyBytes,
		EventBytes: int(cfg.Limits.EventBytes), StreamBytes: cfg.Limits.StreamBytes,
	}}
	h := sha256.New()
	for _, name := range []string{agent.Auth.CertFile, agent.Auth.KeyFile, agent.Auth.CAFile} {
		if name == "" {
			continue
		}
		data, err := os.ReadFile(name)
		fmt.Fprintf(h, "%q %d %t\n", name, len(data), err == nil)
		h.Write(data)
	}
	h.Sum(r.files[:0])
	return r
}

func (r recipe) equal(o recipe) bool {
	return r.limits == o.limits && r.files == o.files && r.agent.Equal(o.agent)
}

// member is one running agent.
type member struct {
	recipe   recipe
	agent    *a2a.Agent
	follower *a2a.Follower
	// shown is the agent as the tools see it.
	shown *shownAgent
	// rest ends the looks at the card, end all of the member's goroutines.
	rest, end context.CancelFunc
}

func (m *member) alias() string { return m.recipe.agent.Alias }

// formation is the members of one configuration, some of them fresh.
type formation struct {
	members map[string]*member
	order   []string
	fresh   []*member
}

// start sets the context that the agents run under, and runs those of a
// configuration. It returns at once; no agent is waited for.
func (f *fleet) start(ctx context.Context, cfg *config.Config) error {
	f.mu.Lock()
	f.ctx, f.members = ctx, map[string]*member{}
	f.mu.Unlock()
	next, err := f.prepare(cfg)
	if err != nil {
		return err
	}
	f.adopt(next)
	return nil
}

// wait returns when every goroutine of the fleet has ended.
func (f *fleet) wait() { f.wg.Wait() }

// prepare makes ready what a configuration needs: agents that it configures as
// before stay as they are, the others are made and begin to look for their
// cards. The running agents are not touched; adopt or discard ends it.
func (f *fleet) prepare(cfg *config.Config) (*formation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := &formation{members: map[string]*member{}}
	for _, agent := range cfg.Agents {
		if !agent.Enabled {
			continue
		}
		want := recipeOf(agent, cfg)
		m, ok := f.members[agent.Alias]
		if !ok || !m.recipe.equal(want) {
			var err error
			if m, err = f.newMember(want, m); err != nil {
				f.discard(next)
				return nil, fmt.Errorf("agents.%s: %w", agent.Alias, err)
			}
			f.launch(m)
			next.fresh = append(next.fresh, m)
		}
		next.members[agent.Alias] = m
		next.order = append(next.order, agent.Alias)
	}
	return next, nil
}

// discard ends what prepare has begun.
func (f *fleet) discard(next *formation) {
	for _, m := range next.fresh {
		m.end()
		f.wg.Go(m.agent.Close)
	}
}

// adopt makes the prepared agents the running ones and returns the aliases of
// those that took another's place.
func (f *fleet) adopt(next *formation) (replaced []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for alias, old := range f.members {
		m := next.members[alias]
		if m == old {
			continue
		}
		if m != nil {
			replaced = append(replaced, alias)
		}
		f.retire(old)
	}
	f.members, f.order = next.members, next.order
	return replaced
}

// launch starts a member's goroutines, which wait waits for, and returns when
// it takes calls.
func (f *fleet) launch(m *member) {
	ctx, end := context.WithCancel(f.ctx)
	looks, rest := context.WithCancel(ctx)
	m.end, m.rest = end, rest
	part := func(ctx context.Context, run func(context.Context) error) {
		f.wg.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				f.log.Error("agent stopped", "agent", m.alias(), "err", err)
			}
		})
	}
	part(looks, m.agent.Run)
	part(ctx, m.follower.Run)
	select {
	case <-m.follower.Started():
	case <-ctx.Done():
	}
}

// retire lets the calls and tasks in flight finish on a replaced member, then
// ends it.
func (f *fleet) retire(m *member) {
	f.wg.Go(func() {
		defer m.agent.Close()
		defer m.end()
		check := time.NewTimer(retireGrace)
		defer check.Stop()
		last := time.NewTimer(retireAfter)
		defer last.Stop()
		for {
			select {
			case <-check.C:
			case <-last.C:
				return
			case <-f.ctx.Done():
				return
			}
			if m.follower.Counts().Watches == 0 {
				return
			}
			m.rest() // not before: a call may wait for the first card
			check.Reset(time.Second)
		}
	})
}

// member returns the running agent of an alias.
func (f *fleet) member(alias string) (*member, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.members[alias]
	return m, ok
}

// recheck has the cards of all running agents read again. It waits for none.
func (f *fleet) recheck() {
	for _, m := range f.list() {
		m.agent.Recheck()
	}
}

// follow returns the follower of an alias, for the tasks extension.
func (f *fleet) follow(alias string) (a2a.Follow, bool) {
	m, ok := f.member(alias)
	if !ok {
		return nil, false
	}
	return m.follower, true
}

// title is an agent's name by its card, "" before it is known.
func (f *fleet) title(alias string) string {
	if m, ok := f.member(alias); ok {
		if card := m.agent.Card(); card != nil {
			return card.Name
		}
	}
	return ""
}

// list returns the running agents in the order of the configuration.
func (f *fleet) list() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return (&formation{members: f.members, order: f.order}).list()
}

func (n *formation) list() []*member {
	list := make([]*member, 0, len(n.order))
	for _, alias := range n.order {
		list = append(list, n.members[alias])
	}
	return list
}

// entries are the agents as the tools need them.
func (n *formation) entries() []tools.AgentEntry {
	return entriesOf(n.list())
}

// entries are the running agents as the tools need them.
func (f *fleet) entries() []tools.AgentEntry { return entriesOf(f.list()) }

func entriesOf(members []*member) []tools.AgentEntry {
	var entries []tools.AgentEntry
	for _, m := range members {
		cfg := m.recipe.agent
		e := tools.AgentEntry{
			Alias: cfg.Alias, Agent: m.shown, Follow: m.follower,
			Expose: exposures(cfg.Expose), ToolPrefix: cfg.ToolPrefix, Tasks: tools.TaskPolicy(cfg.Tasks), Timeout: cfg.Timeout,
			Skills: map[string]tools.SkillConfig{},
		}
		for _, s := range cfg.Skills {
			e.Skills[s.ID] = tools.SkillConfig{InputSchema: s.InputSchema, Tasks: tools.TaskPolicy(s.Tasks)}
		}
		entries = append(entries, e)
	}
	return entries
}

func exposures(list []config.Exposure) []tools.Exposure {
	out := make([]tools.Exposure, len(list))
	for i, e := range list {
		out[i] = tools.Exposure(e)
	}
	return out
}

// connecting reports whether one of the agents has no state yet.
func connecting(members []*member) bool {
	for _, m := range members {
		if m.agent.Status().State == a2a.AgentConnecting {
			return true
		}
	}
	return false
}

// waitForStates waits until every agent has a state, within patience.
func waitForStates(ctx context.Context, members []*member, patience time.Duration) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for connecting(members) {
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
