// Package web is the status page: what the gateway is doing at this moment,
// for people at "/" and for programs at "/api/status", with a form that calls
// a tool through the gateway's own MCP endpoint.
//
// The page is rendered here, by html/template, and works without a script. A
// small script of ours keeps it up to date and runs the form. Everything is
// embedded; nothing is loaded from elsewhere, and the content security policy
// lets nothing in. Text that agents wrote is escaped wherever it stands.
//
// The package imports nothing of this module: it declares the few values that
// it shows, and cmd fills them in for each request, so that a caller sees what
// its own view allows and no more. It keeps only Calls, the latest calls.
package web

import (
	"encoding/json"
	"slices"
	"time"
)

// Status is all that one caller may see of the gateway. Its JSON is the answer
// of /api/status. It holds no secret and no contents of calls.
type Status struct {
	// Gateway is the version of the gateway, Endpoint its MCP endpoint as
	// clients reach it.
	Gateway  string    `json:"gateway"`
	Endpoint string    `json:"endpoint"`
	Started  time.Time `json:"started"`
	// Principal is who reads this; "" where nobody has to say.
	Principal string `json:"principal,omitempty"`
	// Notices say what an operator should know, a line each.
	Notices []string `json:"notices,omitempty"`
	Agents  []Agent  `json:"agents"`
	Tools   []Tool   `json:"tools"`
	Calls   []Call   `json:"calls"`
	Tasks   Tasks    `json:"tasks"`
	Clients []Client `json:"clients"`
}

// Agent is one configured agent and its state.
type Agent struct {
	// Alias matches [A-Za-z0-9_-]{1,64}.
	Alias       string `json:"alias"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	// Release is the agent's own version.
	Release string `json:"release,omitempty"`
	// State is one of a closed set of words, "ready" among them; Reason says in
	// one line why it is another, Since when it began.
	State  string    `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	// Version, Binding and URL are those of the A2A interface in use.
	Version string `json:"version,omitempty"`
	Binding string `json:"binding,omitempty"`
	URL     string `json:"url,omitempty"`
	CardURL string `json:"cardUrl,omitempty"`
	// Documentation is a URL out of the card: a stranger's, not to be trusted.
	Documentation string   `json:"documentation,omitempty"`
	Skills        []Skill  `json:"skills"`
	Notes         []string `json:"notes,omitempty"`
}

// Skill is one skill of an agent's card.
type Skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
}

// Tool is one tool as clients see it; the schemas are raw JSON.
type Tool struct {
	// Name matches [A-Za-z0-9_-]{1,64}.
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// Agent and Skill say what the tool stands for; both are empty for the
	// tools that stand for no one agent.
	Agent string `json:"agent,omitempty"`
	Skill string `json:"skill,omitempty"`
}

// Tasks are the tasks of the caller that worked or waited when the gateway last
// heard of them: it does not ask an agent for the sake of the page.
type Tasks struct {
	Open int `json:"open"`
	// More says that Open is a lower bound: not all were counted.
	More bool `json:"more,omitempty"`
	// List is the newest of them.
	List []Task `json:"list"`
}

// Task is one open task.
type Task struct {
	// Handle is shortened: whoever knows a whole handle can use it.
	Handle string    `json:"handle"`
	Agent  string    `json:"agent"`
	Since  time.Time `json:"since"`
}

// Client is what to put where, to connect one MCP client.
type Client struct {
	// ID matches [a-z0-9-]+ and is unique.
	ID    string `json:"id"`
	Title string `json:"title"`
	// Blocks are the ways to connect it, the best first.
	Blocks []Block `json:"blocks"`
	// Note says what else there is to do or to know.
	Note string `json:"note,omitempty"`
}

// Block is a text to copy.
type Block struct {
	// Where is the file that Text belongs into, or where to run it.
	Where string `json:"where"`
	Text  string `json:"text"`
}

// ShortHandle is a handle that people can tell from others and cannot use.
func ShortHandle(handle string) string {
	const shown = 9 // the prefix and six characters of 26
	if len(handle) <= 2*shown {
		return "…"
	}
	return handle[:shown] + "…"
}

// normal has an empty list where there is none, so that programs find arrays.
func (s Status) normal() Status {
	s.Agents, s.Tools, s.Calls = list(s.Agents), list(s.Tools), list(s.Calls)
	s.Tasks.List, s.Clients = list(s.Tasks.List), list(s.Clients)
	s.Agents, s.Clients = slices.Clone(s.Agents), slices.Clone(s.Clients) // the lists may be shared
	for i := range s.Agents {
		s.Agents[i].Skills = list(s.Agents[i].Skills)
	}
	for i := range s.Clients {
		s.Clients[i].Blocks = list(s.Clients[i].Blocks)
	}
	return s
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
