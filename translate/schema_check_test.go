package translate

import (
	"bytes"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// schemaDir holds the published schemas of the revisions where the checkout
// stands beside them; elsewhere the checks against them are skipped.
const schemaDir = "../../shared/schema/"

var schemaCache sync.Map

// mcpSchema compiles one definition of a published schema, nil where there is
// none.
func mcpSchema(t testing.TB, file, def string) *jsonschema.Schema {
	t.Helper()
	if s, ok := schemaCache.Load(file + def); ok {
		return s.(*jsonschema.Schema)
	}
	raw, err := os.ReadFile(schemaDir + file)
	if err != nil {
		return nil
	}
	where := "$defs"
	if !bytes.Contains(raw, []byte(`"$defs"`)) {
		where = "definitions"
	}
	c := refusingCompiler()
	if err := c.AddResource("mem:///"+file, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///" + file + "#/" + where + "/" + def)
	if err != nil {
		t.Fatalf("%s %s: %v", file, def, err)
	}
	schemaCache.Store(file+def, s)
	return s
}

// checkAgainst validates raw against a definition, where the schemas are.
func checkAgainst(t testing.TB, raw []byte, file, def string) {
	t.Helper()
	s := mcpSchema(t, file, def)
	if s == nil {
		return
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%.500s", err, raw)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s %s: %#v\n%.2000s", file, def, err, raw)
	}
}

// checkResult holds for every result we write: one line of valid UTF-8 JSON
// that the revision's own schema takes, with content in it.
func checkResult(t testing.TB, raw []byte, rev Revision) {
	t.Helper()
	if !json.Valid(raw) || !utf8.Valid(raw) || bytes.ContainsAny(raw, "\n\r") {
		t.Fatalf("%s: not one line of JSON: %.300q", rev, raw)
	}
	var r struct {
		Content           []json.RawMessage
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Content) == 0 {
		t.Fatalf("%s: no content: %v %.300s", rev, err, raw)
	}
	if bytes.Contains(raw, []byte("raw-context-id")) || bytes.Contains(raw, []byte("raw-task-id")) {
		t.Errorf("%s: an id of the agent's leaves the gateway: %.600s", rev, raw)
	}
	checkAgainst(t, raw, "mcp-"+string(rev)+".json", "CallToolResult")
}

// Without the schemas the checks above check less; say so once.
func TestPublishedSchemas(t *testing.T) {
	for _, rev := range revisions {
		if mcpSchema(t, "mcp-"+string(rev)+".json", "CallToolResult") == nil {
			t.Skip("the published schemas are not here: results are checked for form only")
		}
	}
}
