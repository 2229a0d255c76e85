package translate

import (
	"encoding/base64"
	"encoding/json"
	"go/parser"
	gotoken "go/token"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"a2agate/a2a"
)

func raw(mime, name, content string) a2a.Part {
	return a2a.Part{Kind: a2a.PartRaw, MediaType: mime, Filename: name, Base64: base64.StdEncoding.EncodeToString([]byte(content))}
}

const png = "\x89PNG\r\n\x1a\n...."

// What raw bytes become: kind of block, type and uri.
func TestRawParts(t *testing.T) {
	for _, c := range []struct {
		part            a2a.Part
		kind, mime, uri string
	}{
		{raw("image/png", "p.png", png), "image", "image/png", ""},
		{raw("IMAGE/PNG; x=y", "", png), "image", "image/png", ""},
		{raw("", "p.png", png), "image", "image/png", ""},
		{raw("image/jpeg", "", png), "image", "image/png", ""},
		{raw("image/png", "", "\xff\xd8\xff\xe0"), "image", "image/jpeg", ""},
		{raw("image/png", "", "GIF89a"), "image", "image/gif", ""},
		{raw("image/png", "", "RIFF1234WEBPVP8 "), "image", "image/webp", ""},
		{raw("image/x-odd", "", "odd"), "image", "image/x-odd", ""},
		{raw("image/svg+xml", "a.svg", "<svg/>"), "text", "image/svg+xml", "a2a://part/a.svg"},
		{raw("image/svg+xml", "a.svg", "\xff"), "blob", "image/svg+xml", "a2a://part/a.svg"},
		{raw("audio/wav", "", "RIFF"), "audio", "audio/wav", ""},
		{raw("text/csv", "a b.csv", "1,2"), "text", "text/csv", "a2a://part/a%20b.csv"},
		{raw("text/csv", "", "\xff\xfe"), "blob", "text/csv", ""},
		{raw("text/plain", "", "a\x00b"), "blob", "text/plain", ""},
		{raw("application/vnd.x+json", "", "{}"), "text", "application/vnd.x+json", ""},
		{raw("application/pdf", "../../etc/r.pdf", "%PDF"), "blob", "application/pdf", "a2a://part/r.pdf"},
		{raw("application/octet-stream", "x.bin", "text"), "blob", "application/octet-stream", "a2a://part/x.bin"},
		{raw("", "", "just words"), "text", "text/plain", ""},
		{raw("", "", "\xff"), "blob", "application/octet-stream", ""},
		{raw("no type", "x", "words"), "blob", "application/octet-stream", "a2a://part/x"},
		{raw("", "a.JSON", "{}"), "text", "application/json", "a2a://part/a.JSON"},
		{raw("text/plain", `C:\x\..\日.txt`, "y"), "text", "text/plain", "a2a://part/%E6%97%A5.txt"},
		{raw("text/plain", "..", "y"), "text", "text/plain", ""},
	} {
		p := c.part
		r := ResultFromMessage(&a2a.Message{Parts: []a2a.Part{p}}, Options{})
		var kind, mime, uri string
		switch b := r.Content[0].(type) {
		case mcp.ImageContent:
			kind, mime = "image", b.MIMEType
		case mcp.AudioContent:
			kind, mime = "audio", b.MIMEType
		case mcp.EmbeddedResource:
			switch res := b.Resource.(type) {
			case mcp.TextResourceContents:
				kind, mime, uri = "text", res.MIMEType, res.URI
			case mcp.BlobResourceContents:
				kind, mime, uri = "blob", res.MIMEType, res.URI
			}
		}
		if kind != c.kind || mime != c.mime || c.uri != "" && uri != c.uri || uri != "" && !strings.HasPrefix(uri, "a2a://part/") {
			t.Errorf("%s %q: %s %s %s, want %s %s %s", p.MediaType, p.Filename, kind, mime, uri, c.kind, c.mime, c.uri)
		}
		if strings.Count(uri, "/") > 3 {
			t.Errorf("%q: a path in %s", p.Filename, uri)
		}
	}
}

