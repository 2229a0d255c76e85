package a2a

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// wrappedSchemes are the members that 1.0 wraps a scheme in
// (specification 4.5.1).
var wrappedSchemes = []struct {
	member string
	kind   SchemeType
}{
	{"apiKeySecurityScheme", SchemeAPIKey},
	{"httpAuthSecurityScheme", SchemeHTTP},
	{"oauth2SecurityScheme", SchemeOAuth2},
	{"openIdConnectSecurityScheme", SchemeOpenIDConnect},
	{"mtlsSecurityScheme", SchemeMutualTLS},
}

// schemes reads securitySchemes of either version, sorted by name.
func (r *cardReader) schemes(m members) []SecurityScheme {
	all := r.object(member(m, "securitySchemes"), "securitySchemes")
	var out []SecurityScheme
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path := "securitySchemes." + plainLine(name, 40)
		body := r.object(all[name], path)
		if body == nil {
			continue
		}
		kind, body := r.schemeKind(body, path)
		if kind == "" {
			continue
		}
		out = append(out, r.scheme(name, kind, body, path))
	}
	return out
}

// schemeKind finds the type of a scheme and the object that describes it:
// wrapped as in 1.0, or beside a type as in 0.3 and OpenAPI.
func (r *cardReader) schemeKind(body members, path string) (SchemeType, members) {
	for _, w := range wrappedSchemes {
		if raw := member(body, w.member); raw != nil {
			return w.kind, r.object(raw, at(path, w.member))
		}
	}
	written := r.text(body, path, "type")
	for _, w := range wrappedSchemes {
		if strings.EqualFold(written, string(w.kind)) {
			return w.kind, body
		}
	}
	if written == "" {
		r.note("%s is of no known type: ignored", path)
		return "", nil
	}
	r.note("%s is of the unknown type %q", path, plainLine(written, 40))
	return SchemeType(plainLine(written, 40)), body
}

func (r *cardReader) scheme(name string, kind SchemeType, body members, path string) SecurityScheme {
	s := SecurityScheme{Name: name, Type: kind}
	switch kind {
	case SchemeAPIKey:
		s.In = strings.ToLower(or(r.text(body, path, "location"), r.text(body, path, "in")))
		s.Param = r.text(body, path, "name")
	case SchemeHTTP:
		s.HTTPScheme = strings.ToLower(r.text(body, path, "scheme"))
	case SchemeOAuth2:
		s.MetadataURL = r.text(body, path, "oauth2MetadataUrl")
		r.flows(&s, r.object(member(body, "flows"), at(path, "flows")), path)
	case SchemeOpenIDConnect:
		s.MetadataURL = r.text(body, path, "openIdConnectUrl")
	}
	return s
}

// flows reads the OAuth2 flows. The proto allows one, OpenAPI several: all
// are read, and client credentials is the one that a gateway can use.
func (r *cardReader) flows(s *SecurityScheme, flows members, path string) {
	var other []string
	for _, name := range slices.Sorted(maps.Keys(flows)) {
		where := fmt.Sprintf("%s.flows.%s", path, plainLine(name, 40))
		flow := r.object(flows[name], where)
		if flow == nil {
			continue
		}
		s.Flows = append(s.Flows, name)
		scopes := r.scopes(flow, where)
		if name == "clientCredentials" || name == "client_credentials" {
			s.TokenURL, s.Scopes = r.text(flow, where, "tokenUrl"), scopes
			continue
		}
		other = append(other, scopes...)
	}
	if s.Scopes == nil {
		s.Scopes = other
	}
}

// scopes reads scopes: a map of name to description, or a plain list.
func (r *cardReader) scopes(flow members, path string) []string {
	raw := member(flow, "scopes")
	if len(raw) > 0 && raw[0] == '[' {
		return r.texts(flow, path, "scopes")
	}
	return slices.Sorted(maps.Keys(r.object(raw, at(path, "scopes"))))
}

// requirements reads securityRequirements of 1.0 and security of 0.3, in a
// card or a skill.
func (r *cardReader) requirements(m members, path string) []SecurityRequirement {
	name := "securityRequirements"
	if member(m, name) == nil {
		name = "security"
	}
	var out []SecurityRequirement
	for i, raw := range r.list(m, path, name) {
		where := fmt.Sprintf("%s[%d]", at(path, name), i)
		entry := r.object(raw, where)
		if entry == nil {
			continue // dropping one alternative never makes the demand weaker than the agent's own check
		}
		if inner := member(entry, "schemes"); len(inner) > 0 && inner[0] == '{' {
			entry = r.object(inner, where)
		}
		requirement := SecurityRequirement{}
		for _, scheme := range slices.Sorted(maps.Keys(entry)) {
			requirement = append(requirement, SecurityNeed{Scheme: scheme, Scopes: r.needScopes(entry[scheme], where)})
		}
		out = append(out, requirement)
	}
	return out
}

// needScopes reads the scopes of one need: {"list": […]} in 1.0, […] in 0.3.
func (r *cardReader) needScopes(raw json.RawMessage, path string) []string {
	if len(raw) > 0 && raw[0] == '{' {
		return r.texts(r.object(raw, path), path, "list")
	}
	return r.texts(members{"scopes": raw}, path, "scopes")
}
