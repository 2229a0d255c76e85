package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The most that one check against a stranger's schema may take: a handful of
// references is enough to make a check endless, and each step may keep what it
// found wrong.
const (
	maxCheckTime  = 2 * time.Second
	maxCheckSteps = 100_000
)

// errEndlessCheck is a check that took more than that.
var errEndlessCheck = errors.New("the check against the schema takes too long")

// checker is a compiled schema. It may be used concurrently.
type checker struct {
	schema *jsonschema.Schema
	// own says that the schema is the gateway's: nobody need wait for another.
	own bool
	// patience and steps bound one check.
	patience time.Duration
	steps    int

	mu sync.Mutex // one check at a time, of which the rest is
	// until and left are when and after how many steps it is given up.
	until time.Time
	left  int
}

// check validates a decoded value; the error is a *jsonschema.ValidationError,
// or says why there is no verdict.
func (c *checker) check(v any) (err error) {
	if c.own {
		return c.schema.Validate(v)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until, c.left = time.Now().Add(c.patience), c.steps
	defer func() {
		if p := recover(); p != nil {
			if p != errEndlessCheck { //nolint:errorlint // the very value
				panic(p) //nolint:forbidigo // not ours: the edge answers it
			}
			err = errEndlessCheck
		}
	}()
	return c.schema.Validate(v)
}

// Compile implements jsonschema.ExtCompiler: every part of the schema counts
// its steps.
func (c *checker) Compile(jsonschema.CompilerContext, map[string]any) (jsonschema.ExtSchema, error) {
	return c, nil
}

// Validate implements jsonschema.ExtSchema. It is called at the end of each
// step, and ends the check by a panic, for the validator has no other way out.
func (c *checker) Validate(jsonschema.ValidationContext, any) error {
	if c.left--; c.left < 0 || time.Now().After(c.until) {
		panic(errEndlessCheck) //nolint:forbidigo // the only way out of the validator; caught above
	}
	return nil
}

// refuseLoad is every compiler's loader: no schema is ever fetched.
func refuseLoad(url string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("schema %q is not loaded: only references inside the schema are followed", cut(url, 120))
}

// compileOwn compiles a schema of the gateway's own.
func compileOwn(raw json.RawMessage) (*checker, error) { return compile(raw, true) }

// compileSchema compiles one self-contained JSON Schema of a stranger's, draft
// 2020-12 unless it names another.
func compileSchema(raw json.RawMessage) (*checker, error) { return compile(raw, false) }

func compile(raw json.RawMessage, own bool) (*checker, error) {
	c := jsonschema.NewCompiler()
	c.LoadURL = refuseLoad
	check := &checker{own: own, patience: maxCheckTime, steps: maxCheckSteps}
	if !own {
		c.RegisterExtension("steps", nil, check)
	}
	const name = "schema.json"
	if err := c.AddResource(name, bytes.NewReader(raw)); err != nil {
		return nil, errors.New("the schema is not valid JSON")
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("the schema does not compile: %s", schemaCause(err))
	}
	check.schema = s
	return check, nil
}
