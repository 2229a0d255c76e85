package a2a

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// interfaceRules are what an agent's configuration and the place of its card
// say about the choice of an interface.
type interfaceRules struct {
	// configured is the agent's own address; its origin is the only one that
	// credentials go to. call is the same as written.
	configured *url.URL
	call       string
	// fetched is where the card came from, for relative urls.
	fetched *url.URL
	policy  URLPolicy
	allow   allowHosts
	// protocol and binding override the card; "" leaves the choice to it.
	protocol Version
	binding  Binding
	// credentialed says that requests to the configured origin carry what must
	// not go elsewhere: a credential, or configured headers.
	credentialed bool
}

// choice is what became of a card's interfaces.
type choice struct {
	usable []Interface
	// blocked names the addresses on foreign origins, with the remedy.
	blocked []string
	// offered names every interface of the card, for the one-line reason why
	// none can be used.
	offered []string
	notes   []string
}

// spoken is an interface whose binding and version are known here.
type spoken struct {
	CardInterface
	binding Binding
	version Version
}

// chooseInterfaces makes the ordered list of interfaces to try: those of the
// card that we speak, in its order (specification 8.3.2), their addresses put
// right by the url policy, foreign origins out unless allowed.
func chooseInterfaces(card *Card, rules interfaceRules) choice {
	var c choice
	if len(card.Interfaces) == 0 {
		c.usable = []Interface{{URL: rules.call, Binding: cmp.Or(rules.binding, JSONRPC), Version: cmp.Or(rules.protocol, V10)}}
		c.note("the card names no interface: the configured url is called with %s %s", c.usable[0].Binding, c.usable[0].Version)
		return c
	}
	for _, s := range c.override(c.speak(card.Interfaces), rules) {
		c.place(s, rules)
	}
	return c
}

func (c *choice) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(c.notes) < maxNotes && !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// speak keeps the interfaces we speak. Those of a version that is only close
// to one of ours come last: the agent may understand us all the same.
func (c *choice) speak(list []CardInterface) []spoken {
	var exact, close []spoken
	for _, entry := range list {
		c.offer(entry)
		binding, ok := bindingFrom(entry.Binding)
		if !ok {
			continue
		}
		version, isExact, ok := versionFrom(entry.Version, entry.Legacy)
		if !ok {
			continue
		}
		s := spoken{CardInterface: entry, binding: binding, version: version}
		if isExact {
			exact = append(exact, s)
			continue
		}
		close = append(close, s)
	}
	if len(exact) == 0 && len(close) > 0 {
		c.note("protocol version %q is not known: %s is tried", plainLine(close[0].Version, 20), close[0].version)
	}
	return append(exact, close...)
}

func (c *choice) offer(entry CardInterface) {
	const most = 8
	if len(c.offered) < most {
		c.offered = append(c.offered, strings.Join(strings.Fields(plainLine(entry.Binding, 60)+" "+plainLine(entry.Version, 20)+" at "+showURL(entry.URL)), " "))
	}
}

// override applies the configured protocol and binding: they select among
// what the card offers, and where it offers nothing of the kind they win over
// what it says, since agents lie about their version and binding.
func (c *choice) override(list []spoken, rules interfaceRules) []spoken {
	if rules.protocol != "" && len(list) > 0 {
		matching := keep(list, func(s spoken) bool { return s.version == rules.protocol })
		if len(matching) == 0 {
			c.note("the card offers no A2A %s: it is spoken because the configuration says so", rules.protocol)
			matching = slices.Clone(list)
			for i := range matching {
				matching[i].version = rules.protocol
			}
		}
		list = matching
	}
	if rules.binding != "" && len(list) > 0 {
		matching := keep(list, func(s spoken) bool { return s.binding == rules.binding })
		if len(matching) == 0 {
			c.note("the card offers no %s: it is spoken because the configuration says so", rules.binding)
			matching = slices.Clone(list)
			for i := range matching {
				matching[i].binding = rules.binding
			}
		}
		list = matching
	}
	return list
}

func keep(list []spoken, ok func(spoken) bool) []spoken {
	var out []spoken
	for _, s := range list {
		if ok(s) {
			out = append(out, s)
		}
	}
	return out
}

// place adds the addresses of one interface to the usable ones.
func (c *choice) place(s spoken, rules interfaceRules) {
	absolute, problem := absoluteURL(strings.TrimSpace(s.URL), rules)
	if problem != "" {
		c.note("interface %q %s: ignored", showURL(s.URL), problem)
		return
	}
	for _, stripped := range stripOperation(absolute, s, rules) {
		if stripped != absolute {
			c.note("the card advertises %s, the path of an operation or of the card: %s is called", showURL(absolute), showURL(stripped))
		}
		for _, p := range rules.apply(stripped) {
			if p.blocked != "" {
				if !slices.Contains(c.blocked, p.blocked) {
					c.blocked = append(c.blocked, p.blocked)
				}
				continue
			}
			if p.note != "" {
				c.note("%s", p.note)
			}
			found := Interface{URL: p.url, Binding: s.binding, Version: s.version, Tenant: s.Tenant, Anonymous: p.anonymous}
			if !slices.Contains(c.usable, found) {
				c.usable = append(c.usable, found)
			}
		}
	}
}

// reason says in one line why nothing is usable.
func (c *choice) reason() string {
	if len(c.blocked) > 0 {
		return c.blocked[0]
	}
	if len(c.offered) == 0 {
		return "the card names no interface that can be used"
	}
	return "the agent offers only " + strings.Join(c.offered, ", ") + "; the gateway speaks JSONRPC and HTTP+JSON of A2A 1.0 and 0.3"
}

// bindingFrom reads a binding in any spelling: case and punctuation do not
// count.
func bindingFrom(s string) (Binding, bool) {
	folded := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return -1
	}, s)
	if strings.Contains(s, "://") || strings.HasPrefix(strings.ToLower(s), "urn:") {
		return "", false // a custom binding, named by a URI
	}
	switch folded {
	case "JSONRPC":
		return JSONRPC, true
	case "HTTPJSON", "REST", "HTTPJSONREST", "HTTPREST", "RESTJSON":
		return REST, true
	}
	return "", false
}

// versionFrom reads a protocol version; major and minor count. exact is false
// where the version is only close to one of ours or cannot be read. 0.1 is
// another protocol.
func versionFrom(s string, legacy bool) (version Version, exact, ok bool) {
	trimmed := strings.TrimLeft(strings.TrimSpace(s), "vV")
	parts := strings.Split(trimmed, ".")
	major, err := strconv.Atoi(parts[0])
	minor := 0
	if err == nil && len(parts) > 1 {
		minor, err = strconv.Atoi(parts[1])
	}
	switch {
	case err != nil && legacy:
		return V03, false, true
	case err != nil:
		return V10, false, true
	case major == 1:
		return V10, minor == 0, true
	case major == 0 && minor >= 2:
		return V03, minor <= 3, true
	}
	return "", false, false
}
