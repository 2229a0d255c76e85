package translate

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/a2a"
)

// BlockMetaKey is the _meta key under which a content block says what A2A part
// it was.
const BlockMetaKey = "a2agate/a2a"

// pieceKind sorts what parts become.
type pieceKind uint8

const (
	pieceText  pieceKind = iota // agent text
	pieceData                   // the exact JSON of a data part
	pieceFile                   // raw text, as an embedded resource
	pieceMedia                  // an inlined image or audio
	pieceBlob                   // other raw bytes, embedded
	pieceLink                   // a url
	pieceNote                   // our word on a part that cannot be shown
)

// piece is one part on its way into both halves of a result.
type piece struct {
	kind pieceKind
	// text is what counts as text: the words, the JSON, the file's content.
	text string
	// line is the one line that stands for a file, medium or link in text.
	line string
	// block is the content block of a medium, blob or link.
	block mcp.Content
	// uri and mime belong to a pieceFile.
	uri, mime string
	// data is the part's raw JSON, for a pieceData.
	data json.RawMessage
	// meta is the raw JSON for BlockMetaKey.
	meta json.RawMessage
	// group numbers the artifact or message it comes from.
	group int
	// cut says that text is no longer whole; rest that it is what follows a
	// gap.
	cut, rest bool
	// ask says that a pieceData is a question of AskExtension.
	ask bool
}

// origin is where parts come from: an artifact or a message.
type origin struct {
	group     int
	artifact  *a2a.Artifact
	messageID string
	// readable is the artifact id for the call that reads the rest, "" where
	// no call can.
	readable string
	// cutAt is where in the origin's text the gap begins, once it was cut.
	cutAt int
	// meta bounds the metadata of the answer's parts; nil does not.
	meta *metaRoom
}

// metaRoom is what the metadata of an answer's parts may still take, in bytes,
// and whether a part had more.
type metaRoom struct {
	left    int
	refused bool
}

// take is the metadata of a part, nil where there is no room for it.
func (m *metaRoom) take(raw json.RawMessage) json.RawMessage {
	switch {
	case m == nil:
	case len(raw) > m.left:
		m.refused = true
		return nil
	default:
		m.left -= len(raw)
	}
	return raw
}

// piecesFromParts renders parts in order. Empty parts give nothing; a part
// that cannot be read gives a note in its place.
func piecesFromParts(dst []piece, parts []a2a.Part, from origin, o *Options) []piece {
	for i := range parts {
		p := &parts[i]
		pc, ok := pieceFromPart(p, from, o)
		if !ok {
			continue
		}
		pc.group = from.group
		pc.meta = blockMeta(p, from, o)
		dst = append(dst, pc)
	}
	return dst
}

func pieceFromPart(p *a2a.Part, from origin, o *Options) (piece, bool) {
	switch p.Kind {
	case a2a.PartText:
		text := CleanText(p.Text)
		return piece{kind: pieceText, text: text}, text != ""
	case a2a.PartData:
		data := p.Data
		if len(data) == 0 {
			data = json.RawMessage("null")
		}
		return piece{
			kind: pieceData, text: validText(string(data)), data: data,
			ask: namesExtension(p.Metadata, AskExtension),
		}, true
	case a2a.PartURL:
		return pieceFromURL(p), true
	case a2a.PartRaw:
		return pieceFromRaw(p, from, o), true
	case a2a.PartUnknown:
		return pieceFromUnknown(p)
	}
	return pieceFromUnknown(p)
}

func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

func pieceFromUnknown(p *a2a.Part) (piece, bool) {
	raw := strings.TrimSpace(string(p.Unknown))
	if raw == "" && p.Fault == "" || raw == "{}" || raw == "null" {
		return piece{}, false
	}
	line := "[unreadable part: " + or(oneLine(p.Fault, 200), "none of text, data, url or raw") + "]"
	return piece{kind: pieceNote, line: line}, true
}

// linkable are the schemes of a url part that become a link. Others (script,
// data and file URLs above all) stay text: a client may open what is a link.
func linkable(raw string) bool {
	for _, r := range raw {
		if r <= ' ' || r == 0x7f || r == '"' || r == '<' || r == '>' || invisible(r) {
			return false
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "javascript", "vbscript", "data", "file", "about", "blob":
		return false
	}
	return u.Host != "" || u.Opaque != ""
}

func pieceFromURL(p *a2a.Part) piece {
	mime := mediaType(p)
	if !linkable(p.URL) {
		shown := CutRunes(CleanName(p.URL), 500)
		return piece{kind: pieceNote, line: "[link that cannot be followed: " + shown + "]"}
	}
	name := baseName(p.Filename)
	line := p.URL
	switch {
	case name != "" && mime != "":
		line = name + " (" + mime + "): " + p.URL
	case name != "":
		line = name + ": " + p.URL
	case mime != "":
		line = "(" + mime + "): " + p.URL
	}
	if name == "" {
		name = nameFromURL(p.URL)
	}
	link := mcp.ResourceLink{Type: "resource_link", URI: p.URL, Name: name, MIMEType: mime}
	return piece{kind: pieceLink, line: line, block: link}
}

func nameFromURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "link"
	}
	if base := baseName(u.Path); base != "" {
		return base
	}
	return or(oneLine(u.Host, 120), "link")
}

