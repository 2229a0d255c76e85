package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"a2agate/config"
	"a2agate/fixtures"
	"a2agate/internal/web"
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

// What serve prints to paste is what install and the status page say.
func TestBannerSaysWhatInstallSays(t *testing.T) {
	t.Parallel()
	const url = "https://gw.example.com/mcp"
	for _, tokens := range []int{0, 1} {
		cfg := &config.Config{Auth: config.Inbound{Tokens: make([]config.Token, tokens)}}
		command, block := claude(url, cfg)
		for _, c := range clientBlocks(url, cfg) {
			if c.ID == "claude" && !slices.ContainsFunc(c.Blocks, func(b web.Block) bool { return b.Text == block }) {
				t.Errorf("%d tokens: %s\nis not among %+v", tokens, block, c.Blocks)
			}
		}
		var file struct {
			MCPServers map[string]struct {
				Type, URL string
				Headers   map[string]string
				Timeout   int
			} `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(block), &file); err != nil {
			t.Fatal(err)
		}
		e := file.MCPServers["a2a"]
		if e.Type != "http" || e.URL != url || e.Timeout != 600000 || len(e.Headers) != tokens {
			t.Errorf("%+v", e)
		}
		want := "claude mcp add --transport http a2a " + url
		if tokens > 0 {
			want += " --header 'Authorization: Bearer ${A2AGATE_TOKEN}'"
			if e.Headers["Authorization"] != "Bearer ${A2AGATE_TOKEN}" {
				t.Errorf("%+v", e)
			}
		}
		if command != want {
			t.Errorf("%s, want %s", command, want)
		}
	}
}
