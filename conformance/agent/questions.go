package main

import (
	"encoding/json"
	"fmt"

	"a2agate/fixtures"
)

const (
	nameForm    = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colourForm  = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	okForm      = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
	confirmForm = `{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`
	personForm  = `{"type":"object","properties":{` +
		`"username":{"type":"string","description":"User's response"},` +
		`"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`
	defaultsForm = `{"type":"object","properties":{` +
		`"name":{"type":"string","default":"John Doe"},` +
		`"age":{"type":"integer","default":30},` +
		`"score":{"type":"number","default":95.5},` +
		`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},` +
		`"verified":{"type":"boolean","default":true}}}`
	enumsForm = `{"type":"object","properties":{` +
		`"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
		`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
		`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
		`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},` +
		`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`
)

// questionSkills ask before they answer: INPUT_REQUIRED is their first state.
func questionSkills() []skill {
	return []skill{
		{id: "test_input_required_result_elicitation", about: "Asks for a name and greets.", play: ask(
			fixtures.Ask{Key: "user_name", Message: "What is your name?", Schema: json.RawMessage(nameForm)})},
		{id: "test_input_required_result_request_state", about: "Asks for a confirmation.", play: ask(
			fixtures.Ask{Key: "confirm", Message: "Please confirm.", Schema: json.RawMessage(okForm)})},
		{id: "test_input_required_result_tampered_state", about: "Asks for a confirmation.", play: ask(
			fixtures.Ask{Key: "confirm", Message: "Please confirm.", Schema: json.RawMessage(okForm)})},
		{id: "test_input_required_result_multi_round", about: "Asks twice, one question after the other.", play: ask(
			fixtures.Ask{Key: "step1", Message: "Step 1: what is your name?", Schema: json.RawMessage(nameForm)},
			fixtures.Ask{Key: "step2", Message: "Step 2: what is your favourite colour?", Schema: json.RawMessage(colourForm)})},
		{id: "test_streaming_elicitation", about: "Asks for a name.", play: ask(
			fixtures.Ask{Key: "name", Message: "What is your name?", Schema: json.RawMessage(nameForm)})},
		{id: "test_elicitation", about: "Asks what its argument says.",
			input: `{"type":"object","properties":{"message":{"type":"string","description":"The message to show the user"}},"required":["message"]}`,
			play:  askMessage},
		{id: "test_elicitation_sep1034_defaults", about: "Asks with a form that has defaults.", play: ask(
			fixtures.Ask{Key: "profile", Message: "Please review the form with its defaults.", Schema: json.RawMessage(defaultsForm)})},
		{id: "test_elicitation_sep1330_enums", about: "Asks with a form that has each kind of choice.", play: ask(
			fixtures.Ask{Key: "choices", Message: "Please choose.", Schema: json.RawMessage(enumsForm)})},
	}
}

// ask puts the questions one after the other and then says what it was told.
func ask(questions ...fixtures.Ask) func(*fixtures.Agent, *fixtures.Turn) error {
	return func(_ *fixtures.Agent, t *fixtures.Turn) error {
		told, err := askAll(t, questions)
		if err != nil {
			return err
		}
		return t.Complete(fixtures.Text(told))
	}
}

func askAll(t *fixtures.Turn, questions []fixtures.Ask) (told string, err error) {
	told = "Told:"
	for _, q := range questions {
		got, _, err := t.AskForm(q.Message, q)
		if err != nil {
			return "", err
		}
		told += fmt.Sprintf(" %s=%s", q.Key, got[q.Key])
	}
	return told, nil
}

func askMessage(a *fixtures.Agent, t *fixtures.Turn) error {
	var args struct {
		Message string `json:"message"`
	}
	if err := t.Decode(&args); err != nil {
		return err
	}
	return ask(fixtures.Ask{Key: "user", Message: args.Message, Schema: json.RawMessage(personForm)})(a, t)
}
