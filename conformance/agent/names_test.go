package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheProductKnowsNoNameOfTheSuite holds the gateway to its word: what it
// does for the suite's tools it does for the skills of any agent. No file of
// the product, save its tests, has one of their names.
func TestTheProductKnowsNoNameOfTheSuite(t *testing.T) {
	var names []string
	for _, s := range append(allSkills(), toggled) {
		names = append(names, regexp.QuoteMeta(s.id))
	}
	if len(names) < 20 {
		t.Fatalf("the agent has %d skills, want those of the suite", len(names))
	}
	any := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	if !any.MatchString("calls " + allSkills()[0].id + " here") {
		t.Fatalf("%s finds nothing", any)
	}
	for _, dir := range []string{"cmd", "server", "tools", "a2a", "translate", "handles", "tasksext", "config", "fixtures", "internal"} {
		read := 0
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir() || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			if name := any.Find(content); name != nil {
				t.Errorf("%s knows %s", path, name)
			}
			return nil
		})
		if err != nil || read == 0 {
			t.Errorf("%s: %d files read, %v", dir, read, err)
		}
	}
}
