package config

import (
	"fmt"
	"testing"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	parse := func(text string) *Config {
		t.Helper()
		c, err := Parse("f.json", []byte(text), testEnv, testFile)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const before = `{"agents": {
		"a": {"url": "https://a", "headers": {"X": "one"}, "skills": {"s": {"inputSchema": {"type": "object"}}}},
		"b": {"url": "https://b", "auth": {"type": "bearer", "token": "one"}},
		"c": {"url": "https://c"}, "d": {"url": "https://d", "toolPrefix": "x"}}}`
	for _, c := range []struct{ name, after, want string }{
		{"the same", before, "[] [] []"},
		{"another order, another layout", `{"agents": {
			"d": {"toolPrefix": "x", "url": "https://d"}, "c": {"url": "https://c", "enabled": true}, /* x */
			"b": {"url": "https://b", "auth": {"token": "one", "type": "bearer"}},
			"a": {"url": "https://a", "headers": {"X": "one"}, "skills": {"s": {"inputSchema": { "type":"object" }}}}}}`, "[] [] []"},
		{"secrets, prefixes, schemas", `{"agents": {
			"a": {"url": "https://a", "headers": {"X": "one"}, "skills": {"s": {"inputSchema": {"type": "object", "title": "x"}}}},
			"b": {"url": "https://b", "auth": {"type": "bearer", "token": "two"}},
			"c": {"url": "https://c", "headers": {"X": "one"}}, "d": {"url": "https://d", "toolPrefix": ""}}}`, "[] [a b c d] []"},
		{"one comes, one goes", `{"agents": {"e": {"url": "https://e"}, "c": {"url": "https://c"}}}`, "[e] [] [a b d]"},
		{"what all inherit", `{"expose": ["agents"], "agents": {"c": {"url": "https://c"}}}`, "[] [c] [a b d]"},
	} {
		added, changed, removed := Changes(parse(before), parse(c.after))
		if got := fmt.Sprint(added, changed, removed); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestListenFlag(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:0": "", ":8931": "", "[::]:80": "", "gateway:8931": "",
		"8931":            `--listen: "8931" is not host:port; write it as 127.0.0.1:8931`,
		"127.0.0.1:99999": `--listen: "127.0.0.1:99999" has no valid port; give 0 (any free one) to 65535`,
		"a b:1":           `--listen: "a b:1" has no valid host; write it as 127.0.0.1:8931`,
	} {
		got := ""
		if err := CheckListen(address); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s\nwant %s", address, got, want)
		}
	}
	for listen, want := range map[string]bool{
		"127.0.0.1:8931": true, "localhost:1": true, "[::1]:1": true, "127.8.0.1:0": true,
		":8931": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "localhost.example.com:1": false,
	} {
		if got := (&Config{Listen: listen}).Loopback(); got != want {
			t.Errorf("%s is loopback: %v", listen, got)
		}
	}
}
