package a2a

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testRules are the rules of an agent configured at that address, its card
// found at the well-known path below it.
func testRules(t testing.TB, configured string, policy URLPolicy, allow ...string) interfaceRules {
	t.Helper()
	place, err := locate(configured, "", "")
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := url.Parse(place.candidates[0].url)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := parseAllowHosts(allow)
	if err != nil {
		t.Fatal(err)
	}
	return interfaceRules{configured: place.agent, call: place.call, fetched: fetched, policy: policy, allow: hosts}
}

func oneInterface(address string) *Card {
	return &Card{Name: "x", Interfaces: []CardInterface{{URL: address, Binding: "JSONRPC", Version: "1.0"}}}
}

// TestAdvertisedAddresses is P02 a-e and the url policy of the reference
// (checklist 11, 12), each on the address that is called.
func TestAdvertisedAddresses(t *testing.T) {
	const own = "http://agents.internal:8080/"
	const secure = "https://agents.example/team/"
	tests := []struct {
		name       string
		configured string
		policy     URLPolicy
		allow      []string
		advertised string
		want       string // "" when it is blocked
		anonymous  bool
		quiet      bool // no note
	}{
		{name: "P02 a", configured: own, advertised: "http://0.0.0.0:8080/a2a", want: "http://agents.internal:8080/a2a"},
		{name: "P02 b", configured: own, advertised: "http://[::]:8080/a2a", want: "http://agents.internal:8080/a2a"},
		{name: "P02 c", configured: own, advertised: "http://localhost:8080/a2a", want: "http://agents.internal:8080/a2a"},
		{name: "P02 c loopback", configured: "http://127.0.0.1:8080/", advertised: "http://localhost:8080/a2a", want: "http://localhost:8080/a2a", quiet: true},
		{name: "P02 d", configured: own, advertised: "/a2a", want: "http://agents.internal:8080/a2a", quiet: true},
		{name: "P02 e", configured: own, advertised: "http://other.internal:8080/a2a"},
		{name: "another port is kept, without credential", configured: own, advertised: "http://0.0.0.0:9000/a2a?x=1", want: "http://agents.internal:9000/a2a?x=1", anonymous: true},
		{name: "unspecified, seen from loopback", configured: "http://127.0.0.1:8080/", advertised: "http://0.0.0.0:8080/a2a", want: "http://127.0.0.1:8080/a2a"},
		{name: "unspecified in IPv4-mapped form", configured: own, advertised: "http://[::ffff:0.0.0.0]:8080/", want: own},
		{name: "loopback of another spelling", configured: own, advertised: "http://127.8.9.1:8080/", want: own},
		{name: "loopback v6", configured: own, advertised: "http://[::1]:8080/", want: own},
		{name: "private", configured: own, advertised: "http://10.1.2.3:8080/x", want: "http://agents.internal:8080/x"},
		{name: "private v6", configured: own, advertised: "http://[fd12::1]:8080/x", want: "http://agents.internal:8080/x"},
		{name: "link-local", configured: own, advertised: "http://169.254.1.1:8080/x", want: "http://agents.internal:8080/x"},
		{name: "private, and configured so", configured: "http://10.1.2.3:8080/", advertised: "http://10.1.2.3:8080/x", want: "http://10.1.2.3:8080/x", quiet: true},
		{name: "private on another port of the same address", configured: "http://10.1.2.3:8080/", advertised: "http://10.1.2.3:22/x"},
		{name: "private behind TLS", configured: secure, advertised: "http://10.1.2.3:8080/x", want: "https://agents.example/x"},
		{name: "unspecified behind TLS", configured: secure, advertised: "http://0.0.0.0:8080/x", want: "https://agents.example/x"},
		{name: "downgrade", configured: secure, advertised: "http://agents.example/x", want: "https://agents.example/x"},
		{name: "downgrade with the inner port", configured: secure, advertised: "http://Agents.Example:8000/x", want: "https://agents.example/x"},
		{name: "upgrade", configured: "http://agents.example/", advertised: "https://agents.example/x", want: "https://agents.example/x", anonymous: true, quiet: true},
		{name: "same origin in other letters", configured: secure, advertised: "https://AGENTS.example.:443/x", want: "https://AGENTS.example.:443/x", quiet: true},
		{name: "another port", configured: own, advertised: "http://agents.internal:9090/x"},
		{name: "another loopback port", configured: "http://127.0.0.1:8080/", advertised: "http://127.0.0.1:2375/x"},
		{name: "a name that would be private is not resolved", configured: own, advertised: "http://printer.local/x"},
		{name: "allowed host", configured: own, allow: []string{"other.internal"}, advertised: "http://other.internal:8080/a2a", want: "http://other.internal:8080/a2a", anonymous: true, quiet: true},
		{name: "allowed host and port", configured: own, allow: []string{"other.internal:8080"}, advertised: "http://OTHER.internal:8080/a2a", want: "http://OTHER.internal:8080/a2a", anonymous: true, quiet: true},
		{name: "allowed on another port", configured: own, allow: []string{"other.internal:9"}, advertised: "http://other.internal:8080/a2a"},
		{name: "allowed private is not rewritten", configured: own, allow: []string{"10.1.2.3"}, advertised: "http://10.1.2.3:7/a2a", want: "http://10.1.2.3:7/a2a", anonymous: true, quiet: true},
		{name: "allowed v6", configured: own, allow: []string{"[fd12::1]:7"}, advertised: "http://[fd12:0::1]:7/a2a", want: "http://[fd12:0::1]:7/a2a", anonymous: true, quiet: true},
		{name: "policy card", configured: own, policy: PolicyCard, advertised: "http://0.0.0.0:8080/a2a"},
		{name: "policy card, allowed", configured: own, policy: PolicyCard, allow: []string{"0.0.0.0"}, advertised: "http://0.0.0.0:8080/a2a", want: "http://0.0.0.0:8080/a2a", anonymous: true, quiet: true},
		{name: "policy configured", configured: secure, policy: PolicyConfigured, advertised: "http://elsewhere.test:1/a2a?q", want: "https://agents.example/a2a?q"},
		{name: "relative to the agent", configured: secure, advertised: "rpc", want: "https://agents.example/team/rpc", quiet: true},
		{name: "relative to the agent, dotted", configured: secure, advertised: "../rpc", want: "https://agents.example/rpc", quiet: true},
		{name: "rooted", configured: secure, advertised: "/rpc?x=1", want: "https://agents.example/rpc?x=1", quiet: true},
		{name: "without scheme, slashes", configured: secure, advertised: "//agents.example/rpc", want: "https://agents.example/rpc", quiet: true},
		{name: "host and port only", configured: own, advertised: "agents.internal:8080/rpc", want: "http://agents.internal:8080/rpc", quiet: true},
		{name: "fragment and blanks", configured: own, advertised: " http://agents.internal:8080/rpc#x ", want: "http://agents.internal:8080/rpc", quiet: true},
		{name: "user is dropped", configured: own, advertised: "http://u:p@agents.internal:8080/rpc", want: "http://agents.internal:8080/rpc", quiet: true},
		{name: "bytes are kept", configured: own, advertised: "HTTP://agents.internal:8080/a%2fb//c/?b=%20&a", want: "HTTP://agents.internal:8080/a%2fb//c/?b=%20&a", quiet: true},
		{name: "card path", configured: own, advertised: "http://agents.internal:8080/x/.well-known/agent-card.json", want: "http://agents.internal:8080/x"},
		{name: "card path of 0.2 at the origin", configured: own, advertised: "http://agents.internal:8080/.well-known/agent.json", want: "http://agents.internal:8080/"},
		{name: "operation path", configured: own, advertised: "http://agents.internal:8080/x/message:stream?k=v", want: "http://agents.internal:8080/x?k=v"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.policy == "" {
				tt.policy = PolicyAuto
			}
			c := chooseInterfaces(oneInterface(tt.advertised), testRules(t, tt.configured, tt.policy, tt.allow...))
			if tt.want == "" {
				if len(c.usable) != 0 || len(c.blocked) != 1 || !strings.Contains(c.blocked[0], "allowHosts") {
					t.Fatalf("usable %+v, blocked %q", c.usable, c.blocked)
				}
				return
			}
			if len(c.usable) == 0 {
				t.Fatalf("blocked: %q, notes %q", c.blocked, c.notes)
			}
			if got := c.usable[0]; got.URL != tt.want || got.Anonymous != tt.anonymous {
				t.Errorf("got %s (anonymous %v), want %s (%v)", got.URL, got.Anonymous, tt.want, tt.anonymous)
			}
			if (len(c.notes) == 0) != tt.quiet {
				t.Errorf("notes are %q", c.notes)
			}
		})
	}
}