func TestURLParts(t *testing.T) {
	for u, want := range map[string]bool{
		"https://files.acme.test/r.pdf?sig=a%20b": true, "http://localhost:1/x": true, "s3://bucket/key": true, "mailto:a@b.test": true, "HTTPS://A.TEST": true,
		"javascript:alert(1)": false, "JavaScript:alert(1)": false, "data:text/html,x": false, "file:///etc/passwd": false, "vbscript:x": false, "/relative": false,
		"": false, "https://": false, "https://a.test/a b": false, "https://a.test/\u202e": false, "https://a.test/\n": false, "//host/x": false, "blob:https://a": false,
	} {
		r := ResultFromMessage(&a2a.Message{Parts: []a2a.Part{{Kind: a2a.PartURL, URL: u}}}, Options{})
		_, link := r.Content[0].(mcp.ResourceLink)
		if link != want {
			t.Errorf("%q: link %v", u, link)
		}
		if want && !strings.Contains(contentText(r, true, false), u) {
			t.Errorf("%q is not in the text", u)
		}
	}
}

// A block says what it was, with handles in the place of the agent's ids.
func TestBlockMeta(t *testing.T) {
	task := &a2a.Task{ID: "raw-task-id", ContextID: "raw-context-id", Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{{
		ArtifactID: "a1", Name: "Na\u202eme", Description: "De\nscription",
		Parts: []a2a.Part{{Kind: a2a.PartText, Text: "x", Filename: "/a/b.txt", MediaType: "text/plain", Metadata: json.RawMessage(`{"big":12345678901234567890,"<":1}`)}},
	}}}
	r := ResultFromTask(task, opts)
	got := string(r.Content[0].(mcp.TextContent).Meta.AdditionalFields[BlockMetaKey].(json.RawMessage))
	want := `{"partKind":"text","filename":"b.txt","mediaType":"text/plain","metadata":{"big":12345678901234567890,"<":1},` +
		`"artifactId":"a1","artifactName":"Name","artifactDescription":"De scription","contextHandle":"cx_1","taskHandle":"tk_1"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An agent's endless ids and metadata do not multiply.
// Metadata of parts stays within the limit of the text; what is left out is
// said.
func TestHugeMetadata(t *testing.T) {
	meta := func(n int) json.RawMessage { return json.RawMessage(`{"k":"` + strings.Repeat("m", n) + `"}`) }
	task := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{{ArtifactID: "a"}}}
	for _, n := range []int{30_000, 15_000, 9_000, 5_000_000, 10} {
		task.Artifacts[0].Parts = append(task.Artifacts[0].Parts, a2a.Part{Kind: a2a.PartText, Text: "word", Metadata: meta(n)})
	}
	raw := string(AppendResult(nil, ResultFromTask(task, opts), Rev20260728, nil))
	for i, kept := range []bool{true, false, true, false, true} {
		if m := string(task.Artifacts[0].Parts[i].Metadata); strings.Contains(raw, m) != kept {
			t.Errorf("metadata of %d bytes: kept %v, want %v", len(m), !kept, kept)
		}
	}
	if !strings.Contains(raw, `"note":"metadata of parts is left out: it has more than 40000 bytes in all"`) {
		t.Errorf("%.600s", raw[strings.Index(raw, "structuredContent"):])
	}
}

func TestHugeIdentity(t *testing.T) {
	huge := strings.Repeat("i", 100_000)
	task := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{{ArtifactID: huge, Name: huge, Description: huge}}}
	for range 100 {
		task.Artifacts[0].Parts = append(task.Artifacts[0].Parts, a2a.Part{Kind: a2a.PartURL, URL: "https://a.test/", Filename: huge, MediaType: huge})
	}
	task.Artifacts[0].Parts = append(task.Artifacts[0].Parts, a2a.Part{Kind: a2a.PartText, Text: strings.Repeat("long ", 20_000)})
	raw := AppendResult(nil, ResultFromTask(task, opts), Rev20260728, nil)
	if len(raw) > 600_000 {
		t.Errorf("%d bytes", len(raw))
	}
	if strings.Contains(string(raw), huge) {
		t.Error("the id is there in full")
	}
}

func TestResourcesFromArtifact(t *testing.T) {
	const uri = "a2a://tasks/tk_1/artifacts/a1"
	for _, c := range []struct {
		name  string
		parts []a2a.Part
		want  []mcp.ResourceContents
	}{
		{"nothing", nil, []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/plain"}}},
		{"words", []a2a.Part{text("a"), text("b")}, []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: "a\nb"}}},
		{"data", []a2a.Part{{Kind: a2a.PartData, Data: json.RawMessage(`{"a": 1}`)}}, []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "application/json", Text: `{"a": 1}`}}},
		{"a file", []a2a.Part{raw("text/csv", "", "1,2")}, []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: "text/csv", Text: "1,2"}}},
		{"mixed", []a2a.Part{raw("image/png", "", png), text("a"), raw("application/pdf", "", "%PDF"), {Kind: a2a.PartURL, URL: "https://a.test/"}, raw("audio/wav", "", "RIFF")},
			[]mcp.ResourceContents{
				mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: "a\nhttps://a.test/"},
				mcp.BlobResourceContents{URI: uri, MIMEType: "image/png", Blob: raw("", "", png).Base64},
				mcp.BlobResourceContents{URI: uri, MIMEType: "application/pdf", Blob: "JVBERg=="},
				mcp.BlobResourceContents{URI: uri, MIMEType: "audio/wav", Blob: "UklGRg=="},
			}},
		{"over every limit", []a2a.Part{raw("image/png", "", png+strings.Repeat("x", DefaultMediaBytes))},
			[]mcp.ResourceContents{mcp.BlobResourceContents{URI: uri, MIMEType: "image/png", Blob: raw("", "", png+strings.Repeat("x", DefaultMediaBytes)).Base64}}},
	} {
		got := ResourcesFromArtifact(&a2a.Artifact{ArtifactID: "a1", Parts: c.parts}, uri)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%.2000s", c.name, d)
		}
		for _, r := range got {
			checkAgainst(t, AppendResourceContents(nil, r, Rev20260728), "mcp-2026-07-28.json", strings.TrimPrefix(strings.TrimPrefix(kindOf(r), "mcp."), "*"))
		}
	}
}

func kindOf(r mcp.ResourceContents) string {
	if _, ok := r.(mcp.TextResourceContents); ok {
		return "TextResourceContents"
	}
	return "BlobResourceContents"
}

func TestArtifactURI(t *testing.T) {
	if got := ArtifactURI("tk_1", "../a b/ü?#"); got != "a2a://tasks/tk_1/artifacts/..%2Fa%20b%2F%C3%BC%3F%23" {
		t.Error(got)
	}
}

// Data that a depth bomb fills is carried into both halves as it is.
func TestDepthBomb(t *testing.T) {
	bomb := strings.Repeat(`{"a":[`, 150) + strings.Repeat(`]}`, 150)
	task := &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{{ArtifactID: "a1", Parts: []a2a.Part{{Kind: a2a.PartData, Data: json.RawMessage(bomb), Metadata: json.RawMessage(bomb)}}}}}
	raw := AppendResult(nil, ResultFromTask(task, opts), Rev20260728, nil)
	if !json.Valid(raw) || !strings.Contains(string(raw), `"data":`+bomb) {
		t.Error("the data is not what it was")
	}
}

func TestAnswerFromJSON(t *testing.T) {
	form := Ask{Key: "k", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1},"m":{"type":"string","format":"email"}},"required":["n"]}`)}
	for _, c := range []struct {
		ask  Ask
		raw  string
		want Answer
		err  string
	}{
		{form, `{"action":"accept","content":{"n":2,"extra":[1]}}`, Answer{"accept", json.RawMessage(`{"n":2,"extra":[1]}`)}, ""},
		{form, `{"action":"decline"}`, Answer{Action: "decline"}, ""},
		{form, `{"action":"cancel","content":{"n":1}}`, Answer{Action: "cancel"}, ""},
		{Ask{URL: "https://a.test"}, `{"action":"accept"}`, Answer{Action: "accept"}, ""},
		{form, `{"action":"accept"}`, Answer{}, "content is not an object with the fields that were asked for"},
		{form, `{"action":"accept","content":[]}`, Answer{}, "content is not an object with the fields that were asked for"},
		{form, `{"action":"accept","content":{}}`, Answer{}, "n"},
		{form, `{"action":"accept","content":{"n":"x"}}`, Answer{}, "content.n: "},
		{form, `{"action":"accept","content":{"n":0}}`, Answer{}, "content.n: "},
		{form, `{"action":"accept","content":{"n":1,"m":"no mail"}}`, Answer{}, "content.m: "},
		{form, `{"action":"maybe\u001b"}`, Answer{}, `action "maybe" is not accept, decline or cancel`},
		{form, `7`, Answer{}, "the answer is not an object"},
		{form, `null`, Answer{}, "the answer is not an object"},
	} {
		got, err := AnswerFromJSON(json.RawMessage(c.raw), c.ask)
		if d := cmp.Diff(c.want, got); d != "" || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %s", c.raw, err, d)
		}
	}
}

