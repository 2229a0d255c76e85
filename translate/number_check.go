package translate

import (
	"encoding/json"
	"strconv"
)

// maxLongMembers bounds the members of one object in which numbers too long to
// be compared are looked at; each costs some checks.
const maxLongMembers = 8

// CheckNumbers validates v, a decoded value with numbers as json.Number, by
// check. A number that is too long to be compared exactly (NumberProblem) is
// never handed to check: other numbers stand in for it, one after the other.
// Where the verdict depends on which, the schema compares the number, and
// problem says so and names the member; else the number may stand, and err is
// the verdict. v is not changed.
func CheckNumbers(v any, check func(any) error) (problem string, err error) {
	if NumberProblem(v) == "" {
		return "", check(v)
	}
	err = check(standIn(v, constant("0")))
	object, ok := v.(map[string]any)
	if !ok {
		object = map[string]any{"": v}
	}
	long := 0
	for _, name := range sortedKeys(object) {
		problem := NumberProblem(object[name])
		if problem == "" {
			continue
		}
		if long++; ok {
			problem = strconv.Quote(CutRunes(name, 64)) + ": " + problem
		}
		if long > maxLongMembers || depends(v, name, ok, check, err) {
			return problem, nil
		}
	}
	return "", err
}

// depends reports whether check says something else than verdict where other
// numbers stand in for the long ones of one member, or of all of v.
func depends(v any, name string, member bool, check func(any) error, verdict error) bool {
	var n int64
	for _, number := range []func() json.Number{
		// The large ones are beyond all that a schema can name.
		constant("1.5"), constant("1e999"), constant("-1e999"),
		func() json.Number { n++; return json.Number(strconv.FormatInt(n, 10)) }, // no two alike
	} {
		var trial any
		if member {
			all := standIn(v, constant("0")).(map[string]any)
			all[name] = standIn(v.(map[string]any)[name], number)
			trial = all
		} else {
			trial = standIn(v, number)
		}
		err := check(trial)
		if (err == nil) != (verdict == nil) || err != nil && err.Error() != verdict.Error() {
			return true
		}
	}
	return false
}

func constant(n json.Number) func() json.Number { return func() json.Number { return n } }

// standIn returns v with another number in the place of each that is too long.
func standIn(v any, number func() json.Number) any {
	switch v := v.(type) {
	case json.Number:
		if oversized(string(v)) {
			return number()
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = standIn(e, number)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range sortedKeys(v) {
			out[k] = standIn(v[k], number)
		}
		return out
	}
	return v
}
