package clientfile

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The timeouts that entries raise: agents take their time. A client without
// such a field has its own limit, see docs/clients.md.
const (
	timeoutMillis  = 600_000
	timeoutSeconds = 600
)

// Server is what an entry says of the gateway.
type Server struct {
	Name string // [A-Za-z0-9_-]{1,32}
	URL  string
	// TokenEnv names the environment variable that holds the bearer token, ""
	// for none. The token itself is never written.
	TokenEnv string
}

// Scope says whose file is edited.
type Scope string

// The scopes.
const (
	User    Scope = "user"
	Project Scope = "project"
)

// Places are the folders that the files are in.
type Places struct {
	OS         string // as runtime.GOOS
	Home       string
	ConfigHome string // XDG_CONFIG_HOME
	AppData    string // APPDATA, on Windows
	Project    string // where project files are
	ClaudeHome string // CLAUDE_CONFIG_DIR
	CodexHome  string // CODEX_HOME
}

// config is the folder for the configuration of programs on Linux.
func (p Places) config() string {
	if p.ConfigHome != "" {
		return p.ConfigHome
	}
	return filepath.Join(p.Home, ".config")
}

// Client is one kind of MCP client.
type Client struct {
	ID     string // as on the command line
	Title  string
	Format Format
	// After says what the user has to do before the client sees the change.
	After string

	user, project func(Places) string // nil where there is no such file
	entry         func(Server) Entry
	command       func(Server, Scope) string
	userOnly      bool // command writes the user's file only
	link          func(Server) string
	reserved      []string // server names
	noToken       string   // why a token cannot be named, "" where it can
}

// Clients returns every client, in the order of the documentation.
func Clients() []Client {
	return []Client{claude(), cursor(), vscode(), codex(), gemini(), windsurf(), zed(), goose()}
}

