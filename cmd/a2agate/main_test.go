package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write golden files anew")

// TestMain lets scripts run this binary as the program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"a2agate": main})
}

// forever is how long a test waits for what must come: a defect, not a slow
// machine.
const forever = time.Minute

// output is a buffer that the program may write to from several goroutines.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
	// grown is closed and made anew with every write.
	grown chan struct{}
}

func newOutput() *output { return &output{grown: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// failer is a test, or a script.
type failer interface {
	Fatalf(format string, args ...any)
}

// match waits for a text that matches and returns its submatches.
func (o *output) match(t failer, pattern string) []string {
	re := regexp.MustCompile(pattern)
	for {
		o.mu.Lock()
		m, grown := re.FindStringSubmatch(o.b.String()), o.grown
		o.mu.Unlock()
		if m != nil {
			return m
		}
		select {
		case <-grown:
		case <-time.After(forever):
			t.Fatalf("no %q in:\n%s", pattern, o)
		}
	}
}

// shell is what a command runs in.
type shell struct {
	dir string
	env map[string]string
}

func (s shell) process(in io.Reader, out, err io.Writer) process {
	return process{
		name: "a2agate", in: in, out: out, err: err,
		getenv: func(name string) (string, bool) { v, ok := s.env[name]; return v, ok },
		getwd:  func() (string, error) { return s.dir, nil },
	}
}

// run runs a command to its end.
func (s shell) run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	out, errs := newOutput(), newOutput()
	code = run(ctx, args, s.process(strings.NewReader(""), out, errs))
	return code, out.String(), errs.String()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
