package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	// File is the file as it was named; "" for the command line.
	File string
	// Line and Column count from 1, columns in characters; 0 where the
	// problem has no place.
	Line, Column int
	// Path is the dotted path of the key, such as agents.billing.url; "" for
	// the file as a whole.
	Path string
	// Message is one line: the value in quotes unless it may be a secret, what
	// is wrong with it, and the remedy.
	Message string
}

// String returns "file:line:column: path: message", without what is empty.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
		if p.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
		}
		b.WriteByte(' ')
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Error is a configuration that cannot be used. It has every problem, in the
// order of the file, and at least one.
type Error struct {
	Problems []Problem
	// Files are the files that the text names, as in Config.Files, as far as
	// it could be read: a missing one that appears may be the remedy.
	Files []string
}

// Error returns one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// quotedLen bounds how much of a value a message repeats, in bytes.
const quotedLen = 80

// quote returns s in quotes, control and bidirectional characters escaped. What
// may be the password of a URL is left out.
func quote(s string) string {
	if before, after, ok := strings.Cut(s, "://"); ok {
		if at := strings.LastIndexByte(after, '@'); at >= 0 {
			s = before + "://***" + after[at:]
		}
	}
	if len(s) > quotedLen {
		cut := quotedLen
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return strconv.Quote(s[:cut]) + "…"
	}
	return strconv.Quote(s)
}

// child returns the path of a key below path. Keys that would make a dotted
// path ambiguous stand in brackets.
func child(path, key string) string {
	plain := key != ""
	for _, r := range key {
		plain = plain && (r == '_' || r == '-' || r == '$' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	switch {
	case !plain:
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// item returns the path of an element of a list.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// nearest returns the known word that was probably meant, "" if none is near.
func nearest(word string, known []string) string {
	best, found := 4, ""
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < best && d*2 <= max(len(word), 2) {
			best, found = d, k
		}
	}
	return found
}

// distance is the number of letters to insert, drop, replace or swap with the
// neighbour to make b of a. Long words are not worth comparing.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// didYouMean is the remedy for a word that is not among the known ones.
func didYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return "did you mean " + quote(near) + "?"
	}
	const most = 12
	sorted := slices.Compact(slices.Sorted(slices.Values(known))) // a key that stands twice is another problem
	if len(sorted) > most {
		return "known are " + strings.Join(sorted[:most], ", ") + ", …"
	}
	return "known are " + strings.Join(sorted, ", ")
}
