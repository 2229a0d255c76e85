package main

import (
	"slices"

	"a2agate/fixtures"
)

// promptSkills are called as prompts: the gateway shows every skill as one.
func promptSkills() []skill {
	return []skill{
		{id: "test_simple_prompt", about: "A prompt without arguments.", play: echoArguments},
		{id: "test_prompt_with_arguments", about: "A prompt with two arguments.",
			input: `{"type":"object","properties":{"arg1":{"type":"string","description":"First test argument"},` +
				`"arg2":{"type":"string","description":"Second test argument"}},"required":["arg1","arg2"]}`,
			play: echoArguments},
		{id: "test_input_required_result_prompt", about: "A prompt that cannot be made without its argument.",
			input: `{"type":"object","properties":{"context":{"type":"string","description":"What context should the prompt use?"}},"required":["context"]}`,
			play:  echoArguments},
	}
}

// cardSkills change the agent's own card.
func cardSkills() []skill {
	return []skill{
		{id: "test_trigger_tool_change", about: "Adds a skill to the card, or takes it away again.", play: toggleSkill},
		{id: "test_trigger_prompt_change", about: "Adds a skill to the card, or takes it away again.", play: toggleSkill},
	}
}

// toggled is the skill that comes and goes.
var toggled = skill{id: "test_dynamic_skill", about: "Comes and goes.", play: echoArguments}

func toggleSkill(a *fixtures.Agent, t *fixtures.Turn) error {
	said := "The skill is there now."
	a.UpdateSkills(func(skills []fixtures.Skill) []fixtures.Skill {
		if i := slices.IndexFunc(skills, func(s fixtures.Skill) bool { return s.ID == toggled.id }); i >= 0 {
			said = "The skill is gone now."
			return slices.Delete(skills, i, i+1)
		}
		return append(skills, toggled.listed())
	})
	return t.Reply(fixtures.Text(said))
}
