package clientfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

var tomlProbe = Entry{
	In: "servers", Name: "a2a",
	Fields: Fields{{"url", "http://127.0.0.1:8931/mcp?a=1&b=2"}, {"token_env", "A2A_TOKEN"}, {"timeout_sec", 600}, {"on", true},
		{"tools", []string{"a", "b"}}},
	Foreign: []string{"command"},
}

var tomlFiles = []string{
	"", "\n", " ", "# c", "# c\n", bom, bom + "a = 1\n", "a = 1", "a = 1\n", "a = 1\n\n", "a = 1\r\n[b]\r\nc = 'x'\r\n", "\n\n\n",
	"model = \"m\" # why\n\n[servers.x]\nurl = \"u\"\n", "[servers]\n", "[servers]\nx.url = \"u\"\n", "[servers.x]\ncommand = \"c\"\nargs = [\n  \"a\", # c\n  'b',\n]\n[servers.x.env]\nK = \"v\"\n",
	"[[list]]\na = 1\n[[list]]\na = 2\n[list.sub]\nx = 1\n", "s = \"\"\"\nx\n[servers.a2a]\n\"\"\"\nt = '''\n[servers]'''\n", "d = 1979-05-27 07:32:00Z\nf = 1_000.5e-3\nh = 0xFF\ni = inf\n",
	"\"quoted key\" = 1\n'lit.eral' = 2\na.b.\"c d\" = 3\n", "x = { a = 1, b = { c = [1, {d = 2}] } }\n", "\"s\" = \"\\u00e9\\\"\"\n", "[a]\n[a.b.c]\n[a.b]\nx=1\n", "q = \"\"\"a\"\"\"\"\"\n", "servers.x.url = 'u'\n",
	"[servers.a2a]\n", "[servers.a2a] # c\nurl = 'old' # d\nmine = 1\n\n[b]\n", "[servers.a2a]\ntimeout_sec = 6_00\ntools = []\nheaders = { X-Two = 'b' }\n[servers.a2a.sub]\nx = 1\n[servers]\ny = 1\n",
	"[servers]\na2a = { url = 'old', token_env = 'x', timeout_sec = 1, on = false, tools = [1], headers = {} }\n",
}

// tomlRefused are entries that are written in a way that is not edited.
var tomlRefused = []string{"servers.a2a.url = 'u'\n", "[servers.a2a.url]\n", "[servers]\na2a = { url = 'u' }\n", "servers = { x = 1 }\n", "[[servers.a2a]]\n"}

func TestTOMLAddRemove(t *testing.T) {
	t.Parallel()
	for _, f := range tomlFiles {
		checkEdit(t, TOML, []byte(f), tomlProbe, decodeTOML)
	}
	for _, f := range tomlRefused {
		if out, err := Add(TOML, []byte(f), tomlProbe); err == nil {
			t.Errorf("Add(%q) = %q, want an error", f, out)
		} else {
			fuzzError(t, TOML, []byte(f), err)
		}
	}
}

// decodeTOML gives the tables as maps; values that are not of our kinds stay
// raw.
func decodeTOML(t *testing.T, text []byte) map[string]any {
	t.Helper()
	doc, err := parseTOML(text)
	if err != nil {
		t.Fatalf("%q does not parse: %v", text, err)
	}
	root := map[string]any{}
	at := func(path []string) map[string]any {
		m := root
		for _, p := range path {
			next, ok := m[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				m[p] = next
			}
			m = next
		}
		return m
	}
	for i, s := range doc.sections {
		if s.array {
			at([]string{"[[" + strings.Join(s.path, ".")})[string(rune('a'+i%26))+joined(s.path)] = i
		} else if i > 0 {
			at(s.path)
		}
	}
	for _, k := range doc.keys {
		raw := bytes.ReplaceAll(text[k.value:k.end], []byte("6_00"), []byte("600"))
		m := at(k.path[:len(k.path)-1])
		name := k.path[len(k.path)-1]
		var v any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		switch {
		case raw[0] == '{':
			at(k.path)
		case d.Decode(&v) == nil && !d.More():
			m[name] = v
		default:
			m[name] = "raw " + string(raw)
		}
	}
	return root
}

func FuzzTOML(f *testing.F) {
	for _, s := range append(tomlFiles, tomlRefused...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := Add(TOML, file, tomlProbe); err != nil {
			fuzzError(t, TOML, file, err)
			return
		}
		checkEdit(t, TOML, file, tomlProbe, decodeTOML)
	})
}
