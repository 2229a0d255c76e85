package credential

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fakeAz writes a program that stands in for az; it appends its arguments to
// a file beside it, which is returned.
func fakeAz(t *testing.T, script string) (path, log string) {
	t.Helper()
	dir := t.TempDir()
	path, log = filepath.Join(dir, "az"), filepath.Join(dir, "log")
	body := fmt.Sprintf("#!/bin/sh\nprintf '%%s|' \"$@\" >>'%s'\necho >>'%s'\n%s\n", log, log, script)
	if err := os.WriteFile(path, []byte(body), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, log
}

func az(t *testing.T, resource, path string) *AzCLI {
	t.Helper()
	a, err := NewAzCLI(resource, path)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func runs(t *testing.T, log string) int {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func TestAzCLIRunsOnceWithExactArguments(t *testing.T) {
	later := time.Now().Add(time.Hour).Unix()
	path, log := fakeAz(t, fmt.Sprintf(`echo '{"accessToken":"AZ","expires_on":%d,"tokenType":"Bearer"}'`, later))
	a := az(t, "api://abc-1/x.y", path)
	for range 3 {
		wantHeader(t, a, "Bearer AZ")
	}
	got, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if want := "account|get-access-token|--resource|api://abc-1/x.y|--output|json|\n"; string(got) != want {
		t.Errorf("ran %q, want %q", got, want)
	}
	if !a.Refresh(t.Context()) {
		t.Error("Refresh says that nothing can help")
	}
	wantHeader(t, a, "Bearer AZ")
	if n := runs(t, log); n != 2 {
		t.Errorf("ran %d times, want 2", n)
	}
}

func TestAzCLIExpiryFields(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	at := now.Add(42 * time.Minute)
	local := at.Local().Format("2006-01-02 15:04:05.000000")
	other := at.Add(-3 * time.Hour).Local().Format("2006-01-02 15:04:05.000000")
	tests := []struct {
		name, out string
		want      time.Time
	}{
		{"number", fmt.Sprintf(`{"accessToken":"A","expires_on":%d,"expiresOn":%q}`, at.Unix(), other), at},
		{"string", fmt.Sprintf(`{"accessToken":"A","expires_on":%q}`, strconv.FormatInt(at.Unix(), 10)), at},
		{"local time", fmt.Sprintf(`{"accessToken":"A","expiresOn":%q}`, local), at},
		{"neither", `{"accessToken":"A"}`, now.Add(azUnknownLifetime)},
		{"nonsense", `{"accessToken":"A","expires_on":"soon","expiresOn":"later"}`, now.Add(azUnknownLifetime)},
		{"BOM", "\xef\xbb\xbf" + fmt.Sprintf(`{"accessToken":"A","expires_on":%d}`, at.Unix()), at},
	}
	for _, tt := range tests {
		got, err := parseAzToken([]byte(tt.out), now)
		if err != nil || !got.expires.Equal(tt.want) || got.value.Reveal() != "A" {
			t.Errorf("%s: expires %v (%v), want %v", tt.name, got.expires, err, tt.want)
		}
	}
	for _, bad := range []string{"", "ERROR", "[]", `{}`, `{"accessToken":""}`, `{"accessToken":"a\nb"}`} {
		if _, err := parseAzToken([]byte(bad), now); err == nil {
			t.Errorf("%q was taken for a token", bad)
		}
	}
}

func TestAzCLIFailuresInPlainWords(t *testing.T) {
	tests := []struct {
		name, script, want string
	}{
		{"not logged in", `echo "ERROR: Please run 'az login' to setup account." >&2; exit 1`, "the Azure CLI is not logged in: run az login"},
		{"other", `printf 'ERROR: AADSTS500011: no such resource\n\033[0m trace' >&2; exit 1`, "az account get-access-token failed: ERROR: AADSTS500011: no such resource [0m trace"},
		{"silent", `exit 3`, "az account get-access-token failed"},
		{"not a token", `echo hello`, "az printed something that is not a token: is it the Azure CLI?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path, log := fakeAz(t, tt.script)
			a := az(t, "api://x", path)
			for range 3 { // the failure is remembered, az runs once
				if _, err := header(t, t.Context(), a); err == nil || err.Error() != tt.want {
					t.Errorf("got %v, want %s", err, tt.want)
				}
			}
			if n := runs(t, log); n != 1 {
				t.Errorf("ran %d times", n)
			}
		})
	}
	missing := az(t, "api://x", filepath.Join(t.TempDir(), "az"))
	if _, err := header(t, t.Context(), missing); err == nil || !strings.HasPrefix(err.Error(), "the Azure CLI was not found") {
		t.Errorf("missing program: %v", err)
	}
	if _, err := header(t, t.Context(), az(t, "", "")); err == nil || !strings.HasPrefix(err.Error(), "az_cli has no resource") {
		t.Errorf("no resource: %v", err)
	}
}

// TestAzCLIHangingIsBounded: a program that does not end is killed with the
// caller's deadline, and its orphaned child does not hold the call.
func TestAzCLIHangingIsBounded(t *testing.T) {
	path, _ := fakeAz(t, "sleep 600 & sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := header(t, ctx, az(t, "api://x", path))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	a := az(t, "api://x", path)
	expired, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	if got := a.explain(expired, errors.New("signal: killed"), "").Error(); got != "az did not answer within 30s" {
		t.Errorf("timeout is told as %q", got)
	}
}

func TestAzCLIResourceFromScopes(t *testing.T) {
	tests := []struct {
		configured string
		scopes     []string
		want       string
	}{
		{"", []string{"openid", "api://abc-def/.default"}, "api://abc-def"},
		{"", []string{"api://abc/Read.All"}, "api://abc"},
		{"", []string{"api://tenant/abc/x"}, "api://tenant/abc"},
		{"api://mine", []string{"api://abc/.default"}, "api://mine"},
		{"", []string{"https://management.azure.com/.default", "api:///x", "api://abc", "api://a b/x"}, ""},
		{"", nil, ""},
	}
	for _, tt := range tests {
		got := az(t, tt.configured, "az").WithScopes(tt.scopes).(*AzCLI)
		if got.resource != tt.want {
			t.Errorf("%q with %q gives %q, want %q", tt.configured, tt.scopes, got.resource, tt.want)
		}
	}
}

// FuzzAzToken: whatever az prints, a token that is accepted can stand in a
// header.
func FuzzAzToken(f *testing.F) {
	f.Add(`{"accessToken":"A","expires_on":1,"expiresOn":"2026-01-02 03:04:05.000000"}`)
	f.Add(`{"accessToken":7}`)
	f.Fuzz(func(t *testing.T, out string) {
		got, err := parseAzToken([]byte(out), time.Now())
		if err == nil && headerSecret("token", got.value) != "" {
			t.Fatalf("accepted %q", out)
		}
	})
}
