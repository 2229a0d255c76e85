package tools

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"a2agate/translate"
)

// listed writes tools as tools/list does.
func listed(tools []Tool) string {
	var b strings.Builder
	for i, t := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		m := map[string]any{"name": t.Name, "description": t.Description, "inputSchema": t.InputSchema}
		if t.Title != "" {
			m["title"] = t.Title
		}
		if t.OutputSchema != nil {
			m["outputSchema"] = t.OutputSchema
		}
		if a := jsonValue(t.Annotations); a != "{}" {
			m["annotations"] = json.RawMessage(a)
		}
		if meta := translate.AppendMeta(nil, t.Meta); len(meta) > 0 {
			m["_meta"] = json.RawMessage(meta)
		}
		b.WriteString(jsonValue(m))
	}
	return b.String()
}

func toolNamed(t testing.TB, c *Catalogue, name string) Tool {
	t.Helper()
	for _, tool := range c.Tools {
		if tool.Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %q", name)
	return Tool{}
}

func namesOf(c *Catalogue) []string {
	var out []string
	for _, t := range c.Tools {
		out = append(out, t.Name)
	}
	return out
}

func TestFourTools(t *testing.T) {
	for _, n := range []int{0, 1, 2} {
		var entries []AgentEntry
		for i := range n {
			entries = append(entries, stubEntry(t, fmt.Sprintf("agent%d", i), skillCard("An agent", "Does things.")))
		}
		c := stubs(t, nil, entries...).Catalogue(View{})
		wantEqual(t, "names", strings.Join(namesOf(c), " "), "a2a_cancel_task a2a_discover a2a_get_task a2a_send_message")
		for _, tool := range c.Tools {
			var schema struct {
				Type                 string
				Properties           map[string]map[string]any
				Required             []string
				AdditionalProperties *bool
			}
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "type", schema.Type, "object")
			wantEqual(t, "closed", *schema.AdditionalProperties, false)
			if slices.Contains(schema.Required, "agent") {
				t.Errorf("%s requires agent, which a handle may name", tool.Name)
			}
			agent := schema.Properties["agent"]
			enum, _ := agent["enum"].([]any)
			wantEqual(t, tool.Name+" enum", len(enum), n)
			wantEqual(t, "default", agent["default"] != nil, n == 1)
			if n == 1 {
				wantText(t, fmt.Sprint(agent["description"]), "agent0")
			}
			if agent["x-mcp-header"] != nil {
				t.Error("a header annotation that nobody asked for")
			}
			if tool.Title == "" || tool.Description == "" || len(tool.Description) > 2048 {
				t.Errorf("%s: title %q, %d bytes of description", tool.Name, tool.Title, len(tool.Description))
			}
			if strings.ContainsAny(tool.Description+string(tool.InputSchema)+c.Instructions, "\u2013\u2014") {
				t.Errorf("%s has a long dash", tool.Name)
			}
			meta := string(translate.AppendMeta(nil, tool.Meta))
			wantEqual(t, "_meta", meta, `{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":200000}`)
			wantEqual(t, tool.Name+" outputSchema", tool.OutputSchema != nil, tool.Name == ToolDiscover)
			readOnly := tool.Name == ToolDiscover || tool.Name == ToolGetTask
			wantEqual(t, tool.Name+" readOnly", *tool.Annotations.ReadOnlyHint, readOnly)
			wantEqual(t, tool.Name+" destructive", *tool.Annotations.DestructiveHint, !readOnly)
			wantEqual(t, tool.Name+" openWorld", *tool.Annotations.OpenWorldHint, true)
		}
		for _, name := range []string{ToolSend, ToolGetTask, ToolCancel} {
			d := toolNamed(t, c, name).Description
			for _, want := range []string{"andle", "15 minutes", "expired"} {
				wantText(t, d, want)
			}
		}
	}
}

