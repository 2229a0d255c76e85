package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"a2agate/fixtures"
)

func TestCheckEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ address, want string }{
		{"http://127.0.0.1:8931/mcp", ""},
		{"https://gw.example.com/agents", ""},
		{"https://gw.example.com/mcp/p/team?x=y", ""},
		{"http://127.0.0.1:8931", `--url "http://127.0.0.1:8931" has no path, and the gateway's MCP endpoint has one; did you mean http://127.0.0.1:8931/mcp?`},
		{"https://gw.example.com//", `--url "https://gw.example.com//" has no path, and the gateway's MCP endpoint has one; did you mean https://gw.example.com/mcp?`},
		{"https://u:s3cr3t@gw.example.com", `--url "https://***@gw.example.com" has no path, and the gateway's MCP endpoint has one; did you mean https://gw.example.com/mcp?`},
		{"127.0.0.1:8931", `--url "127.0.0.1:8931" is not an http or https URL; did you mean http://127.0.0.1:8931/mcp?`},
		{"localhost:8931/mcp", `--url "localhost:8931/mcp" is not an http or https URL; did you mean http://localhost:8931/mcp?`},
		{"u:s3cr3t@gw:1", `--url "***@gw:1" is not an http or https URL; did you mean http://gw:1/mcp?`},
		{"ftp://x/mcp", `--url "ftp://x/mcp" is not an http or https URL; want the gateway's address, such as http://127.0.0.1:8931/mcp`},
		{"", `--url "" is not an http or https URL; want the gateway's address, such as http://127.0.0.1:8931/mcp`},
		{"://", `--url "://" is not an http or https URL; want the gateway's address, such as http://127.0.0.1:8931/mcp`},
		{"/mcp", `--url "/mcp" is not an http or https URL; want the gateway's address, such as http://127.0.0.1:8931/mcp`},
	} {
		got := ""
		if err := checkEndpoint("--url", c.address); err != nil {
			got = err.Error()
			var usage usageError
			if !errors.As(err, &usage) {
				t.Errorf("%q: not a misuse: %v", c.address, err)
			}
		}
		if got != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.address, got, c.want)
		}
	}
}

// A gateway whose certificate nobody here knows is a gateway all the same, and
// with the authority named in SSL_CERT_FILE it is called.
func TestCallCertificate(t *testing.T) {
	t.Parallel()
	ok := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`)
	}))
	ok.Config.ErrorLog = log.New(io.Discard, "", 0)
	ok.StartTLS()
	defer ok.Close()
	dir := t.TempDir()
	code, out, errs := shell{dir: dir}.run(t.Context(), "call", "--url", ok.URL+"/mcp", "a2a_discover")
	want := "a2agate: the certificate of " + ok.URL + "/mcp is not accepted here: certificate signed by unknown authority; " +
		"use the name that stands in it, and name its authority in SSL_CERT_FILE; 'a2agate doctor --gateway " + ok.URL + "/mcp' looks closer\n"
	if code != 1 || out != "" || errs != want {
		t.Errorf("exit %d, %q\ngot  %swant %s", code, out, errs, want)
	}
	file := filepath.Join(dir, "cert.pem")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ok.Certificate().Raw})))
	cmd := program(t, dir, "call", "--url", ok.URL+"/mcp", "a2a_discover")
	cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+file)
	if got, err := cmd.CombinedOutput(); err != nil || string(got) != "hello\n" {
		t.Errorf("with SSL_CERT_FILE: %s (%v)", got, err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	_, _, errs = shell{dir: dir}.run(t.Context(), "call", "--url", strings.Replace(plain.URL, "http:", "https:", 1)+"/mcp", "a2a_discover")
	if !strings.Contains(errs, "does not speak TLS; did you mean http:// in --url?") {
		t.Errorf("https to http: %s", errs)
	}
}

// Who is not known is told how to say who they are.
func TestCallWithoutToken(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"auth":{"tokens":[{"name":"ci","token":"s3cr3t-token"}]}}`, agent.url))
	for _, c := range []struct {
		token string
		code  int
		want  []string
	}{
		{"", 1, []string{"a2agate: ", "token", "(JSON-RPC error ", "; set A2AGATE_TOKEN to your token for this gateway\n"}},
		{"another", 1, []string{"(JSON-RPC error ", "; it was the token of A2AGATE_TOKEN: set it to your token for this gateway\n"}},
		{"s3cr3t-token", 0, nil},
	} {
		sh := shell{dir: t.TempDir(), env: map[string]string{}}
		if c.token != "" {
			sh.env["A2AGATE_TOKEN"] = c.token
		}
		code, _, errs := sh.run(t.Context(), "call", "--url", g.url, "a2a_discover")
		if code != c.code {
			t.Errorf("token %q: exit %d, want %d", c.token, code, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(errs, want) {
				t.Errorf("token %q: no %q in %s", c.token, want, errs)
			}
		}
	}
}

// An answer that does not come in time is told by what can be done.
func TestOutOfTime(t *testing.T) {
	t.Parallel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		ctx   context.Context
		flags callFlags
		want  string
	}{
		{late, callFlags{}, "no answer within 1s; --timeout waits longer"},
		{late, callFlags{sends: true}, `no answer within 1s; --timeout waits longer, and a smaller "timeoutSeconds" in the arguments gets a handle to ask again with`},
		{late, callFlags{sends: true, task: "tk_a"}, `no answer within 1s; --timeout waits longer, and 'a2agate call a2a_get_task' with {"taskHandle":"tk_a"} asks again`},
		{stopped, callFlags{}, "interrupted before there was an answer"},
	} {
		c.flags.timeout = time.Second
		if got := outOfTime(c.ctx, c.flags).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// The lines of progress are the agent's; a line that says only that the
// gateway has begun to wait comes or not by chance, and is left out.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, message := range []string{"Demo agent: working, 0s", "working, 0s", "step 1 of 2", "Demo agent: working, 15s", "10 working, 0s", "Demo agent: working, 1m0s"} {
		fmt.Fprintf(&b, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1,\"message\":%q}}\n\n", message)
	}
	b.WriteString("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
	resp := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(b.String()))}
	var lines strings.Builder
	a, err := readAnswer(resp, &lines)
	if want := "step 1 of 2\nDemo agent: working, 15s\n10 working, 0s\nDemo agent: working, 1m0s\n"; err != nil || string(a.Result) != "{}" || lines.String() != want {
		t.Errorf("%v, %s, got\n%swant\n%s", err, a.Result, lines.String(), want)
	}
}
