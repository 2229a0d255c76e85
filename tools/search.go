package tools

import (
	"sort"
	"strings"
	"unicode"
)

// maxHits bounds a list that answers a query (design section 3).
const maxHits = 10

// The weight of a word by where it is found.
const (
	weightName        = 8
	weightSkill       = 6
	weightTag         = 5
	weightDescription = 3
	weightExample     = 2
)

// rank returns the agents that match query, best first. An agent that has
// every word comes before one that has some; a whole word counts more than
// the beginning of one, and that more than a piece. Agents that match nothing
// are left out. An empty query keeps all in their order.
func rank(agents []*agent, query string) []*agent {
	words := telling(wordsOf(query))
	if len(words) == 0 {
		return agents
	}
	type hit struct {
		agent *agent
		found int
		score int
	}
	var hits []hit
	for _, a := range agents {
		h := hit{agent: a}
		for _, w := range words {
			if s := scoreOf(a, w); s > 0 {
				h.found++
				h.score += s
			}
		}
		if h.found > 0 {
			hits = append(hits, h)
		}
	}
	sort.SliceStable(hits, func(i, j int) bool {
		if hits[i].found != hits[j].found {
			return hits[i].found > hits[j].found
		}
		return hits[i].score > hits[j].score
	})
	out := make([]*agent, len(hits))
	for i, h := range hits {
		out[i] = h.agent
	}
	return out
}

// scoreOf is how well one word fits an agent.
func scoreOf(a *agent, word string) int {
	score := max(weightName*fit(a.Alias, word), weightName*fit(a.info.name, word))
	score += weightDescription * fit(a.info.description, word)
	best := 0
	for i := range a.info.skills {
		sk := &a.info.skills[i]
		s := max(weightSkill*fit(sk.id, word), weightSkill*fit(sk.name, word))
		for _, t := range sk.tags {
			s = max(s, weightTag*fit(t, word))
		}
		s += weightDescription * fit(sk.description, word)
		for _, x := range sk.examples {
			s = max(s, weightExample*fit(x, word))
		}
		best = max(best, s)
	}
	return score + best
}

// fit says how a word stands in a text: 3 as a word, 2 as the beginning of
// one (or the other way round, for plurals), 1 as a piece, 0 not at all.
func fit(text, word string) int {
	low := strings.ToLower(text)
	best := 0
	for _, t := range wordsOf(low) {
		switch {
		case t == word:
			return 3
		case strings.HasPrefix(t, word), len(t) >= 4 && strings.HasPrefix(word, t) && len(word)-len(t) <= 2:
			best = 2
		}
	}
	if best == 0 && len(word) >= 3 && strings.Contains(low, word) {
		best = 1
	}
	return best
}

// wordsOf splits a text into lower-case words.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// telling leaves out the words that say nothing about an agent, unless there
// are no others.
func telling(words []string) []string {
	const mute = " a an and any are can for from i in is it me my of on or that the this to which who with agent agents skill skills "
	var out []string
	for _, w := range words {
		if !strings.Contains(mute, " "+w+" ") {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return words
	}
	return out
}

// withTags keeps the agents that have a skill with one of the tags, whatever
// the case of its letters.
func withTags(agents []*agent, tags []string) []*agent {
	if len(tags) == 0 {
		return agents
	}
	var out []*agent
	for _, a := range agents {
		if a.info.hasTag(tags) {
			out = append(out, a)
		}
	}
	return out
}

func (i agentInfo) hasTag(tags []string) bool {
	for _, sk := range i.skills {
		for _, have := range sk.tags {
			for _, want := range tags {
				if strings.EqualFold(strings.TrimSpace(have), strings.TrimSpace(want)) {
					return true
				}
			}
		}
	}
	return false
}
