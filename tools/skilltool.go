package tools

import (
	"context"
	"encoding/json"

	"a2agate/a2a"
	"a2agate/translate"
)

// skillKey is the metadata key by which an agent learns which of its skills
// is called.
const skillKey = "a2agate/skill"

// skillTool is a tool that stands for one skill: its arguments go to the
// agent as they are, in a data part, with the argument text as words beside.
func (inv *invocation) skillTool(ctx context.Context) translate.Outcome {
	if inv.call.RequestState != nil {
		return inv.resume(ctx)
	}
	x := inv.newExchange()
	x.message = messageFromSkill(inv.args, inv.tool.skill.id)
	return x.begin(ctx)
}

// messageFromSkill makes the message of a skill call: the text first, so that
// an agent that knows nothing of skills still reads the words.
func messageFromSkill(args arguments, skill string) a2a.Message {
	meta := json.RawMessage(`{` + jsonString(skillKey) + `:` + jsonString(skill) + `}`)
	m := a2a.Message{Role: a2a.RoleUser, Metadata: meta}
	if text := args.text("text"); text != "" {
		m.Parts = append(m.Parts, a2a.Part{Kind: a2a.PartText, Text: text})
	}
	m.Parts = append(m.Parts, a2a.Part{Kind: a2a.PartData, Data: args.raw, Metadata: meta})
	return m
}
