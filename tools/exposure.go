package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"a2agate/translate"
)

const (
	// manyAliases is up to how many agents all four tools list the aliases;
	// with more only a2a_send_message does.
	manyAliases = 16
	// manyAgentTools is from how many agent tools on each is as lean as can be.
	manyAgentTools = 16
	// listRoom is what a list of generic and agent tools may take, in bytes;
	// descriptions of agent tools share what is left of it.
	listRoom = 19300
	// maxEnum bounds the list of aliases in the schema of a2a_send_message, in
	// bytes.
	maxEnum = 1500
	// leastDescription is the room of a description however many there are.
	leastDescription = 48
)

// titleChars are the lengths that titles of agent tools are cut to: the first
// that leaves room for descriptions.
var titleChars = []int{60, 40, 30, 20}

// nameTools gives every agent tool and skill tool its name and adds it to the
// tools. Names depend on aliases and skill ids alone, so that they are the
// same in every view.
func (st *state) nameTools() {
	var keys []translate.Key
	offered := 0
	for _, a := range st.agents {
		if a.exposes(ExposeAgents) {
			offered++
		}
		keys = append(keys, translate.Key{Agent: a.Alias})
		for i := range a.offer.skills {
			keys = append(keys, translate.Key{Agent: a.Alias, Skill: a.offer.skills[i].skill.id})
		}
	}
	st.names = translate.NamesFromKeys(keys, st.prefix, ToolDiscover, ToolSend, ToolGetTask, ToolCancel, ToolQuery)
	room, title := st.listShares(offered)
	for _, a := range st.agents {
		if a.exposes(ExposeAgents) {
			t := st.agentTool(a, offered, room, title)
			st.tools[t.shown.Name] = t
		}
		if !a.exposes(ExposeSkills) {
			continue
		}
		for i := range a.offer.skills {
			t := st.skillTool(a, &a.offer.skills[i])
			st.tools[t.shown.Name] = t
		}
	}
}

// prefix is what stands before the skill ids of an agent.
func (st *state) prefix(alias string) string {
	p := st.opts.ToolPrefix
	if a := st.byAlias[alias]; a != nil && a.ToolPrefix != nil {
		p = a.ToolPrefix
	}
	if p == nil {
		return alias + "_"
	}
	return *p
}

// listShares says how long the description, in bytes, and the title, in
// characters, of one of n agent tools may be.
func (st *state) listShares(n int) (description, title int) {
	if n == 0 {
		return translate.DescriptionBytes, titleChars[0]
	}
	left := listRoom
	for _, t := range st.genericTools(aliasesOf(st.agents)) {
		left -= len(t.Description) + len(t.InputSchema) + len(t.OutputSchema) + 350
	}
	for _, title = range titleChars {
		overhead := 0
		for _, a := range st.agents {
			if a.exposes(ExposeAgents) {
				overhead += min(len(a.Alias), translate.AgentNameLen) + len(translate.CutRunes(a.title(), title)) + len(agentSchema(n)) + 54
				if n <= manyAgentTools {
					overhead += 200
				}
			}
		}
		if description = (left - overhead) / n; description >= leastDescription {
			break
		}
	}
	return min(max(description, leastDescription), translate.DescriptionBytes), title
}

// agentSchema is the input of an agent tool when there are n of them.
func agentSchema(n int) json.RawMessage {
	message := property{"message", `{"type":"string","description":"What to ask or tell the agent."}`}
	fresh := property{"start_fresh", `{"type":"boolean","description":"true: begin a new conversation instead of going on with the last one."}`}
	if n <= manyAgentTools {
		return objectSchema([]property{message, fresh}, "message")
	}
	message.schema, fresh.schema = `{"type":"string"}`, `{"type":"boolean"}`
	lean := objectSchema([]property{message, fresh}, "message")
	return append(bytes.TrimSuffix(lean, []byte(`,"additionalProperties":false}`)), '}')
}

// agentTool is the tool that stands for a whole agent.
func (st *state) agentTool(a *agent, n, room, title int) *tool {
	shown := Tool{
		Name:        st.names[translate.Key{Agent: a.Alias}],
		Description: translate.CutBytes(a.offer.description, room),
		InputSchema: agentSchema(n),
		Agent:       a.Alias,
	}
	if name := a.title(); n <= manyAgentTools || name != a.Alias {
		shown.Title = translate.CutRunes(name, title)
	}
	if n > manyAgentTools {
		// The title has the name already.
		shown.Description = translate.CutBytes(a.offer.lean, room)
	}
	if n <= manyAgentTools {
		shown.Annotations = annotations(false, true, false)
		shown.Meta = sizeMeta()
	}
	return &tool{
		shown: shown, handle: (*invocation).agentTool, agent: a,
		schema: st.agentCheck, known: []string{"message", "start_fresh"},
	}
}

// agentDescription attributes what the agent says of itself: the words are
// the agent's, not the gateway's.
func agentDescription(a *agent) string {
	purpose := fmt.Sprintf("Agent %q: ", a.title()) + a.purposeOrNone()
	var skills []string
	for i := range a.info.skills {
		sk := &a.info.skills[i]
		line := sk.name
		if sk.description != "" {
			line += ": " + strings.Join(strings.Fields(sk.description), " ")
		}
		skills = append(skills, line)
	}
	details := []string{}
	if len(skills) > 0 {
		details = append(details, "Skills: "+strings.Join(skills, "; "))
	}
	return translate.DescriptionFromPurpose(purpose, details...)
}

