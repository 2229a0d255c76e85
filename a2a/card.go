package a2a

import (
	"encoding/json"
	"strings"
)

// Card is an agent card, read leniently: of any version, with every field
// optional, what is wrong-typed dropped and named in Notes. A Card is never
// changed after it has been returned.
type Card struct {
	// Raw is the card as the agent served it, byte for byte. Only a byte
	// order mark and bytes that are not UTF-8 are taken out, since no JSON
	// may hold them; Notes then says so.
	Raw json.RawMessage
	// URL is where the card was fetched; "" for a parsed card that was not.
	URL string

	// Name, Description and Version are untrusted text and may be empty.
	// Version is the agent's own, not the protocol's.
	Name             string
	Description      string
	Version          string
	Provider         Provider
	IconURL          string
	DocumentationURL string

	// Streaming, PushNotifications and ExtendedCard are the capabilities.
	Streaming         bool
	PushNotifications bool
	ExtendedCard      bool

	// InputModes and OutputModes are the defaults of all skills.
	InputModes  []string
	OutputModes []string
	Skills      []Skill
	Extensions  []Extension

	// Interfaces are the addresses as the card offers them, in its order,
	// supportedInterfaces before the fields of 0.3. Agent makes usable ones
	// of them.
	Interfaces []CardInterface

	// SecuritySchemes are the schemes of both versions in one form, by name;
	// Security is what the agent demands, an OR of ANDs. No Security means
	// that nothing is demanded.
	SecuritySchemes []SecurityScheme
	Security        []SecurityRequirement

	// Notes says in plain words what was odd about the card.
	Notes []string
}

// Provider is who stands behind an agent (specification 4.4.2).
type Provider struct {
	Organization string
	URL          string
}

// Skill is one thing an agent can do (specification 4.4.5). ID and Name are
// never both empty; the texts are untrusted.
type Skill struct {
	ID          string
	Name        string
	Description string
	Tags        []string
	Examples    []string
	InputModes  []string
	OutputModes []string
	// Security is what this skill demands beyond the card's Security.
	Security []SecurityRequirement
}

// Extension is one protocol extension that a card declares
// (specification 4.4.4).
type Extension struct {
	URI         string
	Description string
	Required    bool
	// Params is the raw JSON, nil when absent.
	Params json.RawMessage
}

// CardInterface is one interface as a card writes it, its spellings kept.
type CardInterface struct {
	URL     string
	Binding string
	Version string
	Tenant  string
	// Legacy says that it comes from the fields of 0.3 (url,
	// preferredTransport, additionalInterfaces).
	Legacy bool
}

// SchemeType is the kind of a security scheme in the spelling of OpenAPI.
type SchemeType string

// The scheme types (specification 4.5).
const (
	SchemeAPIKey        SchemeType = "apiKey"
	SchemeHTTP          SchemeType = "http"
	SchemeOAuth2        SchemeType = "oauth2"
	SchemeOpenIDConnect SchemeType = "openIdConnect"
	SchemeMutualTLS     SchemeType = "mutualTLS"
)

// SecurityScheme is one scheme of a card, of either version. A scheme of
// another type keeps that type's own spelling.
type SecurityScheme struct {
	Name string
	Type SchemeType
	// In and Param place an API key: header, query or cookie, and its name.
	In, Param string
	// HTTPScheme is the Authorization scheme of SchemeHTTP, in lower case.
	HTTPScheme string
	// Flows are the OAuth2 flows offered, sorted by name.
	Flows []string
	// TokenURL and Scopes are those of the client credentials flow; without
	// one the Scopes are those of the other flows.
	TokenURL string
	Scopes   []string
	// MetadataURL is oauth2MetadataUrl or openIdConnectUrl.
	MetadataURL string
}

// SecurityRequirement is one way to satisfy an agent: all of its schemes
// together. An empty one allows anonymous calls.
type SecurityRequirement []SecurityNeed

// SecurityNeed is one scheme of a requirement with the scopes it needs.
type SecurityNeed struct {
	Scheme string
	Scopes []string
}

// Extension returns the declared extension of that URI.
func (c *Card) Extension(uri string) (Extension, bool) {
	for _, e := range c.Extensions {
		if e.URI == uri {
			return e, true
		}
	}
	return Extension{}, false
}

// ParseCard reads a card of any version. It fails only on what cannot be used
// at all: bytes that are not a JSON object, or an object with neither a name
// nor any interface or url; the error is an *Error of CauseProtocol whose
// Message continues the sentence "the card …" (design section 6). The result
// keeps raw and must be its only user.
func ParseCard(raw []byte) (*Card, error) {
	clean, notes := cleanBody(raw)
	if len(clean) != len(raw) && len(notes) == 0 {
		notes = []string{"a byte order mark was dropped"}
	}
	r := &cardReader{notes: notes}
	m, err := topLevel(clean)
	if err != nil {
		return nil, err
	}
	c := &Card{Raw: clean}
	r.identity(c, m)
	r.capabilities(c, m)
	c.InputModes = r.texts(m, "", "defaultInputModes")
	c.OutputModes = r.texts(m, "", "defaultOutputModes")
	c.Skills = r.skills(m)
	c.Interfaces = r.interfaces(m)
	c.SecuritySchemes = r.schemes(m)
	c.Security = r.requirements(m, "")
	if c.Name == "" && len(c.Interfaces) == 0 {
		return nil, errCard("has no name, and no supportedInterfaces or url either: it is not an agent card")
	}
	if c.Name == "" {
		r.note("the card has no name")
	}
	c.Notes = r.notes
	return c, nil
}

// topLevel splits the card and says what it is when it is no object.
func topLevel(clean []byte) (members, error) {
	var m members
	err := json.Unmarshal(clean, &m)
	switch {
	case err == nil && m != nil:
		return m, nil
	case json.Valid(clean):
		return nil, errCard("is " + jsonKind(clean) + ", not a JSON object")
	case len(strings.TrimSpace(string(clean))) == 0:
		return nil, errCard("is empty")
	}
	return nil, errCard("is not valid JSON: " + jsonFault(err))
}

func errCard(problem string) *Error {
	return &Error{Cause: CauseProtocol, Op: "card", Message: problem}
}

// jsonFault is encoding/json's account of a syntax error, cut to one line.
func jsonFault(err error) string {
	if strings.Contains(err.Error(), "exceeded max depth") {
		return "it is nested too deeply"
	}
	return plainLine(strings.TrimPrefix(err.Error(), "json: "), 120)
}

// jsonKind names the kind of a valid JSON text, with its article.
func jsonKind(raw []byte) string {
	trimmed := strings.TrimSpace(string(raw))
	if trimmed == "" {
		return "nothing"
	}
	switch trimmed[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
