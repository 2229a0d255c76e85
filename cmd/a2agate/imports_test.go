package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// house says which packages of this module each may import: arrows run one
// way. A package that is not named here fails the test, so that a new one
// gets its place.
var house = map[string][]string{
	"a2a":                 nil,
	"a2a/credential":      nil,
	"handles":             nil,
	"config":              nil,
	"translate":           {"a2a"},
	"fixtures":            {"a2a"},
	"tools":               {"a2a", "translate", "handles"},
	"tasksext":            {"a2a", "translate", "handles"},
	"server":              {"tools", "tasksext", "translate", "a2a", "handles", "internal/"},
	"cmd/a2agate":         {""},
	"conformance/":        {""},
	"internal/auth":       nil,
	"internal/clientfile": nil,
	"internal/pipenet":    nil,
	"internal/schematest": nil,
	"internal/telemetry":  nil,
	"internal/web":        nil,
}

// forTests are packages that nothing but tests may import.
var forTests = []string{"internal/pipenet", "internal/schematest"}

// mcpGo are the packages that may import mcp-go.
var mcpGo = []string{"server", "tools", "translate", "tasksext"}

func TestArrowsRunOneWay(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "a2agate/...")
	list.Env = append(os.Environ(), "GOFLAGS=") // a -json meant for the tests would fight the -f
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < 10 {
		t.Fatalf("go list named %d packages, want the whole house", len(lines))
	}
	for _, line := range lines {
		fields := strings.Fields(line)
		name := strings.TrimPrefix(fields[0], "a2agate/")
		allowed, ok := allowedImports(name)
		if !ok {
			t.Errorf("%s has no place in the house: give it one in this test and in docs/architecture.md", name)
			continue
		}
		for _, imp := range fields[1:] {
			if strings.HasPrefix(imp, "github.com/mark3labs/mcp-go") && !slices.Contains(mcpGo, name) {
				t.Errorf("%s imports %s: only %v may", name, imp, mcpGo)
			}
			ours, ok := strings.CutPrefix(imp, "a2agate/")
			if slices.Contains(forTests, ours) {
				t.Errorf("%s imports %s: only tests may", name, ours)
			}
			if ok && !slices.ContainsFunc(allowed, func(p string) bool {
				return p == "" || p == ours || strings.HasSuffix(p, "/") && strings.HasPrefix(ours, p)
			}) {
				t.Errorf("%s imports %s: it may import only %v", name, ours, allowed)
			}
		}
	}
}

func allowedImports(name string) ([]string, bool) {
	if allowed, ok := house[name]; ok {
		return allowed, true
	}
	if strings.HasPrefix(name, "conformance/") {
		return house["conformance/"], true
	}
	return nil, false
}
