package translate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"a2agate/a2a"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A golden file is a txtar archive. Its comment says what it pins. Sections:
//
//	message.json, task.json  what the agent sent, in A2A 1.0
//	snapshot.json            {"trouble", "progress", "notes", "lost"} around it
//	error.json               {"cause", "message", "code", "reason", …}
//	fault.txt                the text of a gateway-side fault
//	page.json                {"artifactId", "offset"}
//	options.json             Options by their Go names
//	<revision>.json          what a client of that revision gets
type golden struct {
	name, comment string
	message       *a2a.Message
	task          *a2a.Task
	snapshot      *a2a.Snapshot
	err           *a2a.Error
	fault         string
	page          *struct {
		ArtifactID string
		Offset     int
	}
	options Options
	want    map[Revision]string
	archive *txtar.Archive
}

var revisions = []Revision{Rev20250326, Rev20250618, Rev20251125, Rev20260728}

// loadGoldens reads all golden files; none, an unknown section or a section
// that comes twice is an error.
func loadGoldens(t testing.TB) []golden {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files under testdata: %v", err)
	}
	out := make([]golden, 0, len(files))
	for _, f := range files {
		g, err := readGolden(f)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out = append(out, g)
	}
	return out
}

func readGolden(file string) (golden, error) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		return golden{}, err
	}
	g := golden{
		name:    strings.TrimSuffix(filepath.Base(file), ".txtar"),
		comment: strings.TrimSpace(string(ar.Comment)), want: map[Revision]string{}, archive: ar,
	}
	if g.comment == "" {
		return g, fmt.Errorf("has no comment")
	}
	seen := map[string]bool{}
	for _, f := range ar.Files {
		if seen[f.Name] {
			return g, fmt.Errorf("section %s comes twice", f.Name)
		}
		seen[f.Name] = true
		if err := g.read(f); err != nil {
			return g, fmt.Errorf("section %s: %w", f.Name, err)
		}
	}
	if s := g.snapshot; s != nil {
		s.Task, s.Message = g.task, g.message
		if g.err != nil {
			s.Err = g.err
		}
	}
	if g.message == nil && g.task == nil && g.err == nil && g.fault == "" && g.snapshot == nil {
		return g, fmt.Errorf("has nothing to render")
	}
	return g, nil
}

func (g *golden) read(f txtar.File) error {
	switch f.Name {
	case "message.json":
		m, err := messageFromTestJSON(f.Data)
		g.message = m
		return err
	case "task.json":
		t, err := taskFromTestJSON(f.Data)
		g.task = t
		return err
	case "snapshot.json":
		g.snapshot = &a2a.Snapshot{}
		return strict(f.Data, g.snapshot)
	case "error.json":
		g.err = &a2a.Error{}
		return strict(f.Data, g.err)
	case "fault.txt":
		g.fault = strings.TrimSpace(string(f.Data))
		return nil
	case "page.json":
		return strict(f.Data, &g.page)
	case "options.json":
		return strict(f.Data, &g.options)
	}
	rev := Revision(strings.TrimSuffix(f.Name, ".json"))
	for _, r := range revisions {
		if r == rev {
			g.want[rev] = string(f.Data)
			return nil
		}
	}
	return fmt.Errorf("unknown section")
}

func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// result renders the golden's input.
func (g *golden) result(t testing.TB) Result {
	t.Helper()
	switch {
	case g.page != nil:
		r, err := ResultFromPage(g.task, g.page.ArtifactID, g.page.Offset, g.options)
		if err != nil {
			t.Fatal(err)
		}
		return r
	case g.snapshot != nil:
		return ResultFromSnapshot(*g.snapshot, g.options)
	case g.err != nil:
		return ResultFromError(g.err, g.options)
	case g.task != nil:
		return ResultFromTask(g.task, g.options)
	case g.message != nil:
		return ResultFromMessage(g.message, g.options)
	}
	return ResultFromFault(g.fault, g.options)
}

var serverInfo = []MetaEntry{{"io.modelcontextprotocol/serverInfo", json.RawMessage(`{"name":"a2agate","version":"0"}`)}}

