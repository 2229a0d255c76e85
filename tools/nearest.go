package tools

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// manyNames is how many names an error spells out before it says "and N more".
const manyNames = 12

// nearest returns the n names most like want, best first: a common prefix or
// containment counts before the edit distance.
func nearest(want string, names []string, n int) []string {
	type scored struct {
		name string
		cost int
	}
	w := strings.ToLower(cut(want, 64))
	list := make([]scored, 0, len(names))
	for _, name := range names {
		low := strings.ToLower(name)
		cost := 4 * distance(w, low)
		if w != "" && (strings.Contains(low, w) || strings.Contains(w, low)) {
			cost /= 2
		}
		list = append(list, scored{name, cost})
	}
	sort.SliceStable(list, func(i, j int) bool {
		if list[i].cost != list[j].cost {
			return list[i].cost < list[j].cost
		}
		return list[i].name < list[j].name
	})
	out := make([]string, 0, n)
	for i := 0; i < len(list) && i < n; i++ {
		out = append(out, list[i].name)
	}
	return out
}

// distance is the Levenshtein distance of two short strings, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = min(diagonal, row[j], row[j-1]) + 1
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}

// unknownAgent is the error text for an alias that the caller cannot see:
// all aliases when they are few, the three nearest always.
func unknownAgent(alias string, aliases []string) string {
	switch {
	case len(aliases) == 0:
		return fmt.Sprintf("unknown agent %q: no agent is configured for you", cut(alias, 64))
	case len(aliases) == 1:
		return fmt.Sprintf("unknown agent %q: the only agent is %q", cut(alias, 64), aliases[0])
	case len(aliases) <= 3:
		return fmt.Sprintf("unknown agent %q: the agents are %s", cut(alias, 64), nameList(aliases))
	case len(aliases) <= manyNames:
		return fmt.Sprintf("unknown agent %q: the nearest are %s; all agents: %s",
			cut(alias, 64), nameList(nearest(alias, aliases, 3)), nameList(aliases))
	}
	return fmt.Sprintf("unknown agent %q: the nearest are %s; call a2a_discover to find others",
		cut(alias, 64), nameList(nearest(alias, aliases, 3)))
}

// nameList quotes and joins names, at most manyNames of them.
func nameList(names []string) string {
	quoted := make([]string, 0, len(names))
	for i, n := range names {
		if i == manyNames {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	return strings.Join(quoted, ", ")
}

// cut shortens s to at most n bytes at a rune edge, marking the cut.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
