package config

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write golden files and generated pages anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testEnv is the environment of all files under testdata.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"TOKEN": "s3cr3t-token", "HOST": "agents.example.com", "EMPTY": "", "WEIRD": "${env:TOKEN}",
		"BREAK": "two\nlines", "FTP": "ftp://s3cr3t.example.com", "SUM": strings.Repeat("aB", 32),
	}[name]
	return v, ok
}

// testFile reads the files that the ones under testdata name.
func testFile(path string) ([]byte, error) {
	switch filepath.Base(path) {
	case "cert.pem", "key.pem", "ca.pem":
		return []byte("-----BEGIN"), nil
	case "token.txt":
		return []byte("\xef\xbb\xbfs3cr3t-file\r\n"), nil
	case "locked.txt":
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	case "huge.txt":
		return make([]byte, maxNamedFile+1), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func parseTest(name, text string) (*Config, error) {
	return Parse(name, []byte(text), testEnv, testFile)
}

// corpus returns the files of a folder by name; finding none is an error.
func corpus(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("testdata/%s has no files", dir)
	}
	files := make(map[string][]byte)
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(p), ".json")] = data
	}
	return files
}

// A broken file tells the watcher what it waits for.
func TestErrorNamesFiles(t *testing.T) {
	t.Parallel()
	_, err := parseTest("conf/f.json", `{"agents":{"a":{"url":"https://x","auth":{"type":"bearer","token":"${file:t}"}}},"tls":{"certFile":"cert.pem","keyFile":"gone.pem"}}`)
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 2 || !cmp.Equal(e.Files, []string{"conf/cert.pem", "conf/gone.pem", "conf/t"}) {
		t.Errorf("%#v", err)
	}
	if _, err := Parse("f.json", make([]byte, maxSize+1), nil, nil); err == nil || err.Error() != "f.json: the file is larger than 16 MiB; name a configuration file" {
		t.Errorf("a huge file: %v", err)
	}
}

// Every bad file has its exact messages in a golden file.
func TestInvalidFiles(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t, "invalid") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(name+".json", data, testEnv, testFile)
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("accepted, or another error: %v", err)
			}
			got := err.Error() + "\n"
			if strings.Contains(got, "s3cr3t") {
				t.Errorf("a secret in a message:\n%s", got)
			}
			golden(t, filepath.Join("testdata", "invalid", name+".txt"), []byte(got))
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update and read what it wrote", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestGeneratedFiles(t *testing.T) {
	t.Parallel()
	golden(t, filepath.Join("..", "docs", "agents.schema.json"), Schema())
	golden(t, filepath.Join("..", "docs", "configuration.md"), Reference())
}

