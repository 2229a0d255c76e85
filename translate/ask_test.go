package translate

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"a2agate/a2a"
)

func asking(state a2a.State, parts ...a2a.Part) a2a.Status {
	return a2a.Status{State: state, Message: &a2a.Message{Role: a2a.RoleAgent, Parts: parts}}
}

func text(s string) a2a.Part { return a2a.Part{Kind: a2a.PartText, Text: s} }

func askPart(asks, metadata string) a2a.Part {
	return a2a.Part{Kind: a2a.PartData, Data: json.RawMessage(`{"asks":` + asks + `}`), Metadata: json.RawMessage(metadata)}
}

const byKey = `{"urn:a2agate:ext:ask:1":true}`

func plainAsk(message string) Ask {
	return Ask{Key: "answer", Message: message, Schema: json.RawMessage(answerSchema)}
}

func TestAsksFromStatus(t *testing.T) {
	year := `{"type":"object","properties":{"year":{"type":"integer"}}}`
	for _, c := range []struct {
		name string
		st   a2a.Status
		want []Ask
	}{
		{"words", asking(a2a.StateInputRequired, text("Which year?")), []Ask{plainAsk("Which year?")}},
		{"no words", a2a.Status{State: a2a.StateInputRequired}, []Ask{plainAsk("The agent asks for input.")}},
		{"the user's own words", a2a.Status{State: a2a.StateInputRequired, Message: &a2a.Message{Role: a2a.RoleUser, Parts: []a2a.Part{text("mine")}}},
			[]Ask{plainAsk("The agent asks for input.")}},
		{"data alone is the question", asking(a2a.StateInputRequired, a2a.Part{Kind: a2a.PartData, Data: json.RawMessage(`{"pick":[1,2]}`)}), []Ask{plainAsk(`{"pick":[1,2]}`)}},
		{"a working task asks nothing", asking(a2a.StateWorking, text("Which year?")), nil},
		{"structured, by key", asking(a2a.StateInputRequired, text("One thing."), askPart(`[{"key":"y","message":"Which year?","requestedSchema":`+year+`}]`, byKey)),
			[]Ask{{Key: "y", Message: "Which year?", Schema: json.RawMessage(year), Structured: true}}},
		{"structured, by value", asking(a2a.StateInputRequired, askPart(`[{"key":"y","message":"m","requestedSchema":`+year+`}]`, `{"extension":"urn:a2agate:ext:ask:1"}`)),
			[]Ask{{Key: "y", Message: "m", Schema: json.RawMessage(year), Structured: true}}},
		{"structured, in a list", asking(a2a.StateInputRequired, askPart(`[{"key":"y","message":"m","requestedSchema":`+year+`}]`, `{"extensions":["urn:x","urn:a2agate:ext:ask:1"]}`)),
			[]Ask{{Key: "y", Message: "m", Schema: json.RawMessage(year), Structured: true}}},
		{"another extension", asking(a2a.StateInputRequired, text("Q?"), askPart(`[{"key":"y"}]`, `{"urn:a2agate:ext:ask:10":1}`)), []Ask{plainAsk("Q?")}},
		{"not a list of asks", asking(a2a.StateInputRequired, text("Q?"), askPart(`{"key":"y"}`, byKey)), []Ask{plainAsk("Q?")}},
		{"two alike", asking(a2a.StateInputRequired, askPart(`[{"key":"k","message":"a"},{"key":"k","message":"b"},7,null]`, byKey)),
			[]Ask{{Key: "k", Message: "a", Schema: json.RawMessage(answerSchema), Structured: true}, {Key: "k_2", Message: "b", Schema: json.RawMessage(answerSchema), Structured: true}}},
		{"a bad schema", asking(a2a.StateInputRequired, askPart(`[{"key":"k","message":"a","requestedSchema":{"type":"object","properties":{"o":{"type":"object"}}}}]`, byKey)),
			[]Ask{{Key: "k", Message: "a", Schema: json.RawMessage(answerSchema), Structured: true,
				Note: `the agent's form for "k" cannot be shown (property "o": type "object" is not a primitive); asked as plain text`}}},
		{"a url ask", asking(a2a.StateInputRequired, askPart(`[{"key":"k","message":"pay","url":"https://pay.test/1"}]`, byKey)),
			[]Ask{{Key: "k", Message: "pay", URL: "https://pay.test/1", Structured: true}}},
		{"a script url", asking(a2a.StateInputRequired, askPart(`[{"key":"k","message":"pay","url":"javascript:x"}]`, byKey)),
			[]Ask{{Key: "k", Message: "pay", Schema: json.RawMessage(answerSchema), Structured: true, Note: `the agent's url for "k" is not an http(s) URL`}}},
		{"a secret in words", asking(a2a.StateInputRequired, text("What is your password?")), nil},
		{"a secret as a field", asking(a2a.StateInputRequired, askPart(`[{"key":"k","message":"Log in","requestedSchema":{"type":"object","properties":{"apiKey":{"type":"string"}}}}]`, byKey)), nil},
		{"a secret beside a url", asking(a2a.StateInputRequired, text("Enter your API key"), askPart(`[{"key":"k","message":"go","url":"https://a.test/"},{"key":"l","message":"x"}]`, byKey)),
			[]Ask{{Key: "k", Message: "go", URL: "https://a.test/", Structured: true}}},
		{"auth with a url in words", asking(a2a.StateAuthRequired, text("Sign in at https://login.acme.test/d?code=WXYZ, then I continue.")),
			[]Ask{{Key: "answer", Message: "Sign in at https://login.acme.test/d?code=WXYZ, then I continue.", URL: "https://login.acme.test/d?code=WXYZ"}}},
		{"auth with a url part", asking(a2a.StateAuthRequired, text("See https://help.test/ or"), a2a.Part{Kind: a2a.PartURL, URL: "https://login.test/"}),
			[]Ask{{Key: "answer", Message: "See https://help.test/ or\nhttps://login.test/", URL: "https://login.test/"}}},
		{"auth without a url is never a form", asking(a2a.StateAuthRequired, text("Please log in."), askPart(`[{"key":"k","message":"user"}]`, byKey)), nil},
	} {
		if d := cmp.Diff(c.want, AsksFromStatus(c.st)); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
	}
}

