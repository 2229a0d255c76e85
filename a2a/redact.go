package a2a

import (
	"net/http"
	"strings"
)

// redactor is what an Authorizer may be beside: it takes its secrets out of a
// text.
type redactor interface {
	Redact(text string) string
}

// secrets are what requests to an agent carry that no error may show: some
// agents repeat in a refusal what they were sent.
type secrets struct {
	auth    redactor // nil without a credential that can do it
	headers []string // values of configured headers
}

// secretsOf returns what of a credential, which may be nil, and of configured
// headers is to be kept out of errors.
func secretsOf(auth Authorizer, headers http.Header) secrets {
	var s secrets
	if bound, ok := auth.(originBound); ok {
		auth = bound.Authorizer
	}
	s.auth, _ = auth.(redactor)
	for name, values := range headers {
		if !secretHeader(name) {
			continue
		}
		for _, v := range values {
			if _, token, ok := strings.Cut(v, " "); ok && len(token) >= redactableHeader {
				s.headers = append(s.headers, token) // behind the scheme of Authorization
			}
			if len(v) >= redactableHeader {
				s.headers = append(s.headers, v)
			}
		}
	}
	return s
}

// redactableHeader is the length from which the value of a header counts as a
// secret that can be told from other text.
const redactableHeader = 6

// secretHeader reports whether a configured header holds a credential, by its
// name.
func secretHeader(name string) bool {
	name = strings.ToLower(name)
	for _, part := range [...]string{"authoriz", "x-auth", "cookie", "key", "token", "secret", "password", "credential", "signature"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// text returns s with the secrets masked.
func (s secrets) text(text string) string {
	if s.auth != nil {
		text = s.auth.Redact(text)
	}
	for _, v := range s.headers {
		text = strings.ReplaceAll(text, v, "***")
	}
	return text
}

// body is text for a body. It returns its argument where there is nothing to
// mask, and never changes it.
func (s secrets) body(raw []byte) []byte {
	if s.auth == nil && len(s.headers) == 0 {
		return raw
	}
	return []byte(s.text(string(raw)))
}

// clean masks the secrets in everything of an error that can be shown.
func (s secrets) clean(e *Error) {
	if s.auth == nil && len(s.headers) == 0 {
		return
	}
	e.Message, e.Reason, e.Challenge = s.text(e.Message), s.text(e.Reason), s.text(e.Challenge)
	if len(e.Data) > 0 {
		e.Data = s.body(e.Data)
	}
}
