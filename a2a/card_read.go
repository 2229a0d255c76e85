package a2a

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// cardReader reads a card member by member. A member of the wrong type costs
// only itself; what can be understood all the same (a number as a version, a
// single value for a list) is used. Both are noted.
type cardReader struct {
	notes []string
	// legacy says that the card has fields of 0.3.
	legacy bool
}

func (r *cardReader) note(format string, args ...any) {
	if len(r.notes) < maxNotes {
		r.notes = append(r.notes, fmt.Sprintf(format, args...))
	}
}

// member returns a member that is there and not null, by its camelCase name
// or, as a ProtoJSON parser must accept, its snake_case one.
func member(m members, name string) json.RawMessage {
	raw, ok := m[name]
	if !ok {
		raw = m[snakeCase(name)]
	}
	if isNull(raw) {
		return nil
	}
	return raw
}

func snakeCase(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// at names a member for a note: skills[2].tags.
func at(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// text reads a string; a number or boolean counts as it is written.
func (r *cardReader) text(m members, path, name string) string {
	raw := member(m, name)
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // the whole card has been parsed once
		return s
	case '{', '[':
		r.note("%s is %s, not a string: ignored", at(path, name), jsonKind(raw))
		return ""
	}
	r.note("%s is %s, not a string", at(path, name), jsonKind(raw))
	return string(raw)
}

// flag reads a boolean, also one written as a string.
func (r *cardReader) flag(m members, path, name string) bool {
	raw := member(m, name)
	switch string(raw) {
	case "", "false":
		return false
	case "true":
		return true
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if b, err := strconv.ParseBool(strings.ToLower(s)); err == nil {
			r.note("%s is a string, not a boolean", at(path, name))
			return b
		}
	}
	r.note("%s is %s, not a boolean: ignored", at(path, name), jsonKind(raw))
	return false
}

// object splits an object.
func (r *cardReader) object(raw json.RawMessage, what string) members {
	if len(raw) == 0 || isNull(raw) {
		return nil
	}
	var m members
	if raw[0] != '{' || json.Unmarshal(raw, &m) != nil {
		r.note("%s is %s, not an object: ignored", what, jsonKind(raw))
		return nil
	}
	return m
}

// list reads an array; a single object or string counts as an array of one.
func (r *cardReader) list(m members, path, name string) []json.RawMessage {
	raw := member(m, name)
	if len(raw) == 0 {
		return nil
	}
	switch raw[0] {
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items)
		return items
	case '{', '"':
		r.note("%s is %s, not an array", at(path, name), jsonKind(raw))
		return []json.RawMessage{raw}
	}
	r.note("%s is %s, not an array: ignored", at(path, name), jsonKind(raw))
	return nil
}

// texts reads an array of strings and drops what is none.
func (r *cardReader) texts(m members, path, name string) []string {
	var out []string
	for i, raw := range r.list(m, path, name) {
		var s string
		if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
			r.note("%s[%d] is %s, not a string: ignored", at(path, name), i, jsonKind(raw))
			continue
		}
		out = append(out, s)
	}
	return out
}

func (r *cardReader) identity(c *Card, m members) {
	c.Name = r.text(m, "", "name")
	c.Description = r.text(m, "", "description")
	c.Version = r.text(m, "", "version")
	c.IconURL = r.text(m, "", "iconUrl")
	c.DocumentationURL = r.text(m, "", "documentationUrl")
	raw := member(m, "provider")
	if len(raw) > 0 && raw[0] == '"' {
		c.Provider.Organization = r.text(m, "", "provider")
		r.note("provider is a string, not an object")
	} else if p := r.object(raw, "provider"); p != nil {
		c.Provider = Provider{Organization: r.text(p, "provider", "organization"), URL: r.text(p, "provider", "url")}
	}
}

func (r *cardReader) capabilities(c *Card, m members) {
	capabilities := r.object(member(m, "capabilities"), "capabilities")
	c.Streaming = r.flag(capabilities, "capabilities", "streaming")
	c.PushNotifications = r.flag(capabilities, "capabilities", "pushNotifications")
	c.ExtendedCard = r.flag(capabilities, "capabilities", "extendedAgentCard") ||
		r.flag(m, "", "supportsAuthenticatedExtendedCard")
	for i, raw := range r.list(capabilities, "capabilities", "extensions") {
		path := fmt.Sprintf("capabilities.extensions[%d]", i)
		e := r.object(raw, path)
		if e == nil {
			continue
		}
		ext := Extension{URI: r.text(e, path, "uri"), Description: r.text(e, path, "description"),
			Required: r.flag(e, path, "required"), Params: member(e, "params")}
		if ext.URI == "" {
			r.note("%s has no uri: ignored", path)
			continue
		}
		c.Extensions = append(c.Extensions, ext)
	}
}