// pieceFromRaw decides by media type; bytes over the limit are named, not
// inlined.
func pieceFromRaw(p *a2a.Part, from origin, o *Options) piece {
	size := decodedLen(p.Base64)
	mime := mediaType(p)
	name := baseName(p.Filename)
	if textual(mime) {
		if text, ok := rawText(p.Base64); ok {
			mime = or(mime, "text/plain")
			return piece{
				kind: pieceFile, text: text, mime: mime, uri: partURI(p, name),
				line: describe(name, mime, size),
			}
		}
	}
	mime = or(mime, "application/octet-stream")
	line := describe(name, mime, size)
	if size > o.mediaBytes() {
		return tooLarge(line, p, from, o)
	}
	switch kind, _, _ := strings.Cut(mime, "/"); {
	case kind == "image" && mime != "image/svg+xml":
		mime = imageType(p.Base64, mime)
		return piece{kind: pieceMedia, line: describe(name, mime, size),
			block: mcp.ImageContent{Type: "image", Data: p.Base64, MIMEType: mime}}
	case kind == "audio":
		return piece{kind: pieceMedia, line: line,
			block: mcp.AudioContent{Type: "audio", Data: p.Base64, MIMEType: mime}}
	}
	if from.readable != "" && from.artifact != nil && o.Task != "" {
		line += ", resource " + ArtifactURI(o.Task, from.artifact.ArtifactID)
	}
	return piece{kind: pieceBlob, line: line, block: mcp.EmbeddedResource{
		Type:     "resource",
		Resource: mcp.BlobResourceContents{URI: partURI(p, name), MIMEType: mime, Blob: p.Base64},
	}}
}

func tooLarge(line string, p *a2a.Part, from origin, o *Options) piece {
	line += ": over the limit of " + sizeText(o.mediaBytes()) + ", not included"
	if from.artifact == nil || from.readable == "" || o.Task == "" {
		return piece{kind: pieceNote, line: "[" + line + "; ask the agent for a link or a smaller one]"}
	}
	uri := ArtifactURI(o.Task, from.artifact.ArtifactID)
	size := int64(decodedLen(p.Base64))
	return piece{
		kind: pieceLink,
		line: "[" + line + "; read the resource " + uri + "]",
		block: mcp.ResourceLink{Type: "resource_link", URI: uri, MIMEType: mediaType(p), Size: &size,
			Name: or(baseName(p.Filename), or(oneLine(from.artifact.Name, 120), "artifact"))},
	}
}

// describe is the one line that stands for a file or medium.
func describe(name, mime string, size int) string {
	inner := mime + ", " + sizeText(size)
	if name == "" {
		return "(" + inner + ")"
	}
	return name + " (" + inner + ")"
}

