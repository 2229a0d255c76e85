package credential

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// masked is what every printing of a Secret shows, an empty one included:
// whether a secret is set is nobody's business either.
const masked = "***"

// Secret is a string that cannot print itself: fmt, encoding/json,
// encoding.TextMarshaler and log/slog all show "***". The value stands behind
// a pointer because fmt prints unexported struct fields by reflection, past
// every method. The zero Secret is empty. It is immutable and may be copied.
type Secret struct {
	value *string
}

// NewSecret wraps s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{value: &s}
}

// Reveal returns the wrapped string. Its result goes on the wire and nowhere
// else.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Empty reports whether there is nothing to reveal.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// Equal compares in constant time; a reload uses it to tell whether an agent
// changed.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String returns "***".
func (Secret) String() string { return masked }

// GoString returns "***".
func (Secret) GoString() string { return masked }

// Format writes "***" for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// MarshalJSON returns "***" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + masked + `"`), nil }

// MarshalText returns "***".
func (Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// LogValue returns "***".
func (Secret) LogValue() slog.Value { return slog.StringValue(masked) }

// UnmarshalJSON reads a JSON string.
func (s *Secret) UnmarshalJSON(data []byte) error {
	var v string
	if err := json.Unmarshal(data, &v); err != nil {
		return errNotAString
	}
	*s = NewSecret(v)
	return nil
}

// UnmarshalText reads the text as it stands.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

// redactable is the length from which a secret is looked for in a text: a
// shorter one stands in half of all words, and is no secret.
const redactable = 4

// redact returns text with every occurrence of the secrets masked.
func redact(text string, secrets ...Secret) string {
	for _, s := range secrets {
		if v := s.Reveal(); len(v) >= redactable {
			text = strings.ReplaceAll(text, v, masked)
		}
	}
	return text
}

// scrub returns text with every occurrence of the secrets masked, control
// characters dropped and at most max bytes kept.
func scrub(text string, max int, secrets ...Secret) string {
	text = redact(text, secrets...)
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > max {
		text = strings.ToValidUTF8(text[:max], "") + "…"
	}
	return text
}
