package translate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"slices"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. The output is always valid UTF-8
// (a bad byte becomes U+FFFD) and holds no raw control character, so it fits
// on one line of a stream. Nothing is escaped for HTML: what an agent wrote
// stays readable.
func AppendString(dst []byte, s string) []byte {
	dst = slices.Grow(dst, len(s)+len(s)/4+escapeRoom)
	buf, n := dst[:cap(dst)], len(dst)
	buf[n] = '"'
	n++
	for i := 0; i < len(s); {
		if len(buf)-n < escapeRoom {
			dst = slices.Grow(buf[:n], len(s)-i+(len(s)-i)/4+escapeRoom)
			buf = dst[:cap(dst)]
		}
		if i+8 <= len(s) {
			// Eight bytes are copied at once, and as many of them count as need
			// no second look: that is what keeps a large result cheap.
			w := binary.LittleEndian.Uint64([]byte(s[i : i+8]))
			binary.LittleEndian.PutUint64(buf[n:], w)
			k := plainBytes(w)
			i, n = i+k, n+k
			if k == 8 {
				continue
			}
		}
		size, wrote := appendSpecial(buf[n:], s[i:])
		i, n = i+size, n+wrote
	}
	buf[n] = '"'
	return buf[:n+1]
}

// escapeRoom is more than one step of AppendString can write.
const escapeRoom = 32

// plainBytes counts the bytes of w, from its lowest, that stand in a JSON
// string as they are: ASCII but for control characters, quotes and
// backslashes.
func plainBytes(w uint64) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	quote := w ^ (ones * '"')
	slash := w ^ (ones * '\\')
	// A byte below n borrows into its high bit; bytes with the high bit
	// already set are caught by w itself. A borrow can only mislead about the
	// bytes above the first one that is caught rightly.
	odd := (w | (w - ones*0x20) | (quote - ones) | (slash - ones)) & highs
	return bits.TrailingZeros64(odd) / 8
}

// appendSpecial writes the first character of s to buf, escaped if need be,
// and returns how many bytes it took and wrote.
func appendSpecial(buf []byte, s string) (size, wrote int) {
	c := s[0]
	switch {
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			return 1, copy(buf, "\ufffd")
		}
		return size, copy(buf, s[:size])
	case c == '"' || c == '\\':
		buf[0], buf[1] = '\\', c
		return 1, 2
	case c >= 0x20:
		buf[0] = c
		return 1, 1
	case c == '\n':
		return 1, copy(buf, `\n`)
	case c == '\r':
		return 1, copy(buf, `\r`)
	case c == '\t':
		return 1, copy(buf, `\t`)
	}
	wrote = copy(buf, `\u00`)
	buf[4], buf[5] = hexDigits[c>>4], hexDigits[c&15]
	return 1, wrote + 2
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
			if slices.Contains(seen, e.Key) {
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