// What editors and other programs generate from the schema's defaults must be
// what the checker fills in: every default is read back from the schema.
func TestDefaults(t *testing.T) {
	t.Parallel()
	got, err := parseTest("dir/agents.json", `{"agents":{"a":{"url":"https://x/"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Path: "dir/agents.json",
		Agents: []Agent{{
			Alias: "a", URL: "https://x/", Enabled: true, Protocol: "auto", Binding: "auto", URLPolicy: "auto",
			Auth: Auth{Type: AuthNone, OnCard: OnCardAuto}, Expose: []Exposure{"generic"}, Tasks: "auto",
			EmptyStreamFallback: true,
		}},
		Listen: "127.0.0.1:8931", Expose: []Exposure{"generic"}, StructuredContent: "auto",
		HandleTTL: 15 * time.Minute, Store: Store{Type: StoreMemory},
		Wait: Wait{WithProgress: 240 * time.Second, Without: 50 * time.Second, TaskGrace: 10 * time.Second, FirstByte: time.Second, Progress: 15 * time.Second},
		Limits: Limits{
			BodyBytes: 4 << 20, CardBytes: 1 << 20, ReplyBytes: 16 << 20, EventBytes: 8 << 20, StreamBytes: 64 << 20,
			ResultChars: 40000, MediaBytes: 4 << 20, Handles: 100000, Listens: 1024, PrincipalListens: 64,
		},
		Log: Log{Level: "info", Format: "text"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// The same file with every default written out says the same.
	var s map[string]any
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	full := written(s).(map[string]any)
	for _, key := range []string{"host", "port", "handleTtlMs"} { // the other way of saying it
		delete(full, key)
	}
	agent := written(s["properties"].(map[string]any)["agents"].(map[string]any)["additionalProperties"].(map[string]any)).(map[string]any)
	agent["url"] = "https://x/"
	full["agents"] = map[string]any{"a": agent}
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	again, err := parseTest("dir/agents.json", string(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("with %s\n-want +got:\n%s", text, diff)
	}
	if len(full) < 8 || len(agent) < 8 {
		t.Errorf("hardly any defaults in the schema: %s", text)
	}
}

// written makes an object of the defaults of a schema.
func written(s map[string]any) any {
	out := map[string]any{}
	for key, p := range s["properties"].(map[string]any) {
		p := p.(map[string]any)
		if d, ok := p["default"]; ok {
			out[key] = d
		} else if _, ok := p["properties"]; ok {
			if inner := written(p).(map[string]any); len(inner) > 0 && p["required"] == nil {
				out[key] = inner
			}
		}
	}
	return out
}

// secrets compares them by value; cmp would panic on their unexported field.
var secrets = cmp.Comparer(func(a, b Secret) bool { return a.Equal(b) })

func TestWholeFile(t *testing.T) {
	t.Parallel()
	data := corpus(t, "valid")["everything"]
	got, err := Parse(filepath.Join("conf", "everything.json"), data, testEnv, testFile)
	if err != nil {
		t.Fatal(err)
	}
	got2, _ := got.Agent("billing")
	want := Agent{
		Alias: "billing", URL: "https://agents.example.com/billing", CardPath: "card.json", Enabled: false,
		Protocol: "1.0", Binding: "HTTP+JSON", URLPolicy: "configured", AllowHosts: []string{"files.example.com", "[2001:db8::1]:8443"},
		Headers: []Header{{"X-Team", NewSecret("s3cr3t-token and s3cr3t-file")}, {"x-literal", NewSecret("${env:TOKEN} costs $5")}, {"X-Once", NewSecret("${env:TOKEN}")}},
		Auth:    Auth{Type: AuthAPIKey, Key: NewSecret("s3cr3t-token"), In: "query", Name: "key", OnCard: OnCardAlways},
		Expose:  []Exposure{"agents", "query"}, ToolPrefix: ptr("bill_"), Timeout: 90 * time.Second, Tasks: "required",
		Skills: []Skill{
			{ID: "z", InputSchema: json.RawMessage(`{"type":"object","properties":{"big":{"const":12345678901234567890}}}`), Tasks: "required"},
			{ID: "a b", Tasks: "never"},
		},
		EmptyStreamFallback: false, MaxConcurrent: 7, Pin: true,
	}
	if diff := cmp.Diff(want, *got2, secrets); diff != "" {
		t.Errorf("billing (-want +got):\n%s", diff)
	}
	// Agents keep the order of the file.
	var order []string
	for _, a := range got.Agents {
		order = append(order, a.Alias)
	}
	if want := []string{"zeta", "billing", "__proto__", "constructor", "toString", "machine", "corp", "basic", "short"}; !cmp.Equal(want, order) {
		t.Errorf("order %v", order)
	}
	short, _ := got.Agent("short")
	if diff := cmp.Diff(Auth{Type: AuthAzCLI, Resource: "api://1234", OnCard: OnCardAuto}, short.Auth, secrets); diff != "" {
		t.Error(diff)
	}
	corp, _ := got.Agent("corp")
	if corp.Auth.CertFile != filepath.Join("conf", "cert.pem") || corp.Auth.KeyFile != "/etc/key.pem" {
		t.Errorf("certificate %q, key %q", corp.Auth.CertFile, corp.Auth.KeyFile)
	}
	if corp.ToolPrefix == nil || *corp.ToolPrefix != "" {
		t.Errorf("tool prefix %v, want the one of the file, empty", corp.ToolPrefix)
	}
	if diff := cmp.Diff([]string{"/etc/key.pem", filepath.Join("conf", "ca.pem"), filepath.Join("conf", "cert.pem"), filepath.Join("conf", "key.pem"), filepath.Join("conf", "sub", "token.txt")}, got.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	rest := *got
	rest.Agents, rest.Files = nil, nil
	var top strings.Builder
	fmt.Fprintf(&top, "%+v", rest)
	if strings.Contains(top.String(), "s3cr3t") {
		t.Errorf("a secret in %s", top.String())
	}
	if got.Listen != "[::1]:0" || got.PublicURL != "https://gateway.example.com/base" || got.Auth.OAuth.Audience != "https://gateway.example.com/base/mcp" {
		t.Errorf("listen %q, public %q, audience %q", got.Listen, got.PublicURL, got.Auth.OAuth.Audience)
	}
	if want := []string{"other.example.com", "gateway.example.com"}; !cmp.Equal(want, got.AllowedHosts) {
		t.Errorf("hosts %v", got.AllowedHosts)
	}
	if p, ok := got.Profile("finance"); !ok || !cmp.Equal(p.Agents, []string{"billing", "corp"}) {
		t.Errorf("profile %+v", p)
	}
	if len(got.Auth.Tokens) != 2 || got.Auth.Tokens[0].SHA256 == got.Auth.Tokens[1].SHA256 || got.Auth.Tokens[1].SHA256[0] != 0xab || !got.Auth.Enabled() {
		t.Errorf("tokens %+v", got.Auth.Tokens)
	}
	if got.Store.Type != StoreRedis || got.Store.URL.Reveal() != "redis://:s3cr3t-token@cache:6379/1" || got.Wait.TaskGrace != 0 || got.Limits.CallsPerSecond != 2.5 {
		t.Errorf("store %v, wait %v, limits %v", got.Store.Type, got.Wait, got.Limits)
	}
	if got.TrustedProxies[0].String() != "10.0.0.0/8" || got.TrustedProxies[1].String() != "192.0.2.7/32" {
		t.Errorf("proxies %v", got.TrustedProxies)
	}
}

func ptr[T any](v T) *T { return &v }

// A configuration is never printed with a secret in it, whatever goes wrong.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"valid", "invalid"} {
		for _, data := range corpus(f, dir) {
			f.Add(data)
		}
	}
	s := compiledSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f.json", data, testEnv, testFile)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 || c != nil {
				t.Fatalf("%T %v", err, err)
			}
			for _, p := range e.Problems {
				if p.Line < 1 || p.Column < 1 || p.Message == "" || strings.ContainsAny(p.String(), "\n\x00\x1b") {
					t.Errorf("problem %+v", p)
				}
			}
			return
		}
		again, err := Parse("f.json", data, testEnv, testFile)
		if err != nil || !cmp.Equal(c, again, secrets, cmpopts.EquateComparable(netip.Prefix{})) {
			t.Errorf("accepted once only: %v", err)
		}
		if err := againstSchema(s, data); err != nil {
			t.Errorf("the schema refuses what the checker takes: %v", err)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
	})
}
