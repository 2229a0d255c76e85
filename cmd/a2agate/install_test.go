package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"a2agate/internal/clientfile"
)

// installShell is a shell with a home and a project folder of its own.
func installShell(t *testing.T) shell {
	t.Helper()
	home := t.TempDir()
	return shell{dir: t.TempDir(), env: map[string]string{"HOME": home, "USERPROFILE": home, "APPDATA": filepath.Join(home, "AppData")}}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestInstallEveryClient installs, installs again and removes, for every
// client and scope: nothing is left but what was there before.
func TestInstallEveryClient(t *testing.T) {
	t.Parallel()
	for _, c := range clientfile.Clients() {
		for _, scope := range []string{"user", "project"} {
			t.Run(c.ID+"/"+scope, func(t *testing.T) {
				t.Parallel()
				sh := installShell(t)
				code, out, errs := sh.run(t.Context(), "install", c.ID, "--scope", scope)
				if code == 2 && scope == "project" && strings.Contains(errs, "has no project file") {
					return
				}
				path := onlyFile(t, sh)
				if code != 0 || !strings.Contains(out, path) || !strings.Contains(out, "next: ") {
					t.Fatalf("exit %d, %s%s", code, out, errs)
				}
				code, block, _ := sh.run(t.Context(), "install", c.ID, "--scope", scope, "--print")
				if text := mustRead(t, path); code != 0 || block != text || !strings.Contains(text, "127.0.0.1:8931") {
					t.Errorf("exit %d, printed\n%s\nin the file\n%s", code, block, text)
				}
				if code, out, _ = sh.run(t.Context(), "install", c.ID, "--scope", scope); code != 0 || !strings.Contains(out, "already") {
					t.Errorf("again: exit %d, %s", code, out)
				}
				if code, out, _ = sh.run(t.Context(), "install", c.ID, "--scope", scope, "--remove"); code != 0 || !strings.Contains(out, "took") {
					t.Errorf("remove: exit %d, %s", code, out)
				}
				if files := allFiles(t, sh); len(files) != 1 || files[0] != path+backupSuffix {
					t.Errorf("left behind: %q", files)
				}
				if code, out, _ = sh.run(t.Context(), "install", c.ID, "--scope", scope, "--remove"); code != 0 || !strings.Contains(out, "is not in") {
					t.Errorf("remove again: exit %d, %s", code, out)
				}
			})
		}
	}
}

func allFiles(t *testing.T, sh shell) (paths []string) {
	t.Helper()
	for _, root := range []string{sh.dir, sh.env["HOME"]} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

func onlyFile(t *testing.T, sh shell) string {
	t.Helper()
	files := allFiles(t, sh)
	if len(files) != 1 {
		t.Fatalf("files %q, want one", files)
	}
	return files[0]
}

func TestInstallKeepsWhatWasThere(t *testing.T) {
	t.Parallel()
	sh := installShell(t)
	path := filepath.Join(sh.dir, ".mcp.json")
	before := "{\n  // mine\n  \"mcpServers\": {}\n}\n"
	write(t, path, before)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	code, out, errs := sh.run(t.Context(), "install", "claude", "--scope", "project", "--token-env", "GW_TOKEN", "--name", "agents")
	if code != 0 || !strings.Contains(out, path+backupSuffix) || !strings.Contains(out, "reads it from GW_TOKEN") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	if text := mustRead(t, path); !strings.Contains(text, "// mine") || !strings.Contains(text, `"agents"`) || !strings.Contains(text, "Bearer ${GW_TOKEN}") {
		t.Errorf("the file is now\n%s", text)
	}
	for _, p := range []string{path, path + backupSuffix} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v, want mode 640", p, info.Mode(), err)
		}
	}
	if text := mustRead(t, path+backupSuffix); text != before {
		t.Errorf("the backup is %q", text)
	}
	if code, _, _ := sh.run(t.Context(), "install", "claude", "--scope", "project", "--name", "agents", "--remove"); code != 0 || mustRead(t, path) != before {
		t.Errorf("exit %d, removed: %q, want %q", code, mustRead(t, path), before)
	}
	if files := allFiles(t, sh); len(files) != 1 {
		t.Errorf("left behind: %q", files)
	}
}

func TestInstallLeavesAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text, want string
		mode             os.FileMode
	}{
		{"broken", "{\n  \"mcpServers\": {", `line 2, column 17: this '{' is never closed`, 0o600},
		{"another kind", `{"mcpServers": {"a2a": {"command": "x"}}}`, "choose another name", 0o600},
		{"read-only", `{"mcpServers": {}}`, "read-only", 0o400},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sh := installShell(t)
			path := filepath.Join(sh.dir, ".mcp.json")
			write(t, path, test.text)
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			code, out, errs := sh.run(t.Context(), "install", "claude", "--scope", "project")
			if code != 1 || !strings.Contains(errs, test.want) || !strings.Contains(errs, path) || !strings.Contains(out, `"mcpServers"`) {
				t.Errorf("exit %d, out %s, err %s", code, out, errs)
			}
			if mustRead(t, path) != test.text || len(allFiles(t, sh)) != 1 {
				t.Errorf("the file is %q, files %q", mustRead(t, path), allFiles(t, sh))
			}
		})
	}
}

func TestInstallFollowsLinks(t *testing.T) {
	t.Parallel()
	sh := installShell(t)
	dotfiles := t.TempDir()
	target := filepath.Join(dotfiles, "cursor.json")
	write(t, target, "{}\n")
	link := filepath.Join(sh.dir, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	code, out, errs := sh.run(t.Context(), "install", "cursor", "--scope", "project")
	if info, err := os.Lstat(link); code != 0 || err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("exit %d, %s%s, the link is now %v, %v", code, out, errs, info.Mode(), err)
	}
	if !strings.Contains(mustRead(t, target), "127.0.0.1:8931") || mustRead(t, target+backupSuffix) != "{}\n" {
		t.Errorf("behind the link: %q", mustRead(t, target))
	}
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := sh.run(t.Context(), "install", "cursor", "--scope", "project"); code != 1 || !strings.Contains(errs, "leads nowhere") {
		t.Errorf("a dangling link: exit %d, %s", code, errs)
	}
}

func TestInstallMisuse(t *testing.T) {
	t.Parallel()
	sh := installShell(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"install"}, "install takes one client: claude, cursor"},
		{[]string{"install", "emacs"}, `client "emacs" is not known`},
		{[]string{"install", "claude", "--scope", "all"}, `--scope "all"`},
		{[]string{"install", "claude", "--name", "a b"}, `name "a b"`},
		{[]string{"install", "claude", "--url", "here"}, `url "here"`},
		{[]string{"install", "claude", "--token-env", "sk-1"}, "never written"},
		{[]string{"install", "zed", "--token-env", "T"}, "Zed sends headers"},
		{[]string{"install", "goose", "--scope", "project"}, "leave --scope out"},
	} {
		code, out, errs := sh.run(t.Context(), test.args...)
		if code != 2 || !strings.Contains(errs, test.want) || out != "" {
			t.Errorf("%q: exit %d, %s%s, want %q", test.args, code, out, errs, test.want)
		}
	}
	delete(sh.env, "HOME")
	delete(sh.env, "USERPROFILE")
	if code, _, errs := sh.run(t.Context(), "install", "claude"); code != 1 || !strings.Contains(errs, "HOME is not set") {
		t.Errorf("no home: exit %d, %s", code, errs)
	}
	if files := allFiles(t, shell{dir: sh.dir, env: map[string]string{"HOME": sh.dir}}); len(files) != 0 {
		t.Errorf("files %q", files)
	}
}

// TestEditFileMeetsAnotherWriter has the client write the file while it is
// edited: nothing of either is lost.
func TestEditFileMeetsAnotherWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "0")
	calls := 0
	r, err := editFile(path, func(old []byte) ([]byte, error) {
		if calls++; calls == 1 {
			write(t, path, "1")
		}
		return append(bytes.Clone(old), '+'), nil
	})
	if text := mustRead(t, path); err != nil || !r.changed || text != "1+" || mustRead(t, path+backupSuffix) != "1" {
		t.Errorf("%+v, %v, file %q", r, err, text)
	}
	_, err = editFile(path, func(old []byte) ([]byte, error) {
		write(t, path, string(old)+"x")
		return append(bytes.Clone(old), '+'), nil
	})
	if err == nil || !strings.Contains(err.Error(), "another program keeps writing") {
		t.Errorf("a file that never rests: %v", err)
	}
	if _, err := editFile(t.TempDir(), func([]byte) ([]byte, error) { return nil, nil }); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}
