package server

import (
	"encoding/json"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"a2agate/tools"
	"a2agate/translate"
)

// snapshots keeps what was made of the current catalogue of each view.
type snapshots struct {
	mu    sync.RWMutex
	views map[tools.View]*snapshot
}

// maxViews bounds the views kept; views come from the configuration, so it is
// met only by a fault elsewhere.
const maxViews = 4096

// of returns the snapshot of a view's current catalogue, nil when there is no
// such view.
func (s *snapshots) of(c *Core, v tools.View) *snapshot {
	cat := c.o.Catalogues.Catalogue(v)
	if cat == nil {
		s.mu.Lock()
		delete(s.views, v)
		s.mu.Unlock()
		return nil
	}
	s.mu.RLock()
	have := s.views[v]
	s.mu.RUnlock()
	if have != nil && have.cat == cat {
		return have
	}
	made := newSnapshot(c, v, cat)
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.views[v]; have != nil && have.cat == cat {
		return have // another request was faster
	}
	if len(s.views) >= maxViews {
		clear(s.views)
	}
	s.views[v] = made
	return made
}

// snapshot is everything that the edge derives from one catalogue. It is
// immutable but for what its sync.Onces guard.
type snapshot struct {
	cat   *tools.Catalogue
	view  tools.View
	tools map[string]*listedTool
	order []*listedTool
	// sums tell whether a list differs from that of another snapshot.
	sums  listSums
	lists [4]listSet // by index in supported
	once  sync.Once
	mcp   *mcpserver.MCPServer // set by once, see delegate.go
}

// listSums are hashes of the lists as a modern client sees them.
type listSums struct{ tools, prompts, resources uint64 }

// listSet are the list results of one revision, each a complete result
// object.
type listSet struct {
	once                                 sync.Once
	tools, prompts, resources, templates []byte
}

