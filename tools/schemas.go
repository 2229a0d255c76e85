package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/translate"
)

// The names of the tools that do not stand for one agent.
const (
	ToolDiscover = "a2a_discover"
	ToolSend     = "a2a_send_message"
	ToolGetTask  = "a2a_get_task"
	ToolCancel   = "a2a_cancel_task"
	ToolQuery    = "a2a_query"
)

// Bounds of arguments, in seconds and characters.
const (
	maxTimeoutSeconds = 300
	maxWaitSeconds    = 300
	maxHistory        = 1000
)

// property is one property of an object schema.
type property struct {
	name   string
	schema string // raw JSON
}

// objectSchema writes an object schema with its properties in the given
// order. Only keywords that every client accepts are used (no $ref, anyOf,
// oneOf, allOf, not, const, format).
func objectSchema(props []property, required ...string) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i, p := range props {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", jsonString(p.name), p.schema)
	}
	b.WriteByte('}')
	if len(required) > 0 {
		b.WriteString(`,"required":` + jsonValue(required))
	}
	b.WriteString(`,"additionalProperties":false}`)
	return json.RawMessage(b.String())
}

// agentProperty is the schema of the agent argument: the aliases as an enum,
// the only one as default. A nil list leaves both out, which is the form that
// calls are checked against: an invented alias gets a better answer than an
// enum violation.
func agentProperty(aliases []string, description string, paramHeader bool) property {
	s := `{"type":"string","description":` + jsonString(description)
	if len(aliases) > 0 {
		s += `,"enum":` + jsonValue(aliases)
	}
	if len(aliases) == 1 {
		s += `,"default":` + jsonString(aliases[0])
	}
	if paramHeader {
		s += `,"x-mcp-header":"Agent"`
	}
	return property{"agent", s + "}"}
}

func stringProperty(name, description string) property {
	return property{name, `{"type":"string","description":` + jsonString(description) + `}`}
}

func integerProperty(name, description string, low, high int) property {
	s := fmt.Sprintf(`{"type":"integer","minimum":%d`, low)
	if high > 0 {
		s += fmt.Sprintf(`,"maximum":%d`, high)
	}
	return property{name, s + `,"description":` + jsonString(description) + `}`}
}

// agentWords describes the agent argument.
func agentWords(aliases []string, otherwise string) string {
	if len(aliases) == 1 {
		return fmt.Sprintf("Alias of the agent. Only %q is configured, so it may be left out.", aliases[0])
	}
	return "Alias of the agent. " + otherwise
}

func discoverProperties(aliases []string, header bool) []property {
	return []property{
		agentProperty(aliases, agentWords(aliases, "With it: that agent's card. Without it: a list of agents."), header),
		stringProperty("query", "Words to look for in names, descriptions, skills, tags and examples. The best 10 agents are listed."),
		{"skillTags", `{"type":"array","items":{"type":"string"},"description":"List only agents that have a skill with one of these tags."}`},
	}
}

func sendProperties(aliases []string, header bool) []property {
	return []property{
		agentProperty(aliases, agentWords(aliases, "May be left out when a handle is given."), header),
		stringProperty("text", "The message in plain text. At least one of text, data and files is needed."),
		{"data", `{"description":"Structured input for the agent, any JSON value."}`},
		{"files", `{"type":"array","description":"Files for the agent, each with bytes (base64) or url.","items":{"type":"object","properties":` +
			`{"name":{"type":"string"},"mediaType":{"type":"string"},"bytes":{"type":"string","description":"Content in base64."},"url":{"type":"string"}},"additionalProperties":false}}`},
		stringProperty("contextHandle", "Handle (cx_...) from an earlier result: go on with that conversation."),
		stringProperty("taskHandle", "Handle (tk_...) from an earlier result: answer the task that waits for input, or follow up on a finished one."),
		{"blocking", `{"type":"boolean","default":true,"description":"false: return as soon as the agent has taken the message, with a taskHandle for a2a_get_task."}`},
		integerProperty("timeoutSeconds", "How long to wait for the answer. After it the result has status working and a taskHandle; the agent works on.", 1, maxTimeoutSeconds),
		{"metadata", `{"type":"object","description":"Metadata to send with the message."}`},
	}
}

func getTaskProperties(aliases []string, header bool) []property {
	return []property{
		stringProperty("taskHandle", "Handle (tk_...) from an earlier result."),
		agentProperty(aliases, agentWords(aliases, "May be left out: the handle names it."), header),
		integerProperty("historyLength", "How many of the newest turns of the conversation to return.", 0, maxHistory),
		integerProperty("waitSeconds", "Wait up to this long until the task is done or asks something. 0 or absent: answer at once.", 0, maxWaitSeconds),
		stringProperty("artifactId", "Return only the text of this artifact, from offset on. Use it to read a long result that was cut."),
		integerProperty("offset", "With artifactId: the character to start at, from page.nextOffset of the page before.", 0, 0),
	}
}

func cancelProperties(aliases []string, header bool) []property {
	return []property{
		stringProperty("taskHandle", "Handle (tk_...) of the task to cancel."),
		agentProperty(aliases, agentWords(aliases, "May be left out: the handle names it."), header),
	}
}

