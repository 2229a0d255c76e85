package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"a2agate/a2a"
	"a2agate/translate"
	"github.com/mark3labs/mcp-go/mcp"
)

// ToolsExtension is the card extension by which an agent gives its skills
// schemas and a task policy: params {"skills": {<id>: {"inputSchema",
// "outputSchema", "tasks"}}}.
const ToolsExtension = "urn:a2agate:ext:tools:1"

// The most that is taken from a card: the texts are strangers' words.
const (
	maxNameChars  = 100
	maxTextChars  = 2000
	maxSkills     = 500
	maxTags       = 50
	maxExamples   = 20
	maxProblemsOf = 20
	maxPatternsOf = 200_000 // translate.PatternSize
)

// agentInfo is what a card says, sanitised and bounded.
type agentInfo struct {
	name        string
	description string
	version     string
	skills      []skillInfo
}

// skillInfo is one skill of a card with what the tools extension or the
// configuration adds.
type skillInfo struct {
	id          string
	name        string
	description string
	tags        []string
	examples    []string
	input       json.RawMessage
	output      json.RawMessage
	tasks       TaskPolicy
}

// skillParams is one skill of the tools extension.
type skillParams struct {
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Tasks        TaskPolicy      `json:"tasks"`
}

// infoFromCard reads a card, which may be nil; what the entry configures for
// a skill wins.
func infoFromCard(card *a2a.Card, e AgentEntry) agentInfo {
	if card == nil {
		return agentInfo{}
	}
	info := agentInfo{
		name:        clean(card.Name, maxNameChars),
		description: cleanText(card.Description, maxTextChars),
		version:     clean(card.Version, 40),
	}
	params := skillParamsFromCard(card)
	seen := map[string]bool{}
	for _, sk := range card.Skills {
		id := sk.ID
		if id == "" {
			id = sk.Name
		}
		if id == "" || seen[id] || len(info.skills) == maxSkills {
			continue
		}
		seen[id] = true
		info.skills = append(info.skills, skillFromCard(sk, id, params[id], e.Skills[id]))
	}
	return info
}

func skillFromCard(sk a2a.Skill, id string, p skillParams, c SkillConfig) skillInfo {
	out := skillInfo{
		id:          id,
		name:        clean(sk.Name, maxNameChars),
		description: cleanText(sk.Description, maxTextChars),
		input:       p.InputSchema,
		output:      p.OutputSchema,
	}
	if out.name == "" {
		out.name = clean(id, maxNameChars)
	}
	for _, t := range sk.Tags {
		if t = clean(t, maxNameChars); t != "" && len(out.tags) < maxTags {
			out.tags = append(out.tags, t)
		}
	}
	for _, x := range sk.Examples {
		if x = clean(x, 300); x != "" && len(out.examples) < maxExamples {
			out.examples = append(out.examples, x)
		}
	}
	if validPolicy(p.Tasks) {
		out.tasks = p.Tasks
	}
	if c.InputSchema != nil {
		out.input = c.InputSchema
	}
	if c.Tasks != "" {
		out.tasks = c.Tasks
	}
	return out
}

// skillParamsFromCard reads the tools extension, each skill by itself so that
// one bad entry costs no other.
func skillParamsFromCard(card *a2a.Card) map[string]skillParams {
	ext, ok := card.Extension(ToolsExtension)
	if !ok {
		return nil
	}
	var params struct {
		Skills map[string]json.RawMessage `json:"skills"`
	}
	if json.Unmarshal(ext.Params, &params) != nil {
		return nil
	}
	out := map[string]skillParams{}
	for id, raw := range params.Skills {
		var p skillParams
		if json.Unmarshal(raw, &p) == nil {
			out[id] = p
		}
	}
	return out
}

// clean is a name in one harmless line.
func clean(s string, chars int) string {
	return translate.CutRunes(translate.CleanName(s), chars)
}

// cleanText is a description, which may have lines.
func cleanText(s string, chars int) string {
	return translate.CutRunes(translate.CleanDescription(s), chars)
}

