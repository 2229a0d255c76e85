package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for a program.
const patience = 30 * time.Second

// bin is where TestMain builds the programs.
var bin string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "wire"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	for name, pkg := range map[string]string{"a2agate": "a2agate/cmd/a2agate", "agent": "a2agate/conformance/agent"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, name), pkg).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return m.Run()
}

// start runs a program until the end of the test and returns the first match
// of each pattern in what it prints, in the order of the patterns.
func start(t *testing.T, name string, args []string, wanted ...string) []string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, name), args...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // may have ended
		timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		<-ended
	})
	found := make(chan []string, 1)
	go func() { // the cleanup waits for it
		defer close(ended)
		defer r.Close()
		scan(r, wanted, found)
		_ = cmd.Wait() // ended by a signal
	}()
	select {
	case all := <-found:
		return all
	case <-ended:
		t.Fatalf("%s ended without %q", name, wanted)
	case <-time.After(patience):
		t.Fatalf("%s did not print %q in time", name, wanted)
	}
	return nil
}

// scan reads lines to the end; found gets the matches once all are there.
func scan(r *os.File, wanted []string, found chan<- []string) {
	var matches []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if len(matches) == len(wanted) {
			continue
		}
		if match := regexp.MustCompile(wanted[len(matches)]).FindString(lines.Text()); match != "" {
			if matches = append(matches, match); len(matches) == len(wanted) {
				found <- matches
			}
		}
	}
}

// gateway starts both agents and a gateway with these settings in front of
// them, and returns its URL. The aliases are demo and suite.
func gateway(t *testing.T, settings map[string]any) string {
	t.Helper()
	const url = `http://127\.0\.0\.1:\d+`
	demo := start(t, "a2agate", []string{"agent", "--listen", "127.0.0.1:0"}, url)[0]
	suite := start(t, "agent", []string{"--listen", "127.0.0.1:0"}, url)[0]
	cfg := map[string]any{
		"agents": map[string]any{
			"demo":  map[string]any{"url": demo},
			"suite": map[string]any{"url": suite, "expose": []string{"generic", "agents", "skills"}, "toolPrefix": ""},
		},
	}
	for k, v := range settings {
		cfg[k] = v
	}
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agents.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	// The banner lists the agents once all have been looked for.
	found := start(t, "a2agate", []string{"serve", "--config", path, "--listen", "127.0.0.1:0"}, url+"/mcp", `^\s+demo\s+ready\b`, `^\s+suite\s+ready\b`)
	return strings.TrimSpace(found[0])
}
