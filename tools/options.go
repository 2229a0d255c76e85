package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"a2agate/a2a"
	"a2agate/handles"
	"a2agate/translate"
)

// Agent is what the tools need of one configured agent; *a2a.Agent has it.
// Methods may be called concurrently.
type Agent interface {
	// Card is the card last read, nil before one is known. It never blocks.
	Card() *a2a.Card
	// FetchCard returns the card, from the agent if it is not known yet.
	FetchCard(ctx context.Context) (*a2a.Card, error)
	// Status is the agent's state. It never blocks.
	Status() a2a.AgentStatus
	// Client returns the client for the agent's interfaces.
	Client(ctx context.Context) (*a2a.Client, error)
}

// Exposure is a way of showing agents as tools.
type Exposure string

// The exposures (design section 3).
const (
	ExposeGeneric Exposure = "generic"
	ExposeAgents  Exposure = "agents"
	ExposeSkills  Exposure = "skills"
	ExposeQuery   Exposure = "query"
)

// TaskPolicy says when calls to an agent or skill become MCP tasks.
type TaskPolicy string

// The policies. Required answers a client that cannot have tasks with -32021.
const (
	TasksAuto     TaskPolicy = "auto"
	TasksNever    TaskPolicy = "never"
	TasksRequired TaskPolicy = "required"
)

// SkillConfig is what the configuration says of one skill; it wins over the
// agent's card.
type SkillConfig struct {
	// InputSchema is raw JSON, nil for none.
	InputSchema json.RawMessage
	// Tasks is "" where nothing is said.
	Tasks TaskPolicy
}

// AgentEntry is one configured agent with how it is offered. Entries are not
// changed after they have been given to a Service.
type AgentEntry struct {
	// Alias matches [A-Za-z0-9_-]{1,64} and is unique.
	Alias string
	Agent Agent
	// Follow follows the tasks of Agent.
	Follow a2a.Follow
	// Expose is empty where Options.Expose holds.
	Expose []Exposure
	// ToolPrefix, unless nil, is this agent's in place of Options.ToolPrefix.
	ToolPrefix *string
	// Tasks is the policy of the agent, "" is auto.
	Tasks TaskPolicy
	// Skills are by skill id.
	Skills map[string]SkillConfig
	// Timeout is how long a call waits for this agent when it does not say;
	// 0 leaves it to Options.Wait.
	Timeout time.Duration
}

// Wait holds the times a call waits (design section 4).
type Wait struct {
	// WithProgress is the budget of a call whose client gave a progress
	// token, Without the budget of others. 0 is the default.
	WithProgress time.Duration
	Without      time.Duration
	// TaskGrace is how long a call waits before it becomes an MCP task; 0 is
	// at once.
	TaskGrace time.Duration
}

// DefaultWait is what a zero Wait stands for.
func DefaultWait() Wait {
	return Wait{WithProgress: 240 * time.Second, Without: 50 * time.Second, TaskGrace: 10 * time.Second}
}

// Limits bound what a result holds; zero fields take the defaults.
type Limits struct {
	// ResultChars bounds the text of a result, 40000 characters.
	ResultChars int
	// MediaBytes bounds inline media, 4 MiB of content.
	MediaBytes int
	// CardBytes bounds a card shown whole, 1 MiB.
	CardBytes int
}

// Observer is told of each call when it is over, with the context of the call
// for the values in it: it may be done already. Observe must be quick and may
// be called concurrently.
type Observer interface {
	Observe(ctx context.Context, r CallRecord)
}

// CallRecord describes a finished call, for metrics and the log. It holds no
// contents.
type CallRecord struct {
	Tool string
	// Agent is the alias the call went to, "" when none.
	Agent     string
	Principal string
	// Outcome is one of a closed set: result, tool_error, input_required,
	// task, protocol_error.
	Outcome  string
	Duration time.Duration
}

// Options is what a Service is made of.
type Options struct {
	Agents  []AgentEntry
	Handles *handles.Table
	// HandleTTL is named in tool descriptions; 0 takes it from Handles.
	HandleTTL time.Duration
	Wait      Wait
	Limits    Limits
	// Expose holds for agents that say nothing; empty is generic.
	Expose []Exposure
	// ToolPrefix, unless nil, stands before skill names in place of
	// "<alias>_"; it may be empty.
	ToolPrefix *string
	// ParamHeaders annotates the agent argument with x-mcp-header.
	ParamHeaders bool
	// Structured is the setting structuredContent; "" is auto.
	Structured translate.StructuredPolicy
	// Profiles name subsets of the agents.
	Profiles map[string][]string
	// Tasks keeps MCP tasks; nil makes no tasks.
	Tasks TaskSink
	// Observer may be nil.
	Observer Observer
}

// stateTTL is how long a question put to a client stays open. Users answer
// forms by hand, so it is minutes; it does not slide.
const stateTTL = 10 * time.Minute

func (o Options) withDefaults() Options {
	def := DefaultWait()
	if o.Wait == (Wait{}) {
		o.Wait = def
	}
	if o.Wait.WithProgress <= 0 {
		o.Wait.WithProgress = def.WithProgress
	}
	if o.Wait.Without <= 0 {
		o.Wait.Without = def.Without
	}
	if o.Limits.ResultChars <= 0 {
		o.Limits.ResultChars = translate.DefaultResultChars
	}
	if o.Limits.MediaBytes <= 0 {
		o.Limits.MediaBytes = translate.DefaultMediaBytes
	}
	if o.Limits.CardBytes <= 0 {
		o.Limits.CardBytes = 1 << 20
	}
	if len(o.Expose) == 0 {
		o.Expose = []Exposure{ExposeGeneric}
	}
	if o.Structured == "" {
		o.Structured = translate.StructuredAuto
	}
	if o.HandleTTL <= 0 && o.Handles != nil {
		o.HandleTTL = o.Handles.TTL()
	}
	return o
}

// validate names what cannot work.
func (o Options) validate() error {
	if o.Handles == nil {
		return errors.New("tools: Options.Handles is needed")
	}
	if err := validExposures(o.Expose); err != nil {
		return err
	}
	if !slices.Contains([]translate.StructuredPolicy{translate.StructuredAuto, translate.StructuredAlways, translate.StructuredNever}, o.Structured) {
		return fmt.Errorf("tools: structuredContent %q is not auto, always or never", o.Structured)
	}
	return validEntries(o.Agents)
}

func validEntries(entries []AgentEntry) error {
	seen := map[string]bool{}
	for i, e := range entries {
		switch {
		case e.Alias == "" || e.Agent == nil || e.Follow == nil:
			return fmt.Errorf("tools: agents[%d] %q needs an alias, an agent and a follower", i, e.Alias)
		case seen[e.Alias]:
			return fmt.Errorf("tools: two agents have the alias %q", e.Alias)
		}
		seen[e.Alias] = true
		if err := validExposures(e.Expose); err != nil {
			return err
		}
		if !validPolicy(e.Tasks) {
			return fmt.Errorf("tools: agents.%s.tasks %q is not auto, never or required", e.Alias, e.Tasks)
		}
	}
	return nil
}

func validExposures(list []Exposure) error {
	for _, x := range list {
		if !slices.Contains([]Exposure{ExposeGeneric, ExposeAgents, ExposeSkills, ExposeQuery}, x) {
			return fmt.Errorf("tools: expose %q is not generic, agents, skills or query", x)
		}
	}
	return nil
}

func validPolicy(p TaskPolicy) bool {
	return p == "" || p == TasksAuto || p == TasksNever || p == TasksRequired
}
