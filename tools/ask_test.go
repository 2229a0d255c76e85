package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/a2a"
	"a2agate/fixtures"
	"a2agate/translate"
)

var (
	formClient = ClientCapabilities{ElicitForm: true}
	urlClient  = ClientCapabilities{ElicitURL: true}
	bothClient = ClientCapabilities{ElicitForm: true, ElicitURL: true}
)

// as sets what the client declares.
func as(c ClientCapabilities) func(*Call) { return func(call *Call) { call.Client = c } }

// retry is a call with answers to an earlier question.
func retry(c ClientCapabilities, state, responses string) func(*Call) {
	return func(call *Call) {
		call.Client = c
		call.RequestState = &state
		if responses != "" {
			call.InputResponses = json.RawMessage(responses)
		}
	}
}

// ask sends and expects a question.
func (g *gateway) ask(arguments string, c ClientCapabilities) *translate.InputRequired {
	g.t.Helper()
	return g.asked(g.call(ToolSend, arguments, as(c)))
}

func (g *gateway) asked(out translate.Outcome) *translate.InputRequired {
	g.t.Helper()
	if out.InputRequired == nil {
		g.t.Fatalf("no question: %+v %v", out.Result, out.Err)
	}
	if out.InputRequired.RequestState == "" || len(out.InputRequired.Asks) == 0 {
		g.t.Fatalf("an empty question: %+v", out.InputRequired)
	}
	return out.InputRequired
}

const yes = `{"answer":{"action":"accept","content":{"answer":"large"}}}`

func TestQuestionAndAnswer(t *testing.T) {
	for _, version := range []a2a.Version{a2a.V10, a2a.V03} {
		for _, unary := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/unary=%v", version, unary), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					g := newGateway(t, map[string]fixtures.Options{"demo": {Unary: unary, Versions: []a2a.Version{version}}}, nil)
					const arguments = `{"text":"ask size"}`
					q := g.ask(arguments, formClient)
					wantEqual(t, "key", q.Asks[0].Key, "answer")
					wantText(t, q.Asks[0].Message, "Which value should I use for size?")
					got := g.seen(g.call(ToolSend, arguments, retry(formClient, q.RequestState, yes)))
					wantEqual(t, "status", got.str("status"), "completed")
					wantEqual(t, "answer", got.first, "size = large")
					// The same again reaches nobody.
					out := g.call(ToolSend, arguments, retry(formClient, q.RequestState, yes))
					wantState(t, out, "it has been used already")
					wantEqual(t, "messages", len(g.demo().AllExecutions()), 2)
					g.noComplaints()
				})
			})
		}
	}
}

func wantState(t *testing.T, out translate.Outcome, why string) {
	t.Helper()
	if out.Err == nil || out.Err.Code != translate.CodeInvalidParams {
		t.Fatalf("want -32602, got %+v %+v", out.Err, out.Result)
	}
	wantEqual(t, "message", out.Err.Message, "requestState is not valid for this call: "+why+"; call the tool again without it")
}

