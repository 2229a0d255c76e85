package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var someTime = time.Date(2026, 11, 30, 15, 4, 5, 0, time.UTC)

// sample is a status with something of everything.
func sample() Status {
	return Status{
		Gateway: "1.2.3", Endpoint: "http://127.0.0.1:8931/mcp", Started: someTime,
		Notices: []string{"the configuration is broken"},
		Agents: []Agent{
			{
				Alias: "billing", Name: "Billing", Description: "Pays & bills.", Release: "2.0", State: "ready", Since: someTime,
				Version: "1.0", Binding: "JSONRPC", URL: "http://127.0.0.1:9101/a2a", CardURL: "http://127.0.0.1:9101/.well-known/agent-card.json",
				Documentation: "https://docs.example/billing", Notes: []string{"the card has no version"},
				Skills: []Skill{{ID: "pay", Name: "Pay", Description: "Pays a bill.", Tags: []string{"money", "out"}}, {ID: "unnamed"}},
			},
			{Alias: "dead", State: "auth_required", Reason: "the agent answered 401", Since: someTime},
		},
		Tools: []Tool{
			{Name: "a2a_send_message", Title: "Send a message", Description: "Sends.", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`), OutputSchema: json.RawMessage(`{"type":"object"}`)},
			{Name: "billing_pay", Agent: "billing", Skill: "pay"},
		},
		Calls:   []Call{{ID: 2, Tool: "a2a_send_message", Agent: "billing", Outcome: "task", At: someTime, Millis: 1500}, {ID: 1, Outcome: "protocol_error", At: someTime}},
		Tasks:   Tasks{Open: 3, More: true, List: []Task{{Handle: "tk_abcdef…", Agent: "billing", Since: someTime}}},
		Clients: []Client{{ID: "claude-code", Title: "Claude Code", Note: "start it anew", Blocks: []Block{{Where: "In a terminal", Text: "claude mcp add"}}}},
	}
}

func pagesOf(t testing.TB, status func(*http.Request) Status) *Pages {
	t.Helper()
	p, err := New(Options{Version: "1.2.3", Status: status})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pagesWith(t testing.TB, s Status) *Pages {
	return pagesOf(t, func(*http.Request) Status { return s })
}

func get(h http.Handler, method string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPageShowsEverything(t *testing.T) {
	t.Parallel()
	w := get(pagesWith(t, sample()).Page(), http.MethodGet)
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	page := w.Body.String()
	for _, want := range []string{
		"the configuration is broken", "1 of 2 agents ready", "2 tools", "at least 3 open tasks", "http://127.0.0.1:8931/mcp",
		`data-state="auth_required"`, ">credential needed<", "the agent answered 401", "Pays &amp; bills.", `datetime="2026-11-30T15:04:05Z"`,
		"Details: 2 skills, 1 note", "<b>Pay</b>", "<b>unnamed</b>", "money, out", "the card has no version", "JSONRPC",
		`<a href="https://docs.example/billing" target="_blank" rel="noopener noreferrer nofollow">`,
		"<code>a2a_send_message</code>", "Stands for skill <code>pay</code> of agent <code>billing</code>.", "&#34;type&#34;: &#34;object&#34;",
		">went on as a task<", "1.5 s", ">protocol error<", "no such tool",
		"tk_abcdef…", "The newest 1 of at least 3.", "claude mcp add", "In a terminal", "start it anew",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, "you are") || strings.Contains(page, "Your own") {
		t.Error("without authentication nobody has a name")
	}
}

func TestPageOfNobodyAndNothing(t *testing.T) {
	t.Parallel()
	page := get(pagesWith(t, Status{Principal: "alice"}).Page(), http.MethodGet).Body.String()
	for _, want := range []string{
		"you are <b>alice</b>", "0 of 0 agents ready", "No agent is configured that you may use.", "There is no tool.",
		"No call yet.", "Your own, the newest first", "No task works or waits.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// hostile is what an agent may put anywhere: out of text, attribute, URL and
// script.
const hostile = `"'></td></pre></script><script>alert(1)</script><img src=x onerror=alert(1)><a href="javascript:alert(1)">{{.}}</a><!--&lt;`

// fill puts s into every string that v holds.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), s)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err)
			}
			v.Set(reflect.ValueOf(json.RawMessage(quoted)))
			return
		}
		for i := range v.Len() {
			fill(v.Index(i), s)
		}
	}
}