// skillTool is the tool that stands for one skill.
func (st *state) skillTool(a *agent, so *skillOffer) *tool {
	shown := Tool{
		Name:        st.names[translate.Key{Agent: a.Alias, Skill: so.skill.id}],
		Title:       so.skill.name,
		Description: so.description,
		InputSchema: so.input,
		Annotations: annotations(false, true, false),
		Meta:        sizeMeta(),
		Agent:       a.Alias,
		Skill:       so.skill.id,
	}
	t := &tool{
		handle: (*invocation).skillTool, agent: a, skill: so.skill,
		schema: so.check, known: so.known, allNulls: true,
	}
	if so.output != nil && st.opts.Structured != translate.StructuredNever {
		shown.OutputSchema, t.output = so.output, so.fits
	}
	t.shown = shown
	return t
}

func skillDescription(a *agent, sk *skillInfo) string {
	what := sk.description
	if what == "" {
		what = sk.name
	}
	purpose := fmt.Sprintf("Agent %q: %s", a.title(), strings.Join(strings.Fields(what), " "))
	var details []string
	if len(sk.tags) > 0 {
		details = append(details, "Tags: "+strings.Join(sk.tags, ", "))
	}
	if len(sk.examples) > 0 {
		details = append(details, "Examples: "+strings.Join(sk.examples[:min(len(sk.examples), 3)], " | "))
	}
	return translate.DescriptionFromPurpose(purpose, details...)
}

// knownFromSchema lists the top-level property names of a schema in its order.
func knownFromSchema(raw json.RawMessage) []string {
	var root struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &root) != nil || len(root.Properties) == 0 || root.Properties[0] != '{' {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(root.Properties))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	var names []string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return names
		}
		name, _ := key.(string)
		names = append(names, name)
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			return names
		}
	}
	return names
}

// Catalogue returns what a view shows, nil for a profile that is not
// configured. The pointer is the same while nothing of it changes.
func (s *Service) Catalogue(v View) *Catalogue { return s.state.Load().catalogue(v) }

// maxViews bounds the catalogues kept; views come from the configuration, so
// more than a few mean trouble elsewhere.
const maxViews = 1024

func (st *state) catalogue(v View) *Catalogue {
	st.viewMu.Lock()
	defer st.viewMu.Unlock()
	if c, ok := st.views[v]; ok {
		return c
	}
	c := st.newCatalogue(v)
	if len(st.views) < maxViews {
		st.views[v] = c
	}
	return c
}

// adopt makes the catalogues that old had, keeping those that have not
// changed, and reports whether any has. Agents that come and go change the
// lists of the zero View at least, which is always looked at.
func (st *state) adopt(old *state) bool {
	old.viewMu.Lock()
	views := make(map[View]*Catalogue, len(old.views)+1)
	for v, c := range old.views {
		views[v] = c
	}
	old.viewMu.Unlock()
	if _, ok := views[View{}]; !ok {
		views[View{}] = old.newCatalogue(View{})
	}
	st.viewMu.Lock()
	defer st.viewMu.Unlock()
	changed := false
	for v, was := range views {
		now := st.newCatalogue(v)
		if sameCatalogue(was, now) {
			now = was
		} else {
			changed = true
		}
		st.views[v] = now
	}
	return changed
}

// sameCatalogue compares what two catalogues show.
func sameCatalogue(a, b *Catalogue) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Instructions == b.Instructions && slices.EqualFunc(a.Tools, b.Tools, sameTool) &&
		reflect.DeepEqual(a.Prompts, b.Prompts) && slices.Equal(a.Resources, b.Resources) && slices.Equal(a.Templates, b.Templates)
}

func sameTool(a, b Tool) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description && a.Agent == b.Agent && a.Skill == b.Skill &&
		bytes.Equal(a.InputSchema, b.InputSchema) && bytes.Equal(a.OutputSchema, b.OutputSchema) && (a.OutputSchema == nil) == (b.OutputSchema == nil) &&
		reflect.DeepEqual(a.Annotations, b.Annotations) && len(a.Meta) == len(b.Meta)
}

// newCatalogue lists what a view shows.
func (st *state) newCatalogue(v View) *Catalogue {
	if v.Profile != "" {
		if _, ok := st.opts.Profiles[v.Profile]; !ok {
			return nil
		}
	}
	call := Call{Agents: st.scope(v)}
	agents := st.visible(&call)
	c := &Catalogue{Instructions: st.instructions(agents)}
	c.Tools = st.genericTools(aliasesOf(agents))
	var queryable []string
	for _, a := range agents {
		if a.exposes(ExposeQuery) {
			queryable = append(queryable, a.Alias)
		}
	}
	if len(queryable) > 0 {
		c.Tools = append(c.Tools, st.queryTool(queryable))
	}
	for _, t := range st.tools {
		if t.agent != nil && call.sees(t.agent.Alias) {
			c.Tools = append(c.Tools, t.shown)
		}
	}
	sort.Slice(c.Tools, func(i, j int) bool { return c.Tools[i].Name < c.Tools[j].Name })
	c.Prompts = st.prompts(agents)
	c.Resources = cardResources(agents)
	c.Templates = resourceTemplates()
	return c
}

// ResourceVersion returns a value that differs whenever the content of the
// resource differs; ok is false for one that cannot be watched.
func (s *Service) ResourceVersion(v View, uri string) (version string, ok bool) {
	st := s.state.Load()
	alias, ok := aliasFromCardURI(uri)
	if !ok {
		return "", false
	}
	scope := st.scope(v)
	a := st.byAlias[alias]
	if a == nil || scope != nil && !scope[alias] {
		return "", false
	}
	return cardVersion(a), true
}

// toolOf is the name of the tool that reaches a skill, "" when none is shown.
func (st *state) toolOf(a *agent, skill string) string {
	name := st.names[translate.Key{Agent: a.Alias, Skill: skill}]
	if t := st.tools[name]; t != nil && t.skill != nil {
		return name
	}
	return ""
}
