package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	const file = "{\n  // é\n  \"agents\": {\"a b\": {\"url\": \"http://x\"}},\n  \"listen\": \"0.0.0.0:1\"\n}"
	for _, c := range []struct {
		data  string
		keys  []string
		want  string
		found bool
	}{
		{file, []string{"listen"}, "f.json:4:13: listen: no", true},
		{file, []string{"agents", "a b", "url"}, `f.json:3:29: agents["a b"].url: no`, true},
		{file, []string{"agents", "a b", "auth"}, `f.json:3:21: agents["a b"].auth: no`, false},
		{file, []string{"tls", "certFile"}, "f.json:1:1: tls.certFile: no", false},
		{"\xef\xbb\xbf" + file, []string{"listen"}, "f.json:4:13: listen: no", true},
		{"{", []string{"listen"}, "f.json: listen: no", false},
		{file, nil, "f.json:1:1: no", true},
	} {
		if got, found := Locate("f.json", []byte(c.data), "no", c.keys...); got.String() != c.want || found != c.found {
			t.Errorf("%q: got %s, %t, want %s, %t", c.keys, got, found, c.want, c.found)
		}
	}
}

func TestSameAddress(t *testing.T) {
	t.Parallel()
	cfg, err := parseTest("f.json", `{"agents":{"a":{"url":"http://x"},"b":{"cardUrl":"http://y/card"},"c":{"url":"http://x"},"d":{"url":"http://x/d"},"e":{"cardUrl":"http://y/card","enabled":false}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"a", "c"}, {"b", "e"}}, cfg.SameAddress()); diff != "" {
		t.Error(diff)
	}
	if cfg, err = parseTest("f.json", `{"agents":{"a":{"url":"http://x"}}}`); err != nil || cfg.SameAddress() != nil {
		t.Errorf("one agent: %v, %v", cfg.SameAddress(), err)
	}
}
