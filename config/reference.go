package config

import (
	"fmt"
	"slices"
	"strings"
)

// referenceHead opens the reference page. What it says of the file as a whole
// stands in no key.
const referenceHead = `# Configuration

This page is generated from the declaration in package config; change it there.

a2agate reads one file, JSON with comments and trailing commas: the one that
--config names, else ` + "`agents.json`, `a2a.json` or `.vscode/a2a.json`" + ` of the current
folder, the first that exists. ` + "`a2agate serve URL…`" + ` needs no file. Flags win over the
file. ` + "`a2agate check`" + ` reports every problem of a file at once, with its place. The file is
watched: a change takes effect when it is saved, and a broken file changes
nothing. These wait for a restart, and are named in the log and on the status page
when they have changed: ` + "`listen`, `tls`, `debugListen`, `paramHeaders`, `handleTtl`, `store`,\n`limits.handles`, `log.format`; `auth`" + ` only where it comes new or goes altogether.

` + "```jsonc" + `
{
  "$schema": "agents.schema.json", // for the editor: where the schema lies
  "agents": {
    "billing": { "url": "https://agents.example.com/billing",
                 "auth": { "type": "bearer", "token": "${env:BILLING_TOKEN}" } }
  }
}
` + "```" + `

- Keys are exact, and an unknown key is an error. ` + "`$schema`" + ` is for editors.
- Durations are texts with a unit: ` + "`\"90s\"`, `\"15m\"`, `\"1h30m\"`" + `. Keys that end in Ms or
  Seconds are whole numbers.
- In the texts of agents' addresses, ` + "`headers`, `auth`" + `, tokens and the store,
  ` + "`${env:NAME}`" + ` stands for an environment variable and ` + "`${file:PATH}`" + ` for the content of
  a file without its last line break; several may stand in one text. A variable
  that is not set or a file that cannot be read is an error. ` + "`$${`" + ` stands for ` + "`${`" + `. What
  comes in is not expanded again.
- Paths are relative to the folder of the file.
- Files written for a2a-to-mcp (` + "`port`, `host`, `handleTtlMs`, `allowedHosts`" + `) and for
  vscode-a2a (` + "`cardPath`, `auth`, `resource`" + `) work as they are. One difference: an agent
  without ` + "`auth`" + ` gets a token of the Azure CLI only when ` + "`resource`" + ` is given.

`

// placeholder names the free keys of dictionaries.
func placeholder(key string) string {
	switch key {
	case "agents":
		return "<alias>"
	case "skills":
		return "<id>"
	}
	return "<name>"
}

// Reference returns the reference page of the file, as Markdown.
func Reference() []byte {
	var b strings.Builder
	b.WriteString(referenceHead)
	section(&b, "", declaration().schema())
	return []byte(b.String())
}

// section writes the table of an object and the sections of what is in it.
func section(b *strings.Builder, path string, s *schema) {
	title := "The file"
	if path != "" {
		title = "`" + path + "`"
	}
	fmt.Fprintf(b, "## %s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title)
	for _, p := range s.Properties {
		if p.name == "$schema" {
			continue
		}
		meaning := p.schema.Description
		for _, e := range p.schema.Examples {
			meaning += " For example `" + string(e) + "`."
		}
		initial := ""
		if p.schema.Default != nil {
			initial = "`" + string(p.schema.Default) + "`"
		}
		name := "`" + p.name + "`"
		if slices.Contains(s.Required, p.name) {
			initial = "required"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, words(p.schema), initial, strings.ReplaceAll(meaning, "|", "\\|"))
	}
	b.WriteByte('\n')
	for _, p := range s.Properties {
		in := p.schema
		at := strings.TrimPrefix(path+"."+p.name, ".")
		if elem, ok := in.AdditionalProperties.(*schema); ok {
			in, at = elem, at+"."+placeholder(p.name)
		} else if in.Items != nil {
			in, at = in.Items, at+"[]"
		}
		if len(in.Properties) > 0 {
			section(b, at, in)
		}
	}
}

// words names the type of a value.
func words(s *schema) string {
	switch s.Type {
	case "array":
		return "list: " + words(s.Items)
	case "boolean":
		return "`true` or `false`"
	case "integer":
		const open = 1e6 // a bound above is there to keep nonsense out
		if s.Maximum != nil && *s.Maximum < open {
			return fmt.Sprintf("whole number, %.0f to %.0f", *s.Minimum, *s.Maximum)
		}
		return "whole number"
	case "number":
		return "number"
	case "object":
		if elem, ok := s.AdditionalProperties.(*schema); ok && len(elem.Properties) == 0 {
			return "object of texts"
		}
		return "object"
	}
	if len(s.Enum) > 0 {
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	}
	if s.Pattern == durationPattern {
		return "duration"
	}
	return "text"
}