// An agent may leave the status without words and put the question into the
// history; the user's own turns are no questions.
func TestAsksFromHistory(t *testing.T) {
	task := &a2a.Task{Status: a2a.Status{State: a2a.StateInputRequired}, History: []a2a.Message{
		{Role: a2a.RoleAgent, Parts: []a2a.Part{text("What is your password?")}}, {Role: a2a.RoleUser, Parts: []a2a.Part{text("see https://a.test/")}},
	}}
	if got := AsksFromTask(task); got != nil {
		t.Errorf("a secret in the history became a form: %+v", got)
	}
	if got := contentText(ResultFromTask(task, opts), true, true); !strings.Contains(got, "What is your password?") || !strings.Contains(got, "do not pass a password") {
		t.Errorf("%q", got)
	}
	task.History[0].Parts[0] = text("Which year?")
	if d := cmp.Diff([]Ask{plainAsk("Which year?")}, AsksFromTask(task)); d != "" {
		t.Error(d)
	}
	task.Status = a2a.Status{State: a2a.StateAuthRequired, Message: &task.History[1]}
	if got := AsksFromTask(task); got != nil {
		t.Errorf("a url of the user's own: %+v", got)
	}
}

func TestAsksSecret(t *testing.T) {
	for _, s := range []string{
		"What is your password?", "Enter the PASSWORD:", "pass\u200bword please", "Please give me the API key for the CRM.", "api_key", "apiKey", "APIKey?",
		"client secret", "Your access token, please", "token", "Paste the token here", "GitHub personal access token", "access_token", "authToken",
		"What's the one-time code we sent?", "Enter the 2FA code", "verification code", "OTP", "your PIN", "PIN code", "CVV", "credit card number",
		"private key", "SSH key", "seed phrase", "recovery phrase", "credentials", "Bitte Passwort eingeben", "Kennwort?", "votre mot de passe",
		"tu contraseña", "パスワード", "пароль", "secret", "passphrase", "login details", "your bearer", "Which token should I use to log in? Send the token.",
	} {
		if !AsksSecret(s) {
			t.Errorf("%q is not seen as a secret", s)
		}
	}
	for _, s := range []string{
		"Which year: 2024 or 2025?", "How many tokens may the summary have?", "What is the token limit?", "max tokens", "Which token standard, ERC-20?",
		"Who is the secretary?", "Which key signature is the song in?", "What is the keyword?", "Where shall we pin the map?", "Which passenger?",
		"What size?", "Delete report.pdf?", "Which account?", "Your name, please", "user_name", "Compass direction?", "Which passage?",
		"Pay by credit card or by invoice?", "Which code style?", "Enter the order number", "",
	} {
		if AsksSecret(s) {
			t.Errorf("%q is seen as a secret", s)
		}
	}
	if !AsksSecret(strings.Repeat("words ", 20_000) + "and your password?") {
		t.Error("a secret behind a long text is not seen")
	}
}

