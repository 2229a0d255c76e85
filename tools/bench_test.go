package tools

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"a2agate/a2a"
	"a2agate/fixtures"
)

// BenchmarkSend is a whole call to a scripted agent over HTTP.
func BenchmarkSend(b *testing.B) {
	agent := fixtures.New(fixtures.Options{})
	server := httptest.NewServer(agent)
	real, err := a2a.NewAgent(a2a.AgentConfig{Alias: "demo", URL: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	follower := a2a.NewFollower(a2a.FollowerOptions{Alias: "demo", Upstream: real.Upstream})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = follower.Run(ctx) })
	defer func() {
		stop()
		running.Wait()
		real.Close()
		agent.Close()
		server.Close()
	}()
	s := stubs(b, nil, AgentEntry{Alias: "demo", Agent: real, Follow: follower})
	call := Call{Principal: "local", Tool: ToolSend, Arguments: json.RawMessage(`{"agent":"demo","text":"echo hi"}`)}
	for {
		out := s.Call(ctx, call, nil)
		if out.Result != nil && !out.Result.IsError {
			break
		}
		if out.Result == nil || !strings.Contains(see(b, *out.Result).first, "started") {
			b.Fatalf("%+v", out)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if out := s.Call(ctx, call, nil); out.Result == nil || out.Result.IsError {
			b.Fatalf("%+v", out)
		}
	}
}

// BenchmarkArguments is the part of a call before anything is sent.
func BenchmarkArguments(b *testing.B) {
	generic, err := genericHandlers()
	if err != nil {
		b.Fatal(err)
	}
	raw := json.RawMessage(`{"agent":"demo","text":"echo hi","timeoutSeconds":30}`)
	b.ReportAllocs()
	for b.Loop() {
		args, err := argumentsFromRaw(raw)
		if err != nil || args.check(generic[ToolSend].schema, nil) != "" {
			b.Fatal(err)
		}
	}
}
