package config

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                   `""`,
		"a\"b\n\x1b\u202e":                   `"a\"b\n\x1b\u202e"`,
		"https://u:p/w@x/y":                  `"https://***@x/y"`,
		"redis://:p@h@cache":                 `"redis://***@cache"`,
		"mail@example.com":                   `"mail@example.com"`,
		strings.Repeat("é", quotedLen):       `"` + strings.Repeat("é", quotedLen/2) + `"…`,
		"x" + strings.Repeat("é", quotedLen): `"x` + strings.Repeat("é", quotedLen/2-1) + `"…`,
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
	if got := cut("x" + strings.Repeat("é", quotedLen)); got != "x"+strings.Repeat("é", quotedLen/2-1)+"…" {
		t.Errorf("cut: %s", got)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"agents", "url", "cardUrl", "allowedHosts", "http"}
	for word, want := range map[string]string{
		"agnets": "agents", "URL": "url", "ulr": "url", "card_url": "cardUrl", "allowedHost": "allowedHosts",
		"x": "", "": "", "something": "", strings.Repeat("agents", 50): "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestFileTrouble(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		fs.ErrNotExist: `the file "f" does not exist; create it`,
		&fs.PathError{Op: "open", Path: "/secret/path", Err: fs.ErrPermission}:             `the file "f" may not be read by this user; change its permissions`,
		&fs.PathError{Op: "read", Path: "/secret/path", Err: errors.New("is a directory")}: `the file "f" cannot be read: is a directory`,
	} {
		if got := fileTrouble("f", err, "create it"); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
