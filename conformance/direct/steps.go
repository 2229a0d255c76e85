package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"a2agate/a2a"
)

// step is one row of the table.
type step struct {
	name string
	do   func(ctx context.Context, p *peer) error
}

func steps() []step {
	return []step{
		{"send, a message", sendMessage},
		{"send, a task", sendTask},
		{"send, data", sendData},
		{"stream", stream},
		{"stream, a message", streamMessage},
		{"get, history", get},
		{"get, unknown", getUnknown},
		{"list", list},
		{"cancel", cancelTask},
		{"cancel, ended", cancelEnded},
		{"cancel, unknown", cancelUnknown},
		{"failed and rejected", outcomes},
		{"send to an unknown task", sendUnknown},
		{"stream to an unknown task", streamUnknown},
		{"send to an ended task", sendEnded},
		{"input-required", inputRequired},
		{"input-required, streamed", inputStreamed},
		{"resubscribe", resubscribe},
		{"subscribe to an ended task", subscribeEnded},
		{"deadline in a stream", deadline},
		{"follow a send", followSend},
		{"follow a task", followTask},
		{"follow an ended task", followEnded},
		{"follow, ask and answer", followAnswer},
		{"follow, cancel", followCancel},
	}
}

func words(text string) a2a.SendRequest {
	return a2a.SendRequest{Message: a2a.Message{MessageID: a2a.NewMessageID(), Role: a2a.RoleUser, Parts: []a2a.Part{{Kind: a2a.PartText, Text: text}}}}
}

func to(task *a2a.Task, text string) a2a.SendRequest {
	req := words(text)
	req.Message.TaskID, req.Message.ContextID = task.ID, task.ContextID
	return req
}

