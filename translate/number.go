package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// The bounds of a number that is compared with a schema. The comparison is
// exact, so its cost grows with the square of the digits and with the power of
// ten: one number of a few megabytes would take minutes.
const (
	maxNumberLen = 400
	maxExponent  = 400
)

// NumberProblem says in a few words which number of a decoded value (numbers
// as json.Number) is too long to be compared with a schema, "" for none. It is
// to be asked before any value of a stranger's is validated.
func NumberProblem(v any) string {
	switch v := v.(type) {
	case json.Number:
		if oversized(string(v)) {
			return "the number " + CutRunes(string(v), 24) + " is too long: a number has at most " +
				strconv.Itoa(maxNumberLen) + " characters and an exponent of at most " + strconv.Itoa(maxExponent)
		}
	case []any:
		for _, e := range v {
			if p := NumberProblem(e); p != "" {
				return p
			}
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if p := NumberProblem(v[k]); p != "" {
				return p
			}
		}
	}
	return ""
}

func oversized(number string) bool {
	if len(number) > maxNumberLen {
		return true
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return false
	}
	exp, err := strconv.Atoi(number[i+1:])
	return err != nil || exp > maxExponent || exp < -maxExponent
}

// decodeNumbers decodes one JSON value, numbers as they stand.
func decodeNumbers(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}
