package a2a

import (
	"bytes"
	"encoding/json"
	"strings"
)

// stateFrom brings any spelling of a task state to that of A2A 1.0: the proto
// name or its number, 0.3's kebab case, either number of Ls. A missing state is
// "", an unknown one keeps the agent's spelling.
func stateFrom(s string) State {
	if st := State(s); st.Known() {
		return st
	}
	name := strings.ToUpper(strings.TrimSpace(s))
	name = strings.TrimPrefix(strings.ReplaceAll(name, "-", "_"), "TASK_STATE_")
	switch name {
	case "":
		return ""
	case "UNSPECIFIED", "UNKNOWN", "0":
		return StateUnspecified
	case "SUBMITTED", "1":
		return StateSubmitted
	case "WORKING", "2":
		return StateWorking
	case "COMPLETED", "3":
		return StateCompleted
	case "FAILED", "4":
		return StateFailed
	case "CANCELED", "CANCELLED", "5":
		return StateCanceled
	case "INPUT_REQUIRED", "6":
		return StateInputRequired
	case "REJECTED", "7":
		return StateRejected
	case "AUTH_REQUIRED", "8":
		return StateAuthRequired
	}
	return State(s)
}

// roleFrom brings any spelling of a role to that of A2A 1.0; a missing one is
// missing, an unknown one keeps the agent's spelling.
func roleFrom(s string, missing Role) Role {
	switch s {
	case "ROLE_AGENT", "agent":
		return RoleAgent
	case "ROLE_USER", "user":
		return RoleUser
	}
	switch strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(s)), "ROLE_") {
	case "", "UNSPECIFIED", "0":
		return missing
	case "USER", "1":
		return RoleUser
	case "AGENT", "ASSISTANT", "2":
		return RoleAgent
	}
	return Role(s)
}

// base64From returns s as padded standard base64, and whether it is base64 at
// all. ProtoJSON lets agents send the url-safe alphabet and leave the padding
// out; some break lines. What is right already is returned as it is.
func base64From(s string) (string, bool) {
	body := strings.TrimRight(s, "=")
	if pad := len(s) - len(body); pad <= 2 && len(s)%4 == 0 && standardBase64(body) {
		return s, true
	}
	b := make([]byte, 0, len(body)+2)
	for i := range len(body) {
		switch c := body[i]; c {
		case '-':
			b = append(b, '+')
		case '_':
			b = append(b, '/')
		case '\r', '\n', ' ', '\t':
		default:
			if !base64Alphabet[c] {
				return "", false
			}
			b = append(b, c)
		}
	}
	b = bytes.TrimRight(b, "=")
	switch len(b) % 4 {
	case 1:
		return "", false
	case 2:
		b = append(b, "=="...)
	case 3:
		b = append(b, '=')
	}
	return string(b), true
}

func standardBase64(s string) bool {
	for i := range len(s) {
		if !base64Alphabet[s[i]] {
			return false
		}
	}
	return true
}

// base64Alphabet marks the 64 digits of the standard alphabet.
var base64Alphabet = func() (t [256]bool) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(digits) {
		t[digits[i]] = true
	}
	return t
}()

// objectOnly returns raw when it is a JSON object, nil when it is absent or
// null; ok is false for any other value.
func objectOnly(raw json.RawMessage) (object json.RawMessage, ok bool) {
	switch {
	case len(raw) == 0 || isNull(raw):
		return nil, true
	case raw[0] == '{':
		return raw, true
	}
	return nil, false
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// idString returns the text of a JSON string or number, "" for anything else.
func idString(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	switch c := raw[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	case c == '-' || c >= '0' && c <= '9':
		return string(raw)
	}
	return ""
}

// or returns the first of two strings that is set.
func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// protoData returns the value inside the data part of 0.3's REST binding,
// where the proto's DataPart message wraps it: {"data": {…}}. Anything of
// another shape is a value already.
func protoData(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &members) != nil || len(members) != 1 {
		return raw
	}
	if inner := members["data"]; len(inner) > 0 && inner[0] == '{' {
		return inner
	}
	return raw
}
