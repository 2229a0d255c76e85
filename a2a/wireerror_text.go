package a2a

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// messageBytes bounds an agent's own error message.
	messageBytes = 1000
	// excerptBytes bounds what is shown of a body that is no A2A answer.
	excerptBytes = 256
	// excerptFrom bounds how much of the body is looked at for that.
	excerptFrom = 8 << 10
)

// plainLine makes one line of plain text out of what an agent wrote, at most
// max bytes long: control, bidi and zero-width characters go, runs of white
// space become one blank. Agents are not trusted with a terminal or a model's
// prompt layout.
func plainLine(s string, max int) string {
	var b strings.Builder
	blank := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			blank = b.Len() > 0
			continue
		case hidden(r):
			continue
		}
		n := utf8.RuneLen(r)
		if blank {
			n++
		}
		if b.Len()+n > max {
			b.WriteString("…")
			break
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hidden reports whether a character changes how others show without showing
// itself.
func hidden(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e ||
		r >= 0x2060 && r <= 0x206f || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f
}

// excerpt returns the readable text of a body that is no A2A answer: one line,
// no markup, at most excerptBytes. It is "" where nothing readable is left.
func excerpt(body []byte) string {
	body = body[:min(len(body), excerptFrom)]
	body = bytes.ToValidUTF8(body, nil)
	text := string(body)
	if looksHTML(body) {
		text = withoutMarkup(text)
	}
	return plainLine(text, excerptBytes)
}

// quoted is excerpt for what should have been an answer, which may name tasks,
// contexts and messages: callers know those by handles, so JSON that looks as
// if it did is not shown.
func quoted(body []byte) string {
	body = body[:min(len(body), excerptFrom)]
	if bytes.Contains(body, []byte(`Id"`)) || bytes.Contains(body, []byte(`"task"`)) {
		return ""
	}
	return excerpt(body)
}

// looksHTML reports whether a body begins like markup.
func looksHTML(body []byte) bool {
	b := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	return len(b) > 0 && b[0] == '<'
}

// indexFold is strings.Index that takes ASCII letters of either case for the
// same, and looks at what comes before the find only.
func indexFold(s, sub string) int {
	for at := 0; ; at++ {
		i := strings.IndexByte(s[at:], sub[0])
		if i < 0 {
			return -1
		}
		if at += i; hasPrefixFold(s[at:], sub) {
			return at
		}
	}
}

// withoutMarkup drops tags, comments, scripts and styles. No angle bracket is
// left, whatever the input.
func withoutMarkup(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		b.WriteByte(' ')
		s = s[i:]
		end := "" // what ends the element whose text is not for readers
		switch {
		case strings.HasPrefix(s, "<!--"):
			end = "-->"
		case hasPrefixFold(s, "<script"):
			end = "</script"
		case hasPrefixFold(s, "<style"):
			end = "</style"
		}
		if end != "" {
			j := indexFold(s, end)
			if j < 0 {
				break
			}
			s = s[j:]
		}
		j := strings.IndexByte(s, '>')
		if j < 0 {
			break
		}
		s = s[j+1:]
	}
	return strings.NewReplacer("<", "", ">", "").Replace(b.String())
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