// P07: keywords that some client or model refuses.
func TestPlainSchemas(t *testing.T) {
	banned := regexp.MustCompile(`"(\$ref|\$defs|anyOf|oneOf|allOf|not|const|format|exclusiveMinimum|exclusiveMaximum|pattern)"\s*:`)
	s := stubs(t, func(o *Options) { o.Expose = []Exposure{ExposeGeneric, ExposeAgents, ExposeSkills, ExposeQuery} }, fiftyAgents(t)[:3]...)
	for _, tool := range s.Catalogue(View{}).Tools {
		for _, schema := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
			if m := banned.Find(schema); m != nil {
				t.Errorf("%s: %s", tool.Name, m)
			}
		}
		if why := translate.SchemaProblem(tool.InputSchema); why != "" {
			t.Errorf("%s: %s", tool.Name, why)
		}
	}
}

func TestParamHeaders(t *testing.T) {
	s := stubs(t, func(o *Options) { o.ParamHeaders = true; o.Expose = []Exposure{ExposeAgents} }, stubEntry(t, "a", skillCard("A", "a")))
	for _, tool := range s.Catalogue(View{}).Tools {
		n := strings.Count(string(tool.InputSchema), `"x-mcp-header":"Agent"`)
		want := 1
		if tool.Agent != "" {
			want = 0
		}
		wantEqual(t, tool.Name, n, want)
	}
}

func TestHandleLifetimeInWords(t *testing.T) {
	for want, ttl := range map[string]string{"15 minutes": "15m", "90 seconds": "90s", "1 minute": "1m", "1 second": "1s", "60 minutes": "1h"} {
		d, _ := time.ParseDuration(ttl)
		wantEqual(t, ttl, durationWords(d), want)
	}
}

func TestInstructions(t *testing.T) {
	s := stubs(t, nil, stubEntry(t, "invoice", skillCard("Invoice Helper – EU", "x")), stubEntry(t, "dead", ""))
	text := s.Catalogue(View{}).Instructions
	for _, want := range []string{"A2A", "1.0", "invoice (Invoice Helper - EU)", "dead"} {
		wantText(t, text, want)
	}
	var many []AgentEntry
	for i := range 300 {
		many = append(many, stubEntry(t, fmt.Sprintf("an_agent_with_a_rather_long_alias_%03d", i), ""))
	}
	text = stubs(t, nil, many...).Catalogue(View{}).Instructions
	if len(text) > 2048 {
		t.Errorf("%d bytes", len(text))
	}
	if !regexp.MustCompile(`and \d+ more, see a2a_discover\.$`).MatchString(text) {
		t.Errorf("ends in %q", text[len(text)-60:])
	}
	wantText(t, stubs(t, nil).Catalogue(View{}).Instructions, "No agent is configured yet.")
	// Fifty aliases of common length all stand there.
	text = stubs(t, nil, fiftyAgents(t)...).Catalogue(View{}).Instructions
	for i := range 50 {
		wantText(t, text, fmt.Sprintf("agent_%02d", i))
	}
}

// P29 and issue 5: the list of fifty agents stays small.
func TestFiftyAgentsFitTheList(t *testing.T) {
	s := stubs(t, func(o *Options) { o.Expose = []Exposure{ExposeGeneric, ExposeAgents} }, fiftyAgents(t)...)
	c := s.Catalogue(View{})
	if n := len(listed(c.Tools)); n >= 20_000 {
		t.Errorf("%d bytes", n)
	}
	wantEqual(t, "tools", len(c.Tools), 54)
	wantEqual(t, "title", toolNamed(t, c, "agent_07").Title, "Agent number 7")
	wantText(t, toolNamed(t, c, "agent_07").Description, `Agent: Knows all`)
	few := stubs(t, func(o *Options) { o.Expose = []Exposure{ExposeGeneric, ExposeAgents} }, fiftyAgents(t)[:3]...)
	d := toolNamed(t, few.Catalogue(View{}), "agent_01").Description
	wantText(t, d, "Skills: Skill number 0: Does thing 0 of agent 1")
}

