package server

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"a2agate/internal/schematest"
	"a2agate/tools"
)

var update = flag.Bool("update", false, "write the answers of the conversations anew")

// TestConversations plays the requests of testdata/conversations against a
// server and compares what comes back. A file is prose, then sections in pairs:
// "name request" and "name answer". A request starts with
//
//	POST /mcp modern
//
// where "modern" (or "legacy", with 2025-11-25 as its version, or "bare") says
// which headers are added; a header line replaces one, "-Name" takes one away.
// META in the body stands for a modern _meta, SESSION for the session id of the
// last initialize. An options section may stand first, one word a line:
//
//	auth: two principals, with the tokens "one" and "two"
//	paramheaders: tool schemas keep x-mcp-header
//	plain: no prompts, resources, completions, tasks
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversations/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			playConversation(t, file)
		})
	}
}

type turn struct {
	name            string
	request, answer []byte
}

// loadConversation is strict: a file that says nothing, a section nobody reads
// or a request without its answer is an error.
func loadConversation(raw []byte) (options []string, turns []turn, err error) {
	a := txtar.Parse(raw)
	if len(bytes.TrimSpace(a.Comment)) == 0 {
		return nil, nil, fmt.Errorf("no prose before the first section")
	}
	files := a.Files
	if len(files) > 0 && files[0].Name == "options" {
		options = strings.Fields(string(files[0].Data))
		files = files[1:]
	}
	if len(files) == 0 || len(files)%2 != 0 {
		return nil, nil, fmt.Errorf("%d sections: requests and answers come in pairs", len(files))
	}
	seen := map[string]bool{}
	for i := 0; i < len(files); i += 2 {
		name, ok := strings.CutSuffix(files[i].Name, " request")
		if !ok || files[i+1].Name != name+" answer" {
			return nil, nil, fmt.Errorf("sections %q and %q are not a request and its answer", files[i].Name, files[i+1].Name)
		}
		if seen[name] {
			return nil, nil, fmt.Errorf("two turns are called %q", name)
		}
		seen[name] = true
		if len(bytes.TrimSpace(files[i].Data)) == 0 {
			return nil, nil, fmt.Errorf("%q has no request", name)
		}
		turns = append(turns, turn{name, files[i].Data, files[i+1].Data})
	}
	return options, turns, nil
}

func playConversation(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options, turns, err := loadConversation(raw)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	s := newServer(t, echo, func(o *Options) { conversationOptions(t, o, options) })
	session := ""
	archive := txtar.Parse(raw)
	for _, turn := range turns {
		r, rev, method := conversationRequest(t, turn, session)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if id := w.Header().Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		validateAnswer(t, rev, method, w)
		got := renderAnswer(w, session)
		if *update {
			for i := range archive.Files {
				if archive.Files[i].Name == turn.name+" answer" {
					archive.Files[i].Data = got
				}
			}
			continue
		}
		if d := cmp.Diff(string(turn.answer), string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", turn.name, d)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func conversationOptions(t *testing.T, o *Options, words []string) {
	for _, word := range words {
		switch word {
		case "auth":
			o.Authenticate = tokenAuth
		case "paramheaders":
			o.ParamHeaders = true
			cat := basicCatalogue()
			cat.Tools = append(cat.Tools, annotatedTool())
			o.Catalogues = newCatalogues(cat)
		case "plain":
			o.Prompts, o.Resources, o.Completions, o.Tasks = nil, nil, nil, nil
		case "cors":
			o.Guard.AllowedOrigins = []string{"https://app.example.com"}
		case "profiles":
			cats := newCatalogues(basicCatalogue())
			small := basicCatalogue()
			small.Tools = small.Tools[:1]
			cats.cats[tools.View{Profile: "finance"}] = small
			o.Catalogues = cats
		default:
			t.Fatalf("unknown option %q", word)
		}
	}
}

// tokenAuth knows the tokens "one" and "two".
func tokenAuth(r *http.Request) (Identity, *Denied) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token != "one" && token != "two" {
		return Identity{}, &Denied{Status: http.StatusUnauthorized, Challenge: `Bearer realm="a2agate"`, Reason: "this gateway needs a bearer token"}
	}
	return Identity{Principal: token}, nil
}

func conversationRequest(t *testing.T, turn turn, session string) (r *http.Request, rev, method string) {
	t.Helper()
	text := strings.ReplaceAll(string(turn.request), "META", metaOf("{}", ""))
	text = strings.ReplaceAll(text, "SESSION", session)
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimRight(head, "\n"), "\n")
	first := strings.Fields(lines[0])
	if len(first) != 3 {
		t.Fatalf("%s: the first line must be METHOD PATH WIRE, not %q", turn.name, lines[0])
	}
	body = strings.TrimSuffix(body, "\n")
	r = httptest.NewRequest(first[0], "http://127.0.0.1:8931"+first[1], strings.NewReader(body))
	rev = setWire(t, r, first[2], body)
	for _, line := range lines[1:] {
		if name, ok := strings.CutPrefix(line, "-"); ok {
			r.Header.Del(name)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("%s: %q is no header", turn.name, line)
		}
		if value = strings.TrimSpace(value); name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
		if name == "MCP-Protocol-Version" && slices.Contains(supportedNames(), value) {
			rev = value
		}
	}
	if m := regexp.MustCompile(`"method":"([^"]+)"`).FindStringSubmatch(body); m != nil {
		method = m[1]
	}
	return r, rev, method
}

