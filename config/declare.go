package config

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/netip"
	"strings"
	"time"
)

// The bounds of times. Nothing waits longer than a day.
const (
	longest  = 24 * time.Hour
	shortest = time.Millisecond
	month    = 31 * 24 * time.Hour
)

// The texts that occur in more than one place. They are functions because a
// declaration is made anew for each use, and nothing of it is global.

func plain(check func(string) string, pattern string) text {
	return text{check: check, pattern: pattern}
}

// expanded is a text in which ${env:…} and ${file:…} count.
func expanded(check func(string) string, pattern string) text {
	return text{check: check, pattern: pattern, expand: true}
}

func secret(check func(string) string) secretText {
	return secretText{text{check: check, expand: true}}
}

// fileName is the path of a file that must be readable and is watched.
func fileName() text {
	return text{expand: true, file: true}
}

func same[T ~string](v T) string { return string(v) }

func exposures() list[Exposure] {
	return list[Exposure]{
		elem: choice[Exposure]{ExposeGeneric, ExposeAgents, ExposeSkills, ExposeQuery}, unique: same[Exposure],
		min: 1, minRule: "empty; name at least one of generic, agents, skills, query",
	}
}

func aliases(minRule string) list[string] {
	return list[string]{elem: plain(nil, ""), unique: same[string], min: 1, minRule: minRule}
}

// clientKeys are the keys under which MCP clients list their servers: whoever
// takes such a file for one of ours is told which is which.
func clientKeys() map[string]string {
	keys := map[string]string{}
	for _, key := range []string{"mcpServers", "servers", "context_servers", "mcp_servers"} {
		keys[key] = "this is what stands in the file of an MCP client, where 'a2agate install' puts the gateway; here the agents are listed, as \"agents\": {\"name\": {\"url\": \"https://…\"}}"
	}
	return keys
}

