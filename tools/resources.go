package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sort"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/handles"
	"a2agate/translate"
)

// The resource templates (design section 3).
const (
	cardTemplate     = "a2a://agents/{alias}/card"
	artifactTemplate = "a2a://tasks/{taskHandle}/artifacts/{artifactId}"
)

// cardTimeout bounds the reading of a card for a call.
const cardTimeout = 20 * time.Second

func cardURI(alias string) string { return "a2a://agents/" + url.PathEscape(alias) + "/card" }

// cardResources are the cards of the agents, known or not.
func cardResources(agents []*agent) []Resource {
	out := make([]Resource, 0, len(agents))
	for _, a := range agents {
		out = append(out, Resource{
			URI:         cardURI(a.Alias),
			Name:        a.Alias + "_card",
			Title:       "Agent card of " + a.title(),
			Description: translate.CutRunes(fmt.Sprintf("Agent %q: %s", a.title(), a.purpose()), 300),
			MIMEType:    "application/json",
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].URI < out[j].URI })
	return out
}

func resourceTemplates() []Resource {
	return []Resource{
		{URI: cardTemplate, Name: "agent_card", Title: "Agent card", Description: "The card of an agent as it serves it.", MIMEType: "application/json"},
		{URI: artifactTemplate, Name: "task_artifact", Title: "Artifact of a task", Description: "One output of a task, whole. taskHandle and artifactId stand in the result that names the task."},
	}
}

// aliasFromCardURI reads the alias out of a card's URI.
func aliasFromCardURI(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, "a2a://agents/")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, "/card")
	if !ok {
		return "", false
	}
	alias, err := url.PathUnescape(rest)
	return alias, err == nil && alias != "" && !strings.Contains(rest, "/")
}

// artifactFromURI reads handle and id out of an artifact's URI.
func artifactFromURI(uri string) (handle, id string, ok bool) {
	rest, ok := strings.CutPrefix(uri, "a2a://tasks/")
	if !ok {
		return "", "", false
	}
	handle, id, ok = strings.Cut(rest, "/artifacts/")
	if !ok || strings.Contains(id, "/") || strings.Contains(handle, "/") {
		return "", "", false
	}
	var err1, err2 error
	handle, err1 = url.PathUnescape(handle)
	id, err2 = url.PathUnescape(id)
	return handle, id, err1 == nil && err2 == nil && handle != "" && id != ""
}

// cardVersion differs whenever the card's content does.
func cardVersion(a *agent) string {
	if a.card == nil {
		return "none"
	}
	sum := sha256.Sum256(a.card.Raw)
	return hex.EncodeToString(sum[:8])
}

// noResource is the error for what cannot be read (MCP 2026-07-28,
// resources): the uri stands in its data.
func noResource(uri, why string) error {
	return &translate.Error{
		Code:    translate.CodeInvalidParams,
		Message: fmt.Sprintf("resource %q cannot be read: %s", cut(uri, 200), why),
		Data:    json.RawMessage(`{"uri":` + jsonString(uri) + `}`),
	}
}

// ReadResource reads a card or an artifact for a principal. An error is a
// *translate.Error.
func (s *Service) ReadResource(ctx context.Context, principal string, v View, uri string) ([]mcp.ResourceContents, error) {
	st := s.state.Load()
	inv := &invocation{
		s: s, st: st, began: time.Now(), tool: s.generic[ToolGetTask],
		call: Call{Principal: principal, Agents: st.scope(v)},
	}
	if alias, ok := aliasFromCardURI(uri); ok {
		return inv.readCard(ctx, uri, alias)
	}
	if handle, id, ok := artifactFromURI(uri); ok {
		return inv.readArtifact(ctx, uri, handle, id)
	}
	return nil, noResource(uri, "there is no such resource; resources/list and resources/templates/list have all")
}

