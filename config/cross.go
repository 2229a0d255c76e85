package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// What a configuration listens on unless it says otherwise.
const (
	defaultHost = "127.0.0.1"
	defaultPort = "8931"
)

// checkConfig looks at what one key says of another, and fills in what
// depends on others.
func checkConfig(c *checker, _ string, n *node, cfg *Config) {
	checkListen(c, n, cfg)
	if n.get("handleTtl") != nil && n.get("handleTtlMs") != nil {
		c.fail(n.get("handleTtlMs"), "handleTtlMs", "given beside handleTtl; remove one")
	}
	if n.get("handleTtl") == nil && n.get("handleTtlMs") == nil {
		cfg.HandleTTL = defaultHandleTTL
	}
	for i := range cfg.Agents {
		a := &cfg.Agents[i]
		if len(a.Expose) == 0 {
			a.Expose = slices.Clone(cfg.Expose)
		}
		if a.ToolPrefix == nil {
			a.ToolPrefix = cfg.ToolPrefix
		}
	}
	checkNames(c, n, cfg)
	checkOAuth(c, n, cfg)
	if cfg.PublicURL != "" {
		if u, err := url.Parse(cfg.PublicURL); err == nil && u.Host != "" {
			host := strings.ToLower(bracket(u.Hostname()))
			if !slices.Contains(cfg.AllowedHosts, host) {
				cfg.AllowedHosts = append(cfg.AllowedHosts, host)
			}
		}
	}
}

// checkListen makes listen of host and port.
func checkListen(c *checker, n *node, cfg *Config) {
	host, port := n.get("host"), n.get("port")
	for _, key := range []string{"host", "port"} {
		if v := n.get(key); v != nil && n.get("listen") != nil {
			c.fail(v, key, "given beside listen; put it into listen, or remove listen")
		}
	}
	if n.get("listen") != nil {
		return
	}
	h, p := defaultHost, defaultPort
	if host != nil && host.kind == isString {
		h = strings.TrimSuffix(strings.TrimPrefix(host.text, "["), "]")
	}
	if port != nil {
		if f, err := strconv.ParseFloat(string(port.number), 64); err == nil {
			p = strconv.FormatFloat(f, 'f', 0, 64)
		}
	}
	cfg.Listen = net.JoinHostPort(h, p)
}

// checkNames finds agents and profiles that are named and do not exist.
func checkNames(c *checker, n *node, cfg *Config) {
	var agents, profiles []string
	for _, a := range cfg.Agents {
		agents = append(agents, a.Alias)
	}
	for _, p := range cfg.Profiles {
		profiles = append(profiles, p.Name)
	}
	unknown := func(v *node, at, what string, known []string) {
		if v != nil && v.kind == isString && v.text != "" && !slices.Contains(known, v.text) {
			remedy := "none is configured"
			if len(known) > 0 {
				remedy = didYouMean(v.text, known)
			}
			c.fail(v, at, fmt.Sprintf("there is no %s %s; %s", what, quote(v.text), remedy))
		}
	}
	agentList := func(of *node, at string) {
		if v := of.get("agents"); v != nil {
			for i, e := range v.items {
				unknown(e, item(child(at, "agents"), i), "agent", agents)
			}
		}
	}
	if p := n.get("profiles"); p != nil {
		for _, m := range p.members {
			agentList(m.value, child("profiles", m.key))
		}
	}
	tokens := n.get("auth").get("tokens")
	if tokens == nil {
		return
	}
	for i, t := range tokens.items {
		at := item("auth.tokens", i)
		agentList(t, at)
		unknown(t.get("profile"), child(at, "profile"), "profile", profiles)
	}
	checkTokens(c, tokens, cfg.Auth.Tokens)
}

// checkTokens finds tokens that cannot be told apart.
func checkTokens(c *checker, n *node, tokens []Token) {
	names, digests := map[string]int{}, map[[32]byte]int{}
	for i, t := range tokens {
		at := item("auth.tokens", i)
		if first, twice := names[t.Name]; twice && t.Name != "" {
			c.fail(n.items[i].get("name"), child(at, "name"), fmt.Sprintf("%s is the name of %s too; one principal has one token", quote(t.Name), item("auth.tokens", first)))
		}
		names[t.Name] = i
		if t.SHA256 == ([32]byte{}) {
			continue // a problem of its own
		}
		if first, twice := digests[t.SHA256]; twice {
			c.fail(n.items[i], at, fmt.Sprintf("the same token as %s; give each its own", item("auth.tokens", first)))
		}
		digests[t.SHA256] = i
	}
}