// Long names leave room for what the agents are for, within the same bound.
func TestFiftyLongNamesFitTheList(t *testing.T) {
	for _, c := range []struct {
		alias, name string
		title       int // characters
	}{
		{"agent-%02d", "Agent %d of the finance department", 30},
		{"agent_with_a_long_name_in_the_file_%02d", "The %dth agent of the department of finance and administration", 20},
		{strings.Repeat("Z", 60) + "%02d", strings.Repeat("Ünïcode ", 10) + "%d", 20},
	} {
		var entries []AgentEntry
		for i := range 50 {
			card := skillCard(fmt.Sprintf(c.name, i), "Answers questions about invoices, orders and deliveries.", "a|A|a", "b|B|b", "c|C|c", "d|D|d", "e|E|e", "f|F|f")
			if i%5 == 4 {
				card = "" // down, not read yet
			}
			entries = append(entries, stubEntry(t, fmt.Sprintf(c.alias, i), card))
		}
		got := stubs(t, exposing(ExposeGeneric, ExposeAgents), entries...).Catalogue(View{})
		if n := len(listed(got.Tools)); n >= 19_700 { // and what stands around the list
			t.Errorf("%s: %d bytes", c.alias, n)
		}
		for _, tool := range got.Tools {
			if tool.Agent == "" || tool.Description == "Agent: no description yet; a2a_discover shows…" || strings.HasPrefix(tool.Description, "Agent: no description yet") {
				continue
			}
			wantText(t, tool.Description, "Agent: Answers questions about invoices")
			if n := utf8.RuneCountInString(tool.Title); n < c.title {
				t.Errorf("%s: a title of %d characters", tool.Name, n)
			}
		}
	}
}

// P06: names that every client takes, unique and stable.
func TestNames(t *testing.T) {
	aliases := []string{"Zurich-Finanz-Analyse-Reporting-Assistant-v2-interne-Testumgebung", "Helper", "helper", "__", "mcp", "a2a_discover", "a2a_query", "a", "a_b"}
	pattern := regexp.MustCompile(`^[a-z][a-z0-9_-]{0,49}$`)
	entries := func(order []string) []AgentEntry {
		var out []AgentEntry
		for _, alias := range order {
			skills := []string{"ask|Ask|Asks.", "Ask|Ask|Asks.", "天気|W|w", "b_c|BC|bc", "c|C|c"}
			out = append(out, stubEntry(t, alias, skillCard(alias, "x", skills...)))
		}
		return out
	}
	all := func(o *Options) { o.Expose = []Exposure{ExposeGeneric, ExposeAgents, ExposeSkills, ExposeQuery} }
	tools := func(s *Service) map[string]string {
		out := map[string]string{}
		lower := map[string]bool{}
		for _, tool := range s.Catalogue(View{}).Tools {
			if !pattern.MatchString(tool.Name) {
				t.Errorf("name %q", tool.Name)
			}
			if lower[strings.ToLower(tool.Name)] {
				t.Errorf("%q twice", tool.Name)
			}
			lower[strings.ToLower(tool.Name)] = true
			out[tool.Agent+"/"+tool.Skill+"/"+map[bool]string{true: tool.Name}[tool.Agent == ""]] = tool.Name
		}
		return out
	}
	first := tools(stubs(t, all, entries(aliases)...))
	reversed := slices.Clone(aliases)
	slices.Reverse(reversed)
	for key, name := range tools(stubs(t, all, entries(reversed)...)) {
		wantEqual(t, key, name, first[key])
	}
	for key, name := range tools(stubs(t, all, entries(aliases[2:4])...)) {
		if strings.HasPrefix(key, "helper/") || strings.HasPrefix(key, "__/") {
			wantEqual(t, key, name, first[key])
		}
	}
	wantEqual(t, "verbatim", first["helper//"], "helper")
	wantEqual(t, "verbatim skill", first["helper/ask/"], "helper_ask")
	prefix := ""
	bare := stubs(t, func(o *Options) { o.Expose = []Exposure{ExposeSkills}; o.ToolPrefix = &prefix }, entries([]string{"helper"})...)
	wantEqual(t, "no prefix", toolNamed(t, bare.Catalogue(View{}), "ask").Skill, "ask")
	own := "own-"
	mixed := entries([]string{"helper", "other"})
	mixed[1].ToolPrefix = &own
	each := stubs(t, func(o *Options) { o.Expose = []Exposure{ExposeSkills}; o.ToolPrefix = &prefix }, mixed...).Catalogue(View{})
	wantEqual(t, "the gateway's prefix", toolNamed(t, each, "ask").Agent, "helper")
	wantEqual(t, "the agent's own prefix", toolNamed(t, each, "own-ask").Agent, "other")
}

