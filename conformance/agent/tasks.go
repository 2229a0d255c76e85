package main

import (
	"encoding/json"
	"fmt"
	"time"

	"a2agate/fixtures"
)

const (
	// thinking is how long work goes on before it asks or fails.
	thinking = 200 * time.Millisecond
	// longest is the longest work that the agent takes on.
	longest = 10 * time.Minute
)

// taskSkills work before they answer: WORKING is their first state, save for
// the first and the last one.
func taskSkills() []skill {
	return []skill{
		{id: "greet", about: "Greets at once.",
			input: `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`, play: greet},
		{id: "slow_compute", about: "Works for some seconds.",
			input: `{"type":"object","properties":{"seconds":{"type":"number","minimum":0},"label":{"type":"string"}},"required":["seconds"]}`,
			play:  slowCompute},
		{id: "failing_job", about: "Works and fails.", tasks: "required", play: func(_ *fixtures.Agent, t *fixtures.Turn) error {
			if err := work(t, thinking); err != nil {
				return err
			}
			return t.Fail(fixtures.Text("The job did not work, as it always does."))
		}},
		{id: "protocol_error_job", about: "Works and then loses its task for good.", play: func(_ *fixtures.Agent, t *fixtures.Turn) error {
			if err := work(t, thinking); err != nil {
				return err
			}
			t.Break(fixtures.Failf(-32603, "the agent lost its database"))
			return nil
		}},
		{id: "confirm_delete", about: "Works, and asks before it goes on.",
			input: `{"type":"object","properties":{"filename":{"type":"string"}},"required":["filename"]}`, play: confirmDelete},
		{id: "multi_input", about: "Works, and asks two things at once.", play: multiInput},
		{id: "test_tool_with_task", about: "Asks first and works then.", play: askThenWork},
	}
}

func work(t *fixtures.Turn, d time.Duration) error {
	if err := t.Working("Working."); err != nil {
		return err
	}
	return t.Sleep(d)
}

func greet(_ *fixtures.Agent, t *fixtures.Turn) error {
	var args struct {
		Name string `json:"name"`
	}
	if err := t.Decode(&args); err != nil {
		return err
	}
	return t.Reply(fixtures.Text("Hello, " + args.Name + "!"))
}

func slowCompute(_ *fixtures.Agent, t *fixtures.Turn) error {
	var args struct {
		Seconds float64 `json:"seconds"`
		Label   string  `json:"label"`
	}
	if err := t.Decode(&args); err != nil {
		return err
	}
	if err := work(t, time.Duration(min(args.Seconds*float64(time.Second), float64(longest)))); err != nil {
		return err
	}
	return t.Complete(fixtures.Text(fmt.Sprintf("computed %s in %g s", args.Label, args.Seconds)))
}

func confirmDelete(_ *fixtures.Agent, t *fixtures.Turn) error {
	var args struct {
		Filename string `json:"filename"`
	}
	if err := t.Decode(&args); err != nil {
		return err
	}
	if err := work(t, thinking); err != nil {
		return err
	}
	question := fmt.Sprintf("Really delete %s?", args.Filename)
	got, _, err := t.AskForm(question, fixtures.Ask{Key: "confirm", Message: question, Schema: json.RawMessage(confirmForm)})
	if err != nil {
		return err
	}
	var answer struct {
		Confirm bool `json:"confirm"`
	}
	if err := json.Unmarshal(got["confirm"], &answer); err != nil {
		return err
	}
	if !answer.Confirm {
		return t.Complete(fixtures.Text(args.Filename + " was kept."))
	}
	return t.Complete(fixtures.Text(args.Filename + " was deleted."))
}

func multiInput(_ *fixtures.Agent, t *fixtures.Turn) error {
	if err := work(t, thinking); err != nil {
		return err
	}
	got, _, err := t.AskForm("What is your name, and are you sure?",
		fixtures.Ask{Key: "name", Message: "What is your name?", Schema: json.RawMessage(nameForm)},
		fixtures.Ask{Key: "confirm", Message: "Are you sure?", Schema: json.RawMessage(confirmForm)})
	if err != nil {
		return err
	}
	return t.Complete(fixtures.Text(fmt.Sprintf("Told: name=%s confirm=%s", got["name"], got["confirm"])))
}

func askThenWork(_ *fixtures.Agent, t *fixtures.Turn) error {
	told, err := askAll(t, []fixtures.Ask{{Key: "user_name", Message: "What is your name?", Schema: json.RawMessage(nameForm)}})
	if err != nil {
		return err
	}
	if err := work(t, thinking); err != nil {
		return err
	}
	return t.Complete(fixtures.Text(told))
}
