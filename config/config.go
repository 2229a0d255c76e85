// Package config turns the configuration file into a checked struct.
//
// One declaration (declare.go) says of every key what it is, what it means and
// what it is without being given. The checker, the JSON Schema, the reference
// page and the defaults all come from it, so that they cannot disagree. Parse
// reports every problem of a file at once, each with its place, the value and
// the remedy; a Config that comes out has nothing left to check.
//
// The package imports nothing of this module, reads no environment of its own
// (Load takes the process's, Parse what it is given) and starts nothing: Watch
// blocks.
package config

import (
	"encoding/json"
	"net/netip"
	"time"
)

// Config is a checked configuration with all defaults filled in. It is never
// changed after it was returned, except by whoever applies flags to it.
type Config struct {
	// Path is the file that was read, "" for none.
	Path string
	// Files are the files that the file names (secrets, certificates, keys),
	// as absolute as Path and sorted: a change to one is a change to the
	// configuration.
	Files []string

	// Agents are in the order of the file; at least one.
	Agents []Agent

	// Listen is host:port; port 0 picks a free one.
	Listen string
	// TLS is zero when the gateway speaks plain HTTP.
	TLS TLS
	// TrustedProxies are the addresses whose X-Forwarded headers count.
	TrustedProxies []netip.Prefix
	// DebugListen is the loopback host:port of the debug listener, "" for none.
	DebugListen string
	// PublicURL is the gateway's address as callers see it, without a
	// trailing slash; "" when it is not told.
	PublicURL string
	// AllowedHosts are further Host names, lower case, without port;
	// AllowedOrigins are browser origins, lower case.
	AllowedHosts   []string
	AllowedOrigins []string

	// Expose is how agents are shown where an agent does not say.
	Expose []Exposure
	// ToolPrefix goes before the names of skill tools; nil is each agent's
	// alias, a pointer to "" is none.
	ToolPrefix *string
	// ParamHeaders annotates the argument agent with x-mcp-header.
	ParamHeaders      bool
	StructuredContent StructuredContent

	// HandleTTL is how long a handle lives after its last use.
	HandleTTL time.Duration
	Store     Store
	Wait      Wait
	Limits    Limits

	// Profiles are in the order of the file.
	Profiles []Profile
	// Auth is who may call.
	Auth Inbound
	Log  Log
}

// Agent is one configured agent.
type Agent struct {
	// Alias matches [A-Za-z0-9_-]{1,64}.
	Alias string
	// Exactly one of URL and CardURL is set. CardPath goes with URL only: a
	// path below it, or the whole address of the card.
	URL      string
	CardURL  string
	CardPath string
	Enabled  bool

	Protocol  Protocol
	Binding   Binding
	URLPolicy URLPolicy
	// AllowHosts are host or host:port, lower case.
	AllowHosts []string
	// Headers are sent with each request, in the order of the file.
	Headers []Header
	Auth    Auth

	// Expose is never empty: the agent's own, else the configuration's.
	Expose []Exposure
	// ToolPrefix as in Config; the configuration's where the agent has none.
	ToolPrefix *string
	// Timeout replaces Wait for this agent; 0 leaves it.
	Timeout time.Duration
	Tasks   TaskPolicy
	// Skills are in the order of the file.
	Skills              []Skill
	EmptyStreamFallback bool
	// MaxConcurrent bounds requests in flight; 0 is no bound.
	MaxConcurrent int
	// Pin holds back what a changed card says to a model until somebody
	// accepts it.
	Pin bool
}

// Skill is what the configuration says of one skill of an agent.
type Skill struct {
	ID string
	// InputSchema is a JSON Schema of an object; nil where none is given.
	InputSchema json.RawMessage
	// Tasks is the agent's policy where the skill has none.
	Tasks TaskPolicy
}

// Header is one static header.
type Header struct {
	Name  string
	Value Secret
}

// Auth is an agent's credential. Only the fields of its Type are set; what is
// required for the type is there.
type Auth struct {
	Type AuthType

	Token Secret // bearer

	Key    Secret // apikey
	Header string // apikey: short for In "header" and Name
	In     string // apikey: header, query, cookie, or ""
	Name   string // apikey

	Username string // basic
	Password Secret // basic

	ClientID     string   // oauth2
	ClientSecret Secret   // oauth2
	TokenURL     string   // oauth2: a URL, or "fromCard"
	Scopes       []string // oauth2
	AuthStyle    string   // oauth2: header, params, or "" to find out

	Resource string // az_cli; "" takes it from the card

	CertFile   string // mtls
	KeyFile    string // mtls
	CAFile     string // mtls, optional
	ServerName string // mtls, optional

	// OnCard says whether the credential goes with the card's request too.
	OnCard AuthOnCard
}

// TLS names the gateway's certificate; both set or both empty.
type TLS struct {
	CertFile string
	KeyFile  string
}

// Store says where handles are kept.
type Store struct {
	Type StoreType
	// Path is the file of StoreFile; URL the server of StoreRedis.
	Path string
	URL  Secret
}

