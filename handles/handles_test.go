package handles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if childMain() {
		return
	}
	SetRedisLogger(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func TestParse(t *testing.T) {
	t.Parallel()
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for handle, want := range map[string]Kind{
		"cx_" + letters:                      KindContext,
		"tk_" + letters:                      KindTask,
		"rs_" + letters:                      KindState,
		"tk_234567abcdefghijklmnopqrst":      KindTask,
		"":                                   "",
		"tk_":                                "",
		"xx_" + letters:                      "",
		"TK_" + letters:                      "",
		"tk-" + letters:                      "",
		"tk_" + letters + "a":                "",
		"tk_" + letters[1:]:                  "",
		"tk_" + strings.ToUpper(letters):     "",
		"tk_" + letters[:25] + "1":           "",
		"tk_" + letters[:25] + "8":           "",
		"tk_" + letters[:25] + " ":           "",
		" tk_" + letters[:25]:                "",
		"tk_" + letters[:24] + "é":           "",
		"tk_" + letters[:25] + "\x00":        "",
		"tk_../../../../../../etc/passwd":    "",
		"cx_" + strings.Repeat("a", 1<<20):   "",
		"tk_" + strings.Repeat("\u202e", 26): "",
	} {
		kind, err := Parse(handle)
		if kind != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("Parse(%.40q) = %q, %v; want %q", handle, kind, err, want)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("error of %d bytes", len(err.Error()))
		}
	}
}

func TestMint(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		for _, kind := range []Kind{KindContext, KindTask, KindState} {
			h := mint(kind)
			if got, err := Parse(h); got != kind || err != nil || seen[h] {
				t.Fatalf("minted %q: %q, %v", h, got, err)
			}
			seen[h] = true
		}
	}
}

// What Parse accepts is exactly what mint can make; what it refuses gives a
// short line without raw bytes.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "tk_", mint(KindTask), mint(KindContext), mint(KindState), "tk_\xff", strings.ToUpper(mint(KindTask))} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		kind, err := Parse(s)
		if err == nil {
			if len(s) != 29 || s[:3] != kind.prefix() || strings.Trim(s[3:], "abcdefghijklmnopqrstuvwxyz234567") != "" {
				t.Errorf("Parse(%q) = %q", s, kind)
			}
			return
		}
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeMalformed || e.Handle != s || kind != "" {
			t.Errorf("Parse(%q) = %q, %#v", s, kind, err)
		}
		if line := err.Error(); len(line) > 400 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0xfffd }) {
			t.Errorf("error %q", line)
		}
	})
}

// The texts are what a model reads; they name the handle and the remedy.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	const h = "tk_abcdefghijklmnopqrstuvwxyz"
	for _, c := range []struct {
		err  error
		want string
	}{
		{unknown(KindTask, h), `unknown task handle "` + h + `"; pass a handle exactly as an earlier result gave it`},
		{unknown(KindState, "rs_x"), `unknown requestState "rs_x"; pass a handle exactly as an earlier result gave it`},
		{expired(KindTask, h), `task handle "` + h + `" has expired; start anew without it`},
		{used(KindState, "rs_x"), `requestState "rs_x" has been used already; it works once`},
		{wrongKind(KindContext, h), `"` + h + `" is not a context handle; a context handle begins with "cx_"`},
		{malformed("a\nb\u202e"), `"a\nb\u202e" is not a handle; pass a handle exactly as an earlier result gave it`},
		{malformed(strings.Repeat("a", 100)), `"` + strings.Repeat("a", 64) + `"… is not a handle; pass a handle exactly as an earlier result gave it`},
		{&Error{Code: CodeFull}, "the gateway holds as many handles as it may; try again later, or raise limits.handles"},
		{
			storeFailed(KindTask, h, fmt.Errorf("write /var/lib/x: %w", syscall.ENOSPC)),
			"the gateway cannot reach its handle store (no space left on device); try again later",
		},
		{
			storeFailed(KindTask, h, errors.New("dial tcp 10.0.0.1: secret")),
			"the gateway cannot reach its handle store (the log of the gateway says why); try again later",
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if err := storeFailed(KindTask, h, context.Canceled); err != context.Canceled {
		t.Errorf("a caller who goes away gets %v", err)
	}
	if err := storeFailed(KindTask, h, syscall.ENOSPC); !errors.Is(err, ErrStore) || !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrFull) {
		t.Errorf("errors.Is on %v", err)
	}
}
