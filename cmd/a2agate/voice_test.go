package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"a2agate/fixtures"
)

// With records for a log, stderr has records and nothing else, from the start
// to the end.
func TestRecordsOnly(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	dir := t.TempDir()
	file := filepath.Join(dir, "agents.json")
	cfg := func(more string) string {
		return fmt.Sprintf(`{"listen":"127.0.0.1:0","log":{"format":"json"},"agents":{"demo":{"url":%q}%s}}`, agent.url, more)
	}
	write(t, file, cfg(""))
	p := startProgram(t, dir, "serve")
	url := p.log.match(t, `"msg":"listening","url":"([^"]+)"`)[1]
	resp, err := http.Get(strings.TrimSuffix(url, "mcp") + "healthz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
	write(t, file, cfg(fmt.Sprintf(`,"other":{"url":%q}`, agent.url)))
	p.log.match(t, `"msg":"configuration reloaded".*"added":\["other"\],"changed":\[\],"removed":\[\]`)
	p.signal(t, syscall.SIGTERM)
	if code := p.end(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	messages := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(p.log.String()), "\n") {
		var record struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Time == "" || record.Msg == "" {
			t.Errorf("no record: %s", line)
		}
		messages[record.Msg] = true
	}
	if !messages["listening"] || !messages["shutting down"] {
		t.Errorf("%v", messages)
	}
}

// Over stdio too.
func TestRecordsOnlyOverStdio(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents.json"), fmt.Sprintf(`{"log":{"format":"json"},"agents":{"demo":{"url":%q}}}`, deadPort(t)))
	code, _, errs := shell{dir: dir}.run(t.Context(), "stdio")
	first, _, _ := strings.Cut(errs, "\n")
	if code != 0 || !strings.Contains(errs, `"msg":"serving on standard input and output","agents":1`) || !json.Valid([]byte(first)) {
		t.Errorf("exit %d, %s", code, errs)
	}
	write(t, filepath.Join(dir, "agents.json"), fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, deadPort(t)))
	if _, _, errs = (shell{dir: dir}).run(t.Context(), "stdio"); !strings.Contains(errs, ": serving 1 agent on standard input and output\n") {
		t.Error(errs)
	}
}

// What is printed to try runs the program that printed it.
func TestTryItNamesTheProgram(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("quotes differ")
	}
	for name, want := range map[string]string{
		"a2agate": "a2agate", "./bin/a2agate": "./bin/a2agate", "/opt/mine/a2agate": "/opt/mine/a2agate",
		"/opt/my programs/a2agate": "'/opt/my programs/a2agate'", "/opt/it's/$x": `'/opt/it'\''s/$x'`, "": "''",
	} {
		var b strings.Builder
		tryIt(&b, name, "http://127.0.0.1:1/mcp")
		if !strings.Contains(b.String(), "\n  "+want+" call --url http://127.0.0.1:1/mcp a2a_send_message ") {
			t.Errorf("%s: %s", name, b.String())
		}
	}
	log := newOutput()
	p := shell{dir: t.TempDir()}.process(strings.NewReader(""), io.Discard, log)
	p.name = "./bin/a2agate"
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() { done <- run(ctx, []string{"demo", "--listen", "127.0.0.1:0"}, p) }()
	log.match(t, `(?m)^  \./bin/a2agate call --url `)
	stop()
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
