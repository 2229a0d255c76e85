package translate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// AppendResult appends a CallToolResult for a revision. meta are further _meta
// entries (serverInfo); an entry of the result with the same key wins. What
// the revision does not know is left out or put in its own words:
//
//   - resultType stands on 2026-07-28 and later only
//   - 2025-03-26 has no structuredContent and no resource_link: the link stands
//     as text, unless a text block has it already; _meta is left out
//   - before 2026-07-28 structuredContent is an object: any other value is
//     wrapped as {"value": …}
//
// Raw JSON is written byte for byte without line breaks.
func AppendResult(dst []byte, r Result, rev Revision, meta []MetaEntry) []byte {
	o := newObject(slices.Grow(dst, resultSize(&r)))
	if rev.Modern() {
		o.str("resultType", "complete")
	}
	o.key("content")
	o.dst = AppendContent(o.dst, r.Content, rev)
	if r.Structured != nil && rev >= Rev20250618 {
		o.key("structuredContent")
		if rev.Modern() || isObject(r.Structured) {
			o.dst = AppendRaw(o.dst, r.Structured)
		} else {
			o.dst = append(AppendRaw(append(o.dst, `{"value":`...), r.Structured), '}')
		}
	}
	if r.IsError {
		o.key("isError")
		o.dst = append(o.dst, "true"...)
	}
	if rev >= Rev20250618 {
		o.meta(r.Meta, meta)
	}
	return o.end()
}

// resultSize guesses the encoded size, so that a large result is written into
// one allocation.
func resultSize(r *Result) int {
	n := 256 + len(r.Structured)
	for _, c := range r.Content {
		n += 256
		switch b := c.(type) {
		case mcp.TextContent:
			n += len(b.Text) + len(b.Text)/8
		case mcp.ImageContent:
			n += len(b.Data)
		case mcp.AudioContent:
			n += len(b.Data)
		case mcp.EmbeddedResource:
			switch res := b.Resource.(type) {
			case mcp.TextResourceContents:
				n += len(res.Text) + len(res.Text)/8
			case mcp.BlobResourceContents:
				n += len(res.Blob)
			}
		}
	}
	for i := range r.Meta {
		n += len(r.Meta[i].Key) + len(r.Meta[i].Value)
	}
	return n
}

// meta adds the member _meta unless there is nothing to put in it.
func (o *object) meta(lists ...[]MetaEntry) {
	any := false
	for _, l := range lists {
		any = any || len(l) > 0
	}
	if any {
		o.key("_meta")
		o.dst = AppendMeta(o.dst, lists...)
	}
}

