package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestManPages holds that the man pages under packaging are those of the
// commands as they are.
func TestManPages(t *testing.T) {
	t.Parallel()
	const kept = "../../packaging/man"
	fresh := t.TempDir()
	sh := shell{dir: t.TempDir(), env: map[string]string{}}
	if code, _, errs := sh.run(t.Context(), "gen", "man", fresh); code != 0 {
		t.Fatalf("exit %d, %s", code, errs)
	}
	want := pages(t, fresh)
	if *update {
		if err := os.RemoveAll(kept); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(kept, os.DirFS(fresh)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, pages(t, kept)); diff != "" {
		t.Errorf("packaging/man is not what the commands say (-want +got); go test ./cmd/a2agate -run TestManPages -update writes it anew:\n%s", diff)
	}
	if _, ok := want["a2agate-serve.1"]; !ok || len(want) < 8 {
		t.Errorf("%d pages, want one a command", len(want))
	}
}

func pages(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		m[e.Name()] = string(b)
	}
	return m
}

// TestHelpHasExamples holds that every command says how it is used.
func TestHelpHasExamples(t *testing.T) {
	t.Parallel()
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		n++
		if c.Short == "" || c.Runnable() && c.Example == "" && !c.Hidden {
			t.Errorf("%s: no short text or no example", c.CommandPath())
		}
		for _, line := range strings.Split(c.Example, "\n") {
			if c.Example != "" && !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: example line %q is not indented by two", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(shell{}.process(nil, nil, nil)))
	if n < 8 {
		t.Errorf("%d commands", n)
	}
}

func TestCompletions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh := shell{dir: dir, env: map[string]string{}}
	if code, _, errs := sh.run(t.Context(), "gen", "completions", dir); code != 0 {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, name := range []string{"a2agate.bash", "_a2agate", "a2agate.fish", "a2agate.ps1"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), "a2agate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		if out, err := exec.CommandContext(t.Context(), bash, "-n", filepath.Join(dir, "a2agate.bash")).CombinedOutput(); err != nil {
			t.Errorf("bash: %v, %s", err, out)
		}
	}
	code, out, _ := sh.run(t.Context(), "__complete", "install", "c")
	if code != 0 || !strings.Contains(out, "claude\ncursor\ncodex") {
		t.Errorf("completion of install c: exit %d, %q", code, out)
	}
}
