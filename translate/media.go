package translate

import (
	"encoding/base64"
	"path"
	"strings"

	"a2agate/a2a"
)

// mediaType is the part's media type without parameters, in lower case; from
// the file name where the agent gave none, "" where that says nothing either.
func mediaType(p *a2a.Part) string {
	mime, _, _ := strings.Cut(p.MediaType, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	if validMediaType(mime) {
		return mime
	}
	if p.MediaType != "" && strings.TrimSpace(p.MediaType) != "" {
		return "application/octet-stream"
	}
	return typeByExtension(strings.ToLower(path.Ext(p.Filename)))
}

// validMediaType reports whether s is type/subtype of RFC 6838 names.
func validMediaType(s string) bool {
	kind, sub, ok := strings.Cut(s, "/")
	if !ok || kind == "" || sub == "" || len(s) > 127 {
		return false
	}
	for _, c := range []byte(kind + sub) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.IndexByte("!#$&-^_.+", c) >= 0:
		default:
			return false
		}
	}
	return true
}

func typeByExtension(ext string) string {
	switch ext {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".svg":
		return "image/svg+xml"
	case ".wav":
		return "audio/wav"
	case ".mp3":
		return "audio/mpeg"
	case ".ogg":
		return "audio/ogg"
	case ".pdf":
		return "application/pdf"
	case ".json":
		return "application/json"
	case ".csv":
		return "text/csv"
	case ".md":
		return "text/markdown"
	case ".html", ".htm":
		return "text/html"
	case ".xml":
		return "application/xml"
	case ".txt", ".log":
		return "text/plain"
	}
	return ""
}

// textual reports whether bytes of this type are text when they are UTF-8. No
// type at all counts: the bytes decide. An SVG is text, not an image: models
// do not take it as one, and a client that tried would lose the whole answer.
func textual(mime string) bool {
	kind, sub, _ := strings.Cut(mime, "/")
	switch {
	case mime == "", kind == "text", mime == "image/svg+xml":
		return true
	case kind != "application":
		return false
	case strings.HasSuffix(sub, "+json"), strings.HasSuffix(sub, "+xml"), strings.HasSuffix(sub, "+yaml"):
		return true
	}
	switch sub {
	case "json", "jsonl", "x-ndjson", "ndjson", "xml", "yaml", "x-yaml", "toml", "sql",
		"javascript", "x-javascript", "ecmascript", "typescript", "x-sh", "x-python", "graphql", "csv",
		"x-www-form-urlencoded", "rtf", "x-tex":
		return true
	}
	return false
}

// imageType returns the type that the first bytes of an image show, declared
// where they show none: a model's API refuses a whole conversation over a PNG
// that calls itself a JPEG.
func imageType(b64, declared string) string {
	head, err := base64.StdEncoding.DecodeString(b64[:min(len(b64), 16)/4*4])
	if err != nil {
		return declared
	}
	switch s := string(head); {
	case strings.HasPrefix(s, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case strings.HasPrefix(s, "\xff\xd8\xff"):
		return "image/jpeg"
	case strings.HasPrefix(s, "GIF87a"), strings.HasPrefix(s, "GIF89a"):
		return "image/gif"
	case strings.HasPrefix(s, "RIFF") && len(s) >= 12 && s[8:12] == "WEBP":
		return "image/webp"
	}
	return declared
}
