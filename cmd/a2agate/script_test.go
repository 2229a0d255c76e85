package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"a2agate/fixtures"
)

// TestScripts runs the commands as processes. Beside the usual commands there
// are
//
//	exits CODE COMMAND…   the command ends with that exit code
//	gateway ARGS…         runs "a2agate ARGS" until it listens; $GATEWAY is its URL
//	stops                 interrupts it and wants the exit code 0; its stderr is in gateway.log
//
// $AGENT is a scripted agent, $DEAD an address where nothing listens, $BUSY
// one where something does.
func TestScripts(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	dead := deadPort(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("AGENT", agent.url)
			e.Setenv("DEAD", dead)
			e.Setenv("BUSY", busy.Addr().String())
			e.Values[background{}] = &background{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "gateway": runGateway, "stops": stopGateway,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits runs a command and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("%s exits with %d, want %d", strings.Join(args[1:], " "), code, want)
	}
}

// background is the gateway process of a script, without cmd when none runs.
type background struct {
	cmd *exec.Cmd
	log *output
}

func runGateway(ts *testscript.TestScript, neg bool, args []string) {
	b, _ := ts.Value(background{}).(*background)
	if neg || b.cmd != nil {
		ts.Fatalf("usage: gateway ARGS…, one at a time")
	}
	name, err := exec.LookPath("a2agate") // testscript.Main has put it into PATH
	ts.Check(err)
	cmd := exec.Command(name, args...)
	b.cmd, b.log = cmd, newOutput()
	cmd.Dir, cmd.Stderr = ts.MkAbs("."), b.log
	ts.Check(cmd.Start())
	ts.Defer(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // stops has ended it
	ts.Setenv("GATEWAY", b.log.match(ts, `listening on (\S+)`)[1])
}

func stopGateway(ts *testscript.TestScript, neg bool, args []string) {
	b, _ := ts.Value(background{}).(*background)
	if neg || b.cmd == nil || len(args) > 0 {
		ts.Fatalf("usage: stops, after gateway")
	}
	b.log.match(ts, `(?s)mcpServers.*\n}\n`) // the banner is there
	ts.Check(b.cmd.Process.Signal(syscall.SIGINT))
	err := b.cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs("gateway.log"), []byte(b.log.String()), 0o600))
	if err != nil {
		ts.Fatalf("the gateway ends with %v:\n%s", err, b.log)
	}
	b.cmd = nil
}

// Every command says what it is for, and shows how.
func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	root := rootCommand(shell{}.process(nil, nil, nil))
	root.InitDefaultHelpCmd()
	var walk func(c *cobra.Command)
	seen := 0
	walk = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		seen++
		if c.Short == "" || !strings.Contains(c.Example, "  a2agate") {
			t.Errorf("%s has no short text or no example", c.CommandPath())
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			if c.Parent() != nil && c.Parent().Parent() == nil && strings.HasPrefix(line, "  a2agate") && !strings.HasPrefix(line, "  a2agate "+c.Name()) {
				t.Errorf("%s: the example %q is of another command", c.CommandPath(), line)
			}
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		code, stdout, stderr := shell{dir: t.TempDir()}.run(t.Context(), args...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "Examples:") || !strings.Contains(stdout, "Usage:") {
			t.Errorf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(root)
	if seen < 16 {
		t.Errorf("only %d commands", seen)
	}
}

// Every bad file comes through check with its exact words.
func TestCheckSaysEveryProblem(t *testing.T) {
	t.Parallel()
	const samples = "../../config/testdata/invalid"
	paths, err := filepath.Glob(filepath.Join(samples, "*.json"))
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d samples in %s (%v)", len(paths), samples, err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"cert.pem": "-----BEGIN", "key.pem": "-----BEGIN", "ca.pem": "-----BEGIN", "token.txt": "\xef\xbb\xbfs3cr3t-file\r\n",
		"locked.txt": "", "huge.txt": strings.Repeat("x", 1<<20+1),
	} {
		write(t, filepath.Join(dir, name), text)
	}
	if err := os.Chmod(filepath.Join(dir, "locked.txt"), 0); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "TOKEN=s3cr3t-token", "HOST=agents.example.com", "EMPTY=", "WEIRD=${env:TOKEN}",
		"BREAK=two\nlines", "FTP=ftp://s3cr3t.example.com", "SUM="+strings.Repeat("aB", 32))
	for _, path := range paths {
		name := filepath.Base(path)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(data))
		cmd := program(t, dir, "check", name)
		var stdout, stderr strings.Builder
		cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
		_ = cmd.Run() // the exit code tells
		if code := cmd.ProcessState.ExitCode(); code != 1 || stdout.Len() > 0 {
			t.Errorf("%s: exit code %d, on stdout %q", name, code, &stdout)
		}
		if diff := cmp.Diff(readable(string(want)), readable(stderr.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// readable leaves out the file that the superuser can read all the same.
func readable(problems string) string {
	if os.Geteuid() != 0 {
		return problems
	}
	lines := strings.SplitAfter(problems, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "locked.txt") }), "")
}
