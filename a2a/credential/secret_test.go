package credential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

// holder has the secret where fmt prints by reflection, past its methods.
type holder struct {
	Open   Secret
	hidden Secret
	list   []Secret
	byName map[string]Secret
}

func TestSecretPrintsNowhere(t *testing.T) {
	const value = "s3cr3t-value"
	s := NewSecret(value)
	h := holder{Open: s, hidden: s, list: []Secret{s}, byName: map[string]Secret{"k": s}}
	var printed []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10s", "%p"} {
		printed = append(printed, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, h), fmt.Sprintf(verb, &h))
	}
	for _, v := range []any{s, &s, h, &h, map[string]Secret{"k": s}, map[Secret]int{}} {
		if out, err := json.Marshal(v); err == nil {
			printed = append(printed, string(out))
		}
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "secret", s, "holder", h, "pointer", &h)
	}
	printed = append(printed, log.String(), s.String(), s.GoString(), fmt.Sprint(s), fmt.Sprintln(h))
	text, _ := s.MarshalText()
	printed = append(printed, string(text))
	if len(printed) < 50 {
		t.Fatalf("only %d printings were tried", len(printed))
	}
	for _, p := range printed {
		if strings.Contains(p, value) || strings.Contains(p, fmt.Sprintf("%x", value)) || strings.Contains(p, fmt.Sprintf("%X", value)) {
			t.Errorf("a secret was printed: %s", p)
		}
	}
	if got := fmt.Sprintf("%s", s); got != "***" {
		t.Errorf("%%s gives %q, want ***", got)
	}
	if out, _ := json.Marshal(s); string(out) != `"***"` {
		t.Errorf("JSON gives %s", out)
	}
}

func TestSecretReadsAndCompares(t *testing.T) {
	var v struct{ A, B Secret }
	if err := json.Unmarshal([]byte(`{"A":"x","B":""}`), &v); err != nil {
		t.Fatal(err)
	}
	if v.A.Reveal() != "x" || !v.B.Empty() {
		t.Errorf("read %q and %q", v.A.Reveal(), v.B.Reveal())
	}
	if err := json.Unmarshal([]byte(`{"A":{"deep":"s3cr3t"}}`), &v); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("an object as a secret gives %v", err)
	}
	var u Secret
	if err := u.UnmarshalText([]byte("x")); err != nil || !u.Equal(v.A) || u.Equal(v.B) || u.Equal(NewSecret("xx")) {
		t.Errorf("comparison is wrong: %v", err)
	}
	if !reflect.DeepEqual(NewSecret("x"), u) || reflect.DeepEqual(NewSecret("y"), u) {
		t.Error("reflect.DeepEqual does not tell secrets apart by value")
	}
}

func TestScrub(t *testing.T) {
	got := scrub("bad \x1b[31msecret\r\n abc123 is wrong", 200, NewSecret("abc123"))
	if got != "bad [31msecret *** is wrong" {
		t.Errorf("got %q", got)
	}
	if got := scrub(strings.Repeat("é", 50), 11); got != "ééééé…" {
		t.Errorf("cut to %q", got)
	}
}
