package config

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// masked is what every printing of a Secret shows, of an empty one too.
const masked = "***"

// Secret is a string of the configuration that cannot print itself: fmt,
// encoding/json and log/slog show "***". The zero Secret is empty. The value
// is behind a pointer because fmt prints unexported fields by reflection.
// Secrets may be copied; compare them with Equal.
type Secret struct{ value *string }

// NewSecret wraps s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{value: &s}
}

// Reveal returns the string. It belongs on the wire and nowhere else.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Empty reports whether there is nothing to reveal.
func (s Secret) Empty() bool { return s.value == nil }

// Equal compares in constant time for secrets of one length.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(other.Reveal())) == 1
}

// String returns "***".
func (Secret) String() string { return masked }

// Format writes "***" for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// MarshalText returns "***"; encoding/json uses it too.
func (Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// LogValue returns "***".
func (Secret) LogValue() slog.Value { return slog.StringValue(masked) }
