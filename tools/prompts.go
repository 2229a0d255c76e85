package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/translate"
)

// maxPromptArguments bounds the arguments of a prompt made from a schema.
const maxPromptArguments = 20

// prompts are one a skill, named as the skill's tool would be.
func (st *state) prompts(agents []*agent) []Prompt {
	var out []Prompt
	for _, a := range agents {
		for i := range a.offer.skills {
			so := &a.offer.skills[i]
			out = append(out, Prompt{
				Name:        st.names[translate.Key{Agent: a.Alias, Skill: so.skill.id}],
				Title:       so.skill.name,
				Description: so.description,
				Arguments:   so.prompt,
				Agent:       a.Alias,
				Skill:       so.skill.id,
			})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// promptArguments are the schema's properties; every value is text in a
// prompt.
func promptArguments(schema json.RawMessage, names []string) []mcp.PromptArgument {
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(schema, &root) // an odd schema gives what could be read
	var out []mcp.PromptArgument
	for _, name := range names {
		if len(out) == maxPromptArguments {
			break
		}
		var prop struct {
			Title       string `json:"title"`
			Description string `json:"description"`
		}
		_ = json.Unmarshal(root.Properties[name], &prop) // descriptions are a courtesy
		out = append(out, mcp.PromptArgument{
			Name:        name,
			Title:       clean(prop.Title, maxNameChars),
			Description: clean(prop.Description, 300),
			Required:    contains(root.Required, name),
		})
	}
	if len(out) == 0 {
		out = append(out, mcp.PromptArgument{Name: "text", Description: "What to ask or tell the agent."})
	}
	return out
}

// GetPrompt returns the user message that makes a model call the skill. It
// never calls an agent. An error is a *translate.Error.
func (s *Service) GetPrompt(_ context.Context, v View, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	st := s.state.Load()
	a, so := st.promptSkill(v, name)
	if so == nil {
		return nil, &translate.Error{Code: translate.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q: prompts/list has all", cut(name, 64))}
	}
	if missing := so.missing(args); len(missing) > 0 {
		return nil, &translate.Error{Code: translate.CodeInvalidParams, Message: fmt.Sprintf("prompt %q needs the arguments %s", name, strings.Join(argumentNames(missing), ", "))}
	}
	text := st.promptText(a, so, args)
	return &mcp.GetPromptResult{
		Description: so.description,
		Messages:    []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.TextContent{Type: "text", Text: text}}},
	}, nil
}

// promptAskKey names the question for what a prompt lacks.
const promptAskKey = "arguments"

// AskPrompt returns the question for the required arguments that a prompts/get
// lacks: a form with one text field each. ok is false where nothing is missing,
// there is no such prompt, or what is missing may not be asked for by a form.
// It never calls an agent.
func (s *Service) AskPrompt(v View, name string, args map[string]string) (ask translate.Ask, ok bool) {
	st := s.state.Load()
	a, so := st.promptSkill(v, name)
	if so == nil {
		return translate.Ask{}, false
	}
	missing := so.missing(args)
	if len(missing) == 0 {
		return translate.Ask{}, false
	}
	fields := ""
	for i, arg := range missing {
		if translate.AsksSecret(arg.Name) || translate.AsksSecret(arg.Title) || translate.AsksSecret(arg.Description) {
			return translate.Ask{}, false
		}
		if i > 0 {
			fields += ","
		}
		fields += jsonString(arg.Name) + `:{"type":"string","minLength":1`
		if arg.Title != "" {
			fields += `,"title":` + jsonString(arg.Title)
		}
		if arg.Description != "" {
			fields += `,"description":` + jsonString(arg.Description)
		}
		fields += "}"
	}
	names := argumentNames(missing)
	return translate.Ask{
		Key:     promptAskKey,
		Message: fmt.Sprintf("The skill %q of agent %q needs: %s.", so.skill.name, a.title(), strings.Join(names, ", ")),
		Schema:  json.RawMessage(`{"type":"object","properties":{` + fields + `},"required":` + jsonValue(names) + `}`),
	}, true
}

// missing are the required arguments that have no value.
func (so *skillOffer) missing(args map[string]string) []mcp.PromptArgument {
	var out []mcp.PromptArgument
	for _, arg := range so.prompt {
		if arg.Required && strings.TrimSpace(args[arg.Name]) == "" {
			out = append(out, arg)
		}
	}
	return out
}

func argumentNames(list []mcp.PromptArgument) []string {
	names := make([]string, len(list))
	for i, arg := range list {
		names[i] = arg.Name
	}
	return names
}

// promptSkill finds the skill of a prompt that the view shows.
func (st *state) promptSkill(v View, name string) (*agent, *skillOffer) {
	scope := st.scope(v)
	for _, a := range st.agents {
		if scope != nil && !scope[a.Alias] {
			continue
		}
		for i := range a.offer.skills {
			so := &a.offer.skills[i]
			if st.names[translate.Key{Agent: a.Alias, Skill: so.skill.id}] == name {
				return a, so
			}
		}
	}
	return nil, nil
}

// promptText says which tool to call with what. Arguments are written as JSON
// so that nothing in them reads as an instruction of its own.
func (st *state) promptText(a *agent, so *skillOffer, args map[string]string) string {
	var b strings.Builder
	if name := st.toolOf(a, so.skill.id); name != "" {
		fmt.Fprintf(&b, "Call the tool %s (agent %q, skill %q) with these arguments:\n%s", name, a.title(), so.skill.name, skillCall(so, args))
	} else {
		message := args["text"]
		if message == "" || len(args) > 1 {
			message = skillCall(so, args)
		}
		call := `{"agent":` + jsonString(a.Alias) + `,"text":` + jsonString(message) +
			`,"metadata":{` + jsonString(skillKey) + `:` + jsonString(so.skill.id) + `}}`
		fmt.Fprintf(&b, "Call the tool %s (agent %q, skill %q) with these arguments:\n%s", ToolSend, a.title(), so.skill.name, call)
	}
	b.WriteString("\nThen tell me the agent's answer. If it asks something that you cannot answer from this conversation, ask me.")
	return b.String()
}

// skillCall writes a prompt's arguments as the skill's own, in the order of
// the schema; a value that the schema wants as something else than text is
// written as that where it reads as such.
func skillCall(so *skillOffer, args map[string]string) string {
	var root struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(so.input, &root) // unreadable types leave the values text
	var b bytes.Buffer
	b.WriteByte('{')
	for _, arg := range so.prompt {
		value, ok := args[arg.Name]
		if !ok || value == "" {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(jsonString(arg.Name) + ":")
		if kind := root.Properties[arg.Name].Type; kind != nil && kind != "string" && json.Valid([]byte(value)) {
			b.WriteString(value)
			continue
		}
		b.WriteString(jsonString(value))
	}
	b.WriteByte('}')
	return b.String()
}