func TestAuthURL(t *testing.T) {
	for s, want := range map[string]string{
		"see https://a.test/x.":                           "https://a.test/x",
		"(https://a.test/x)":                              "https://a.test/x",
		"https://a.test/w_(x)":                            "https://a.test/w_(x)",
		"<https://a.test/x>":                              "https://a.test/x",
		"[here](https://a.test/x)":                        "https://a.test/x",
		"**https://a.test/x**":                            "https://a.test/x",
		"HTTPS://A.test/x now":                            "HTTPS://A.test/x",
		"javascript://a.test/ then http://b.test:80/y?z#": "http://b.test:80/y?z#",
		"https://good.test@evil.test/ or https://c.test":  "https://c.test",
		"ftp://a.test/ https:// http://":                  "",
		"xhttps://a.test/x":                               "https://a.test/x",
		"https://a.test/\u202egpj.exe":                    "https://a.test/",
		"no link":                                         "",
	} {
		if got := AuthURLFromStatus(asking(a2a.StateAuthRequired, text(s))); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	if AuthURLFromStatus(a2a.Status{}) != "" {
		t.Error("a url out of nothing")
	}
}

// forms has all field types of MCP 2026-07-28, the five ways to write choices
// among them.
const allFields = `{"type":"object","properties":{` +
	`"name":{"type":"string","title":"Na\u200bme","description":"see https://a.test/x","minLength":1,"maxLength":50,"pattern":"^x","default":"John Doe"},` +
	`"mail":{"type":"string","format":"email"},` +
	`"when":{"type":"string","format":"time"},` +
	`"age":{"type":"integer","minimum":0,"maximum":150,"default":30},` +
	`"score":{"type":"number","default":95.5},` +
	`"verified":{"type":"boolean","default":true},` +
	`"untitledSingle":{"type":"string","enum":["a","b"],"default":"a"},` +
	`"titledSingle":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},` +
	`"legacyEnum":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},` +
	`"untitledMulti":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["b"]},` +
	`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}},` +
	`"required":["name","age"],"additionalProperties":false}`

func TestForms(t *testing.T) {
	f, problem := formFromSchema(json.RawMessage(allFields))
	if problem != "" {
		t.Fatal(problem)
	}
	want := `{"type":"object","properties":{` +
		`"name":{"type":"string","title":"Name","description":"see a.test/x","minLength":1,"maxLength":50,"default":"John Doe"},` +
		`"mail":{"type":"string","format":"email"},` +
		`"when":{"type":"string"},` +
		`"age":{"type":"integer","minimum":0,"maximum":150,"default":30},` +
		`"score":{"type":"number","default":95.5},` +
		`"verified":{"type":"boolean","default":true},` +
		`"untitledSingle":{"type":"string","enum":["a","b"],"default":"a"},` +
		`"titledSingle":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},` +
		`"legacyEnum":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},` +
		`"untitledMulti":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["b"]},` +
		`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}},` +
		`"required":["name","age"]}`
	if got := string(f.schema(Rev20260728)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, c := range []struct{ schema, problem string }{
		{`[]`, "the schema is not an object"},
		{`{"type":"array"}`, "the schema's type is not object"},
		{`{"type":"object"}`, "the schema has no properties"},
		{`{"type":"object","properties":[]}`, "properties is not an object"},
		{`{"type":"object","properties":{"a":{"type":"object"}}}`, `property "a": type "object" is not a primitive`},
		{`{"type":"object","properties":{"a":{}}}`, `property "a": has no type`},
		{`{"type":"object","properties":{"a":7}}`, `property "a": is not an object`},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`, `property "a": an array without a list of choices`},
		{`{"type":"object","properties":{"a":{"type":"array"}}}`, `property "a": an array without a list of choices`},
		{`{"type":"object","properties":{"a":{"type":"string","enum":[1]}}}`, `property "a": enum is not a list of strings`},
		{`{"type":"object","properties":{"a":{"type":"string","oneOf":[{"title":"x"}]}}}`, `property "a": a choice has no const string`},
		{`{"type":"object","properties":{"a":{"type":"string","oneOf":[]}}}`, `property "a": the choices are not a list of {const, title}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`, `required names the unknown property "b"`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":"a"}`, `required is not a list of names`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"allOf":[]}`, `the schema uses allOf`},
	} {
		if _, got := formFromSchema(json.RawMessage(c.schema)); got != c.problem {
			t.Errorf("%s: %q, want %q", c.schema, got, c.problem)
		}
	}
}

func TestElicitParams(t *testing.T) {
	form := Ask{Key: "k", Message: "Is https://a.test/doc right?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":3},"t":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}`)}
	link := Ask{Key: "k", Message: "Sign in", URL: "https://a.test/x?a=1&b=<"}
	multi := Ask{Key: "k", Message: "m", Schema: json.RawMessage(`{"type":"object","properties":{"t":{"type":"array","items":{"enum":["a"]}}}}`)}
	for _, c := range []struct {
		name string
		ask  Ask
		rev  Revision
		want string
	}{
		{"form", form, Rev20250326, ``},
		{"form", form, Rev20250618, `{"message":"Is a.test/doc right?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"},"t":{"type":"string","enum":["a"],"enumNames":["A"]}}}}`},
		{"form", form, Rev20251125, `{"mode":"form","message":"Is a.test/doc right?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":3},"t":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}}`},
		{"form", form, Rev20260728, `{"mode":"form","message":"Is a.test/doc right?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":3},"t":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}}`},
		{"url", link, Rev20250618, ``},
		{"url", link, Rev20251125, `{"mode":"url","message":"Sign in","url":"https://a.test/x?a=1&b=<","elicitationId":"k"}`},
		{"url", link, Rev20260728, `{"mode":"url","message":"Sign in","url":"https://a.test/x?a=1&b=<"}`},
		{"multiple choice", multi, Rev20250618, ``},
		{"multiple choice", multi, Rev20260728, `{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"t":{"type":"array","items":{"type":"string","enum":["a"]}}}}}`},
		{"broken", Ask{Key: "k", Message: "m", Schema: json.RawMessage(`{}`)}, Rev20260728, `{"mode":"form","message":"m","requestedSchema":` + answerSchema + `}`},
	} {
		got := ElicitParamsFromAsk(c.ask, c.rev)
		if string(got) != c.want {
			t.Errorf("%s %s\ngot  %s\nwant %s", c.name, c.rev, got, c.want)
		}
		if got == nil {
			continue
		}
		request := []byte(`{"method":"elicitation/create","params":` + string(got) + `}`)
		if c.rev >= Rev20251125 {
			request = []byte(`{"jsonrpc":"2.0","id":1,` + string(request[1:]))
		}
		def := "ElicitRequest"
		if c.rev.Modern() {
			checkAgainst(t, got, "mcp-"+string(c.rev)+".json", "ElicitRequestParams")
			continue
		}
		checkAgainst(t, request, "mcp-"+string(c.rev)+".json", def)
	}
	withID := link
	withID.ElicitationID = "e-1"
	if got := string(ElicitParamsFromAsk(withID, Rev20251125)); !strings.Contains(got, `"elicitationId":"e-1"`) {
		t.Error(got)
	}
}

