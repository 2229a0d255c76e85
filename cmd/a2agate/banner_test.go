package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"a2agate/fixtures"
)

// What serve prints of an agent moves no cursor, hides nothing and stays on
// its line, whatever the agent calls itself.
func TestBannerIsHarmless(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{Name: "\u202eevil\x1b]0;title\x07\x1b[31m\u200b\nsecond line" + strings.Repeat("A", 5000)})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents.json"), fmt.Sprintf(`{"listen":"127.0.0.1:0","agents":{"demo":{"url":%q}}}`, agent.url))
	g := &gate{t: t, dir: dir, client: &http.Client{}}
	p := startProgram(t, dir, "serve")
	g.log = p.log
	line := g.log.match(t, `(?m)^  demo .*\n`)[0]
	if want := "  demo  ready  evil second line" + strings.Repeat("A", 43) + "…, "; !strings.HasPrefix(line, want) {
		t.Errorf("%.200q, want %q", line, want)
	}
	if out := p.log.String(); strings.ContainsAny(out, "\x1b\x07\u202e\u200b") {
		t.Errorf("%q", out)
	}
}
