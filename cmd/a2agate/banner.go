package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"a2agate/config"
	"a2agate/translate"
)

// bannerPatience is how long the list of agents waits for their first state;
// the gateway answers all the while.
const bannerPatience = 1500 * time.Millisecond

// gatewayURL is where clients reach the gateway.
func gatewayURL(addr net.Addr, cfg *config.Config) string {
	if cfg.PublicURL != "" {
		return cfg.PublicURL + "/mcp"
	}
	scheme := "http"
	if cfg.TLS.CertFile != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + "://" + addr.String() + "/mcp"
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/mcp"
}

// printBanner says what serve runs and how to connect to it.
func printBanner(ctx context.Context, w io.Writer, f *fleet, url string, cfg *config.Config) {
	waitForStates(ctx, f.list(), bannerPatience)
	if ctx.Err() != nil {
		return
	}
	f.changed() // the tools of an agent that is shown as ready are listed by then
	fmt.Fprintln(w, "\nagents")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range f.list() {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", m.alias(), m.shown.Status().State, stateLine(m))
	}
	_ = table.Flush()
	fmt.Fprintf(w, "\nClaude Code\n  %s\n", claudeCommand(url, cfg))
	fmt.Fprintf(w, "\n.mcp.json\n%s\n", mcpJSON(url, cfg))
	fmt.Fprintf(w, "\nstatus page\n  %s\n", strings.TrimSuffix(url, "mcp"))
}

// stateLine describes a ready agent, or says why it is not.
func stateLine(m *member) string {
	st := m.shown.Status()
	if st.Reason != "" {
		return st.Reason
	}
	card := m.shown.Card()
	if card == nil {
		return ""
	}
	return fmt.Sprintf("%s, %d skills, A2A %s %s at %s", translate.CutRunes(oneLine(card.Name), 60), len(card.Skills), st.Version, st.Binding, st.URL)
}

// oneLine makes one line for a terminal of words that may be a stranger's:
// nothing in it moves the cursor or hides.
func oneLine(s string) string { return translate.CleanName(s) }

// claudeCommand adds the gateway to Claude Code.
func claudeCommand(url string, cfg *config.Config) string {
	command := "claude mcp add --transport http a2a " + url
	if cfg.Auth.Enabled() {
		command += ` --header "Authorization: Bearer $A2AGATE_TOKEN"`
	}
	return command
}

// mcpJSON is the entry for .mcp.json.
func mcpJSON(url string, cfg *config.Config) string {
	type entry struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
		// Timeout is in milliseconds; agents take their time.
		Timeout int `json:"timeout"`
	}
	e := entry{Type: "http", URL: url, Timeout: 600000}
	if cfg.Auth.Enabled() {
		e.Headers = map[string]string{"Authorization": "Bearer ${A2AGATE_TOKEN}"}
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"a2a": e}}, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}