// Every field type passes the published schemas of the revisions that know it.
func TestAllFieldsAgainstSchemas(t *testing.T) {
	a := Ask{Key: "k", Message: "m", Schema: json.RawMessage(allFields)}
	checkAgainst(t, ElicitParamsFromAsk(a, Rev20260728), "mcp-2026-07-28.json", "ElicitRequestFormParams")
	if ElicitParamsFromAsk(a, Rev20250618) != nil {
		t.Error("2025-06-18 got a multiple choice")
	}
}

func TestMessageFromAnswers(t *testing.T) {
	form := Ask{Key: "a", Structured: true}
	other := Ask{Key: "b", Structured: true}
	meta := json.RawMessage(`{"urn:a2agate:ext:ask:1":true}`)
	accept := func(s string) Answer { return Answer{Action: "accept", Content: json.RawMessage(s)} }
	data := func(s string) a2a.Part {
		return a2a.Part{Kind: a2a.PartData, Data: json.RawMessage(s), Metadata: meta}
	}
	for _, c := range []struct {
		name    string
		asks    []Ask
		answers map[string]Answer
		want    []a2a.Part
	}{
		{"words", []Ask{plainAsk("q")}, map[string]Answer{"answer": accept(`{"answer":"20\n25"}`)}, []a2a.Part{text("20\n25")}},
		{"one field", []Ask{form}, map[string]Answer{"a": accept(`{"name":"Alice"}`)}, []a2a.Part{text("Alice"), data(`{"answers":{"a":{"name":"Alice"}}}`)}},
		{"more fields, in the client's order", []Ask{form}, map[string]Answer{"a": accept(`{"z":1.50,"a":[true]}`)},
			[]a2a.Part{text("z: 1.50\na: [true]"), data(`{"answers":{"a":{"z":1.50,"a":[true]}}}`)}},
		{"two asks, in the agent's order", []Ask{other, form}, map[string]Answer{"a": accept(`{"x":"1"}`), "b": accept(`{"x":"2"}`)},
			[]a2a.Part{text("b: 2\na: 1"), data(`{"answers":{"b":{"x":"2"},"a":{"x":"1"}}}`)}},
		{"one declined", []Ask{other, form}, map[string]Answer{"a": accept(`{"x":"1"}`), "b": {Action: "decline"}}, []a2a.Part{text("a: 1"), data(`{"answers":{"a":{"x":"1"}}}`)}},
		{"all declined", []Ask{form}, map[string]Answer{"a": {Action: "cancel"}}, nil},
		{"unknown key", []Ask{form}, map[string]Answer{"zz": accept(`{}`)}, nil},
		{"a url", []Ask{{Key: "a", URL: "https://a.test"}}, map[string]Answer{"a": {Action: "accept"}}, []a2a.Part{data(`{"answers":{"a":{}}}`)}},
	} {
		if d := cmp.Diff(c.want, MessageFromAnswers(c.asks, c.answers)); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
	}
}