func (r *cardReader) skills(m members) []Skill {
	var out []Skill
	seen := map[string]bool{}
	for i, raw := range r.list(m, "", "skills") {
		path := fmt.Sprintf("skills[%d]", i)
		s := r.object(raw, path)
		if s == nil {
			if isNull(raw) {
				r.note("%s is null: ignored", path)
			}
			continue
		}
		skill := Skill{
			ID: r.text(s, path, "id"), Name: r.text(s, path, "name"), Description: r.text(s, path, "description"),
			Tags: r.texts(s, path, "tags"), Examples: r.texts(s, path, "examples"),
			InputModes: r.texts(s, path, "inputModes"), OutputModes: r.texts(s, path, "outputModes"),
			Security: r.requirements(s, path),
		}
		switch {
		case skill.ID == "" && skill.Name == "":
			r.note("%s has neither id nor name: ignored", path)
			continue
		case skill.ID == "":
			r.note("%s has no id: its name serves", path)
			skill.ID = skill.Name
		case skill.Name == "":
			skill.Name = skill.ID
		}
		if seen[skill.ID] {
			r.note("%s repeats the id %q: ignored", path, plainLine(skill.ID, 60))
			continue
		}
		seen[skill.ID] = true
		out = append(out, skill)
	}
	return out
}

// interfaces reads supportedInterfaces and the fields of 0.3 into one list
// (reference: detecting the version). Entries without a url are kept out.
func (r *cardReader) interfaces(m members) []CardInterface {
	var out []CardInterface
	for i, raw := range r.list(m, "", "supportedInterfaces") {
		path := fmt.Sprintf("supportedInterfaces[%d]", i)
		out = r.addInterface(out, raw, path, false, "")
	}
	protocol := r.text(m, "", "protocolVersion")
	if url := r.text(m, "", "url"); url != "" {
		transport := r.text(m, "", "preferredTransport")
		out = append(out, CardInterface{URL: url, Binding: or(transport, string(JSONRPC)), Version: protocol, Legacy: true})
		r.legacy = true
	}
	for i, raw := range r.list(m, "", "additionalInterfaces") {
		path := fmt.Sprintf("additionalInterfaces[%d]", i)
		out = r.addInterface(out, raw, path, true, protocol)
		r.legacy = true
	}
	r.missingVersions(out, protocol)
	if member(m, "authentication") != nil && protocol == "" && len(out) > 0 && member(m, "securitySchemes") == nil {
		r.note("the card looks like A2A 0.1, which is not spoken; 0.3 is tried")
	}
	return out
}

func (r *cardReader) addInterface(out []CardInterface, raw json.RawMessage, path string, legacy bool, version string) []CardInterface {
	e := r.object(raw, path)
	if e == nil {
		if isNull(raw) {
			r.note("%s is null: ignored", path)
		}
		return out
	}
	entry := CardInterface{URL: r.text(e, path, "url"), Tenant: r.text(e, path, "tenant"), Legacy: legacy}
	entry.Binding = or(r.text(e, path, "protocolBinding"), r.text(e, path, "transport"))
	entry.Version = or(r.text(e, path, "protocolVersion"), version)
	if entry.URL == "" {
		r.note("%s has no url: ignored", path)
		return out
	}
	if entry.Binding == "" {
		r.note("%s names no binding: JSONRPC is assumed", path)
		entry.Binding = string(JSONRPC)
	}
	return append(out, entry)
}

// missingVersions fills in what an entry leaves out: 1.0 in a card without
// fields of 0.3; in a card with them the card's own version, else 0.3.
func (r *cardReader) missingVersions(list []CardInterface, protocol string) {
	for i := range list {
		e := &list[i]
		switch {
		case e.Version != "":
		case !r.legacy:
			e.Version = string(V10)
			r.note("supportedInterfaces names no protocolVersion for %q: 1.0 is assumed", plainLine(e.URL, 100))
		default:
			e.Version = or(protocol, string(V03))
		}
	}
}