// offer is what an agent's card gives to show: one agent tool, a tool and a
// prompt a skill. Schemas are compiled once a card.
type offer struct {
	// description is the agent tool's, as long as may be.
	description string
	// lean is the same in a list of many.
	lean     string
	skills   []skillOffer
	problems []Problem
	// patterns is what the patterns of the schemas come to so far.
	patterns int
}

// takePatterns counts the patterns of a schema, and says why there is no room
// for them.
func (o *offer) takePatterns(schema json.RawMessage) string {
	n := translate.SchemaPatternSize(schema)
	if o.patterns+n > maxPatternsOf {
		return fmt.Sprintf("the patterns of the agent's schemas come to more than %d steps", maxPatternsOf)
	}
	o.patterns += n
	return ""
}

// skillOffer is one skill ready to be called.
type skillOffer struct {
	skill       *skillInfo
	description string
	// known are the names of the arguments, prompt those of the prompt.
	known  []string
	prompt []mcp.PromptArgument
	// input is the schema to publish, the skill's own or the plain one.
	input json.RawMessage
	check *checker
	// output is nil where the skill declares none that can be used.
	output json.RawMessage
	fits   *checker
}

// textSchema is the input of a skill that declares none.
const textSchema = `{"type":"object","properties":{"text":{"type":"string","description":"What to ask or tell the agent."}},"required":["text"],"additionalProperties":false}`

// newOffer compiles what the agent declares; a schema that cannot be used is
// left out and named, the skill stays.
func newOffer(a *agent) offer {
	o := offer{description: agentDescription(a), lean: "Agent: " + a.purposeOrNone()}
	problem := func(format string, args ...any) {
		if len(o.problems) < maxProblemsOf {
			o.problems = append(o.problems, Problem{a.Alias, fmt.Sprintf(format, args...)})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.Skills)) {
		if a.card != nil && !slices.ContainsFunc(a.info.skills, func(sk skillInfo) bool { return sk.id == id }) {
			problem("skill %q is configured, but the card has no such skill", id)
		}
	}
	for i := range a.info.skills {
		sk := &a.info.skills[i]
		so := skillOffer{skill: sk, description: skillDescription(a, sk), input: json.RawMessage(textSchema)}
		if sk.input != nil {
			why := translate.SchemaProblem(sk.input)
			if why == "" {
				why = o.takePatterns(sk.input)
			}
			if why != "" {
				problem("inputSchema of skill %q is not used: %s", sk.id, why)
			} else {
				so.input = sk.input
			}
		}
		check, err := compileSchema(so.input)
		if err != nil {
			problem("inputSchema of skill %q is not used: %s", sk.id, err)
			so.input = json.RawMessage(textSchema)
			check, _ = compileOwn(so.input)
		}
		so.check, so.known = check, knownFromSchema(so.input)
		so.prompt = promptArguments(so.input, so.known)
		if why := translate.SchemaCaution(so.input); why != "" {
			problem("inputSchema of skill %q may be refused by some clients: %s", sk.id, why)
		}
		if sk.output != nil {
			why := translate.OutputSchemaProblem(sk.output)
			if why == "" {
				why = o.takePatterns(sk.output)
			}
			if why != "" {
				problem("outputSchema of skill %q is not used: %s", sk.id, why)
			} else if fits, err := compileSchema(sk.output); err == nil {
				so.output, so.fits = sk.output, fits
			}
		}
		o.skills = append(o.skills, so)
	}
	return o
}

// sameOffer reports whether b, a newer look at the agent, offers what a does.
func (a *agent) sameOffer(b *agent) bool {
	return a.Agent == b.Agent && a.card == b.card && a.Tasks == b.Tasks && reflect.DeepEqual(a.Skills, b.Skills)
}

// purposeOrNone is the agent's purpose, or says that none is known.
func (a *agent) purposeOrNone() string {
	if p := a.purpose(); p != "" {
		return p
	}
	return "no description yet; a2a_discover shows its state."
}

// purpose is the agent's description in one breath.
func (a *agent) purpose() string {
	return strings.TrimSpace(strings.Join(strings.Fields(a.info.description), " "))
}