// Wait is how long calls wait.
type Wait struct {
	WithProgress time.Duration
	Without      time.Duration
	TaskGrace    time.Duration // may be 0
	FirstByte    time.Duration
	Progress     time.Duration
}

// Limits bound what one call, one caller or the whole gateway may use.
type Limits struct {
	BodyBytes   int64
	CardBytes   int64
	ReplyBytes  int64
	EventBytes  int64
	StreamBytes int64
	ResultChars int
	MediaBytes  int64
	Handles     int
	Listens     int
	// PrincipalListens bounds the open listen streams of one principal.
	PrincipalListens int
	// CallsPerSecond and ConcurrentCalls are for each principal; 0 is no bound.
	CallsPerSecond  float64
	ConcurrentCalls int
}

// Profile is a named subset of the agents.
type Profile struct {
	Name   string
	Agents []string // at least one, all of them configured
}

// Inbound is who may call; the zero Inbound asks nobody.
type Inbound struct {
	Tokens []Token
	OAuth  OAuth
}

// Enabled reports whether callers must prove who they are.
func (i Inbound) Enabled() bool { return len(i.Tokens) > 0 || i.OAuth.Issuer != "" }

// Token is one static bearer token. The token itself is forgotten when the
// file has been read.
type Token struct {
	// Name is the principal.
	Name   string
	SHA256 [32]byte
	// Agents are the aliases this token may use; nil means all.
	Agents []string
	// Profile is the profile that the token sees at /mcp, "" for none.
	Profile string
}

// OAuth is the authorization server whose access tokens count; without an
// Issuer there is none.
type OAuth struct {
	Issuer   string
	Audience string
	Scopes   []string
}

// Log is how the gateway logs.
type Log struct {
	Level  LogLevel
	Format LogFormat
	// Debug is how much of the traffic with agents the level debug shows,
	// 0 to 5.
	Debug int
}

// Exposure is one way of showing an agent as tools.
type Exposure string

// The exposures.
const (
	ExposeGeneric Exposure = "generic"
	ExposeAgents  Exposure = "agents"
	ExposeSkills  Exposure = "skills"
	ExposeQuery   Exposure = "query"
)

// Protocol is the A2A version to speak.
type Protocol string

// The protocols.
const (
	ProtocolAuto Protocol = "auto"
	Protocol10   Protocol = "1.0"
	Protocol03   Protocol = "0.3"
)

// Binding is the A2A binding to use.
type Binding string

// The bindings.
const (
	BindingAuto    Binding = "auto"
	BindingJSONRPC Binding = "JSONRPC"
	BindingREST    Binding = "HTTP+JSON"
)

// URLPolicy says how far a card's addresses are believed.
type URLPolicy string

// The policies.
const (
	URLPolicyAuto       URLPolicy = "auto"
	URLPolicyCard       URLPolicy = "card"
	URLPolicyConfigured URLPolicy = "configured"
)

// TaskPolicy says when calls become MCP tasks.
type TaskPolicy string

// The policies.
const (
	TasksAuto     TaskPolicy = "auto"
	TasksNever    TaskPolicy = "never"
	TasksRequired TaskPolicy = "required"
)

// AuthType is the sort of an agent's credential.
type AuthType string

// The sorts.
const (
	AuthNone   AuthType = "none"
	AuthBearer AuthType = "bearer"
	AuthAPIKey AuthType = "apikey"
	AuthBasic  AuthType = "basic"
	AuthOAuth2 AuthType = "oauth2"
	AuthAzCLI  AuthType = "az_cli"
	AuthMTLS   AuthType = "mtls"
)

// AuthOnCard says whether a card is fetched with the credential.
type AuthOnCard string

// The choices.
const (
	OnCardAuto   AuthOnCard = "auto"
	OnCardAlways AuthOnCard = "always"
	OnCardNever  AuthOnCard = "never"
)

// StoreType is a backend of the handle table.
type StoreType string

// The backends.
const (
	StoreMemory StoreType = "memory"
	StoreFile   StoreType = "file"
	StoreRedis  StoreType = "redis"
)

// StructuredContent says when results carry structuredContent.
type StructuredContent string

// The choices.
const (
	StructuredAuto   StructuredContent = "auto"
	StructuredAlways StructuredContent = "always"
	StructuredNever  StructuredContent = "never"
)

// LogLevel is the least severe level that is logged.
type LogLevel string

// The levels.
const (
	LevelDebug LogLevel = "debug"
	LevelInfo  LogLevel = "info"
	LevelWarn  LogLevel = "warn"
	LevelError LogLevel = "error"
)

// LogFormat is the form of a log line.
type LogFormat string

// The formats.
const (
	FormatText LogFormat = "text"
	FormatJSON LogFormat = "json"
)

// Agent returns the agent of an alias.
func (c *Config) Agent(alias string) (*Agent, bool) {
	for i := range c.Agents {
		if c.Agents[i].Alias == alias {
			return &c.Agents[i], true
		}
	}
	return nil, false
}

// Profile returns the profile of a name.
func (c *Config) Profile(name string) (*Profile, bool) {
	for i := range c.Profiles {
		if c.Profiles[i].Name == name {
			return &c.Profiles[i], true
		}
	}
	return nil, false
}
