package a2a

import "encoding/json"

// The wire structs hold one object of either protocol version. The members of
// the versions do not collide, so one pass of encoding/json reads 1.0's wrapped
// results, 0.3's flat results with a kind, and the ProtoJSON shapes of 0.3's
// REST binding. They have no unmarshalers of their own, which would cost more
// than all the rest. Members ending in Snake are ProtoJSON's other names, which
// a parser has to accept.

// wireReply is the outermost object of an answer or of a stream event: a
// JSON-RPC response, or what stands in its place over REST.
type wireReply struct {
	// ID shadows the task's: it is the id of the response or of a flat task.
	ID     json.RawMessage `json:"id"`
	Result *wireEvent      `json:"result"`
	Error  json.RawMessage `json:"error"`
	wireEvent
}

// wireEvent is a result, wrapped (1.0) or flat (0.3, and 1.0's bare Task).
type wireEvent struct {
	Task           *wireTask           `json:"task"`
	Message        *wireMessage        `json:"message"`
	Status3        *wireStatusUpdate   `json:"statusUpdate"`
	Status3Snake   *wireStatusUpdate   `json:"status_update"`
	Artifact3      *wireArtifactUpdate `json:"artifactUpdate"`
	Artifact3Snake *wireArtifactUpdate `json:"artifact_update"`

	// The flat forms. The members of wireTask serve all of them; those below
	// complete it to a message or an update.
	Kind string `json:"kind"`
	wireTask
	TaskID          string        `json:"taskId"`
	TaskIDSnake     string        `json:"task_id"`
	Artifact        *wireArtifact `json:"artifact"`
	Append          bool          `json:"append"`
	LastChunk       bool          `json:"lastChunk"`
	LastChunkSnake  bool          `json:"last_chunk"`
	Final           bool          `json:"final"`
	MessageID       string        `json:"messageId"`
	MessageIDSnake  string        `json:"message_id"`
	Role            string        `json:"role"`
	Parts           []wirePart    `json:"parts"`
	Content         []wirePart    `json:"content"`
	Extensions      []string      `json:"extensions"`
	References      []string      `json:"referenceTaskIds"`
	ReferencesSnake []string      `json:"reference_task_ids"`
}

type wireTask struct {
	ID             string          `json:"id"`
	ContextID      string          `json:"contextId"`
	ContextIDSnake string          `json:"context_id"`
	Status         *wireStatus     `json:"status"`
	Artifacts      []wireArtifact  `json:"artifacts"`
	History        []wireMessage   `json:"history"`
	Metadata       json.RawMessage `json:"metadata"`
}

type wireStatus struct {
	State     string       `json:"state"`
	Message   *wireMessage `json:"message"`
	Update    *wireMessage `json:"update"` // what the 0.3 proto calls message
	Timestamp string       `json:"timestamp"`
}

type wireStatusUpdate struct {
	TaskID         string          `json:"taskId"`
	TaskIDSnake    string          `json:"task_id"`
	ContextID      string          `json:"contextId"`
	ContextIDSnake string          `json:"context_id"`
	Status         *wireStatus     `json:"status"`
	Final          bool            `json:"final"`
	Metadata       json.RawMessage `json:"metadata"`
}

type wireArtifactUpdate struct {
	TaskID         string          `json:"taskId"`
	TaskIDSnake    string          `json:"task_id"`
	ContextID      string          `json:"contextId"`
	ContextIDSnake string          `json:"context_id"`
	Artifact       *wireArtifact   `json:"artifact"`
	Append         bool            `json:"append"`
	LastChunk      bool            `json:"lastChunk"`
	LastChunkSnake bool            `json:"last_chunk"`
	Metadata       json.RawMessage `json:"metadata"`
}

type wireMessage struct {
	MessageID       string          `json:"messageId"`
	MessageIDSnake  string          `json:"message_id"`
	ContextID       string          `json:"contextId"`
	ContextIDSnake  string          `json:"context_id"`
	TaskID          string          `json:"taskId"`
	TaskIDSnake     string          `json:"task_id"`
	Role            string          `json:"role"`
	Parts           []wirePart      `json:"parts"`
	Content         []wirePart      `json:"content"` // the 0.3 proto's parts
	Metadata        json.RawMessage `json:"metadata"`
	Extensions      []string        `json:"extensions"`
	References      []string        `json:"referenceTaskIds"`
	ReferencesSnake []string        `json:"reference_task_ids"`
}

type wireArtifact struct {
	ArtifactID      string          `json:"artifactId"`
	ArtifactIDSnake string          `json:"artifact_id"`
	Name            string          `json:"name"`
	Description     string          `json:"description"`
	Parts           []wirePart      `json:"parts"`
	Metadata        json.RawMessage `json:"metadata"`
	Extensions      []string        `json:"extensions"`
}

// wirePart is kept small: encoding/json makes room for four at once. So what
// is rare is behind a pointer.
type wirePart struct {
	Kind           string          `json:"kind"`
	Type           *string         `json:"type"` // 0.1's name of kind
	Text           *string         `json:"text"`
	Data           json.RawMessage `json:"data"`
	URL            *string         `json:"url"`
	Raw            *string         `json:"raw"`
	File           *wireFile       `json:"file"`
	Filename       *string         `json:"filename"`
	MediaType      string          `json:"mediaType"`
	MediaTypeSnake *string         `json:"media_type"`
	MimeType       *string         `json:"mimeType"`
	Metadata       json.RawMessage `json:"metadata"`

	// whole is the part as received; only the lenient decoder has it.
	whole *wholePart
}

// wholePart is a part as the lenient decoder found it.
type wholePart struct {
	raw   json.RawMessage
	fault string // why it could not be read at all, "" where it could
}

// kind is the part's kind by either name.
func (w *wirePart) kind() string { return or(w.Kind, text(w.Type)) }

// text is the string behind s, "" for none.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// wireFile is the file of a 0.3 part, in the JSON-RPC or the ProtoJSON shape.
type wireFile struct {
	Name           string  `json:"name"`
	MimeType       string  `json:"mimeType"`
	MimeTypeSnake  string  `json:"mime_type"`
	MediaType      string  `json:"mediaType"`
	Bytes          *string `json:"bytes"`
	URI            *string `json:"uri"`
	WithBytes      *string `json:"fileWithBytes"`
	WithBytesSnake *string `json:"file_with_bytes"`
	WithURI        *string `json:"fileWithUri"`
	WithURISnake   *string `json:"file_with_uri"`
}

// wirePage is the result of ListTasks, bare or inside a JSON-RPC response.
type wirePage struct {
	Result        *wirePage       `json:"result"`
	Error         json.RawMessage `json:"error"`
	ID            json.RawMessage `json:"id"`
	Tasks         []wireTask      `json:"tasks"`
	NextPageToken string          `json:"nextPageToken"`
	NextPageSnake string          `json:"next_page_token"`
	PageSize      int             `json:"pageSize"`
	TotalSize     int             `json:"totalSize"`
}
