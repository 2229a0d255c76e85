package main

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"a2agate/internal/telemetry"
)

// TestSecurityPageNamesTests: every test that the security page calls a proof
// exists.
func TestSecurityPageNamesTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			exist[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 50 || len(exist) < 500 {
		t.Fatalf("the page names %d tests, there are %d", len(named), len(exist))
	}
	for _, m := range named {
		if !exist[string(m[1])] {
			t.Errorf("docs/security.md names %s, which does not exist", m[1])
		}
	}
}

// exposed is what the metrics look like to a scraper.
func exposed(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// TestOperationsPageNamesMetrics: the operations page names every metric, and
// none that does not exist.
func TestOperationsPageNamesMetrics(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	m := telemetry.NewMetrics("dev", telemetry.Now{
		Handles: func() (int, bool) { return 1, true }, Waiting: func() int { return 1 }, Listens: func() int { return 1 },
		Agents: func() map[string]string { return map[string]string{"a": "ready"} },
	})
	m.Call("a2a_discover", "a", "result", 1)
	m.Request("tools/call", "2026-07-28", 0, 1)
	m.Refused(401)
	m.Upstream(telemetry.Upstream{Agent: "a", Op: "send", Retry: 1, Fallback: "version"})
	m.Follow("a", 1, 1, 1)
	exist := map[string]bool{}
	for _, f := range regexp.MustCompile(`(?m)^# TYPE (a2agate_\w+)`).FindAllStringSubmatch(exposed(t, m), -1) {
		exist[f[1]] = true
	}
	if len(exist) < 15 {
		t.Fatalf("only %d metrics", len(exist))
	}
	named := map[string]bool{}
	for _, f := range regexp.MustCompile(`a2agate_[a-z_]+`).FindAllString(string(page), -1) {
		name := f
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if cut, ok := strings.CutSuffix(f, suffix); ok && exist[cut] {
				name = cut
			}
		}
		named[name] = true
		if !exist[name] {
			t.Errorf("docs/operations.md names %s, which does not exist", f)
		}
	}
	for name := range exist {
		if !named[name] {
			t.Errorf("docs/operations.md does not name %s", name)
		}
	}
}
