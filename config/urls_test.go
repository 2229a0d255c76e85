package config

import (
	"slices"
	"strings"
	"testing"
)

func TestFromURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string // alias=url of each agent, cards marked
	}{
		{[]string{"http://127.0.0.1:41241"}, "127-0-0-1-41241=http://127.0.0.1:41241"},
		{[]string{"https://billing.example.com"}, "billing=https://billing.example.com"},
		{[]string{"https://billing.example.com/"}, "billing=https://billing.example.com/"},
		{[]string{"http://localhost:41241/"}, "localhost-41241=http://localhost:41241/"},
		{[]string{"http://[::1]:41241/"}, "1-41241=http://[::1]:41241/"},
		{[]string{"http://127.0.0.1:9101", "http://127.0.0.1:9102"}, "127-0-0-1-9101=http://127.0.0.1:9101 127-0-0-1-9102=http://127.0.0.1:9102"},
		{[]string{"http://127.0.0.1"}, "127-0-0-1=http://127.0.0.1"},
		{[]string{"http://LOCALHOST:1/.well-known/agent.json"}, "LOCALHOST-1=card http://LOCALHOST:1/.well-known/agent.json"},
		{[]string{"https://billing.example.com:8443"}, "billing=https://billing.example.com:8443"},
		{[]string{"http://127.0.0.1:9101/travel"}, "travel=http://127.0.0.1:9101/travel"},
		{[]string{"http://127.0.0.1:9101", "http://x/127-0-0-1-9101"}, "127-0-0-1-9101-c268f7=http://127.0.0.1:9101 127-0-0-1-9101-a38ec3=http://x/127-0-0-1-9101"},
		{[]string{"https://x.example.com/agents/travel/"}, "travel=https://x.example.com/agents/travel/"},
		{[]string{"https://x.example.com/agents/travel?key=a=b"}, "travel=https://x.example.com/agents/travel?key=a=b"},
		{[]string{"trips=https://x.example.com/agents/travel"}, "trips=https://x.example.com/agents/travel"},
		{[]string{"__proto__=https://x"}, "__proto__=https://x"},
		{[]string{"https://x.example.com/caf%C3%A9 bar"}, ""},
		{[]string{"https://x.example.com/caf%C3%A9.v2"}, "caf-v2=https://x.example.com/caf%C3%A9.v2"},
		{[]string{"https://x.example.com/%20"}, "agent=https://x.example.com/%20"},
		{[]string{"https://x.example.com/$%7Benv:HOME%7D"}, "env-HOME=https://x.example.com/$%7Benv:HOME%7D"},
		{[]string{"https://x.example.com/${env:HOME}"}, "env-HOME=https://x.example.com/${env:HOME}"},
		{[]string{"https://x.example.com/billing/.well-known/agent-card.json"}, "billing=card https://x.example.com/billing/.well-known/agent-card.json"},
		{[]string{"https://x.example.com/.well-known/agent.json"}, "x=card https://x.example.com/.well-known/agent.json"},
		{[]string{"https://x.example.com/" + strings.Repeat("a", 100)}, strings.Repeat("a", 57) + "=https://x.example.com/" + strings.Repeat("a", 100)},
		// Those that collide get a hash, and none of them in some orders only.
		{[]string{"https://a.example.com/bot", "https://b.example.com/bot"}, "bot-dc41d4=https://a.example.com/bot bot-d15bce=https://b.example.com/bot"},
		{[]string{"https://b.example.com/bot", "https://a.example.com/bot"}, "bot-d15bce=https://b.example.com/bot bot-dc41d4=https://a.example.com/bot"},
		{[]string{"https://a.example.com/bot", "bot=https://b.example.com/bot"}, "bot-dc41d4=https://a.example.com/bot bot=https://b.example.com/bot"},
	} {
		cfg, err := FromURLs(c.args)
		if err != nil {
			if c.want != "" {
				t.Errorf("%q: %v", c.args, err)
			}
			continue
		}
		var got []string
		for _, a := range cfg.Agents {
			if a.CardURL != "" {
				got = append(got, a.Alias+"=card "+a.CardURL)
			} else {
				got = append(got, a.Alias+"="+a.URL)
			}
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.args, g, c.want)
		}
		if cfg.Listen != "127.0.0.1:8931" || cfg.Path != "" {
			t.Errorf("%q: the rest is not the default: %+v", c.args, cfg)
		}
	}
}

func TestFromURLsErrors(t *testing.T) {
	t.Parallel()
	_, err := FromURLs([]string{
		"ftp://x", "x.example.com", "a b=https://x", "a=https://x", "a=https://y", "https://x",
		"https://u:s3cr3t@x", "=https://z", "billing=", "", "https://x/\xbb", "https://x/a b",
	})
	got := strings.Split(err.Error(), "\n")
	want := []string{
		`argument 1: "ftp://x" is not an http or https URL; begin it with https:// or http://`,
		`argument 2: "x.example.com" is not an http or https URL; begin it with https:// or http://`,
		`argument 3: "a b" is not an alias; use 1 to 64 of A-Z, a-z, 0-9, _ and -`,
		`argument 6: "https://x" is argument 4 too; remove one`,
		`argument 7: "https://***@x" holds a user name or password; put them into auth`,
		`argument 8: "" is not an alias; use 1 to 64 of A-Z, a-z, 0-9, _ and -`,
		`argument 9: "billing=" is not an http or https URL; begin it with https:// or http://`,
		`argument 10: "" is not an http or https URL; begin it with https:// or http://`,
		`argument 11: "https://x/\xbb" is not UTF-8; write the bytes as %XX`,
		`argument 12: "https://x/a b" has a blank or a control character; remove it, or write %20 for a blank`,
		`the alias "a" is given twice; rename one`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", err, strings.Join(want, "\n"))
	}
	if _, err := FromURLs(nil); err == nil || !strings.Contains(err.Error(), "no agent is given") {
		t.Errorf("without arguments: %v", err)
	}
}

func FuzzFromURLs(f *testing.F) {
	for _, s := range []string{"https://x", "a=https://x/y", "https://x/${env:A}", "a=b=https://x", "https://[::1]/\x00", "HTTPS://X/%2f"} {
		f.Add(s, "https://x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		cfg, err := FromURLs([]string{a, b})
		if err != nil {
			return
		}
		if len(cfg.Agents) != 2 || cfg.Agents[0].Alias == cfg.Agents[1].Alias {
			t.Errorf("agents %+v", cfg.Agents)
		}
		for i, arg := range []string{a, b} {
			if g := cfg.Agents[i]; !isAlias(g.Alias) || !strings.HasSuffix(arg, g.URL+g.CardURL) {
				t.Errorf("%q became %+v", arg, g)
			}
		}
	})
}
