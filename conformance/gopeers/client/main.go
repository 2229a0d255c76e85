// Command client drives the gateway with mcp-go's own client: the four tools
// against each agent.
//
//	client URL ALIAS…
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: client URL ALIAS…")
		os.Exit(2)
	}
	r, err := drive(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
	fmt.Println(string(raw))
	for _, said := range r.Agents {
		if said != ok {
			os.Exit(1)
		}
	}
}

// ok is what a report says of an agent with which all went well.
const ok = "ok"

// report is what interop.mjs reads: what went wrong with each agent.
type report struct {
	Client string            `json:"client"`
	Calls  int               `json:"calls"`
	Agents map[string]string `json:"agents"`
}

// session is one connected client and how many calls it has made.
type session struct {
	ctx   context.Context
	c     *client.Client
	calls int
}

// reply is what the steps look at in a result.
type reply struct {
	Text    string
	IsError bool
	Status  string `json:"status"`
	Task    string `json:"taskHandle"`
	Name    string `json:"name"`
}

func drive(url string, agents []string) (report, error) {
	r := report{Client: "mcp-go", Agents: map[string]string{}}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := client.NewStreamableHttpClient(url)
	if err != nil {
		return r, err
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		return r, err
	}
	var init mcp.InitializeRequest
	init.Params.ProtocolVersion = "2025-11-25"
	init.Params.ClientInfo = mcp.Implementation{Name: "conformance-mcp-go", Version: "1.0.0"}
	if _, err := c.Initialize(ctx, init); err != nil {
		return r, fmt.Errorf("initialize: %w", err)
	}
	tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return r, fmt.Errorf("tools/list: %w", err)
	}
	if len(tools.Tools) < 4 {
		return r, fmt.Errorf("tools/list has %d tools, want at least 4", len(tools.Tools))
	}
	s := &session{ctx: ctx, c: c}
	for _, agent := range agents {
		r.Agents[agent] = ok
		if err := s.agent(agent); err != nil {
			r.Agents[agent] = err.Error()
		}
	}
	r.Calls = s.calls
	return r, nil
}

func (s *session) agent(agent string) error {
	card, err := s.call("a2a_discover", map[string]any{"agent": agent})
	if err != nil || card.Name == "" {
		return fmt.Errorf("discover: no card name (%v)", err)
	}
	echo, err := s.call("a2a_send_message", map[string]any{"agent": agent, "text": "echo hello there"})
	if err := check(echo, err, "completed", "hello there"); err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	task, err := s.call("a2a_send_message", map[string]any{"agent": agent, "text": "task abc"})
	if err := check(task, err, "completed", "cba"); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	got, err := s.call("a2a_get_task", map[string]any{"taskHandle": task.Task})
	if err := check(got, err, "completed", "cba"); err != nil {
		return fmt.Errorf("get: %w", err)
	}
	slow, err := s.call("a2a_send_message", map[string]any{"agent": agent, "text": "slow 30", "blocking": false})
	if err := check(slow, err, "working", ""); err != nil {
		return fmt.Errorf("slow: %w", err)
	}
	cancelled, err := s.call("a2a_cancel_task", map[string]any{"taskHandle": slow.Task})
	if err := check(cancelled, err, "cancelled", ""); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	return nil
}

func check(r reply, err error, status, text string) error {
	switch {
	case err != nil:
		return err
	case r.Status != status:
		return fmt.Errorf("status %q, want %q: %s", r.Status, status, r.Text)
	case !strings.Contains(r.Text, text):
		return fmt.Errorf("text %q, want %q in it", r.Text, text)
	}
	return nil
}

func (s *session) call(name string, args map[string]any) (reply, error) {
	s.calls++
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = name, args
	result, err := s.c.CallTool(s.ctx, req)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", name, err)
	}
	var r reply
	raw, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	r.IsError = result.IsError
	for _, c := range result.Content {
		if t, ok := c.(mcp.TextContent); ok {
			r.Text += t.Text + "\n"
		}
	}
	return r, err
}