// AppendContent appends an array of content blocks for a revision.
func AppendContent(dst []byte, content []mcp.Content, rev Revision) []byte {
	dst = append(dst, '[')
	first := true
	for _, c := range content {
		if link, ok := c.(mcp.ResourceLink); ok && rev < Rev20250618 {
			if mentioned(content, link.URI) {
				continue
			}
			c = textBlock(link.Name + ": " + link.URI)
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendBlock(dst, c, rev)
	}
	return append(dst, ']')
}

func mentioned(content []mcp.Content, uri string) bool {
	for _, c := range content {
		if t, ok := c.(mcp.TextContent); ok && strings.Contains(t.Text, uri) {
			return true
		}
	}
	return false
}

func appendBlock(dst []byte, c mcp.Content, rev Revision) []byte {
	o := newObject(dst)
	var ann *mcp.Annotations
	var meta *mcp.Meta
	switch b := c.(type) {
	case mcp.TextContent:
		o.str("type", "text")
		o.key("text")
		o.dst = AppendString(o.dst, b.Text)
		ann, meta = b.Annotations, b.Meta
	case mcp.ImageContent:
		o.medium("image", b.Data, b.MIMEType)
		ann, meta = b.Annotations, b.Meta
	case mcp.AudioContent:
		o.medium("audio", b.Data, b.MIMEType)
		ann, meta = b.Annotations, b.Meta
	case mcp.ResourceLink:
		o.link(&b)
		ann, meta = b.Annotations, b.Meta
	case mcp.EmbeddedResource:
		o.str("type", "resource")
		o.key("resource")
		o.dst = AppendResourceContents(o.dst, b.Resource, rev)
		ann, meta = b.Annotations, b.Meta
	default:
		// Only mcp can make others; its own encoder knows them.
		return append(dst, marshal(c)...)
	}
	if ann != nil {
		o.raw("annotations", marshal(ann))
	}
	if meta != nil && rev >= Rev20250618 {
		o.blockMeta(meta)
	}
	return o.end()
}

func (o *object) medium(kind, data, mime string) {
	o.str("type", kind)
	o.key("data")
	o.dst = AppendString(o.dst, data)
	o.key("mimeType")
	o.dst = AppendString(o.dst, mime)
}

func (o *object) link(b *mcp.ResourceLink) {
	o.str("type", "resource_link")
	o.key("uri")
	o.dst = AppendString(o.dst, b.URI)
	o.key("name")
	o.dst = AppendString(o.dst, b.Name)
	o.str("title", b.Title)
	o.str("description", b.Description)
	o.str("mimeType", b.MIMEType)
	if b.Size != nil {
		o.key("size")
		o.dst = strconv.AppendInt(o.dst, *b.Size, 10)
	}
}

// blockMeta adds a block's _meta; raw JSON inside it stays as it is.
func (o *object) blockMeta(m *mcp.Meta) {
	if m.ProgressToken != nil {
		o.raw("_meta", marshal(m))
		return
	}
	keys := make([]string, 0, 4)
	for k := range m.AdditionalFields {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	o.key("_meta")
	in := newObject(o.dst)
	for _, k := range keys {
		in.keyString(k)
		if raw, ok := m.AdditionalFields[k].(json.RawMessage); ok {
			in.dst = AppendRaw(in.dst, raw)
		} else {
			in.dst = append(in.dst, marshal(m.AdditionalFields[k])...)
		}
	}
	o.dst = in.end()
}

// AppendResourceContents appends the contents of one resource.
func AppendResourceContents(dst []byte, c mcp.ResourceContents, rev Revision) []byte {
	o := newObject(dst)
	var meta map[string]any
	switch r := c.(type) {
	case mcp.TextResourceContents:
		o.str("uri", r.URI)
		o.str("mimeType", r.MIMEType)
		o.key("text")
		o.dst = AppendString(o.dst, r.Text)
		meta = r.Meta
	case mcp.BlobResourceContents:
		o.str("uri", r.URI)
		o.str("mimeType", r.MIMEType)
		o.key("blob")
		o.dst = AppendString(o.dst, r.Blob)
		meta = r.Meta
	default:
		return append(dst, marshal(c)...)
	}
	if len(meta) > 0 && rev >= Rev20250618 {
		o.raw("_meta", marshal(meta))
	}
	return o.end()
}

// marshal is for the few values that are not worth a hand-written encoder;
// what cannot be encoded is null.
func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

// AppendInputRequired appends an InputRequiredResult (MRTR, modern wire only).
// Asks that the revision cannot put are left out.
func AppendInputRequired(dst []byte, in InputRequired, rev Revision, meta []MetaEntry) []byte {
	o := newObject(dst)
	o.str("resultType", "input_required")
	o.key("inputRequests")
	o.dst = appendInputRequests(o.dst, in.Asks, rev)
	o.str("requestState", in.RequestState)
	o.meta(meta)
	return o.end()
}

func appendInputRequests(dst []byte, asks []Ask, rev Revision) []byte {
	o := newObject(dst)
	for i := range asks {
		params := ElicitParamsFromAsk(asks[i], rev)
		if params == nil {
			continue
		}
		o.keyString(asks[i].Key)
		e := newObject(o.dst)
		e.str("method", "elicitation/create")
		e.raw("params", params)
		o.dst = e.end()
	}
	return o.end()
}

// DetailedTask is a task as tasks/get and notifications/tasks show it. Besides
// the base fields exactly one of Asks, Result and Err is used, by Status.
type DetailedTask struct {
	TaskInfo
	// Asks are all outstanding questions, for TaskInputRequired.
	Asks []Ask
	// Result is what the call would have returned, for TaskCompleted; nil
	// stands for an empty one.
	Result *Result
	// ResultJSON is Result as AppendResult wrote it earlier; it wins over Result.
	ResultJSON json.RawMessage
	// Err is why the task is lost, for TaskFailed; nil stands for an internal
	// error.
	Err *Error
}

// AppendTask appends a CreateTaskResult (tasks extension 3.2). The empty
// content is for clients and suites that read every result of tools/call as a
// CallToolResult.
func AppendTask(dst []byte, t TaskInfo, meta []MetaEntry) []byte {
	o := newObject(dst)
	o.str("resultType", "task")
	o.task(&t)
	o.key("content")
	o.dst = append(o.dst, "[]"...)
	o.meta(meta)
	return o.end()
}

// AppendDetailedTask appends the result of tasks/get.
func AppendDetailedTask(dst []byte, t DetailedTask, rev Revision, meta []MetaEntry) []byte {
	o := newObject(dst)
	o.str("resultType", "complete")
	o.detail(&t, rev)
	o.meta(meta)
	return o.end()
}

// AppendTaskNotification appends the params of notifications/tasks: the same
// fields as tasks/get, without resultType.
func AppendTaskNotification(dst []byte, t DetailedTask, rev Revision, meta []MetaEntry) []byte {
	o := newObject(dst)
	o.detail(&t, rev)
	o.meta(meta)
	return o.end()
}

func (o *object) task(t *TaskInfo) {
	o.str("taskId", t.ID)
	o.str("status", string(t.Status))
	o.str("statusMessage", oneLine(t.StatusMessage, questionSize))
	o.str("createdAt", timestamp(t.Created))
	o.str("lastUpdatedAt", timestamp(t.Updated))
	o.key("ttlMs")
	o.dst = strconv.AppendInt(o.dst, t.TTL.Milliseconds(), 10)
	if ms := t.PollInterval.Milliseconds(); ms > 0 {
		o.key("pollIntervalMs")
		o.dst = strconv.AppendInt(o.dst, ms, 10)
	}
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (o *object) detail(t *DetailedTask, rev Revision) {
	o.task(&t.TaskInfo)
	switch t.Status {
	case TaskInputRequired:
		o.key("inputRequests")
		o.dst = appendInputRequests(o.dst, t.Asks, rev)
	case TaskCompleted:
		o.key("result")
		var r Result
		if t.Result != nil {
			r = *t.Result
		}
		if t.ResultJSON != nil {
			o.dst = append(o.dst, t.ResultJSON...)
		} else {
			o.dst = AppendResult(o.dst, r, rev, nil)
		}
	case TaskFailed:
		e := t.Err
		if e == nil {
			e = &Error{Code: CodeInternal, Message: "the task is lost"}
		}
		o.key("error")
		o.dst = AppendError(o.dst, e)
	case TaskWorking, TaskCancelled:
	}
}

// AppendError appends a JSON-RPC error object: code, message, data.
func AppendError(dst []byte, e *Error) []byte {
	o := newObject(dst)
	o.key("code")
	o.dst = strconv.AppendInt(o.dst, int64(e.Code), 10)
	o.key("message")
	o.dst = AppendString(o.dst, e.Message)
	o.raw("data", e.Data)
	return o.end()
}
