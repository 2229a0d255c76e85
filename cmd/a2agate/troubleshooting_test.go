package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// troubleshooting is the page about what doctor finds.
func troubleshooting() string {
	var b strings.Builder
	b.WriteString(`# Troubleshooting

This page is generated from the findings of ` + "`a2agate doctor`" + `; change them there.

` + "```" + `
a2agate doctor                                    # every agent of the configuration, and the gateway if one runs
a2agate doctor billing                            # one agent, by its alias
a2agate doctor https://agents.example.com/billing # one that is in no file yet
a2agate doctor billing --send "hello"             # send one message and measure its stream
a2agate doctor --gateway http://127.0.0.1:8931/mcp --origin https://app.example.com
` + "```" + `

doctor goes the gateway's way to an agent step by step. A failure makes the agent
unusable; a warning does not. The exit code is 0 when everything that was looked at is
usable, 1 when not. An entry that cannot be used keeps it from no other agent. ` + "`--json`" + ` prints the same for programs, with the code of each finding.
Without a configuration it looks at the gateway at ` + "`" + gatewayExample + "`" + `, such as a demo.
Nothing is sent to an agent but a question about a task that cannot exist, unless
` + "`--send`" + ` says so.

`)
	about := map[string]string{
		stepConfig: "What the configuration says of the agent.", stepResolve: "The host name of the address becomes an address.",
		stepConnect: "A connection to the port.", stepTLS: "The handshake and the agent's certificate.",
		stepCard: "The agent card, at each place where it may be.", stepInterface: "The address, version and binding that calls go to.",
		stepAuth: "The credential.", stepCall: "GetTask of an id that cannot exist. The good answer is TaskNotFound.",
		stepStream: "The first event of an answer, with --send.",
		stepReach:  "With --gateway: whether a gateway is there.", stepHost: "Whether it answers to its name.", stepToken: "Whether it takes the token.",
		stepOrigin: "Which web pages it lets in.", stepTools: "Whether it lists its tools.",
	}
	for _, step := range []string{
		stepConfig, stepResolve, stepConnect, stepTLS, stepCard, stepInterface, stepAuth, stepCall, stepStream,
		stepReach, stepHost, stepToken, stepTools, stepOrigin,
	} {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n| finding | | what it means | what to do |\n|---|---|---|---|\n", step, about[step])
		for _, f := range findings() {
			if f.step == step {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.code, f.result, f.means, strings.ReplaceAll(upperFirst(f.remedy), "|", `\|`))
			}
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// The page says what doctor says.
func TestTroubleshootingPage(t *testing.T) {
	t.Parallel()
	const path = "../../docs/troubleshooting.md"
	want := troubleshooting()
	for _, f := range findings() {
		if !strings.Contains(want, "`"+f.code+"`") {
			t.Errorf("%s has no place on the page: its step %q has no section", f.code, f.step)
		}
	}
	if *update {
		write(t, path, want)
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
