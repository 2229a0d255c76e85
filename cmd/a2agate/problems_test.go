package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"a2agate/fixtures"
)

// A schema that is not used is told of, once, in the log and on the status
// page: the operator sees why a skill takes words only.
func TestUnusedSchemaIsToldOf(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{NoDemoSkills: true, Skills: []fixtures.Skill{
		{ID: "sum", Name: "Sum", Description: "Sums.", Tags: []string{"x"}, InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://agent.test/s"}}}`)},
	}})
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,"expose":["generic","skills"]}}}`, agent.url))
	g.ready(t)
	const said = `inputSchema of skill \"sum\" is not used: $ref \"https://agent.test/s\" leaves the schema: only references that begin with # are followed`
	g.logged(t, `level=WARN msg="agent card" agent=demo note="`+strings.NewReplacer(`\`, `\\`, `$`, `\$`).Replace(said), 1)
	if page := g.get(t, "/api/status"); !strings.Contains(page, said) {
		t.Errorf("the status does not tell: %s", page)
	}
	agent.UpdateSkills(func([]fixtures.Skill) []fixtures.Skill {
		return []fixtures.Skill{{ID: "sum", Name: "Sum", Description: "Sums up.", Tags: []string{"x"}}}
	})
	g.call(t, "a2a_send_message", `{"text":"echo hi"}`) // after which the card is looked at again
	until(t, "the status is silent again", func() bool { return !strings.Contains(g.get(t, "/api/status"), "is not used") })
	g.logged(t, `is not used`, 1)
}