func TestStatesThatAreNotGood(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		const arguments = `{"text":"ask size"}`
		q := g.ask(arguments, formClient)
		state := q.RequestState
		tests := []struct {
			name, tool, arguments, state, why string
			principal                         string
		}{
			{"tampered", ToolSend, arguments, state + "-TAMPERED", "it is unknown", ""},
			{"one letter", ToolSend, arguments, flip(state), "it is unknown", ""},
			{"empty", ToolSend, arguments, "", "it is unknown", ""},
			{"garbage", ToolSend, arguments, "\x00\xff", "it is unknown", ""},
			{"foreign", ToolSend, arguments, state, "it is unknown", "mallory"},
			{"other arguments", ToolSend, `{"text":"ask weight"}`, state, "it belongs to a call with other arguments", ""},
			{"other tool", ToolDiscover, `{}`, state, "this tool asks no questions", ""},
		}
		before := len(g.demo().Requests())
		for _, tt := range tests {
			out := g.call(tt.tool, tt.arguments, func(c *Call) {
				retry(formClient, tt.state, yes)(c)
				if tt.principal != "" {
					c.Principal = tt.principal
				}
			})
			t.Log(tt.name)
			wantState(t, out, tt.why)
		}
		out := g.call(ToolSend, arguments, retry(formClient, state, `["x"]`))
		if out.Err == nil || !strings.HasPrefix(out.Err.Message, "inputResponses must be an object") {
			t.Errorf("array of responses: %+v", out)
		}
		wantEqual(t, "requests to the agent", len(g.demo().Requests()), before)
		// None of that has used the state up.
		got := g.seen(g.call(ToolSend, ` { "text" : "ask size" } `, retry(formClient, state, yes)))
		wantEqual(t, "answer", got.first, "size = large")
	})
}

// flip changes the last letter of a handle to another one that is allowed.
func flip(s string) string {
	last := byte('a')
	if s[len(s)-1] == last {
		last = 'b'
	}
	return s[:len(s)-1] + string(last)
}

func TestStateExpires(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		q := g.ask(`{"text":"ask size"}`, formClient)
		time.Sleep(stateTTL + time.Second)
		out := g.call(ToolSend, `{"text":"ask size"}`, retry(formClient, q.RequestState, yes))
		wantState(t, out, "it has expired")
		wantEqual(t, "messages", len(g.demo().AllExecutions()), 1)
	})
}

func TestQuestionGoesOnInRounds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		const arguments = `{"text":"ask2 size"}`
		q1 := g.ask(arguments, formClient)
		q2 := g.asked(g.call(ToolSend, arguments, retry(formClient, q1.RequestState, yes)))
		if q1.RequestState == q2.RequestState {
			t.Error("the same state twice")
		}
		wantText(t, q2.Asks[0].Message, "And which one after large?")
		got := g.seen(g.call(ToolSend, arguments, retry(formClient, q2.RequestState, yes)))
		wantEqual(t, "answer", got.first, "size = large, large")
		g.noComplaints()
	})
}

func TestAnswersThatCannotBeUsed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		const arguments = `{"text":"askform"}`
		q := g.ask(arguments, formClient)
		for _, tt := range []struct{ name, responses, complaint string }{
			{"none", ``, ""},
			{"null", `null`, ""},
			{"unknown key", `{"other":{"action":"accept","content":{}},"odd":7}`, ""},
			{"no object", `{"booking":12345}`, "The last answer cannot be used"},
			{"bad action", `{"booking":{"action":"maybe"}}`, "The last answer cannot be used"},
			{"missing field", `{"booking":{"action":"accept","content":{"seat":"aisle"}}}`, "The last answer cannot be used"},
			{"wrong value", `{"booking":{"action":"accept","content":{"seat":"roof","name":"Ann"}}}`, "The last answer cannot be used"},
			{"wrong type", `{"booking":{"action":"accept","content":{"seat":"aisle","name":"Ann","bags":"two"}}}`, "The last answer cannot be used"},
		} {
			next := g.asked(g.call(ToolSend, arguments, retry(formClient, q.RequestState, tt.responses)))
			if next.RequestState == q.RequestState {
				t.Errorf("%s: the same state again", tt.name)
			}
			wantText(t, next.Asks[0].Message, tt.complaint)
			if n := strings.Count(next.Asks[0].Message, "cannot be used"); n > 1 {
				t.Errorf("%s: %d complaints in one question", tt.name, n)
			}
			q = next
		}
		wantEqual(t, "messages", len(g.demo().AllExecutions()), 1)
		good := `{"booking":{"action":"accept","content":{"seat":"aisle","name":"Ann","bags":2,"more":"than asked"}}}`
		got := g.seen(g.call(ToolSend, arguments, retry(formClient, q.RequestState, good)))
		wantEqual(t, "status", got.str("status"), "completed")
		wantText(t, got.text, `"seat"`)
		g.noComplaints()
	})
}

func TestPartialAnswersAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		const arguments = `{"text":"askmulti"}`
		q := g.ask(arguments, formClient)
		wantEqual(t, "questions", len(q.Asks), 2)
		q = g.asked(g.call(ToolSend, arguments, retry(formClient, q.RequestState, `{"name":{"action":"accept","content":{"name":"Ann"}}}`)))
		wantEqual(t, "questions left", len(q.Asks), 1)
		wantEqual(t, "key", q.Asks[0].Key, "confirm")
		got := g.seen(g.call(ToolSend, arguments, retry(formClient, q.RequestState, `{"confirm":{"action":"accept","content":{"confirm":true}}}`)))
		wantText(t, got.text, `2 answers used`)
		wantText(t, got.text, `Ann`)
	})
}

func TestDeclineAndCancelKeepTheTask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		for action, note := range map[string]string{
			"decline": "the user declined to answer; the task still waits",
			"cancel":  "the question was dismissed without an answer; the task still waits",
		} {
			q := g.ask(`{"text":"ask size"}`, formClient)
			got := g.seen(g.call(ToolSend, `{"text":"ask size"}`, retry(formClient, q.RequestState, `{"answer":{"action":"`+action+`"}}`)))
			wantEqual(t, "status", got.str("status"), "input_required")
			wantEqual(t, "isError", got.IsError, false)
			wantText(t, got.str("note"), note)
			wantText(t, got.text, "Which value should I use for size?")
			// The task waits: its handle answers it.
			got = g.send(`{"taskHandle":"` + got.str("taskHandle") + `","text":"small"}`)
			wantEqual(t, "answer", got.first, "size = small")
		}
		wantEqual(t, "cancels", len(g.demo().Calls("CancelTask")), 0)
		g.noComplaints()
	})
}

func TestDeclineWhileTheAgentIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		q := g.ask(`{"text":"ask size"}`, formClient)
		g.demo().Down(true)
		got := g.seen(g.call(ToolSend, `{"text":"ask size"}`, retry(formClient, q.RequestState, `{"answer":{"action":"decline"}}`)))
		wantEqual(t, "status", got.str("status"), "input_required")
		wantText(t, got.text, "Which value should I use for size?")
		if got.str("taskHandle") == "" {
			t.Error("no handle")
		}
	})
}

func TestWhoIsAsked(t *testing.T) {
	tests := []struct {
		say    string
		client ClientCapabilities
		asked  bool
	}{
		{"ask size", ClientCapabilities{}, false},
		{"ask size", urlClient, false},
		{"ask size", formClient, true},
		{"ask size", bothClient, true},
		{"askurl", formClient, false},
		{"askurl", urlClient, true},
		{"asksecret", formClient, false},
		{"asksecret", bothClient, false},
		{"ask for the API key of production", bothClient, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/%+v", tt.say, tt.client), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := oneAgent(t, nil)
				out := g.call(ToolSend, `{"text":`+jsonString(tt.say)+`}`, as(tt.client))
				if tt.asked {
					for _, a := range g.asked(out).Asks {
						if (a.URL != "") != (tt.say == "askurl") {
							t.Errorf("asked in the wrong mode: %+v", a)
						}
					}
					return
				}
				got := g.seen(out)
				wantEqual(t, "status", got.str("status"), "input_required")
				if got.str("taskHandle") == "" {
					t.Error("no handle to answer with")
				}
				wantText(t, got.text, got.str("taskHandle"))
			})
		})
	}
}

