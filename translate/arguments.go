package translate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"a2agate/a2a"
)

// Arguments are what a caller puts into a message: the arguments text, data,
// files and metadata of a2a_send_message. At least one of the first three.
type Arguments struct {
	// Text is the message in words; empty counts as absent.
	Text string
	// Data is any JSON value, byte for byte; nil is absent, null is a value.
	Data  json.RawMessage
	Files []File
	// Metadata is the message's metadata, a JSON object; nil is absent.
	Metadata json.RawMessage
}

// File is one file of a message: Bytes or URL, not both.
type File struct {
	Name      string `json:"name"`
	MediaType string `json:"mediaType"`
	// Bytes is base64; the standard and the URL alphabet are taken, padding
	// and white space do not matter.
	Bytes string `json:"bytes"`
	URL   string `json:"url"`
}

// MessageFromArguments makes the user's message: parts in the order text,
// data, files. The caller sets MessageID, ContextID and TaskID. The error is an
// *ArgumentError.
func MessageFromArguments(args Arguments) (a2a.Message, error) {
	m := a2a.Message{Role: a2a.RoleUser}
	if args.Text != "" {
		m.Parts = append(m.Parts, a2a.Part{Kind: a2a.PartText, Text: args.Text})
	}
	if args.Data != nil {
		if !json.Valid(args.Data) {
			return m, &ArgumentError{"data", "is not valid JSON"}
		}
		m.Parts = append(m.Parts, a2a.Part{Kind: a2a.PartData, Data: args.Data})
	}
	for i := range args.Files {
		p, err := partFromFile(&args.Files[i], "files["+strconv.Itoa(i)+"]")
		if err != nil {
			return m, err
		}
		m.Parts = append(m.Parts, p)
	}
	if len(m.Parts) == 0 {
		return m, &ArgumentError{"text", "nothing to send: give at least one of text, data and files"}
	}
	if meta := bytes.TrimSpace(args.Metadata); len(meta) > 0 && string(meta) != "null" {
		if meta[0] != '{' || !json.Valid(meta) {
			return m, &ArgumentError{"metadata", "is not a JSON object"}
		}
		m.Metadata = args.Metadata
	}
	return m, nil
}

func partFromFile(f *File, field string) (a2a.Part, error) {
	p := a2a.Part{Filename: f.Name, MediaType: f.MediaType}
	switch {
	case f.Bytes != "" && f.URL != "":
		return p, &ArgumentError{field, "has both bytes and url: give one of them"}
	case f.URL != "":
		p.Kind, p.URL = a2a.PartURL, f.URL
		return p, nil
	case f.Bytes == "":
		return p, &ArgumentError{field, "has neither bytes nor url: give one of them"}
	}
	b, ok := decodeBase64(f.Bytes)
	if !ok {
		return p, &ArgumentError{field + ".bytes", quoteName(CutRunes(f.Bytes, 24)) + " is not base64"}
	}
	p.Kind, p.Base64 = a2a.PartRaw, base64.StdEncoding.EncodeToString(b)
	return p, nil
}

// decodeBase64 takes both alphabets, with or without padding and white space.
func decodeBase64(s string) ([]byte, bool) {
	s = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, s)
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return b, err == nil
}
