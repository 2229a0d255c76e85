package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"a2agate/a2a"
	"a2agate/config"
	"a2agate/internal/telemetry"
	"a2agate/server"
	"a2agate/tools"
)

// wired is a gateway that was put together of a configuration and runs not.
type wired struct {
	t   *testing.T
	cfg *config.Config
	g   *gateway
	log *output
}

// wire puts a gateway together. It is an error of the test if that fails.
func wire(t *testing.T, dir, text string) wired {
	t.Helper()
	w, err := tryWire(t, dir, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w
}

func tryWire(t *testing.T, dir, text string) (wired, error) {
	t.Helper()
	w := wired{t: t, log: newOutput()}
	var err error
	if w.cfg, err = config.Parse(filepath.Join(dir, "agents.json"), []byte(text), nil, os.ReadFile); err != nil {
		return w, err
	}
	log, levels := newLogger(w.log, w.cfg.Log)
	if w.g, err = newGateway(t.Context(), w.cfg, log, levels); err != nil {
		return w, err
	}
	agents, stop := context.WithCancel(context.Background())
	stop() // nobody is looked for
	t.Cleanup(func() {
		if err := w.g.close(); err != nil {
			t.Error(err)
		}
	})
	return w, w.g.fleet.start(agents, w.cfg)
}

func (w wired) tools() tools.Options   { return w.g.toolOptions(w.cfg, w.g.fleet.entries()) }
func (w wired) server() server.Options { return w.g.serverOptions() }

// agent is the configuration of agent a for the A2A client.
func (w wired) agent() a2a.AgentConfig {
	a, _ := w.cfg.Agent("a")
	cfg, err := agentConfig(*a)
	if err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

// entry is agent a for the tools.
func (w wired) entry() tools.AgentEntry {
	for _, e := range w.tools().Agents {
		if e.Alias == "a" {
			return e
		}
	}
	return tools.AgentEntry{}
}

// request is a request with the credential of agent a on it.
func (w wired) request() *http.Request {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://127.0.0.1:1/", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if auth := w.agent().Authorizer; auth != nil {
		if err := auth.Authorize(req); err != nil {
			w.t.Error(err)
		}
	}
	return req
}

// transport is what an mtls credential makes of the transport.
func (w wired) transport() *tls.Config {
	a, ok := w.agent().Authorizer.(interface{ TLSConfig() *tls.Config })
	if !ok {
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return a.TLSConfig()
}

func (w wired) certificate() bool {
	c := w.transport()
	if c.GetClientCertificate == nil {
		return false
	}
	pair, err := c.GetClientCertificate(&tls.CertificateRequestInfo{})
	return err == nil && len(pair.Certificate) > 0 && pair.PrivateKey != nil
}

// keyCase proves that a key reaches the package that it is for.
type keyCase struct {
	// file has the key, without has not; both are the inside of the file.
	// without "" is the plain agent a.
	file, without string
	// probe is what the key decides; want is that with the key.
	probe func(w wired) any
	want  any
}

const plainAgent = `"agents":{"a":{"url":"http://127.0.0.1:1"}}`

// ofAgent is agent a with more.
func ofAgent(more string) string { return `"agents":{"a":{"url":"http://127.0.0.1:1",` + more + `}}` }

// top is the plain agent, and a key beside it.
func top(more string) string { return plainAgent + "," + more }

func credentialKind(w wired) any {
	k, ok := w.agent().Authorizer.(interface{ Kind() string })
	if !ok {
		return ""
	}
	return k.Kind()
}

func limitsOf(w wired) a2a.Limits {
	m, _ := w.g.fleet.member("a")
	return m.recipe.limits
}

// tokenForm is what a token endpoint is asked, for a credential of type oauth2.
func tokenForm(key string) func(w wired) any {
	return func(w wired) any {
		w.request()
		return w.g.cfg.Agents[0].Auth.TokenURL != "" && len(tokenRequests[w.cfg.Agents[0].Auth.TokenURL]) > 0 &&
			strings.Contains(tokenRequests[w.cfg.Agents[0].Auth.TokenURL], key)
	}
}

// tokenRequests are the bodies and Authorization headers of token requests, by
// the endpoint's URL. Used by one test.
var tokenRequests = map[string]string{}

func keyCases(dir, tokenURL string) map[string]keyCase {
	oauth := func(more string) string {
		return ofAgent(`"auth":{"type":"oauth2","clientId":"me","clientSecret":"s3cr3t","tokenUrl":"` + tokenURL + `"` + more + `}`)
	}
	mtls := `"type":"mtls","certFile":"client.pem","keyFile":"client.key"`
	return map[string]keyCase{
		"agents":            {file: `"agents":{"a":{"url":"http://x"},"b":{"url":"http://y"}}`, probe: func(w wired) any { return len(w.tools().Agents) }, want: 2},
		"listen":            {file: top(`"listen":"127.0.0.1:7001"`), probe: func(w wired) any { return w.g.cfg.Listen }, want: "127.0.0.1:7001"},
		"host":              {file: top(`"host":"localhost"`), probe: func(w wired) any { return w.g.cfg.Listen }, want: "localhost:8931"},
		"port":              {file: top(`"port":7001`), probe: func(w wired) any { return w.g.cfg.Listen }, want: "127.0.0.1:7001"},
		"tls":               {file: top(`"tls":{"certFile":"client.pem","keyFile":"client.key"}`), probe: func(w wired) any { return w.g.certificate != nil }, want: true},
		"trustedProxies":    {file: top(`"trustedProxies":["10.0.0.0/8"]`), probe: func(w wired) any { return w.server().Guard.TrustedProxies }, want: []string{"10.0.0.0/8"}},
		"debugListen":       {file: top(`"debugListen":"127.0.0.1:7002"`), probe: func(w wired) any { return w.g.cfg.DebugListen }, want: "127.0.0.1:7002"},
		"publicUrl":         {file: top(`"publicUrl":"https://gate.example.com"`), probe: func(w wired) any { return w.server().Guard.PublicURL }, want: "https://gate.example.com"},
		"allowedHosts":      {file: top(`"allowedHosts":["gate.example.com"]`), probe: func(w wired) any { return w.server().Guard.AllowedHosts }, want: []string{"gate.example.com"}},
		"allowedOrigins":    {file: top(`"allowedOrigins":["https://app.example.com"]`), probe: func(w wired) any { return w.server().Guard.AllowedOrigins }, want: []string{"https://app.example.com"}},
		"expose":            {file: top(`"expose":["agents","query"]`), probe: func(w wired) any { return [2]any{w.tools().Expose, w.entry().Expose} }, want: [2]any{[]string{"agents", "query"}, []string{"agents", "query"}}},
		"toolPrefix":        {file: top(`"toolPrefix":"x_"`), probe: func(w wired) any { return fmt.Sprint(str(w.tools().ToolPrefix), str(w.entry().ToolPrefix)) }, want: "x_x_"},
		"paramHeaders":      {file: top(`"paramHeaders":true`), probe: func(w wired) any { return [2]bool{w.tools().ParamHeaders, w.server().ParamHeaders} }, want: [2]bool{true, true}},
		"structuredContent": {file: top(`"structuredContent":"never"`), probe: func(w wired) any { return w.tools().Structured }, want: "never"},
		"handleTtl":         {file: top(`"handleTtl":"1h"`), probe: func(w wired) any { return [2]any{w.g.handles.TTL(), w.tools().HandleTTL} }, want: "[1h0m0s 1h0m0s]"},
		"handleTtlMs":       {file: top(`"handleTtlMs":5000`), probe: func(w wired) any { return w.g.handles.TTL() }, want: "5s"},
		"store":             {file: top(`"store":{"type":"file","path":"a.db"}`), probe: existing(dir, "a.db"), want: true},
		"wait":              {file: top(`"wait":{"without":"7s"}`), probe: func(w wired) any { return w.tools().Wait.Without }, want: "7s"},
		"limits":            {file: top(`"limits":{"resultChars":7000}`), probe: func(w wired) any { return w.tools().Limits.ResultChars }, want: 7000},
		"profiles":          {file: top(`"profiles":{"p":{"agents":["a"]}}`), probe: func(w wired) any { return w.tools().Profiles }, want: map[string][]string{"p": {"a"}}},
		"auth":              {file: top(`"auth":{"tokens":[{"name":"n","token":"t"}]}`), probe: func(w wired) any { return [2]bool{w.server().Authenticate != nil, w.server().Private} }, want: [2]bool{true, true}},
		"log":               {file: top(`"log":{"level":"error"}`), probe: enabled(slog.LevelInfo), want: false},

		"agents.<alias>.url":            {file: `"agents":{"a":{"url":"http://x/base"}}`, probe: candidate, want: "http://x/base/.well-known/agent-card.json"},
		"agents.<alias>.cardUrl":        {file: `"agents":{"a":{"cardUrl":"http://x/card.json"}}`, probe: candidate, want: "http://x/card.json"},
		"agents.<alias>.cardPath":       {file: ofAgent(`"cardPath":"my/card.json"`), probe: candidate, want: "http://127.0.0.1:1/my/card.json"},
		"agents.<alias>.enabled":        {file: ofAgent(`"enabled":false`), probe: func(w wired) any { return len(w.tools().Agents) }, want: 0},
		"agents.<alias>.protocol":       {file: ofAgent(`"protocol":"0.3"`), probe: func(w wired) any { return w.agent().Protocol }, want: "0.3"},
		"agents.<alias>.binding":        {file: ofAgent(`"binding":"HTTP+JSON"`), probe: func(w wired) any { return w.agent().Binding }, want: "HTTP+JSON"},
		"agents.<alias>.urlPolicy":      {file: ofAgent(`"urlPolicy":"configured"`), probe: func(w wired) any { return w.agent().URLPolicy }, want: "configured"},
		"agents.<alias>.allowHosts":     {file: ofAgent(`"allowHosts":["y:1"]`), probe: func(w wired) any { return w.agent().AllowHosts }, want: []string{"y:1"}},
		"agents.<alias>.headers":        {file: ofAgent(`"headers":{"X-Team":"t"}`), probe: func(w wired) any { return w.agent().Headers.Get("X-Team") }, want: "t"},
		"agents.<alias>.auth":           {file: ofAgent(`"auth":{"type":"bearer","token":"t"}`), probe: credentialKind, want: "bearer"},
		"agents.<alias>.resource":       {file: ofAgent(`"resource":"api://1234"`), probe: credentialKind, want: "az_cli"},
		"agents.<alias>.expose":         {file: ofAgent(`"expose":["skills"]`), probe: func(w wired) any { return w.entry().Expose }, want: []string{"skills"}},
		"agents.<alias>.toolPrefix":     {file: ofAgent(`"toolPrefix":"y_"`), probe: func(w wired) any { return str(w.entry().ToolPrefix) }, want: "y_"},
		"agents.<alias>.timeoutSeconds": {file: ofAgent(`"timeoutSeconds":7`), probe: func(w wired) any { return w.entry().Timeout }, want: "7s"},
		"agents.<alias>.tasks":          {file: ofAgent(`"tasks":"required"`), probe: func(w wired) any { return w.entry().Tasks }, want: "required"},
		"agents.<alias>.skills":         {file: ofAgent(`"skills":{"s":{"tasks":"never"}}`), probe: func(w wired) any { return len(w.entry().Skills) }, want: 1},
		"agents.<alias>.emptyStreamFallback": {file: ofAgent(`"emptyStreamFallback":false`),
			probe: func(w wired) any { return w.agent().EmptyStreamFallback }, want: false},
		"agents.<alias>.maxConcurrent": {file: ofAgent(`"maxConcurrent":3`), probe: func(w wired) any { return w.agent().MaxConcurrent }, want: 3},
		"agents.<alias>.pin":           {file: ofAgent(`"pin":true`), probe: func(w wired) any { m, _ := w.g.fleet.member("a"); return m.shown.pins != nil }, want: true},

		"agents.<alias>.auth.type":  {file: ofAgent(`"auth":{"type":"basic","username":"u","password":"p"}`), probe: credentialKind, want: "basic"},
		"agents.<alias>.auth.token": {file: ofAgent(`"auth":{"type":"bearer","token":"t0ken"}`), probe: header("Authorization"), want: "Bearer t0ken"},
		"agents.<alias>.auth.key":   {file: ofAgent(`"auth":{"type":"apikey","key":"k"}`), probe: header("X-API-Key"), want: "k"},
		"agents.<alias>.auth.header": {file: ofAgent(`"auth":{"type":"apikey","key":"k","header":"X-Mine"}`),
			without: ofAgent(`"auth":{"type":"apikey","key":"k"}`), probe: header("X-Mine"), want: "k"},
		"agents.<alias>.auth.in": {file: ofAgent(`"auth":{"type":"apikey","key":"k","in":"query","name":"q"}`),
			without: ofAgent(`"auth":{"type":"apikey","key":"k"}`), probe: func(w wired) any { return w.request().URL.RawQuery }, want: "q=k"},
		"agents.<alias>.auth.name": {file: ofAgent(`"auth":{"type":"apikey","key":"k","in":"cookie","name":"c"}`),
			without: ofAgent(`"auth":{"type":"apikey","key":"k"}`), probe: header("Cookie"), want: "c=k"},
		"agents.<alias>.auth.username": {file: ofAgent(`"auth":{"type":"basic","username":"u","password":"p"}`),
			probe: func(w wired) any { u, _, _ := w.request().BasicAuth(); return u }, want: "u"},
		"agents.<alias>.auth.password": {file: ofAgent(`"auth":{"type":"basic","username":"u","password":"p"}`),
			probe: func(w wired) any { _, p, _ := w.request().BasicAuth(); return p }, want: "p"},
		"agents.<alias>.auth.clientId":     {file: oauth(`,"authStyle":"params"`), probe: tokenForm("client_id=me"), want: true},
		"agents.<alias>.auth.clientSecret": {file: oauth(`,"authStyle":"params"`), probe: tokenForm("client_secret=s3cr3t"), want: true},
		"agents.<alias>.auth.tokenUrl":     {file: oauth(``), probe: header("Authorization"), want: "Bearer issued"},
		"agents.<alias>.auth.scopes":       {file: oauth(`,"scopes":["api://x/.default"]`), without: oauth(``), probe: tokenForm("scope=api"), want: true},
		"agents.<alias>.auth.authStyle":    {file: oauth(`,"authStyle":"header"`), without: oauth(`,"authStyle":"params"`), probe: tokenForm("Basic "), want: true},
		"agents.<alias>.auth.resource":     {file: ofAgent(`"auth":{"type":"az_cli","resource":"api://mine"}`), probe: header("Authorization"), want: "Bearer api://mine"},
		"agents.<alias>.auth.certFile":     {file: ofAgent(`"auth":{` + mtls + `}`), probe: func(w wired) any { return w.certificate() }, want: true},
		"agents.<alias>.auth.keyFile":      {file: ofAgent(`"auth":{` + mtls + `}`), probe: func(w wired) any { return w.certificate() }, want: true},
		"agents.<alias>.auth.caFile": {file: ofAgent(`"auth":{` + mtls + `,"caFile":"ca.pem"}`), without: ofAgent(`"auth":{` + mtls + `}`),
			probe: func(w wired) any { return w.transport().RootCAs != nil }, want: true},
		"agents.<alias>.auth.serverName": {file: ofAgent(`"auth":{` + mtls + `,"serverName":"s.example.com"}`),
			probe: func(w wired) any { return w.transport().ServerName }, want: "s.example.com"},
		"agents.<alias>.auth.onCard": {file: ofAgent(`"auth":{"type":"bearer","token":"t","onCard":"always"}`),
			without: ofAgent(`"auth":{"type":"bearer","token":"t"}`), probe: func(w wired) any { return w.agent().AuthOnCard }, want: "always"},

		"agents.<alias>.skills.<id>.inputSchema": {file: ofAgent(`"skills":{"s":{"inputSchema":{"type":"object"}}}`),
			probe: func(w wired) any { return string(w.entry().Skills["s"].InputSchema) }, want: `{"type":"object"}`},
		"agents.<alias>.skills.<id>.tasks": {file: ofAgent(`"skills":{"s":{"tasks":"never"}}`), probe: func(w wired) any { return w.entry().Skills["s"].Tasks }, want: "never"},

		"tls.certFile": {file: top(`"tls":{"certFile":"client.pem","keyFile":"client.key"}`), probe: ownCertificate, want: "client.pem client.key"},
		"tls.keyFile":  {file: top(`"tls":{"certFile":"client.pem","keyFile":"client.key"}`), probe: ownCertificate, want: "client.pem client.key"},

		"store.type": {file: top(`"store":{"type":"file","path":"b.db"}`), probe: existing(dir, "b.db"), want: true},
		"store.path": {file: top(`"store":{"type":"file","path":"c.db"}`), probe: existing(dir, "c.db"), want: true},

		"wait.withProgress": {file: top(`"wait":{"withProgress":"7s"}`), probe: func(w wired) any { return w.tools().Wait.WithProgress }, want: "7s"},
		"wait.without":      {file: top(`"wait":{"without":"7s"}`), probe: func(w wired) any { return w.tools().Wait.Without }, want: "7s"},
		"wait.taskGrace":    {file: top(`"wait":{"taskGrace":"0s"}`), probe: func(w wired) any { return w.tools().Wait.TaskGrace }, want: "0s"},
		"wait.firstByte":    {file: top(`"wait":{"firstByte":"2s"}`), probe: func(w wired) any { return w.server().Pace.FirstByte }, want: "2s"},
		"wait.progress":     {file: top(`"wait":{"progress":"7s"}`), probe: func(w wired) any { return w.server().Pace.KeepAlive }, want: "7s"},

		"limits.bodyBytes":        {file: top(`"limits":{"bodyBytes":70000}`), probe: func(w wired) any { return w.server().Limits.BodyBytes }, want: 70000},
		"limits.cardBytes":        {file: top(`"limits":{"cardBytes":70000}`), probe: func(w wired) any { return [2]any{limitsOf(w).CardBytes, w.tools().Limits.CardBytes} }, want: "[70000 70000]"},
		"limits.replyBytes":       {file: top(`"limits":{"replyBytes":70000}`), probe: func(w wired) any { return limitsOf(w).ReplyBytes }, want: 70000},
		"limits.eventBytes":       {file: top(`"limits":{"eventBytes":70000}`), probe: func(w wired) any { return limitsOf(w).EventBytes }, want: 70000},
		"limits.streamBytes":      {file: top(`"limits":{"streamBytes":70000}`), probe: func(w wired) any { return limitsOf(w).StreamBytes }, want: 70000},
		"limits.resultChars":      {file: top(`"limits":{"resultChars":7000}`), probe: func(w wired) any { return w.tools().Limits.ResultChars }, want: 7000},
		"limits.mediaBytes":       {file: top(`"limits":{"mediaBytes":70000}`), probe: func(w wired) any { return w.tools().Limits.MediaBytes }, want: 70000},
		"limits.handles":          {file: top(`"limits":{"handles":120}`), probe: keptHandles, want: 120},
		"limits.listens":          {file: top(`"limits":{"listens":7}`), probe: func(w wired) any { return w.server().Limits.Listens }, want: 7},
		"limits.principalListens": {file: top(`"limits":{"principalListens":7}`), probe: func(w wired) any { return w.server().Limits.ListensPerPrincipal }, want: 7},
		"limits.callsPerSecond":   {file: top(`"limits":{"callsPerSecond":1.5}`), probe: func(w wired) any { return w.server().Limits.CallsPerSecond }, want: 1.5},
		"limits.concurrentCalls":  {file: top(`"limits":{"concurrentCalls":7}`), probe: func(w wired) any { return w.server().Limits.ConcurrentCalls }, want: 7},

		"profiles.<name>.agents": {file: top(`"profiles":{"p":{"agents":["a"]}}`), probe: func(w wired) any { return w.tools().Profiles["p"] }, want: []string{"a"}},

		"auth.tokens":               {file: inboundToken(``), probe: caller("t0ken"), want: "ci"},
		"auth.tokens[].name":        {file: inboundToken(``), probe: caller("t0ken"), want: "ci"},
		"auth.tokens[].token":       {file: inboundToken(``), probe: caller("t0ken"), want: "ci"},
		"auth.tokens[].tokenSha256": {file: top(`"auth":{"tokens":[{"name":"ci","tokenSha256":"` + strings.Repeat("ab", 32) + `"}]}`), probe: digest, want: strings.Repeat("ab", 32)},
		"auth.tokens[].agents":      {file: inboundToken(`,"agents":["a"]`), without: inboundToken(``), probe: caller("t0ken"), want: "ci {\"Profile\":\"\",\"Agents\":\"a\"}"},
		"auth.tokens[].profile": {file: inboundToken(`,"profile":"p"`) + `,"profiles":{"p":{"agents":["a"]}}`, without: inboundToken(``),
			probe: caller("t0ken"), want: "ci {\"Profile\":\"p\",\"Agents\":\"\"}"},
		"auth.oauth":          {file: oauthIn(``), probe: func(w wired) any { return w.server().WellKnown != nil }, want: true},
		"auth.oauth.issuer":   {file: oauthIn(``), probe: func(w wired) any { return authOptions(w.cfg, nil).OAuth.Issuer }, want: "https://login.example.com"},
		"auth.oauth.audience": {file: oauthIn(`,"audience":"gate"`), without: oauthIn(``), probe: func(w wired) any { return authOptions(w.cfg, nil).OAuth.Audience }, want: "gate"},
		"auth.oauth.scopes":   {file: oauthIn(`,"scopes":["s"]`), without: oauthIn(``), probe: func(w wired) any { return authOptions(w.cfg, nil).OAuth.Scopes }, want: []string{"s"}},

		"log.level":  {file: top(`"log":{"level":"warn"}`), probe: enabled(slog.LevelInfo), want: false},
		"log.debug":  {file: top(`"log":{"debug":3}`), probe: enabledAgents(telemetry.LevelPayload), want: true},
		"log.format": {file: top(`"log":{"format":"json"}`), probe: func(w wired) any { w.g.log.Info("x"); return strings.HasPrefix(w.log.String(), "{") }, want: true},
	}
}

func inboundToken(more string) string {
	return top(`"auth":{"tokens":[{"name":"ci","token":"t0ken"` + more + `}]}`)
}

func oauthIn(more string) string {
	return top(`"publicUrl":"https://gate.example.com","auth":{"oauth":{"issuer":"https://login.example.com"` + more + `}}`)
}

func str(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

func candidate(w wired) any {
	list, err := a2a.CardCandidates(w.agent())
	if err != nil {
		w.t.Fatal(err)
	}
	return list[0]
}

func header(name string) func(wired) any {
	return func(w wired) any { return w.request().Header.Get(name) }
}

func existing(dir, name string) func(wired) any {
	return func(wired) any {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
}

func ownCertificate(w wired) any {
	if w.g.certificate == nil {
		return ""
	}
	return filepath.Base(w.g.certificate.certFile) + " " + filepath.Base(w.g.certificate.keyFile)
}

func enabled(level slog.Level) func(wired) any {
	return func(w wired) any { return w.g.log.Enabled(w.t.Context(), level) }
}

func enabledAgents(level slog.Level) func(wired) any {
	return func(w wired) any {
		return telemetry.OfKind(w.g.log, telemetry.KindAgents).Enabled(w.t.Context(), level)
	}
}

// keptHandles is how many of many handles are kept.
func keptHandles(w wired) any {
	for i := range 300 {
		if _, err := w.g.handles.Context(w.t.Context(), "local", "a", fmt.Sprintf("c%d", i)); err != nil {
			w.t.Fatal(err)
		}
	}
	n, err := w.g.handles.Len(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// caller is who a token stands for, and what it sees where that is not all.
func caller(token string) func(wired) any {
	return func(w wired) any {
		if w.server().Authenticate == nil {
			return ""
		}
		req := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		id, denied := w.server().Authenticate(req)
		if denied != nil {
			return denied.Reason
		}
		if id.View == (tools.View{}) {
			return id.Principal
		}
		view, err := json.Marshal(id.View)
		if err != nil {
			w.t.Fatal(err)
		}
		return id.Principal + " " + string(view)
	}
}

func digest(w wired) any {
	if len(w.cfg.Auth.Tokens) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", authOptions(w.cfg, nil).Tokens[0].SHA256)
}

var keySection = regexp.MustCompile("^## (The file|`(.*)`)$")
var keyRow = regexp.MustCompile("^\\| `([A-Za-z0-9]+)` \\|")

// documentedKeys are the keys of the reference page.
func documentedKeys(t *testing.T) []string {
	t.Helper()
	section := ""
	var keys []string
	for line := range strings.SplitSeq(string(config.Reference()), "\n") {
		if m := keySection.FindStringSubmatch(line); m != nil {
			section = m[2]
			if section != "" {
				section += "."
			}
		} else if m := keyRow.FindStringSubmatch(line); m != nil {
			keys = append(keys, section+m[1])
		}
	}
	if len(keys) < 90 {
		t.Fatalf("only %d keys on the page", len(keys))
	}
	return keys
}

// Every key of the reference page changes what it says.
func TestEveryKeyIsHeeded(t *testing.T) {
	dir := t.TempDir()
	certificateAuth(t, dir, "")
	// The Azure CLI of this test issues the resource itself as a token.
	write(t, filepath.Join(dir, "az"), "#!/bin/sh\nprintf '{\"accessToken\":\"%s\",\"expires_on\":4102444800}' \"$4\"\n")
	if err := os.Chmod(filepath.Join(dir, "az"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	var endpoint *httptest.Server
	endpoint = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a broken body shows in what is missing
		tokenRequests[endpoint.URL] = string(body) + "\n" + r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"issued","token_type":"Bearer","expires_in":3600}`)
	}))
	defer endpoint.Close()
	cases := keyCases(dir, endpoint.URL)
	documented := documentedKeys(t)
	for _, key := range documented {
		c, ok := cases[key]
		delete(cases, key)
		if key == "store.url" {
			continue // it needs a server: TestRedisKeyIsHeeded
		}
		if !ok {
			t.Errorf("%s is on the page, and nothing proves that it is heeded", key)
			continue
		}
		t.Run(key, func(t *testing.T) {
			if c.without == "" {
				c.without = plainAgent
			}
			tokenRequests[endpoint.URL] = ""
			before := fmt.Sprint(c.probe(wire(t, dir, "{"+c.without+"}")))
			tokenRequests[endpoint.URL] = ""
			got := fmt.Sprint(c.probe(wire(t, dir, "{"+c.file+"}")))
			if want := fmt.Sprint(c.want); got != want || before == want {
				t.Errorf("without the key %s, with it %s, want %s", before, got, want)
			}
		})
	}
	for key := range cases {
		t.Errorf("%s is not on the page", key)
	}
	if !slices.Contains(documented, "store.url") {
		t.Error("store.url is not on the page")
	}
}

// The Redis that is named is the one that is asked, and its log is the
// gateway's.
func TestRedisKeyIsHeeded(t *testing.T) {
	t.Parallel()
	at := strings.TrimPrefix(deadPort(t), "http://")
	_, err := tryWire(t, t.TempDir(), `{`+top(`"store":{"type":"redis","url":"redis://:s3cr3t@`+at+`/0"}`)+`}`)
	if err == nil || !strings.Contains(err.Error(), "store.url: the Redis at "+at+" does not answer") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("%v", err)
	}
}