func (inv *invocation) readCard(ctx context.Context, uri, alias string) ([]mcp.ResourceContents, error) {
	a := inv.st.byAlias[alias]
	if a == nil || !inv.call.sees(alias) {
		return nil, noResource(uri, unknownAgent(alias, aliasesOf(inv.st.visible(&inv.call))))
	}
	bounded, cancel := context.WithTimeout(ctx, cardTimeout)
	defer cancel()
	card, err := a.Agent.FetchCard(bounded)
	if err != nil {
		return nil, noResource(uri, agentError(err).Error())
	}
	if len(card.Raw) > inv.st.opts.Limits.CardBytes {
		return nil, noResource(uri, fmt.Sprintf("the card has %s, more than limits.cardBytes; read it at %s", sizeWords(len(card.Raw)), a.Agent.Status().CardURL))
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "application/json", Text: string(card.Raw)}}, nil
}

func (inv *invocation) readArtifact(ctx context.Context, uri, handle, id string) ([]mcp.ResourceContents, error) {
	entry, err := inv.lookup(ctx, handles.KindTask, handle)
	if err == nil {
		entry, err = inv.namedLate(ctx, entry)
	}
	if err != nil {
		var bad *handles.Error
		var f fault
		if !errors.As(err, &bad) && !errors.As(err, &f) {
			return nil, err
		}
		return nil, noResource(uri, err.Error())
	}
	watch, err := inv.agent.Follow.Task(ctx, entry.TaskID, entry.ContextID)
	if err != nil {
		return nil, noResource(uri, agentError(err).Error())
	}
	defer watch.Close()
	bounded, cancel := context.WithTimeout(ctx, cardTimeout)
	defer cancel()
	snap, err := watch.Refresh(bounded)
	if snap.Task == nil {
		if err == nil {
			err = snap.Err
		}
		return nil, noResource(uri, agentError(err).Error())
	}
	for i := range snap.Task.Artifacts {
		if art := &snap.Task.Artifacts[i]; art.ArtifactID == id {
			return translate.ResourcesFromArtifact(art, uri), nil
		}
	}
	return nil, noResource(uri, "the task has no artifact of that id")
}

// Complete suggests values for an argument of a prompt (its name) or of a
// resource template (its URI); exactly one of them is set. Handles are never
// suggested: they are what a caller must have been given.
func (s *Service) Complete(_ context.Context, v View, prompt, template, argument, value string, _ map[string]string) (*mcp.Completion, error) {
	st := s.state.Load()
	call := Call{Agents: st.scope(v)}
	var pool []string
	switch {
	case template == cardTemplate && argument == "alias":
		pool = aliasesOf(st.visible(&call))
	case prompt != "":
		_, so := st.promptSkill(v, prompt)
		if so == nil {
			return nil, &translate.Error{Code: translate.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q: prompts/list has all", cut(prompt, 64))}
		}
		pool = examplesFor(so, argument)
	case template != "" && template != artifactTemplate:
		return nil, &translate.Error{Code: translate.CodeInvalidParams, Message: fmt.Sprintf("unknown resource template %q: resources/templates/list has all", cut(template, 200))}
	}
	values := matching(pool, value)
	return &mcp.Completion{Values: values, Total: len(values)}, nil
}

// examplesFor are suggestions for a prompt's argument: the skill's examples
// for its words, the enum of the schema for others.
func examplesFor(so *skillOffer, argument string) []string {
	var root struct {
		Properties map[string]struct {
			Enum     []any `json:"enum"`
			Examples []any `json:"examples"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(so.input, &root) // an odd schema suggests nothing
	var pool []string
	prop := root.Properties[argument]
	for _, x := range append(prop.Enum, prop.Examples...) {
		if s, ok := x.(string); ok {
			pool = append(pool, clean(s, 300))
		}
	}
	if argument == "text" || len(root.Properties) == 1 {
		pool = append(pool, so.skill.examples...)
	}
	return pool
}

// matching keeps the values that begin with prefix, then those that hold it.
func matching(pool []string, prefix string) []string {
	want := strings.ToLower(prefix)
	first, then := []string{}, []string{}
	seen := map[string]bool{}
	for _, x := range pool {
		low := strings.ToLower(x)
		switch {
		case seen[x]:
		case strings.HasPrefix(low, want):
			first = append(first, x)
		case strings.Contains(low, want):
			then = append(then, x)
		}
		seen[x] = true
	}
	return append(first, then...)
}
