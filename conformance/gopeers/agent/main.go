// Command agent is an A2A agent on a2a-go, the third opinion on the A2A
// side: the same first words as the project's own fixture agent, on four
// bindings. It is a module of its own, so that gRPC and the rest of a2a-go's
// needs never enter the product's go.sum.
//
//	agent [-interface 1.0-rpc|1.0-rest|0.3-rpc|0.3-rest] [-plain]
//
// It listens on a free loopback port and prints its base URL as one line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

func main() {
	only := flag.String("interface", "", "offer one interface alone: 1.0-rpc, 1.0-rest, 0.3-rpc or 0.3-rest")
	plain := flag.Bool("plain", false, "say in the card that the agent cannot stream")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only, !*plain); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, streaming bool) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	base := "http://" + ln.Addr().String()
	names := []string{"1.0-rpc", "1.0-rest", "0.3-rpc", "0.3-rest"}
	all := map[string]*a2a.AgentInterface{
		"1.0-rpc":  {URL: base + "/rpc", ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: "1.0"},
		"1.0-rest": {URL: base + "/rest", ProtocolBinding: a2a.TransportProtocolHTTPJSON, ProtocolVersion: "1.0"},
		"0.3-rpc":  {URL: base + "/old", ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: "0.3"},
		"0.3-rest": {URL: base + "/oldrest", ProtocolBinding: a2a.TransportProtocolHTTPJSON, ProtocolVersion: "0.3"},
	}
	var offered []*a2a.AgentInterface
	for _, name := range names {
		if only == "" || only == name {
			offered = append(offered, all[name])
		}
	}
	if len(offered) == 0 {
		return fmt.Errorf("-interface %q: one of %s", only, strings.Join(names, ", "))
	}
	card := &a2a.AgentCard{
		Name: "Go agent", Description: "A scripted agent on a2a-go.", Version: "1.0.0",
		SupportedInterfaces: offered,
		DefaultInputModes:   []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Capabilities: a2a.AgentCapabilities{Streaming: streaming},
		Skills: []a2a.AgentSkill{{ID: "echo", Name: "Echo", Description: "Says what it was told.",
			Tags: []string{"demo"}, Examples: []string{"echo hello"}}},
	}
	handler := a2asrv.NewHandler(&executor{})
	mux := http.NewServeMux()
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(handler))
	mux.Handle("/rest/", http.StripPrefix("/rest", a2asrv.NewRESTHandler(handler)))
	mux.Handle("/old", a2av0.NewJSONRPCHandler(handler))
	mux.Handle("/oldrest/", http.StripPrefix("/oldrest", a2av0.NewRESTHandler(handler)))
	if strings.HasPrefix(only, "0.3") {
		mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewAgentCardHandler(a2av0.NewStaticAgentCardProducer(card)))
	} else {
		mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	fmt.Println(base)
	done := make(chan error, 1)
	go func() { // run waits for it below
		<-ctx.Done()
		done <- srv.Close()
	}()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

// executor does what the first word of a message says.
type executor struct{}

func (executor) Execute(ctx context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		var words string
		for _, p := range ec.Message.Parts {
			words += p.Text()
		}
		command, rest, _ := strings.Cut(strings.TrimSpace(words), " ")
		say := func(s string) *a2a.Message {
			return a2a.NewMessageForTask(a2a.MessageRoleAgent, ec, a2a.NewTextPart(s))
		}
		emit := func(events ...a2a.Event) bool {
			for _, e := range events {
				if !yield(e, nil) {
					return false
				}
			}
			return true
		}
		status := func(s a2a.TaskState, m *a2a.Message) a2a.Event { return a2a.NewStatusUpdateEvent(ec, s, m) }

		if ec.StoredTask != nil && ec.StoredTask.Status.State == a2a.TaskStateInputRequired {
			emit(a2a.NewArtifactEvent(ec, a2a.NewTextPart("answer = "+words)), status(a2a.TaskStateCompleted, nil))
			return
		}
		submitted := a2a.NewSubmittedTask(ec, ec.Message)
		switch strings.ToLower(strings.TrimSuffix(command, ":")) {
		case "task":
			emit(submitted, status(a2a.TaskStateWorking, say("Working on it.")),
				a2a.NewArtifactEvent(ec, a2a.NewTextPart(reverse(rest))), status(a2a.TaskStateCompleted, nil))
		case "data":
			emit(submitted, a2a.NewArtifactEvent(ec, a2a.NewDataPart(map[string]any{"answer": 42, "echo": rest})),
				status(a2a.TaskStateCompleted, nil))
		case "ask":
			emit(submitted, status(a2a.TaskStateInputRequired, say("Which value should I use for "+rest+"?")))
		case "slow":
			seconds, _ := strconv.ParseFloat(rest, 64)
			if !emit(submitted, status(a2a.TaskStateWorking, nil)) {
				return
			}
			select {
			case <-time.After(time.Duration(min(seconds, 60) * float64(time.Second))):
				emit(a2a.NewArtifactEvent(ec, a2a.NewTextPart("done")), status(a2a.TaskStateCompleted, nil))
			case <-ctx.Done():
			}
		case "fail":
			emit(submitted, status(a2a.TaskStateFailed, say("It failed: "+rest)))
		case "reject":
			emit(submitted, status(a2a.TaskStateRejected, say("Refused: "+rest)))
		case "echo":
			emit(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(rest)))
		default:
			emit(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(words)))
		}
	}
}

func (executor) Cancel(_ context.Context, ec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(ec, a2a.TaskStateCanceled, nil), nil)
	}
}

func reverse(s string) string {
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}
