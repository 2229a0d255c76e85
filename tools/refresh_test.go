package tools

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
)

// suddenAgent finds its card in the middle of the first look at it, and tells
// of it as an agent does, from a goroutine of its own.
type suddenAgent struct {
	Agent
	looked bool
	found  func()
	card   *a2a.Card
}

func (a *suddenAgent) Card() *a2a.Card {
	card := a.card
	if !a.looked {
		a.looked = true
		a.found()
	}
	return card
}

func (a *suddenAgent) Status() a2a.AgentStatus { return a2a.AgentStatus{State: a2a.AgentReady} }

type noFollow struct{ a2a.Follow }

// A card that comes while SetAgents reads the agents is shown: its Refresh
// must not look at the state from before and find nothing to do.
func TestRefreshDuringSetAgents(t *testing.T) {
	t.Parallel()
	table, err := handles.New(handles.Options{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	s, err := New(Options{Handles: table})
	if err != nil {
		t.Fatal(err)
	}
	card, err := a2a.ParseCard(json.RawMessage(`{"name":"Sudden","url":"http://a.example/","skills":[{"id":"pay","name":"Pay"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{})
	agent := &suddenAgent{}
	agent.found = func() {
		agent.card = card
		go func() {
			defer close(told)
			s.Refresh()
		}()
		select { // it may be over before SetAgents is, or wait for it
		case <-told:
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := s.SetAgents([]AgentEntry{{Alias: "sudden", Agent: agent, Follow: noFollow{}, Expose: []Exposure{ExposeSkills}}}); err != nil {
		t.Fatal(err)
	}
	<-told
	var names []string
	for _, tool := range s.Catalogue(View{}).Tools {
		names = append(names, tool.Name)
	}
	if !slices.Contains(names, "sudden_pay") {
		t.Errorf("tools %v, want the skill of the card that came meanwhile", names)
	}
}