func TestColdAnswers(t *testing.T) {
	cold := func(responses string) func(*Call) {
		return func(c *Call) { c.Client, c.InputResponses = formClient, json.RawMessage(responses) }
	}
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		got := g.seen(g.call(ToolSend, `{"text":"ask size"}`, cold(`{"answer":{"action":"accept","content":{"answer":"cold"}},"x":{"action":"accept"},"y":1}`)))
		wantEqual(t, "answer", got.first, "size = cold")
		for _, odd := range []string{`{"wrong_key":{"action":"accept","content":{"answer":"x"}}}`, `{"answer":12345}`, `{"answer":{"action":"decline"}}`, `null`} {
			g.asked(g.call(ToolSend, `{"text":"ask size"}`, cold(odd)))
		}
		// An answer is used once: the second question is asked.
		q := g.asked(g.call(ToolSend, `{"text":"ask2 size"}`, cold(yes)))
		wantText(t, q.Asks[0].Message, "And which one after large?")
		out := g.call(ToolSend, `{"text":"echo x"}`, cold(`[]`))
		if out.Err == nil || out.Err.Code != translate.CodeInvalidParams {
			t.Errorf("%+v", out)
		}
		// A client that declares nothing is still not asked.
		got = g.seen(g.call(ToolSend, `{"text":"ask size"}`, func(c *Call) { c.InputResponses = json.RawMessage(yes) }))
		wantEqual(t, "status", got.str("status"), "input_required")
		g.noComplaints()
	})
}

func TestAskedInMidCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		s := &sink{answer: func(asks []translate.Ask) (map[string]translate.Answer, error) {
			return map[string]translate.Answer{asks[0].Key: {Action: "accept", Content: json.RawMessage(`{"answer":"mid"}`)}}, nil
		}}
		got := g.seen(g.callWith(t.Context(), s, ToolSend, `{"text":"ask2 size"}`, as(formClient)))
		wantEqual(t, "answer", got.first, "size = mid, mid")
		wantEqual(t, "rounds", len(s.asked), 2)

		n := 0
		s = &sink{answer: func(asks []translate.Ask) (map[string]translate.Answer, error) {
			n++
			content := `{"answer":5}`
			if n > 1 {
				content = `{"answer":"five"}`
			}
			return map[string]translate.Answer{asks[0].Key: {Action: "accept", Content: json.RawMessage(content)}}, nil
		}}
		got = g.seen(g.callWith(t.Context(), s, ToolSend, `{"text":"ask size"}`, as(formClient)))
		wantEqual(t, "answer", got.first, "size = five")
		wantText(t, s.asked[1][0].Message, "The last answer cannot be used")
		g.noComplaints()
	})
}

func TestMidCallWithoutAnAnswer(t *testing.T) {
	tests := []struct {
		name, note string
		answer     func([]translate.Ask) (map[string]translate.Answer, error)
	}{
		{"decline", "the user declined to answer; the task still waits", func(a []translate.Ask) (map[string]translate.Answer, error) {
			return map[string]translate.Answer{a[0].Key: {Action: "decline"}}, nil
		}},
		{"cancel", "the question was dismissed without an answer; the task still waits", func(a []translate.Ask) (map[string]translate.Answer, error) {
			return map[string]translate.Answer{a[0].Key: {Action: "cancel"}}, nil
		}},
		{"nothing", "the user's answers did not fit the question", func([]translate.Ask) (map[string]translate.Answer, error) {
			return nil, nil
		}},
		{"broken", "the question could not be put to the user", func([]translate.Ask) (map[string]translate.Answer, error) {
			return nil, errors.New("the client answered with an error")
		}},
	}
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		for _, tt := range tests {
			got := g.seen(g.callWith(t.Context(), &sink{answer: tt.answer}, ToolSend, `{"text":"ask size"}`, as(formClient)))
			wantEqual(t, tt.name, got.str("status"), "input_required")
			wantText(t, got.str("note"), tt.note)
			wantText(t, got.text, got.str("taskHandle"))
		}
		wantEqual(t, "cancels", len(g.demo().Calls("CancelTask")), 0)
	})
}

