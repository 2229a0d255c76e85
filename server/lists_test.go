package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/internal/schematest"
	"a2agate/tools"
	"a2agate/translate"
)

// largeCatalogue has n tools in no order at all.
func largeCatalogue(n int) *tools.Catalogue {
	cat := &tools.Catalogue{Instructions: "Many agents."}
	for i := range n {
		cat.Tools = append(cat.Tools, tools.Tool{
			Name: fmt.Sprintf("agent_%03d", (i*37)%n), Title: fmt.Sprintf("Agent %d", i), Description: strings.Repeat("What it does. ", 20),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string","description":"What to ask."},"handle":{"type":"string"}},"required":["message"],"additionalProperties":false}`),
			Annotations: mcp.ToolAnnotation{ReadOnlyHint: &no, DestructiveHint: &yes, IdempotentHint: &no, OpenWorldHint: &yes},
			Meta:        []translate.MetaEntry{{Key: "anthropic/maxResultSizeChars", Value: json.RawMessage("200000")}},
		})
	}
	return cat
}

type listedTools struct {
	Result struct {
		ResultType string
		TTLMs      *int64
		CacheScope string
		NextCursor *string
		Tools      []struct {
			Name, Description string
			InputSchema       json.RawMessage
		}
	}
}

// tools/list is the same byte for byte on every reading, on every wire, in
// order, in one page (MCP 2026-07-28, tools, caching).
func TestToolsListShape(t *testing.T) {
	s := newServer(t, echo, func(o *Options) { o.Catalogues = newCatalogues(largeCatalogue(80)) })
	for _, rev := range supported {
		list := func() []byte {
			if rev.Modern() {
				return do(s, modernPost(modernBody("1", "tools/list", ""))).Body.Bytes()
			}
			return do(s, legacyPost(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, string(rev))).Body.Bytes()
		}
		first := list()
		do(s, modernPost(callWithToken(""))) // a call changes nothing
		if second := list(); !bytes.Equal(first, second) {
			t.Errorf("%s: two readings differ", rev)
		}
		var got listedTools
		if err := json.Unmarshal(first, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Result.Tools) != 80 || got.Result.NextCursor != nil {
			t.Errorf("%s: %d tools", rev, len(got.Result.Tools))
		}
		for i, tool := range got.Result.Tools {
			if want := fmt.Sprintf("agent_%03d", i); tool.Name != want || tool.Description == "" {
				t.Errorf("%s: tool %d is %q, want %q", rev, i, tool.Name, want)
			}
		}
		if (got.Result.ResultType == "complete") != rev.Modern() || (got.Result.TTLMs != nil) != rev.Modern() || (got.Result.CacheScope == "public") != rev.Modern() {
			t.Errorf("%s: %+v", rev, got.Result)
		}
		if schematest.Available() {
			schematest.Message(t, string(rev), "tools/list", first)
		}
	}
}

// Schemas leave byte for byte: key order, spaces, escapes, large numbers, all
// keywords.
func TestSchemasVerbatim(t *testing.T) {
	schema := "{ \"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\n\t\"type\":\"object\",\"$defs\":{\"address\":{\"$anchor\":\"a\"}},\"allOf\":[{\"anyOf\":[]}]," +
		`"if":{},"then":{},"else":{},"additionalProperties":false,"maximum":12345678901234567890,"title":"\u003cb\u003e é <&>","z":1,"a":2}`
	if got := listedSchema(t, json.RawMessage(schema), false); string(got) != schema {
		t.Errorf("got  %s\nwant %s", got, schema)
	}
	s := serverWithSchema(t, json.RawMessage(schema), false)
	w := do(s, modernPost(modernBody("1", "tools/list", ""), "Accept", "text/event-stream"))
	if body := strings.TrimSuffix(w.Body.String(), "\n\n"); strings.Contains(body, "\n") || !strings.Contains(body, `"\u003cb\u003e é <&>"`) {
		t.Errorf("as an event: %q", body)
	}
}

