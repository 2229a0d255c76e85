package translate

import (
	"bytes"
	"encoding/json"
	"regexp/syntax"
)

// maxPatternSize bounds the patterns of one schema, in the measure of
// PatternSize. A few dozen bytes can stand for millions of steps: (a{9}){99}.
const maxPatternSize = 20_000

// PatternSize is about how many steps a pattern compiles to, known without
// compiling it; what matching costs grows with it. It is 0 for what is no
// pattern.
func PatternSize(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	size, ranges := patternSize(re)
	return size + ranges/8
}

// SchemaPatternSize adds up PatternSize over the patterns of a schema.
func SchemaPatternSize(schema json.RawMessage) int {
	if !bytes.Contains(schema, []byte("pattern")) {
		return 0
	}
	doc, err := decodeNumbers(schema)
	if err != nil {
		return 0
	}
	return patternsSize(doc)
}

// patternSize returns the steps of an expression and the character ranges it
// names, which repetitions share. The parser bounds both, and the depth.
func patternSize(re *syntax.Regexp) (steps, ranges int) {
	for _, sub := range re.Sub {
		s, r := patternSize(sub)
		steps, ranges = steps+s+1, ranges+r
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune), 0
	case syntax.OpCharClass:
		return 1, len(re.Rune)
	case syntax.OpRepeat:
		return max(re.Min+1, re.Max, 1) * steps, ranges
	}
	return steps + 1, ranges
}

// patternsSize adds up the patterns of a schema: every text that stands where
// one may stand counts.
func patternsSize(v any) int {
	total := 0
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			switch e := e.(type) {
			case string:
				if k == "pattern" {
					total += PatternSize(e)
				}
			case map[string]any:
				if k == "patternProperties" {
					for pattern := range e {
						total += PatternSize(pattern)
					}
				}
			}
			total += patternsSize(e)
		}
	case []any:
		for _, e := range v {
			total += patternsSize(e)
		}
	}
	return total
}
