package clientfile

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write golden files anew")

var (
	plainServer = Server{Name: "a2a", URL: "http://127.0.0.1:8931/mcp"}
	tokenServer = Server{Name: "a2a", URL: "https://gw.example.com/mcp/p/finance", TokenEnv: "A2AGATE_TOKEN"}
)

// TestClients holds what each client gets: paths, blocks, links, commands.
func TestClients(t *testing.T) {
	t.Parallel()
	var got txtar.Archive
	add := func(name, text string) {
		got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(strings.TrimSuffix(text, "\n") + "\n")})
	}
	for _, c := range Clients() {
		var paths string
		for _, os := range []string{"linux", "darwin", "windows"} {
			p := Places{OS: os, Home: "/home/u", AppData: "/appdata", Project: "/src/p"}
			for _, scope := range []Scope{User, Project} {
				path, err := c.File(scope, p)
				if err != nil {
					path = err.Error()
				}
				paths += fmt.Sprintf("%s %s: %s\n", os, scope, path)
			}
		}
		add(c.ID+" files", paths)
		for _, s := range []Server{plainServer, tokenServer} {
			name := c.ID
			if s.TokenEnv != "" {
				name += " with token"
			}
			e, err := c.Entry(s)
			if err != nil {
				add(name, err.Error())
				continue
			}
			add(name, string(Block(c.Format, e)))
			if l := c.Link(s, User); l != "" {
				add(name+" link", l)
			}
			if l := c.Command(s, User); l != "" {
				add(name+" command", l)
			}
		}
	}
	golden(t, "testdata/clients.txtar", txtar.Format(&got))
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got); -update writes it anew:\n%s", path, diff)
	}
}

func TestPlacesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	p := Places{OS: "linux", Home: "/home/u", ConfigHome: "/xdg", ClaudeHome: "/claude", CodexHome: "/codex"}
	want := map[string]string{
		"claude": "/claude/.claude.json", "codex": "/codex/config.toml", "vscode": "/xdg/Code/User/mcp.json",
		"zed": "/xdg/zed/settings.json", "goose": "/xdg/goose/config.yaml", "cursor": "/home/u/.cursor/mcp.json",
	}
	for id, path := range want {
		c, _ := Lookup(id)
		if got, err := c.File(User, p); err != nil || got != path {
			t.Errorf("%s: %q, %v, want %q", id, got, err, path)
		}
	}
	if _, ok := Lookup("emacs"); ok {
		t.Error("a client that does not exist was found")
	}
}

func TestEntryRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		client string
		server Server
		want   string
	}{
		{"claude", Server{Name: "", URL: plainServer.URL}, `name ""`},
		{"claude", Server{Name: "a.b", URL: plainServer.URL}, `name "a.b"`},
		{"claude", Server{Name: strings.Repeat("a", 33), URL: plainServer.URL}, "1 to 32"},
		{"claude", Server{Name: "workspace", URL: plainServer.URL}, "Claude Code keeps this one"},
		{"claude", Server{Name: "a2a", URL: "127.0.0.1:8931"}, `url "127.0.0.1:8931"`},
		{"claude", Server{Name: "a2a", URL: "ftp://h/mcp"}, "ftp"},
		{"claude", Server{Name: "a2a", URL: "http://h/mcp?x=${HOME}"}, "gateway's address"},
		{"claude", Server{Name: "a2a", URL: "http://h/'; rm"}, "gateway's address"},
		{"claude", Server{Name: "a2a", URL: "http://u:secret@h/mcp"}, "leave the password out"},
		{"codex", Server{Name: "a2a", URL: plainServer.URL, TokenEnv: "sk-abc"}, "never written"},
		{"zed", Server{Name: "a2a", URL: plainServer.URL, TokenEnv: "T"}, "Zed sends headers as they are written"},
	} {
		c, _ := Lookup(test.client)
		_, err := c.Entry(test.server)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v: %v, want %q", test.client, test.server, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

// TestFiles edits the files of testdata/files. An archive's comment has lines
// "client ID", and where they apply "token", "crlf", "bom"; its sections are
// before, and after or error. Removing gives before back, unless there is a
// section removed.
func TestFiles(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/files/*.txtar")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d archives, %v, want at least 20", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			oneFile(t, path, txtar.Parse(file))
		})
	}
}

func oneFile(t *testing.T, path string, a *txtar.Archive) {
	t.Helper()
	var c Client
	s := plainServer
	wire := func(b []byte) []byte { return b }
	back := wire
	for line := range strings.Lines(string(a.Comment)) {
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "client":
			c, _ = Lookup(rest)
		case "token":
			s = tokenServer
		case "crlf":
			wire = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }
			back = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }
		case "bom":
			wire = func(b []byte) []byte { return append([]byte(bom), b...) }
			back = func(b []byte) []byte { return bytes.TrimPrefix(b, []byte(bom)) }
		}
	}
	sections := map[string][]byte{}
	for _, f := range a.Files {
		sections[f.Name] = f.Data
	}
	e, err := c.Entry(s)
	if err != nil {
		t.Fatal(err)
	}
	before := wire(sections["before"])
	out, err := Add(c.Format, before, e)
	name, got := "after", back(out)
	if err != nil {
		name, got = "error", []byte(err.Error()+"\n")
	}
	if crlf := bytes.Contains(before, []byte("\r\n")); err == nil && crlf && bytes.Count(out, []byte("\n")) != bytes.Count(out, []byte("\r\n")) {
		t.Errorf("line ends are mixed: %q", out)
	}
	if *update {
		next := &txtar.Archive{Comment: a.Comment, Files: []txtar.File{{Name: "before", Data: sections["before"]}, {Name: name, Data: got}}}
		if r, ok := sections["removed"]; ok {
			next.Files = append(next.Files, txtar.File{Name: "removed", Data: r})
		}
		if err := os.WriteFile(path, txtar.Format(next), 0o644); err != nil {
			t.Fatal(err)
		}
		sections[name] = got
	}
	if want, ok := sections[name]; !ok || !bytes.Equal(got, want) {
		t.Fatalf("%s:\n%s\nwant:\n%s", name, got, want)
	}
	if name == "error" {
		return
	}
	removed, err := c.Remove(out, s.Name) // without knowing how it was added
	want := sections["before"]
	if r, ok := sections["removed"]; ok {
		want = r
	}
	if err != nil || !bytes.Equal(back(removed), want) {
		t.Errorf("removed: %v\n%s\nwant:\n%s", err, back(removed), want)
	}
}

// TestNoToken holds that no block has a token in clear: there is none to have.
func TestNoToken(t *testing.T) {
	t.Parallel()
	for _, c := range Clients() {
		e, err := c.Entry(tokenServer)
		if err != nil {
			continue
		}
		if b := string(Block(c.Format, e)); !strings.Contains(b, "A2AGATE_TOKEN") {
			t.Errorf("%s: the block does not name the variable:\n%s", c.ID, b)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	e, _ := claude().Entry(plainServer)
	deep := []byte(strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1))
	deepTOML := []byte("a = " + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1))
	for name, run := range map[string]func() error{
		"deep JSON":  func() error { _, err := Add(JSON, deep, e); return err },
		"deep TOML":  func() error { _, err := Add(TOML, deepTOML, e); return err },
		"huge":       func() error { _, err := Add(JSON, make([]byte, maxBytes+1), e); return err },
		"huge, gone": func() error { _, err := Remove(YAML, make([]byte, maxBytes+1), e); return err },
	} {
		if err := run(); err == nil {
			t.Errorf("%s: no error", name)
		} else if !strings.Contains(err.Error(), "500 levels") && !strings.Contains(err.Error(), "bytes, more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := []byte("{\n  \"history\": [" + strings.Repeat(`{"display": "x", "n": [1, 2, 3]}, `, 30_000) + "null]\n}\n")
	out, err := Add(JSON, large, e)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Remove(JSON, out, e); err != nil || !bytes.Equal(back, large) {
		t.Errorf("a file of %d bytes did not come back: %v", len(large), err)
	}
}

// What a client does by itself for a project writes the project's file, or is
// not offered.
func TestProjectScope(t *testing.T) {
	t.Parallel()
	s := Server{Name: "a2a", URL: "http://127.0.0.1:8931/mcp"}
	for _, c := range Clients() {
		if link := c.Link(s, Project); link != "" {
			t.Errorf("%s: %s", c.ID, link)
		}
		want := map[string]string{
			"claude": "claude mcp add --transport http --scope project a2a http://127.0.0.1:8931/mcp",
			"gemini": "gemini mcp add --transport http --scope project --timeout 600000 a2a http://127.0.0.1:8931/mcp",
		}[c.ID]
		if got := c.Command(s, Project); got != want {
			t.Errorf("%s: %q, want %q", c.ID, got, want)
		}
	}
}
