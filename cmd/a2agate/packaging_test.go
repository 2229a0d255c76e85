package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const packagingDir = "../../packaging"

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(mustRead(t, path)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// registryServer is what server.json of the MCP registry may hold
// (schema 2025-12-11), as far as we use it.
type registryServer struct {
	Schema      string `json:"$schema"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
	WebsiteURL  string `json:"websiteUrl"`
	Repository  struct {
		URL    string `json:"url"`
		Source string `json:"source"`
	} `json:"repository"`
	Packages []struct {
		RegistryType     string             `json:"registryType"`
		Identifier       string             `json:"identifier"`
		FileSHA256       string             `json:"fileSha256"`
		RuntimeHint      string             `json:"runtimeHint"`
		Transport        map[string]string  `json:"transport"`
		RuntimeArguments []registryArgument `json:"runtimeArguments"`
		PackageArguments []registryArgument `json:"packageArguments"`
	} `json:"packages"`
}

type registryArgument struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	Value       string `json:"value"`
	ValueHint   string `json:"valueHint"`
	Description string `json:"description"`
	Placeholder string `json:"placeholder"`
	IsRequired  bool   `json:"isRequired"`
	IsRepeated  bool   `json:"isRepeated"`
}

var semver = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

func TestRegistryServer(t *testing.T) {
	t.Parallel()
	var s registryServer
	readJSON(t, filepath.Join(packagingDir, "registry", "server.json"), &s)
	switch {
	case s.Schema != "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json":
		t.Errorf("$schema %q", s.Schema)
	case !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(s.Name) || len(s.Name) > 200:
		t.Errorf("name %q", s.Name)
	case s.Description == "" || len(s.Description) > 100:
		t.Errorf("description of %d characters, want 1 to 100", len(s.Description))
	case s.Title == "" || len(s.Title) > 100 || !semver.MatchString(s.Version) || s.Repository.Source != "github":
		t.Errorf("%+v", s)
	case len(s.Packages) == 0:
		t.Fatal("no packages")
	}
	for _, p := range s.Packages {
		if p.RegistryType != "oci" || !strings.HasSuffix(p.Identifier, ":"+s.Version) || p.Transport["type"] != "stdio" {
			t.Errorf("package %+v", p)
		}
		for _, a := range append(slices.Clone(p.RuntimeArguments), p.PackageArguments...) {
			if a.Type == "named" && a.Name == "" || a.Type == "positional" && a.Value == "" && a.ValueHint == "" || a.Type != "named" && a.Type != "positional" {
				t.Errorf("argument %+v", a)
			}
		}
		if a := p.PackageArguments; len(a) != 2 || a[0].Value != "stdio" || !a[1].IsRequired {
			t.Errorf("the image is not started as stdio: %+v", a)
		}
	}
	dockerfile := mustRead(t, filepath.Join(packagingDir, "docker", "Dockerfile"))
	if want := `io.modelcontextprotocol.server.name="` + s.Name + `"`; !strings.Contains(dockerfile, want) {
		t.Errorf("the image has no label %s, by which the registry knows its owner", want)
	}
	if !strings.Contains(dockerfile, "USER 65532") {
		t.Error("the image runs as root")
	}
}

// TestBundle starts the gateway as the MCPB manifest says, and finds the tools
// that it lists.
func TestBundle(t *testing.T) {
	var m struct {
		ManifestVersion string `json:"manifest_version"`
		Version         string `json:"version"`
		Server          struct {
			Type       string `json:"type"`
			EntryPoint string `json:"entry_point"`
			MCPConfig  struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
			} `json:"mcp_config"`
		} `json:"server"`
		Tools      []struct{ Name, Description string } `json:"tools"`
		UserConfig map[string]map[string]any            `json:"user_config"`
	}
	if err := json.Unmarshal([]byte(mustRead(t, filepath.Join(packagingDir, "mcpb", "manifest.json"))), &m); err != nil {
		t.Fatal(err)
	}
	var s registryServer
	readJSON(t, filepath.Join(packagingDir, "registry", "server.json"), &s)
	if m.ManifestVersion != "0.3" || m.Server.Type != "binary" || m.Version != s.Version || m.Server.MCPConfig.Command != "${__dirname}/"+m.Server.EntryPoint {
		t.Errorf("%+v", m)
	}
	args := m.Server.MCPConfig.Args
	if len(args) != 2 || args[0] != "stdio" || args[1] != "${user_config.agents}" || m.UserConfig["agents"]["multiple"] != true {
		t.Fatalf("args %q", args)
	}
	c := startStdio(t, nil)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{%s}}`, stdioMeta)
	a, _ := c.answer(1)
	for _, tool := range m.Tools {
		if !strings.Contains(textOf(a), "name:"+tool.Name+" ") {
			t.Errorf("the gateway has no tool %q", tool.Name)
		}
	}
	if len(m.Tools) != 4 {
		t.Errorf("%d tools, want 4", len(m.Tools))
	}
}

