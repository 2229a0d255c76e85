package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// defaultHandleTTL is the default of handleTtl and handleTtlMs.
const defaultHandleTTL = 15 * time.Minute

// Load reads and checks a file of this machine; env looks up environment
// variables. The error is an *Error with every problem.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{Problems: []Problem{{File: path, Message: fileTrouble(path, err, "name another with --config")}}}
	}
	return Parse(path, data, env, os.ReadFile)
}

// Parse checks the text of a configuration. name is the file's path, as it
// shall stand in messages; relative paths in it begin at its folder. env looks
// up environment variables, readFile reads the files that the text names; nil
// for either knows none. The error is an *Error with every problem, and a
// value behind ${…} or of a secret is in none of them.
func Parse(name string, data []byte, env func(string) (string, bool), readFile func(string) ([]byte, error)) (*Config, error) {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	if readFile == nil {
		readFile = func(string) ([]byte, error) { return nil, os.ErrNotExist }
	}
	if len(data) > maxSize {
		return nil, &Error{Problems: []Problem{{File: name, Message: "the file is larger than 16 MiB; name a configuration file"}}}
	}
	c := &checker{
		source: newSource(name, data), env: env, readFile: readFile,
		dir: filepath.Dir(name), files: make(map[string]struct{}),
	}
	root, err := c.parse()
	if err != nil {
		var bad *syntaxError
		errors.As(err, &bad)
		c.failAt(bad.offset, "", bad.message)
		return nil, &Error{Problems: c.problems}
	}
	c.duplicates("", root)
	cfg := &Config{Path: name}
	declaration().read(c, "", root, cfg)
	cfg.Files = slices.Sorted(maps.Keys(c.files))
	if len(c.problems) > 0 {
		return nil, &Error{Problems: c.sorted(), Files: cfg.Files}
	}
	return cfg, nil
}

// Find returns the configuration file of a folder: agents.json, a2a.json or
// .vscode/a2a.json, the first that exists.
func Find(dir string) (path string, ok bool) {
	for _, name := range []string{"agents.json", "a2a.json", filepath.Join(".vscode", "a2a.json")} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, true
		}
	}
	return "", false
}
