package tools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

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

// Long numbers are looked at by many checks, which together may take no longer
// than one.
func TestChecksOfLongNumbersShareTheirTime(t *testing.T) {
	c, err := compileSchema(json.RawMessage(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"integer"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 5_000)
	for i := range list {
		list[i] = json.Number("7")
	}
	v := map[string]any{"list": list}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		v[name] = json.Number("1" + strings.Repeat("0", 500))
	}
	c.patience = time.Hour
	began := time.Now()
	if err := c.check(map[string]any{"list": list}); err != nil {
		t.Fatal(err)
	}
	c.patience = 3 * time.Since(began)
	if problem, err := c.verdict(v); problem == "" && err == nil {
		t.Error("dozens of checks were made within the time of three")
	}
	c.patience = time.Hour
	if problem, err := c.verdict(v); problem != "" || err != nil {
		t.Errorf("with time enough: %q, %v", problem, err)
	}
}
