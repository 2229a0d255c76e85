package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/internal/schematest"
	"a2agate/tools"
	"a2agate/translate"
)

// askingPrompts needs the arguments text and tone.
type askingPrompts struct{}

func (askingPrompts) AskPrompt(_ tools.View, _ string, args map[string]string) (translate.Ask, bool) {
	if args["text"] != "" && args["tone"] != "" {
		return translate.Ask{}, false
	}
	return translate.Ask{Key: "arguments", Message: "It needs: text, tone.", Schema: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string","minLength":1},"tone":{"type":"string"}},"required":["text"]}`)}, true
}

func (askingPrompts) GetPrompt(_ context.Context, _ tools.View, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	if args["text"] == "" {
		return nil, &translate.Error{Code: translate.CodeInvalidParams, Message: "text is missing"}
	}
	return &mcp.GetPromptResult{Description: name, Messages: []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(args["text"] + "/" + args["tone"])}}}, nil
}

// TestPromptAsks: a client that can be asked gets a question for what its
// prompts/get lacks, and its retry is answered; any other gets the error.
func TestPromptAsks(t *testing.T) {
	s := newServer(t, echo, func(o *Options) { o.Prompts = askingPrompts{} })
	const can = `{"elicitation":{}}`
	for _, tt := range []struct {
		name, caps, params string
		want               string // what must stand in the answer
	}{
		{"nothing missing", can, `"arguments":{"text":"a","tone":"b"}`, `"text":"a/b"`},
		{"asked", can, `"arguments":{"tone":"b"}`, `"resultType":"input_required","inputRequests":{"arguments":{"method":"elicitation/create"`},
		{"asked without arguments", can, ``, `"input_required"`},
		{"url mode alone cannot be asked", `{"elicitation":{"url":{}}}`, ``, `"code":-32602`},
		{"cannot be asked", `{}`, `"arguments":{"tone":"b"}`, `"code":-32602,"message":"text is missing"`},
		{"answered", can, `"arguments":{"tone":"b"},"inputResponses":{"arguments":{"action":"accept","content":{"text":"c"}}}`, `"text":"c/b"`},
		{"answered before it was asked, by who cannot be asked", `{}`, `"inputResponses":{"arguments":{"action":"accept","content":{"text":"c","tone":"d"}}}`, `"text":"c/d"`},
		{"an answer to something else", can, `"inputResponses":{"other":{"action":"accept","content":{"text":"c"}}}`, `"input_required"`},
		{"an answer that does not fit", can, `"inputResponses":{"arguments":{"action":"accept","content":{"text":5}}}`, `The last answer cannot be used`},
		{"declined", can, `"inputResponses":{"arguments":{"action":"decline"}}`, `"code":-32602,"message":"text is missing"`},
		{"answers that are no object", can, `"inputResponses":[1]`, `"code":-32602,"message":"prompts/get: params.inputResponses must be an object"`},
		{"arguments of the wrong shape", can, `"arguments":{"text":1}`, `"code":-32602`},
	} {
		params := `"name":"invoice_helper_ask",`
		if tt.params != "" {
			params += tt.params + ","
		}
		w := do(s, modernPost(modernBodyWith("7", "prompts/get", strings.TrimSuffix(params, ","), metaOf(tt.caps, ""))))
		body := w.Body.String()
		if !strings.Contains(body, tt.want) || !strings.Contains(body, `"id":7`) {
			t.Errorf("%s: HTTP %d %s\nwant %s", tt.name, w.Code, body, tt.want)
		}
		if strings.Contains(body, `"input_required"`) && (strings.Contains(body, "requestState") || strings.Contains(body, "ttlMs")) {
			t.Errorf("%s: a question with a state or with a time to keep it: %s", tt.name, body)
		}
		if schematest.Available() {
			schematest.Message(t, "2026-07-28", "prompts/get", w.Body.Bytes())
		}
	}
	w := do(s, legacyPost(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"invoice_helper_ask"}}`, "2025-11-25"))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"message":"text is missing"`) {
		t.Errorf("legacy: HTTP %d %s", w.Code, w.Body)
	}
}
