package server

import (
	"net/http"

	"a2agate/translate"
)

// modern serves one message of the stateless wire (MCP 2026-07-28,
// transports). The steps are numbered by what is refused, in this order:
// _meta, version header, version, Mcp-Method, method, Mcp-Name; what follows
// is Core's.
func (x *exchange) modern() {
	x.req.Revision = translate.Rev20260728
	switch x.env.Kind {
	case KindNotification:
		// No notification from a client is defined on this wire: to cancel is
		// to close the stream.
		x.accepted()
		return
	case KindResponse:
		x.refuse(http.StatusBadRequest, failure{err: &translate.Error{
			Code: translate.CodeInvalidRequest, Message: "a response is not a request: nothing was asked on this wire"}})
		return
	}
	if f := x.admitModern(); f.failed() {
		x.refuse(modernStatus(Answer{Code: f.err.Code, Shape: f.shape}), f)
		return
	}
	x.req.Envelope, x.req.Principal, x.req.View = &x.env, x.id.Principal, x.view
	x.req.Client = modernClient(x.env.Meta.ClientCapabilities)
	x.req.Trace, x.req.Sink, x.req.Headers = x.trace(), x, x
	if x.env.Method == "subscriptions/listen" {
		x.listen()
		return
	}
	release, ok := x.meter()
	if !ok {
		return
	}
	defer release()
	// The end of the connection is the end of the request: r.Context().
	x.answer(&x.ctx, modernStatus)
}

func (x *exchange) admitModern() failure {
	version, f := checkMeta(&x.env)
	if f.failed() {
		return f
	}
	if err := checkVersionHeader(x.r.Header, version); err != nil {
		return failure{err: err}
	}
	if version != string(translate.Rev20260728) {
		return failure{err: unsupportedVersion(version)}
	}
	if err := checkMethodHeader(x.r.Header, x.env.Method); err != nil {
		return failure{err: err}
	}
	m, ok := x.s.core.exists(x.env.Method, translate.Rev20260728)
	if !ok {
		return notFound(x.env.Method)
	}
	if m.label != "" {
		optional := x.s.o.OptionalTaskName && m.feature == featTasks
		if err := checkNameHeader(x.r.Header, m, &x.env.P, optional); err != nil {
			return failure{err: err}
		}
	}
	return failure{}
}

// checkMeta checks the parts of _meta that every modern request has, and
// returns its version (MCP 2026-07-28, basic).
func checkMeta(e *Envelope) (version string, f failure) {
	version, ok := stringValue(e.Meta.ProtocolVersion)
	switch {
	case !ok:
		return "", malformed("params._meta[%q] must be a string on every request", metaVersion)
	case !isObject(e.Meta.ClientCapabilities):
		return "", malformed("params._meta[%q] must be an object on every request", metaCapabilities)
	}
	return version, failure{}
}

// modernStatus is the HTTP status of an answer (MCP 2026-07-28, transports).
// What the specification leaves open is 400 where the request is malformed
// and 200 where it is not: a client that speaks both wires may take a 400
// with a code it does not know for an old server.
func modernStatus(a Answer) int {
	switch a.Code {
	case translate.CodeMethodNotFound:
		return http.StatusNotFound
	case translate.CodeParse, translate.CodeInvalidRequest,
		translate.CodeHeaderMismatch, translate.CodeMissingCapability, translate.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	if a.Shape {
		return http.StatusBadRequest
	}
	return http.StatusOK
}
