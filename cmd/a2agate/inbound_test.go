package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"a2agate/config"
	"a2agate/fixtures"
	"a2agate/internal/auth"
	"a2agate/tools"
)

// tokenIssuer is an authorization server with one key.
type tokenIssuer struct {
	t   *testing.T
	url string
	key *ecdsa.PrivateKey
}

func newTokenIssuer(t *testing.T) *tokenIssuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &tokenIssuer{t: t, key: key}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.url, i.url+"/jwks")
		case "/jwks":
			point, err := key.PublicKey.Bytes()
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, `{"keys":[{"kty":"EC","crv":"P-256","kid":"k","alg":"ES256","x":%q,"y":%q}]}`, b64url(point[1:33]), b64url(point[33:]))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	i.url = srv.URL
	return i
}

func b64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token is an access token with these claims beside the issuer.
func (i *tokenIssuer) token(claims string) string {
	i.t.Helper()
	signed := b64url([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + b64url([]byte(fmt.Sprintf(`{"iss":%q,%s}`, i.url, claims)))
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	var sig [64]byte
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return signed + "." + b64url(sig[:])
}

func claims(sub, scope string, left time.Duration) string {
	return fmt.Sprintf(`"sub":%q,"aud":"https://gw.example.com/mcp","scope":%q,"exp":%d`, sub, scope, time.Now().Add(left).Unix())
}

// TestOAuthAtTheEdge: the challenges, the metadata and the tokens as an MCP
// client meets them.
func TestOAuthAtTheEdge(t *testing.T) {
	t.Parallel()
	issuer := newTokenIssuer(t)
	agent := newAgentServer(t, fixtures.Options{})
	g := newInnerGate(t, fmt.Sprintf(`{
  "agents": {"demo": {"url": %q}},
  "publicUrl": "https://gw.example.com",
  "auth": {"oauth": {"issuer": %q, "scopes": ["agents:call|agents:admin"]}}
}`, agent.url, issuer.url), nil)
	list := func(token string) *http.Response {
		g.token = token
		resp, err := g.post(t.Context(), "/mcp", "tools/list", "", "", "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	const where = `resource_metadata="https://gw.example.com/.well-known/oauth-protected-resource/mcp"`
	for _, tt := range []struct {
		name, token, challenge string
		status                 int
	}{
		{"none", "", `Bearer ` + where + `, scope="agents:call"`, 401},
		{"nonsense", "nonsense", `Bearer ` + where + `, scope="agents:call", error="invalid_token"`, 401},
		{"expired", issuer.token(claims("ann", "agents:call", -time.Minute)), `Bearer ` + where + `, scope="agents:call", error="invalid_token"`, 401},
		{"wrong audience", issuer.token(strings.Replace(claims("ann", "agents:call", time.Hour), "gw.", "other.", 1)), `Bearer ` + where + `, scope="agents:call", error="invalid_token"`, 401},
		{"missing scope", issuer.token(claims("ann", "email", time.Hour)), `Bearer error="insufficient_scope", scope="agents:call", ` + where, 403},
		{"good", issuer.token(claims("ann", "agents:call", time.Hour)), "", 200},
		{"broader", issuer.token(claims("ann", "agents:admin", time.Hour)), "", 200},
	} {
		resp := list(tt.token)
		if resp.StatusCode != tt.status || resp.Header.Get("WWW-Authenticate") != tt.challenge {
			t.Errorf("%s: %d %q, want %d %q", tt.name, resp.StatusCode, resp.Header.Get("WWW-Authenticate"), tt.status, tt.challenge)
		}
	}
	for _, path := range []string{"", "/mcp"} {
		resp, err := g.client.Get(strings.TrimSuffix(g.url, "/mcp") + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		err = json.NewDecoder(resp.Body).Decode(&doc)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || doc.Resource != "https://gw.example.com/mcp" || len(doc.Servers) != 1 || doc.Servers[0] != issuer.url {
			t.Errorf("%s: %s %+v %v", path, resp.Status, doc, err)
		}
	}
	// Two subjects are two principals.
	g.token = issuer.token(claims("ann", "agents:call", time.Hour))
	handle := g.call(t, "a2a_send_message", `{"text":"slow 3600","blocking":false}`).envelope().Task
	g.token = issuer.token(claims("bob", "agents:call", time.Hour))
	if r := g.call(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q}`, handle)); !r.IsError || !strings.Contains(r.text(), "unknown") {
		t.Errorf("bob sees %s", r.text())
	}
	if log := g.log.String(); strings.Contains(log, g.token[:60]) {
		t.Error("a token is in the log")
	}
	for _, r := range agent.Requests() {
		if r.Header.Get("Authorization") != "" || strings.Contains(string(r.Body), "eyJ") {
			t.Errorf("the agent got %v %s", r.Header, r.Body)
		}
	}
}

// newInnerGate runs a gateway in this process on a configuration whose address
// for clients is not the one it listens on.
func newInnerGate(t *testing.T, text string, env map[string]string) *gate {
	t.Helper()
	cfg, err := config.Parse("agents.json", []byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen = "127.0.0.1:0"
	out := &gate{t: t, log: newOutput(), client: &http.Client{Transport: &http.Transport{}}}
	log, levels := newLogger(out.log, cfg.Log)
	g, err := newGateway(t.Context(), cfg, log, levels)
	if err != nil {
		t.Fatal(err)
	}
	endTraces, err := g.observed.traceTo(t.Context(), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	agents, stopAgents := context.WithCancel(context.Background())
	ln, err := g.open(agents)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.run(ctx, ln, stopAgents) }()
	out.inner, out.url = g, "http://"+ln.Addr().String()+"/mcp"
	end := sync.OnceFunc(func() {
		out.client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("gateway: %v", err)
		}
		endTraces()
	})
	out.cancel = end
	t.Cleanup(end)
	waitForStates(ctx, g.fleet.list(), forever)
	return out
}

// TestListenEndsWithItsToken: a stream does not outlive the token that opened
// it.
func TestListenEndsWithItsToken(t *testing.T) {
	t.Parallel()
	issuer := newTokenIssuer(t)
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":"http://127.0.0.1:1"}},"auth":{"oauth":{"issuer":%q,"audience":"https://gw.example.com/mcp"}}}`, issuer.url))
	g.token = issuer.token(claims("ann", "", 2*time.Second))
	resp, err := g.post(t.Context(), "/mcp", "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), "acknowledged") {
		t.Fatalf("%s %q", resp.Status, lines.Text())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	select {
	case <-ended:
	case <-time.After(forever):
		t.Error("the stream goes on")
	}
	if resp, err := g.post(t.Context(), "/mcp", "tools/list", "", "", ""); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the token goes on: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

// TestTokensFollowTheFile: a token that is taken out of the file stops to
// count when the file is saved, and auth cannot be saved away.
func TestTokensFollowTheFile(t *testing.T) {
	t.Parallel()
	file := func(auth string) string {
		return `{"agents":{"demo":{"url":"http://127.0.0.1:1"}}` + auth + `}`
	}
	g := newGate(t, file(`,"auth":{"tokens":[{"name":"ann","token":"one"},{"name":"bob","token":"two"}]}`))
	status := func(token string) int {
		g.token = token
		resp, err := g.post(t.Context(), "/mcp", "tools/list", "", "", "")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if status("one") != 200 || status("two") != 200 || status("three") != 401 {
		t.Fatal("the tokens of the file do not count")
	}
	g.edit(t, file(`,"auth":{"tokens":[{"name":"bob","token":"two"},{"name":"eve","token":"three"}]}`), "configuration reloaded")
	if status("one") != 401 || status("two") != 200 || status("three") != 200 {
		t.Errorf("one %d, two %d, three %d", status("one"), status("two"), status("three"))
	}
	g.edit(t, file(""), "auth has been taken out")
	if status("") != 401 || status("two") != 200 {
		t.Errorf("without a token %d, two %d", status(""), status("two"))
	}
}

// TestPrincipalLimits: a caller who is over the limits is told when to try
// again; others are not held up.
func TestPrincipalLimits(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	began, release := agent.hold()
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q}},"limits":{"concurrentCalls":1},
		"auth":{"tokens":[{"name":"ann","token":"ann-token"},{"name":"bob","token":"bob-token"}]}}`, agent.url))
	g.token = "ann-token"
	done := make(chan toolResult, 1)
	go func() {
		a, err := g.ask(t.Context(), "tools/call", "a2a_send_message", `"name":"a2a_send_message","arguments":{"text":"hold"}`, "")
		var r toolResult
		if err == nil {
			err = json.Unmarshal(a.Result, &r)
		}
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	<-began
	resp, err := g.post(t.Context(), "/mcp", "tools/call", "a2a_discover", `"name":"a2a_discover","arguments":{}`, "")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), `"code":-32603`) {
		t.Errorf("%s %v %s", resp.Status, resp.Header, body)
	}
	if a, err := g.ask(t.Context(), "tools/list", "", "", ""); err != nil || a.Status != 200 {
		t.Errorf("lists are held up too: %+v %v", a, err)
	}
	release()
	if r := <-done; r.IsError {
		t.Errorf("the first call: %s", r.text())
	}
	g.call(t, "a2a_discover", "{}")
}

// TestAgentLimit: no more requests than configured are in flight to an agent.
// The message that is one too many waits, and its caller has a handle for what
// becomes of it.
func TestAgentLimit(t *testing.T) {
	t.Parallel()
	agent := newAgentServer(t, fixtures.Options{})
	began, free := make(chan struct{}), make(chan struct{})
	agent.OnCommand("mute", func(ctx context.Context, turn *fixtures.Turn) error {
		close(began)
		select {
		case <-free:
		case <-ctx.Done():
		}
		return turn.Reply(fixtures.Text("speaks again"))
	})
	g := newGate(t, fmt.Sprintf(`{"agents":{"demo":{"url":%q,"maxConcurrent":1}}}`, agent.url))
	g.ready(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := g.ask(t.Context(), "tools/call", "a2a_send_message", `"name":"a2a_send_message","arguments":{"text":"mute"}`, ""); err != nil {
			t.Error(err)
		}
	}()
	<-began
	before := len(agent.AllExecutions())
	e := g.call(t, "a2a_send_message", `{"text":"echo one too many","timeoutSeconds":1}`).envelope()
	if e.Status != "working" || e.Task == "" || len(agent.AllExecutions()) != before {
		t.Errorf("%+v, and the agent got %d messages more", e, len(agent.AllExecutions())-before)
	}
	close(free)
	<-done
	if r := g.call(t, "a2a_get_task", fmt.Sprintf(`{"taskHandle":%q,"waitSeconds":60}`, e.Task)); !strings.Contains(r.text(), "one too many") {
		t.Errorf("the answer is lost: %s", r.text())
	}
}

func TestViewOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		c    auth.Caller
		want tools.View
	}{
		{auth.Caller{}, tools.View{}},
		{auth.Caller{Agents: []string{"b", "a"}, Profile: "p"}, tools.View{Agents: "a,b", Profile: "p"}},
		{auth.Caller{Agents: []string{}}, tools.View{Agents: ","}}, // none is not all
	} {
		if got := viewOf(tt.c); got != tt.want {
			t.Errorf("%+v: %+v", tt.c, got)
		}
	}
}

// TestNonLoopbackNeedsAuth: an address that others can reach is not listened
// on without auth unless forced, however it is spelt and wherever it is said;
// the checks of Host and Origin are the same on every address.
func TestNonLoopbackNeedsAuth(t *testing.T) {
	t.Parallel()
	const tokens = `,"auth":{"tokens":[{"name":"ann","token":"ann-token"}]}`
	load := func(address, auth string, insecure, inFile bool) error {
		flags := fileFlags{insecure: insecure, config: filepath.Join(t.TempDir(), "agents.json")}
		listen := ""
		if inFile {
			listen = fmt.Sprintf(`,"listen":%q`, address)
		} else {
			flags.listen = address
		}
		write(t, flags.config, `{"agents":{"a":{"url":"http://127.0.0.1:1"}}`+listen+auth+`}`)
		_, err := flags.load(shell{}.process(nil, io.Discard, io.Discard), nil)
		return err
	}
	for _, inFile := range []bool{true, false} {
		for _, address := range []string{"127.0.0.1:8931", "127.9.9.9:8931", "localhost:8931", "[::1]:8931"} {
			if err := load(address, "", false, inFile); err != nil {
				t.Errorf("%s (in the file: %t): %v", address, inFile, err)
			}
		}
		for _, address := range []string{
			"0.0.0.0:8931", "[::]:8931", ":8931", "192.0.2.1:8931", "[2001:db8::1]:8931", "10.0.0.1:8931", "gw.example.com:8931", "[::ffff:192.0.2.1]:8931",
		} {
			if err := load(address, "", false, inFile); err == nil || !strings.Contains(err.Error(), "--insecure") && !strings.Contains(err.Error(), "listen") {
				t.Errorf("%s (in the file: %t) is listened on without auth: %v", address, inFile, err)
			}
			for name, err := range map[string]error{"auth": load(address, tokens, false, inFile), "--insecure": load(address, "", true, inFile)} {
				if err != nil && strings.Contains(err.Error(), "no auth is configured") {
					t.Errorf("%s with %s: %v", address, name, err)
				}
			}
		}
	}
}

// TestHostAndOriginOnEveryAddress: listening on all addresses does not let a
// web page in, by whatever address it comes.
func TestHostAndOriginOnEveryAddress(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("%s: %v", listen, err) // a machine without IPv6
			continue
		}
		_, port, err := net.SplitHostPort(ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		cfg := configOf(t, "http://127.0.0.1:1")
		log, levels := newLogger(io.Discard, cfg.Log)
		g, err := newGateway(t.Context(), cfg, log, levels)
		if err != nil {
			t.Fatal(err)
		}
		agents, stopAgents := context.WithCancel(context.Background())
		if err := g.fleet.start(agents, cfg); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- g.run(ctx, ln, stopAgents) }()
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", ln.Addr().String())
		}}}
		for _, tt := range []struct {
			host, origin string
			status       int
		}{
			{"127.0.0.1:" + port, "", 200}, {"localhost:" + port, "", 200}, {"[::1]:" + port, "", 200},
			{"127.0.0.1:" + port, "http://127.0.0.1:" + port, 200},
			{"evil.example.com:" + port, "", 421}, {"192.0.2.1:" + port, "", 421}, {"0.0.0.0:" + port, "", 421},
			{"127.0.0.1.evil.example.com", "", 421}, {"localhost.evil.example.com:" + port, "", 421},
			{"127.0.0.1:" + port, "http://evil.example.com", 403}, {"127.0.0.1:" + port, "null", 403},
			{"127.0.0.1:" + port, "http://127.0.0.1:1", 403}, {"127.0.0.1:" + port, "http://localhost.evil.example.com:" + port, 403},
		} {
			for _, path := range []string{"/healthz", "/metrics", "/api/status", "/mcp"} {
				method, body := http.MethodGet, ""
				if path == "/mcp" {
					method, body = http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta("")+`}}`
				}
				req, err := http.NewRequestWithContext(t.Context(), method, "http://gateway"+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body != "" {
					req.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}}
				}
				req.Host = tt.host
				if tt.origin != "" {
					req.Header.Set("Origin", tt.origin)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != tt.status {
					t.Errorf("listening on %s, %s with Host %s and Origin %q: %d, want %d", listen, path, tt.host, tt.origin, resp.StatusCode, tt.status)
				}
			}
		}
		client.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