// tag matches what a browser takes for the beginning of an element.
var tag = regexp.MustCompile(`<[a-zA-Z/!][^>]*>`)

// Whatever agents write, the page has the elements that it has anyway.
func TestPageEscapesWhatAgentsWrite(t *testing.T) {
	t.Parallel()
	elements := func(s string) []string {
		status := sample()
		status.Principal = "p"
		fill(reflect.ValueOf(&status).Elem(), s)
		w := get(pagesWith(t, status).Page(), http.MethodGet)
		if w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		page := w.Body.String()
		if n := strings.Count(page, "<script"); n != 1 {
			t.Errorf("%q: %d script elements", s, n)
		}
		if strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%q stands where no text may stand", s)
		}
		var names []string
		for _, e := range tag.FindAllString(page, -1) {
			name, _, _ := strings.Cut(strings.Trim(e, "<>"), " ")
			names = append(names, name)
		}
		return names
	}
	plain := elements("harmless")
	if len(plain) < 100 {
		t.Fatalf("only %d elements: the sample shows too little", len(plain))
	}
	if diff := cmp.Diff(plain, elements(hostile)); diff != "" {
		t.Errorf("hostile text makes other elements (-plain +hostile):\n%s", diff)
	}
	if diff := cmp.Diff(plain, elements("javascript:alert(1)")); diff != "" {
		t.Errorf("a script's address makes other elements (-plain +hostile):\n%s", diff)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		"https://a.example/x?y#z": true, "http://127.0.0.1:1/": true,
		"": false, "javascript:alert(1)": false, "JAVASCRIPT://a.example/%0aalert(1)": false, "data:text/html,x": false, "//a.example/": false, "/x": false,
		"ftp://a.example/": false, "https:a.example": false, "https://": false, " https://a.example/": false, "https://a b/": false, "a2a://agents/x/card": false,
	} {
		if got := href(in); (got != "") != want || got != "" && got != in {
			t.Errorf("href(%q) = %q", in, got)
		}
	}
}

// The page can be held to its policy: nothing inline, nothing from elsewhere.
func TestPagesKeepTheirPolicy(t *testing.T) {
	t.Parallel()
	p := pagesWith(t, sample())
	for name, body := range map[string]string{
		"page":    get(p.Page(), http.MethodGet).Body.String(),
		"sign-in": get(p.SignIn(), http.MethodGet).Body.String(),
	} {
		for _, bad := range []string{"<style", " style=", " onclick=", " onload=", "javascript:", "<script>", "<iframe", "<base", "http-equiv"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %q", name, bad)
			}
		}
		loads := regexp.MustCompile(`<(?:link|script|img)[^>]* (?:href|src)="([^"]*)"`).FindAllStringSubmatch(body, -1)
		if len(loads) != 3 {
			t.Errorf("%s loads %v", name, loads)
		}
		for _, l := range loads {
			if _, ok := p.Assets()["/"+l[1]]; !ok {
				t.Errorf("%s loads %q, which is no asset", name, l[1])
			}
		}
	}
	for name, f := range p.files {
		if !strings.HasSuffix(name, ".js") {
			continue
		}
		for _, m := range regexp.MustCompile(`from '\./([^']*)'`).FindAllStringSubmatch(string(f.data), -1) {
			if _, ok := p.files["/assets/"+m[1]]; !ok {
				t.Errorf("%s imports %q, which is no asset", name, m[1])
			}
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"} {
			if strings.Contains(string(f.data), bad) {
				t.Errorf("%s uses %s", name, bad)
			}
		}
	}
}