// A legacy client that declares elicitation and then cannot be asked after all
// (its revision has no words for the form, its session is gone, it answers
// with an error) gets the envelope: InputRequired does not exist for it.
func TestMidCallOnly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		legacy := func(c *Call) { c.Client = ClientCapabilities{ElicitForm: true, MidCallOnly: true} }
		for _, s := range []Sink{&sink{}, nil} {
			out := g.callWith(t.Context(), s, ToolSend, `{"text":"ask size"}`, legacy)
			if out.InputRequired != nil {
				t.Fatalf("asked for a retry: %+v", out)
			}
			got := g.seen(out)
			wantEqual(t, "status", got.str("status"), "input_required")
			wantText(t, got.str("note"), "the question could not be put to the user")
			answered := g.seen(g.call(ToolSend, `{"taskHandle":"`+got.str("taskHandle")+`","text":"large"}`, nil))
			wantEqual(t, "answer", answered.first, "size = large")
		}
	})
}

func TestCallerGoesWhileAsked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		s := &sink{answer: func([]translate.Ask) (map[string]translate.Answer, error) {
			cancel()
			return nil, ctx.Err()
		}}
		out := g.callWith(ctx, s, ToolSend, `{"text":"ask size"}`, as(formClient))
		if out.Err == nil {
			t.Errorf("%+v", out.Result)
		}
		time.Sleep(time.Second)
		wantEqual(t, "cancels", len(g.demo().Calls("CancelTask")), 1)
	})
}

func TestTwoAnswersAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		first := g.send(`{"text":"ask size"}`)
		handle := first.str("taskHandle")
		g.demo().Delay(time.Second) // both are on their way at the same time
		var wg sync.WaitGroup
		got := make([]answerSeen, 2)
		for i := range got {
			wg.Go(func() {
				got[i] = g.send(fmt.Sprintf(`{"taskHandle":%q,"text":"answer %d"}`, handle, i))
			})
		}
		wg.Wait()
		busy := 0
		for _, a := range got {
			if strings.Contains(a.first, "is busy with another message") {
				busy++
				wantEqual(t, "isError", a.IsError, true)
			}
		}
		wantEqual(t, "told busy", busy, 1)
		wantEqual(t, "messages", len(g.demo().AllExecutions()), 2)

		q := g.ask(`{"text":"ask size"}`, formClient)
		outs := make([]translate.Outcome, 2)
		for i := range outs {
			wg.Go(func() { outs[i] = g.call(ToolSend, `{"text":"ask size"}`, retry(formClient, q.RequestState, yes)) })
		}
		wg.Wait()
		done := 0
		for _, out := range outs {
			if out.Result != nil && !out.Result.IsError {
				done++
			}
		}
		wantEqual(t, "answered", done, 1)
		wantEqual(t, "messages", len(g.demo().AllExecutions()), 4)
		synctest.Wait()
		g.noComplaints()
	})
}

func TestQuestionsSayWhoAsks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		q := g.ask(`{"text":"ask size"}`, formClient)
		wantEqual(t, "question", q.Asks[0].Message, "Demo agent asks: Which value should I use for size?")
	})
}

// A user who never answers does not hold the call for ever.
func TestMidCallQuestionEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := oneAgent(t, nil)
		var out translate.Outcome
		took := timed(func() { out = g.callWith(t.Context(), neverAnswers{}, ToolSend, `{"text":"ask size"}`, as(formClient)) })
		got := g.seen(out)
		wantEqual(t, "waited", took.Round(time.Second), stateTTL)
		wantText(t, got.str("note"), "the user did not answer in time")
	})
}

type neverAnswers struct{}

func (neverAnswers) Progress(string) {}
func (neverAnswers) Ask(ctx context.Context, _ []translate.Ask) (map[string]translate.Answer, bool, error) {
	<-ctx.Done()
	return nil, true, ctx.Err()
}