func TestViews(t *testing.T) {
	profiles := func(o *Options) {
		o.Expose = []Exposure{ExposeGeneric, ExposeAgents}
		o.Profiles = map[string][]string{"finance": {"invoice", "tax"}, "empty": {}}
	}
	s := stubs(t, profiles, stubEntry(t, "invoice", skillCard("I", "i", "a|A|a")), stubEntry(t, "tax", skillCard("T", "t", "a|A|a")), stubEntry(t, "travel", skillCard("V", "v", "a|A|a")))
	for _, tt := range []struct {
		view View
		want string
	}{
		{View{}, "invoice tax travel"},
		{View{Profile: "finance"}, "invoice tax"},
		{View{Agents: "tax,travel"}, "tax travel"},
		{View{Profile: "finance", Agents: "tax,travel"}, "tax"},
		{View{Profile: "empty"}, ""},
		{View{Agents: "nobody"}, ""},
	} {
		c := s.Catalogue(tt.view)
		var own []string
		for _, tool := range c.Tools {
			if tool.Agent != "" {
				own = append(own, tool.Name)
			}
		}
		wantEqual(t, fmt.Sprint(tt.view), strings.Join(own, " "), tt.want)
		for _, alias := range []string{"invoice", "tax", "travel"} {
			in := slices.Contains(strings.Fields(tt.want), alias)
			wantEqual(t, "enum", strings.Contains(string(toolNamed(t, c, ToolSend).InputSchema), `"`+alias+`"`), in)
			wantEqual(t, "instructions", strings.Contains(c.Instructions, alias), in)
			scope := s.Scope(tt.view)
			wantEqual(t, "scope", scope == nil || scope[alias], in)
		}
		wantEqual(t, "prompts", len(c.Prompts), len(strings.Fields(tt.want)))
		wantEqual(t, "resources", len(c.Resources), len(strings.Fields(tt.want)))
		if s.Catalogue(tt.view) != c {
			t.Error("another pointer for the same view")
		}
	}
	if s.Catalogue(View{Profile: "nope"}) != nil || len(s.Scope(View{Profile: "nope"})) != 0 {
		t.Error("a profile out of nothing")
	}
	// What a view does not list it cannot call either.
	out := s.Call(t.Context(), Call{Principal: "p", Tool: "travel", Agents: s.Scope(View{Profile: "finance"}), Arguments: json.RawMessage(`{"message":"x"}`)}, nil)
	if out.Err == nil || !strings.HasPrefix(out.Err.Message, `unknown tool "travel"`) {
		t.Errorf("%+v", out)
	}
}

