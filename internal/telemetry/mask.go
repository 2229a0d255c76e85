package telemetry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// masked stands for a secret.
const masked = "***"

// patterns are what looks like a secret wherever it stands: a bearer token, a
// member or parameter whose name says so, a private key.
var patterns = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(bearer|basic)[ \t]+[A-Za-z0-9._~+/=-]{4,}`),
	regexp.MustCompile(`(?i)("[^"]*(?:password|passwd|secret|token|api[-_]?key|authorization|credential|cookie)[^"]*"\s*:\s*)"(?:[^"\\]|\\.)*"`),
	regexp.MustCompile(`(?i)\b([a-z_-]*(?:password|passwd|secret|token|api[-_]?key|assertion)=)[^&\s"]+`),
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----`),
}

var replacements = []string{"$1 " + masked, `$1"` + masked + `"`, "${1}" + masked, masked}

// harmlessHeaders carry no credential; what any other header of a request says
// is masked in what is logged of that exchange.
var harmlessHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Content-Type": true, "Content-Length": true, "User-Agent": true,
	"A2a-Version": true, "A2a-Extensions": true, "X-A2a-Extensions": true, "Traceparent": true, "Tracestate": true,
	"Idempotency-Key": true, "If-None-Match": true, "If-Modified-Since": true, "Cache-Control": true, "Connection": true,
}

// minSecret is the least length of a value that is masked wherever it stands;
// shorter ones would eat ordinary words.
const minSecret = 4

// secretsOf are the values of a request that may be credentials, and the forms
// in which an agent may repeat them.
func secretsOf(req *http.Request) [][]byte {
	var values []string
	add := func(v string) {
		if len(v) >= minSecret {
			values = append(values, v)
		}
	}
	for name, list := range req.Header {
		if harmlessHeaders[http.CanonicalHeaderKey(name)] {
			continue
		}
		for _, v := range list {
			add(v)
			scheme, rest, ok := strings.Cut(v, " ")
			if !ok {
				continue
			}
			add(rest)
			if strings.EqualFold(scheme, "Basic") {
				if user, err := base64.StdEncoding.DecodeString(rest); err == nil {
					_, password, _ := strings.Cut(string(user), ":")
					add(string(user))
					add(password)
				}
			}
		}
	}
	for _, c := range req.Cookies() {
		add(c.Value)
	}
	for _, list := range req.URL.Query() {
		for _, v := range list {
			add(v)
		}
	}
	return forms(values)
}

// forms are the values as they are, as JSON texts and as parts of a URL, the
// longest first so that no remainder of a longer one stays.
func forms(values []string) [][]byte {
	var out [][]byte
	add := func(s string) {
		if !slices.ContainsFunc(out, func(b []byte) bool { return string(b) == s }) {
			out = append(out, []byte(s))
		}
	}
	for _, v := range values {
		add(v)
		if quoted, err := json.Marshal(v); err == nil {
			add(string(quoted[1 : len(quoted)-1]))
		}
		add(url.QueryEscape(v))
	}
	slices.SortFunc(out, func(a, b []byte) int { return len(b) - len(a) })
	return out
}

// Mask returns raw without the secrets named and without what looks like one.
func Mask(raw []byte, secrets [][]byte) []byte {
	out := raw
	for _, s := range secrets {
		if len(s) > 0 && bytes.Contains(out, s) {
			out = bytes.ReplaceAll(out, s, []byte(masked))
		}
	}
	for i, p := range patterns {
		out = p.ReplaceAll(out, []byte(replacements[i]))
	}
	return out
}
