package translate

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DescriptionBytes is where clients cut a tool description or the server's
// instructions.
const DescriptionBytes = 2048

// CleanName makes one harmless line of an agent's name, title or state:
// control, bidi, zero-width and other invisible characters are gone, white
// space is single blanks, bad UTF-8 is dropped.
func CleanName(s string) string {
	if isPlainName(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	blank := false
	for _, r := range stripEscapes(s) {
		switch {
		case unicode.IsSpace(r):
			blank = b.Len() > 0
		case invisible(r):
		default:
			if blank {
				b.WriteByte(' ')
				blank = false
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isPlainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c > '~' || c < ' ' || (c == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ')) {
			return false
		}
	}
	return true
}

// CleanDescription is CleanName for longer texts of a card: line breaks and
// tabs stay, runs of empty lines shrink to one.
func CleanDescription(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	breaks := 0
	for _, r := range strings.ReplaceAll(stripEscapes(s), "\r\n", "\n") {
		if r == '\r' {
			r = '\n'
		}
		switch {
		case r == '\n':
			breaks++
			continue
		case r != '\t' && invisible(r):
			continue
		}
		if breaks > 0 && b.Len() > 0 {
			b.WriteString("\n\n"[:min(breaks, 2)])
		}
		breaks = 0
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// CleanText makes an agent's answer harmless without changing what it says:
// ANSI escape sequences are gone, and so are control characters other than
// tab, line feed, carriage return and form feed. Bidi and joining characters
// stay, since answers in many scripts need them. Bad UTF-8 becomes U+FFFD. The
// common case, a text without any of these, is returned as it is.
func CleanText(s string) string {
	if !needsCleaning(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range stripEscapes(s) {
		if unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != '\f' {
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func needsCleaning(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' || c == 0x7f {
			return true
		}
		// U+0080..U+009F are C2 80..C2 9F.
		if c == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0 {
			return true
		}
	}
	return !utf8.ValidString(s)
}

// invisible reports whether r shows nothing and can be used to hide or
// reorder what stands beside it.
func invisible(r rune) bool {
	switch {
	case r >= ' ' && r <= '~':
		return false
	case r == utf8.RuneError, unicode.IsControl(r):
		return true
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Cs, r):
		// Cf has the bidi and zero-width characters, the soft hyphen, the byte
		// order mark, and the tag characters that can spell hidden text.
		return true
	case r == 0x034f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0:
		return true // fillers and joiners that are letters or marks by category
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef, r >= 0x180b && r <= 0x180f:
		return true // variation selectors
	case r == 0x2028, r == 0x2029:
		return true
	}
	return false
}

// stripEscapes removes ANSI escape sequences (ECMA-48): CSI up to its final
// byte, OSC and the other strings up to their terminator, and the two- and
// three-character forms. A sequence that never ends takes no more of the text
// than its first 4096 bytes could.
func stripEscapes(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 && !strings.Contains(s, "\u009b") && !strings.Contains(s, "\u009d") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	e := escapes{s: s}
	for i := 0; i < len(s); {
		n := e.length(i)
		if n > 0 {
			i += n
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		b.WriteString(s[i : i+size])
		i += size
	}
	return b.String()
}

// maxEscape bounds a string sequence, so that one stray opener cannot swallow
// an answer.
const maxEscape = 4096

// escapes finds escape sequences in a text from its beginning to its end.
type escapes struct {
	s string
	// searched is up to where no terminator of a string sequence stands, from
	// the last opener on: many openers without an end cost one search.
	searched int
}

// length returns the length of the escape sequence that begins at i, 0 for
// none.
func (e *escapes) length(i int) int {
	s := e.s[i:]
	switch {
	case strings.HasPrefix(s, "\u009b"):
		return 2 + csiLen(s[2:])
	case strings.HasPrefix(s, "\u009d"):
		return 2 + e.stringLen(i+2)
	case s[0] != 0x1b:
		return 0
	case len(s) == 1:
		return 1
	}
	switch c := s[1]; {
	case c == '[':
		return 2 + csiLen(s[2:])
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		return 2 + e.stringLen(i+2)
	case c >= 0x20 && c <= 0x2f: // intermediate bytes, then one final
		i := 2
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		return min(i+1, len(s))
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

func csiLen(s string) int {
	i := 0
	for i < len(s) && i < maxEscape && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		i++
	}
	return i
}

// stringLen is the length of a string sequence's body from there on, with its
// terminator (BEL, ESC \ or U+009C), 0 when none comes: only the opener is
// dropped then.
func (e *escapes) stringLen(from int) int {
	s, end := e.s, min(len(e.s), from+maxEscape)
	for i := max(from, e.searched); i < end; i++ {
		switch {
		case s[i] == 0x07:
			return i + 1 - from
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\',
			strings.HasPrefix(s[i:], "\u009c"):
			return i + 2 - from
		}
	}
	e.searched = max(e.searched, end)
	return 0
}

// CutRunes returns at most limit characters of s; what was cut ends in "…",
// which counts.
func CutRunes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := 0
	keep := 0
	for i := range s {
		if n == limit-1 {
			keep = i
		}
		if n == limit {
			return s[:keep] + "…"
		}
		n++
	}
	return s
}

// CutBytes returns at most limit bytes of s, cut at the edge of a character;
// what was cut ends in "…", which counts its three bytes.
func CutBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const ellipsis = "…"
	n := max(limit-len(ellipsis), 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if limit < len(ellipsis) {
		return ""
	}
	return s[:n] + ellipsis
}

// runes is the length of s in characters.
func runes(s string) int { return utf8.RuneCountInString(s) }

// DescriptionFromPurpose builds a description of at most DescriptionBytes: the
// purpose first, then each detail on a line of its own while there is room. A
// long purpose is cut in favour of the details, but never below a quarter of
// the whole, and a detail that does not fit is cut. Everything is cleaned.
func DescriptionFromPurpose(purpose string, details ...string) string {
	var tail strings.Builder
	for _, d := range details {
		if d = CleanDescription(d); d != "" {
			tail.WriteByte('\n')
			tail.WriteString(d)
		}
	}
	room := max(DescriptionBytes-tail.Len(), DescriptionBytes/4)
	return CutBytes(strings.TrimSpace(CutBytes(CleanDescription(purpose), room)+tail.String()), DescriptionBytes)
}

// oneLine makes a single line of at most limit characters of an agent's text.
func oneLine(s string, limit int) string { return CutRunes(CleanName(s), limit) }

// quoteName quotes an agent's word for use inside a sentence of ours.
func quoteName(s string) string { return strconv.Quote(oneLine(s, 80)) }

// sizeText says a number of bytes for people.
func sizeText(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n) + " bytes"
	case n < 1000*1000:
		return strconv.Itoa((n+500)/1000) + " kB"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB"
}
