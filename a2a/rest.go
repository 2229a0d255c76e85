package a2a

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// What cannot be asked over a binding; nothing is sent.
var (
	errNotIn03 = errors.New("A2A 0.3 has no such operation over JSON-RPC")
	errTaskID  = errors.New("not a task id")
	errNoQuery = errors.New("raw methods need a JSON-RPC interface")
)

// operationPaths are the REST paths that cards wrongly give as the interface's
// address; the operation is put behind the address without them.
var operationPaths = []string{
	"/message:send", "/message:stream", "/message%3Asend", "/message%3Astream",
	"/extendedAgentCard", "/v1/card", wellKnownCard, wellKnownLegacyCard,
}

// restRequest builds the REST request of an operation (specification 1.0.1,
// 11.3; 0.3.0, 3.5.3). Task ids are escaped, so that they cannot name another
// path.
func (r *route) restRequest(op *operation) (wireRequest, error) {
	if op.task() && (op.taskID == "" || op.taskID == "." || op.taskID == "..") {
		return wireRequest{}, errTaskID
	}
	w := wireRequest{method: http.MethodPost, accept: typeA2AJSON + ", " + typeJSON, contentType: typeA2AJSON}
	if r.Version == V03 {
		w.accept = typeJSON
	}
	if r.Version == V03 || r.PlainJSON {
		w.contentType = typeJSON
	}
	path, query := "", ""
	switch op.kind {
	case opSend:
		path = "/message:send"
		w.body = appendSend(make([]byte, 0, 512), r.dialect(), r.Tenant, op.send)
	case opStream:
		path = "/message:stream"
		w.body = appendSend(make([]byte, 0, 512), r.dialect(), r.Tenant, op.send)
	case opGet:
		w.method, path = http.MethodGet, "/tasks/"+pathSegment(op.taskID)
		if op.history != nil {
			query = "historyLength=" + strconv.Itoa(*op.history)
		}
	case opCancel:
		path = "/tasks/" + pathSegment(op.taskID) + ":cancel"
		w.body = r.emptyBody()
	case opSubscribe:
		path = "/tasks/" + pathSegment(op.taskID) + ":subscribe"
		if r.SubscribeGET {
			w.method = http.MethodGet
		} else {
			w.body = r.emptyBody()
		}
	case opList:
		w.method, path, query = http.MethodGet, "/tasks", listQuery(op.list)
	case opExtendedCard:
		w.method, path = http.MethodGet, "/extendedAgentCard"
		if r.Version == V03 {
			path = "/card"
		}
	case opQuery:
		return wireRequest{}, errNoQuery
	}
	if w.body == nil {
		w.contentType = ""
	}
	if op.stream() {
		w.accept = typeSSE + ", " + w.accept
	}
	w.url = r.restURL(path, query)
	return w, nil
}

// emptyBody is the body of a POST whose parameters are in its path.
func (r *route) emptyBody() []byte {
	b := []byte{'{'}
	if r.Version == V10 {
		b = appendField(b, "tenant", r.Tenant)
	}
	return append(b, '}')
}

// restURL puts an operation path behind the interface's address: before its
// query, behind the version prefix and the tenant. Strings are joined, never
// resolved, for resolving drops the last segment.
func (r *route) restURL(path, query string) string {
	base, own, _ := strings.Cut(r.URL, "?")
	base = trimOperation(strings.TrimRight(base, "/"))
	// 0.3 puts its paths under /v1 and 1.0 does not; FlipV1 is for agents that
	// hold it the other way round, or whose address ends in it by mistake.
	switch bare, has := strings.CutSuffix(base, "/v1"); {
	case has && r.FlipV1:
		base = bare
	case !has && (r.Version == V03) != r.FlipV1:
		base += "/v1"
	}
	if r.Tenant != "" && r.Version == V10 {
		base += "/" + pathSegment(r.Tenant)
	}
	if own != "" && query != "" {
		query = own + "&" + query
	} else if query == "" {
		query = own
	}
	if query != "" {
		query = "?" + query
	}
	return base + path + query
}

// trimOperation drops an operation's path from the end of an address.
func trimOperation(base string) string {
	for _, p := range operationPaths {
		if len(base) >= len(p) && strings.EqualFold(base[len(base)-len(p):], p) {
			return strings.TrimRight(base[:len(base)-len(p)], "/")
		}
	}
	return base
}

// pathSegment escapes a value to one path segment. The colon goes too: behind
// a task id it begins the operation.
func pathSegment(s string) string {
	return strings.ReplaceAll(url.PathEscape(s), ":", "%3A")
}

func listQuery(l *ListRequest) string {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("contextId", l.ContextID)
	set("status", string(l.Status))
	if l.PageSize > 0 {
		set("pageSize", strconv.Itoa(l.PageSize))
	}
	set("pageToken", l.PageToken)
	if l.HistoryLength != nil {
		set("historyLength", strconv.Itoa(*l.HistoryLength))
	}
	set("statusTimestampAfter", l.StatusTimestampAfter)
	if l.IncludeArtifacts {
		set("includeArtifacts", "true")
	}
	return q.Encode()
}
