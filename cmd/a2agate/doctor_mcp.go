package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"a2agate/a2a"
)

// mcpAt returns the address at which an MCP server answers in an agent's
// place, "" where none does. The configured credential is not sent.
func (f doctorFlags) mcpAt(ctx context.Context, options a2a.AgentConfig) string {
	candidates, err := a2a.CardCandidates(options)
	if err != nil || len(candidates) == 0 {
		return ""
	}
	client := &http.Client{
		Timeout:       f.timeout,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, address := range []string{options.URL, candidates[len(candidates)-1]} {
		if address != "" && speaksMCP(ctx, client, address) {
			return hiddenQuery(address)
		}
	}
	return ""
}

// speaksMCP asks an address with GET, which no MCP endpoint of streamable HTTP
// takes from a stranger: it answers with an error in JSON-RPC. A gateway of
// ours names its endpoint at every other path.
func speaksMCP(ctx context.Context, client *http.Client, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var said struct {
		JSONRPC  string          `json:"jsonrpc"`
		Error    json.RawMessage `json:"error"`
		Endpoint string          `json:"endpoint"`
	}
	if err != nil || resp.StatusCode < 400 || json.Unmarshal(raw, &said) != nil {
		return false
	}
	return said.JSONRPC == "2.0" && said.Error != nil || said.Endpoint == "/mcp"
}
