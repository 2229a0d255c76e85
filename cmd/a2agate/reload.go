package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"a2agate/config"
)

// settlePatience is how long new agents have to show their cards before a new
// configuration is put in force: within it a reload changes every list once.
const settlePatience = 2 * time.Second

// reloadStatus is how the configuration stands.
type reloadStatus struct {
	// Loaded is when the configuration in force was taken over.
	Loaded time.Time
	// Problem says why the file as it is now is not in force, "" when it is.
	Problem string
	// Restart names the settings whose change waits for a restart.
	Restart []string
}

// reloader puts changes of the configuration file in force while the gateway
// runs. A file that cannot be used changes nothing.
type reloader struct {
	g *gateway
	// load reads the configuration again.
	load func() (*config.Config, error)
	log  *slog.Logger
	// looked, where not nil, is told of each look at the file when it is over.
	looked func()

	mu     sync.Mutex // guards status
	status reloadStatus

	// The rest belongs to run. now is the configuration in force, names what
	// the file as it is names besides: what is watched.
	now   *config.Config
	names []string
}

func newReloader(g *gateway, load func() (*config.Config, error), log *slog.Logger) *reloader {
	return &reloader{g: g, load: load, log: log, now: g.cfg, names: g.cfg.Files, status: reloadStatus{Loaded: time.Now()}}
}

// Status returns how the configuration stands at this moment.
func (r *reloader) Status() reloadStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := r.status
	status.Restart = slices.Clone(status.Restart)
	return status
}

// run watches the file and what it names, and reloads after each change and
// each signal from again, until ctx is done.
func (r *reloader) run(ctx context.Context, again <-chan os.Signal) {
	for ctx.Err() == nil {
		r.watch(ctx, again)
	}
}

// watch watches one set of files, until the set has changed or ctx is done.
func (r *reloader) watch(ctx context.Context, again <-chan os.Signal) {
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // a look is due already
		}
	}
	watched := r.names
	also := append(slices.Clone(watched), r.g.pins.path)
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // waited for below
		defer close(done)
		// Ready counts as a change: what came before it is seen then.
		if err := config.WatchReady(watching, r.g.cfg.Path, also, tell, tell); err != nil {
			r.log.Error("the configuration is not watched; SIGHUP reloads it", "err", err)
		}
	}()
	defer func() { stop(); <-done }()
	for slices.Equal(watched, r.names) {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
			asked = true
			r.log.Info("reloading the configuration on a signal")
		}
		r.reload(ctx, asked)
		if asked { // by a person, who may know of more than the file
			r.g.fleet.recheck()
		}
		if r.looked != nil {
			r.looked()
		}
	}
}

// reload reads the file and puts it in force. Who has asked is told how it
// ended even when nothing is new.
func (r *reloader) reload(ctx context.Context, asked bool) {
	if err := r.g.pins.read(); err != nil {
		r.log.Error("accepted cards not reloaded", "err", err)
	}
	next, err := r.load()
	if err == nil {
		err = r.apply(ctx, next)
	}
	if err != nil {
		if ctx.Err() == nil {
			r.refuse(err, asked)
		}
		return
	}
	r.names = next.Files
	before := r.now
	r.now = next
	restart := r.g.waiting(next)
	r.mu.Lock()
	was := r.status
	unchanged := was.Problem == "" && reflect.DeepEqual(before, next)
	if !unchanged {
		r.status = reloadStatus{Loaded: time.Now(), Restart: restart}
	}
	r.mu.Unlock()
	r.g.refresh() // cards may have been accepted
	if unchanged {
		if asked {
			r.log.Info("configuration unchanged", "file", next.Path)
		}
		return
	}
	r.g.observed.metrics.Reload(true)
	added, changed, removed := config.Changes(before, next)
	r.log.Info("configuration reloaded", "file", next.Path, "added", added, "changed", changed, "removed", removed, "settings", differing(before, next))
	for _, alias := range removed {
		r.g.observed.metrics.Forget(alias)
	}
	if len(restart) > 0 {
		r.log.Warn("settings that take effect after a restart have changed", "settings", restart)
	}
}

// refuse keeps what is in force and says where the file is broken.
func (r *reloader) refuse(err error, asked bool) {
	problem := err.Error()
	var problems *config.Error
	if errors.As(err, &problems) {
		// A missing file that appears may be the remedy.
		r.names = union(r.now.Files, problems.Files)
	}
	r.mu.Lock()
	known := r.status.Problem == problem
	r.status.Problem = problem
	r.mu.Unlock()
	if known && !asked {
		return
	}
	r.g.observed.metrics.Reload(false)
	if problems == nil {
		r.log.Error("configuration not reloaded, the last good one stays in force", "problem", problem)
		return
	}
	for _, p := range problems.Problems {
		r.log.Error("configuration not reloaded, the last good one stays in force", "problem", p.String())
	}
}

func union(a, b []string) []string {
	list := append(slices.Clone(a), b...)
	slices.Sort(list)
	return slices.Compact(list)
}

