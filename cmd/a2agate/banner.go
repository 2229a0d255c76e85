package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"a2agate/config"
	"a2agate/internal/clientfile"
	"a2agate/translate"
)

// bannerPatience is how long the list of agents waits for their first state;
// the gateway answers all the while.
const bannerPatience = 1500 * time.Millisecond

// endpoint is where clients reach the running gateway.
func (g *gateway) endpoint(addr net.Addr) string {
	return gatewayURL(addr, *g.public.Load(), g.cfg.TLS)
}

// gatewayURL is where clients reach a gateway: at its public address, where it
// has one.
func gatewayURL(addr net.Addr, public string, secure config.TLS) string {
	if public != "" {
		return public + "/mcp"
	}
	scheme := urlScheme(secure)
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + "://" + addr.String() + "/mcp"
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/mcp"
}

func urlScheme(secure config.TLS) string {
	if secure.CertFile != "" {
		return "https"
	}
	return "http"
}

// settle waits a moment for the agents' first states. It reports whether the
// gateway still runs then.
func settle(ctx context.Context, f *fleet) bool {
	waitForStates(ctx, f.list(), bannerPatience)
	if ctx.Err() != nil {
		return false
	}
	f.changed() // the tools of an agent that is shown as ready are listed by then
	return true
}

// printBanner says what serve runs and how to connect to it.
func printBanner(w io.Writer, f *fleet, url string, cfg *config.Config) {
	fmt.Fprintln(w, "\nagents")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range f.list() {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", m.alias(), m.shown.Status().State, stateLine(m))
	}
	_ = table.Flush()
	command, block := claude(url, cfg)
	fmt.Fprintf(w, "\nClaude Code\n  %s\n", command)
	fmt.Fprintf(w, "\n.mcp.json\n%s\n", strings.TrimRight(block, "\n"))
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
	return fmt.Sprintf("%s, %s, A2A %s %s at %s", translate.CutRunes(oneLine(card.Name), 60), counted(len(card.Skills), "skill"), st.Version, st.Binding, st.URL)
}

// oneLine makes one line for a terminal of words that may be a stranger's:
// nothing in it moves the cursor or hides.
func oneLine(s string) string { return translate.CleanName(s) }

// claude is how Claude Code gets to know the gateway: the line that adds it,
// and what to paste into a project's file instead.
func claude(url string, cfg *config.Config) (command, block string) {
	client, _ := clientfile.Lookup("claude")
	srv := clientServer(url, cfg)
	entry, err := client.Entry(srv)
	if err != nil { // an address that no client takes
		return err.Error(), err.Error()
	}
	return client.Command(srv, ""), string(clientfile.Block(client.Format, entry))
}

// clientServer is what clients are told of the gateway.
func clientServer(url string, cfg *config.Config) clientfile.Server {
	srv := clientfile.Server{Name: "a2a", URL: url}
	if cfg.Auth.Enabled() {
		srv.TokenEnv = "A2AGATE_TOKEN"
	}
	return srv
}
