package tools

import (
	"encoding/json"
	"testing"

	"a2agate/fixtures"
)

// AskPrompt asks for the required arguments that have no value, by a form of
// text fields, and never for a secret.
func TestAskPrompt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		schema := func(s string) json.RawMessage { return json.RawMessage(s) }
		g := newGateway(t, map[string]fixtures.Options{"demo": {NoDemoSkills: true, Skills: []fixtures.Skill{
			{ID: "book", Name: "Book", Description: "Books.", InputSchema: schema(`{"type":"object","properties":{` +
				`"city":{"type":"string","title":"City","description":"Where to \"go\"."},"nights":{"type":"integer"},"note":{"type":"string"}},"required":["city","nights"]}`)},
			{ID: "login", Name: "Login", Description: "Logs in.", InputSchema: schema(`{"type":"object","properties":{"password":{"type":"string"}},"required":["password"]}`)},
			{ID: "plain", Name: "Plain", Description: "Says it."},
		}}}, nil)
		for _, tt := range []struct {
			prompt string
			args   map[string]string
			want   string // the schema, "" for no question
		}{
			{"demo_book", nil, `{"type":"object","properties":{"city":{"type":"string","minLength":1,"title":"City","description":"Where to \"go\"."},"nights":{"type":"string","minLength":1}},"required":["city","nights"]}`},
			{"demo_book", map[string]string{"city": "Rome", "nights": " "}, `{"type":"object","properties":{"nights":{"type":"string","minLength":1}},"required":["nights"]}`},
			{"demo_book", map[string]string{"city": "Rome", "nights": "2"}, ""},
			{"demo_login", nil, ""},
			{"nope", nil, ""},
		} {
			ask, ok := g.svc.AskPrompt(View{}, tt.prompt, tt.args)
			if ok != (tt.want != "") || string(ask.Schema) != tt.want {
				t.Errorf("%s %v: %v %s\nwant %s", tt.prompt, tt.args, ok, ask.Schema, tt.want)
			}
			if ok {
				wantEqual(t, "key", ask.Key, "arguments")
				wantText(t, ask.Message, `The skill "Book" of agent "Demo agent" needs: `)
			}
		}
		if _, ok := g.svc.AskPrompt(View{Agents: "other"}, "demo_book", nil); ok {
			t.Error("a prompt of a hidden agent asks")
		}
		ask, ok := g.svc.AskPrompt(View{}, "demo_plain", nil)
		if !ok || !json.Valid(ask.Schema) {
			t.Errorf("%v %s", ok, ask.Schema)
		}
		wantEqual(t, "calls to the agent", len(g.demo().Requests()), 0)
	})
}