func partsText(parts []a2a.Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

func taskText(t *a2a.Task) string {
	var b strings.Builder
	for _, a := range t.Artifacts {
		b.WriteString(partsText(a.Parts))
	}
	return b.String()
}

func wantTask(t *a2a.Task, state a2a.State, text string) error {
	switch {
	case t == nil:
		return errors.New("no task")
	case t.ID == "" || t.ContextID == "":
		return fmt.Errorf("the task's ids are %q and %q", t.ID, t.ContextID)
	case t.Status.State != state:
		return fmt.Errorf("the state is %s, not %s", t.Status.State, state)
	case text != "" && taskText(t) != text:
		return fmt.Errorf("the artifacts say %q, not %q", taskText(t), text)
	case len(t.Notes) > 0:
		return fmt.Errorf("odd: %q", t.Notes)
	}
	return nil
}

// wantCode checks that err is the agent's own error with one of the codes.
func wantCode(err error, codes ...int) error {
	var e *a2a.Error
	if !errors.As(err, &e) || e.Cause != a2a.CauseAgent || !slices.Contains(codes, e.Code) || e.Message == "" {
		return fmt.Errorf("the error is %w (%T), not of %v", err, err, codes)
	}
	return nil
}

// completed sends a task and returns it as it ended.
func (p *peer) completed(ctx context.Context, text string) (*a2a.Task, error) {
	ev, err := p.client.Send(ctx, words(text))
	if err != nil {
		return nil, err
	}
	return ev.Task, wantTask(ev.Task, a2a.StateCompleted, "")
}

func sendMessage(ctx context.Context, p *peer) error {
	ev, err := p.client.Send(ctx, words("echo hi ünicode"))
	if err != nil {
		return err
	}
	if ev.Message == nil || partsText(ev.Message.Parts) != "hi ünicode" || ev.Message.Role != a2a.RoleAgent || len(ev.Notes) > 0 {
		return fmt.Errorf("got %+v", ev)
	}
	return nil
}

func sendTask(ctx context.Context, p *peer) error {
	t, err := p.completed(ctx, "task abc")
	if err != nil {
		return err
	}
	return wantTask(t, a2a.StateCompleted, "cba")
}

func sendData(ctx context.Context, p *peer) error {
	t, err := p.completed(ctx, "data x")
	if err != nil {
		return err
	}
	var got struct {
		Answer int    `json:"answer"`
		Echo   string `json:"echo"`
	}
	if len(t.Artifacts) != 1 || len(t.Artifacts[0].Parts) != 1 || t.Artifacts[0].Parts[0].Kind != a2a.PartData {
		return fmt.Errorf("got %+v", t.Artifacts)
	}
	if err := json.Unmarshal(t.Artifacts[0].Parts[0].Data, &got); err != nil || got.Answer != 42 || got.Echo != "x" {
		return fmt.Errorf("data is %s", t.Artifacts[0].Parts[0].Data)
	}
	return nil
}

// fold reads a stream to its end.
func fold(s a2a.EventStream) (*a2a.Aggregate, error) {
	defer s.Close()
	agg := a2a.NewAggregate(0)
	for {
		ev, err := s.Next()
		if errors.Is(err, io.EOF) {
			return agg, nil
		}
		if err != nil {
			return agg, err
		}
		if err := agg.Add(ev); err != nil {
			return agg, err
		}
	}
}

func stream(ctx context.Context, p *peer) error {
	s, err := p.client.Stream(ctx, words("task abc"))
	if err != nil {
		return err
	}
	agg, err := fold(s)
	if err != nil {
		return err
	}
	if agg.Progress() != "Working on it." {
		return fmt.Errorf("progress is %q", agg.Progress())
	}
	return wantTask(agg.Task(), a2a.StateCompleted, "cba")
}

func streamMessage(ctx context.Context, p *peer) error {
	s, err := p.client.Stream(ctx, words("echo hi"))
	if err != nil {
		return err
	}
	agg, err := fold(s)
	if err == nil && (agg.Message() == nil || partsText(agg.Message().Parts) != "hi") {
		err = fmt.Errorf("got %+v", agg.Message())
	}
	return err
}

func get(ctx context.Context, p *peer) error {
	t, err := p.completed(ctx, "task abc")
	if err != nil {
		return err
	}
	whole, err := p.client.GetTask(ctx, t.ID, nil)
	if err != nil {
		return err
	}
	if len(whole.History) == 0 || whole.History[0].Role != a2a.RoleUser || partsText(whole.History[0].Parts) != "task abc" {
		return fmt.Errorf("the history is %+v", whole.History)
	}
	one := 1
	short, err := p.client.GetTask(ctx, t.ID, &one)
	if err != nil {
		return err
	}
	if len(short.History) > 1 {
		return fmt.Errorf("a history of one has %d turns", len(short.History))
	}
	return wantTask(whole, a2a.StateCompleted, "cba")
}

func getUnknown(ctx context.Context, p *peer) error {
	for _, id := range []string{"nobody-knows-this", "a/b?c#d é"} {
		_, err := p.client.GetTask(ctx, id, nil)
		if err := wantCode(err, a2a.CodeTaskNotFound); err != nil {
			return err
		}
	}
	return nil
}

func list(ctx context.Context, p *peer) error {
	before := p.requests()
	page, err := p.client.ListTasks(ctx, a2a.ListRequest{PageSize: 5})
	var e *a2a.Error
	switch {
	case p.version == a2a.V03 && p.binding == a2a.JSONRPC:
		if !errors.As(err, &e) || e.Code != a2a.CodeUnsupportedOperation || p.requests() != before {
			return fmt.Errorf("0.3 has no such method: %w after %d requests", err, p.requests()-before)
		}
		return nil
	case p.version == a2a.V03:
		return nil // the SDKs differ on what 0.3's REST has there
	case errors.As(err, &e) && e.Cause == a2a.CauseAuth:
		return nil // a2a-go lists for authenticated callers only
	case err != nil:
		return err
	case len(page.Tasks) == 0 || len(page.Tasks) > 5:
		return fmt.Errorf("%d tasks on a page of 5", len(page.Tasks))
	}
	return nil
}

func (p *peer) slow(ctx context.Context, seconds string) (*a2a.Task, error) {
	req := words("slow " + seconds)
	req.ReturnImmediately = true
	ev, err := p.client.Send(ctx, req)
	if err != nil {
		return nil, err
	}
	if ev.Task == nil || ev.Task.Status.State.Settled() {
		return nil, fmt.Errorf("got %+v at once", ev)
	}
	return ev.Task, nil
}

func cancelTask(ctx context.Context, p *peer) error {
	t, err := p.slow(ctx, "30")
	if err != nil {
		return err
	}
	if t, err = p.client.CancelTask(ctx, t.ID); err != nil {
		return err
	}
	return wantTask(t, a2a.StateCanceled, "")
}

func cancelEnded(ctx context.Context, p *peer) error {
	t, err := p.completed(ctx, "task abc")
	if err != nil {
		return err
	}
	_, err = p.client.CancelTask(ctx, t.ID)
	return wantCode(err, a2a.CodeTaskNotCancelable)
}

func cancelUnknown(ctx context.Context, p *peer) error {
	_, err := p.client.CancelTask(ctx, "nobody-knows-this")
	return wantCode(err, a2a.CodeTaskNotFound)
}

func outcomes(ctx context.Context, p *peer) error {
	for text, state := range map[string]a2a.State{"fail x": a2a.StateFailed, "reject x": a2a.StateRejected} {
		ev, err := p.client.Send(ctx, words(text))
		if err != nil {
			return err
		}
		if err := wantTask(ev.Task, state, ""); err != nil {
			return err
		}
		if m := ev.Task.Status.Message; m == nil || !strings.HasSuffix(partsText(m.Parts), "x") {
			return fmt.Errorf("%s says %+v", state, m)
		}
	}
	return nil
}

func sendUnknown(ctx context.Context, p *peer) error {
	_, err := p.client.Send(ctx, to(&a2a.Task{ID: "nobody-knows-this"}, "x"))
	return wantCode(err, a2a.CodeTaskNotFound)
}

func streamUnknown(ctx context.Context, p *peer) error {
	s, err := p.client.Stream(ctx, to(&a2a.Task{ID: "nobody-knows-this"}, "x"))
	if err == nil {
		_, err = fold(s)
	}
	return wantCode(err, a2a.CodeTaskNotFound)
}

// The specification has -32004 for it; a2a-go answers -32602.
func sendEnded(ctx context.Context, p *peer) error {
	t, err := p.completed(ctx, "task abc")
	if err != nil {
		return err
	}
	_, err = p.client.Send(ctx, to(t, "more"))
	return wantCode(err, a2a.CodeUnsupportedOperation, -32602, -32600)
}

func inputRequired(ctx context.Context, p *peer) error {
	ev, err := p.client.Send(ctx, words("ask colour"))
	if err != nil {
		return err
	}
	if err := wantTask(ev.Task, a2a.StateInputRequired, ""); err != nil {
		return err
	}
	first := ev.Task
	if ev, err = p.client.Send(ctx, to(first, "blue")); err != nil {
		return err
	}
	if ev.Task == nil || ev.Task.ID != first.ID {
		return fmt.Errorf("the answer went to %+v", ev)
	}
	return wantTask(ev.Task, a2a.StateCompleted, "answer = blue")
}

func inputStreamed(ctx context.Context, p *peer) error {
	s, err := p.client.Stream(ctx, words("ask colour"))
	if err != nil {
		return err
	}
	agg, err := fold(s)
	if err != nil {
		return err
	}
	if err := wantTask(agg.Task(), a2a.StateInputRequired, ""); err != nil {
		return err
	}
	if s, err = p.client.Stream(ctx, to(agg.Task(), "blue")); err != nil {
		return err
	}
	if agg, err = fold(s); err != nil {
		return err
	}
	return wantTask(agg.Task(), a2a.StateCompleted, "answer = blue")
}

func resubscribe(ctx context.Context, p *peer) error {
	s, err := p.client.Stream(ctx, words("slow 1"))
	if err != nil {
		return err
	}
	ev, err := s.Next()
	s.Close()
	if err != nil || ev.Task == nil {
		return fmt.Errorf("first event %+v, %w", ev, err)
	}
	if s, err = p.client.Subscribe(ctx, ev.Task.ID); err != nil {
		return err
	}
	agg, err := fold(s)
	if err != nil {
		return err
	}
	return wantTask(agg.Task(), a2a.StateCompleted, "done")
}

// The specification has -32004 for it; a2a-go answers -32001 although it knows
// the task.
func subscribeEnded(ctx context.Context, p *peer) error {
	t, err := p.completed(ctx, "task abc")
	if err != nil {
		return err
	}
	s, err := p.client.Subscribe(ctx, t.ID)
	if err == nil {
		agg, err := fold(s)
		if err != nil {
			return err
		}
		return wantTask(agg.Task(), a2a.StateCompleted, "cba")
	}
	return wantCode(err, a2a.CodeUnsupportedOperation, a2a.CodeTaskNotFound)
}

func deadline(ctx context.Context, p *peer) error {
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	s, err := p.client.Stream(short, words("slow 5"))
	if err != nil {
		return err
	}
	var e *a2a.Error
	if _, err = fold(s); !errors.As(err, &e) || e.Cause != a2a.CauseTimeout {
		return fmt.Errorf("the error is %w", err)
	}
	return nil
}