func queryProperties(aliases []string, header bool) []property {
	return []property{
		agentProperty(aliases, agentWords(aliases, "Needed."), header),
		stringProperty("method", "The JSON-RPC method, such as GetTask or tasks/get, as the agent's protocol version spells it."),
		{"params", `{"type":"object","description":"The params object, sent as it is."}`},
	}
}

// lifetimeWords says how long handles live, for descriptions.
func lifetimeWords(ttl time.Duration) string {
	return fmt.Sprintf("A handle works until %s after its last use, longer while its task still works; one that has expired is an error, then start again without it.", durationWords(ttl))
}

// durationWords writes a duration in whole minutes or seconds.
func durationWords(d time.Duration) string {
	unit, n := "second", int64(d.Round(time.Second)/time.Second)
	if n >= 60 && n%60 == 0 {
		unit, n = "minute", n/60
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// discoverOutput is the outputSchema of a2a_discover. It must hold for every
// card an agent can serve, so it asks for no more than an object.
const discoverOutput = `{"type":"object","description":"With agent: the agent card as the agent serves it. Without: agents (alias, name, description, state, reason, since, version, skills) and total."}`

// genericTools builds the four tools for the aliases of one view.
func (st *state) genericTools(aliases []string) []Tool {
	h := st.opts.ParamHeaders
	life := lifetimeWords(st.opts.HandleTTL)
	others := aliases
	if len(aliases) > manyAliases {
		// A long enum four times over would crowd out the agents' own tools;
		// one says it all.
		others = nil
	}
	named := aliases
	if len(jsonValue(aliases)) > maxEnum {
		named = nil
	}
	discover := Tool{
		Name:  ToolDiscover,
		Title: "Discover agents",
		Description: "List the A2A agents behind this gateway with their skills and state, search them with query or skillTags, " +
			"or read one agent's card with agent. Read-only; use it to choose an agent before a2a_send_message.",
		InputSchema: objectSchema(discoverProperties(others, h)),
		Annotations: annotations(true, false, true),
	}
	if st.opts.Structured != translate.StructuredNever {
		discover.OutputSchema = json.RawMessage(discoverOutput)
	}
	out := []Tool{
		discover,
		{
			Name:  ToolSend,
			Title: "Send a message to an agent",
			Description: "Send a message to an A2A agent and wait for its answer. A new conversation starts unless contextHandle or taskHandle is given; " +
				"each result names its handles. Status input_required means that the agent asks something: answer with the taskHandle. " +
				"Status working means that it goes on: collect the answer with a2a_get_task. " + life,
			InputSchema: objectSchema(sendProperties(named, h)),
			Annotations: annotations(false, true, false),
		},
		{
			Name:  ToolGetTask,
			Title: "Get a task",
			Description: "Read a task of an agent by its taskHandle: status, answer so far, history. With waitSeconds it waits until the task is done or asks something. " +
				"With artifactId and offset it reads a long text piece by piece. " + life,
			InputSchema: objectSchema(getTaskProperties(others, h), "taskHandle"),
			Annotations: annotations(true, false, true),
		},
		{
			Name:        ToolCancel,
			Title:       "Cancel a task",
			Description: "Ask the agent to cancel a running task by its taskHandle. A task that is already done cannot be cancelled. " + life,
			InputSchema: objectSchema(cancelProperties(others, h), "taskHandle"),
			Annotations: annotations(false, true, true),
		},
	}
	for i := range out {
		out[i].Meta = genericMeta()
	}
	return out
}

// queryTool is a2a_query, off unless configured.
func (st *state) queryTool(aliases []string) Tool {
	return Tool{
		Name:  ToolQuery,
		Title: "Raw A2A request",
		Description: "WARNING: sends any JSON-RPC method to an A2A agent unchecked, which may change or delete things there. " +
			"Prefer a2a_send_message, a2a_get_task and a2a_cancel_task; they work with handles, this works with the agent's own ids.",
		InputSchema: objectSchema(queryProperties(aliases, st.opts.ParamHeaders), "method"),
		Annotations: annotations(false, true, false),
		Meta:        sizeMeta(),
	}
}

// annotations are the MCP hints; every tool talks to a world outside.
func annotations(readOnly, destructive, idempotent bool) mcp.ToolAnnotation {
	open := true
	return mcp.ToolAnnotation{
		ReadOnlyHint:    &readOnly,
		DestructiveHint: &destructive,
		IdempotentHint:  &idempotent,
		OpenWorldHint:   &open,
	}
}

// genericMeta asks Claude Code to load the tool at once and to take large
// results inline.
func genericMeta() []translate.MetaEntry {
	return append([]translate.MetaEntry{{Key: "anthropic/alwaysLoad", Value: json.RawMessage("true")}}, sizeMeta()...)
}

func sizeMeta() []translate.MetaEntry {
	return []translate.MetaEntry{{Key: "anthropic/maxResultSizeChars", Value: json.RawMessage("200000")}}
}

// propertyNames lists the names of properties in order.
func propertyNames(props []property) []string {
	out := make([]string, len(props))
	for i, p := range props {
		out[i] = p.name
	}
	return out
}

// jsonString encodes a string without escaping HTML.
func jsonString(s string) string { return jsonValue(s) }

// jsonValue encodes a value that cannot fail, without escaping HTML.
func jsonValue(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
