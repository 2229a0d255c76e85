package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// decoder reads the answers of one request. It does not care which protocol
// version an answer is in: a 0.3 answer to a 1.0 request is as good.
type decoder struct {
	// id is the JSON-RPC id of the request, "" over REST.
	id string
	// proto says that the interface is 0.3's REST binding, whose data parts
	// are wrapped once more.
	proto bool
	// scratch is used for one answer after the other; nil makes a new one each
	// time.
	scratch *replyScratch
	// secrets, where not nil, are taken out of the agent's errors.
	secrets *secrets
}

// failure reads the agent's error.
func (d decoder) failure(raw json.RawMessage) *Error {
	if d.secrets != nil {
		raw = d.secrets.body(raw)
	}
	return errorFromRPC(raw)
}

// replyScratch is the memory that an answer is decoded into. Nothing of it is
// kept in the values of model.go.
type replyScratch struct {
	reply  wireReply
	result wireEvent
}

// reset empties the scratch, so that it holds on to nothing.
func (s *replyScratch) reset() { *s = replyScratch{} }

// reply returns an empty reply to decode into. A JSON-RPC result has its room
// already, so an absent result looks like an empty one; neither is an answer.
func (d decoder) reply() *wireReply {
	if d.scratch == nil {
		return new(wireReply)
	}
	d.scratch.reset()
	if d.id != "" {
		d.scratch.reply.Result = &d.scratch.result
	}
	return &d.scratch.reply
}

// What a body can be beside an event. They are turned into *Error by the
// client, which knows who sent the body.
var (
	errNotJSON   = errors.New("not JSON")
	errCutJSON   = errors.New("JSON that ends in the middle")
	errDeepJSON  = errors.New("JSON that nests too deeply")
	errNotAnswer = errors.New("JSON, but neither a result nor an error")
	errOtherID   = errors.New("the answer to another request")
)

// event decodes one answer or stream event. A *Error is the agent's own error
// and lacks who and where; other errors are those above.
func (d decoder) event(body []byte) (Event, error) {
	body, notes := cleanBody(body)
	w := d.reply()
	rest, values := lift(body, liftFrom, liftMin)
	if err := json.Unmarshal(rest, w); err == nil {
		m := modeller{proto: d.proto, notes: notes, lifted: values}
		ev, err := d.settle(w, &m)
		if !m.odd && !errors.Is(err, errNotAnswer) {
			return ev, err
		}
	} else if !isTypeError(err) {
		return Event{}, syntaxError(err)
	}
	l := lenient{notes: notes}
	slow, ok := l.reply(bytes.TrimSpace(body))
	if !ok {
		return Event{}, errNotAnswer
	}
	m := modeller{proto: d.proto, notes: l.notes}
	ev, err := d.settle(slow, &m)
	if errors.Is(err, errNotAnswer) {
		if bare := d.bareError(body); bare != nil {
			return Event{}, bare
		}
	}
	return ev, err
}

// bareError reads an error that stands where a result should: {code, message},
// as 0.3's REST binding has it.
func (d decoder) bareError(body []byte) *Error {
	var b errorBody
	if json.Unmarshal(body, &b) != nil || firstText(b.Message) == "" || len(b.Code) == 0 {
		return nil //nolint:nilerr // no error stands here
	}
	return d.failure(bytes.TrimSpace(body))
}

// syntaxError tells JSON that was cut, or nests deeper than package json
// reads, from what is no JSON.
func syntaxError(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "unexpected end of JSON input"):
		return errCutJSON
	case strings.Contains(text, "exceeded max depth"):
		return errDeepJSON
	}
	return errNotJSON
}

// settle tells an error from an event and checks whose answer it is.
func (d decoder) settle(w *wireReply, m *modeller) (Event, error) {
	if hasError(w.Error) {
		if err := d.checkID(w.ID); err != nil {
			return Event{}, err
		}
		return Event{}, d.failure(w.Error)
	}
	flat := w.Result
	if flat == nil {
		flat = &w.wireEvent
		flat.ID = idString(w.ID)
	}
	ev, ok := m.event(flat)
	if !ok {
		return Event{}, errNotAnswer
	}
	if w.Result != nil {
		if err := d.checkID(w.ID); err != nil {
			return Event{}, err
		}
	}
	return ev, nil
}

