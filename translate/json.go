package translate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. The output is always valid UTF-8
// (a bad byte becomes U+FFFD) and holds no raw control character, so it fits
// on one line of a stream. Nothing is escaped for HTML: what an agent wrote
// stays readable.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start, i := 0, 0
	for i < len(s) {
		if i = skipPlain(s, i); i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscaped(dst, c)
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// skipPlain returns the first index from i on whose byte needs a look: a
// control character, a quote, a backslash or a byte of a longer rune. It reads
// eight bytes at a time, which is what keeps a large result cheap.
func skipPlain(s string, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for i+8 <= len(s) {
		w := binary.LittleEndian.Uint64([]byte(s[i : i+8]))
		quote := w ^ (ones * '"')
		slash := w ^ (ones * '\\')
		// A byte below n borrows into its high bit; bytes with the high bit
		// already set are caught by w itself.
		odd := w | (w - ones*0x20) | (quote - ones) | (slash - ones)
		if odd&highs != 0 {
			break
		}
		i += 8
	}
	for i < len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
		i++
	}
	return i
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendRaw appends raw, which must be one valid JSON value, byte for byte,
// except that line breaks between its tokens are left out (a stream event is
// one line) and bad UTF-8 becomes U+FFFD. It never recurses, so the depth of
// the value does not matter. An empty raw is null.
func AppendRaw(dst []byte, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return append(dst, "null"...)
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\ufffd"))
	}
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return append(dst, raw...)
	}
	// A raw line break is not allowed inside a JSON string, so each one is
	// white space between tokens and nothing depends on it.
	for _, c := range raw {
		if c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return dst
}

// AppendMeta appends a _meta object with the entries in order. A key that
// comes twice keeps its first value. It returns dst unchanged for no entries.
func AppendMeta(dst []byte, lists ...[]MetaEntry) []byte {
	start := len(dst)
	var seen []string
	for _, list := range lists {
		for _, e := range list {
			if contains(seen, e.Key) {
				continue
			}
			seen = append(seen, e.Key)
			if len(dst) == start {
				dst = append(dst, '{')
			} else {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, e.Key)
			dst = append(dst, ':')
			dst = AppendRaw(dst, e.Value)
		}
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, '}')
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// object appends the members of one JSON object, each only when it has
// something to say. The zero object writes to a nil slice.
type object struct {
	dst   []byte
	begun bool
}

func newObject(dst []byte) object { return object{dst: append(dst, '{')} }

func (o *object) key(k string) {
	if o.begun {
		o.dst = append(o.dst, ',')
	}
	o.begun = true
	o.dst = append(o.dst, '"')
	o.dst = append(o.dst, k...)
	o.dst = append(o.dst, '"', ':')
}

// str adds a string member unless it is empty.
func (o *object) str(k, v string) {
	if v == "" {
		return
	}
	o.key(k)
	o.dst = AppendString(o.dst, v)
}

// raw adds a raw member unless it is nil.
func (o *object) raw(k string, v json.RawMessage) {
	if v == nil {
		return
	}
	o.key(k)
	o.dst = AppendRaw(o.dst, v)
}

func (o *object) end() []byte { return append(o.dst, '}') }

// keyString is key for a name that may need escaping.
func (o *object) keyString(k string) {
	if o.begun {
		o.dst = append(o.dst, ',')
	}
	o.begun = true
	o.dst = AppendString(o.dst, k)
	o.dst = append(o.dst, ':')
}

// member is one name and value of an object, in the order they were written.
type member struct {
	name  string
	value json.RawMessage
}

// orderedObject reads one level of a JSON object and keeps its order; of a
// name that comes twice the last value counts, in the first place.
func orderedObject(raw json.RawMessage) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []member
	at := map[string]int{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, false
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return nil, false
		}
		if i, twice := at[name]; twice {
			out[i].value = v
			continue
		}
		at[name] = len(out)
		out = append(out, member{name, v})
	}
	_, err := dec.Token()
	return out, err == nil
}
