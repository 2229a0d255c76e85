package translate

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"a2agate/a2a"
)

// ElicitParamsFromAsk is the params of elicitation/create for a revision: as a
// request of its own on a legacy wire, inside inputRequests on a modern one.
// It is nil where the revision has no way to put the question (2025-03-26 at
// all; 2025-06-18 a url or a multiple choice): the envelope asks it then.
func ElicitParamsFromAsk(a Ask, rev Revision) json.RawMessage {
	if rev < Rev20250618 {
		return nil
	}
	o := newObject(nil)
	if a.URL != "" {
		if rev < Rev20251125 {
			return nil
		}
		o.str("mode", "url")
		o.key("message")
		o.dst = AppendString(o.dst, a.Message)
		o.str("url", a.URL)
		if !rev.Modern() {
			o.str("elicitationId", or(a.ElicitationID, a.Key))
		}
		return o.end()
	}
	schema := a.Schema
	if f, problem := formFromSchema(schema); problem == "" {
		if schema = f.schema(rev); schema == nil {
			return nil
		}
	} else {
		schema = json.RawMessage(answerSchema)
	}
	if rev >= Rev20251125 {
		o.str("mode", "form")
	}
	o.key("message")
	o.dst = AppendString(o.dst, withoutLinks(a.Message))
	o.raw("requestedSchema", schema)
	return o.end()
}

// withoutLinks keeps the address of a URL and drops what makes it clickable: a
// form's words must hold no link (MCP, elicitation, security).
func withoutLinks(s string) string {
	schemeEnd := []byte("://")
	if !strings.Contains(s, string(schemeEnd)) {
		return s
	}
	// What stands after a dropped scheme can complete another one ("::////"), so
	// it is the result that is looked at, byte by byte.
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		b = append(b, s[i])
		if !bytes.HasSuffix(b, schemeEnd) {
			continue
		}
		b = b[:len(b)-len(schemeEnd)]
		for len(b) > 0 && isSchemeByte(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
	}
	return string(b)
}

func isSchemeByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '+' || c == '-' || c == '.'
}

// AuthURLFromStatus is where the user signs in: the first http(s) url of a url
// part of the status, else of its text; "" for none.
func AuthURLFromStatus(st a2a.Status) string {
	if st.Message == nil || st.Message.Role == a2a.RoleUser {
		return ""
	}
	for i := range st.Message.Parts {
		if p := &st.Message.Parts[i]; p.Kind == a2a.PartURL {
			if u := webURL(p.URL); u != "" {
				return u
			}
		}
	}
	for i := range st.Message.Parts {
		if p := &st.Message.Parts[i]; p.Kind == a2a.PartText {
			if u := firstURL(p.Text); u != "" {
				return u
			}
		}
	}
	return ""
}

// What is taken for a URL in running text has at most maxURL bytes, and is
// looked for in at most maxURLTries places: a text can begin a URL millions of
// times.
const (
	maxURL      = 8 << 10
	maxURLTries = 100
)

// firstURL finds the first http(s) URL in running text, without the
// punctuation that ends the sentence around it.
func firstURL(s string) string {
	at := 0
	for range maxURLTries {
		i := indexWeb(s[at:])
		if i < 0 {
			return ""
		}
		at += i
		end := at
		for _, r := range s[at:] {
			if r <= ' ' || r == 0x7f || strings.ContainsRune("<>\"`{}|\\^", r) || invisible(r) {
				break
			}
			if end += len(string(r)); end > at+maxURL {
				break
			}
		}
		if end <= at+maxURL {
			if u := webURL(trimURL(s[at:end])); u != "" {
				return u
			}
		}
		at += len("http")
	}
	return ""
}

// indexWeb is the index of the first http:// or https:// in any case.
func indexWeb(s string) int {
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			return -1
		}
		i += at
		for _, scheme := range [...]string{"https", "http"} {
			if n := len(scheme); i >= n && strings.EqualFold(s[i-n:i], scheme) {
				return i - n
			}
		}
		at = i + 3
	}
}

// trimURL drops what ends a sentence rather than a URL, and a bracket that was
// opened before the URL.
func trimURL(s string) string {
	for s != "" {
		switch c := s[len(s)-1]; c {
		case '.', ',', ';', ':', '!', '?', '\'', '*', '_':
		case ')', ']':
			open := map[byte]string{')': "(", ']': "["}[c]
			if strings.Count(s, open) >= strings.Count(s, string(c)) {
				return s
			}
		default:
			return s
		}
		s = s[:len(s)-1]
	}
	return s
}

// webURL returns s when it is an absolute http(s) URL without user information
// (which dresses one host up as another), else "".
func webURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return ""
	}
	if sch := strings.ToLower(u.Scheme); sch != "http" && sch != "https" {
		return ""
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || invisible(r) {
			return ""
		}
	}
	return s
}