// Every answer has the headers that protect it, whatever its status.
func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	p := pagesWith(t, sample())
	etag := get(p.Page(), http.MethodGet).Header().Get("ETag")
	broken := sample()
	broken.Tools[0].InputSchema = json.RawMessage("{")
	answers := map[string]*httptest.ResponseRecorder{
		"page": get(p.Page(), "GET"), "page known": get(p.Page(), "GET", "If-None-Match", etag), "head": get(p.Page(), "HEAD"),
		"api": get(p.API(), "GET"), "api posted": get(p.API(), "POST"), "sign-in": get(p.SignIn(), "GET"), "broken": get(pagesWith(t, broken).Page(), "GET"),
	}
	for name, h := range p.Assets() {
		answers[name] = get(h, "GET")
	}
	if len(answers) < 12 {
		t.Fatalf("only %d answers", len(answers))
	}
	for name, w := range answers {
		h := w.Header()
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !slices.Contains(strings.Split(h.Get("Content-Security-Policy"), "; "), want) {
				t.Errorf("%s: the policy %q has no %s", name, h.Get("Content-Security-Policy"), want)
			}
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %v", name, h)
		}
		if strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s: %s", name, h.Get("Content-Security-Policy"))
		}
	}
	for name, want := range map[string]int{"page": 200, "page known": 304, "head": 200, "api": 200, "api posted": 405, "sign-in": 401, "broken": 500} {
		if got := answers[name].Code; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	for _, name := range []string{"page known", "head"} {
		if n := answers[name].Body.Len(); n != 0 {
			t.Errorf("%s has a body of %d bytes", name, n)
		}
	}
}

// Both pages have one ETag, which changes with what they show.
func TestETags(t *testing.T) {
	t.Parallel()
	s := sample()
	p := pagesOf(t, func(*http.Request) Status { return s })
	page, api := get(p.Page(), "GET").Header().Get("ETag"), get(p.API(), "GET").Header().Get("ETag")
	if page == "" || page != api {
		t.Errorf("page %s, api %s", page, api)
	}
	if body := get(p.Page(), "GET").Body.String(); !strings.Contains(body, `data-etag="&#34;`+strings.Trim(page, `"`)) {
		t.Error("the page does not say which ETag it has")
	}
	for header, want := range map[string]int{page: 304, "W/" + page: 304, `"x", ` + page: 304, "*": 304, `"x"`: 200, "": 200} {
		if w := get(p.API(), "GET", "If-None-Match", header); w.Code != want {
			t.Errorf("If-None-Match: %s is answered %d", header, w.Code)
		}
	}
	s.Agents[1].State = "ready"
	if w := get(p.API(), "GET", "If-None-Match", page); w.Code != 200 || w.Header().Get("ETag") == page {
		t.Errorf("after a change: %d %s", w.Code, w.Header().Get("ETag"))
	}
	newer, err := New(Options{Version: "1.2.4", Status: func(*http.Request) Status { return s }})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := get(p.API(), "GET"), get(newer.API(), "GET"); a.Header().Get("ETag") == b.Header().Get("ETag") {
		t.Error("two versions have one ETag")
	}
}