// setWire adds the headers of a wire and returns its revision.
func setWire(t *testing.T, r *http.Request, kind, body string) string {
	if kind != "bare" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	switch kind {
	case "modern":
		r.Header.Set("MCP-Protocol-Version", "2026-07-28")
		mirror(r.Header, body)
		return "2026-07-28"
	case "legacy":
		r.Header.Set("MCP-Protocol-Version", "2025-11-25")
		return "2025-11-25"
	case "bare":
		return "2026-07-28"
	}
	t.Fatalf("unknown wire %q", kind)
	return ""
}

// validateAnswer checks every message of an answer against the schema of its
// revision, where the schemas are at hand.
func validateAnswer(t *testing.T, rev, method string, w *httptest.ResponseRecorder) {
	t.Helper()
	if !schematest.Available() || w.Body.Len() == 0 {
		return
	}
	body := bytes.TrimSpace(w.Body.Bytes())
	if m := versionPattern.FindSubmatch(body); m != nil && method == "initialize" {
		rev = string(m[1])
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		sc := bufio.NewScanner(bytes.NewReader(body))
		for sc.Scan() {
			if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
				schematest.Message(t, rev, method, []byte(data))
			}
		}
		return
	}
	if bytes.HasPrefix(body, []byte(`{"jsonrpc"`)) {
		schematest.Message(t, rev, method, body)
	}
}

var versionPattern = regexp.MustCompile(`"protocolVersion":"([^"]+)"`)

var sessionPattern = regexp.MustCompile(`v1\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

// requestPattern is the id in an internal error.
var requestPattern = regexp.MustCompile(`"requestId":"[a-z2-7]{6}-[0-9a-z]+"`)

// renderAnswer is the golden form: status, headers in order, a blank line, the
// body.
func renderAnswer(w *httptest.ResponseRecorder, session string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n", w.Code)
	names := make([]string, 0, len(w.Header()))
	for name := range w.Header() {
		if name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range w.Header()[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, sessionPattern.ReplaceAllString(v, "SESSION"))
		}
	}
	b.WriteByte('\n')
	if w.Body.Len() > 0 {
		b.Write(requestPattern.ReplaceAll(bytes.TrimRight(w.Body.Bytes(), "\n"), []byte(`"requestId":"REQUEST"`)))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func TestConversationLoaderIsStrict(t *testing.T) {
	for name, raw := range map[string]string{
		"empty":           "",
		"no prose":        "-- a request --\nPOST /mcp modern\n-- a answer --\n200\n",
		"no sections":     "prose\n",
		"odd":             "prose\n-- a request --\nPOST /mcp modern\n",
		"swapped":         "prose\n-- a answer --\n200\n-- a request --\nPOST /mcp modern\n",
		"unknown section": "prose\n-- a request --\nPOST /mcp modern\n-- a reply --\n200\n",
		"names differ":    "prose\n-- a request --\nPOST /mcp modern\n-- b answer --\n200\n",
		"twice":           "prose\n-- a request --\nx\n-- a answer --\n200\n-- a request --\nx\n-- a answer --\n200\n",
		"empty request":   "prose\n-- a request --\n\n-- a answer --\n200\n",
	} {
		if _, _, err := loadConversation([]byte(raw)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
