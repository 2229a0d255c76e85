package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.LoadURL = nil
	if err := c.AddResource(schemaURI, bytes.NewReader(Schema())); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schemaURI)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// againstSchema judges a file by the JSON Schema alone.
func againstSchema(s *jsonschema.Schema, data []byte) error {
	d := json.NewDecoder(bytes.NewReader(newSource("", data).json))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return s.Validate(v)
}

// beyond are the bad files whose fault a JSON Schema cannot say; their names
// begin so.
const beyond = "semantic_"

// Schema and checker agree: what the checker takes, the schema takes; what it
// refuses, the schema refuses, as far as a schema can.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	s := compiledSchema(t)
	for name, data := range corpus(t, "valid") {
		if _, err := Parse(name+".json", data, testEnv, testFile); err != nil {
			t.Errorf("%s: the checker refuses it: %v", name, err)
		}
		if err := againstSchema(s, data); err != nil {
			t.Errorf("%s: the schema refuses it: %#v", name, err)
		}
	}
	for name, data := range corpus(t, "invalid") {
		err := againstSchema(s, data)
		if semantic := strings.HasPrefix(name, beyond); semantic != (err == nil) {
			t.Errorf("%s: the schema says %v", name, err)
		}
	}
}