// TestReleaseFiles holds that every file that .goreleaser.yaml names is there.
func TestReleaseFiles(t *testing.T) {
	t.Parallel()
	var file any
	if err := yaml.Unmarshal([]byte(mustRead(t, "../../.goreleaser.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	var sources []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if s, ok := value.(string); ok && (key == "src" || key == "postinstall" || key == "preremove") {
					sources = append(sources, s)
				}
				walk(value)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(file)
	slices.Sort(sources)
	if len(sources) < 8 {
		t.Fatalf("only %q", sources)
	}
	for _, s := range sources {
		if strings.HasPrefix(s, ".tmp/") {
			continue // made by a hook
		}
		if found, err := filepath.Glob(filepath.Join("../..", s)); err != nil || len(found) == 0 {
			t.Errorf("%s does not exist", s)
		}
	}
}

// TestServiceFiles reads what starts the gateway on systems: flags that exist,
// a sample that parses.
func TestServiceFiles(t *testing.T) {
	t.Parallel()
	sh := shell{dir: t.TempDir(), env: map[string]string{}}
	unit := mustRead(t, filepath.Join(packagingDir, "systemd", "a2agate.service"))
	for _, want := range []string{"ExecStart=/usr/bin/a2agate serve --config /etc/a2agate/agents.json", "NoNewPrivileges=yes", "ProtectSystem=strict", "User=a2agate"} {
		if !strings.Contains(unit, want+"\n") {
			t.Errorf("the unit has no %s", want)
		}
	}
	sample := filepath.Join(packagingDir, "systemd", "agents.json")
	if code, _, errs := sh.run(t.Context(), "check", "--config", sample); code != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "there is no agent") {
		t.Errorf("the sample: exit %d, %s", code, errs)
	}
	uncommented := regexp.MustCompile(`(?m)^    // `).ReplaceAllString(mustRead(t, sample), "    ")
	full := filepath.Join(sh.dir, "agents.json")
	write(t, full, uncommented)
	sh.env["BILLING_TOKEN"] = "t"
	if code, out, errs := sh.run(t.Context(), "check", "--config", full); code != 0 {
		t.Errorf("the sample with its agent: exit %d, %s%s", code, out, errs)
	}
	d := xml.NewDecoder(strings.NewReader(mustRead(t, filepath.Join(packagingDir, "launchd", "com.a2agate.gateway.plist"))))
	var words []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			words = append(words, strings.TrimSpace(string(text)))
		}
	}
	i := slices.Index(words, "ProgramArguments")
	if i < 0 || i+5 > len(words) {
		t.Fatalf("the plist has %q", words)
	}
	if diff := cmp.Diff([]string{"/usr/local/bin/a2agate", "serve", "--config", "/usr/local/etc/a2agate/agents.json"}, words[i+1:i+5]); diff != "" {
		t.Errorf("ProgramArguments (-want +got):\n%s", diff)
	}
	for _, script := range []string{"check.sh", "deb.sh", "snapshot.sh", "mcpb/build.sh", "systemd/postinstall.sh", "systemd/preremove.sh"} {
		if info, err := os.Stat(filepath.Join(packagingDir, script)); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s cannot be run: %v", script, err)
		}
	}
}

// TestPublishersNames: each name that the publisher is to set stands in just
// the files that packaging/README.md lists, so that none is forgotten.
func TestPublishersNames(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|`]+ \\| (`.*`) \\|$").FindAllStringSubmatch(mustRead(t, filepath.Join(packagingDir, "README.md")), -1)
	if len(rows) != 6 {
		t.Fatalf("%d rows, want 6", len(rows))
	}
	texts := map[string]string{}
	for _, pattern := range []string{".goreleaser.yaml", "docs/*.md", "packaging/*/*.service", "packaging/*/*.plist", "packaging/*/*.json", "packaging/*/*.sh", "packaging/*/Dockerfile", "README.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range found {
			name, _ := filepath.Rel("../..", path)
			if !strings.Contains(name, "node_modules") {
				texts[filepath.ToSlash(name)] = mustRead(t, path)
			}
		}
	}
	for _, row := range rows {
		listed := strings.Split(strings.Trim(row[2], "`"), "`, `")
		var got []string
		for name, text := range texts {
			if strings.Contains(text, row[1]) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		slices.Sort(listed)
		if diff := cmp.Diff(listed, got); diff != "" {
			t.Errorf("%s (-listed +found):\n%s", row[1], diff)
		}
	}
}
