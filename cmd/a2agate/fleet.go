package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	"a2agate/a2a"
	"a2agate/a2a/credential"
	"a2agate/config"
	"a2agate/tools"
)

// speaks are the card extensions that the gateway understands.
var speaks = []string{"urn:a2agate:ext:tools:1", "urn:a2agate:ext:ask:1"}

// retireAfter is how long the client of an agent that a new configuration
// replaced goes on for the calls in flight.
const retireAfter = 5 * time.Minute

// fleet runs the configured agents: for each its card, its state and its
// follower. A new configuration touches only the agents that it changes.
type fleet struct {
	limits  config.Limits
	log     *slog.Logger
	observe func(a2a.Exchange)
	// changed is called after a card or a state has changed.
	changed func()

	// mu guards members and order; ctx is set once by run.
	mu      sync.Mutex
	ctx     context.Context
	members map[string]*member
	order   []string
	wg      sync.WaitGroup
}

// member is one running agent.
type member struct {
	cfg      config.Agent
	agent    *a2a.Agent
	follower *a2a.Follower
	// stop ends the member's goroutines.
	stop context.CancelFunc
}

// start begins to run the agents under ctx. It returns at once; nobody is
// waited for.
func (f *fleet) start(ctx context.Context, agents []config.Agent) error {
	f.mu.Lock()
	f.ctx, f.members = ctx, map[string]*member{}
	f.mu.Unlock()
	_, err := f.apply(agents)
	return err
}

// wait returns when every goroutine of the fleet has ended.
func (f *fleet) wait() { f.wg.Wait() }

// apply makes the running agents those of a configuration, and returns the
// aliases that were added, changed or removed. On an error nothing has
// changed.
func (f *fleet) apply(agents []config.Agent) (touched []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := map[string]*member{}
	var order []string
	var fresh []*member
	for _, cfg := range agents {
		if !cfg.Enabled {
			continue
		}
		order = append(order, cfg.Alias)
		if old, ok := f.members[cfg.Alias]; ok && reflect.DeepEqual(old.cfg, cfg) {
			next[cfg.Alias] = old
			continue
		}
		m, err := f.newMember(cfg)
		if err != nil {
			return nil, fmt.Errorf("agents.%s: %w", cfg.Alias, err)
		}
		next[cfg.Alias] = m
		fresh = append(fresh, m)
		touched = append(touched, cfg.Alias)
	}
	for alias, old := range f.members {
		if next[alias] == old {
			continue
		}
		if next[alias] == nil {
			touched = append(touched, alias)
		}
		f.retire(old)
	}
	f.members, f.order = next, order
	for _, m := range fresh {
		f.launch(m)
	}
	return touched, nil
}

// launch starts a member's goroutines, which wait waits for.
func (f *fleet) launch(m *member) {
	ctx, cancel := context.WithCancel(f.ctx)
	m.stop = cancel
	for _, run := range []func(context.Context) error{m.agent.Run, m.follower.Run} {
		f.wg.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				f.log.Error("agent stopped", "agent", m.cfg.Alias, "err", err)
			}
		})
	}
}

// retire lets the calls in flight finish on a replaced member, then ends it.
func (f *fleet) retire(m *member) {
	f.wg.Go(func() {
		defer m.agent.Close()
		defer m.stop()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		end := time.NewTimer(retireAfter)
		defer end.Stop()
		for m.follower.Counts().Watches > 0 {
			select {
			case <-tick.C:
			case <-end.C:
				return
			case <-f.ctx.Done():
				return
			}
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

// follow returns the follower of an alias, for the tasks extension.
func (f *fleet) follow(alias string) (a2a.Follow, bool) {
	m, ok := f.member(alias)
	if !ok {
		return nil, false
	}
	return m.follower, true
}

// list returns the running agents in the order of the configuration.
func (f *fleet) list() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*member, 0, len(f.order))
	for _, alias := range f.order {
		list = append(list, f.members[alias])
	}
	return list
}

// entries are the agents as the tools need them.
func (f *fleet) entries() []tools.AgentEntry {
	var entries []tools.AgentEntry
	for _, m := range f.list() {
		e := tools.AgentEntry{
			Alias: m.cfg.Alias, Agent: m.agent, Follow: m.follower,
			Expose: exposures(m.cfg.Expose), Tasks: tools.TaskPolicy(m.cfg.Tasks), Timeout: m.cfg.Timeout,
			Skills: map[string]tools.SkillConfig{},
		}
		for _, s := range m.cfg.Skills {
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

func (f *fleet) newMember(cfg config.Agent) (*member, error) {
	auth, err := authorizer(cfg.Auth)
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	for _, h := range cfg.Headers {
		headers.Add(h.Name, h.Value.Reveal())
	}
	agent, err := a2a.NewAgent(a2a.AgentConfig{
		Alias: cfg.Alias, URL: cfg.URL, CardURL: cfg.CardURL, CardPath: cfg.CardPath,
		Protocol: a2a.Version(unlessAuto(string(cfg.Protocol))), Binding: a2a.Binding(unlessAuto(string(cfg.Binding))),
		URLPolicy: a2a.URLPolicy(cfg.URLPolicy), AllowHosts: cfg.AllowHosts, Headers: headers,
		Authorizer: auth, AuthOnCard: a2a.AuthOnCard(cfg.Auth.OnCard), Extensions: speaks,
		EmptyStreamFallback: cfg.EmptyStreamFallback, MaxConcurrent: cfg.MaxConcurrent,
		Limits: a2a.Limits{
			CardBytes: f.limits.CardBytes, ReplyBytes: f.limits.ReplyBytes,
			EventBytes: int(f.limits.EventBytes), StreamBytes: f.limits.StreamBytes,
		},
		Observe: f.observe, OnChange: f.changed, Logger: f.log,
	})
	if err != nil {
		return nil, err
	}
	follower := a2a.NewFollower(a2a.FollowerOptions{
		Alias: cfg.Alias, Upstream: agent.Upstream, TaskBytes: f.limits.StreamBytes, Logger: f.log,
	})
	return &member{cfg: cfg, agent: agent, follower: follower}, nil
}

func unlessAuto(s string) string {
	if s == "auto" {
		return ""
	}
	return s
}

// authorizer makes the credential of an agent, nil for none.
func authorizer(a config.Auth) (a2a.Authorizer, error) {
	if a.Type == "" || a.Type == config.AuthNone {
		return nil, nil //nolint:nilnil // no credential is not an error
	}
	auth, err := credential.FromConfig(credential.Spec{
		Type:  string(a.Type),
		Token: secret(a.Token), Key: secret(a.Key), Header: a.Header, In: a.In, Name: a.Name,
		Username: a.Username, Password: secret(a.Password),
		ClientID: a.ClientID, ClientSecret: secret(a.ClientSecret), TokenURL: a.TokenURL, Scopes: a.Scopes, AuthStyle: a.AuthStyle,
		Resource: a.Resource,
		CertFile: a.CertFile, KeyFile: a.KeyFile, CAFile: a.CAFile, ServerName: a.ServerName,
	})
	if err != nil {
		return nil, err
	}
	return auth, nil
}

func secret(s config.Secret) credential.Secret { return credential.NewSecret(s.Reveal()) }
