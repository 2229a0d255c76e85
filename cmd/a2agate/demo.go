package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"a2agate/config"
	"a2agate/fixtures"
)

func demoCommand(p process) *cobra.Command {
	var listen, agentListen string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run the gateway with a scripted agent, to try it",
		Long: `Runs the gateway and a scripted A2A agent in one process, and prints what to
paste into a client and a call to try. Nothing leaves this machine.`,
		Example: `  a2agate demo
  a2agate demo --listen 127.0.0.1:0`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return demo(c.Context(), p, listen, agentListen)
		},
	}
	c.Flags().StringVarP(&listen, "listen", "l", "127.0.0.1:8931", "host:port of the gateway; port 0 picks a free one")
	c.Flags().StringVar(&agentListen, "agent-listen", "127.0.0.1:0", "host:port of the agent")
	return c
}

func demo(ctx context.Context, p process, listen, agentListen string) error {
	ln, err := net.Listen("tcp", agentListen)
	if err != nil {
		return listenError("--agent-listen", agentListen, err)
	}
	cfg, err := config.FromURLs([]string{"demo=http://" + ln.Addr().String()})
	if err != nil {
		return err
	}
	cfg.Listen = listen
	if err := debugFromEnv(cfg, p.getenv); err != nil {
		return err
	}
	if err := (fileFlags{}).exposed(cfg.Listen, cfg); err != nil {
		return err
	}
	// The agent outlives the gateway's drain, so that calls in flight end well.
	agentCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	agentDone := make(chan error, 1)
	go func() { // waited for below
		agentDone <- serveAgent(agentCtx, ln, fixtures.New(fixtures.Options{}))
	}()
	err = serve(ctx, p, startup{cfg: cfg, extra: tryIt})
	stop()
	if agentErr := <-agentDone; err == nil {
		err = agentErr
	}
	return err
}

// shellWord is a word as a shell takes it.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > unicode.MaxASCII || strings.ContainsRune("_./:@%+=,-", r)
	}
	switch {
	case s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0:
		return s
	case runtime.GOOS == "windows":
		return `"` + s + `"` // there is no quote in a path
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// tryIt prints calls that work as they stand.
func tryIt(w io.Writer, program, url string) {
	fmt.Fprintf(w, `
try it
  %[2]s call --url %[1]s a2a_send_message '{"text":"task hello"}'

  curl -s %[1]s \
    -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H 'Mcp-Name: a2a_send_message' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a2a_send_message","arguments":{"agent":"demo","text":"task hello"},
         "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'

Send "help" as the text for everything the demo agent does. Ctrl-C stops.
`, url, shellWord(program))
}
