package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// eventShape names the members of an event's JSON, three levels deep, without
// their values; for the log.
func eventShape(event []byte) string {
	var data []byte
	for line := range bytes.Lines(event) {
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimSpace(rest)...)
		}
	}
	if len(data) == 0 {
		return "comment"
	}
	return shapeOf(data, 3)
}

func shapeOf(data json.RawMessage, depth int) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil {
		return "no object"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := bytes.TrimSpace(object[name])
		if depth > 1 && len(value) > 0 && value[0] == '{' {
			name += shapeOf(value, depth-1)
		}
		parts = append(parts, name)
	}
	return "{" + strings.Join(parts, " ") + "}"
}