// Lookup returns the client of an ID.
func Lookup(id string) (Client, bool) {
	list := Clients()
	i := slices.IndexFunc(list, func(c Client) bool { return c.ID == id })
	if i < 0 {
		return Client{}, false
	}
	return list[i], true
}

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	inputRef   = regexp.MustCompile(`\$\{input:([A-Za-z_][A-Za-z0-9_]*)\}`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Entry returns the entry of a server. The errors name the value and the
// remedy.
func (c Client) Entry(s Server) (Entry, error) {
	u, err := url.Parse(s.URL)
	switch {
	case !serverName.MatchString(s.Name):
		return Entry{}, fmt.Errorf("name %q: want 1 to 32 of A-Z, a-z, 0-9, _ and -", s.Name)
	case slices.Contains(c.reserved, s.Name):
		return Entry{}, fmt.Errorf("name %q: %s keeps this one for itself; choose another", s.Name, c.Title)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(s.URL, "\"'`\\<>{}$ "):
		return Entry{}, fmt.Errorf("url %q: want the gateway's address, such as http://127.0.0.1:8931/mcp", s.URL)
	case u.User != nil:
		return Entry{}, fmt.Errorf("url %q: leave the password out; name the variable that holds the token instead", u.Redacted())
	case s.TokenEnv != "" && !envName.MatchString(s.TokenEnv):
		return Entry{}, fmt.Errorf("token variable %q is not the name of an environment variable, such as A2AGATE_TOKEN; the token itself is never written to a file", s.TokenEnv)
	case s.TokenEnv != "" && c.noToken != "":
		return Entry{}, fmt.Errorf("%s %s", c.Title, c.noToken)
	}
	return c.entry(s), nil
}

// Remove returns the file without the server of a name, however it was
// installed; see the function Remove.
func (c Client) Remove(file []byte, name string) ([]byte, error) {
	if err := tooLarge(file); err != nil {
		return nil, err
	}
	s := Server{Name: name}
	in := c.entry(s).In
	if m := inputRef.FindStringSubmatch(oneLine(editorOf(c.Format).fields(file, in, name))); m != nil {
		s.TokenEnv = m[1]
	}
	return Remove(c.Format, file, c.entry(s))
}

// File returns the path of the file of a scope.
func (c Client) File(scope Scope, p Places) (string, error) {
	place := c.user
	if scope == Project {
		place = c.project
	}
	if place == nil {
		return "", fmt.Errorf("%s has no %s file", c.Title, scope)
	}
	return place(p), nil
}

// Command returns the line that makes the client itself add the server to the
// file of a scope, "" where it has none. Without a scope, Claude Code takes its
// own default.
func (c Client) Command(s Server, scope Scope) string {
	if c.command == nil || scope == Project && c.userOnly {
		return ""
	}
	return c.command(s, scope)
}

// Link returns a link that opens the client and offers to add the server, ""
// where it has none. It is always the user's file that a link writes.
func (c Client) Link(s Server, scope Scope) string {
	if c.link == nil || scope == Project {
		return ""
	}
	return c.link(s)
}

// bearer is the headers field of a server with a token, nothing without one.
// reference is how the client writes a variable, %s being its name.
func bearer(s Server, reference string) Fields {
	if s.TokenEnv == "" {
		return nil
	}
	return Fields{{"headers", Fields{{"Authorization", "Bearer " + fmt.Sprintf(reference, s.TokenEnv)}}}}
}

func in(parts ...string) func(Places) string {
	return func(p Places) string { return filepath.Join(append([]string{p.Project}, parts...)...) }
}

func home(parts ...string) func(Places) string {
	return func(p Places) string { return filepath.Join(append([]string{p.Home}, parts...)...) }
}

func claude() Client {
	return Client{
		ID: "claude", Title: "Claude Code", Format: JSON,
		After:    "start claude anew, or reconnect in /mcp",
		reserved: []string{"workspace", "claude-in-chrome", "computer-use"},
		user: func(p Places) string {
			if p.ClaudeHome != "" {
				return filepath.Join(p.ClaudeHome, ".claude.json")
			}
			return filepath.Join(p.Home, ".claude.json")
		},
		project: in(".mcp.json"),
		entry: func(s Server) Entry {
			fields := append(Fields{{"type", "http"}, {"url", s.URL}}, bearer(s, "${%s}")...)
			return Entry{In: "mcpServers", Name: s.Name, Fields: append(fields, Field{"timeout", timeoutMillis}), Foreign: []string{"command"}}
		},
		command: func(s Server, scope Scope) string {
			line := "claude mcp add --transport http"
			if scope != "" {
				line += " --scope " + string(scope)
			}
			line += " " + s.Name + " " + s.URL
			if s.TokenEnv != "" {
				line += " --header 'Authorization: Bearer ${" + s.TokenEnv + "}'"
			}
			return line
		},
	}
}

func cursor() Client {
	entry := func(s Server) Entry {
		return Entry{In: "mcpServers", Name: s.Name, Fields: append(Fields{{"url", s.URL}}, bearer(s, "${env:%s}")...), Foreign: []string{"command"}}
	}
	return Client{
		ID: "cursor", Title: "Cursor", Format: JSON,
		After: "switch the server on in Cursor Settings, MCP",
		user:  home(".cursor", "mcp.json"), project: in(".cursor", "mcp.json"),
		entry: entry,
		link: func(s Server) string {
			config := base64.StdEncoding.EncodeToString([]byte(oneLine(entry(s).Fields)))
			return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + escape(s.Name) + "&config=" + escape(config)
		},
	}
}

// escape is JavaScript's encodeURIComponent, which both clients undo.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// oneLine writes fields as compact JSON.
func oneLine(f Fields) string { return layout{colon: ":", comma: ","}.value(f, "") }

func vscode() Client {
	entry := func(s Server) Entry {
		e := Entry{In: "servers", Name: s.Name, Fields: Fields{{"type", "http"}, {"url", s.URL}}, Foreign: []string{"command"}}
		if s.TokenEnv != "" {
			// ${env:…} is not substituted in headers; an input is asked for once
			// and kept in the system's key store.
			e.Fields = append(e.Fields, Field{"headers", Fields{{"Authorization", "Bearer ${input:" + s.TokenEnv + "}"}}})
			e.Inputs = Inputs{In: "inputs", Items: []Fields{{
				{"type", "promptString"}, {"id", s.TokenEnv}, {"description", "Token of the a2agate gateway (" + s.TokenEnv + ")"}, {"password", true},
			}}}
		}
		return e
	}
	named := func(s Server) string {
		e := entry(s)
		f := append(Fields{{"name", s.Name}}, e.Fields...)
		if len(e.Inputs.Items) > 0 {
			f = append(f, Field{"inputs", e.Inputs.Items})
		}
		return oneLine(f)
	}
	return Client{
		ID: "vscode", Title: "VS Code", Format: JSON,
		After: "start the server: its line in the file has a Start button",
		user: func(p Places) string {
			switch p.OS {
			case "windows":
				return filepath.Join(p.AppData, "Code", "User", "mcp.json")
			case "darwin":
				return filepath.Join(p.Home, "Library", "Application Support", "Code", "User", "mcp.json")
			}
			return filepath.Join(p.config(), "Code", "User", "mcp.json")
		},
		project:  in(".vscode", "mcp.json"),
		entry:    entry,
		userOnly: true,
		command:  func(s Server, _ Scope) string { return "code --add-mcp '" + named(s) + "'" },
		link:     func(s Server) string { return "vscode:mcp/install?" + escape(named(s)) },
	}
}

func codex() Client {
	return Client{
		ID: "codex", Title: "Codex CLI", Format: TOML,
		After: "start codex anew; a project's file counts where codex trusts the project",
		user: func(p Places) string {
			if p.CodexHome != "" {
				return filepath.Join(p.CodexHome, "config.toml")
			}
			return filepath.Join(p.Home, ".codex", "config.toml")
		},
		project: in(".codex", "config.toml"),
		entry: func(s Server) Entry {
			fields := Fields{{"url", s.URL}}
			if s.TokenEnv != "" {
				fields = append(fields, Field{"bearer_token_env_var", s.TokenEnv})
			}
			return Entry{In: "mcp_servers", Name: s.Name, Fields: append(fields, Field{"tool_timeout_sec", timeoutSeconds}), Foreign: []string{"command"}}
		},
		userOnly: true,
		command: func(s Server, _ Scope) string {
			line := "codex mcp add " + s.Name + " --url " + s.URL
			if s.TokenEnv != "" {
				line += " --bearer-token-env-var " + s.TokenEnv
			}
			return line
		},
	}
}

func gemini() Client {
	return Client{
		ID: "gemini", Title: "Gemini CLI", Format: JSON,
		After: "start gemini anew",
		user:  home(".gemini", "settings.json"), project: in(".gemini", "settings.json"),
		entry: func(s Server) Entry {
			fields := append(Fields{{"httpUrl", s.URL}}, bearer(s, "${%s}")...)
			return Entry{In: "mcpServers", Name: s.Name, Fields: append(fields, Field{"timeout", timeoutMillis}), Foreign: []string{"command", "url"}}
		},
		command: func(s Server, scope Scope) string {
			line := fmt.Sprintf("gemini mcp add --transport http --scope %s --timeout %d %s %s", scope, timeoutMillis, s.Name, s.URL)
			if s.TokenEnv != "" {
				line += " --header 'Authorization: Bearer ${" + s.TokenEnv + "}'"
			}
			return line
		},
	}
}

func windsurf() Client {
	return Client{
		ID: "windsurf", Title: "Windsurf", Format: JSON,
		After: "press Refresh in the list of MCP servers",
		user:  home(".codeium", "windsurf", "mcp_config.json"),
		entry: func(s Server) Entry {
			return Entry{In: "mcpServers", Name: s.Name, Fields: append(Fields{{"serverUrl", s.URL}}, bearer(s, "${env:%s}")...), Foreign: []string{"command"}}
		},
	}
}

func zed() Client {
	return Client{
		ID: "zed", Title: "Zed", Format: JSON,
		After:   "nothing: Zed reads the file at once",
		noToken: "sends headers as they are written and cannot name a variable; leave the token variable out and put the header in by hand, or let Zed start 'a2agate stdio'",
		user: func(p Places) string {
			if p.OS == "windows" {
				return filepath.Join(p.AppData, "Zed", "settings.json")
			}
			if p.OS == "darwin" {
				return filepath.Join(p.Home, ".config", "zed", "settings.json")
			}
			return filepath.Join(p.config(), "zed", "settings.json")
		},
		project: in(".zed", "settings.json"),
		entry: func(s Server) Entry {
			return Entry{In: "context_servers", Name: s.Name, Fields: Fields{{"url", s.URL}, {"timeout", timeoutSeconds}}, Foreign: []string{"command"}}
		},
	}
}

func goose() Client {
	return Client{
		ID: "goose", Title: "Goose", Format: YAML,
		After: "start a new session",
		user: func(p Places) string {
			if p.OS == "windows" {
				return filepath.Join(p.AppData, "Block", "goose", "config", "config.yaml")
			}
			return filepath.Join(p.config(), "goose", "config.yaml")
		},
		entry: func(s Server) Entry {
			fields := Fields{{"name", s.Name}, {"type", "streamable_http"}, {"enabled", true}, {"uri", s.URL}, {"timeout", timeoutSeconds}}
			if s.TokenEnv != "" {
				fields = append(append(fields, Field{"env_keys", []string{s.TokenEnv}}), bearer(s, "${%s}")...)
			}
			return Entry{In: "extensions", Name: s.Name, Fields: fields, Foreign: []string{"cmd"}}
		},
	}
}
