package server

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"a2agate/tools"
	"a2agate/translate"
)

// TestLegacyIsAskedInMidCallOnly: a call knows whether its client can be sent
// InputRequired, which the legacy wires do not have.
func TestLegacyIsAskedInMidCallOnly(t *testing.T) {
	var only atomic.Bool
	s := newServer(t, func(_ context.Context, c tools.Call, _ tools.Sink) translate.Outcome {
		only.Store(c.Client.MidCallOnly)
		return says("done")
	}, nil)
	const params = `"name":"a2a_send_message","arguments":{}`
	for _, rev := range []string{"", "2025-03-26", "2025-06-18", "2025-11-25"} {
		only.Store(false)
		w := do(s, legacyPost(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`}}`, rev))
		if !strings.Contains(w.Body.String(), "done") || !only.Load() {
			t.Errorf("%q: MidCallOnly is %v, %s", rev, only.Load(), w.Body)
		}
	}
	w := do(s, modernPost(modernBody("1", "tools/call", params)))
	if !strings.Contains(w.Body.String(), "done") || only.Load() {
		t.Errorf("modern: MidCallOnly is %v, %s", only.Load(), w.Body)
	}
}