// declaration is every key of the file.
func declaration() object[Config] {
	return object[Config]{
		ignored: []string{"$schema"},
		foreign: clientKeys(),
		check:   checkConfig,
		extra: func(s *schema) {
			s.AllOf = append(exclusive("listen", "host"), append(exclusive("listen", "port"), exclusive("handleTtl", "handleTtlMs")...)...)
		},
		properties: []property[Config]{
			prop("agents", agents(), func(c *Config) *[]Agent { return &c.Agents },
				"The agents, each under its alias: the name by which callers address it, 1 to 64 of A-Z, a-z, 0-9, _ and -.").
				needed(`write "agents": {"name": {"url": "https://…"}}`),
			prop("listen", plain(listenRule, `:[0-9]+$`), func(c *Config) *string { return &c.Listen },
				"Where to listen, host:port. Port 0 picks a free one. Other than loopback needs auth, or the flag --insecure.").
				orElse(`"127.0.0.1:8931"`),
			prop("host", plain(listenHostRule, ""), func(c *Config) *string { return &c.Listen },
				"The host part of listen, instead of it.").orElse(`"127.0.0.1"`),
			prop("port", integer[int]{1, 65535}, discard[Config, int],
				"The port part of listen, instead of it.").orElse("8931"),
			prop("tls", tlsShape(), func(c *Config) *TLS { return &c.TLS },
				"Serve HTTPS with this certificate. The files are read again when they change."),
			prop("trustedProxies", proxies(), func(c *Config) *[]netip.Prefix { return &c.TrustedProxies },
				"Addresses or networks whose X-Forwarded headers are believed.").like(`["10.0.0.0/8"]`),
			prop("debugListen", plain(debugListenRule, `:[0-9]+$`), func(c *Config) *string { return &c.DebugListen },
				"Where to serve profiles and the levels of the log, loopback only; over stdio metrics too.").like(`"127.0.0.1:6060"`),
			prop("publicUrl", text{check: publicURLRule, pattern: urlPattern, expand: true, change: trimSlashes}, func(c *Config) *string { return &c.PublicURL },
				"The gateway's address as callers see it, without /mcp. Its host is an allowed Host.").like(`"https://gateway.example.com"`),
			prop("allowedHosts", list[string]{elem: text{check: hostRule, change: strings.ToLower}, unique: same[string]}, func(c *Config) *[]string { return &c.AllowedHosts },
				"Further Host names under which the gateway may be called, without port.").like(`["gateway.example.com"]`),
			prop("allowedOrigins", list[string]{elem: text{check: originRule, pattern: `^[^/]+://[^/?#@]+$`, change: strings.ToLower}, unique: same[string]}, func(c *Config) *[]string { return &c.AllowedOrigins },
				"Origins of web pages that may call the gateway from a browser.").like(`["https://app.example.com"]`),
			prop("expose", exposures(), func(c *Config) *[]Exposure { return &c.Expose },
				"How agents are shown: generic (the four tools), agents (one tool an agent), skills (one tool a skill), query (a2a_query, raw JSON-RPC).").
				byDefault(`["generic"]`),
			prop("toolPrefix", optional[string]{prefixText()}, func(c *Config) **string { return &c.ToolPrefix },
				"What the names of skill tools begin with, in place of alias and underscore. May be empty.").like(`""`),
			prop("paramHeaders", boolean{}, func(c *Config) *bool { return &c.ParamHeaders },
				"Annotate the argument agent with x-mcp-header, so that proxies can route by it.").byDefault("false"),
			prop("structuredContent", choice[StructuredContent]{StructuredAuto, StructuredAlways, StructuredNever}, func(c *Config) *StructuredContent { return &c.StructuredContent },
				"When results carry structuredContent: auto leaves it out beside images and audio.").byDefault(`"auto"`),
			prop("handleTtl", span{time.Second, month}, func(c *Config) *time.Duration { return &c.HandleTTL },
				"How long a handle works after its last use, or after its task has settled.").orElse(`"15m"`),
			prop("handleTtlMs", count{time.Millisecond, 1, int64(month / time.Millisecond)}, func(c *Config) *time.Duration { return &c.HandleTTL },
				"handleTtl in milliseconds, instead of it.").orElse("900000"),
			prop("store", storeShape(), func(c *Config) *Store { return &c.Store },
				"Where handles are kept.").byDefault("{}"),
			prop("wait", waitShape(), func(c *Config) *Wait { return &c.Wait },
				"How long calls wait for agents.").byDefault("{}"),
			prop("limits", limitsShape(), func(c *Config) *Limits { return &c.Limits },
				"What one call, one caller or the whole gateway may use.").byDefault("{}"),
			prop("profiles", profiles(), func(c *Config) *[]Profile { return &c.Profiles },
				"Named subsets of the agents, served at `/mcp/p/<name>`."),
			prop("auth", inboundShape(), func(c *Config) *Inbound { return &c.Auth },
				"Who may call. Without it everybody who reaches the gateway may.").byDefault("{}"),
			prop("log", logShape(), func(c *Config) *Log { return &c.Log },
				"How the gateway logs, on stderr.").byDefault("{}"),
		},
	}
}

// discard reads into nothing; a check looks at the node itself.
func discard[T, F any](*T) *F { return new(F) }

func trimSlashes(s string) string { return strings.TrimRight(s, "/") }

func prefixText() text {
	return text{check: toolPrefixRule, pattern: toolPrefixPattern, empty: true}
}

func tlsShape() object[TLS] {
	return object[TLS]{properties: []property[TLS]{
		prop("certFile", fileName(), func(t *TLS) *string { return &t.CertFile },
			"The certificate with its chain, PEM. Relative to this file.").needed("name the PEM file of the certificate"),
		prop("keyFile", fileName(), func(t *TLS) *string { return &t.KeyFile },
			"The certificate's private key, PEM. Relative to this file.").needed("name the PEM file of the private key"),
	}}
}

func proxies() list[netip.Prefix] {
	return list[netip.Prefix]{elem: proxy{}, unique: netip.Prefix.String}
}

// proxy reads a text into a prefix.
type proxy struct{}

func (proxy) read(c *checker, at string, n *node, dst *netip.Prefix) {
	var s string
	plain(proxyRule, "").read(c, at, n, &s)
	*dst, _ = parseProxy(s) // the rule has seen to it
}

func (proxy) schema() *schema { return plain(proxyRule, "").schema() }

