package tools

import (
	"fmt"
	"testing"

	"a2agate/a2a"
	"a2agate/fixtures"
)

func TestSendStates(t *testing.T) {
	tests := []struct {
		say           string
		kind, status  string
		state         a2a.State
		isError       bool
		text          string
		task, context bool
	}{
		{"echo hello", "message", "completed", "", false, "hello", false, true},
		{"task abc", "task", "completed", a2a.StateCompleted, false, "cba", true, true},
		{"ask size", "task", "input_required", a2a.StateInputRequired, false, "Which value should I use for size?", true, true},
		{"fail it broke", "task", "failed", a2a.StateFailed, true, "it broke", true, true},
		{"reject not mine", "task", "rejected", a2a.StateRejected, true, "not mine", true, true},
		{"cancelme", "task", "cancelled", a2a.StateCanceled, false, "", true, true},
		{"unspecified", "task", "failed", a2a.StateUnspecified, true, "", true, true},
		{"error -32004 no way", "", "failed", "", true, "UnsupportedOperation (-32004): no way", false, false},
		{"slow 300", "task", "working", a2a.StateWorking, false, "still working", true, true},
		{"authstuck", "task", "auth_required", a2a.StateAuthRequired, true, "https://login.example.com/device?code=ABCD-1234", true, true},
	}
	for _, version := range []a2a.Version{a2a.V10, a2a.V03} {
		for _, unary := range []bool{false, true} {
			for _, tt := range tests {
				t.Run(fmt.Sprintf("%s/unary=%v/%s", version, unary, tt.say), func(t *testing.T) {
					inBubble(t, func(t *testing.T) {
						g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: unary, Versions: []a2a.Version{version}}}, nil)
						got := g.send(`{"text":` + jsonString(tt.say) + `}`)
						wantEqual(t, "kind", got.str("kind"), tt.kind)
						wantEqual(t, "status", got.str("status"), tt.status)
						wantEqual(t, "a2aState", got.str("a2aState"), string(tt.state))
						wantEqual(t, "isError", got.IsError, tt.isError)
						wantText(t, got.text, tt.text)
						wantEqual(t, "has taskHandle", got.str("taskHandle") != "", tt.task)
						wantEqual(t, "has contextHandle", got.str("contextHandle") != "", tt.context)
						wantEqual(t, "agent", got.str("agent"), "demo")
						g.noComplaints()
					})
				})
			}
		}
	}
}
