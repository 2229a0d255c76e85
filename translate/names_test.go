package translate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var everywhere = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// Names that clients take, and that each depends on its alias alone.
func TestAgentNames(t *testing.T) {
	aliases := []string{"Zürich Finanz-Analyse & Reporting Assistant (v2) — interne Testumgebung", "Helper", "helper", "天気", "__", "mcp"}
	names := NamesFromKeys(keysOf(aliases), nil)
	seen := map[string]bool{}
	for _, a := range aliases {
		n := names[Key{Agent: a}]
		if !everywhere.MatchString(n) || seen[n] {
			t.Errorf("%q is called %q", a, n)
		}
		if n != ToolNameFromAlias(a) {
			t.Errorf("%q is called %q here and %q there", a, n, ToolNameFromAlias(a))
		}
		seen[n] = true
	}
	if names[Key{Agent: "helper"}] != "helper" || names[Key{Agent: "mcp"}] != "mcp" {
		t.Errorf("a valid alias is not kept: %v", names)
	}
	if n := names[Key{Agent: "Helper"}]; !regexp.MustCompile(`^helper_[0-9a-f]{6}$`).MatchString(n) {
		t.Errorf("Helper is called %s", n)
	}
	if n := names[Key{Agent: "天気"}]; !strings.HasPrefix(n, "agent_") {
		t.Errorf("天気 is called %s", n)
	}
}

func keysOf(aliases []string) []Key {
	keys := make([]Key, 0, len(aliases))
	for _, a := range aliases {
		keys = append(keys, Key{Agent: a})
	}
	return keys
}

func TestSingleNames(t *testing.T) {
	for alias, want := range map[string]string{
		"my-agent":              "my-agent",
		"a":                     "a",
		strings.Repeat("a", 40): strings.Repeat("a", 40),
		strings.Repeat("a", 41): strings.Repeat("a", 33) + "_" + ToolNameFromAlias(strings.Repeat("a", 41))[34:],
		"7up":                   "agent_7up_" + ToolNameFromAlias("7up")[10:],
		"myAgentX":              "my_agent_x_" + ToolNameFromAlias("myAgentX")[11:],
	} {
		if got := ToolNameFromAlias(alias); got != want || len(got) > AgentNameLen {
			t.Errorf("%q: %q, want %q", alias, got, want)
		}
	}
	for _, c := range []struct{ prefix, skill, want string }{
		{"demo_", "test_simple_text", "demo_test_simple_text"},
		{"", "json_schema_2020_12_tool", "json_schema_2020_12_tool"},
		{"", "get-weather", "get-weather"},
		{"demo_", "longTask", `^demo_long_task_[0-9a-f]{6}$`},
		{"demo_", "", `^demo_skill_[0-9a-f]{6}$`},
		{"", "2fa", `^skill_2fa_[0-9a-f]{6}$`},
		{"", "日本", `^skill_[0-9a-f]{6}$`},
		{strings.Repeat("p", 60) + "_", strings.Repeat("s", 60), `^p{21}_s{21}_[0-9a-f]{6}$`},
		{"demo_", strings.Repeat("s", 60), `^demo_s{38}_[0-9a-f]{6}$`},
		{strings.Repeat("p", 60) + "_", "ask", `^p{39}_ask_[0-9a-f]{6}$`},
	} {
		got := ToolNameFromSkill(c.prefix, c.skill, "demo")
		ok := got == c.want || strings.HasPrefix(c.want, "^") && regexp.MustCompile(c.want).MatchString(got)
		if !ok || len(got) > SkillNameLen {
			t.Errorf("%q %q: %q, want %q", c.prefix, c.skill, got, c.want)
		}
	}
}

// Names are unique, valid and the same in any order and beside any others.
func TestNamesAreStable(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var keys []Key
	for a := range 50 {
		alias := fmt.Sprintf("Agent %d", a)
		if a%2 == 0 {
			alias = fmt.Sprintf("agent%d", a)
		}
		keys = append(keys, Key{Agent: alias})
		for s := range 6 {
			keys = append(keys, Key{Agent: alias, Skill: fmt.Sprintf("skill %d", s)}, Key{Agent: alias, Skill: fmt.Sprintf("skill_%d", s)})
		}
	}
	all := NamesFromKeys(keys, nil, "a2a_discover")
	checkNames(t, all, len(keys))
	for range 20 {
		shuffled := slices.Clone(keys)
		rnd.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if !maps.Equal(all, NamesFromKeys(shuffled, nil, "a2a_discover")) {
			t.Fatal("another order, other names")
		}
		for k, n := range NamesFromKeys(shuffled[:rnd.IntN(len(shuffled))], nil) {
			if all[k] != n {
				t.Fatalf("%v is %s alone and %s among others", k, n, all[k])
			}
		}
	}
}

func checkNames(t *testing.T, names map[Key]string, want int) {
	t.Helper()
	seen := map[string]Key{}
	for k, n := range names {
		limit := AgentNameLen
		if k.Skill != "" {
			limit = SkillNameLen
		}
		if !validName(n, limit) {
			t.Errorf("%v is called %q", k, n)
		}
		if other, twice := seen[strings.ToLower(n)]; twice {
			t.Errorf("%v and %v are both called %q", k, other, n)
		}
		seen[strings.ToLower(n)] = k
	}
	if len(names) != want {
		t.Errorf("%d names for %d keys", len(names), want)
	}
}

func TestNameCollisions(t *testing.T) {
	none := func(string) string { return "" }
	// One skill id at two agents without a prefix: neither keeps the bare name.
	names := NamesFromKeys([]Key{{"a", "ask"}, {"b", "ask"}, {"b", "tell"}}, none)
	checkNames(t, names, 3)
	if names[Key{"a", "ask"}] == "ask" || names[Key{"b", "ask"}] == "ask" || names[Key{"b", "tell"}] != "tell" {
		t.Errorf("%v", names)
	}
	// An alias wins over a skill that is made to look like it.
	names = NamesFromKeys([]Key{{"a", "b"}, {"a_b", ""}, {"a", ""}}, nil)
	checkNames(t, names, 3)
	if names[Key{Agent: "a_b"}] != "a_b" || names[Key{"a", "b"}] == "a_b" {
		t.Errorf("%v", names)
	}
	// Reserved names are never given out.
	names = NamesFromKeys([]Key{{"a2a_discover", ""}, {"x", "a2a_query"}}, none, "a2a_discover", "a2a_query")
	checkNames(t, names, 2)
	for _, n := range names {
		if n == "a2a_discover" || n == "a2a_query" {
			t.Errorf("%v", names)
		}
	}
	// The same key twice is one key.
	if n := NamesFromKeys([]Key{{"a", ""}, {"a", ""}}, nil); len(n) != 1 || n[Key{Agent: "a"}] != "a" {
		t.Errorf("%v", n)
	}
}
