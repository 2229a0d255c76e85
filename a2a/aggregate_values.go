package a2a

import "strings"

// sameMessage reports whether two status messages are one and the same.
func sameMessage(a, b *Message) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.MessageID != "" || b.MessageID != "" {
		return a.MessageID == b.MessageID
	}
	return messageText(a) == messageText(b) && len(a.Parts) == len(b.Parts)
}

// messageText joins the text parts of a message by line feeds.
func messageText(m *Message) string {
	var only string
	var texts []string
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == PartText && p.Text != "" {
			only = p.Text
			texts = append(texts, p.Text)
		}
	}
	if len(texts) <= 1 {
		return only
	}
	return strings.Join(texts, "\n")
}

// partOverhead is what a part costs beside its content.
const partOverhead = 128

func partsSize(parts []Part) int64 {
	var n int64
	for i := range parts {
		p := &parts[i]
		n += partOverhead + int64(len(p.Text)+len(p.Data)+len(p.URL)+len(p.Base64)+len(p.Metadata)+len(p.Unknown))
	}
	return n
}

// headSize is what an artifact holds beside its parts.
func headSize(art *Artifact) int64 {
	return int64(len(art.ArtifactID) + len(art.Name) + len(art.Description) + len(art.Metadata))
}

func messageSize(m *Message) int64 {
	return partOverhead + int64(len(m.Metadata)) + partsSize(m.Parts)
}