func checkToken(c *checker, at string, n *node, _ *Token) {
	token, sum := n.get("token"), n.get("tokenSha256")
	switch {
	case token == nil && sum == nil:
		c.fail(n, at, "neither token nor tokenSha256 is given; give one")
	case token != nil && sum != nil:
		c.fail(sum, child(at, "tokenSha256"), "given beside token; remove one")
	}
}

// checkOAuth fills in the audience.
func checkOAuth(c *checker, n *node, cfg *Config) {
	oauth := n.get("auth").get("oauth")
	if oauth == nil || cfg.Auth.OAuth.Issuer == "" || oauth.get("audience") != nil {
		return
	}
	if cfg.PublicURL == "" {
		if n.get("publicUrl") == nil {
			c.fail(oauth, "auth.oauth.audience", "missing, and there is no publicUrl to take it from; give one of the two")
		}
		return
	}
	cfg.Auth.OAuth.Audience = cfg.PublicURL + "/mcp"
}

func checkStore(c *checker, at string, n *node, s *Store) {
	for _, k := range []struct {
		key string
		of  StoreType
	}{{"path", StoreFile}, {"url", StoreRedis}} {
		v := n.get(k.key)
		if v == nil && s.Type == k.of {
			c.fail(n, child(at, k.key), fmt.Sprintf("missing; a store of type %s needs it", k.of))
		}
		if v != nil && s.Type != k.of && s.Type != "" {
			c.fail(v, child(at, k.key), fmt.Sprintf("not for a store of type %s; write \"type\": %q, or remove the key", s.Type, k.of))
		}
	}
}

// checkAgent looks at one agent as a whole.
func checkAgent(c *checker, at string, n *node, a *Agent) {
	link, card, path := n.get("url"), n.get("cardUrl"), n.get("cardPath")
	switch {
	case link == nil && card == nil:
		c.fail(n, at, "neither url nor cardUrl is given; give the agent's url")
	case link != nil && card != nil:
		c.fail(card, child(at, "cardUrl"), "given beside url; remove one, or give the card's address as cardPath")
	case path != nil && card != nil:
		c.fail(path, child(at, "cardPath"), "given beside cardUrl; remove one")
	}
	for i := range a.Skills {
		if a.Skills[i].Tasks == "" {
			a.Skills[i].Tasks = a.Tasks
		}
	}
	checkCredential(c, at, n, a)
	checkHeaders(c, child(at, "headers"), n.get("headers"), a)
}

// checkCredential settles auth and its short form resource.
func checkCredential(c *checker, at string, n *node, a *Agent) {
	auth, resource := n.get("auth"), n.get("resource")
	if auth == nil {
		a.Auth.Type, a.Auth.OnCard = AuthNone, OnCardAuto
		if resource != nil {
			a.Auth.Type = AuthAzCLI
		}
		return
	}
	if resource == nil || a.Auth.Type == "" {
		return
	}
	if a.Auth.Type != AuthAzCLI {
		c.fail(resource, child(at, "resource"), fmt.Sprintf("only for auth of type az_cli, and auth is %s; remove one", a.Auth.Type))
	} else if auth.get("resource") != nil {
		c.fail(resource, child(at, "resource"), "given beside auth.resource; remove one")
	}
}

// checkHeaders finds headers that are one in HTTP, and a second credential.
func checkHeaders(c *checker, at string, n *node, a *Agent) {
	if n == nil {
		return
	}
	seen := map[string]string{}
	for _, m := range n.members {
		low := strings.ToLower(m.key)
		if first, twice := seen[low]; twice && first != m.key {
			c.failAt(m.start, child(at, m.key), fmt.Sprintf("the same header as %s; remove one", quote(first)))
		}
		seen[low] = m.key
		if low != "authorization" {
			continue
		}
		switch a.Auth.Type {
		case AuthBearer, AuthBasic, AuthOAuth2, AuthAzCLI:
			c.failAt(m.start, child(at, m.key), fmt.Sprintf("auth of type %s sets this header; remove one", a.Auth.Type))
		}
	}
}

// checkAuth looks at which fields a credential has.
func checkAuth(c *checker, at string, n *node, a *Auth) {
	if a.Type == "" {
		return // a problem of its own
	}
	for _, f := range credentialFields() {
		v := n.get(f.key)
		switch {
		case v == nil && f.of == a.Type && !f.optional:
			c.fail(n, child(at, f.key), fmt.Sprintf("missing; auth of type %s needs it", a.Type))
		case v != nil && f.of != a.Type:
			c.fail(v, child(at, f.key), fmt.Sprintf("not for auth of type %s, only of type %s; change the type, or remove the key", a.Type, f.of))
		}
	}
	if n.get("header") != nil && (n.get("in") != nil || n.get("name") != nil) {
		c.fail(n.get("header"), child(at, "header"), "given beside in or name, which say the same; remove one")
	}
}
