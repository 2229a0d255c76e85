package tools

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"a2agate/translate"
)

// nameRules is what each client makes of a tool's name before its model sees
// it, with the server called a2a, and what it or its model's provider then
// takes. A name that is not taken costs the tool, or the session.
var nameRules = []struct {
	client string
	prefix string
	odd    *regexp.Regexp // becomes "_"; nil for nothing
	taken  *regexp.Regexp
}{
	{"the specification", "", nil, regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)},
	{"Claude Code", "mcp__a2a__", regexp.MustCompile(`[^A-Za-z0-9_-]`), regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)},
	{"Claude Code, as a plugin", "mcp__plugin_a2agate_a2a__", regexp.MustCompile(`[^A-Za-z0-9_-]`), regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)},
	{"Cursor", "a2a:", nil, regexp.MustCompile(`^a2a:[A-Za-z0-9_-]{1,56}$`)}, // server and tool: 60
	{"Codex CLI", "mcp__a2a__", regexp.MustCompile(`[^A-Za-z0-9_-]`), regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)},
	{"Gemini CLI", "mcp_a2a_", regexp.MustCompile(`[^A-Za-z0-9_.:-]`), regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,62}$`)}, // longer ones lose their middle
	{"opencode", "a2a_", regexp.MustCompile(`[^A-Za-z0-9_-]`), regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)},
	{"VS Code", "mcp_a2a_", regexp.MustCompile(`[^a-z0-9_-]`), regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)},
	{"Windsurf and Zed", "", nil, regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)},
}

// oddAgents have the names, ids and texts that clients stumble over.
func oddAgents(t *testing.T) []AgentEntry {
	t.Helper()
	long := strings.Repeat("Ünïcode wörds without an end. ", 400)
	skills := []string{
		"ask|Ask|" + long, "Ask|Ask|Asks.", "天気|天気|w", "a.b:c/d e|Odd|Odd.", "__|U|u", strings.Repeat("very_long_id_", 20) + "|Long|" + long, "9|Nine|n",
		"../../etc/passwd|P|p", "ask-me|M|m", "ask_me|N|n",
	}
	var out []AgentEntry
	for _, alias := range []string{"Helper", "helper", "hel-per", "hel_per", "__", "mcp", "9lives", "a2a_send_message", strings.Repeat("z", 64), strings.Repeat("z", 63) + "y"} {
		out = append(out, stubEntry(t, alias, skillCard("Agent "+alias+" "+long, long, skills...)))
	}
	return out
}

func TestNamesForEveryClient(t *testing.T) {
	s := stubs(t, exposing(ExposeGeneric, ExposeAgents, ExposeSkills, ExposeQuery), oddAgents(t)...)
	c := s.Catalogue(View{})
	if len(c.Tools) != 5+10+100 || len(c.Prompts) != 100 {
		t.Fatalf("%d tools, %d prompts", len(c.Tools), len(c.Prompts))
	}
	names := namesOf(c)
	for _, p := range c.Prompts {
		if !strings.Contains(" "+strings.Join(names, " ")+" ", " "+p.Name+" ") {
			t.Errorf("prompt %s has another name than its tool", p.Name)
		}
	}
	for _, rule := range nameRules {
		seen := map[string]string{}
		for _, name := range names {
			made := rule.prefix + name
			if rule.odd != nil {
				made = rule.odd.ReplaceAllString(made, "_")
			}
			if !rule.taken.MatchString(made) {
				t.Errorf("%s does not take %q", rule.client, made)
			}
			if other, twice := seen[strings.ToLower(made)]; twice {
				t.Errorf("%s: %q and %q are one", rule.client, name, other)
			}
			seen[strings.ToLower(made)] = name
		}
	}
}

// Descriptions and instructions of more than 2 KB are cut by clients, in the
// middle of whatever stands there.
func TestTextsForEveryClient(t *testing.T) {
	c := stubs(t, exposing(ExposeGeneric, ExposeAgents, ExposeSkills, ExposeQuery), oddAgents(t)...).Catalogue(View{})
	texts := map[string]string{"instructions": c.Instructions}
	for _, tool := range c.Tools {
		texts["tool "+tool.Name] = tool.Description
		if n := utf8.RuneCountInString(tool.Title); n == 0 || n > 100 {
			t.Errorf("%s: a title of %d characters", tool.Name, n)
		}
	}
	for _, p := range c.Prompts {
		texts["prompt "+p.Name] = p.Description
	}
	for _, r := range append(c.Resources, c.Templates...) {
		texts["resource "+r.URI] = r.Description
	}
	for what, text := range texts {
		if text == "" || len(text) > 2048 || !utf8.ValidString(text) {
			t.Errorf("%s: %d bytes, %.60q", what, len(text), text)
		}
	}
}

// Keywords that some client or model refuses in a tool's schema, at which it
// drops the tool or ends the session.
func TestSchemasForEveryClient(t *testing.T) {
	rules := []struct {
		client  string
		refused []string // names of keywords, anywhere
		atRoot  []string
	}{
		{"strict models", []string{"$ref", "$defs", "not", "const", "format", "patternProperties", "unevaluatedProperties"}, []string{"anyOf", "oneOf", "allOf", "enum", "not"}},
		{"Gemini models", []string{"$ref", "$defs", "exclusiveMinimum", "exclusiveMaximum", "const", "oneOf", "allOf", "if", "prefixItems"}, nil},
	}
	var walk func(where string, schema any, visit func(where, keyword string, value any, root bool), root bool)
	walk = func(where string, schema any, visit func(where, keyword string, value any, root bool), root bool) {
		m, _ := schema.(map[string]any)
		for keyword, v := range m {
			visit(where, keyword, v, root)
			if props, ok := v.(map[string]any); ok && keyword == "properties" {
				for name, p := range props {
					walk(where+"."+name, p, visit, false)
				}
			} else if keyword == "items" {
				walk(where+"[]", v, visit, false)
			}
		}
	}
	for _, header := range []bool{false, true} {
		s := stubs(t, func(o *Options) {
			o.Expose, o.ParamHeaders = []Exposure{ExposeGeneric, ExposeAgents, ExposeSkills, ExposeQuery}, header
		}, oddAgents(t)...)
		for _, tool := range s.Catalogue(View{}).Tools {
			for _, raw := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
				if raw == nil {
					continue
				}
				var schema map[string]any
				if err := json.Unmarshal(raw, &schema); err != nil {
					t.Fatal(err)
				}
				wantEqual(t, tool.Name+" root", schema["type"], any("object"))
				walk(tool.Name, schema, func(where, keyword string, value any, root bool) {
					for _, rule := range rules {
						if contains(rule.refused, keyword) || root && contains(rule.atRoot, keyword) {
							t.Errorf("%s: %s at %s", rule.client, keyword, where)
						}
					}
					if _, list := value.([]any); keyword == "type" && list {
						t.Errorf("a list of types at %s", where)
					}
					if keyword == "type" && value == "array" && !strings.Contains(string(raw), `"items"`) {
						t.Errorf("an array without items at %s", where)
					}
				}, true)
			}
			if why := translate.SchemaCaution(tool.InputSchema); why != "" {
				t.Errorf("%s: %s", tool.Name, why)
			}
		}
	}
}
