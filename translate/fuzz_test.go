package translate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"a2agate/a2a"
)

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n", "\xff\xc3(", "日本\u2028", strings.Repeat("x", 31) + "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString([]byte("x"), s)[1:]
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != strings.ToValidUTF8(s, "\ufffd") && !sameRunes(back, s) {
			t.Fatalf("%v: %q from %q", err, back, s)
		}
		if !utf8.Valid(got) || bytes.ContainsAny(got, "\n\r\x00\x1b") {
			t.Fatalf("%q", got)
		}
	})
}

// sameRunes compares as decoding replaces bad bytes: each by itself.
func sameRunes(a, b string) bool { return a == string([]rune(b)) }

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\x1b]8;;x\x07y", "\u009b1m", "\u202e\u200b", "\x1b", "\x1b(", "a\r\n\r\nb", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, text, desc := CleanName(s), CleanText(s), CleanDescription(s)
		for _, c := range []string{name, text, desc} {
			if !utf8.ValidString(c) || strings.ContainsAny(c, "\x1b\x07\u009b\u009d\x00") {
				t.Fatalf("%q became %q", s, c)
			}
		}
		for _, r := range name {
			if unicode.IsControl(r) || invisible(r) || unicode.IsSpace(r) && r != ' ' {
				t.Fatalf("%q became the name %q", s, name)
			}
		}
		if CleanName(name) != name || CleanText(text) != text || CleanDescription(desc) != desc {
			t.Fatalf("cleaning %q twice differs: %q %q %q", s, CleanName(name), CleanText(text), CleanDescription(desc))
		}
		for n := 1; n < 8; n++ {
			if c := CutRunes(text, n); runes(c) > n || !utf8.ValidString(c) {
				t.Fatalf("CutRunes(%q, %d) = %q", text, n, c)
			}
			if c := CutBytes(text, n); len(c) > n || !utf8.ValidString(c) {
				t.Fatalf("CutBytes(%q, %d) = %q", text, n, c)
			}
		}
	})
}

// Any task or message renders as one line of JSON that every revision's schema
// takes, whatever the agent put into it, and whatever is cut.
func FuzzResult(f *testing.F) {
	for _, g := range loadGoldens(f) {
		for _, file := range g.archive.Files {
			if file.Name == "task.json" || file.Name == "message.json" {
				f.Add(file.Data, uint16(0), false)
				f.Add(file.Data, uint16(100), true)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, limit uint16, always bool) {
		o := Options{Agent: "x", Title: string(data[:min(len(data), 20)]), Handles: Handles{Context: "cx_1", Task: "tk_1"},
			ResultChars: int(limit), HistoryLength: AllHistory, MediaBytes: int(limit)}
		if always {
			o.Structured = StructuredAlways
		}
		var results []Result
		if task, err := taskFromTestJSON(data); err == nil {
			task.Artifacts = append(task.Artifacts, a2a.Artifact{ArtifactID: string(data[:min(len(data), 50)]), Parts: []a2a.Part{{Kind: a2a.PartText, Text: string(data)}, {Kind: 9}}})
			results = append(results, ResultFromTask(task, o), ResultFromSnapshot(a2a.Snapshot{Task: task, Progress: string(data), Trouble: string(data)}, o),
				ResultFromSnapshot(a2a.Snapshot{Task: task, Lost: true, Err: &a2a.Error{Message: string(data), Reason: string(data)}}, o))
			for _, a := range task.Artifacts {
				r, err := ResultFromPage(task, a.ArtifactID, 0, o)
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, r)
			}
			for _, ask := range AsksFromStatus(task.Status) {
				for _, rev := range revisions {
					if p := ElicitParamsFromAsk(ask, rev); p != nil && !json.Valid(p) {
						t.Fatalf("%s", p)
					}
				}
			}
			StatusMessageFromTask(task)
		}
		if m, err := messageFromTestJSON(data); err == nil {
			results = append(results, ResultFromMessage(m, o))
		}
		results = append(results, ResultFromFault(string(data), o), ResultFromError(&a2a.Error{Message: string(data), Challenge: string(data), Code: int(limit)}, o))
		for _, r := range results {
			if len(r.Structured) > 0 && (!json.Valid(r.Structured) || bytes.ContainsAny(r.Structured, "\r\n")) {
				t.Fatalf("structuredContent %q", r.Structured)
			}
			for _, rev := range []Revision{Rev20250326, Rev20260728} {
				checkResult(t, AppendResult(nil, r, rev, serverInfo), rev)
			}
		}
	})
}