// TestEveryAliasOfThisMachine is the rule behind P02, over hosts that were not
// in the example: nothing that means the agent's own machine or network is
// called from another one.
func TestEveryAliasOfThisMachine(t *testing.T) {
	hosts := []string{"localhost", "LOCALHOST.", "x.localhost", "0", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x0a000001", "167772161", "[::ffff:10.0.0.1]",
		"[64:ff9b::a00:1]", "[2002:a00:1::]", "[fe80::1%25eth0]", "127.0.0.1", "127.255.255.254", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]",
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "[fc00::1]", "[fe80::1]", "169.254.1.1"}
	for _, host := range hosts {
		for _, policy := range []URLPolicy{PolicyAuto, PolicyConfigured} {
			c := chooseInterfaces(oneInterface("http://"+host+":8080/a2a"), testRules(t, "http://agents.internal:8080/", policy))
			if len(c.usable) != 1 || c.usable[0].URL != "http://agents.internal:8080/a2a" || c.usable[0].Anonymous {
				t.Errorf("%s under %s: %+v", host, policy, c)
			}
		}
	}
	for _, host := range []string{"172.32.0.1", "192.169.0.1", "2852039166", "3221226219", "0x08080808", "127.0.0.1.example", "1.2.3.4.5", "0x7f.example", "100.128.0.1", "11.0.0.1", "169.254.169.254", "notlocalhost", "[2001:db8::1]"} {
		if c := chooseInterfaces(oneInterface("http://"+host+":8080/a2a"), testRules(t, "http://agents.internal:8080/", PolicyAuto)); len(c.usable) != 0 {
			t.Errorf("%s: %+v", host, c)
		}
	}
}

