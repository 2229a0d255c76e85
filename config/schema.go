package config

import (
	"bytes"
	"encoding/json"
)

// schema is the part of JSON Schema 2020-12 that a declaration needs, in the
// order in which it is written.
type schema struct {
	Schema               string            `json:"$schema,omitempty"`
	ID                   string            `json:"$id,omitempty"`
	Title                string            `json:"title,omitempty"`
	Description          string            `json:"description,omitempty"`
	Type                 string            `json:"type,omitempty"`
	Const                string            `json:"const,omitempty"`
	Enum                 []string          `json:"enum,omitempty"`
	Default              json.RawMessage   `json:"default,omitempty"`
	Examples             []json.RawMessage `json:"examples,omitempty"`
	Pattern              string            `json:"pattern,omitempty"`
	MinLength            *int              `json:"minLength,omitempty"`
	Minimum              *float64          `json:"minimum,omitempty"`
	Maximum              *float64          `json:"maximum,omitempty"`
	Items                *schema           `json:"items,omitempty"`
	MinItems             *int              `json:"minItems,omitempty"`
	UniqueItems          bool              `json:"uniqueItems,omitempty"`
	Properties           members           `json:"properties,omitempty"`
	PropertyNames        *schema           `json:"propertyNames,omitempty"`
	MinProperties        *int              `json:"minProperties,omitempty"`
	Required             []string          `json:"required,omitempty"`
	AdditionalProperties any               `json:"additionalProperties,omitempty"` // *schema or *bool
	OneOf                []*schema         `json:"oneOf,omitempty"`
	AllOf                []*schema         `json:"allOf,omitempty"`
	Not                  *schema           `json:"not,omitempty"`
	If                   *schema           `json:"if,omitempty"`
	Then                 *schema           `json:"then,omitempty"`
}

func no() *bool { return new(bool) }

// named is one member of members.
type named struct {
	name   string
	schema *schema
}

// members is an object of schemas that keeps its order.
type members []named

// MarshalJSON writes the members in order.
func (m members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, n := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(n.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(n.schema)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode is json.Marshal without HTML escapes, which make patterns unreadable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// exclusive says that at most one of the keys may be there.
func exclusive(keys ...string) []*schema {
	var out []*schema
	for i, a := range keys {
		for _, b := range keys[i+1:] {
			out = append(out, &schema{Not: &schema{Required: []string{a, b}}})
		}
	}
	return out
}

// schemaURI identifies the schema; nothing is fetched from it.
const schemaURI = "urn:a2agate:agents.schema.json"

// Schema returns the JSON Schema (2020-12) of a configuration file, with the
// meaning and the default of every key. What a schema cannot say (that a
// profile's agents exist, that a variable is set) only Parse checks.
func Schema() []byte {
	s := declaration().schema()
	s.Schema, s.ID = "https://json-schema.org/draft/2020-12/schema", schemaURI
	s.Title = "a2agate configuration"
	s.Description = "A2A agents to show as MCP tools, and how. JSON with comments."
	// Neither can fail on what declaration makes; a test compiles the result.
	compact, _ := encode(s)
	var b bytes.Buffer
	_ = json.Indent(&b, compact, "", "  ")
	b.WriteByte('\n')
	return b.Bytes()
}
