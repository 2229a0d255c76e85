package main

import (
	"net/http"

	"a2agate/a2a"
	"a2agate/a2a/credential"
	"a2agate/config"
)

// speaks are the card extensions that the gateway understands.
var speaks = []string{"urn:a2agate:ext:tools:1", "urn:a2agate:ext:ask:1"}

// newMember makes an agent; before is the one whose place it takes, or nil.
func (f *fleet) newMember(r recipe, before *member) (*member, error) {
	cfg, err := agentConfig(r.agent)
	if err != nil {
		return nil, err
	}
	alias := r.agent.Alias
	cfg.Wrap = func(next http.RoundTripper) http.RoundTripper { return f.observed.around(alias, next) }
	cfg.Limits, cfg.Start = r.limits, f.observed.start
	cfg.OnChange, cfg.Logger = f.changed, f.observed.agents
	agent, err := a2a.NewAgent(cfg)
	if err != nil {
		return nil, err
	}
	follower := a2a.NewFollower(a2a.FollowerOptions{
		Alias: alias, Upstream: agent.Upstream, MaxConcurrent: r.agent.MaxConcurrent, TaskBytes: r.limits.StreamBytes,
		Logger: f.observed.agents, Observe: f.observed.follow(alias),
	})
	return &member{recipe: r, agent: agent, follower: follower, shown: newShownAgent(agent, r.agent, f.pins, before)}, nil
}

// agentConfig is what an agent's configuration is to the A2A client.
func agentConfig(cfg config.Agent) (a2a.AgentConfig, error) {
	auth, err := authorizer(cfg.Auth)
	if err != nil {
		return a2a.AgentConfig{}, err
	}
	headers := http.Header{}
	for _, h := range cfg.Headers {
		headers.Add(h.Name, h.Value.Reveal())
	}
	return a2a.AgentConfig{
		Alias: cfg.Alias, URL: cfg.URL, CardURL: cfg.CardURL, CardPath: cfg.CardPath,
		Protocol: a2a.Version(unlessAuto(string(cfg.Protocol))), Binding: a2a.Binding(unlessAuto(string(cfg.Binding))),
		URLPolicy: a2a.URLPolicy(cfg.URLPolicy), AllowHosts: cfg.AllowHosts, Headers: headers,
		Authorizer: auth, AuthOnCard: a2a.AuthOnCard(cfg.Auth.OnCard), Extensions: speaks,
		EmptyStreamFallback: cfg.EmptyStreamFallback, MaxConcurrent: cfg.MaxConcurrent,
	}, nil
}

func unlessAuto(s string) string {
	if s == "auto" {
		return ""
	}
	return s
}

// authorizer makes the credential of an agent, nil for none.
func authorizer(a config.Auth) (a2a.Authorizer, error) {
	if a.Type == "" || a.Type == config.AuthNone {
		return nil, nil //nolint:nilnil // no credential is not an error
	}
	auth, err := credential.FromConfig(credential.Spec{
		Type:  string(a.Type),
		Token: secret(a.Token), Key: secret(a.Key), Header: a.Header, In: a.In, Name: a.Name,
		Username: a.Username, Password: secret(a.Password),
		ClientID: a.ClientID, ClientSecret: secret(a.ClientSecret), TokenURL: a.TokenURL, Scopes: a.Scopes, AuthStyle: a.AuthStyle,
		Resource: a.Resource,
		CertFile: a.CertFile, KeyFile: a.KeyFile, CAFile: a.CAFile, ServerName: a.ServerName,
	})
	if err != nil {
		return nil, err
	}
	return auth, nil
}

func secret(s config.Secret) credential.Secret { return credential.NewSecret(s.Reveal()) }
