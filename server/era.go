package server

import (
	"a2agate/translate"
)

// supported are the revisions served, newest first, as server/discover and
// -32022 list them.
var supported = []translate.Revision{
	translate.Rev20260728, translate.Rev20251125, translate.Rev20250618, translate.Rev20250326,
}

// legacyRevision reports whether v is a served revision with an initialize
// handshake.
func legacyRevision(v string) bool {
	switch translate.Revision(v) {
	case translate.Rev20251125, translate.Rev20250618, translate.Rev20250326:
		return true
	}
	return false
}

// negotiate answers the version an initialize asks for: the same when it is a
// served legacy revision, else the latest legacy one (MCP 2025-11-25,
// lifecycle). Never a modern one.
func negotiate(asked string) translate.Revision {
	if legacyRevision(asked) {
		return translate.Revision(asked)
	}
	return translate.Rev20251125
}

// era is the wire a request belongs to.
type era uint8

const (
	eraLegacy era = iota
	eraModern
	// eraUnknown is a version header that names nothing we serve, on a body
	// that does not say either.
	eraUnknown
)

// eraOf decides by the body's _meta first, then by the version header ("" when
// absent).
func eraOf(e *Envelope, header string) era {
	switch {
	case e.Meta.ProtocolVersion != nil || e.Meta.ClientCapabilities != nil:
		return eraModern
	case header == string(translate.Rev20260728):
		return eraModern
	case header == "" || legacyRevision(header):
		return eraLegacy
	}
	return eraUnknown
}

// legacyOf is the revision of a legacy request: the header's, else the one its
// session was made for, else 2025-03-26 (MCP 2025-11-25, transports).
func legacyOf(header string, s session) translate.Revision {
	switch {
	case header != "":
		return translate.Revision(header)
	case s.revision != "":
		return s.revision
	}
	return translate.Rev20250326
}

// feature is what the server must be made with for a method to exist.
type feature uint8

const (
	featAlways feature = iota
	featPrompts
	featResources
	featCompletions
	featTasks
)

// method is what the edge knows of an MCP method.
type method struct {
	name           string
	modern, legacy bool
	feature        feature
	// label is the member of params that Mcp-Name mirrors, "" for none.
	label string
	// slow methods may wait for an agent, so they may open a stream.
	slow bool
}

// methods are all methods of all revisions that exist here; a name that is
// missing is -32601.
var methods = func() map[string]method {
	list := []method{
		{name: "initialize", legacy: true},
		{name: "ping", legacy: true},
		{name: "server/discover", modern: true},
		{name: "tools/list", modern: true, legacy: true},
		{name: "tools/call", modern: true, legacy: true, label: "name", slow: true},
		{name: "prompts/list", modern: true, legacy: true, feature: featPrompts},
		{name: "prompts/get", modern: true, legacy: true, feature: featPrompts, label: "name", slow: true},
		{name: "resources/list", modern: true, legacy: true, feature: featResources},
		{name: "resources/templates/list", modern: true, legacy: true, feature: featResources},
		{name: "resources/read", modern: true, legacy: true, feature: featResources, label: "uri", slow: true},
		{name: "completion/complete", modern: true, legacy: true, feature: featCompletions, slow: true},
		{name: "subscriptions/listen", modern: true},
		{name: "tasks/get", modern: true, feature: featTasks, label: "taskId", slow: true},
		{name: "tasks/update", modern: true, feature: featTasks, label: "taskId", slow: true},
		{name: "tasks/cancel", modern: true, feature: featTasks, label: "taskId", slow: true},
	}
	m := make(map[string]method, len(list))
	for _, v := range list {
		m[v.name] = v
	}
	return m
}()