// listedTool is a tool fit to be listed.
type listedTool struct {
	*tools.Tool
	input   json.RawMessage
	headers []mcp.ParamHeaderBinding
	// agent is the name the edge uses while the agent is silent.
	agent string
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// seed makes the sums comparable between snapshots of one process.
var seed = maphash.MakeSeed()

func newSnapshot(c *Core, v tools.View, cat *tools.Catalogue) *snapshot {
	s := &snapshot{cat: cat, view: v, tools: make(map[string]*listedTool, len(cat.Tools))}
	for i := range cat.Tools {
		t := &cat.Tools[i]
		if why := s.add(c, t); why != "" {
			c.o.Log.Error("tool left out of the list", "tool", t.Name, "agent", t.Agent, "reason", why)
		}
	}
	slices.SortFunc(s.order, func(a, b *listedTool) int { return strings.Compare(a.Name, b.Name) })
	set := s.set(c, translate.Rev20260728)
	s.sums = listSums{
		tools:     maphash.Bytes(seed, set.tools),
		prompts:   maphash.Bytes(seed, set.prompts),
		resources: maphash.Bytes(seed, append(slices.Clip(set.resources), set.templates...)),
	}
	return s
}

// add takes a tool in, or says why it cannot be listed: one bad tool makes
// some clients drop the whole list.
func (s *snapshot) add(c *Core, t *tools.Tool) (why string) {
	switch {
	case !toolName.MatchString(t.Name):
		return "the name does not match " + toolName.String()
	case s.tools[t.Name] != nil:
		return "another tool has the same name"
	}
	if why := badSchema(t.InputSchema); why != "" {
		return "inputSchema: " + why
	}
	if t.OutputSchema != nil && !isJSONObject(t.OutputSchema) {
		return "outputSchema: not a JSON object"
	}
	l := &listedTool{Tool: t, input: t.InputSchema, agent: t.Agent}
	if t.Agent != "" && t.Title != "" && t.Skill == "" {
		l.agent = t.Title
	}
	if hasAnnotation(t.InputSchema) {
		l.headers = headerBindings(t.InputSchema)
		if !c.o.ParamHeaders || l.headers == nil {
			l.headers = nil
			l.input = withoutAnnotations(t.InputSchema)
		}
	}
	s.tools[t.Name] = l
	s.order = append(s.order, l)
	return ""
}

// names are the tools of the list.
func (s *snapshot) names() []string {
	out := make([]string, len(s.order))
	for i, t := range s.order {
		out[i] = t.Name
	}
	return out
}

func badSchema(raw json.RawMessage) string {
	if !isJSONObject(raw) {
		return "not a JSON object"
	}
	if v, twice := lookup(raw, "type"); twice || string(v) != `"object"` {
		return `the root must have "type":"object"`
	}
	return ""
}

func isJSONObject(raw json.RawMessage) bool {
	s := newScanner(raw)
	s.ws()
	ok := s.peek() == '{'
	s.value()
	return ok && s.end()
}

func revisionIndex(rev translate.Revision) int {
	return max(0, slices.Index(supported, rev))
}

// set returns the lists of a revision, writing them the first time.
func (s *snapshot) set(c *Core, rev translate.Revision) *listSet {
	set := &s.lists[revisionIndex(rev)]
	set.once.Do(func() {
		set.tools = c.writeList("tools", len(s.order), rev, func(dst []byte, i int) []byte {
			return appendTool(dst, s.order[i], rev)
		})
		set.prompts = c.writeList("prompts", len(s.cat.Prompts), rev, func(dst []byte, i int) []byte {
			return appendPrompt(dst, &s.cat.Prompts[i], rev)
		})
		set.resources = c.writeList("resources", len(s.cat.Resources), rev, func(dst []byte, i int) []byte {
			return appendResource(dst, &s.cat.Resources[i], "uri", rev)
		})
		set.templates = c.writeList("resourceTemplates", len(s.cat.Templates), rev, func(dst []byte, i int) []byte {
			return appendResource(dst, &s.cat.Templates[i], "uriTemplate", rev)
		})
	})
	return set
}

// list returns the result of a list method.
func (s *snapshot) list(c *Core, method string, rev translate.Revision) []byte {
	set := s.set(c, rev)
	switch method {
	case "tools/list":
		return set.tools
	case "prompts/list":
		return set.prompts
	case "resources/list":
		return set.resources
	}
	return set.templates
}

func (c *Core) cacheScope() string {
	if c.o.Private {
		return "private"
	}
	return "public"
}

// writeList writes a list result: n entries under key, with the caching hints
// of a modern revision (MCP 2026-07-28, caching).
func (c *Core) writeList(key string, n int, rev translate.Revision, entry func(dst []byte, i int) []byte) []byte {
	dst := []byte{'{'}
	if rev.Modern() {
		dst = append(dst, `"resultType":"complete",`...)
	}
	dst = translate.AppendString(dst, key)
	dst = append(dst, ':', '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = entry(dst, i)
	}
	dst = append(dst, ']')
	if rev.Modern() {
		dst = append(dst, `,"ttlMs":`...)
		dst = strconv.AppendInt(dst, c.o.ListTTL.Milliseconds(), 10)
		dst = append(dst, `,"cacheScope":"`+c.cacheScope()+`","_meta":`...)
		dst = translate.AppendMeta(dst, c.serverInfo)
	}
	return append(dst, '}')
}

// appendTool writes a tool with the members its revision knows; the schemas
// leave byte for byte.
func appendTool(dst []byte, t *listedTool, rev translate.Revision) []byte {
	dst = append(dst, `{"name":`...)
	dst = translate.AppendString(dst, t.Name)
	annotations := t.Annotations
	if rev >= translate.Rev20250618 {
		dst = appendField(dst, "title", t.Title)
	} else if annotations.Title == "" {
		annotations.Title = t.Title
	}
	dst = append(dst, `,"description":`...)
	dst = translate.AppendString(dst, t.Description)
	dst = append(dst, `,"inputSchema":`...)
	dst = append(dst, t.input...)
	if t.OutputSchema != nil && translate.SchemaFits(t.OutputSchema, rev) {
		dst = append(dst, `,"outputSchema":`...)
		dst = append(dst, t.OutputSchema...)
	}
	if raw, err := json.Marshal(annotations); err == nil && string(raw) != "{}" {
		dst = append(dst, `,"annotations":`...)
		dst = append(dst, raw...)
	}
	if len(t.Meta) > 0 && rev >= translate.Rev20250618 {
		dst = append(dst, `,"_meta":`...)
		dst = translate.AppendMeta(dst, t.Meta)
	}
	return append(dst, '}')
}

func appendPrompt(dst []byte, p *tools.Prompt, rev translate.Revision) []byte {
	dst = append(dst, `{"name":`...)
	dst = translate.AppendString(dst, p.Name)
	if rev >= translate.Rev20250618 {
		dst = appendField(dst, "title", p.Title)
	}
	dst = appendField(dst, "description", p.Description)
	if len(p.Arguments) > 0 {
		dst = append(dst, `,"arguments":[`...)
		for i, a := range p.Arguments {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"name":`...)
			dst = translate.AppendString(dst, a.Name)
			if rev >= translate.Rev20250618 {
				dst = appendField(dst, "title", a.Title)
			}
			dst = appendField(dst, "description", a.Description)
			if a.Required {
				dst = append(dst, `,"required":true`...)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendResource(dst []byte, r *tools.Resource, uriKey string, rev translate.Revision) []byte {
	dst = append(dst, `{"`+uriKey+`":`...)
	dst = translate.AppendString(dst, r.URI)
	dst = append(dst, `,"name":`...)
	dst = translate.AppendString(dst, r.Name)
	if rev >= translate.Rev20250618 {
		dst = appendField(dst, "title", r.Title)
	}
	dst = appendField(dst, "description", r.Description)
	dst = appendField(dst, "mimeType", r.MIMEType)
	return append(dst, '}')
}

// appendField appends ,"key":"value", nothing for an empty value.
func appendField(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, '"', ':')
	return translate.AppendString(dst, value)
}