func storeShape() object[Store] {
	return object[Store]{
		check: checkStore,
		extra: func(s *schema) {
			s.AllOf = []*schema{
				when("type", string(StoreFile), &schema{Required: []string{"path"}}),
				when("type", string(StoreRedis), &schema{Required: []string{"url"}}),
			}
		},
		properties: []property[Store]{
			prop("type", choice[StoreType]{StoreMemory, StoreFile, StoreRedis}, func(s *Store) *StoreType { return &s.Type },
				"memory forgets at a restart, file survives it, redis is shared by several gateways.").byDefault(`"memory"`),
			prop("path", text{expand: true, path: true}, func(s *Store) *string { return &s.Path },
				"The file of the file store. Relative to this file.").like(`"handles.db"`),
			prop("url", secret(storeURLRule), func(s *Store) *Secret { return &s.URL },
				"The server of the redis store: Redis or Valkey from 7.0 on, not a cluster.").like(`"rediss://:${env:REDIS_PASSWORD}@cache.example.com:6380/0"`),
		},
	}
}

// when says that then holds where a key has a value.
func when(key, value string, then *schema) *schema {
	return &schema{
		If:   &schema{Properties: members{{key, &schema{Const: value}}}, Required: []string{key}},
		Then: then,
	}
}

func waitShape() object[Wait] {
	return object[Wait]{properties: []property[Wait]{
		prop("withProgress", span{time.Second, longest}, func(w *Wait) *time.Duration { return &w.WithProgress },
			"How long a call waits when its client asked for progress.").byDefault(`"240s"`),
		prop("without", span{time.Second, longest}, func(w *Wait) *time.Duration { return &w.Without },
			"How long a call waits otherwise; many clients give up after 60 s of silence.").byDefault(`"50s"`),
		prop("taskGrace", span{0, longest}, func(w *Wait) *time.Duration { return &w.TaskGrace },
			"How long work may take before a client that can gets an MCP task instead; 0s is at once.").byDefault(`"10s"`),
		prop("firstByte", span{shortest, longest}, func(w *Wait) *time.Duration { return &w.FirstByte },
			"After how long a response is opened that has no answer yet.").byDefault(`"1s"`),
		prop("progress", span{10 * shortest, longest}, func(w *Wait) *time.Duration { return &w.Progress },
			"How often an open response shows a sign of life, at least.").byDefault(`"15s"`),
	}}
}

func limitsShape() object[Limits] {
	const most = math.MaxInt32
	size := integer[int64]{1024, 1 << 40}
	return object[Limits]{properties: []property[Limits]{
		prop("bodyBytes", size, func(l *Limits) *int64 { return &l.BodyBytes }, "The largest request body, 4 MiB.").byDefault("4194304"),
		prop("cardBytes", size, func(l *Limits) *int64 { return &l.CardBytes }, "The largest agent card, 1 MiB.").byDefault("1048576"),
		prop("replyBytes", size, func(l *Limits) *int64 { return &l.ReplyBytes }, "The largest answer of an agent, 16 MiB.").byDefault("16777216"),
		prop("eventBytes", size, func(l *Limits) *int64 { return &l.EventBytes }, "The largest event of an agent's stream, 8 MiB.").byDefault("8388608"),
		prop("streamBytes", size, func(l *Limits) *int64 { return &l.StreamBytes }, "The largest stream of an agent, 64 MiB.").byDefault("67108864"),
		prop("resultChars", integer[int]{1000, most}, func(l *Limits) *int { return &l.ResultChars }, "The longest text in a result, in characters; more is paged.").byDefault("40000"),
		prop("mediaBytes", size, func(l *Limits) *int64 { return &l.MediaBytes }, "The largest image, sound or file in a result, 4 MiB.").byDefault("4194304"),
		prop("handles", integer[int]{1, most}, func(l *Limits) *int { return &l.Handles }, "How many handles are kept.").byDefault("100000"),
		prop("listens", integer[int]{1, most}, func(l *Limits) *int { return &l.Listens }, "How many subscriptions/listen streams may be open.").byDefault("1024"),
		prop("principalListens", integer[int]{1, most}, func(l *Limits) *int { return &l.PrincipalListens }, "How many of them one principal may have open.").byDefault("64"),
		prop("callsPerSecond", rate{1e9}, func(l *Limits) *float64 { return &l.CallsPerSecond }, "How many calls a second one principal may make; 0 is no bound.").byDefault("0"),
		prop("concurrentCalls", integer[int]{0, most}, func(l *Limits) *int { return &l.ConcurrentCalls }, "How many calls of one principal may run at once; 0 is no bound.").byDefault("0"),
	}}
}