// partURI names embedded bytes: by their base name, else by their digest.
func partURI(p *a2a.Part, name string) string {
	if name != "" {
		return "a2a://part/" + escapePath(name)
	}
	sum := sha256.Sum256([]byte(p.Base64))
	return "a2a://part/" + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// baseName keeps the last path element of an agent's file name, cleaned; "" for
// none. Both kinds of slash separate.
func baseName(name string) string {
	if name == "" {
		return ""
	}
	name = CleanName(strings.ReplaceAll(name, `\`, "/"))
	name = path.Base(name)
	if name == "." || name == "/" || name == ".." {
		return ""
	}
	return CutRunes(name, 200)
}

// decodedLen is the number of bytes in padded standard base64.
func decodedLen(b64 string) int {
	n := len(b64) / 4 * 3
	switch {
	case strings.HasSuffix(b64, "=="):
		n -= 2
	case strings.HasSuffix(b64, "="):
		n--
	}
	return max(n, 0)
}

func rawText(b64 string) (string, bool) {
	b, err := base64.StdEncoding.DecodeString(b64)
	if err != nil || !utf8.Valid(b) || strings.IndexByte(string(b), 0) >= 0 {
		return "", false
	}
	return CleanText(string(b)), true
}

// blockMeta says what the part was (docs/protocol.md, "Parts"). The agent's own
// context and task ids stay out, the handles stand for them.
func blockMeta(p *a2a.Part, from origin, o *Options) json.RawMessage {
	b := newObject(make([]byte, 0, 160))
	b.str("partKind", partKindName(p.Kind))
	b.str("filename", baseName(p.Filename))
	b.str("mediaType", oneLine(p.MediaType, 200))
	b.raw("metadata", from.meta.take(p.Metadata))
	if a := from.artifact; a != nil {
		b.str("artifactId", shortID(a.ArtifactID))
		b.str("artifactName", oneLine(a.Name, 200))
		b.str("artifactDescription", oneLine(a.Description, 500))
	}
	b.str("messageId", shortID(from.messageID))
	b.str("contextHandle", o.Context)
	b.str("taskHandle", o.Task)
	if p.Kind == a2a.PartUnknown && len(p.Unknown) > 0 && len(p.Unknown) <= maxUnknown {
		b.raw("part", p.Unknown)
	}
	return b.end()
}

// maxID bounds, in bytes, an id of the agent's that is shown or asked for again.
const maxID = 512

func shortID(id string) string { return CutBytes(id, maxID) }

// maxUnknown bounds an unreadable part that is handed on for programs to see.
const maxUnknown = 4096

func partKindName(k a2a.PartKind) string {
	switch k {
	case a2a.PartText:
		return "text"
	case a2a.PartData:
		return "data"
	case a2a.PartURL:
		return "url"
	case a2a.PartRaw:
		return "raw"
	case a2a.PartUnknown:
		return "unknown"
	}
	return "unknown"
}

// blocks appends the content of a piece: the medium or link, then its line.
func (pc *piece) blocks(dst []mcp.Content) []mcp.Content {
	meta := &mcp.Meta{AdditionalFields: map[string]any{BlockMetaKey: pc.meta}}
	if pc.meta == nil {
		meta = nil
	}
	switch pc.kind {
	case pieceText, pieceData:
		return append(dst, mcp.TextContent{Type: "text", Text: pc.text, Meta: meta})
	case pieceFile:
		dst = append(dst, mcp.EmbeddedResource{Type: "resource", Meta: meta,
			Resource: mcp.TextResourceContents{URI: pc.uri, MIMEType: pc.mime, Text: pc.text}})
	case pieceMedia, pieceBlob, pieceLink:
		if pc.block != nil {
			dst = append(dst, withMeta(pc.block, meta))
		}
	case pieceNote:
	}
	if pc.line == "" {
		return dst
	}
	if pc.kind != pieceNote && len(pc.meta) > maxUnknown {
		meta = nil // the block before it has it
	}
	return append(dst, mcp.TextContent{Type: "text", Text: pc.line, Meta: meta})
}

func withMeta(c mcp.Content, meta *mcp.Meta) mcp.Content {
	switch b := c.(type) {
	case mcp.ImageContent:
		b.Meta = meta
		return b
	case mcp.AudioContent:
		b.Meta = meta
		return b
	case mcp.ResourceLink:
		b.Meta = meta
		return b
	case mcp.EmbeddedResource:
		b.Meta = meta
		return b
	}
	return c
}

// words is the piece in the text of the structured half.
func (pc *piece) words() string {
	switch pc.kind {
	case pieceText, pieceData:
		return pc.text
	case pieceFile:
		return pc.line + ":\n" + pc.text
	case pieceMedia, pieceBlob, pieceLink, pieceNote:
		return pc.line
	}
	return pc.line
}

// ResourcesFromArtifact renders an artifact for resources/read under uri: its
// text parts joined, then each raw part. URL parts stand as text. The contents
// are whole, whatever limits a result has. An artifact without any content
// gives one empty text.
func ResourcesFromArtifact(a *a2a.Artifact, uri string) []mcp.ResourceContents {
	o := Options{MediaBytes: maxInt}
	ps := piecesFromParts(nil, a.Parts, origin{artifact: a}, &o)
	var out []mcp.ResourceContents
	var text []string
	mime := "text/plain"
	for i := range ps {
		switch b := ps[i].block.(type) {
		case mcp.ImageContent:
			out = append(out, mcp.BlobResourceContents{URI: uri, MIMEType: b.MIMEType, Blob: b.Data})
		case mcp.AudioContent:
			out = append(out, mcp.BlobResourceContents{URI: uri, MIMEType: b.MIMEType, Blob: b.Data})
		case mcp.EmbeddedResource:
			if blob, ok := b.Resource.(mcp.BlobResourceContents); ok {
				blob.URI = uri
				out = append(out, blob)
			}
		default:
			text = append(text, or(ps[i].text, ps[i].line))
			switch {
			case len(ps) > 1:
			case ps[i].kind == pieceData:
				mime = "application/json"
			case ps[i].kind == pieceFile:
				mime = ps[i].mime
			}
		}
	}
	if text != nil || out == nil {
		first := mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: strings.Join(text, "\n")}
		out = append([]mcp.ResourceContents{first}, out...)
	}
	return out
}

const maxInt = int(^uint(0) >> 1)

// bytes is the base64 of an inlined medium or blob.
func (pc *piece) bytes() string {
	switch b := pc.block.(type) {
	case mcp.ImageContent:
		return b.Data
	case mcp.AudioContent:
		return b.Data
	case mcp.EmbeddedResource:
		if blob, ok := b.Resource.(mcp.BlobResourceContents); ok {
			return blob.Blob
		}
	}
	return ""
}
