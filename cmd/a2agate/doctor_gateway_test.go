package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"a2agate/fixtures"
)

// impostor answers as a gateway would, but for its health with what it is told.
func impostor(status int, body string) func(*testing.T) string {
	return served(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/healthz" {
			_, _ = io.WriteString(w, `{"status":"ok"}`)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func TestDoctorGateway(t *testing.T) {
	golden := openGolden(t, "testdata/doctor_gateway.txtar")
	agent := newAgentServer(t, fixtures.Options{})
	open := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"allowedOrigins":["https://app.example.com"]}`, agent.url))
	shut := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"auth":{"tokens":[{"name":"ci","token":"s3cr3t-token"}]}}`, agent.url))
	cases := []struct {
		name  string
		url   string
		flags []string
		token string
		code  int
	}{
		{"good", open.url, nil, "", 0},
		{"good-origin", open.url, []string{"--origin", "https://app.example.com"}, "", 0},
		{"good-token", shut.url, nil, "s3cr3t-token", 0},
		{"host-refused", open.url, []string{"--host", "gate.example.com"}, "", 1},
		{"origin-refused", open.url, []string{"--origin", "https://other.example.com"}, "", 1},
		{"token-missing", shut.url, nil, "", 1},
		{"token-refused", shut.url, nil, "another", 1},
		{"down", deadPort(t) + "/mcp", nil, "", 1},
		{"not-a-gateway", agent.url + "/mcp", nil, "", 1},
		{"origin-open", impostor(200, `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`)(t) + "/mcp", nil, "", 0},
		{"no-tools", impostor(500, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`)(t) + "/mcp", nil, "", 1},
		{"certificate", newTLSAgent(t, time.Hour, nil).URL + "/mcp", nil, "", 1},
		{"other-path", strings.TrimSuffix(open.url, "/mcp") + "/api", nil, "", 1},
	}
	seen := map[string]bool{}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			sh := shell{dir: t.TempDir(), env: map[string]string{}}
			if tt.token != "" {
				sh.env["A2AGATE_TOKEN"] = tt.token
			}
			code, stdout, stderr := sh.run(t.Context(), append([]string{"doctor", "--timeout", patient, "--gateway", tt.url}, tt.flags...)...)
			if code != tt.code || stderr != "" || strings.Contains(stdout, "s3cr3t") {
				t.Errorf("exit code %d, want %d; on stderr %q", code, tt.code, stderr)
			}
			at := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(tt.url, "/api"), "http://"), "https://"), "/mcp")
			golden.check(t, tt.name, settled(strings.ReplaceAll(stdout, at, "GATEWAY")))
			for _, m := range findingLine.FindAllStringSubmatch(stdout, -1) {
				seen[m[1]] = true
			}
		})
	}
	golden.close(t)
	for _, f := range findings() {
		if (slices.Contains(gatewaySteps, f.step) || f.step == stepToken) && !seen[f.code] {
			t.Errorf("nothing shows %s", f.code)
		}
	}
}

// Without an argument every agent of the file is looked at, and the gateway
// where one listens at the address of the file.
func TestDoctorLooksAtEverything(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, agent.url))
	at := strings.TrimSuffix(strings.TrimPrefix(g.url, "http://"), "/mcp")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents.json"), fmt.Sprintf(`{"listen":%q,"agents":{"demo":{"url":%q},"dead":{"url":%q}}}`, at, agent.url, deadPort(t)))
	code, stdout, _ := shell{dir: dir}.run(t.Context(), "doctor")
	for _, want := range []string{"\ndemo is usable\n", "\ndead is not usable\n", "\ngateway is usable\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	g.stop()
	if _, stdout, _ = (shell{dir: dir}).run(t.Context(), "doctor"); strings.Contains(stdout, "gateway") {
		t.Errorf("a gateway that does not run is looked at:\n%s", stdout)
	}
}

// Without a file there is the gateway where gateways usually are, such as a
// demo; without that too there is nothing to look at.
func TestDoctorWithoutAFile(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}}}`, agent.url))
	p := shell{dir: t.TempDir()}.process(nil, io.Discard, io.Discard)
	found, err := doctorFlags{timeout: time.Minute, usual: g.url}.examine(t.Context(), p, nil)
	if err != nil || !found.Usable || len(found.Diagnoses) != 1 || found.Diagnoses[0].Name != "gateway" || len(found.Diagnoses[0].Lines) < 4 {
		t.Errorf("%+v, %v", found, err)
	}
	for _, other := range []string{deadPort(t) + "/mcp", agent.url + "/mcp"} {
		_, err = doctorFlags{timeout: time.Minute, usual: other}.examine(t.Context(), p, nil)
		var usage usageError
		if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), "no agents: name an agent's URL, or a file with --config, or put an agents.json into ") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// What is wrong with one agent's entry, or with the rest of the file, keeps
// doctor from no other agent.
func TestDoctorOfABrokenFile(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agents.json"), fmt.Sprintf(`{"listen":"127.0.0.1:1","agents":{
  "demo":{"url":%q},
  "billing":{"url":"https://billing.invalid","auth":{"type":"bearer","token":"${env:BILLING_TOKEN}"}}},
  "auth":{"tokens":[{"name":"ci","token":"${env:CI_TOKEN}"}]}}`, agent.url))
	sh := shell{dir: dir}
	code, out, errs := sh.run(t.Context(), "doctor", "--timeout", patient)
	for _, want := range []string{
		"configuration  agents.json\n  failure  config     agents.json:4:42: auth.tokens[0].token: ${env:CI_TOKEN}: the environment variable CI_TOKEN is not set; set it where a2agate starts\n",
		"demo is usable\n",
		"billing  https://billing.invalid\n  failure  config     agents.json:3:78: agents.billing.auth.token: ${env:BILLING_TOKEN}: the environment variable BILLING_TOKEN is not set;",
		"billing is not usable\n",
	} {
		if !strings.Contains(strings.ReplaceAll(out, dir+string(filepath.Separator), ""), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != 1 || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	write(t, filepath.Join(dir, "agents.json"), fmt.Sprintf(`{"agents":{"demo":{"url":%q},"bad":{"url":"x"}}}`, agent.url))
	if code, out, errs = sh.run(t.Context(), "doctor", "demo"); code != 0 || strings.Contains(out, "bad") {
		t.Errorf("one agent: exit %d, %s%s", code, out, errs)
	}
}
