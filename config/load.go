package config

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	c, cfg, err := parse(name, data, env, readFile)
	if err != nil {
		return nil, err
	}
	if len(c.problems) > 0 {
		return nil, &Error{Problems: c.sorted(), Files: cfg.Files}
	}
	return cfg, nil
}

// ParseEach is Parse for who looks at the agents one by one, so that what is
// wrong with one keeps nobody from the others: broken has the problems of each
// agent by its alias, and under "" those of the rest of the file. What is in
// broken stands in the configuration as far as it could be read, and is not
// for use. The error is for a text without agents.
func ParseEach(name string, data []byte, env func(string) (string, bool), readFile func(string) ([]byte, error)) (cfg *Config, broken map[string][]Problem, err error) {
	c, cfg, err := parse(name, data, env, readFile)
	if err != nil {
		return nil, nil, err
	}
	problems := c.sorted()
	if len(cfg.Agents) == 0 {
		return nil, nil, &Error{Problems: problems, Files: cfg.Files}
	}
	broken = map[string][]Problem{}
	for _, p := range problems {
		of := ""
		for _, a := range cfg.Agents {
			if rest, ok := strings.CutPrefix(p.Path, child("agents", a.Alias)); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				of = a.Alias
			}
		}
		broken[of] = append(broken[of], p)
	}
	return cfg, broken, nil
}

// parse reads a text as far as it can be read; what is wrong with it is in the
// checker. The error is an *Error for a text that is no JSON.
func parse(name string, data []byte, env func(string) (string, bool), readFile func(string) ([]byte, error)) (*checker, *Config, error) {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	if readFile == nil {
		readFile = func(string) ([]byte, error) { return nil, os.ErrNotExist }
	}
	if len(data) > maxSize {
		return nil, nil, &Error{Problems: []Problem{{File: name, Message: "the file is larger than 16 MiB; name a configuration file"}}}
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
		return nil, nil, &Error{Problems: c.problems}
	}
	c.duplicates("", root)
	cfg := &Config{Path: name}
	declaration().read(c, "", root, cfg)
	cfg.Files = slices.Sorted(maps.Keys(c.files))
	return c, cfg, nil
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