func TestLiveChanges(t *testing.T) {
	one := stubEntry(t, "one", skillCard("One", "First.", "a|A|a"))
	two := stubEntry(t, "two", skillCard("Two", "Second.", "a|A|a"))
	s := stubs(t, func(o *Options) { o.Expose = []Exposure{ExposeAgents} }, one)
	before := s.Catalogue(View{})
	wake, stop := s.Changed()
	defer stop()
	woken := func() bool {
		select {
		case <-wake:
			return true
		default:
			return false
		}
	}
	s.Refresh()
	one.Agent.(*stubAgent).status.Reason = "just a state"
	s.Refresh()
	if s.Catalogue(View{}) != before || woken() {
		t.Error("told of a change that is none")
	}
	if err := s.SetAgents([]AgentEntry{one, two}); err != nil {
		t.Fatal(err)
	}
	after := s.Catalogue(View{})
	if after == before || !woken() || woken() {
		t.Error("not told once of a real change")
	}
	toolNamed(t, after, "two")
	kept := s.state.Load().byAlias["one"].offer.skills
	one.Agent.(*stubAgent).card = nil
	s.Refresh()
	if !woken() || len(s.Catalogue(View{}).Prompts) != 1 {
		t.Error("a card that has gone does not show")
	}
	card := skillCard("One", "Changed.", "a|A|a", "b|B|b")
	one.Agent.(*stubAgent).card = stubEntry(t, "one", card).Agent.(*stubAgent).card
	s.Refresh()
	wantText(t, toolNamed(t, s.Catalogue(View{}), "one").Description, "Changed.")
	if err := s.SetAgents([]AgentEntry{two}); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "tools", len(s.Catalogue(View{}).Tools), 5)
	stop()
	for woken() {
	}
	if err := s.SetAgents(nil); err != nil || woken() {
		t.Error("told after the end", err)
	}
	if err := s.SetAgents([]AgentEntry{two, two}); err == nil || err.Error() != `tools: two agents have the alias "two"` {
		t.Error(err)
	}
	_ = kept
}

// A reload of one agent of fifty compiles one agent's schemas.
func TestReloadCostsOneAgent(t *testing.T) {
	entries := fiftyAgents(t)
	s := stubs(t, nil, entries...)
	old := s.state.Load()
	entries[3].Timeout = 5
	if err := s.SetAgents(entries); err != nil {
		t.Fatal(err)
	}
	now := s.state.Load()
	for alias, a := range now.byAlias {
		if len(a.offer.skills) > 0 && &a.offer.skills[0] != &old.byAlias[alias].offer.skills[0] {
			t.Errorf("%s was made anew", alias)
		}
	}
}

func TestCallsInFlightFinishOnWhatTheyBeganWith(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		done := make(chan answerSeen, 1)
		go func() { done <- g.send(`{"text":"slow 10 abc"}`) }()
		time.Sleep(2 * time.Second)
		if err := g.svc.SetAgents(nil); err != nil {
			t.Error(err)
		}
		got := <-done
		wantEqual(t, "status", got.str("status"), "completed")
		got = g.send(`{"taskHandle":"` + got.str("taskHandle") + `","text":"more"}`)
		wantText(t, got.first, `belongs to agent "demo", which is no longer configured`)
	})
}

func TestBadOptions(t *testing.T) {
	table, _ := newTable()
	good := stubEntry(t, "a", "")
	for want, o := range map[string]Options{
		"tools: Options.Handles is needed":                              {},
		`tools: expose "tools" is not generic, agents, skills or query`: {Handles: table, Expose: []Exposure{"tools"}},
		`tools: structuredContent "yes" is not auto, always or never`:   {Handles: table, Structured: "yes"},
		`tools: agents[0] "b" needs an alias, an agent and a follower`:  {Handles: table, Agents: []AgentEntry{{Alias: "b"}}},
		`tools: agents.a.tasks "maybe" is not auto, never or required`:  {Handles: table, Agents: []AgentEntry{{Alias: "a", Agent: good.Agent, Follow: good.Follow, Tasks: "maybe"}}},
	} {
		if _, err := New(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func BenchmarkCatalogue(b *testing.B) {
	s := stubs(b, func(o *Options) { o.Expose = []Exposure{ExposeGeneric, ExposeAgents, ExposeSkills} }, fiftyAgents(b)...)
	for b.Loop() {
		if s.Catalogue(View{}) == nil {
			b.Fatal("none")
		}
	}
}

// One agent of fifty has a new card each time.
func BenchmarkRefresh(b *testing.B) {
	entries := fiftyAgents(b)
	s := stubs(b, func(o *Options) { o.Expose = []Exposure{ExposeGeneric, ExposeAgents, ExposeSkills} }, entries...)
	s.Catalogue(View{})
	one := entries[0].Agent.(*stubAgent)
	for b.Loop() {
		card := *one.card
		one.card = &card
		s.Refresh()
	}
}