func profiles() dictionary[Profile] {
	return dictionary[Profile]{
		name: func(p *Profile) *string { return &p.Name }, pattern: aliasPattern,
		noun: "the name of a profile", rule: aliasRule, valid: isAlias,
		elem: object[Profile]{properties: []property[Profile]{
			prop("agents", aliases("empty; name at least one agent"), func(p *Profile) *[]string { return &p.Agents },
				"The aliases of the agents in the profile.").needed("name the agents of the profile"),
		}},
	}
}

func inboundShape() object[Inbound] {
	return object[Inbound]{properties: []property[Inbound]{
		prop("tokens", list[Token]{elem: tokenShape()}, func(i *Inbound) *[]Token { return &i.Tokens },
			"Static bearer tokens. Give token or its digest tokenSha256.").like(`[{"name": "ci", "token": "${env:CI_TOKEN}", "agents": ["billing"]}]`),
		prop("oauth", oauthShape(), func(i *Inbound) *OAuth { return &i.OAuth },
			"Accept access tokens of this authorization server."),
	}}
}

func tokenShape() object[Token] {
	return object[Token]{
		check: checkToken,
		extra: func(s *schema) {
			s.OneOf = []*schema{{Required: []string{"token"}}, {Required: []string{"tokenSha256"}}}
		},
		properties: []property[Token]{
			prop("name", plain(oneLineRule, ""), func(t *Token) *string { return &t.Name },
				"Who the token is for: the principal that handles and tasks belong to.").needed("say who the token is for"),
			prop("token", digest{text{check: bearerRule, expand: true, secret: true}}, func(t *Token) *[32]byte { return &t.SHA256 },
				"The token itself."),
			prop("tokenSha256", hexDigest{text{check: sha256Rule, pattern: sha256Pattern, expand: true, secret: true}}, func(t *Token) *[32]byte { return &t.SHA256 },
				"The SHA-256 digest of the token, 64 hexadecimal digits."),
			prop("agents", aliases("empty; name at least one agent, or remove the key"), func(t *Token) *[]string { return &t.Agents },
				"The agents that the token may use. Default all."),
			prop("profile", plain(nil, ""), func(t *Token) *string { return &t.Profile },
				"The profile that the token sees at /mcp."),
		},
	}
}

// digest reads a text into its SHA-256.
type digest struct{ text }

func (d digest) read(c *checker, at string, n *node, dst *[32]byte) {
	var s string
	d.text.read(c, at, n, &s)
	*dst = sha256.Sum256([]byte(s))
}

// hexDigest reads a digest in hexadecimal.
type hexDigest struct{ text }

func (d hexDigest) read(c *checker, at string, n *node, dst *[32]byte) {
	var s string
	d.text.read(c, at, n, &s)
	sum, _ := hex.DecodeString(s) // the rule has seen to it
	copy(dst[:], sum)
}

func oauthShape() object[OAuth] {
	return object[OAuth]{properties: []property[OAuth]{
		prop("issuer", expanded(issuerRule, urlPattern), func(o *OAuth) *string { return &o.Issuer },
			"The authorization server's issuer URL.").needed("name the authorization server").like(`"https://login.example.com"`),
		prop("audience", expanded(oneLineRule, ""), func(o *OAuth) *string { return &o.Audience },
			"The audience that a token must name. Default publicUrl followed by /mcp."),
		prop("scopes", list[string]{elem: expanded(scopeRule, ""), unique: same[string]}, func(o *OAuth) *[]string { return &o.Scopes },
			"The scopes that a token must have. Broader scopes that include one may stand behind it, after |.").like(`["agents:call|agents:admin"]`),
	}}
}

func logShape() object[Log] {
	return object[Log]{properties: []property[Log]{
		prop("level", choice[LogLevel]{LevelDebug, LevelInfo, LevelWarn, LevelError}, func(l *Log) *LogLevel { return &l.Level },
			"The least severe level to log.").byDefault(`"info"`),
		prop("format", choice[LogFormat]{FormatText, FormatJSON}, func(l *Log) *LogFormat { return &l.Format },
			"The form of a line.").byDefault(`"text"`),
		prop("debug", integer[int]{0, 5}, func(l *Log) *int { return &l.Debug },
			"How much of the traffic with agents to log: 1 flow, 2 summaries, 3 payload summaries, 4 event shapes, 5 raw events with their contents; credentials at no level. The environment variable A2A_DEBUG_LEVEL wins over it.").byDefault("0"),
	}}
}
