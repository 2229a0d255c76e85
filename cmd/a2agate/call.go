package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"a2agate/translate"
)

// callFlags are what call can be told.
type callFlags struct {
	url     string
	token   string
	timeout time.Duration
	raw     bool

	// task is the task handle among the arguments, "" for none; sends says
	// that the tool sends a message.
	task  string
	sends bool
}

// maxEvent bounds one event that call reads, 64 MiB.
const maxEvent = 64 << 20

func callCommand(p process) *cobra.Command {
	var flags callFlags
	c := &cobra.Command{
		Use:   "call TOOL [JSON]",
		Short: "Call a tool of a running gateway",
		Long: `Calls a tool of a running gateway as an MCP client would, and prints the text
of the answer. Progress goes to stderr.

The exit code is 0 for an answer, 5 when the tool says that it failed, 1 when
there is no answer (no gateway, a refusal, the time is up), 2 when the command
line is wrong.

The token of a protected gateway is read from A2AGATE_TOKEN, the certificate
of an authority of your own from SSL_CERT_FILE.`,
		Example: `  a2agate call a2a_discover
  a2agate call a2a_send_message '{"text":"echo hello"}'
  a2agate call a2a_send_message '{"agent":"billing","text":"Who sent 4711?"}' --json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usageError{fmt.Errorf("call takes a tool and its arguments as one JSON object; see '%s --help'", c.CommandPath())}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			arguments := "{}"
			if len(args) == 2 {
				arguments = args[1]
			}
			var object map[string]json.RawMessage
			if err := json.Unmarshal([]byte(arguments), &object); err != nil || object == nil {
				return usageError{fmt.Errorf("arguments %q are not a JSON object such as '{\"agent\":\"demo\",\"text\":\"echo hello\"}'", arguments)}
			}
			if err := checkEndpoint("--url", flags.url); err != nil {
				return err
			}
			flags.token, _ = p.getenv("A2AGATE_TOKEN")
			_ = json.Unmarshal(object["taskHandle"], &flags.task) // none, where it is no text
			flags.sends = args[0] == "a2a_send_message"
			ctx, cancel := context.WithTimeout(c.Context(), flags.timeout)
			defer cancel()
			return call(ctx, p, flags, args[0], json.RawMessage(arguments))
		},
	}
	c.Flags().StringVarP(&flags.url, "url", "u", "http://127.0.0.1:8931/mcp", "the gateway")
	c.Flags().DurationVar(&flags.timeout, "timeout", 10*time.Minute, "how long to wait at most")
	c.Flags().BoolVar(&flags.raw, "json", false, "print the whole result as JSON")
	return c
}

// answer is what call reads of a JSON-RPC message.
type answer struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Params struct {
		Message string `json:"message"`
	} `json:"params"`
}

// mcpRequest is one request of the current revision to a gateway. name is what
// the method is about, "" for nothing.
func mcpRequest(ctx context.Context, url, token, method, name string, params map[string]any) (*http.Request, error) {
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    string(translate.Rev20260728),
		"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "a2agate", "version": version},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"progressToken": 1,
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for header, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": string(translate.Rev20260728), "Mcp-Method": method, "Mcp-Name": name,
	} {
		if value != "" {
			req.Header.Set(header, value)
		}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

func call(ctx context.Context, p process, flags callFlags, tool string, arguments json.RawMessage) error {
	req, err := mcpRequest(ctx, flags.url, flags.token, "tools/call", tool, map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return usageError{fmt.Errorf("--url %q: %w", flags.url, err)}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return notReached(ctx, flags, err)
	}
	defer resp.Body.Close()
	a, err := readAnswer(resp, p.err)
	switch {
	case ctx.Err() != nil && a.Result == nil:
		return outOfTime(ctx, flags)
	case err != nil:
		return err
	}
	err = printAnswer(p.out, a, flags.raw)
	if resp.StatusCode == http.StatusUnauthorized && err != nil {
		return refusedToken(flags, err)
	}
	return err
}

// readAnswer reads the JSON-RPC answer, showing progress as it comes.
func readAnswer(resp *http.Response, progress io.Writer) (answer, error) {
	var a answer
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
		if err == nil {
			err = json.Unmarshal(raw, &a)
		}
		if err != nil || a.Result == nil && a.Error == nil {
			return a, notAnEndpoint(resp, raw)
		}
		return a, nil
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		a = answer{}
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			return a, fmt.Errorf("the gateway sent a broken event: %w", err)
		}
		if a.Method == "notifications/progress" {
			if !beginning(a.Params.Message) {
				fmt.Fprintln(progress, a.Params.Message)
			}
			continue
		}
		if a.Result != nil || a.Error != nil {
			return a, nil
		}
	}
	return a, errors.Join(errors.New("the stream ended without an answer"), lines.Err())
}

// beginning reports whether a line of progress says only that the gateway has
// begun to wait: whether one comes before the agent's first is chance.
func beginning(message string) bool {
	return message == "working, 0s" || strings.HasSuffix(message, ": working, 0s")
}

func printAnswer(w io.Writer, a answer, raw bool) error {
	if a.Error != nil {
		return fmt.Errorf("%s (JSON-RPC error %d)", a.Error.Message, a.Error.Code)
	}
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			MIMEType string `json:"mimeType"`
			URI      string `json:"uri"`
		} `json:"content"`
	}
	if err := json.Unmarshal(a.Result, &result); err != nil {
		return fmt.Errorf("the result cannot be read: %w", err)
	}
	if raw {
		var out bytes.Buffer
		if err := json.Indent(&out, a.Result, "", "  "); err != nil {
			return err
		}
		fmt.Fprintln(w, out.String())
	} else {
		for _, c := range result.Content {
			switch c.Type {
			case "text":
				fmt.Fprintln(w, c.Text)
			case "resource_link":
				fmt.Fprintln(w, c.URI)
			default:
				fmt.Fprintf(w, "[%s %s]\n", c.Type, c.MIMEType)
			}
		}
	}
	if result.IsError {
		return exitError(5)
	}
	return nil
}
