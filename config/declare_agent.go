package config

import (
	"encoding/json"
	"strings"
	"time"
)

func agents() dictionary[Agent] {
	return dictionary[Agent]{
		elem: agentShape(), name: func(a *Agent) *string { return &a.Alias },
		pattern: aliasPattern, noun: "an alias", rule: aliasRule, valid: isAlias,
		min: 1, minRule: `there is no agent; write "name": {"url": "https://…"}`,
		form: `{"name": {"url": "https://…"}}, each agent under its alias`,
	}
}

func agentShape() object[Agent] {
	return object[Agent]{
		check: checkAgent,
		extra: func(s *schema) {
			s.OneOf = []*schema{{Required: []string{"url"}}, {Required: []string{"cardUrl"}}}
			s.AllOf = exclusive("cardUrl", "cardPath")
		},
		properties: []property[Agent]{
			prop("url", expanded(urlRule, urlPattern), func(a *Agent) *string { return &a.URL },
				"The agent's address. Its card is looked for below it, then at its origin.").like(`"https://agents.example.com/billing"`),
			prop("cardUrl", expanded(urlRule, urlPattern), func(a *Agent) *string { return &a.CardURL },
				"The address of the agent's card, instead of url.").like(`"https://agents.example.com/billing/.well-known/agent-card.json"`),
			prop("cardPath", expanded(cardPathRule, ""), func(a *Agent) *string { return &a.CardPath },
				"Where the card is below url; or its whole address.").like(`".well-known/agent-card.json"`),
			prop("enabled", boolean{}, func(a *Agent) *bool { return &a.Enabled },
				"false leaves the agent out.").byDefault("true"),
			prop("protocol", choice[Protocol]{ProtocolAuto, Protocol10, Protocol03}, func(a *Agent) *Protocol { return &a.Protocol },
				"The A2A version to speak; auto goes by the card.").byDefault(`"auto"`),
			prop("binding", choice[Binding]{BindingAuto, BindingJSONRPC, BindingREST}, func(a *Agent) *Binding { return &a.Binding },
				"The A2A binding to use; auto goes by the card.").byDefault(`"auto"`),
			prop("urlPolicy", choice[URLPolicy]{URLPolicyAuto, URLPolicyCard, URLPolicyConfigured}, func(a *Agent) *URLPolicy { return &a.URLPolicy },
				"How far the card's addresses are believed: auto corrects those that cannot be right, card takes them as they are, configured keeps the path only.").byDefault(`"auto"`),
			prop("allowHosts", list[string]{elem: text{check: hostPortRule, change: strings.ToLower}, unique: same[string]}, func(a *Agent) *[]string { return &a.AllowHosts },
				"Other hosts that may be called for this agent, without credentials: host or host:port.").like(`["files.example.com"]`),
			prop("headers", headers(), func(a *Agent) *[]Header { return &a.Headers },
				"Headers to send to the agent.").like(`{"X-Team": "${env:TEAM}"}`),
			prop("auth", authShape(), func(a *Agent) *Auth { return &a.Auth },
				"The agent's credential.").like(`{"type": "bearer", "token": "${env:BILLING_TOKEN}"}`),
			prop("resource", expanded(resourceRule, azPattern), func(a *Agent) *string { return &a.Auth.Resource },
				`Short for "auth": {"type": "az_cli", "resource": …}.`).like(`"api://1234"`),
			prop("expose", exposures(), func(a *Agent) *[]Exposure { return &a.Expose },
				"How this agent is shown, in place of the expose of the whole file."),
			prop("toolPrefix", optional[string]{prefixText()}, func(a *Agent) **string { return &a.ToolPrefix },
				"What the names of this agent's skill tools begin with, in place of the toolPrefix of the whole file."),
			prop("timeoutSeconds", count{time.Second, 1, int64(longest / time.Second)}, func(a *Agent) *time.Duration { return &a.Timeout },
				"How long a call waits for this agent, in place of wait."),
			prop("tasks", taskPolicies(), func(a *Agent) *TaskPolicy { return &a.Tasks },
				"When calls become MCP tasks: auto (when the agent's work takes longer than wait.taskGrace), never, or required (at once).").byDefault(`"auto"`),
			prop("skills", skills(), func(a *Agent) *[]Skill { return &a.Skills },
				"What to know of single skills, by their id, beyond the card."),
			prop("emptyStreamFallback", boolean{}, func(a *Agent) *bool { return &a.EmptyStreamFallback },
				"Send a message again, with the same id, when the agent's stream brought no event. An agent that ignores message ids then runs it twice.").byDefault("true"),
			prop("maxConcurrent", integer[int]{0, 100_000}, func(a *Agent) *int { return &a.MaxConcurrent },
				"How many requests may be in flight to this agent; 0 is no bound.").byDefault("0"),
			prop("pin", boolean{}, func(a *Agent) *bool { return &a.Pin },
				"Hold back what a changed card says to a model (its name, description, skills and their schemas) until it is accepted with a2agate accept. Where and how the agent is called follows the card at once.").byDefault("false"),
		},
	}
}

func taskPolicies() choice[TaskPolicy] {
	return choice[TaskPolicy]{TasksAuto, TasksNever, TasksRequired}
}

func headers() dictionary[Header] {
	return dictionary[Header]{
		elem: part[Header, Secret]{secret(headerValueRule), func(h *Header) *Secret { return &h.Value }},
		name: func(h *Header) *string { return &h.Name }, pattern: `^[!#$%&'*+.^_|~0-9A-Za-z` + "`" + `-]+$`,
		noun: "a header to set", rule: "use the name of an HTTP header that the gateway does not set itself",
		valid: func(s string) bool { return headerNameRule(s) == "" },
	}
}

