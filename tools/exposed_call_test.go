package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/a2a"
	"a2agate/fixtures"
	"a2agate/translate"
)

func exposing(list ...Exposure) func(*Options) {
	return func(o *Options) { o.Expose = list }
}

func TestAgentToolKeepsTheConversation(t *testing.T) {
	for _, version := range []a2a.Version{a2a.V10, a2a.V03} {
		inBubble(t, func(t *testing.T) {
			g := newGateway(t, map[string]fixtures.Options{"demo": {Versions: []a2a.Version{version}}}, exposing(ExposeAgents))
			talk := func(message, more string, who string) answerSeen {
				t.Helper()
				return g.seen(g.call("demo", `{"message":`+jsonString(message)+more+`}`, func(c *Call) { c.Principal = who }))
			}
			first := talk("context", "", "ann").str("contextHandle")
			if first == "" {
				t.Fatal("no context")
			}
			wantEqual(t, "goes on", talk("context", "", "ann").str("contextHandle"), first)
			other := talk("context", "", "bob")
			if other.str("contextHandle") == first || strings.Contains(other.text, first) {
				t.Error("another principal is in the same conversation")
			}
			fresh := talk("context", `,"start_fresh":true`, "ann").str("contextHandle")
			if fresh == first {
				t.Error("start_fresh went on")
			}
			wantEqual(t, "goes on with the new one", talk("echo x", "", "ann").str("contextHandle"), fresh)

			asked := talk("ask size", "", "ann")
			wantEqual(t, "status", asked.str("status"), "input_required")
			got := talk("large", "", "ann")
			wantEqual(t, "answers the task that waits", got.first, "size = large")
			wantEqual(t, "the same task", got.str("taskHandle"), asked.str("taskHandle"))
			got = talk("echo on", "", "ann")
			wantEqual(t, "afterwards", got.first, "on")

			talk("ask size", "", "ann")
			got = talk("echo fresh", `,"start_fresh":true`, "ann")
			wantEqual(t, "start_fresh leaves the question alone", got.first, "fresh")

			// Long idle forgets the conversation, not the tool.
			time.Sleep(time.Hour)
			got = talk("context", "", "ann")
			wantEqual(t, "isError", got.IsError, false)
			if got.str("contextHandle") == fresh {
				t.Error("an expired conversation goes on")
			}
			bad := talk("", "", "ann")
			wantEqual(t, "empty", bad.first, `"message" is empty: say what to ask or tell the agent`)
			g.noComplaints()
		})
	}
}

func TestAgentToolAsks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, exposing(ExposeAgents))
		const arguments = `{"message":"ask size"}`
		q := g.asked(g.call("demo", arguments, as(formClient)))
		out := g.call(ToolSend, `{"text":"ask size"}`, retry(formClient, q.RequestState, yes))
		wantState(t, out, "it belongs to another tool")
		got := g.seen(g.call("demo", arguments, retry(formClient, q.RequestState, yes)))
		wantEqual(t, "answer", got.first, "size = large")
		got = g.seen(g.call("demo", `{"message":"echo next"}`, nil))
		wantEqual(t, "no longer on the task", got.first, "next")
		// Asked, but answered by the next plain call.
		g.asked(g.call("demo", arguments, as(formClient)))
		got = g.seen(g.call("demo", `{"message":"small"}`, nil))
		wantEqual(t, "answer", got.first, "size = small")
		g.noComplaints()
	})
}

const addSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"text":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`

func skillAgent(t *testing.T, edit func(*Options), skills ...fixtures.Skill) *gateway {
	t.Helper()
	return newGateway(t, map[string]fixtures.Options{"demo": {Skills: skills, NoDemoSkills: true}}, func(o *Options) {
		o.Expose = []Exposure{ExposeSkills}
		if edit != nil {
			edit(o)
		}
	})
}

func TestSkillTool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := skillAgent(t, nil,
			fixtures.Skill{ID: "add", Name: "Add", Description: "Adds.", InputSchema: json.RawMessage(addSchema)},
			fixtures.Skill{ID: "plain", Name: "Plain", Description: "Says it."})
		var seen fixtures.Message
		g.demo().OnCommand("add", func(_ context.Context, turn *fixtures.Turn) error {
			seen = turn.Message()
			wantEqual(t, "skill", turn.Skill(), "add")
			return turn.Reply(fixtures.Text("sum of " + string(turn.Arguments())))
		})
		tool := toolNamed(t, g.svc.Catalogue(View{}), "demo_add")
		var declared, shown any
		_ = json.Unmarshal([]byte(addSchema), &declared)
		_ = json.Unmarshal(tool.InputSchema, &shown)
		wantEqual(t, "schema", jsonValue(shown), jsonValue(declared))
		wantText(t, tool.Description, `Agent "Demo agent": Adds.`)

		const arguments = `{"b":2,"a":9007199254740993,"text":"add it"}`
		got := g.seen(g.call("demo_add", arguments, nil))
		wantText(t, got.first, "sum of ")
		wantEqual(t, "arguments, byte for byte", string(seen.Data()), arguments)
		wantEqual(t, "text part", seen.Text(), "add it")
		wantText(t, string(seen.Metadata), `"a2agate/skill":"add"`)

		bad := g.seen(g.call("demo_add", `{"a":"one","c":1}`, nil))
		wantEqual(t, "isError", bad.IsError, true)
		for _, want := range []string{`missing: "b"`, `"a" must be integer, not "one"`, `unknown argument "c"`} {
			wantText(t, bad.first, want)
		}
		bad = g.seen(g.call("demo_plain", `{}`, nil))
		wantEqual(t, "plain schema", bad.first, `missing: "text"`)
		wantEqual(t, "plain input", string(toolNamed(t, g.svc.Catalogue(View{}), "demo_plain").InputSchema), textSchema)
		g.noComplaints()
	})
}

func TestSkillSchemas(t *testing.T) {
	// The suite's schema has every keyword of 2020-12 that matters.
	rich := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"allOf":[{"anyOf":[{"required":["name"]},{"required":["address"]}]}],"if":{"properties":{"name":{"const":"x"}}},"then":{"required":["address"]},"else":{},"additionalProperties":false}`
	entry := func(schema, output string) AgentEntry {
		card := `{"name":"x","skills":[{"id":"s","name":"S","description":"d"}],"url":"http://x.test","capabilities":{"extensions":[{"uri":"` + ToolsExtension + `","params":{"skills":{"s":{"inputSchema":` + schema
		if output != "" {
			card += `,"outputSchema":` + output
		}
		return stubEntry(t, "x", card+`}}}}]}}`)
	}
	s := stubs(t, exposing(ExposeSkills), entry(rich, `{"type":"object"}`))
	tool := toolNamed(t, s.Catalogue(View{}), "x_s")
	wantEqual(t, "byte for byte", string(tool.InputSchema), rich)
	wantEqual(t, "output", string(tool.OutputSchema), `{"type":"object"}`)
	for name, bad := range map[string]string{
		"external":   `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`,
		"http":       `{"type":"object","$ref":"http://127.0.0.1:1/x"}`,
		"no object":  `{"type":"string"}`,
		"broken":     `{"type":"object","properties":5}`,
		"dialect":    `{"$schema":"http://example.com/my-dialect","type":"object"}`,
		"deep":       strings.Repeat(`{"type":"object","properties":{"a":`, 300) + `{}` + strings.Repeat(`}}`, 300),
		"bad header": `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"bad name"}}}`,
	} {
		s := stubs(t, exposing(ExposeSkills), entry(bad, ""))
		wantEqual(t, name, string(toolNamed(t, s.Catalogue(View{}), "x_s").InputSchema), textSchema)
		if p := s.Problems(); len(p) != 1 || p[0].Agent != "x" || !strings.HasPrefix(p[0].Text, `inputSchema of skill "s" is not used: `) {
			t.Errorf("%s: %q", name, p)
		}
	}
	// What the configuration says wins.
	e := entry(rich, "")
	e.Skills = map[string]SkillConfig{"s": {InputSchema: json.RawMessage(addSchema), Tasks: TasksRequired}}
	s = stubs(t, func(o *Options) { o.Expose = []Exposure{ExposeSkills}; o.Tasks = &taskSink{} }, e)
	wantEqual(t, "configured", string(toolNamed(t, s.Catalogue(View{}), "x_s").InputSchema), addSchema)
	out := s.Call(t.Context(), Call{Tool: "x_s", Arguments: json.RawMessage(`{"a":1,"b":2}`)}, nil)
	if out.Err == nil || out.Err.Code != translate.CodeMissingCapability {
		t.Errorf("%+v", out)
	}
}

