package server

import "encoding/json"

// scanner walks a JSON text once, checking its grammar (RFC 8259) as it goes,
// and hands out the raw bytes of the values it passes. It never recurses, so
// nesting costs a byte a level, not stack. After bad is set every method
// returns at once.
type scanner struct {
	buf []byte
	pos int
	// bad says that the text is not JSON.
	bad bool
	// depth counts the containers opened by the caller through open; deepest
	// is the deepest nesting met.
	depth, deepest int
	// inner counts the containers open inside value. Which of them are
	// objects stands in bits for the first 64 and in spill for the others, so
	// that a usual text costs no allocation.
	inner int
	bits  uint64
	spill []bool
	// keyAt is where the key stands that member returned last.
	keyAt int
}

func newScanner(buf []byte) scanner { return scanner{buf: buf} }

// ws passes white space.
func (s *scanner) ws() {
	for s.pos < len(s.buf) {
		switch s.buf[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.buf) {
		return s.buf[s.pos]
	}
	return 0
}

func (s *scanner) fail() { s.bad = true }

// open enters the object or array that starts here; false when the next value
// is something else.
func (s *scanner) open(kind byte) bool {
	if s.bad || s.peek() != kind {
		return false
	}
	s.pos++
	s.depth++
	s.deepest = max(s.deepest, s.depth)
	return true
}

// member goes to the n-th member (from 0) of the object entered with open and
// returns its decoded key; the value is next. false at the end of the object.
func (s *scanner) member(n int) (key []byte, ok bool) {
	if !s.next(n, '}') {
		return nil, false
	}
	s.keyAt = s.pos
	raw := s.str()
	s.colon()
	if s.bad {
		return nil, false
	}
	return unquoteBytes(raw), true
}

// element goes to the n-th element (from 0) of the array entered with open.
// false at the end of the array.
func (s *scanner) element(n int) bool { return s.next(n, ']') }

func (s *scanner) next(n int, closing byte) bool {
	if s.bad {
		return false
	}
	s.ws()
	if s.peek() == closing {
		s.pos++
		s.depth--
		return false
	}
	if n > 0 {
		if s.peek() != ',' {
			s.fail()
			return false
		}
		s.pos++
		s.ws()
	}
	return true
}

func (s *scanner) colon() {
	s.ws()
	if s.peek() != ':' {
		s.fail()
		return
	}
	s.pos++
	s.ws()
}

// value passes the value that starts here and returns its bytes.
func (s *scanner) value() json.RawMessage {
	start := s.pos
	s.inner = 0
	for !s.bad {
		if s.begin() {
			continue // a container was opened, its first value is next
		}
		if s.unwind() {
			return s.buf[start:s.pos:s.pos]
		}
	}
	return nil
}

// begin passes a scalar or an empty container, or enters a container and
// reports that a value follows in it.
func (s *scanner) begin() (entered bool) {
	switch c := s.peek(); {
	case c == '"':
		s.str()
	case c == '{' || c == '[':
		s.pos++
		s.push(c == '{')
		s.ws()
		if s.peek() == closer(c == '{') {
			s.pos++
			s.inner--
			return false
		}
		if c == '{' {
			s.key()
		}
		return true
	case c == '-' || c >= '0' && c <= '9':
		s.number()
	case c == 't':
		s.literal("true")
	case c == 'f':
		s.literal("false")
	case c == 'n':
		s.literal("null")
	default:
		s.fail()
	}
	return false
}

// unwind, after a value, closes what ends here. It reports true when the
// outermost value is over, false when another value follows.
func (s *scanner) unwind() (done bool) {
	for !s.bad {
		if s.inner == 0 {
			return true
		}
		object := s.top()
		s.ws()
		switch s.peek() {
		case ',':
			s.pos++
			s.ws()
			if object {
				s.key()
			}
			return false
		case closer(object):
			s.pos++
			s.inner--
		default:
			s.fail()
		}
	}
	return false
}

// push notes a container opened inside value.
func (s *scanner) push(object bool) {
	if s.inner < 64 {
		s.bits &^= 1 << s.inner
		if object {
			s.bits |= 1 << s.inner
		}
	} else {
		s.spill = append(s.spill[:s.inner-64], object)
	}
	s.inner++
	s.deepest = max(s.deepest, s.depth+s.inner)
}

// top reports whether the innermost container is an object.
func (s *scanner) top() bool {
	if s.inner <= 64 {
		return s.bits&(1<<(s.inner-1)) != 0
	}
	return s.spill[s.inner-65]
}

func closer(object bool) byte {
	if object {
		return '}'
	}
	return ']'
}

func (s *scanner) key() {
	s.str()
	s.colon()
}

// str passes a string and returns it with its quotes.
func (s *scanner) str() json.RawMessage {
	start := s.pos
	if s.peek() != '"' {
		s.fail()
		return nil
	}
	buf := s.buf
	for i := s.pos + 1; i < len(buf); i++ {
		c := buf[i]
		if plain[c] {
			continue
		}
		switch c {
		case '"':
			s.pos = i + 1
			return buf[start:s.pos:s.pos]
		case '\\':
			n := escapeLen(buf[i:])
			if n == 0 {
				s.fail()
				return nil
			}
			i += n - 1
		default: // a raw control character
			s.fail()
			return nil
		}
	}
	s.fail()
	return nil
}

// plain are the bytes that mean nothing special inside a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// escapeLen is the length of the escape sequence b starts with, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (s *scanner) literal(word string) {
	if len(s.buf)-s.pos < len(word) || string(s.buf[s.pos:s.pos+len(word)]) != word {
		s.fail()
		return
	}
	s.pos += len(word)
}

func (s *scanner) number() {
	if s.peek() == '-' {
		s.pos++
	}
	switch c := s.peek(); {
	case c == '0':
		s.pos++
	case c >= '1' && c <= '9':
		s.digits()
	default:
		s.fail()
		return
	}
	if s.peek() == '.' {
		s.pos++
		s.digits()
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		s.digits()
	}
}

// digits passes at least one digit.
func (s *scanner) digits() {
	start := s.pos
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.pos++
	}
	if s.pos == start {
		s.fail()
	}
}

// end reports whether nothing but white space is left of a well-formed text.
func (s *scanner) end() bool {
	s.ws()
	return !s.bad && s.pos == len(s.buf)
}

// unquoteBytes decodes a string token without its quotes. Without escapes it
// returns a part of raw.
func unquoteBytes(raw json.RawMessage) []byte {
	if len(raw) < 2 {
		return nil
	}
	body := raw[1 : len(raw)-1]
	for _, c := range body {
		if c == '\\' {
			var v string
			if json.Unmarshal(raw, &v) != nil {
				return nil
			}
			return []byte(v)
		}
	}
	return body
}

// stringValue decodes raw when it is a string.
func stringValue(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return string(unquoteBytes(raw)), true
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// lookup returns the value under key in the object raw, which must be valid
// JSON. twice says that the key stands there more than once.
func lookup(raw json.RawMessage, key string) (value json.RawMessage, twice bool) {
	s := newScanner(raw)
	if !s.open('{') {
		return nil, false
	}
	for n := 0; ; n++ {
		k, ok := s.member(n)
		if !ok {
			return value, twice
		}
		v := s.value()
		if string(k) == key {
			twice = value != nil
			value = v
		}
	}
}