func TestGoldens(t *testing.T) {
	for _, g := range loadGoldens(t) {
		t.Run(g.name, func(t *testing.T) {
			r := g.result(t)
			if len(g.want) == 0 && !*update {
				t.Fatal("pins nothing: run with -update")
			}
			if len(g.want) == 0 {
				g.want[Rev20260728] = ""
			}
			for _, rev := range revisions {
				raw := AppendResult(nil, r, rev, serverInfo)
				checkResult(t, raw, rev)
				want, ok := g.want[rev]
				if !ok {
					continue
				}
				var b bytes.Buffer
				if err := json.Indent(&b, raw, "", " "); err != nil {
					t.Fatal(err)
				}
				b.WriteByte('\n')
				if *update {
					g.set(string(rev)+".json", b.Bytes())
				} else if d := cmp.Diff(want, b.String()); d != "" {
					t.Errorf("%s (-want +got)\n%s", rev, d)
				}
			}
			if *update {
				if err := os.WriteFile("testdata/"+g.name+".txtar", txtar.Format(g.archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func (g *golden) set(name string, data []byte) {
	for i := range g.archive.Files {
		if g.archive.Files[i].Name == name {
			g.archive.Files[i].Data = data
			return
		}
	}
	g.archive.Files = append(g.archive.Files, txtar.File{Name: name, Data: data})
}

// The loader must complain, or a broken corpus would pass unnoticed.
func TestGoldenLoaderIsStrict(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"no comment":      "-- message.json --\n{}\n",
		"nothing":         "A comment.\n-- options.json --\n{}\n",
		"unknown section": "A comment.\n-- what.json --\n{}\n",
		"twice":           "A comment.\n-- fault.txt --\na\n-- fault.txt --\nb\n",
		"unknown option":  "A comment.\n-- fault.txt --\na\n-- options.json --\n{\"Agnet\":\"x\"}\n",
	} {
		file := filepath.Join(dir, "x.txtar")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readGolden(file); err == nil {
			t.Errorf("%s: the loader took it", name)
		}
	}
}

// --- A2A 1.0 JSON for tests. The gateway's own decoder is a2a's; this one only
// spares the tests a second spelling of every fixture.

type testPart struct {
	Text      *string
	Data      json.RawMessage
	URL       *string
	Raw       *string
	Filename  string
	MediaType string
	Metadata  json.RawMessage
}

type testMessage struct {
	MessageID string
	Role      string
	Parts     []json.RawMessage
	Metadata  json.RawMessage
}

func partFromTestJSON(raw json.RawMessage) a2a.Part {
	var in testPart
	var present map[string]json.RawMessage
	if json.Unmarshal(raw, &in) != nil || json.Unmarshal(raw, &present) != nil {
		return a2a.Part{Kind: a2a.PartUnknown, Unknown: raw, Fault: "not an object"}
	}
	p := a2a.Part{Filename: in.Filename, MediaType: in.MediaType, Metadata: in.Metadata}
	data, isData := present["data"]
	switch {
	case in.Text != nil:
		p.Kind, p.Text = a2a.PartText, *in.Text
	case isData:
		p.Kind, p.Data = a2a.PartData, data
	case in.URL != nil:
		p.Kind, p.URL = a2a.PartURL, *in.URL
	case in.Raw != nil:
		if _, err := base64.StdEncoding.DecodeString(*in.Raw); err != nil {
			p.Kind, p.Unknown, p.Fault = a2a.PartUnknown, raw, "raw is not base64"
			break
		}
		p.Kind, p.Base64 = a2a.PartRaw, *in.Raw
	default:
		p.Kind, p.Unknown, p.Fault = a2a.PartUnknown, raw, "none of text, data, url or raw"
	}
	return p
}

func partsFromTestJSON(raws []json.RawMessage) []a2a.Part {
	parts := make([]a2a.Part, 0, len(raws))
	for _, r := range raws {
		parts = append(parts, partFromTestJSON(r))
	}
	return parts
}

func messageFromTest(in testMessage) *a2a.Message {
	return &a2a.Message{
		MessageID: in.MessageID, Role: a2a.Role(in.Role), Metadata: in.Metadata, Parts: partsFromTestJSON(in.Parts),
		ContextID: "raw-context-id", TaskID: "raw-task-id",
	}
}

func messageFromTestJSON(data []byte) (*a2a.Message, error) {
	var in testMessage
	if err := strict(data, &in); err != nil {
		return nil, err
	}
	return messageFromTest(in), nil
}

func taskFromTestJSON(data []byte) (*a2a.Task, error) {
	var in struct {
		Status struct {
			State   string
			Message *testMessage
		}
		Artifacts []struct {
			ArtifactID, Name, Description string
			Parts                         []json.RawMessage
		}
		History []testMessage
		Notes   []string
	}
	if err := strict(data, &in); err != nil {
		return nil, err
	}
	t := &a2a.Task{ID: "raw-task-id", ContextID: "raw-context-id", Notes: in.Notes}
	t.Status.State = a2a.State(in.Status.State)
	if in.Status.Message != nil {
		t.Status.Message = messageFromTest(*in.Status.Message)
	}
	for _, a := range in.Artifacts {
		t.Artifacts = append(t.Artifacts, a2a.Artifact{
			ArtifactID: a.ArtifactID, Name: a.Name, Description: a.Description, Parts: partsFromTestJSON(a.Parts),
		})
	}
	for _, m := range in.History {
		t.History = append(t.History, *messageFromTest(m))
	}
	return t, nil
}

// at is a fixed moment for tests.
var at = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