func skills() dictionary[Skill] {
	return dictionary[Skill]{
		name: func(s *Skill) *string { return &s.ID }, pattern: `^[\s\S]`,
		noun: "the id of a skill", rule: "write it as the card does", valid: func(s string) bool { return s != "" },
		elem: object[Skill]{properties: []property[Skill]{
			prop("inputSchema", raw{inputSchemaRule}, func(s *Skill) *json.RawMessage { return &s.InputSchema },
				"The JSON Schema of the skill's arguments, an object, in place of the card's.").
				like(`{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}`),
			prop("tasks", taskPolicies(), func(s *Skill) *TaskPolicy { return &s.Tasks },
				"As the agent's tasks, for this skill."),
		}},
	}
}

// credentialField is a field of auth with the one type that it belongs to.
type credentialField struct {
	property[Auth]
	of       AuthType
	optional bool
}

func credentialFields() []credentialField {
	str := func(field func(*Auth) *string) func(*Auth) *string { return field }
	return []credentialField{
		{prop("token", secret(headerValueRule), func(a *Auth) *Secret { return &a.Token }, "bearer: the token."), AuthBearer, false},
		{prop("key", secret(headerValueRule), func(a *Auth) *Secret { return &a.Key }, "apikey: the key."), AuthAPIKey, false},
		{prop("header", expanded(headerNameRule, ""), str(func(a *Auth) *string { return &a.Header }), "apikey: the header that carries the key. Default: what the card says, else X-API-Key."), AuthAPIKey, true},
		{prop("in", choice[string]{"header", "query", "cookie"}, str(func(a *Auth) *string { return &a.In }), "apikey: where the key goes, with name, instead of header."), AuthAPIKey, true},
		{prop("name", expanded(bearerRule, ""), str(func(a *Auth) *string { return &a.Name }), "apikey: the name of the header, query parameter or cookie."), AuthAPIKey, true},
		{prop("username", expanded(userRule, ""), str(func(a *Auth) *string { return &a.Username }), "basic: the user."), AuthBasic, false},
		{prop("password", secret(nil), func(a *Auth) *Secret { return &a.Password }, "basic: the password."), AuthBasic, false},
		{prop("clientId", expanded(nil, ""), str(func(a *Auth) *string { return &a.ClientID }), "oauth2: the client's id, for the client credentials grant."), AuthOAuth2, false},
		{prop("clientSecret", secret(nil), func(a *Auth) *Secret { return &a.ClientSecret }, "oauth2: the client's secret."), AuthOAuth2, false},
		{prop("tokenUrl", expanded(tokenURLRule, urlPattern+`|^fromCard$`), str(func(a *Auth) *string { return &a.TokenURL }), "oauth2: the token endpoint; fromCard lets the agent's card name it, which trusts the card with the secret."), AuthOAuth2, false},
		{prop("scopes", list[string]{elem: expanded(scopeRule, ""), unique: same[string]}, func(a *Auth) *[]string { return &a.Scopes }, "oauth2: the scopes to ask for."), AuthOAuth2, true},
		{prop("authStyle", choice[string]{"header", "params"}, str(func(a *Auth) *string { return &a.AuthStyle }), "oauth2: how the secret is sent. Default: found out."), AuthOAuth2, true},
		{prop("resource", expanded(resourceRule, azPattern), str(func(a *Auth) *string { return &a.Resource }), "az_cli: the resource to ask a token for. Default: from the card's scopes."), AuthAzCLI, true},
		{prop("certFile", fileName(), str(func(a *Auth) *string { return &a.CertFile }), "mtls: the client's certificate, PEM. Relative to this file."), AuthMTLS, false},
		{prop("keyFile", fileName(), str(func(a *Auth) *string { return &a.KeyFile }), "mtls: its private key, PEM. Relative to this file."), AuthMTLS, false},
		{prop("caFile", fileName(), str(func(a *Auth) *string { return &a.CAFile }), "mtls: the authorities that the agent's certificate is checked against, PEM. Default: the system's."), AuthMTLS, true},
		{prop("serverName", expanded(hostRule, ""), str(func(a *Auth) *string { return &a.ServerName }), "mtls: the name in the agent's certificate. Default: the host of the URL."), AuthMTLS, true},
	}
}

func authTypes() choice[AuthType] {
	return choice[AuthType]{AuthNone, AuthBearer, AuthAPIKey, AuthBasic, AuthOAuth2, AuthAzCLI, AuthMTLS}
}

func authShape() object[Auth] {
	fields := credentialFields()
	properties := []property[Auth]{
		prop("type", authTypes(), func(a *Auth) *AuthType { return &a.Type },
			"The sort of credential. Each of the other keys belongs to one sort, named before the colon.").
			needed("write one of " + strings.Join(authTypes().words(), ", ")),
	}
	for _, f := range fields {
		properties = append(properties, f.property)
	}
	properties = append(properties, prop("onCard", choice[AuthOnCard]{OnCardAuto, OnCardAlways, OnCardNever}, func(a *Auth) *AuthOnCard { return &a.OnCard },
		"Whether the credential goes with the request for the card: auto sends it after a refusal only.").byDefault(`"auto"`))
	return object[Auth]{
		properties: properties,
		check:      checkAuth,
		extra: func(s *schema) {
			for _, t := range authTypes() {
				needs, allowed := []string(nil), []string{"type", "onCard"}
				for _, f := range fields {
					if f.of == t {
						allowed = append(allowed, f.key)
						if !f.optional {
							needs = append(needs, f.key)
						}
					}
				}
				s.AllOf = append(s.AllOf, when("type", string(t), &schema{Required: needs, PropertyNames: &schema{Enum: allowed}}))
			}
			s.AllOf = append(s.AllOf, append(exclusive("header", "in"), exclusive("header", "name")...)...)
		},
	}
}