// One bad tool does not spoil the list; it is left out, and logged.
func TestBadToolsAreLeftOut(t *testing.T) {
	good := tools.Tool{Name: "good", Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`)}
	bad := func(name, schema string) tools.Tool {
		return tools.Tool{Name: name, Description: "d", InputSchema: json.RawMessage(schema)}
	}
	out := good
	out.Name, out.OutputSchema = "bad_output", json.RawMessage(`[1]`)
	cat := &tools.Catalogue{Tools: []tools.Tool{
		bad("not_json", `{"type":"object"`), bad("null", `null`), bad("no_type", `{}`), bad("array", `{"type":"array"}`), bad("two", `{"type":"object"} {}`),
		{Name: "missing", Description: "d"}, bad("sp ace", `{"type":"object"}`), bad("", `{"type":"object"}`), bad(strings.Repeat("x", 65), `{"type":"object"}`),
		bad("type_twice", `{"type":"string","type":"object"}`), good, good, out,
	}}
	var log bytes.Buffer
	s := newServer(t, echo, func(o *Options) {
		o.Catalogues, o.Log = newCatalogues(cat), slog.New(slog.NewTextHandler(&log, nil))
	})
	w := do(s, modernPost(modernBody("1", "tools/list", "")))
	var got listedTools
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Result.Tools) != 1 || got.Result.Tools[0].Name != "good" {
		t.Errorf("%v %s", err, w.Body)
	}
	if n := strings.Count(log.String(), "tool left out"); n != 12 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	if w := do(s, modernPost(modernBody("1", "tools/call", `"name":"no_type"`))); code(t, w) != -32602 {
		t.Errorf("what is not listed cannot be called: %s", w.Body)
	}
}

// A template that is none would make mcp-go panic.
func TestBadTemplateIsLeftOut(t *testing.T) {
	cat := basicCatalogue()
	cat.Templates = append(cat.Templates, tools.Resource{URI: "a2a://{broken", Name: "broken"})
	s := newServer(t, echo, func(o *Options) { o.Catalogues = newCatalogues(cat) })
	if w := do(s, modernPost(modernBody("1", "resources/read", `"uri":"a2a://tasks/tk_1/artifacts/a1"`))); w.Code != 200 || code(t, w) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Lists follow the catalogue at once.
func TestListsFollowTheCatalogue(t *testing.T) {
	cats := newCatalogues(basicCatalogue())
	s := newServer(t, echo, func(o *Options) { o.Catalogues = cats })
	before := do(s, modernPost(modernBody("1", "tools/list", ""))).Body.String()
	cats.change(func(f *fakeCatalogues) { f.cats[tools.View{}] = largeCatalogue(3) })
	after := do(s, modernPost(modernBody("1", "tools/list", ""))).Body.String()
	if before == after || !strings.Contains(after, "agent_002") {
		t.Error("the list is stale")
	}
	if w := do(s, modernPost(modernBody("1", "server/discover", ""))); !strings.Contains(w.Body.String(), "Many agents.") {
		t.Errorf("%s", w.Body)
	}
	if w := do(s, modernPost(modernBody("1", "tools/call", `"name":"a2a_discover"`))); code(t, w) != -32602 {
		t.Errorf("a tool that is gone: %s", w.Body)
	}
}

func TestCompletionIsCut(t *testing.T) {
	s := newServer(t, echo, nil)
	w := do(s, modernPost(modernBody("1", "completion/complete", `"ref":{"type":"ref/prompt","name":"invoice_helper_ask"},"argument":{"name":"many","value":""}`)))
	var m struct {
		Result struct {
			Completion struct {
				Values  []string
				Total   int
				HasMore bool
			}
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || len(m.Result.Completion.Values) != 100 || !m.Result.Completion.HasMore || m.Result.Completion.Total != 150 {
		t.Errorf("%v %s", err, w.Body)
	}
}

// An identity sees its own view; one that is held to a profile has no other.
func TestViews(t *testing.T) {
	cats := newCatalogues(basicCatalogue())
	cats.cats[tools.View{Agents: "a"}] = largeCatalogue(1)
	cats.cats[tools.View{Profile: "finance", Agents: "a"}] = largeCatalogue(2)
	cats.cats[tools.View{Profile: "finance"}] = largeCatalogue(3)
	ids := map[string]tools.View{"a": {Agents: "a"}, "held": {Profile: "finance"}, "all": {}}
	s := newServer(t, echo, func(o *Options) {
		o.Catalogues = cats
		o.Authenticate = func(r *http.Request) (Identity, *Denied) {
			who := r.Header.Get("Authorization")
			return Identity{Principal: who, View: ids[who]}, nil
		}
	})
	for _, tt := range []struct {
		who, path string
		tools     int // 0: no such path
	}{
		{"a", "/mcp", 1}, {"a", "/mcp/p/finance", 2}, {"held", "/mcp", 3}, {"held", "/mcp/p/finance", 3}, {"held", "/mcp/p/other", 0},
		{"all", "/mcp", 3}, {"all", "/mcp/p/finance", 3}, {"all", "/mcp/p/other", 0}, {"a", "/mcp/p/other", 0}, {"all", "/mcp/p/fin%61nce/", 3},
	} {
		r := modernPost(modernBody("1", "tools/list", ""), "Authorization", tt.who)
		u, err := r.URL.Parse(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		w := do(s, r)
		var got listedTools
		if tt.tools == 0 {
			if w.Code != 404 {
				t.Errorf("%s %s: %d", tt.who, tt.path, w.Code)
			}
			continue
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Result.Tools) != tt.tools || got.Result.CacheScope != "private" {
			t.Errorf("%s %s: %v %d %s", tt.who, tt.path, err, len(got.Result.Tools), w.Body)
		}
	}
}

// A list of 300 tools costs no work per request: it is copied as it stands.
func TestLargeListIsCheap(t *testing.T) {
	s := newServer(t, echo, func(o *Options) { o.Catalogues = newCatalogues(largeCatalogue(300)) })
	core := s.Core()
	body := []byte(modernBody("1", "tools/list", ""))
	env, rpcErr := ParseEnvelope(body, 0)
	if rpcErr != nil {
		t.Fatal(rpcErr)
	}
	req := &Request{Envelope: env, Revision: translate.Rev20260728, Principal: Local}
	recycle(core.Handle(t.Context(), req).Message)
	if n := testing.AllocsPerRun(20, func() { recycle(core.Handle(t.Context(), req).Message) }); n > 5 {
		t.Errorf("%v allocations for a list", n)
	}
}
