package main

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"a2agate/fixtures"
)

// printed finds a command that prints a block, and the block.
var printed = regexp.MustCompile("(?m)^`a2agate (install [^`]*--print)`:\n\n```(json|toml|yaml)\n((?s:.*?))```\n")

// TestClientBlocks holds docs/clients.md to what install prints.
func TestClientBlocks(t *testing.T) {
	t.Parallel()
	sh := installShell(t)
	found := printed.FindAllStringSubmatch(mustRead(t, "../../docs/clients.md"), -1)
	if len(found) != 15 { // eight clients, seven of them with a token too
		t.Errorf("%d blocks, want 15", len(found))
	}
	for _, m := range found {
		code, out, errs := sh.run(t.Context(), strings.Fields(m[1])...)
		if code != 0 || out != m[3] {
			t.Errorf("a2agate %s: exit %d, %s\nprints:\n%s\ndocs/clients.md has:\n%s", m[1], code, errs, out, m[3])
		}
	}
}

// shellLine is a command of ours in a block of shell lines.
var shellLine = regexp.MustCompile(`(?m)^(?:\./bin/)?a2agate (\w+)(?: +(.*?))?(?: +#.*)?$`)

// TestDocumentedCommands runs the commands of the pages for people, against a
// demo: those that end by themselves as they stand, of the others the flags.
func TestDocumentedCommands(t *testing.T) {
	demo := startDemo(t)
	blocks := regexp.MustCompile("(?m)^```sh\n((?s:.*?))```\n")
	ran := 0
	for _, page := range []string{"../../docs/quickstart.md", "../../docs/clients.md", "../../README.md"} {
		for _, block := range blocks.FindAllStringSubmatch(mustRead(t, page), -1) {
			for _, m := range shellLine.FindAllStringSubmatch(block[1], -1) {
				ran++
				sh := installShell(t)
				write(t, filepath.Join(sh.dir, "agents.json"), `{"agents":{"demo":{"url":"`+demo.agent+`"}}}`)
				args := append([]string{m[1]}, arguments(strings.ReplaceAll(m[2], "agents.json", filepath.Join(sh.dir, "agents.json")))...)
				switch m[1] {
				case "call":
					args = append(args, "--url", demo.url)
				case "serve", "demo", "stdio", "agent":
					args = append(args, "--help")
				}
				if code, out, errs := sh.run(t.Context(), args...); code != 0 {
					t.Errorf("%s: a2agate %q: exit %d\n%s%s", page, args, code, out, errs)
				}
			}
		}
	}
	if ran < 15 {
		t.Errorf("only %d commands found", ran)
	}
}

// arguments splits the rest of a shell line; only single quotes are known.
func arguments(s string) (list []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(s, -1) {
		list = append(list, m[1]+m[2])
	}
	return list
}

// runningDemo is a gateway with an agent that the test started.
type runningDemo struct{ url, agent string }

func startDemo(t *testing.T) runningDemo {
	t.Helper()
	agent := fixtures.New(fixtures.Options{})
	srv := httptest.NewServer(agent)
	errs := newOutput()
	done := make(chan int, 1)
	sh := shell{dir: t.TempDir(), env: map[string]string{}}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		done <- run(ctx, []string{"serve", "demo=" + srv.URL, "--listen", "127.0.0.1:0"}, sh.process(strings.NewReader(""), newOutput(), errs))
	}()
	t.Cleanup(func() {
		stop()
		<-done
		agent.Close()
		srv.Close()
	})
	return runningDemo{url: errs.match(t, `listening on (\S+)`)[1], agent: srv.URL}
}

// TestDocsLinks holds that pages link only to files and headings that exist.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range append(pages, "../../README.md") {
		for _, m := range link.FindAllStringSubmatch(mustRead(t, page), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			} else if heading != "" && !hasHeading(mustRead(t, path), heading) {
				t.Errorf("%s links to %s: there is no such heading", page, m[1])
			}
		}
	}
}

func hasHeading(text, anchor string) bool {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		words := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(words, " ", "-") == anchor {
			return true
		}
	}
	return false
}
