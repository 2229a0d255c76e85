package main

import (
	"context"
	"encoding/json"
	"slices"

	"a2agate/fixtures"
)

// skill is one skill and what the agent does when it is called.
type skill struct {
	id    string
	about string
	// input is the JSON Schema of the arguments; "" takes none.
	input string
	// tasks is the task policy, "" for the gateway's own.
	tasks string
	play  func(a *fixtures.Agent, t *fixtures.Turn) error
}

// newAgent returns the agent with all skills. Close it when it is done with.
func newAgent() *fixtures.Agent {
	skills := allSkills()
	listed := make([]fixtures.Skill, len(skills))
	for i, s := range skills {
		listed[i] = s.listed()
	}
	a := fixtures.New(fixtures.Options{
		Name:         "Suite agent",
		Description:  "Does what the official MCP conformance suite asks of a tool, by the means of A2A.",
		NoDemoSkills: true,
		Skills:       listed,
	})
	for _, s := range append(skills, toggled) {
		a.OnCommand(s.id, func(_ context.Context, t *fixtures.Turn) error { return s.play(a, t) })
	}
	return a
}

func allSkills() []skill {
	return slices.Concat(contentSkills(), questionSkills(), taskSkills(), promptSkills(), cardSkills())
}

// noArguments is the schema of a skill without arguments.
const noArguments = `{"type":"object","properties":{}}`

func (s skill) listed() fixtures.Skill {
	input := s.input
	if input == "" {
		input = noArguments
	}
	return fixtures.Skill{
		ID: s.id, Name: s.id, Description: s.about, Tags: []string{"conformance"},
		InputSchema: json.RawMessage(input), Tasks: s.tasks,
	}
}
