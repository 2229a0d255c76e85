// Package schematest checks MCP messages against the published JSON Schemas.
// It is for tests only. The schemas are not part of this repository: they are
// read from ../shared/schema beside it, and where that folder is absent a test
// that asks for them is skipped with a message.
package schematest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Tasks is the "revision" of the schema of the tasks extension.
const Tasks = "tasks-draft"

var (
	mu       sync.Mutex
	compiled = map[string]*jsonschema.Schema{}
)

// Available reports whether the schemas can be read.
func Available() bool {
	_, err := dir()
	return err == nil
}

// Need skips the test where the schemas are absent.
func Need(t testing.TB) {
	t.Helper()
	if _, err := dir(); err != nil {
		t.Skipf("the MCP schemas are not here: %v", err)
	}
}

// Validate fails the test when raw does not satisfy the named definition of a
// revision ("2026-07-28", …, or Tasks). It skips the test where the schemas
// are absent.
func Validate(t testing.TB, revision, definition string, raw []byte) {
	t.Helper()
	Need(t)
	if err := check(revision, definition, raw); err != nil {
		t.Errorf("not a valid %s of %s: %v\n%s", definition, revision, err, raw)
	}
}

// Message fails the test when raw is not a message that a server may write on
// a revision. method is that of the request it answers; "" for notifications
// and requests.
func Message(t testing.TB, revision, method string, raw []byte) {
	t.Helper()
	Need(t)
	var m struct {
		Method string          `json:"method"`
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Errorf("not a message: %v\n%s", err, raw)
		return
	}
	switch {
	case m.Error != nil:
		if m.ID == nil && revision < "2025-11-25" {
			return // those revisions know no error without an id
		}
		Validate(t, revision, errorDefinition(revision), raw)
	case m.Method != "" && m.ID != nil:
		Validate(t, revision, "JSONRPCRequest", raw)
		Validate(t, revision, "ElicitRequest", raw)
	case m.Method != "":
		Validate(t, revision, "JSONRPCNotification", raw)
		rev, def := notification(revision, m.Method)
		Validate(t, rev, def, raw)
	default:
		rev, def, err := resultDefinition(revision, method, m.Result)
		if err != nil {
			t.Errorf("%v\n%s", err, raw)
			return
		}
		Validate(t, rev, def, m.Result)
	}
}

func errorDefinition(revision string) string {
	if revision < "2025-11-25" {
		return "JSONRPCError"
	}
	return "JSONRPCErrorResponse"
}

func notification(revision, method string) (string, string) {
	switch method {
	case "notifications/progress":
		return revision, "ProgressNotification"
	case "notifications/cancelled":
		return revision, "CancelledNotification"
	case "notifications/subscriptions/acknowledged":
		return revision, "SubscriptionsAcknowledgedNotification"
	case "notifications/tools/list_changed":
		return revision, "ToolListChangedNotification"
	case "notifications/prompts/list_changed":
		return revision, "JSONRPCNotification" // the 2026-07-28 schema has no definition of its own
	case "notifications/resources/list_changed":
		return revision, "JSONRPCNotification" // likewise
	case "notifications/resources/updated":
		return revision, "ResourceUpdatedNotification"
	case "notifications/tasks":
		return Tasks, "TaskStatusNotification"
	}
	return revision, "unknown notification " + method
}

var results = map[string]string{
	"initialize": "InitializeResult", "ping": "EmptyResult", "server/discover": "DiscoverResult",
	"tools/list": "ListToolsResult", "tools/call": "CallToolResult",
	"prompts/list": "ListPromptsResult", "prompts/get": "GetPromptResult",
	"resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult",
	"resources/read": "ReadResourceResult", "completion/complete": "CompleteResult",
	"subscriptions/listen": "SubscriptionsListenResult",
}

func resultDefinition(revision, method string, result json.RawMessage) (rev, def string, err error) {
	var r struct {
		ResultType string `json:"resultType"`
	}
	_ = json.Unmarshal(result, &r) // a result that is no object fails its definition
	switch {
	case r.ResultType == "input_required":
		return revision, "InputRequiredResult", nil
	case r.ResultType == "task":
		return Tasks, "CreateTaskResult", nil
	case method == "tasks/get":
		return Tasks, "GetTaskResult", nil
	case method == "tasks/update":
		return Tasks, "UpdateTaskResult", nil
	case method == "tasks/cancel":
		return Tasks, "CancelTaskResult", nil
	}
	if def, ok := results[method]; ok {
		return revision, def, nil
	}
	return "", "", fmt.Errorf("no definition for a result of %q", method)
}

func check(revision, definition string, raw []byte) error {
	s, err := schema(revision, definition)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return s.Validate(v)
}

func schema(revision, definition string) (*jsonschema.Schema, error) {
	mu.Lock()
	defer mu.Unlock()
	key := revision + "#" + definition
	if s := compiled[key]; s != nil {
		return s, nil
	}
	d, err := dir()
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(d, "mcp-"+revision+".json"))
	if err != nil {
		return nil, err
	}
	defs := "$defs"
	if !bytes.Contains(raw, []byte(`"$defs"`)) {
		defs = "definitions"
	}
	url := "mcp:" + revision
	raw = bytes.Replace(raw, []byte(`"$id"`), []byte(`"$comment"`), 1)
	c := jsonschema.NewCompiler()
	if err := c.AddResource(url, bytes.NewReader(raw)); err != nil {
		return nil, err
	}
	s, err := c.Compile(url + "#/" + defs + "/" + definition)
	if err != nil {
		return nil, err
	}
	compiled[key] = s
	return s, nil
}

// dir finds ../shared/schema beside the module.
func dir() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			d := filepath.Join(filepath.Dir(at), "shared", "schema")
			if _, err := os.Stat(d); err != nil {
				return "", err
			}
			return d, nil
		}
		up := filepath.Dir(at)
		if up == at || strings.TrimSpace(up) == "" {
			return "", fmt.Errorf("no go.mod above %s", at)
		}
		at = up
	}
}
