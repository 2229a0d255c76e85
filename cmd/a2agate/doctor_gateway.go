package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// foreignPage is the origin of a web page that no gateway lets in.
const foreignPage = "https://doctor.invalid"

// examineGateway looks at a running gateway as a client sees it.
func (f doctorFlags) examineGateway(ctx context.Context, p process, address string) diagnosis {
	c := newChart("gateway", hiddenQuery(address))
	token, _ := p.getenv("A2AGATE_TOKEN")
	g := gatewayProbe{timeout: f.timeout, url: address, token: token, client: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if g.reach(ctx, c) && g.name(ctx, c, f.host) {
		g.page(ctx, c, f.origin)
	}
	return c.d
}

// gatewayProbe makes requests to a gateway.
type gatewayProbe struct {
	timeout time.Duration
	url     string
	token   string
	client  *http.Client
}

// list asks for the tools, as a client of the current revision does.
func (g gatewayProbe) list(ctx context.Context, host, origin string) (status int, a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	req, err := mcpRequest(ctx, g.url, g.token, "tools/list", "", map[string]any{})
	if err != nil {
		return 0, a, err
	}
	if host != "" {
		req.Host = host
	}
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return 0, a, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
	if err == nil {
		err = json.Unmarshal(raw, &a)
	}
	return resp.StatusCode, a, err
}

// reach finds out whether a gateway is there at all.
func (g gatewayProbe) reach(ctx context.Context, c *chart) bool {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	at, err := url.Parse(g.url)
	if err != nil || at.Host == "" {
		c.found("gateway_not", "%s is not a URL", hiddenQuery(g.url))
		return false
	}
	health := url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/healthz"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, health.String(), nil)
	if err != nil {
		c.found("gateway_not", "%s is not a URL", hiddenQuery(g.url))
		return false
	}
	// Loopback is answered to under every setting: the name is the next step.
	req.Host = net.JoinHostPort("localhost", "0")
	resp, err := g.client.Do(req)
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		c.found("gateway_tls", "%s", tlsWords(certificate))
		return false
	case err != nil:
		c.found("gateway_down", "%s does not answer", at.Host)
		return false
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	var said struct {
		Status string `json:"status"`
	}
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(raw, &said) != nil || said.Status != "ok" {
		c.found("gateway_not", "GET %s answers %s", health.String(), resp.Status)
		return false
	}
	c.ok(stepReach, "%s answers", at.Host)
	return true
}

// name finds out whether the gateway answers to its name, and to the caller.
func (g gatewayProbe) name(ctx context.Context, c *chart, host string) bool {
	shown := host
	if at, err := url.Parse(g.url); err == nil && shown == "" {
		shown = at.Host
	}
	status, a, err := g.list(ctx, host, "")
	switch {
	case err != nil && status == 0:
		c.found("gateway_down", "it does not answer a call")
		return false
	case status == http.StatusMisdirectedRequest:
		c.found("host_refused", "the Host %q is refused", shown)
		return false
	}
	c.ok(stepHost, "it answers to %q", shown)
	switch {
	case status == http.StatusUnauthorized && g.token == "":
		c.found("token_missing", "calls without a token are refused")
		return false
	case status == http.StatusUnauthorized:
		c.found("token_refused", "the token of A2AGATE_TOKEN is refused")
		return false
	case g.token != "":
		c.ok(stepToken, "the token of A2AGATE_TOKEN is not refused")
	default:
		c.note(stepToken, "none is needed")
	}
	if (err != nil || a.Error == nil) && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed) {
		c.found("gateway_path", "POST %s answers HTTP %d: %s", hiddenQuery(g.url), status, g.meant())
		return false
	}
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err != nil || status != http.StatusOK || json.Unmarshal(a.Result, &list) != nil {
		c.found("tools_failed", "tools/list answers HTTP %d%s", status, said(a))
		return false
	}
	c.ok(stepTools, "%s", counted(len(list.Tools), "tool"))
	return true
}

// meant names the endpoint that the address may have been meant for.
func (g gatewayProbe) meant() string {
	at, err := url.Parse(g.url)
	if err != nil || at.Path == "/mcp" {
		return "there is no MCP"
	}
	return "did you mean " + (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/mcp"}).String() + "?"
}

func said(a answer) string {
	if a.Error == nil {
		return ""
	}
	return ": " + strings.TrimSpace(a.Error.Message)
}

// page finds out which web pages may call.
func (g gatewayProbe) page(ctx context.Context, c *chart, wanted string) {
	status, _, _ := g.list(ctx, "", foreignPage)
	if status == http.StatusForbidden {
		c.ok(stepOrigin, "foreign web pages are kept out")
	} else {
		c.found("origin_open", "a page of %s gets HTTP %d", foreignPage, status)
	}
	if wanted == "" {
		return
	}
	if status, _, _ = g.list(ctx, "", wanted); status == http.StatusForbidden {
		c.found("origin_refused", "the Origin %q is refused", wanted)
		return
	}
	c.ok(stepOrigin, "pages of %s may call", wanted)
}