// Asks come from an agent and go to a client as schemas: whatever comes in,
// what goes out is what MCP allows.
func FuzzAsks(f *testing.F) {
	f.Add([]byte(`[{"key":"k","message":"m","requestedSchema":` + allFields + `}]`))
	f.Add([]byte(`[{"key":"k","url":"https://a.test"},{"key":"k"}]`))
	f.Add([]byte(`[{"requestedSchema":{"type":"object","properties":{"a":{"type":"integer","default":1.5,"minimum":"x"}}}}]`))
	f.Fuzz(func(t *testing.T, asks []byte) {
		if !json.Valid(asks) {
			return
		}
		got := AsksFromStatus(asking(a2a.StateInputRequired, text("words"), askPart(string(asks), byKey)))
		keys := map[string]bool{}
		for _, a := range got {
			if keys[a.Key] || a.Key == "" || (a.URL == "") == (a.Schema == nil) {
				t.Fatalf("%+v", a)
			}
			keys[a.Key] = true
			params := ElicitParamsFromAsk(a, Rev20260728)
			if params == nil {
				t.Fatalf("cannot be asked: %+v", a)
			}
			checkAgainst(t, params, "mcp-2026-07-28.json", "ElicitRequestParams")
			if p := SchemaProblem(a.Schema); a.Schema != nil && p != "" && !strings.Contains(p, "bytes") && !strings.Contains(p, "objects") {
				t.Fatalf("%s: %s", p, a.Schema)
			}
		}
		MessageFromAnswers(got, map[string]Answer{AnswerKey: {Action: "accept", Content: asks}})
	})
}

func FuzzSchemaProblem(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x","x-mcp-header":"A"}},"$defs":{"x":{"pattern":"("}}}`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","id":"x","$ref":"x#"}`))
	f.Add([]byte(`{"type":"object","$ref":"#","$dynamicRef":"#a","unevaluatedProperties":false}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := SchemaProblem(raw)
		if p == "" && !json.Valid(raw) {
			t.Fatalf("took %q", raw)
		}
		if strings.ContainsAny(p, "\n\r\x1b") {
			t.Fatalf("%q", p)
		}
		SchemaCaution(raw)
		SchemaFits(raw, Rev20251125)
	})
}

func FuzzNames(f *testing.F) {
	f.Add("Zürich", "skill 1", "p_", "helper", "Helper")
	f.Add("", "", "", "a_b", "a")
	f.Fuzz(func(t *testing.T, agent, skill, prefix, other, third string) {
		if agent == "" || other == "" || third == "" {
			return
		}
		keys := []Key{{agent, ""}, {other, ""}, {third, ""}, {agent, skill + "x"}, {other, skill + "x"}, {third, agent + "x"}}
		distinct := map[Key]bool{}
		for _, k := range keys {
			distinct[k] = true
		}
		checkNames(t, NamesFromKeys(keys, func(string) string { return prefix }), len(distinct))
		checkNames(t, NamesFromKeys(keys, nil), len(distinct))
	})
}

func FuzzAuthURL(f *testing.F) {
	f.Add("Sign in at https://login.acme.test/d?code=WXYZ, then I continue.")
	f.Add("https://a@b://http://[::1]:80/)")
	f.Fuzz(func(t *testing.T, s string) {
		u := firstURL(s)
		if u != "" && (webURL(u) != u || strings.ContainsAny(u, " \n\t<>\"") || !strings.Contains(s, u)) {
			t.Fatalf("%q from %q", u, s)
		}
		if w := withoutLinks(s); strings.Contains(w, "://") {
			t.Fatalf("%q still has a link: %q", s, w)
		}
	})
}
