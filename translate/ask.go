package translate

import (
	"encoding/json"
	"strconv"
	"strings"

	"a2agate/a2a"
)

// AskExtension is the extension by which an agent asks in a structured way. A
// data part of the message of an INPUT_REQUIRED status says so in its
// metadata, as a key with any value ({"urn:a2agate:ext:ask:1": true}) or as a
// value ({"extension": "urn:a2agate:ext:ask:1"}, in an array too). Its data is
// {"asks": [{"key", "message", "requestedSchema" or "url"}]}. The answer goes
// back as a data part with the same metadata key and {"answers": {key:
// content}}.
const AskExtension = "urn:a2agate:ext:ask:1"

// AnswerKey is the key, and the one field, of a question that has no schema of
// its own.
const AnswerKey = "answer"

const (
	maxAsks      = 20
	questionSize = 4000 // characters of a question
)

// answerSchema is the form of a question without a schema: one string.
const answerSchema = `{"type":"object","properties":{"answer":{"type":"string","title":"Your answer"}},"required":["answer"]}`

// AsksFromStatus is what a status asks of the user, as questions that a client
// can show; none for a state that asks nothing. INPUT_REQUIRED gives the
// structured asks of AskExtension, else one form with a single string.
// AUTH_REQUIRED gives a url ask, or nothing without an http(s) url; never a
// form. A question that asks for a secret never becomes a form either (MCP,
// elicitation: credentials go through a url): nothing is returned then, and
// the question stays in the envelope.
func AsksFromStatus(st a2a.Status) []Ask {
	structured := structuredAsks(st)
	switch st.State {
	case a2a.StateAuthRequired:
		if urls := urlAsks(structured); len(urls) > 0 {
			return urls
		}
		if u := AuthURLFromStatus(st); u != "" {
			return []Ask{{Key: AnswerKey, Message: question(st), URL: u}}
		}
		return nil
	case a2a.StateInputRequired:
		if secretStatus(st) {
			return urlAsks(structured)
		}
		if len(structured) > 0 {
			return structured
		}
		return []Ask{{Key: AnswerKey, Message: question(st), Schema: json.RawMessage(answerSchema)}}
	}
	return nil
}

// AsksFromTask is AsksFromStatus for a task, which also finds the question in
// the history where the agent put it there and left the status without words.
func AsksFromTask(t *a2a.Task) []Ask { return AsksFromStatus(spokenStatus(t)) }

// spokenStatus is the task's status with the words that an answer shows for
// it: its own message, else the agent's last turn.
func spokenStatus(t *a2a.Task) a2a.Status {
	st := t.Status
	if st.State.Interrupted() && (st.Message == nil || st.Message.Role == a2a.RoleUser || len(st.Message.Parts) == 0) {
		st.Message = lastWord(t)
	}
	return st
}

func urlAsks(asks []Ask) []Ask {
	var urls []Ask
	for _, a := range asks {
		if a.URL != "" {
			urls = append(urls, a)
		}
	}
	return urls
}

// question is the words of a status, with a line for what is not words.
func question(st a2a.Status) string {
	if m := st.Message; m != nil && m.Role != a2a.RoleUser {
		var words []string
		for _, pc := range piecesFromParts(nil, m.Parts, origin{}, &Options{}) {
			if pc.kind != pieceData || len(m.Parts) == 1 {
				words = append(words, pc.words())
			}
		}
		if s := strings.TrimSpace(strings.Join(words, "\n")); s != "" {
			return CutRunes(s, questionSize)
		}
	}
	if st.State == a2a.StateAuthRequired {
		return "The agent needs you to sign in."
	}
	return "The agent asks for input."
}

// structuredAsks reads the asks of AskExtension, all of them or as many as can
// be read.
func structuredAsks(st a2a.Status) []Ask {
	if st.Message == nil || st.Message.Role == a2a.RoleUser {
		return nil
	}
	var asks []Ask
	for i := range st.Message.Parts {
		p := &st.Message.Parts[i]
		if p.Kind != a2a.PartData || !namesExtension(p.Metadata, AskExtension) {
			continue
		}
		var body struct {
			Asks []json.RawMessage `json:"asks"`
		}
		if json.Unmarshal(p.Data, &body) != nil {
			continue
		}
		for _, raw := range body.Asks {
			if len(asks) == maxAsks {
				return asks
			}
			if a, ok := askFromJSON(raw, st); ok {
				a.Key = freeKey(asks, a.Key)
				asks = append(asks, a)
			}
		}
	}
	return asks
}

