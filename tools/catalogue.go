package tools

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/translate"
)

// Tool is one tool as a caller sees it. Schemas are raw JSON and leave the
// gateway byte for byte.
type Tool struct {
	// Name matches ^[A-Za-z0-9_-]{1,64}$ and is unique in its catalogue.
	Name        string
	Title       string
	Description string
	InputSchema json.RawMessage
	// OutputSchema is nil where none is declared.
	OutputSchema json.RawMessage
	Annotations  mcp.ToolAnnotation
	Meta         []translate.MetaEntry
	// Agent and Skill say what an exposed tool stands for; both empty for the
	// four generic tools.
	Agent string
	Skill string
}

// Prompt is one skill as an MCP prompt.
type Prompt struct {
	Name        string
	Title       string
	Description string
	Arguments   []mcp.PromptArgument
	Agent       string
	Skill       string
}

// Resource is one readable resource, such as an agent card.
type Resource struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string
}

// Catalogue is what one kind of caller sees: an immutable snapshot, replaced
// as a whole when an agent or the configuration changes. Lists are sorted by
// name (URI for resources), so that two readings agree.
type Catalogue struct {
	// Instructions is the server's word to the model, at most 2 KB.
	Instructions string
	Tools        []Tool
	Prompts      []Prompt
	Resources    []Resource
	Templates    []Resource // URI holds the RFC 6570 template
}

// View names a catalogue: a profile of the configuration and the subset of
// agents a principal may see. The zero View is everything.
type View struct {
	Profile string
	// Agents is a sorted, comma-separated list of aliases; "" means all.
	Agents string
}
