package a2a

import "net/http"

// opKind is an operation of the protocol.
type opKind uint8

const (
	opSend opKind = iota
	opStream
	opGet
	opList
	opCancel
	opSubscribe
	opExtendedCard
	opQuery
)

// opTable has what is fixed about each operation (specification 1.0.1, 5.3,
// and 0.3.0, 3.5.6).
var opTable = [...]struct {
	name         string // in errors and metrics
	rpc10, rpc03 string // method names
	read         bool   // changes nothing: may be repeated
	stream       bool
	task         bool // names a task
}{
	opSend:         {name: "send", rpc10: "SendMessage", rpc03: "message/send"},
	opStream:       {name: "stream", rpc10: "SendStreamingMessage", rpc03: "message/stream", stream: true},
	opGet:          {name: "get", rpc10: "GetTask", rpc03: "tasks/get", read: true, task: true},
	opList:         {name: "list", rpc10: "ListTasks", read: true},
	opCancel:       {name: "cancel", rpc10: "CancelTask", rpc03: "tasks/cancel", task: true},
	opSubscribe:    {name: "subscribe", rpc10: "SubscribeToTask", rpc03: "tasks/resubscribe", read: true, stream: true, task: true},
	opExtendedCard: {name: "card", rpc10: "GetExtendedAgentCard", rpc03: "agent/getAuthenticatedExtendedCard", read: true},
	opQuery:        {name: "query"},
}

// operation is one call of a Client, before it is known which interface will
// carry it.
type operation struct {
	kind    opKind
	send    *SendRequest // opSend, opStream
	taskID  string       // opGet, opCancel, opSubscribe
	history *int         // opGet
	list    *ListRequest // opList
	method  string       // opQuery
	params  []byte       // opQuery
	trace   Trace
	// cause names the fallback that led to this call, "" for none.
	cause string
}

func (op *operation) name() string { return opTable[op.kind].name }
func (op *operation) read() bool   { return opTable[op.kind].read }
func (op *operation) stream() bool { return opTable[op.kind].stream }
func (op *operation) task() bool   { return opTable[op.kind].task }

// wireRequest is one HTTP request before it gets its headers.
type wireRequest struct {
	method string
	url    string
	body   []byte // nil for none
	id     string // JSON-RPC id, "" over REST
	// contentType is that of the body; accept what the answer may be.
	contentType, accept string
}

const (
	typeJSON    = "application/json"
	typeA2AJSON = "application/a2a+json"
	typeSSE     = "text/event-stream"
)

// rpcRequest builds the JSON-RPC request of an operation. The URL is used byte
// for byte: agents route on a trailing slash.
func (r *route) rpcRequest(op *operation, id string) (wireRequest, error) {
	method := op.method
	if op.kind != opQuery {
		method = opTable[op.kind].rpc10
		if r.Version == V03 {
			method = opTable[op.kind].rpc03
		}
		if method == "" {
			return wireRequest{}, errNotIn03
		}
	}
	b := make([]byte, 0, 512)
	b = append(b, `{"jsonrpc":"2.0","id":"`...)
	b = append(append(b, id...), `","method":`...)
	b = appendQuoted(b, method)
	switch op.kind {
	case opSend, opStream:
		b = appendSend(append(b, `,"params":`...), r.dialect(), r.Tenant, op.send)
	case opGet, opCancel, opSubscribe:
		b = appendTask(append(b, `,"params":`...), r.dialect(), r.Tenant, op.taskID, op.history)
	case opList:
		b = appendList(append(b, `,"params":`...), r.Tenant, op.list)
	case opExtendedCard:
		if r.Version == V10 {
			b = append(b, `,"params":{`...)
			b = append(appendField(b, "tenant", r.Tenant), '}')
		}
	case opQuery:
		if len(op.params) > 0 {
			b = append(append(b, `,"params":`...), op.params...)
		}
	}
	b = append(b, '}')
	w := wireRequest{method: http.MethodPost, url: r.URL, body: b, id: id, contentType: typeJSON, accept: typeJSON}
	if op.stream() {
		w.accept = typeSSE + ", " + typeJSON
	}
	return w, nil
}
