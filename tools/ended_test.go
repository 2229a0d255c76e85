package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// endingAgent asks, and ends the task before the answer comes: it refuses the
// answer with the code, and takes what follows up on the task.
type endingAgent struct {
	code int

	mu    sync.Mutex
	ended bool
	sent  []string // params of each SendMessage
}

func (a *endingAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprintf(w, `{"name":"E","supportedInterfaces":[{"url":"http://%s/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, r.Host)
		return
	}
	var rpc struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&rpc); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	state, body := "TASK_STATE_INPUT_REQUIRED", ""
	if a.ended {
		state = "TASK_STATE_COMPLETED"
	}
	task := `{"id":"t1","contextId":"c1","status":{"state":"` + state + `","message":{"messageId":"q","role":"ROLE_AGENT","parts":[{"text":"which?"}]}}}`
	switch {
	case rpc.Method == "GetTask":
		body = `"result":` + task
	case rpc.Method != "SendMessage":
		body = `"error":{"code":-32601,"message":"no"}`
	default:
		a.sent = append(a.sent, string(rpc.Params))
		switch {
		case len(a.sent) == 1:
			body = `"result":{"task":` + task + `}`
		case strings.Contains(string(rpc.Params), `"taskId"`):
			a.ended = true
			timer := time.NewTimer(300 * time.Millisecond) // longer than what is known of the task counts as fresh
			select {
			case <-timer.C:
			case <-r.Context().Done():
			}
			body = fmt.Sprintf(`"error":{"code":%d,"message":"task is in a terminal state"}`, a.code)
		default:
			body = `"result":{"message":{"messageId":"m","contextId":"c1","role":"ROLE_AGENT","parts":[{"text":"followed up"}]}}`
		}
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, rpc.ID, body)
}

// An answer to a task that has ended meanwhile follows up on it, whether its
// agent refuses with the code of the specification (A2A 1.0, 3.1.1) or, as
// a2a-go does, with invalid params. Any other refusal is the answer.
func TestAnswerToATaskThatHasEnded(t *testing.T) {
	for code, follows := range map[int]bool{-32004: true, -32602: true, -32603: false, -32005: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			agent := &endingAgent{code: code}
			entry, _ := realAgent(t, "demo", agent)
			g := over(t, nil, entry)
			asked := g.sendOver(`{"text":"begin"}`)
			wantEqual(t, "status", asked.str("status"), "input_required")
			got := g.send(`{"taskHandle":"` + asked.str("taskHandle") + `","text":"blue"}`)
			agent.mu.Lock()
			defer agent.mu.Unlock()
			if !follows {
				wantEqual(t, "isError", got.IsError, true)
				wantEqual(t, "sends", len(agent.sent), 2)
				return
			}
			wantEqual(t, "answer", got.first, "followed up")
			wantEqual(t, "sends", len(agent.sent), 3)
			wantText(t, agent.sent[2], `"referenceTaskIds":["t1"]`)
			wantText(t, agent.sent[2], `"contextId":"c1"`)
		})
	}
}