// What depends on who asks is not stored for others.
func TestCaching(t *testing.T) {
	t.Parallel()
	p := pagesWith(t, sample())
	for name, h := range map[string]http.Handler{"page": p.Page(), "api": p.API()} {
		w := get(h, "GET")
		if w.Header().Get("Cache-Control") != "private, no-cache" || !strings.Contains(w.Header().Get("Vary"), "Authorization") {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
	if got := get(p.SignIn(), "GET").Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("sign-in: %s", got)
	}
}

func TestAPI(t *testing.T) {
	t.Parallel()
	w := get(pagesWith(t, sample()).API(), "GET")
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("%s", got)
	}
	var got Status
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample().normal(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const empty = `{"gateway":"","endpoint":"","started":"0001-01-01T00:00:00Z","agents":[],"tools":[],"calls":[],"tasks":{"open":0,"list":[]},"clients":[]}`
	if got := get(pagesWith(t, Status{}).API(), "GET").Body.String(); got != empty {
		t.Errorf("nothing is\n%s, want\n%s", got, empty)
	}
}

func TestSignInShowsNothingOfTheGateway(t *testing.T) {
	t.Parallel()
	p := pagesOf(t, func(*http.Request) Status {
		t.Error("the status was asked for")
		return sample()
	})
	w := get(p.SignIn(), "GET")
	if body := w.Body.String(); w.Code != 401 || !strings.Contains(body, `type="password"`) || strings.Contains(body, "1.2.3") {
		t.Errorf("%d %s", w.Code, body)
	}
	for name, h := range p.Assets() {
		if w := get(h, "GET"); w.Code != 200 || w.Body.Len() == 0 || w.Header().Get("Content-Type") == "application/octet-stream" {
			t.Errorf("%s: %d, %d bytes of %s", name, w.Code, w.Body.Len(), w.Header().Get("Content-Type"))
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for millis, want := range map[int64]string{0: "0 ms", 999: "999 ms", 1000: "1.0 s", 9949: "9.9 s", 12345: "12 s", 61000: "1 min 1 s", 7260000: "121 min 0 s"} {
		if got := durationWords(millis); got != want {
			t.Errorf("%d ms are %q, want %q", millis, got, want)
		}
	}
	for handle, want := range map[string]string{"tk_abcdefghijklmnopqrstuvwxyz": "tk_abcdef…", "tk_short": "…", "": "…"} {
		if got := ShortHandle(handle); got != want {
			t.Errorf("%q is shown as %q, want %q", handle, got, want)
		}
	}
	for state, want := range map[string]string{"ready": "good", "connecting": "wait", "down": "bad", "made_up": "bad"} {
		if got := tone(state); got != want {
			t.Errorf("%s is %s, want %s", state, got, want)
		}
	}
	if got := indent(json.RawMessage("{not json")); got != "{not json" {
		t.Errorf("%q", got)
	}
}

// Colours have enough contrast in both schemes (WCAG 2.2, 1.4.3).
func TestContrast(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("assets/status.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(css), "prefers-color-scheme: dark")
	if !ok {
		t.Fatal("there is no dark scheme")
	}
	for name, text := range map[string]string{"light": light, "dark": dark[:strings.Index(dark, "*::before")]} {
		c := colours(t, text)
		for _, front := range []string{"text", "muted", "accent", "good", "wait", "bad"} {
			for _, back := range []string{"page", "raised"} {
				if r := contrast(c[front], c[back]); r < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", name, front, back, r)
				}
			}
		}
		if r := contrast(c["on-accent"], c["accent"]); r < 4.5 {
			t.Errorf("%s: buttons have a contrast of %.2f", name, r)
		}
	}
}

// Every open page asks every few seconds: with three hundred tools that must
// not be felt.
func BenchmarkStatus(b *testing.B) {
	s := sample()
	for range 300 {
		s.Tools = append(s.Tools, Tool{
			Name: "agent_skill", Description: strings.Repeat("Does something useful. ", 20),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"What to ask or tell the agent."}},"required":["text"],"additionalProperties":false}`),
		})
	}
	p := pagesWith(b, s)
	for name, h := range map[string]http.Handler{"api": p.API(), "page": p.Page()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				get(h, http.MethodGet)
			}
		})
		tag := get(h, http.MethodGet).Header().Get("ETag")
		b.Run(name+" known", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				get(h, http.MethodGet, "If-None-Match", tag)
			}
		})
	}
}
