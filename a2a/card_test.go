package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const card10 = `{"name":"Invoice Helper","description":"Answers questions about invoices.","version":"2.1.0",
 "supportedInterfaces":[{"url":"http://127.0.0.1:9101/a2a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
 "capabilities":{"streaming":true},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],
 "skills":[{"id":"ask","name":"Ask","description":"Answer one question about an invoice.","tags":["finance"],"examples":["Who sent invoice 4711?"]}]}`

const card03 = `{"name":"Invoice Helper","description":"Answers questions about invoices.","version":"1.9.0","protocolVersion":"0.3.0",
 "url":"http://127.0.0.1:9103/","preferredTransport":"JSONRPC","capabilities":{"streaming":true},
 "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[]}`

func parse(t *testing.T, raw string) *Card {
	t.Helper()
	card, err := ParseCard([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return card
}

func TestParseCardReadsEverything(t *testing.T) {
	raw := `{"name":"N","description":"D","version":"7","provider":{"organization":"O","url":"https://o.test"},
	"iconUrl":"https://i.test","documentationUrl":"https://d.test",
	"supportedInterfaces":[{"url":"https://a.test/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"acme"}],
	"capabilities":{"streaming":true,"pushNotifications":true,"extendedAgentCard":true,
	  "extensions":[{"uri":"urn:x","description":"d","required":true,"params":{"a": 1}}]},
	"defaultInputModes":["text/plain"],"defaultOutputModes":["application/json"],
	"skills":[{"id":"s","name":"S","description":"sd","tags":["t"],"examples":["e"],"inputModes":["a/b"],"outputModes":["c/d"],
	  "securityRequirements":[{"schemes":{"k":{"list":[]}}}]}],
	"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":"X-K"}}},
	"securityRequirements":[{"schemes":{"k":{"list":["r"]}}},{}]}`
	got := parse(t, raw)
	want := &Card{
		Raw: json.RawMessage(raw), Name: "N", Description: "D", Version: "7", Provider: Provider{Organization: "O", URL: "https://o.test"},
		IconURL: "https://i.test", DocumentationURL: "https://d.test", Streaming: true, PushNotifications: true, ExtendedCard: true,
		InputModes: []string{"text/plain"}, OutputModes: []string{"application/json"},
		Skills: []Skill{{ID: "s", Name: "S", Description: "sd", Tags: []string{"t"}, Examples: []string{"e"}, InputModes: []string{"a/b"},
			OutputModes: []string{"c/d"}, Security: []SecurityRequirement{{{Scheme: "k"}}}}},
		Extensions:      []Extension{{URI: "urn:x", Description: "d", Required: true, Params: json.RawMessage(`{"a": 1}`)}},
		Interfaces:      []CardInterface{{URL: "https://a.test/rpc", Binding: "JSONRPC", Version: "1.0", Tenant: "acme"}},
		SecuritySchemes: []SecurityScheme{{Name: "k", Type: SchemeAPIKey, In: "header", Param: "X-K"}},
		Security:        []SecurityRequirement{{{Scheme: "k", Scopes: []string{"r"}}}, {}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e, ok := got.Extension("urn:x"); !ok || !e.Required {
		t.Error("the extension is not found by its URI")
	}
	if _, ok := got.Extension("urn:y"); ok {
		t.Error("an extension that is not declared is found")
	}
}

// TestCardVersions has the interface list of each kind of card (checklist 8).
func TestCardVersions(t *testing.T) {
	tests := []struct {
		name, raw string
		want      []CardInterface
	}{
		{"1.0", card10, []CardInterface{{URL: "http://127.0.0.1:9101/a2a", Binding: "JSONRPC", Version: "1.0"}}},
		{"0.3", card03, []CardInterface{{URL: "http://127.0.0.1:9103/", Binding: "JSONRPC", Version: "0.3.0", Legacy: true}}},
		{"0.3 without preferredTransport", `{"name":"x","protocolVersion":"0.3.0","url":"http://a.test/"}`,
			[]CardInterface{{URL: "http://a.test/", Binding: "JSONRPC", Version: "0.3.0", Legacy: true}}},
		{"0.3 REST first", `{"name":"x","protocolVersion":"0.3.0","url":"http://a.test/","preferredTransport":"HTTP+JSON",
			"additionalInterfaces":[{"url":"http://a.test/","transport":"HTTP+JSON"},{"url":"http://a.test/","transport":"JSONRPC"}]}`,
			[]CardInterface{
				{URL: "http://a.test/", Binding: "HTTP+JSON", Version: "0.3.0", Legacy: true},
				{URL: "http://a.test/", Binding: "HTTP+JSON", Version: "0.3.0", Legacy: true},
				{URL: "http://a.test/", Binding: "JSONRPC", Version: "0.3.0", Legacy: true}}},
		{"0.2", `{"name":"x","url":"http://a.test/","capabilities":{},"skills":[]}`,
			[]CardInterface{{URL: "http://a.test/", Binding: "JSONRPC", Version: "0.3", Legacy: true}}},
		{"0.2.5", `{"name":"x","protocolVersion":"0.2.5","url":"http://a.test/"}`,
			[]CardInterface{{URL: "http://a.test/", Binding: "JSONRPC", Version: "0.2.5", Legacy: true}}},
		{"hybrid", `{"name":"x","protocolVersion":"0.3.0","url":"http://a.test/old","supportedInterfaces":[{"url":"http://a.test/new","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`,
			[]CardInterface{{URL: "http://a.test/new", Binding: "JSONRPC", Version: "1.0"}, {URL: "http://a.test/old", Binding: "JSONRPC", Version: "0.3.0", Legacy: true}}},
		{"hybrid, version missing", `{"name":"x","protocolVersion":"0.3.0","url":"http://a.test/old","supportedInterfaces":[{"url":"http://a.test/new"}]}`,
			[]CardInterface{{URL: "http://a.test/new", Binding: "JSONRPC", Version: "0.3.0"}, {URL: "http://a.test/old", Binding: "JSONRPC", Version: "0.3.0", Legacy: true}}},
		{"1.0, version missing", `{"name":"x","supportedInterfaces":[{"url":"http://a.test/new","transport":"jsonrpc"}]}`,
			[]CardInterface{{URL: "http://a.test/new", Binding: "jsonrpc", Version: "1.0"}}},
		{"version as a number", `{"name":"x","supportedInterfaces":[{"url":"http://a.test/","protocolBinding":"JSONRPC","protocolVersion":1.0}]}`,
			[]CardInterface{{URL: "http://a.test/", Binding: "JSONRPC", Version: "1.0"}}},
		{"snake case", `{"name":"x","supported_interfaces":[{"url":"http://a.test/","protocol_binding":"HTTP+JSON","protocol_version":"1.0"}]}`,
			[]CardInterface{{URL: "http://a.test/", Binding: "HTTP+JSON", Version: "1.0"}}},
		{"one object for the list", `{"name":"x","supportedInterfaces":{"url":"http://a.test/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}`,
			[]CardInterface{{URL: "http://a.test/", Binding: "JSONRPC", Version: "1.0"}}},
		{"broken entries", `{"name":"x","supportedInterfaces":[null,7,{},{"url":5,"protocolBinding":"JSONRPC"},{"url":"http://a.test/","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":[1]}]}`,
			[]CardInterface{{URL: "5", Binding: "JSONRPC", Version: "1.0"}, {URL: "http://a.test/", Binding: "JSONRPC", Version: "1.0"}}},
		{"none", `{"name":"x"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, parse(t, tt.raw).Interfaces); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCardKeepsItsBytes: what an agent serves is what a caller sees
// (checklist 7).
func TestCardKeepsItsBytes(t *testing.T) {
	odd := "  {\"name\" : \"x\\u00e9 \\ud83d\\ude00\",\r\n\t\"url\":\"http://a.test/\", \"big\": 9007199254740993, \"unknown\":{\"b\":1,\"a\":2}, \"dup\":1,\"dup\":2}\n\n"
	for _, raw := range []string{card10, card03, odd} {
		if got := parse(t, raw); string(got.Raw) != raw {
			t.Errorf("got  %q\nwant %q", got.Raw, raw)
		}
	}
	bom := parse(t, "\xef\xbb\xbf"+card03)
	if string(bom.Raw) != card03 || !slices.Contains(bom.Notes, "a byte order mark was dropped") {
		t.Errorf("byte order mark: %q, %q", bom.Raw, bom.Notes)
	}
	bad := parse(t, "{\"name\":\"a\xffb\",\"url\":\"http://a.test/\"}")
	if !json.Valid(bad.Raw) || bad.Name != "a\ufffdb" || !slices.Contains(bad.Notes, "bytes that are not UTF-8 were replaced") {
		t.Errorf("invalid UTF-8: %q, %q, %q", bad.Raw, bad.Name, bad.Notes)
	}
}

// TestInvalidCards has the exact words; they continue "the card at URL …".
func TestInvalidCards(t *testing.T) {
	tests := []struct{ raw, want string }{
		{``, `is empty`},
		{`  `, `is empty`},
		{`null`, `is null, not a JSON object`},
		{`[]`, `is an array, not a JSON object`},
		{`"card"`, `is a string, not a JSON object`},
		{`42`, `is a number, not a JSON object`},
		{`true`, `is a boolean, not a JSON object`},
		{`{"name":"x","url":`, `is not valid JSON: unexpected end of JSON input`},
		{`{"name":"x"} trailing`, `is not valid JSON: invalid character 't' after top-level value`},
		{`{"description":"x"}`, `has no name, and no supportedInterfaces or url either: it is not an agent card`},
		{`{"detail":"Not Found"}`, `has no name, and no supportedInterfaces or url either: it is not an agent card`},
		{`{"name":{"a":1},"supportedInterfaces":[{}]}`, `has no name, and no supportedInterfaces or url either: it is not an agent card`},
		{strings.Repeat(`{"a":`, 20000), `is not valid JSON: it is nested too deeply`},
	}
	for _, tt := range tests {
		card, err := ParseCard([]byte(tt.raw))
		var coded *Error
		if card != nil || !errors.As(err, &coded) || coded.Message != tt.want || coded.Cause != CauseProtocol {
			t.Errorf("%.40q: got %v, want %s", tt.raw, err, tt.want)
		}
	}
}

// TestSloppyCards: a wrong type costs only itself (checklist 13).
func TestSloppyCards(t *testing.T) {
	tests := []struct {
		name, raw string
		check     func(*Card) bool
		note      string
	}{
		{"streaming as a string", `{"name":"x","capabilities":{"streaming":"true"}}`, func(c *Card) bool { return c.Streaming }, "capabilities.streaming is a string, not a boolean"},
		{"streaming as an object", `{"name":"x","capabilities":{"streaming":{}}}`, func(c *Card) bool { return !c.Streaming }, "capabilities.streaming is an object, not a boolean: ignored"},
		{"capabilities as a list", `{"name":"x","capabilities":["streaming"]}`, func(c *Card) bool { return !c.Streaming }, "capabilities is an array, not an object: ignored"},
		{"provider as a string", `{"name":"x","provider":"Acme"}`, func(c *Card) bool { return c.Provider.Organization == "Acme" }, "provider is a string, not an object"},
		{"version as a number", `{"name":"x","version":2.10}`, func(c *Card) bool { return c.Version == "2.10" }, "version is a number, not a string"},
		{"name as a list", `{"name":["x"],"url":"http://a.test/"}`, func(c *Card) bool { return c.Name == "" && len(c.Interfaces) == 1 }, "the card has no name"},
		{"skills as an object", `{"name":"x","skills":{"id":"a"}}`, func(c *Card) bool { return len(c.Skills) == 1 }, "skills is an object, not an array"},
		{"skills with junk", `{"name":"x","skills":[null,"a",{},{"id":"a","tags":"one"},{"name":"B","examples":[1,"e",null]},{"id":"a"}]}`,
			func(c *Card) bool {
				return len(c.Skills) == 2 && c.Skills[0].Name == "a" && c.Skills[0].Tags[0] == "one" && c.Skills[1].ID == "B" && len(c.Skills[1].Examples) == 1
			}, `skills[5] repeats the id "a": ignored`},
		{"no skills, tags, modes", `{"name":"x","skills":null,"defaultInputModes":null}`, func(c *Card) bool { return c.Skills == nil && len(c.Notes) == 0 }, ""},
		{"unknown scheme", `{"name":"x","securitySchemes":{"a":{"type":"hoba"},"b":{},"c":7,"d":{"type":"HTTP","scheme":"Bearer"}}}`,
			func(c *Card) bool {
				return len(c.SecuritySchemes) == 2 && c.SecuritySchemes[0].Type == "hoba" && c.SecuritySchemes[1].HTTPScheme == "bearer"
			}, `securitySchemes.a is of the unknown type "hoba"`},
		{"several oauth flows", `{"name":"x","securitySchemes":{"o":{"type":"oauth2","flows":{
			"authorizationCode":{"tokenUrl":"https://l.test/code","scopes":{"c":"d"}},"clientCredentials":{"tokenUrl":"https://l.test/cc","scopes":{"b":"","a":""}}}}}}`,
			func(c *Card) bool {
				s := c.SecuritySchemes[0]
				return s.TokenURL == "https://l.test/cc" && slices.Equal(s.Scopes, []string{"a", "b"}) && slices.Equal(s.Flows, []string{"authorizationCode", "clientCredentials"})
			}, ""},
		{"oauth of 1.0", `{"name":"x","securitySchemes":{"o":{"oauth2SecurityScheme":{"oauth2MetadataUrl":"https://m.test","flows":{"clientCredentials":{"tokenUrl":"https://l.test/cc","scopes":["a"]}}}}}}`,
			func(c *Card) bool {
				s := c.SecuritySchemes[0]
				return s.Type == SchemeOAuth2 && s.TokenURL == "https://l.test/cc" && s.MetadataURL == "https://m.test" && len(s.Scopes) == 1
			}, ""},
		{"security of 0.3", `{"name":"x","security":[{"o":["a","b"],"k":[]},{}]}`,
			func(c *Card) bool {
				return len(c.Security) == 2 && len(c.Security[0]) == 2 && c.Security[0][1].Scheme == "o" && len(c.Security[0][1].Scopes) == 2 && len(c.Security[1]) == 0
			}, ""},
		{"requirements in the form of 0.3", `{"name":"x","securityRequirements":[{"o":["a"]}]}`,
			func(c *Card) bool { return c.Security[0][0].Scheme == "o" && c.Security[0][0].Scopes[0] == "a" }, ""},
		{"extension without uri", `{"name":"x","capabilities":{"extensions":[{"required":true},{"uri":"urn:x","required":"yes"}]}}`,
			func(c *Card) bool { return len(c.Extensions) == 1 && !c.Extensions[0].Required }, "capabilities.extensions[0] has no uri: ignored"},
		{"0.1", `{"name":"x","url":"http://a.test/","authentication":{"schemes":["Bearer"]}}`, func(c *Card) bool { return len(c.Interfaces) == 1 },
			"the card looks like A2A 0.1, which is not spoken; 0.3 is tried"},
		{"extended card of 0.3", `{"name":"x","supportsAuthenticatedExtendedCard":true}`, func(c *Card) bool { return c.ExtendedCard }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			card := parse(t, tt.raw)
			if !tt.check(card) {
				t.Errorf("read as %+v", card)
			}
			if tt.note != "" && !slices.Contains(card.Notes, tt.note) {
				t.Errorf("notes are %q, want %q", card.Notes, tt.note)
			}
		})
	}
}

func TestCardNotesAreBounded(t *testing.T) {
	raw := `{"name":"x","skills":[` + strings.TrimSuffix(strings.Repeat(`7,`, 5000), ",") + `]}`
	if n := len(parse(t, raw).Notes); n != maxNotes {
		t.Errorf("%d notes, want %d", n, maxNotes)
	}
}

// FuzzParseCard: no card makes the parser or the choice of an interface panic,
// what is accepted is valid JSON, and every address chosen can be called.
func FuzzParseCard(f *testing.F) {
	for _, seed := range []string{card10, card03, `{"name":"x"}`, `[]`, "\xef\xbb\xbf{}", `{"url":"//x","name":1}`,
		`{"name":"x","supportedInterfaces":[{"url":"http://0.0.0.0/message:send"},{"url":"/a"},{"url":"a:1"},{"url":"../x"}]}`,
		`{"name":"x","securitySchemes":{"a":{"type":"oauth2","flows":{"clientCredentials":{"scopes":[1]}}}},"security":[{"a":{"list":7}}]}`} {
		f.Add(seed)
	}
	rules := []interfaceRules{
		testRules(f, "http://agents.internal:8080/", PolicyAuto),
		testRules(f, "https://agents.example/x?k=v", PolicyConfigured),
		testRules(f, "http://127.0.0.1:1/", PolicyCard),
	}
	f.Fuzz(func(t *testing.T, raw string) {
		card, err := ParseCard([]byte(raw))
		if err != nil {
			return
		}
		if !json.Valid(card.Raw) {
			t.Fatalf("accepted %q", card.Raw)
		}
		for _, r := range rules {
			c := chooseInterfaces(card, r)
			if len(c.usable) == 0 {
				_ = c.reason()
				continue
			}
			if _, err := NewClient(ClientOptions{Interfaces: c.usable}); err != nil {
				t.Fatalf("chose %+v, which no client takes: %v", c.usable, err)
			}
			for _, in := range c.usable {
				if !in.Anonymous && !strings.HasPrefix(fmt.Sprint(in.URL), "http") {
					t.Fatalf("chose %+v", in)
				}
			}
		}
		_ = placementFrom(card)
		_ = (&AgentConfig{}).unmetDemand(card)
	})
}