// checkID refuses the answer to another request. A missing or null id passes,
// and so does a number where a string was sent.
func (d decoder) checkID(raw json.RawMessage) error {
	if len(raw) == 0 || isNull(raw) || d.id == "" || idString(raw) == d.id {
		return nil
	}
	return errOtherID
}

// raw decodes a JSON-RPC response and returns its result byte for byte.
func (d decoder) raw(body []byte) (json.RawMessage, error) {
	body, _ = cleanBody(body)
	var w struct {
		ID     json.RawMessage `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		if isTypeError(err) {
			return nil, errNotAnswer
		}
		return nil, syntaxError(err)
	}
	if err := d.checkID(w.ID); err != nil {
		return nil, err
	}
	switch {
	case hasError(w.Error):
		return nil, d.failure(w.Error)
	case len(w.Result) == 0:
		return nil, errNotAnswer
	}
	return w.Result, nil
}

// page decodes the answer of ListTasks.
func (d decoder) page(body []byte) (*TaskPage, error) {
	body, notes := cleanBody(body)
	w := &wirePage{}
	m := modeller{proto: d.proto, notes: notes}
	err := json.Unmarshal(body, w)
	if err != nil && !isTypeError(err) {
		return nil, syntaxError(err)
	}
	page := &TaskPage{}
	if err == nil {
		page = m.page(w)
	}
	if err != nil || m.odd {
		l := lenient{notes: notes}
		slow, ok := l.page(body)
		if !ok {
			return nil, errNotAnswer
		}
		m = modeller{proto: d.proto, notes: l.notes}
		w, page = slow, m.page(slow)
	}
	if err := d.checkID(w.ID); err != nil {
		return nil, err
	}
	switch {
	case hasError(w.Error):
		return nil, d.failure(w.Error)
	case d.id != "" && w.Result == nil && w.Tasks == nil:
		return nil, errNotAnswer
	}
	return page, nil
}

// page returns the page that w holds. An agent may leave every member of an
// empty page out.
func (m *modeller) page(w *wirePage) *TaskPage {
	if w.Result != nil {
		w = w.Result
	}
	p := &TaskPage{
		NextPageToken: or(w.NextPageToken, w.NextPageSnake),
		PageSize:      w.PageSize,
		TotalSize:     w.TotalSize,
		Tasks:         make([]*Task, 0, len(w.Tasks)),
	}
	for i := range w.Tasks {
		if t := m.task(&w.Tasks[i]); t.ID != "" {
			p.Tasks = append(p.Tasks, statedTask(t))
		} else {
			m.odd = true
			m.note("a task without an id was dropped")
		}
	}
	p.Notes = m.notes
	return p
}

func (l *lenient) page(body []byte) (*wirePage, bool) {
	m, ok := l.object(bytes.TrimSpace(body), "the answer")
	if !ok {
		return nil, false
	}
	w := &wirePage{ID: m["id"], Error: m.get("error")}
	if inner, ok := l.object(m.get("result"), "the result"); ok {
		m = inner
		w.Tasks = []wireTask{}
	}
	for _, raw := range l.list(m, "tasks") {
		if o, ok := l.object(raw, "a task"); ok {
			w.Tasks = append(w.Tasks, l.task(o))
		}
	}
	w.NextPageToken = or(l.text(m, "nextPageToken"), l.text(m, "next_page_token"))
	w.PageSize, w.TotalSize = l.number(m, "pageSize"), l.number(m, "totalSize")
	return w, true
}

// statedTask gives a task without a state the one that leaving it out means in
// ProtoJSON.
func statedTask(t *Task) *Task {
	if t.Status.State == "" {
		t.Status.State = StateUnspecified
		t.Notes = append(t.Notes, "the agent gave the task no state")
	}
	return t
}

// hasError reports whether an error member says anything. Some agents set it
// to null, false or an empty object beside a result.
func hasError(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "{}", `""`:
		return false
	}
	return true
}

// cleanBody drops a byte order mark, which breaks encoding/json, and replaces
// bytes that are not UTF-8, which raw JSON would otherwise carry on to a caller.
func cleanBody(body []byte) (clean []byte, notes []string) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if utf8.Valid(body) {
		return body, nil
	}
	return bytes.ToValidUTF8(body, []byte("\uFFFD")), []string{"bytes that are not UTF-8 were replaced"}
}

func isTypeError(err error) bool {
	var typeErr *json.UnmarshalTypeError
	return errors.As(err, &typeErr)
}
