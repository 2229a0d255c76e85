package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Files of the two other systems work as they are.
func TestOtherSystemsFiles(t *testing.T) {
	t.Parallel()
	files := corpus(t, "valid")
	c, err := Parse("a2a.json", files["vscode-a2a"], testEnv, nil)
	if err != nil {
		t.Fatal(err)
	}
	for alias, want := range map[string]Auth{
		"my-agent":  {Type: AuthNone},
		"k8s-agent": {Type: AuthAzCLI, Resource: "api://xxxx"},
		"explicit":  {Type: AuthAzCLI, Resource: "api://xxxx"},
		"third":     {Type: AuthBearer, Token: NewSecret("s3cr3t-token")},
		"keyed":     {Type: AuthAPIKey, Key: NewSecret("s3cr3t-token"), Header: "X-API-Key"},
		"machine":   {Type: AuthOAuth2, ClientID: "id", ClientSecret: NewSecret("s3cr3t-token"), TokenURL: "https://login.example.com/token", Scopes: []string{"api://xxxx/.default"}},
	} {
		want.OnCard = OnCardAuto
		a, ok := c.Agent(alias)
		if !ok {
			t.Fatalf("no agent %s", alias)
		}
		if diff := cmp.Diff(want, a.Auth, secrets); diff != "" {
			t.Errorf("%s (-want +got):\n%s", alias, diff)
		}
	}
	if c, err = Parse("agents.json", files["a2a-to-mcp"], nil, nil); err != nil {
		t.Fatal(err)
	}
	if c.Listen != "0.0.0.0:9000" || c.HandleTTL != time.Minute || !cmp.Equal(c.AllowedHosts, []string{"gateway.example.com", "[2001:db8::1]"}) {
		t.Errorf("listen %s, ttl %s, hosts %v", c.Listen, c.HandleTTL, c.AllowedHosts)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want string
	}{
		{`{"agents": {"a": {"url": 1}}}`, "f.json:1:26: agents.a.url:"},
		{`{"$schema": 1, "agents": {"a": {"url": "https://x"}}}`, "f.json:1:13: $schema: 1 is not a string"},
		{"\xef\xbb\xbf{\"agents\": {\"a\": {\"url\": 1}}}", "f.json:1:26: agents.a.url:"},
		{"{\r\n\t\"agents\": {\"a\": /* é */ {\"url\": 1}}}", "f.json:2:34: agents.a.url:"},
		{"// 日本語\n{\"agents\": {\"日本\": {\"url\": \"https://x\"}, \"a\": {\"url\": 1}}}", "f.json:2:54: agents.a.url:"},
		{"{\"agents\": {\n}", "f.json:2:2: the file ends"},
		{"{\"agents\": {\n]", "f.json:2:1: not JSON"},
		{"{\"agents\": {} \"x\": 1}", "f.json:1:15: not JSON"},
		{"{\"agents\" {}}", "f.json:1:11: not JSON"},
		{"{\"agents\": \"a\nb\"}", "f.json:1:14: not JSON: a quote is not closed"},
		{"{\"agents\": /* {}", "f.json:1:12: not JSON: a comment"},
		{"{\"agents\": tru}", "f.json:1:15: not JSON"},
		{"{} {}", "f.json:1:4: there is more"},
		{"{\"a\": \"\xff\"}", "f.json:1:8: the file is not UTF-8"},
		{"", "f.json:1:1: the file is empty"},
		{" // nothing\n", "f.json:1:1: the file is empty"},
		{strings.Repeat("[", 200), "f.json:1:102: nested deeper"},
		{"null", "f.json:1:1: null is not an object"},
	} {
		_, err := parseTest("f.json", c.text)
		found := false
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				found = found || strings.HasPrefix(line, c.want)
			}
		}
		if !found {
			t.Errorf("%q: got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                          "plain",
		"$5 and $ and {x} and $x":        "$5 and $ and {x} and $x",
		"${env:TOKEN}":                   "s3cr3t-token",
		"a${env:TOKEN}b${env:HOST}c":     "as3cr3t-tokenbagents.example.comc",
		"$${env:TOKEN}":                  "${env:TOKEN}",
		"$$${env:TOKEN}":                 "$${env:TOKEN}",
		"${env:WEIRD}":                   "${env:TOKEN}",
		"Basic ${file:token.txt}":        "Basic s3cr3t-file",
		"${file:/abs/token.txt}":         "s3cr3t-file",
		"$${ not closed":                 "${ not closed",
		"${env:TOKEN}$${x}${env:EMPTY}!": "s3cr3t-token${x}!",
	} {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseTest("f.json", `{"agents":{"a":{"url":"https://x","headers":{"X":`+string(text)+`}}}}`)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if got := c.Agents[0].Headers[0].Value.Reveal(); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	s := NewSecret("s3cr3t")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s, "in", struct{ S Secret }{s})
	text, err := json.Marshal(map[string]any{"a": s, "b": &s, "c": []Secret{s}})
	if err != nil {
		t.Fatal(err)
	}
	a := Agent{Alias: "a", Headers: []Header{{"X", s}}, Auth: Auth{Token: s}}
	all := log.String() + string(text) + s.String() + fmt.Sprintf("%v %+v %#v %s %q %x %d %v %+v %#v", s, s, s, s, s, s, s, &s, a, a)
	if strings.Contains(all, "s3cr3t") || strings.Contains(all, fmt.Sprintf("%x", "s3cr3t")) || strings.Count(all, masked) < 14 {
		t.Errorf("printed %s", all)
	}
	if s.Reveal() != "s3cr3t" || s.Empty() || !s.Equal(NewSecret("s3cr3t")) || s.Equal(NewSecret("other")) || !(Secret{}).Empty() || (Secret{}).Reveal() != "" {
		t.Error("a secret does not hold its value")
	}
}

func TestLoadAndFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if p, ok := Find(dir); ok {
		t.Errorf("found %s in an empty folder", p)
	}
	_, err := Load(filepath.Join(dir, "agents.json"), os.LookupEnv)
	if err == nil || !strings.Contains(err.Error(), "does not exist; name another with --config") {
		t.Errorf("Load: %v", err)
	}
	// From the last choice to the first, each wins over those before it.
	for _, name := range []string{".vscode/a2a.json", "a2a.json", "agents.json"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"agents":{"a":{"url":"https://x","auth":{"type":"bearer","token":"${file:../t}"}}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := Find(dir); !ok || got != path {
			t.Errorf("found %q, want %q", got, path)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "t"), []byte("token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(filepath.Join(dir, ".vscode", "a2a.json"), os.LookupEnv)
	if err != nil || c.Agents[0].Auth.Token.Reveal() != "token" || len(c.Files) != 1 || c.Files[0] != filepath.Join(dir, "t") {
		t.Errorf("Load: %+v, %v", c, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub", "agents.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p, ok := Find(filepath.Join(dir, "sub")); ok {
		t.Errorf("a folder was found as %s", p)
	}
}

// What is wrong with one agent is said of that agent, and the others are read
// all the same.
func TestParseEach(t *testing.T) {
	t.Parallel()
	each := func(text string) (string, map[string][]Problem, error) {
		cfg, broken, err := ParseEach("f.json", []byte(text), testEnv, testFile)
		var sound []string
		if err == nil {
			for _, a := range cfg.Agents {
				if broken[a.Alias] == nil {
					sound = append(sound, a.Alias+"="+a.URL)
				}
			}
		}
		return strings.Join(sound, " "), broken, err
	}
	sound, broken, err := each(`{"agents":{"a":{"url":"http://a"},"a-b":{"url":"http://b","auth":{"type":"bearer","token":"${env:NOPE}"}},"c d":{"url":"http://c"},
		"e":{"url":"${env:NOPE}"},"f":{"url":"http://f"}},"log":{"level":"loud"}}`)
	if err != nil || sound != "a=http://a f=http://f" || len(broken) != 4 || len(broken["a-b"]) != 1 || len(broken["c d"]) != 1 || len(broken["e"]) == 0 || len(broken[""]) != 1 {
		t.Errorf("%s, %v, %v", sound, broken, err)
	}
	if got := fmt.Sprint(broken["a-b"]); got != "[f.json:1:91: agents.a-b.auth.token: ${env:NOPE}: the environment variable NOPE is not set; set it where a2agate starts]" {
		t.Error(got)
	}
	if sound, broken, err = each(`{"agents":{"a":{"url":"http://a"}}}`); err != nil || sound != "a=http://a" || len(broken) != 0 {
		t.Errorf("a good file: %s, %v, %v", sound, broken, err)
	}
	for _, text := range []string{`{`, `[]`, `{"agents":{}}`, `{"agents":[]}`, ``} {
		var e *Error
		if _, _, err := each(text); !errors.As(err, &e) || len(e.Problems) == 0 {
			t.Errorf("%s: %v", text, err)
		}
	}
}
