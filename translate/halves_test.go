package translate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/a2a"
)

// shown is what a program puts before its model of a result, as observed
// : all text it sees, joined.
type shown func(r Result) string

func contentText(r Result, texts, media bool) string {
	var b strings.Builder
	for _, c := range r.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			if texts {
				b.WriteString(c.Text + "\n")
			}
		case mcp.ImageContent:
			if media {
				b.WriteString("<image " + c.Data + ">\n")
			}
		case mcp.AudioContent:
			if media {
				b.WriteString("<audio " + c.Data + ">\n")
			}
		case mcp.ResourceLink:
			b.WriteString("[Resource link: " + c.Name + "] " + c.URI + "\n")
		case mcp.EmbeddedResource:
			if t, ok := c.Resource.(mcp.TextResourceContents); ok && media {
				b.WriteString(t.Text + "\n")
			}
		}
	}
	return b.String()
}

// structuredText is the JSON as a model reads it, with the escapes of strings
// resolved.
func structuredText(r Result) string {
	var env struct {
		Status, ContextHandle, TaskHandle, Note, Text string
		Data                                          json.RawMessage
		History                                       []struct{ Role, Text string }
	}
	if json.Unmarshal(r.Structured, &env) != nil {
		return string(r.Structured)
	}
	s := strings.Join([]string{env.Status, env.ContextHandle, env.TaskHandle, env.Note, env.Text, string(env.Data)}, "\n")
	for _, h := range env.History {
		s += "\n" + h.Role + ": " + h.Text
	}
	return s
}

var programs = map[string]shown{
	"content only": func(r Result) string { return contentText(r, true, true) },
	"structured only": func(r Result) string {
		if r.Structured == nil {
			return contentText(r, true, true)
		}
		return structuredText(r)
	},
	"drops text beside structured": func(r Result) string {
		switch {
		case r.IsError:
			return contentText(r, true, false)
		case r.Structured == nil:
			return contentText(r, true, true)
		}
		return contentText(r, false, true) + structuredText(r)
	},
	"text and images": func(r Result) string {
		var b strings.Builder
		for _, c := range r.Content {
			switch c := c.(type) {
			case mcp.TextContent:
				b.WriteString(c.Text + "\n")
			case mcp.ImageContent:
				b.WriteString("<image " + c.Data + ">\n")
			case mcp.EmbeddedResource:
				if t, ok := c.Resource.(mcp.TextResourceContents); ok {
					b.WriteString(t.Text + "\n")
				}
			}
		}
		return b.String()
	},
}

// Whatever a program drops, its model still has the answer, the status, the
// handles and the links.
func TestEitherHalfIsEnough(t *testing.T) {
	for _, g := range loadGoldens(t) {
		if g.options.Structured == StructuredData || g.options.Structured == StructuredAlways {
			continue // the operator's own choice of one half
		}
		r := g.result(t)
		for name, show := range programs {
			got := show(r)
			for _, want := range g.essentials() {
				if !strings.Contains(got, want) {
					t.Errorf("%s: a program that shows %s loses %q:\n%s", g.name, name, want, got)
				}
			}
		}
	}
}

// essentials are the words, data, links and handles that must never be lost.
func (g *golden) essentials() []string {
	var want []string
	o := g.options
	if o.Task != "" {
		want = append(want, o.Task)
	}
	if o.Context != "" {
		want = append(want, o.Context)
	}
	want = append(want, o.Notes...)
	parts := func(ps []a2a.Part) {
		for _, p := range ps {
			switch p.Kind {
			case a2a.PartText:
				want = append(want, CleanText(p.Text))
			case a2a.PartURL:
				if linkable(p.URL) {
					want = append(want, p.URL)
				}
			case a2a.PartData:
				want = append(want, string(AppendRaw(nil, p.Data))[:1])
			case a2a.PartRaw:
				if s, ok := rawText(p.Base64); ok && textual(mediaType(&p)) {
					want = append(want, s)
				}
			}
		}
	}
	if g.message != nil {
		parts(g.message.Parts)
	}
	if g.err != nil {
		want = append(want, g.err.Message)
	}
	want = append(want, g.fault)
	t := g.task
	if t == nil || g.page != nil {
		return want
	}
	want = append(want, string(StatusFromState(t.Status.State)))
	if g.err != nil {
		want[len(want)-1] = "failed"
	}
	want = append(want, t.Notes...)
	for _, a := range t.Artifacts {
		parts(a.Parts)
	}
	if m := t.Status.Message; m != nil && m.Role == a2a.RoleAgent && t.Status.State != a2a.StateWorking {
		for _, p := range m.Parts {
			if g.name != "once_many_parts" {
				parts([]a2a.Part{p})
			}
		}
	}
	return want
}

// The user's own words, ids of the agent's and working chatter never come back
// as an answer.
func TestNothingOfTheCallersOwn(t *testing.T) {
	seen := 0
	for _, g := range loadGoldens(t) {
		if !strings.HasPrefix(g.name, "once_") {
			continue
		}
		seen++
		raw := string(AppendResult(nil, g.result(t), Rev20260728, nil))
		for _, bad := range []string{"Who sent 4711?", "Looking…"} {
			if strings.Contains(raw, bad) {
				t.Errorf("%s: %q came back: %s", g.name, bad, raw)
			}
		}
		if n := strings.Count(contentText(g.result(t), true, true), "Acme sent it."); n != 1 {
			t.Errorf("%s: the answer stands %d times", g.name, n)
		}
	}
	if seen < 6 {
		t.Fatalf("only %d golden files", seen)
	}
}