// A schema that cannot be checked in any time costs a call two seconds, not
// the gateway a processor for ever.
func TestEndlessSchemas(t *testing.T) {
	doubling := func(leaf string) json.RawMessage {
		var b strings.Builder
		b.WriteString(`{"type":"object","$defs":{`)
		for i := range 60 {
			fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
		}
		b.WriteString(`"d60":` + leaf + `},"$ref":"#/$defs/d0"}`)
		return json.RawMessage(b.String())
	}
	for name, leaf := range map[string]string{"fits": `{"type":"object"}`, "does not fit": `{"required":["nothing"]}`, "anything": `true`} {
		c, err := compileSchema(doubling(leaf))
		if err != nil {
			t.Fatal(err)
		}
		for _, limit := range []func(){func() { c.patience = 20 * time.Millisecond }, func() { c.patience, c.steps = time.Hour, 1000 }} {
			limit()
			if err := c.check(map[string]any{"a": true}); err != errEndlessCheck {
				t.Errorf("%s: %v", name, err)
			}
		}
		args := arguments{value: map[string]any{"a": true}}
		wantEqual(t, name, args.check(c, nil), "the arguments cannot be checked in time against the tool's schema: send less text or fewer values")
		if (&tool{output: c}).conforms(json.RawMessage(`{"a":true}`)) {
			t.Errorf("%s: an answer fits", name)
		}
	}
	// A large value is no endless one.
	c, err := compileSchema(json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","minimum":0}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 50_000)
	for i := range list {
		list[i] = json.Number("7")
	}
	c.patience = time.Hour
	if err := c.check(map[string]any{"a": list}); err != nil {
		t.Error(err)
	}
}

func TestOutputSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`
	inBubble(t, func(t *testing.T) {
		g := skillAgent(t, nil, fixtures.Skill{ID: "sum", Name: "Sum", Description: "Sums.", OutputSchema: json.RawMessage(schema), InputSchema: json.RawMessage(`{"type":"object"}`)})
		compiled, err := compileSchema(json.RawMessage(schema))
		if err != nil {
			t.Fatal(err)
		}
		tests := []struct {
			name       string
			play       fixtures.Handler
			structured string
			isError    bool
			text       string
		}{
			{"fits", func(_ context.Context, turn *fixtures.Turn) error {
				return turn.Reply(fixtures.Data(json.RawMessage(`{"sum": 9007199254740993, "b":1}`)))
			}, `{"sum":`, false, ""},
			{"does not fit", func(_ context.Context, turn *fixtures.Turn) error {
				return turn.Reply(fixtures.Data(json.RawMessage(`{"sum":"many"}`)))
			}, "", true, "does not fit the output schema"},
			{"no data", func(_ context.Context, turn *fixtures.Turn) error { return turn.Reply(fixtures.Text("five")) }, "", true, "five"},
			{"fails", func(_ context.Context, turn *fixtures.Turn) error { return turn.Fail(fixtures.Text("no")) }, "", true, "no"},
			{"asks", func(_ context.Context, turn *fixtures.Turn) error {
				_, err := turn.Ask(fixtures.Text("which?"))
				return err
			}, "", true, "which?"},
			{"works", func(_ context.Context, turn *fixtures.Turn) error {
				_ = turn.Working("on it")
				return turn.Sleep(10 * time.Minute)
			}, "", true, "still working"},
		}
		for _, tt := range tests {
			g.demo().OnCommand("sum", tt.play)
			got := g.seen(g.call("demo_sum", `{"x":1}`, nil))
			wantEqual(t, tt.name, got.IsError, tt.isError)
			wantText(t, got.text, tt.text)
			if got.Structured == nil {
				wantEqual(t, tt.name+": structured", "", tt.structured)
				if !got.IsError {
					t.Errorf("%s: a client would refuse it", tt.name)
				}
				continue
			}
			wantText(t, string(got.Structured), tt.structured)
			v, err := decodeExact(got.Structured)
			if err != nil || compiled.check(v) != nil {
				t.Errorf("%s: breaks the declared schema: %s", tt.name, got.Structured)
			}
		}
	})
	// What cannot be compared with the schema does not fit.
	check, err := compileSchema(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	tool := &tool{output: check}
	for _, n := range []string{strings.Repeat("9", 3<<20), "1e999999999", "1e-999999999"} {
		if tool.conforms(json.RawMessage(`{"sum":` + n + `}`)) {
			t.Errorf("%.20s fits", n)
		}
	}
	// Without structuredContent no output schema is declared either.
	inBubble(t, func(t *testing.T) {
		g := skillAgent(t, func(o *Options) { o.Structured = translate.StructuredNever },
			fixtures.Skill{ID: "sum", Name: "Sum", Description: "Sums.", OutputSchema: json.RawMessage(schema)})
		for _, tool := range g.svc.Catalogue(View{}).Tools {
			if tool.OutputSchema != nil {
				t.Errorf("%s declares one", tool.Name)
			}
		}
		got := g.seen(g.call(ToolDiscover, `{}`, nil))
		wantEqual(t, "structured", got.Structured == nil, true)
		wantText(t, got.text, `{"agents":[{"alias":"demo"`)
	})
}

func TestSkillToolTasks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g *gateway
		g = newGateway(t, map[string]fixtures.Options{"demo": {NoDemoSkills: true, Skills: []fixtures.Skill{
			{ID: "must", Name: "Must", Description: "A task.", Tasks: "required"},
			{ID: "never", Name: "Never", Description: "No task.", Tasks: "never"},
		}}}, func(o *Options) {
			withTasks(&g, "", 0)(o)
			o.Expose = []Exposure{ExposeSkills}
		})
		work := func(_ context.Context, turn *fixtures.Turn) error {
			_ = turn.Working("on it")
			if err := turn.Sleep(20 * time.Second); err != nil {
				return err
			}
			return turn.Complete(fixtures.Text("done"))
		}
		g.demo().OnCommand("must", work)
		g.demo().OnCommand("never", work)
		out := g.call("demo_must", `{"text":"x"}`, as(taskClient))
		if out.Task == nil {
			t.Errorf("%+v", out)
		}
		wantEqual(t, "tool", g.tasks.created[0].tool, "demo_must")
		out = g.call("demo_must", `{"text":"x"}`, nil)
		if out.Err == nil || out.Err.Code != translate.CodeMissingCapability {
			t.Errorf("%+v", out)
		}
		got := g.seen(g.call("demo_never", `{"text":"x"}`, as(taskClient)))
		wantEqual(t, "status", got.str("status"), "completed")
	})
}

func TestQuery(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, exposing(ExposeQuery))
		tool := toolNamed(t, g.svc.Catalogue(View{}), ToolQuery)
		wantText(t, tool.Description, "WARNING")
		wantEqual(t, "destructive", *tool.Annotations.DestructiveHint, true)
		wantEqual(t, "read only", *tool.Annotations.ReadOnlyHint, false)
		got := g.seen(g.call(ToolQuery, `{"method":"ListTasks","params":{"pageSize":5}}`, nil))
		wantEqual(t, "isError", got.IsError, false)
		wantText(t, got.first, `"tasks"`)
		wantEqual(t, "structured", string(got.Structured), `{"agent":"demo","result":`+got.first+`}`)
		got = g.seen(g.call(ToolQuery, `{"agent":"demo","method":"NoSuchMethod"}`, nil))
		wantEqual(t, "isError", got.IsError, true)
		wantText(t, got.first, "-32601")
		got = g.seen(g.call(ToolQuery, `{"agent":"demo","method":""}`, nil))
		wantText(t, got.first, `"method" must be the name`)
		got = g.seen(g.call(ToolQuery, `{"agent":"demo","method":"x","params":[1]}`, nil))
		wantEqual(t, "params", got.first, `"params" must be object, not an array`)
	})
}

func TestPrompts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGateway(t, map[string]fixtures.Options{"demo": {NoDemoSkills: true, Skills: []fixtures.Skill{
			{ID: "add", Name: "Add", Description: "Adds.", InputSchema: json.RawMessage(addSchema)},
			{ID: "plain", Name: "Plain", Description: "Says it.", Examples: []string{"Who sent invoice 4711?", "Where is it?"}},
		}}}, nil)
		c := g.svc.Catalogue(View{})
		wantEqual(t, "prompts", len(c.Prompts), 2)
		wantEqual(t, "name", c.Prompts[0].Name, "demo_add")
		wantEqual(t, "arguments", fmt.Sprintf("%d %s %v", len(c.Prompts[0].Arguments), c.Prompts[0].Arguments[0].Name, c.Prompts[0].Arguments[0].Required), "3 a true")
		get := func(name string, args map[string]string) string {
			t.Helper()
			r, err := g.svc.GetPrompt(t.Context(), View{}, name, args)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "role", r.Messages[0].Role, mcp.RoleUser)
			return r.Messages[0].Content.(mcp.TextContent).Text
		}
		wantText(t, get("demo_plain", map[string]string{"text": `say "hi" \ to all`}),
			`Call the tool a2a_send_message (agent "Demo agent", skill "Plain") with these arguments:`+"\n"+
				`{"agent":"demo","text":"say \"hi\" \\ to all","metadata":{"a2agate/skill":"plain"}}`)
		wantText(t, get("demo_add", map[string]string{"a": "1", "b": "2", "text": "3"}), `"text":"{\"a\":1,\"b\":2,\"text\":\"3\"}"`)
		// Where the skill has a tool, the prompt names it.
		if err := g.svc.Reconfigure(Options{Agents: g.opts.Agents, Expose: []Exposure{ExposeSkills}}); err != nil {
			t.Fatal(err)
		}
		wantText(t, get("demo_add", map[string]string{"a": "1", "b": "2"}), "Call the tool demo_add (agent \"Demo agent\", skill \"Add\") with these arguments:\n"+`{"a":1,"b":2}`)
		for name, args := range map[string]map[string]string{"nope": nil, "demo_add": {"a": "1"}, "demo_plain": {"text": " "}} {
			_, err := g.svc.GetPrompt(t.Context(), View{}, name, args)
			var bad *translate.Error
			if !errors.As(err, &bad) || bad.Code != translate.CodeInvalidParams {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := g.svc.GetPrompt(t.Context(), View{Agents: "other"}, "demo_add", nil); err == nil {
			t.Error("a prompt of a hidden agent")
		}
		wantEqual(t, "calls to the agent", len(g.demo().Requests()), 0)

		complete := func(prompt, template, argument, value string) string {
			t.Helper()
			r, err := g.svc.Complete(t.Context(), View{}, prompt, template, argument, value, nil)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Join(r.Values, "|")
		}
		wantEqual(t, "examples", complete("demo_plain", "", "text", "wh"), "Who sent invoice 4711?|Where is it?")
		wantEqual(t, "examples", complete("demo_plain", "", "text", "invoice"), "Who sent invoice 4711?")
		wantEqual(t, "aliases", complete("", cardTemplate, "alias", "de"), "demo")
		wantEqual(t, "handles are secret", complete("", artifactTemplate, "taskHandle", "tk_"), "")
		for _, ref := range [][2]string{{"nope", ""}, {"", "a2a://nope/{x}"}} {
			if _, err := g.svc.Complete(t.Context(), View{}, ref[0], ref[1], "x", "", nil); err == nil {
				t.Errorf("%v", ref)
			}
		}
	})
}

func TestResources(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		read := func(principal string, v View, uri string) ([]mcp.ResourceContents, *translate.Error) {
			t.Helper()
			r, err := g.svc.ReadResource(t.Context(), principal, v, uri)
			var bad *translate.Error
			if err != nil && !errors.As(err, &bad) {
				t.Fatalf("%s: %v", uri, err)
			}
			return r, bad
		}
		c := g.svc.Catalogue(View{})
		wantEqual(t, "uri", c.Resources[0].URI, "a2a://agents/demo/card")
		got, _ := read("local", View{}, c.Resources[0].URI)
		card := got[0].(mcp.TextResourceContents)
		wantEqual(t, "card", card.Text, string(g.demo().card.Raw))
		wantEqual(t, "type", card.MIMEType, "application/json")

		sent := g.send(`{"text":"task abc"}`)
		id, _ := sent.envelope["artifacts"].([]any)[0].(map[string]any)["artifactId"].(string)
		uri := translate.ArtifactURI(sent.str("taskHandle"), id)
		got, _ = read("local", View{}, uri)
		wantEqual(t, "artifact", got[0].(mcp.TextResourceContents).Text, "cba")
		for name, tt := range map[string]struct {
			principal string
			view      View
			uri       string
		}{
			"foreign":       {"mallory", View{}, uri},
			"hidden":        {"local", View{Agents: "other"}, uri},
			"no artifact":   {"local", View{}, translate.ArtifactURI(sent.str("taskHandle"), "nope")},
			"unknown":       {"local", View{}, "a2a://nope"},
			"other scheme":  {"local", View{}, "file:///etc/passwd"},
			"climbing":      {"local", View{}, "a2a://agents/../demo/card"},
			"hidden card":   {"local", View{Agents: "other"}, "a2a://agents/demo/card"},
			"unknown agent": {"local", View{}, "a2a://agents/nobody/card"},
			"no handle":     {"local", View{}, "a2a://tasks/x/artifacts/y"},
		} {
			_, bad := read(tt.principal, tt.view, tt.uri)
			if bad == nil {
				t.Errorf("%s: read", name)
				continue
			}
			wantEqual(t, name, bad.Code, translate.CodeInvalidParams)
			wantEqual(t, name, string(bad.Data), `{"uri":`+jsonString(tt.uri)+`}`)
		}
		v1, ok := g.svc.ResourceVersion(View{}, "a2a://agents/demo/card")
		wantEqual(t, "watchable", ok, true)
		card2, _ := a2a.ParseCard([]byte(`{"name":"New","url":"http://x.test"}`))
		g.demo().setCard(card2, nil, a2a.AgentStatus{State: a2a.AgentReady})
		g.svc.Refresh()
		if v2, _ := g.svc.ResourceVersion(View{}, "a2a://agents/demo/card"); v1 == v2 {
			t.Error("the version stays when the card changes")
		}
		if _, ok := g.svc.ResourceVersion(View{Agents: "other"}, "a2a://agents/demo/card"); ok {
			t.Error("a hidden card is watchable")
		}
	})
}