// apply puts a configuration in force. It waits a moment for the cards of new
// agents, so that callers see one change. On an error nothing has changed.
func (r *reloader) apply(ctx context.Context, next *config.Config) error {
	g := r.g
	agents, err := g.fleet.prepare(next)
	if err != nil {
		return err
	}
	waitForStates(ctx, agents.fresh, settlePatience)
	if err := ctx.Err(); err != nil {
		g.fleet.discard(agents)
		return err
	}
	if err := g.tools.Reconfigure(g.toolOptions(next, agents.entries())); err != nil {
		g.fleet.discard(agents)
		return err
	}
	for _, alias := range g.fleet.adopt(agents) {
		g.tasks.Rebind(ctx, alias)
	}
	setLevels(g.levels, next.Log)
	for _, f := range g.follows {
		f.take(next)
	}
	return nil
}

// setting is one key of the configuration beside the agents.
type setting struct {
	key   string
	value func(*config.Config) any
	// live says that a change takes effect at once.
	live bool
}

// settings are all keys beside the agents, in the order of the reference.
func settings() []setting {
	const live, restart = true, false
	return []setting{
		{"listen", func(c *config.Config) any { return c.Listen }, restart},
		{"tls", func(c *config.Config) any { return c.TLS }, restart},
		{"trustedProxies", func(c *config.Config) any { return c.TrustedProxies }, restart},
		{"debugListen", func(c *config.Config) any { return c.DebugListen }, restart},
		{"publicUrl", func(c *config.Config) any { return c.PublicURL }, restart},
		{"allowedHosts", func(c *config.Config) any { return c.AllowedHosts }, restart},
		{"allowedOrigins", func(c *config.Config) any { return c.AllowedOrigins }, restart},
		{"expose", func(c *config.Config) any { return c.Expose }, live},
		{"toolPrefix", func(c *config.Config) any { return c.ToolPrefix }, live},
		{"paramHeaders", func(c *config.Config) any { return c.ParamHeaders }, restart},
		{"structuredContent", func(c *config.Config) any { return c.StructuredContent }, live},
		{"handleTtl", func(c *config.Config) any { return c.HandleTTL }, restart},
		{"store", func(c *config.Config) any { return c.Store }, restart},
		{"wait.withProgress", func(c *config.Config) any { return c.Wait.WithProgress }, live},
		{"wait.without", func(c *config.Config) any { return c.Wait.Without }, live},
		{"wait.taskGrace", func(c *config.Config) any { return c.Wait.TaskGrace }, live},
		{"wait.firstByte", func(c *config.Config) any { return c.Wait.FirstByte }, restart},
		{"wait.progress", func(c *config.Config) any { return c.Wait.Progress }, restart},
		{"limits.bodyBytes", func(c *config.Config) any { return c.Limits.BodyBytes }, restart},
		{"limits.cardBytes", func(c *config.Config) any { return c.Limits.CardBytes }, live},
		{"limits.replyBytes", func(c *config.Config) any { return c.Limits.ReplyBytes }, live},
		{"limits.eventBytes", func(c *config.Config) any { return c.Limits.EventBytes }, live},
		{"limits.streamBytes", func(c *config.Config) any { return c.Limits.StreamBytes }, live},
		{"limits.resultChars", func(c *config.Config) any { return c.Limits.ResultChars }, live},
		{"limits.mediaBytes", func(c *config.Config) any { return c.Limits.MediaBytes }, live},
		{"limits.handles", func(c *config.Config) any { return c.Limits.Handles }, restart},
		{"limits.listens", func(c *config.Config) any { return c.Limits.Listens }, restart},
		{"limits.principalListens", func(c *config.Config) any { return c.Limits.PrincipalListens }, restart},
		{"limits.callsPerSecond", func(c *config.Config) any { return c.Limits.CallsPerSecond }, restart},
		{"limits.concurrentCalls", func(c *config.Config) any { return c.Limits.ConcurrentCalls }, restart},
		{"profiles", func(c *config.Config) any { return c.Profiles }, live},
		{"auth", func(c *config.Config) any { return c.Auth }, restart},
		{"log.level", func(c *config.Config) any { return c.Log.Level }, live},
		{"log.format", func(c *config.Config) any { return c.Log.Format }, restart},
		{"log.debug", func(c *config.Config) any { return c.Log.Debug }, live},
	}
}

// differing names the settings that are not the same in both.
func differing(a, b *config.Config) []string {
	keys := []string{}
	for _, s := range settings() {
		if !reflect.DeepEqual(s.value(a), s.value(b)) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// waiting names the settings of next that differ from what the gateway was
// started with and take effect after a restart.
func (g *gateway) waiting(next *config.Config) []string {
	var keys []string
	for _, s := range settings() {
		followed := slices.ContainsFunc(g.follows, func(f follower) bool { return slices.Contains(f.keys, s.key) })
		if s.key == "auth" && !next.Auth.Enabled() {
			followed = false // inbound does not open the door
		}
		if s.live || followed {
			continue
		}
		if !reflect.DeepEqual(s.value(g.cfg), s.value(next)) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// reloading returns the function that reads a running gateway's configuration
// again: with the same flags, and never one that would let everybody in.
func (f fileFlags) reloading(p process, running *config.Config) func() (*config.Config, error) {
	f.config = running.Path
	return func() (*config.Config, error) {
		next, err := f.load(p, nil)
		if err != nil {
			return nil, err
		}
		if err := f.exposed(running.Listen, next); err != nil {
			return nil, fmt.Errorf("%s: %w", next.Path, err)
		}
		return next, nil
	}
}