func askFromJSON(raw json.RawMessage, st a2a.Status) (Ask, bool) {
	var in map[string]json.RawMessage
	if json.Unmarshal(raw, &in) != nil || in == nil {
		return Ask{}, false
	}
	a := Ask{
		Key:        or(oneLine(jsonText(in["key"]), 100), AnswerKey),
		Message:    CutRunes(CleanText(jsonText(in["message"])), questionSize),
		Structured: true,
	}
	if strings.TrimSpace(a.Message) == "" {
		a.Message = question(st)
	}
	if u := jsonText(in["url"]); u != "" {
		if u = firstURL(u); u != "" {
			a.URL = u
			return a, true
		}
		a.Note = "the agent's url for " + quoteName(a.Key) + " is not an http(s) URL"
	}
	schema := in["requestedSchema"]
	if schema == nil {
		a.Schema = json.RawMessage(answerSchema)
		return a, true
	}
	f, problem := formFromSchema(schema)
	if problem != "" {
		a.Note = "the agent's form for " + quoteName(a.Key) + " cannot be shown (" + problem + "); asked as plain text"
		a.Schema = json.RawMessage(answerSchema)
		return a, true
	}
	a.Schema = f.schema(Rev20260728)
	return a, true
}

// freeKey keeps keys apart: an agent that names two questions alike gets the
// second answer under a numbered key.
func freeKey(asks []Ask, key string) string {
	taken := func(k string) bool {
		for i := range asks {
			if asks[i].Key == k {
				return true
			}
		}
		return false
	}
	name := key
	for n := 2; taken(name); n++ {
		name = key + "_" + strconv.Itoa(n)
	}
	return name
}

// jsonText is the string in raw, "" for any other value.
func jsonText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// namesExtension reports whether a metadata object names the extension, as a
// key or as a value.
func namesExtension(metadata json.RawMessage, uri string) bool {
	if !strings.Contains(string(metadata), uri) {
		return false
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(metadata, &m) != nil {
		return false
	}
	for k, v := range m {
		if k == uri || jsonText(v) == uri {
			return true
		}
		var list []json.RawMessage
		if len(v) > 0 && v[0] == '[' && json.Unmarshal(v, &list) == nil {
			for _, e := range list {
				if jsonText(e) == uri {
					return true
				}
			}
		}
	}
	return false
}

// AttributedAsks says in every question who asks: the words are the agent's,
// and the user who reads them in a form sees nothing else of the call.
func AttributedAsks(asks []Ask, title string) []Ask {
	title = CutRunes(CleanName(title), 60)
	attributed := make([]Ask, len(asks))
	for i, a := range asks {
		if !strings.HasPrefix(a.Message, title) {
			a.Message = title + " asks: " + a.Message
		}
		attributed[i] = a
	}
	return attributed
}

// MessageFromAnswers makes the parts that carry answers back to the agent:
// the words alone where the agent asked in words, else a text and a data part
// of AskExtension with {"answers": {key: content}}. Answers that were declined
// or cancelled are left out; nil says that none is left.
func MessageFromAnswers(asks []Ask, answers map[string]Answer) []a2a.Part {
	data := newObject(nil)
	var lines []string
	structured, accepted := false, 0
	for i := range asks {
		ans, ok := answers[asks[i].Key]
		if !ok || ans.Action != "accept" {
			continue
		}
		accepted++
		structured = structured || asks[i].Structured
		content := ans.Content
		if len(content) == 0 || string(content) == "null" {
			content = json.RawMessage("{}")
		}
		data.keyString(asks[i].Key)
		data.dst = AppendRaw(data.dst, content)
		lines = append(lines, answerLines(&asks[i], content, len(asks) == 1)...)
	}
	if accepted == 0 {
		return nil
	}
	var parts []a2a.Part
	if text := strings.Join(lines, "\n"); text != "" {
		parts = append(parts, a2a.Part{Kind: a2a.PartText, Text: text})
	}
	if structured || len(parts) == 0 {
		body := append([]byte(`{"answers":`), data.end()...)
		parts = append(parts, a2a.Part{
			Kind:     a2a.PartData,
			Data:     append(body, '}'),
			Metadata: json.RawMessage(`{"` + AskExtension + `":true}`),
		})
	}
	return parts
}

// answerLines says an answer in words: the value alone where there is only
// one, else a line for each.
func answerLines(a *Ask, content json.RawMessage, alone bool) []string {
	fields, ok := orderedObject(content)
	if !ok {
		return nil
	}
	var lines []string
	for _, f := range fields {
		value := jsonText(f.value)
		if value == "" && string(f.value) != `""` {
			value = string(f.value)
		}
		switch {
		case len(fields) == 1 && alone:
			lines = append(lines, value)
		case len(fields) == 1:
			lines = append(lines, a.Key+": "+value)
		default:
			lines = append(lines, f.name+": "+value)
		}
	}
	return lines
}
