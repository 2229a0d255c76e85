package translate

import (
	"regexp/syntax"
	"testing"
)

// The estimate is never far below what the compiler makes of a pattern.
func TestPatternSize(t *testing.T) {
	for _, p := range []string{
		"", "a", "^a+b*c?$", "(a|bc|d.)+", "[a-z0-9._%+-]+@[a-z0-9.-]+\\.[a-z]{2,}", "(a{1,30}b){30}", "x{0,1000}", "(?i)straße", `\pL{1,255}`, "a{0}", "(?:a{3,}){7}",
		"((a?){20}(b?){20}){2,}", "", `^\d{4}-\d\d-\d\d$`,
	} {
		re, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		got, want := PatternSize(p), len(prog.Inst)
		if got+4 < want || got > 4*want+400 {
			t.Errorf("%q: %d, it compiles to %d", p, got, want)
		}
	}
	if n := PatternSize("("); n != 0 {
		t.Errorf("no pattern: %d", n)
	}
}
