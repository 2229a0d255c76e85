package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp/syntax"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"a2agate/translate"
)

// The most that one check against a stranger's schema may take: a handful of
// references is enough to make a check endless, and each step may keep what it
// found wrong.
const (
	maxCheckTime  = time.Second
	maxCheckSteps = 100_000
	maxCheckBytes = 64 << 20
)

// errEndlessCheck is a check that took more than that.
var errEndlessCheck = errors.New("the check against the schema takes too long")

// checker is a compiled schema. It may be used concurrently.
type checker struct {
	schema *jsonschema.Schema
	// own says that the schema is the gateway's: nobody need wait for another.
	own bool
	// names is the size of the patterns that the names of one object are
	// matched with at most.
	names int
	// patience, steps and bytes bound one check.
	patience time.Duration
	steps    int
	bytes    int

	mu sync.Mutex // one check at a time, of which the rest is
	// until and left are when and after how many steps it is given up, room is
	// how much may yet be said about what is wrong.
	until time.Time
	left  int
	room  int
}

// check validates a decoded value; the error is a *jsonschema.ValidationError,
// or says why there is no verdict.
func (c *checker) check(v any) error {
	left := c.patience
	return c.checkWithin(v, &left)
}

// verdict is check for a value that may hold numbers of any length
// (translate.CheckNumbers): the many checks that it may take have the time of
// one between them.
func (c *checker) verdict(v any) (problem string, err error) {
	left := c.patience
	return translate.CheckNumbers(v, func(v any) error { return c.checkWithin(v, &left) })
}

// checkWithin is check within what is left of the time, of which it takes what
// it needs. To wait for another check costs none.
func (c *checker) checkWithin(v any, left *time.Duration) (err error) {
	if c.own {
		return c.schema.Validate(v)
	}
	if c.names > 0 && largestNames(v) > maxNamesMatch/c.names {
		return errUncheckable
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	c.until, c.left, c.room = began.Add(*left), c.steps, c.bytes
	defer func() {
		*left -= time.Since(began)
		if p := recover(); p != nil {
			if p != errEndlessCheck { //nolint:errorlint // the very value
				panic(p) //nolint:forbidigo // not ours: the edge answers it
			}
			err = errEndlessCheck
		}
	}()
	return c.schema.Validate(v)
}

// spend counts a step about which so many bytes may have been kept.
func (c *checker) spend(kept int) {
	c.left--
	c.room -= kept
	if c.left < 0 || c.room < 0 || time.Now().After(c.until) {
		panic(errEndlessCheck) //nolint:forbidigo // the only way out of the validator; caught above
	}
}

// refuseLoad is every compiler's loader: no schema is ever fetched.
func refuseLoad(url string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("schema %q is not loaded: only references inside the schema are followed", cut(url, 120))
}

// compileOwn compiles a schema of the gateway's own.
func compileOwn(raw json.RawMessage) (*checker, error) { return compile(raw, &checker{own: true}) }

// compileSchema compiles one self-contained JSON Schema of a stranger's, draft
// 2020-12 unless it names another. It must have passed translate.SchemaProblem,
// which bounds it.
func compileSchema(raw json.RawMessage) (*checker, error) {
	doc, err := decodeExact(raw)
	if err != nil {
		return nil, errors.New("the schema is not valid JSON")
	}
	c := &checker{patience: maxCheckTime, steps: maxCheckSteps, bytes: maxCheckBytes}
	return compile(json.RawMessage(jsonValue(ownKeywords(doc))), c)
}

// compile fills in the schema of check.
func compile(raw json.RawMessage, check *checker) (*checker, error) {
	c := jsonschema.NewCompiler()
	c.LoadURL = refuseLoad
	c.Formats["regex"] = isPattern
	if !check.own {
		c.RegisterExtension("steps", nil, check)
	}
	const name = "a2a:schema"
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

// maxPatternBytes is up to what length a text of the format regex is read;
// reading costs more than its length.
const maxPatternBytes = 4096

// isPattern is the format regex, without compiling what may be large.
func isPattern(v any) bool {
	s, ok := v.(string)
	if !ok || len(s) > maxPatternBytes {
		return true
	}
	_, err := syntax.Parse(s, syntax.Perl)
	return err == nil
}
