package main

import (
	"log/slog"
	"sync"

	"a2agate/tools"
)

// problems tells the operator what of the agents' cards is not offered as it
// stands, each thing once while it lasts.
type problems struct {
	mu   sync.Mutex
	told map[tools.Problem]bool
}

// tell logs what is new of the problems that now returns.
func (p *problems) tell(log *slog.Logger, now func() []tools.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := map[tools.Problem]bool{}
	for _, problem := range now() {
		told[problem] = true
		if !p.told[problem] {
			log.Warn("agent card", "agent", problem.Agent, "note", problem.Text)
		}
	}
	p.told = told
}

// refresh has the tools follow what is known of the agents.
func (g *gateway) refresh() {
	g.tools.Refresh()
	g.problems.tell(g.observed.agents, g.tools.Problems)
}