func TestBlockedReason(t *testing.T) {
	c := chooseInterfaces(oneInterface("http://other.internal:8080/a2a?key=s3cr3t"), testRules(t, "http://agents.internal:8080/", PolicyAuto))
	want := `the card's interface http://other.internal:8080/a2a?… is not on the configured origin http://agents.internal:8080: list "other.internal:8080" in allowHosts to call it, without credentials`
	if c.reason() != want {
		t.Errorf("got  %s\nwant %s", c.reason(), want)
	}
}

// TestCredentialedRewriteTriesTheConfiguredOriginFirst: on another port no
// credential may go along, so it is the second try of an agent that has one.
func TestCredentialedRewriteTriesTheConfiguredOriginFirst(t *testing.T) {
	rules := testRules(t, "http://agents.internal:8080/", PolicyAuto)
	rules.credentialed = true
	got := chooseInterfaces(oneInterface("http://0.0.0.0:9000/a2a"), rules).usable
	want := []Interface{
		{URL: "http://agents.internal:8080/a2a", Binding: JSONRPC, Version: V10},
		{URL: "http://agents.internal:9000/a2a", Binding: JSONRPC, Version: V10, Anonymous: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCredentialedLoopback: with a credential the configured name of the
// loopback is called, whichever name the card has.
func TestCredentialedLoopback(t *testing.T) {
	rules := testRules(t, "http://127.0.0.1:8080/", PolicyAuto)
	rules.credentialed = true
	got := chooseInterfaces(oneInterface("http://localhost:8080/a2a"), rules).usable
	if len(got) != 1 || got[0].URL != "http://127.0.0.1:8080/a2a" || got[0].Anonymous {
		t.Errorf("got %+v", got)
	}
}

// TestInterfaceChoice is P04 and checklist 9 and 10.
func TestInterfaceChoice(t *testing.T) {
	grpc := CardInterface{URL: "grpc.acme.test:443", Binding: "GRPC", Version: "1.0"}
	rpc := CardInterface{URL: "http://127.0.0.1:9101/rpc", Binding: "JSONRPC", Version: "1.0", Tenant: "acme"}
	rest := CardInterface{URL: "http://127.0.0.1:9101/rest", Binding: "HTTP+JSON", Version: "1.0"}
	old := CardInterface{URL: "http://127.0.0.1:9101/old", Binding: "JSONRPC", Version: "0.3"}
	custom := CardInterface{URL: "http://127.0.0.1:9101/ws", Binding: "https://acme.test/bindings/websocket", Version: "1.0"}
	with := func(entry CardInterface, binding, version string) CardInterface {
		entry.Binding, entry.Version = binding, version
		return entry
	}
	usable := func(entry CardInterface, binding Binding, version Version) Interface {
		return Interface{URL: entry.URL, Binding: binding, Version: version, Tenant: entry.Tenant}
	}
	tests := []struct {
		name     string
		card     []CardInterface
		protocol Version
		binding  Binding
		want     []Interface
		note     string
	}{
		{name: "P04", card: []CardInterface{grpc, rpc, rest, old},
			want: []Interface{usable(rpc, JSONRPC, V10), usable(rest, REST, V10), usable(old, JSONRPC, V03)}},
		{name: "P04 binding", card: []CardInterface{grpc, rpc, rest, old}, binding: REST, want: []Interface{usable(rest, REST, V10)}},
		{name: "P04 protocol", card: []CardInterface{grpc, rpc, rest, old}, protocol: V03, want: []Interface{usable(old, JSONRPC, V03)}},
		{name: "P04 entry 4 first", card: []CardInterface{old, grpc, rpc, rest},
			want: []Interface{usable(old, JSONRPC, V03), usable(rpc, JSONRPC, V10), usable(rest, REST, V10)}},
		{name: "lower case", card: []CardInterface{with(rpc, "jsonrpc", "1.0.1")}, want: []Interface{usable(rpc, JSONRPC, V10)}},
		{name: "other spellings", card: []CardInterface{with(rpc, "JSON-RPC 2.0", "v1.0"), with(rest, "http_json", "1"), with(old, "Rest", " 0.2.6 ")},
			want: []Interface{usable(rpc, JSONRPC, V10), usable(rest, REST, V10), usable(old, REST, V03)}},
		{name: "unreadable version", card: []CardInterface{with(rpc, "JSONRPC", "latest")}, want: []Interface{usable(rpc, JSONRPC, V10)}, note: `protocol version "latest" is not known: 1.0 is tried`},
		{name: "newer minor comes last", card: []CardInterface{with(rest, "HTTP+JSON", "1.7"), rpc}, want: []Interface{usable(rpc, JSONRPC, V10), usable(rest, REST, V10)}},
		{name: "newer minor alone", card: []CardInterface{with(rest, "HTTP+JSON", "1.7")}, want: []Interface{usable(rest, REST, V10)}, note: `protocol version "1.7" is not known: 1.0 is tried`},
		{name: "custom binding skipped", card: []CardInterface{custom, rest}, want: []Interface{usable(rest, REST, V10)}},
		{name: "nothing spoken", card: []CardInterface{grpc, custom, with(rpc, "JSONRPC", "2.0"), with(rpc, "JSONRPC", "0.1")}},
		{name: "forced protocol", card: []CardInterface{rpc}, protocol: V03, want: []Interface{usable(rpc, JSONRPC, V03)}, note: "the card offers no A2A 0.3: it is spoken because the configuration says so"},
		{name: "forced binding", card: []CardInterface{rpc}, binding: REST, want: []Interface{usable(rpc, REST, V10)}, note: "the card offers no HTTP+JSON: it is spoken because the configuration says so"},
		{name: "repeated", card: []CardInterface{rest, rest}, want: []Interface{usable(rest, REST, V10)}},
		{name: "no http url", card: []CardInterface{with(grpc, "JSONRPC", "1.0"), {URL: "ws://127.0.0.1:9101/", Binding: "JSONRPC", Version: "1.0"}, rest}, want: []Interface{usable(rest, REST, V10)},
			note: `interface "ws://127.0.0.1:9101/" is not an http(s) URL: ignored`},
		{name: "none at all", want: []Interface{{URL: "http://127.0.0.1:9101/", Binding: JSONRPC, Version: V10}}, note: "the card names no interface: the configured url is called with JSONRPC 1.0"},
		{name: "none at all, overridden", protocol: V03, binding: REST, want: []Interface{{URL: "http://127.0.0.1:9101/", Binding: REST, Version: V03}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rules := testRules(t, "http://127.0.0.1:9101/", PolicyAuto)
			rules.protocol, rules.binding = tt.protocol, tt.binding
			c := chooseInterfaces(&Card{Name: "x", Interfaces: tt.card}, rules)
			if diff := cmp.Diff(tt.want, c.usable); diff != "" {
				t.Error(diff)
			}
			if tt.note != "" && !slices.Contains(c.notes, tt.note) {
				t.Errorf("notes are %q, want %q", c.notes, tt.note)
			}
		})
	}
}

func TestNoInterfaceReason(t *testing.T) {
	card := parse(t, `{"name":"x","supportedInterfaces":[{"url":"grpc.acme.test:443","protocolBinding":"GRPC","protocolVersion":"1.0"},{"url":"wss://a.test","protocolBinding":"urn:ws","protocolVersion":"2.0"}]}`)
	c := chooseInterfaces(card, testRules(t, "http://127.0.0.1:9101/", PolicyAuto))
	want := "the agent offers only GRPC 1.0 at grpc.acme.test:443, urn:ws 2.0 at wss://a.test; the gateway speaks JSONRPC and HTTP+JSON of A2A 1.0 and 0.3"
	if len(c.usable) != 0 || c.reason() != want {
		t.Errorf("got  %s\nwant %s", c.reason(), want)
	}
}

// TestOperationPaths: the path of an operation is stripped by version and
// binding; a JSON-RPC agent may really live there, so its own URL follows.
func TestOperationPaths(t *testing.T) {
	tests := []struct {
		binding, version, url string
		want                  []string
	}{
		{"HTTP+JSON", "1.0", "/a/message:send", []string{"/a"}},
		{"HTTP+JSON", "1.0", "/a/v1/message:send", []string{"/a/v1"}},
		{"HTTP+JSON", "0.3", "/a/v1/message:stream", []string{"/a"}},
		{"JSONRPC", "0.3", "/agents/7/v1/message:stream", []string{"/agents/7", "/agents/7/v1/message:stream"}},
		{"JSONRPC", "1.0", "/message:send", []string{"/", "/message:send"}},
		{"JSONRPC", "1.0", "/x/message:sender", []string{"/x/message:sender"}},
	}
	for _, tt := range tests {
		card := &Card{Name: "x", Interfaces: []CardInterface{{URL: tt.url, Binding: tt.binding, Version: tt.version}}}
		var got []string
		for _, in := range chooseInterfaces(card, testRules(t, "http://a.test", PolicyAuto)).usable {
			got = append(got, strings.TrimPrefix(in.URL, "http://a.test"))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s %s %s: got %q, want %q", tt.binding, tt.version, tt.url, got, tt.want)
		}
	}
}

func TestAllowHostsErrors(t *testing.T) {
	for _, bad := range []string{"", "http://x.test", "a/b", "u@x", "*.x.test", "a b", "1:2:3"} {
		if _, err := parseAllowHosts([]string{"fine.test", bad}); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("allowHosts[1]: %q", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := parseAllowHosts([]string{"a.test", "a.test:1", "::1", "[::1]", "[::1]:2", "10.0.0.1", "10.0.0.1:3"}); err != nil {
		t.Error(err)
	}
}
