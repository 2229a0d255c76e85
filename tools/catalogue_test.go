package tools

import (
	"encoding/json"
	"strings"
	"testing"
)

// wholeCard says everything that a catalogue shows of an agent, some of it in a
// way that must not be seen as it stands.
const wholeCard = `{"name":"Invoice\u202e Helper","description":"Answers questions\u0007 about invoices.","version":"2.1.0",
"supportedInterfaces":[{"url":"http://x.test/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
"capabilities":{"extensions":[{"uri":"urn:a2agate:ext:tools:1","params":{"skills":{"ask":{
 "inputSchema":{"type":"object","properties":{"q":{"type":"string","title":"Que\u200bstion","description":"What\u001b[31m to ask","examples":["Who?"]},"year":{"enum":["2024","2025"]}},"required":["q"]},
 "outputSchema":{"type":"object","properties":{"sum":{"type":"number"}}}}}}}]},
"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
"skills":[{"id":"ask","name":"As\u200bk","description":"Answer one\u0000 question.","tags":["fin\u202eance"],"examples":["Who sent\u0007 4711?"]}]}`

// Everything that a client is shown of an agent: names, titles with the agent's
// own words, attributed and cleaned descriptions, hints, sizes.
func TestWholeCatalogue(t *testing.T) {
	s := stubs(t, exposing(ExposeAgents, ExposeSkills, ExposeQuery), stubEntry(t, "invoice_helper", wholeCard))
	c := s.Catalogue(View{})
	const size = `"_meta":{"anthropic/maxResultSizeChars":200000},`
	const hints = `"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true},`
	agent := toolNamed(t, c, "invoice_helper")
	wantEqual(t, "agent tool", listed([]Tool{agent}), `{`+size+hints+
		`"description":"Agent \"Invoice Helper\": Answers questions about invoices.\nSkills: Ask: Answer one question.",`+
		`"inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"What to ask or tell the agent."},`+
		`"start_fresh":{"type":"boolean","description":"true: begin a new conversation instead of going on with the last one."}},"required":["message"],"additionalProperties":false},`+
		`"name":"invoice_helper","title":"Invoice Helper"}`)
	skill := toolNamed(t, c, "invoice_helper_ask")
	// The schemas are the agent's, byte for byte: what is in them is not ours to clean.
	var params struct {
		Capabilities struct {
			Extensions []struct {
				Params struct {
					Skills map[string]struct{ InputSchema, OutputSchema json.RawMessage }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(wholeCard), &params); err != nil {
		t.Fatal(err)
	}
	declared := params.Capabilities.Extensions[0].Params.Skills["ask"]
	wantEqual(t, "input", string(skill.InputSchema), string(declared.InputSchema))
	wantEqual(t, "output", string(skill.OutputSchema), string(declared.OutputSchema))
	skill.InputSchema, skill.OutputSchema = json.RawMessage(`{}`), nil
	const description = `"Agent \"Invoice Helper\": Answer one question.\nTags: finance\nExamples: Who sent 4711?"`
	wantEqual(t, "skill tool", listed([]Tool{skill}), `{`+size+hints+`"description":`+description+`,"inputSchema":{},"name":"invoice_helper_ask","title":"Ask"}`)
	query := toolNamed(t, c, ToolQuery)
	wantText(t, listed([]Tool{query}), size+hints)
	wantText(t, query.Description, "WARNING")

	wantEqual(t, "prompts", jsonValue(c.Prompts), `[{"Name":"invoice_helper_ask","Title":"Ask","Description":`+description+`,"Arguments":[`+
		`{"name":"q","title":"Question","description":"What to ask","required":true},{"name":"year"}],"Agent":"invoice_helper","Skill":"ask"}]`)
	wantEqual(t, "resources", jsonValue(c.Resources), `[{"URI":"a2a://agents/invoice_helper/card","Name":"invoice_helper_card","Title":"Agent card of Invoice Helper",`+
		`"Description":"Agent \"Invoice Helper\": Answers questions about invoices.","MIMEType":"application/json"}]`)
	if !strings.HasSuffix(c.Instructions, "Agents: invoice_helper (Invoice Helper).") {
		t.Errorf("%s", c.Instructions)
	}
	for argument, want := range map[string]string{"q": "Who?", "year": "2024 2025", "none": ""} {
		r, err := s.Complete(t.Context(), View{}, "invoice_helper_ask", "", argument, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, argument, strings.Join(r.Values, " "), want)
	}
}

// Whatever of a catalogue changes is a change, and what stays the same is none.
func TestWhatCountsAsAChange(t *testing.T) {
	base := func() *Catalogue {
		return stubs(t, exposing(ExposeAgents, ExposeSkills), stubEntry(t, "a", wholeCard)).Catalogue(View{})
	}
	if !sameCatalogue(base(), base()) {
		t.Error("the same card is another catalogue")
	}
	if sameCatalogue(base(), nil) || !sameCatalogue(nil, nil) {
		t.Error("no catalogue is like one")
	}
	for name, edit := range map[string]func(c *Catalogue){
		"instructions": func(c *Catalogue) { c.Instructions += "x" },
		"name":         func(c *Catalogue) { c.Tools[0].Name += "x" },
		"title":        func(c *Catalogue) { c.Tools[0].Title += "x" },
		"description":  func(c *Catalogue) { c.Tools[0].Description += "x" },
		"input":        func(c *Catalogue) { c.Tools[0].InputSchema = json.RawMessage(`{"type":"object","x":1}`) },
		"output":       func(c *Catalogue) { c.Tools[0].OutputSchema = json.RawMessage(`{}`) },
		"hints":        func(c *Catalogue) { c.Tools[0].Annotations = annotations(true, true, true) },
		"meta":         func(c *Catalogue) { c.Tools[0].Meta = nil },
		"a tool less":  func(c *Catalogue) { c.Tools = c.Tools[1:] },
		"prompt":       func(c *Catalogue) { c.Prompts[0].Arguments[0].Description += "x" },
		"resource":     func(c *Catalogue) { c.Resources[0].Description += "x" },
		"template":     func(c *Catalogue) { c.Templates[0].Description += "x" },
	} {
		c := base()
		edit(c)
		if sameCatalogue(base(), c) {
			t.Errorf("another %s is no change", name)
		}
	}
}