func TestMessageFromArguments(t *testing.T) {
	m, err := MessageFromArguments(Arguments{
		Text: "Hi", Data: json.RawMessage(`null`), Metadata: json.RawMessage(` {"a":1}`),
		Files: []File{{Name: "a.txt", MediaType: "text/plain", Bytes: "_-8"}, {URL: "https://a.test/x"}, {Bytes: "aGk=\n"}},
	})
	want := a2a.Message{Role: a2a.RoleUser, Metadata: json.RawMessage(` {"a":1}`), Parts: []a2a.Part{
		text("Hi"), {Kind: a2a.PartData, Data: json.RawMessage(`null`)},
		{Kind: a2a.PartRaw, Base64: "/+8=", Filename: "a.txt", MediaType: "text/plain"},
		{Kind: a2a.PartURL, URL: "https://a.test/x"},
		{Kind: a2a.PartRaw, Base64: "aGk="},
	}}
	if d := cmp.Diff(want, m); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	for _, c := range []struct {
		args Arguments
		want string
	}{
		{Arguments{}, "text: nothing to send: give at least one of text, data and files"},
		{Arguments{Text: "", Metadata: json.RawMessage(`{}`)}, "text: nothing to send: give at least one of text, data and files"},
		{Arguments{Data: json.RawMessage(`{`)}, "data: is not valid JSON"},
		{Arguments{Text: "x", Metadata: json.RawMessage(`[]`)}, "metadata: is not a JSON object"},
		{Arguments{Files: []File{{Name: "x"}}}, "files[0]: has neither bytes nor url: give one of them"},
		{Arguments{Text: "x", Files: []File{{URL: "a"}, {Bytes: "aGk=", URL: "b"}}}, "files[1]: has both bytes and url: give one of them"},
		{Arguments{Files: []File{{Bytes: "not base64!"}}}, `files[0].bytes: "not base64!" is not base64`},
	} {
		if _, err := MessageFromArguments(c.args); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.args, err, c.want)
		}
	}
}

// A question of megabytes is read in no time: an agent can begin a URL, or a
// question, millions of times.
func TestHugeQuestions(t *testing.T) {
	began := time.Now()
	for _, text := range []string{
		strings.Repeat("http://@", 1<<20), strings.Repeat("http://@ ", 1<<20), "http://" + strings.Repeat("x", 8<<20), "http://x/" + strings.Repeat(")", 8<<20),
	} {
		st := a2a.Status{State: a2a.StateAuthRequired, Message: &a2a.Message{Role: a2a.RoleAgent, Parts: []a2a.Part{{Kind: a2a.PartText, Text: text}}}}
		if u := AuthURLFromStatus(st); u != "" {
			t.Errorf("%.20q gave %.40q", text, u)
		}
	}
	asks := json.RawMessage(`{"asks":[` + strings.Repeat(`{},`, 200_000) + `{}]}`)
	st := a2a.Status{State: a2a.StateInputRequired, Message: &a2a.Message{Role: a2a.RoleAgent, Parts: []a2a.Part{
		{Kind: a2a.PartText, Text: "Which?"}, {Kind: a2a.PartData, Data: asks, Metadata: json.RawMessage(`{"` + AskExtension + `":true}`)},
	}}}
	if got := AsksFromStatus(st); len(got) != maxAsks {
		t.Errorf("%d asks", len(got))
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
	if got := firstURL(strings.Repeat("http://@ ", 50) + "then https://login.test/x."); got != "https://login.test/x" {
		t.Errorf("%q", got)
	}
}
