package tools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"a2agate/fixtures"
)

// A number that is too long to be compared goes through as it is written where
// no schema compares it: in what a caller sends and in what an agent answers.
func TestLongNumberThatNothingCompares(t *testing.T) {
	long := strings.Repeat("9", 500)
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		got := g.send(`{"text":"echo hi","data":{"n":` + long + `},"metadata":{"n":1e999}}`)
		wantEqual(t, "isError", got.IsError, false)
		calls := g.demo().Calls("SendStreamingMessage")
		if len(calls) != 1 || !strings.Contains(string(calls[0].Body), `{"n":`+long+`}`) || !strings.Contains(string(calls[0].Body), `"metadata":{"n":1e999}`) {
			t.Errorf("%d messages: %s", len(calls), got.text)
		}
		got = g.send(`{"text":"echo hi","timeoutSeconds":` + long + `}`)
		wantEqual(t, "isError of one that is compared", got.IsError, true)
		wantText(t, got.text, `"timeoutSeconds": the number 999`)
	})
	inBubble(t, func(t *testing.T) {
		g := skillAgent(t, nil, fixtures.Skill{ID: "sum", Name: "Sum", Description: "Sums.", InputSchema: json.RawMessage(`{"type":"object"}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`)})
		g.demo().OnCommand("sum", func(_ context.Context, turn *fixtures.Turn) error {
			return turn.Reply(fixtures.Data(json.RawMessage(`{"sum":3,"exact":` + long + `}`)))
		})
		out := g.call("demo_sum", `{"x":`+long+`}`, nil)
		if out.Result == nil || out.Result.IsError || !strings.Contains(string(out.Result.Structured), `"exact":`+long) {
			t.Errorf("%+v", out.Result)
		}
	})
}