// A medium over the limit is linked where a resource can be read, and nowhere else.
func TestLargeMediumLinks(t *testing.T) {
	large := []a2a.Part{{Kind: a2a.PartRaw, Base64: strings.Repeat("AAAA", 3000), MediaType: "image/png", Filename: "plot.png"}}
	task := func(id string) *a2a.Task {
		return &a2a.Task{Status: a2a.Status{State: a2a.StateCompleted}, Artifacts: []a2a.Artifact{{ArtifactID: id, Parts: large}}}
	}
	o := Options{Agent: "x", MediaBytes: 1000, Handles: opts.Handles}
	noTask := o
	noTask.Task = ""
	for name, c := range map[string]struct {
		r    Result
		link bool
	}{
		"artifact":            {ResultFromTask(task("a"), o), true},
		"id at the limit":     {ResultFromTask(task(strings.Repeat("a", maxID)), o), true},
		"id over the limit":   {ResultFromTask(task(strings.Repeat("a", maxID+1)), o), false},
		"no handle":           {ResultFromTask(task("a"), noTask), false},
		"message":             {ResultFromMessage(&a2a.Message{Role: a2a.RoleAgent, Parts: large}, o), false},
		"message of the task": {ResultFromTask(&a2a.Task{Status: a2a.Status{State: a2a.StateCompleted, Message: &a2a.Message{Role: a2a.RoleAgent, Parts: large}}}, o), false},
	} {
		raw := string(AppendResult(nil, c.r, Rev20260728, nil))
		if strings.Contains(raw, "AAAAAAAA") || !strings.Contains(raw, "plot.png (image/png, ") {
			t.Errorf("%s: %.600s", name, raw)
		}
		if strings.Contains(raw, `"resource_link"`) != c.link || strings.Contains(raw, "a2a://tasks/") != c.link || strings.Contains(raw, "ask the agent for a link") == c.link {
			t.Errorf("%s: %.600s", name, raw)
		}
	}
}

