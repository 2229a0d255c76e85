package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The bounds of an answer to a form: the items of one field, and how many
// things that are wrong with it are named.
const (
	maxChosen         = 1000
	maxAnswerProblems = 5
)

// AnswerFromJSON reads a client's answer to ask (MCP ElicitResult): its
// action, and for an accepted form its content, which must fit the ask's
// schema. Members the schema does not name are tolerated. The error says what
// is wrong with the answer, in words for the client.
func AnswerFromJSON(raw json.RawMessage, ask Ask) (Answer, error) {
	var given struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &given); err != nil || !isObject(raw) {
		return Answer{}, errors.New(`the answer is not an object such as {"action": "accept", "content": {…}}`)
	}
	switch given.Action {
	case "decline", "cancel":
		return Answer{Action: given.Action}, nil
	case "accept":
	default:
		return Answer{}, fmt.Errorf("action %s is not accept, decline or cancel", strconv.Quote(CutRunes(CleanName(given.Action), 40)))
	}
	if ask.URL != "" {
		return Answer{Action: "accept"}, nil
	}
	if !isObject(given.Content) {
		return Answer{}, errors.New("content is not an object with the fields that were asked for")
	}
	if err := contentFits(given.Content, ask.Schema); err != nil {
		return Answer{}, err
	}
	return Answer{Action: "accept", Content: given.Content}, nil
}

func isObject(raw json.RawMessage) bool {
	trimmed := bytes.TrimLeft(raw, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// contentFits validates content against a form schema, all violations in one
// line.
func contentFits(content, schema json.RawMessage) error {
	compiler := jsonschema.NewCompiler()
	compiler.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("external schema %s is not loaded", url)
	}
	compiler.AssertFormat = true
	const name = "mem:///ask.json"
	if err := compiler.AddResource(name, bytes.NewReader(withoutClosing(schema))); err != nil {
		return errors.New("the question's own schema cannot be read")
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return errors.New("the question's own schema cannot be used")
	}
	value, err := decodeNumbers(content)
	if err != nil {
		return errors.New("content is not valid JSON")
	}
	if p := tooManyChosen(value); p != "" {
		return errors.New(p)
	}
	problem, err := CheckNumbers(value, compiled.Validate)
	if problem != "" {
		return errors.New("content: " + problem)
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var lines []string
	for _, e := range invalid.BasicOutput().Errors {
		if e.Error == "" || strings.HasPrefix(e.Error, "doesn't validate with") {
			continue
		}
		field := strings.TrimPrefix(e.InstanceLocation, "/")
		if field != "" {
			field = "content." + field + ": "
		}
		if len(lines) == maxAnswerProblems {
			lines = append(lines, "and more")
			break
		}
		lines = append(lines, oneLine(field+e.Error, 300))
	}
	return errors.New(strings.Join(lines, "; "))
}

// tooManyChosen says which field of an answer is a longer list than any
// question can offer; each item would be complained of by itself.
func tooManyChosen(content any) string {
	fields, _ := content.(map[string]any)
	for _, name := range sortedKeys(fields) {
		if list, ok := fields[name].([]any); ok && len(list) > maxChosen {
			return "content." + CutRunes(CleanName(name), 64) + " has " + strconv.Itoa(len(list)) + " items, more than " + strconv.Itoa(maxChosen)
		}
	}
	return ""
}

// withoutClosing drops a top-level additionalProperties: a client that sends
// more than it was asked for has still answered.
func withoutClosing(schema json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil {
		return schema
	}
	if _, closed := members["additionalProperties"]; !closed {
		return schema
	}
	delete(members, "additionalProperties")
	open, err := json.Marshal(members)
	if err != nil {
		return schema
	}
	return open
}