// An answer that is wrong in a million places is told so in a line.
func TestAnswerWithManyFaults(t *testing.T) {
	form := Ask{Key: "k", Schema: json.RawMessage(`{"type":"object","properties":{"c":{"type":"array","items":{"type":"string","enum":["a","b"]}}}}`)}
	_, err := AnswerFromJSON(json.RawMessage(`{"action":"accept","content":{"c":[1`+strings.Repeat(",1", 1<<20)+`]}}`), form)
	if err == nil || err.Error() != "content.c has 1048577 items, more than 1000" {
		t.Errorf("%v", err)
	}
	_, err = AnswerFromJSON(json.RawMessage(`{"action":"accept","content":{"c":[1`+strings.Repeat(",1", 900)+`]}}`), form)
	if err == nil || len(err.Error()) > 1000 || !strings.HasSuffix(err.Error(), "; and more") {
		t.Errorf("%v", err)
	}
}

// The package does nothing but compute: no file, socket, clock, log or context.
func TestPurity(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{
		"bytes": true, "crypto/sha256": true, "encoding/base64": true, "encoding/binary": true, "encoding/hex": true, "encoding/json": true,
		"errors": true, "fmt": true, "io": true, "maps": true, "math/bits": true, "net/url": true, "path": true, "regexp": true, "regexp/syntax": true, "slices": true,
		"strconv": true, "strings": true, "time": true, "unicode": true, "unicode/utf8": true,
		"a2agate/a2a": true, "github.com/mark3labs/mcp-go/mcp": true, "github.com/santhosh-tekuri/jsonschema/v5": true,
	}
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		src, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		ast, err := parser.ParseFile(gotoken.NewFileSet(), f.Name(), src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range ast.Imports {
			seen++
			if path := strings.Trim(i.Path.Value, `"`); !allowed[path] {
				t.Errorf("%s imports %s", f.Name(), path)
			}
		}
		for _, clock := range []string{"time.Now", "time.Since", "time.After", "rand."} {
			if strings.Contains(string(src), clock) {
				t.Errorf("%s uses %s", f.Name(), clock)
			}
		}
	}
	if seen == 0 {
		t.Fatal("found no imports")
	}
}
