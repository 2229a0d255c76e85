package a2a

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/a2a/credential"
)

// memoryAgent is an agent whose requests a handler answers in memory, for
// bubbles of synctest.
func memoryAgent(t *testing.T, cfg AgentConfig, handler http.HandlerFunc) *Agent {
	t.Helper()
	if cfg.URL == "" && cfg.CardURL == "" {
		cfg.CardURL = "http://agent.test/card.json"
	}
	a := newAgent(t, cfg)
	a.transport = handlerTransport{handler}
	return a
}

// running runs a.Run until the test's end.
func running(t *testing.T, a *Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
}

func TestNewAgentNamesEveryProblem(t *testing.T) {
	_, err := NewAgent(AgentConfig{Alias: "a b", URL: "ftp://x", Protocol: "2.0", Binding: "GRPC", URLPolicy: "none", AuthOnCard: "maybe",
		AllowHosts: []string{"http://x"}, Headers: http.Header{"bad name": {"x"}, "X-Ok": {"a\nb"}}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`alias "a b" is not 1 to 64 letters`, `url: "ftp://x" is not an http(s) URL`, `protocol "2.0" is none of auto, 1.0, 0.3`,
		`binding "GRPC" is none of auto, JSONRPC, HTTP+JSON`, `urlPolicy "none" is none of auto, card, configured`,
		`authOnCard "maybe" is none of auto, always, never`, `allowHosts[0]: "http://x" is not host or host:port`,
		`headers: "bad name" is not the name of an HTTP header`, `headers: the value of X-Ok holds a character that a header cannot carry`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	for cfg, want := range map[*AgentConfig]string{
		{Alias: "a"}: "url is missing: give the agent's address, or the card's as cardUrl",
		{Alias: "a", URL: "http://x", CardURL: "http://x"}:        "url and cardUrl exclude each other: keep one of them",
		{Alias: "a", URL: "http://u:s3cr3t@x/"}:                   "url must not hold a user name or password: use auth",
		{Alias: "a", CardURL: "http://u:s3cr3t@x/"}:               "cardUrl must not hold a user name or password: use auth",
		{Alias: "a", URL: "http://x", CardPath: "file:///etc/x"}:  `cardPath: "file:///etc/x" is neither a path nor an http(s) URL`,
		{Alias: "a", URL: "http://x:y/"}:                          "url is not a URL",
		{Alias: "a", URL: "localhost:8080"}:                       `url: "localhost:8080" is not an http(s) URL`,
		{Alias: "a", URL: "http://x", CardPath: "http://u:p@x/c"}: "cardPath must not hold a user name or password: use auth",
		{Alias: strings.Repeat("a", 65), URL: "http://a.test"}:    "is not 1 to 64 letters",
		{Alias: "", URL: "http://a.test"}:                         `alias "" is not 1 to 64 letters, digits, _ or -`,
	} {
		if _, err := NewAgent(*cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestOverrideSpellings(t *testing.T) {
	for _, tt := range []struct {
		protocol, binding Version
		wantV             Version
		wantB             Binding
	}{{"auto", "Auto", "", ""}, {"1", "http+json", V10, REST}, {"v1.0.1", "json-rpc", V10, JSONRPC}, {"0.2.6", "REST", V03, REST}} {
		a := newAgent(t, AgentConfig{URL: "http://agent.test", Protocol: tt.protocol, Binding: Binding(tt.binding)})
		if a.cfg.Protocol != tt.wantV || a.cfg.Binding != tt.wantB {
			t.Errorf("%q %q read as %q %q", tt.protocol, tt.binding, a.cfg.Protocol, a.cfg.Binding)
		}
	}
}

func TestAgentBeforeDiscovery(t *testing.T) {
	a := newAgent(t, AgentConfig{Alias: "echo", URL: "http://agent.test"})
	if got := a.Status(); got.State != AgentConnecting || got.Since.IsZero() || got.Reason == "" {
		t.Errorf("status is %+v", got)
	}
	if a.Card() != nil || a.PublicCard() != nil || a.Alias() != "echo" {
		t.Error("there is a card before anyone asked")
	}
}

// TestColdCallersShareOneFetch: twenty at once, one request.
func TestColdCallersShareOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			time.Sleep(time.Second)
			serveCard("http://agent.test/")(w, r)
		})
		var wg sync.WaitGroup
		var cards [20]*Card
		var clients [20]*Client
		for i := range 20 {
			wg.Go(func() { cards[i], _ = a.FetchCard(t.Context()) })
			wg.Go(func() { clients[i], _ = a.Client(t.Context()) })
		}
		wg.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
		for i := range cards {
			if cards[i] == nil || cards[i] != cards[0] || clients[i] == nil || clients[i] != clients[0] {
				t.Fatalf("caller %d got another card or client", i)
			}
		}
		if card, err := a.FetchCard(t.Context()); err != nil || card != cards[0] || calls.Load() != 1 {
			t.Error("a fresh card was fetched again")
		}
		a.Close()
	})
}

// TestNoStormWhenDown: a minute of ten calls a second to a dead agent is a
// request a second at most, and each call is answered at once.
func TestNoStormWhenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.WriteHeader(500)
		})
		for range 600 {
			start := time.Now()
			if _, err := a.Client(t.Context()); err == nil {
				t.Fatal("there is a client")
			}
			if waited := time.Since(start); waited > 0 {
				t.Fatalf("waited %v", waited)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := calls.Load(); n < 30 || n > 61 {
			t.Errorf("%d requests in a minute", n)
		}
		a.Close()
	})
}

// TestStaleCardOutlivesItsEndpoint: the card endpoint dies after its lifetime;
// the card and the client stay, nobody waits.
func TestStaleCardOutlivesItsEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, r *http.Request) {
			if broken.Load() {
				w.WriteHeader(404)
				return
			}
			w.Header().Set("Cache-Control", "max-age=60")
			serveCard("http://agent.test/")(w, r)
		})
		first, err := a.FetchCard(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		client, err := a.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		time.Sleep(61 * time.Second)
		for range 5 {
			if card, err := a.FetchCard(t.Context()); err != nil || card != first {
				t.Errorf("card %p, want %p: %v", card, first, err)
			}
			if again, err := a.Client(t.Context()); err != nil || again != client {
				t.Errorf("client changed: %v", err)
			}
			time.Sleep(time.Minute)
		}
		wantState(t, a, AgentReady, "")
		wantNote(t, a, "the card could not be refreshed, the last good one is used: GET http://agent.test/card.json answered 404 Not Found, not a card")
		if n := len(a.Status().Notes); n != 1 {
			t.Errorf("%d notes", n)
		}
		broken.Store(false)
		time.Sleep(time.Minute)
		if _, err := a.FetchCard(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if notes := a.Status().Notes; len(notes) != 0 {
			t.Errorf("notes stay: %q", notes)
		}
		a.Close()
	})
}

// TestComesBack is P01 f: 503 at boot, good ten seconds later; the agent is
// ready soon after, with one change told.
func TestComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var changes []AgentState
		var a *Agent
		a = memoryAgent(t, AgentConfig{OnChange: func() { changes = append(changes, a.Status().State) }}, func(w http.ResponseWriter, r *http.Request) {
			if time.Since(start) < 10*time.Second {
				w.WriteHeader(503)
				return
			}
			serveCard("http://agent.test/")(w, r)
		})
		stop := running(t, a)
		time.Sleep(5 * time.Second)
		wantState(t, a, AgentDown, "GET http://agent.test/card.json answered 503 Service Unavailable")
		if since := a.Status().Since; since.Sub(start) > time.Second {
			t.Errorf("down since %v after the start", since.Sub(start))
		}
		time.Sleep(20 * time.Second)
		wantState(t, a, AgentReady, "")
		stop()
		if !slices.Equal(changes, []AgentState{AgentDown, AgentReady}) {
			t.Errorf("changes are %q", changes)
		}
		a.Close()
	})
}

// TestBackoffGrows: an agent that stays down is looked for ever more rarely,
// up to once a minute.
func TestBackoffGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, _ *http.Request) {
			at = append(at, time.Since(start))
			w.WriteHeader(404)
		})
		stop := running(t, a)
		time.Sleep(time.Hour)
		stop()
		for i, min, max := 1, 0.8, 1.2; i < len(at); i++ {
			if gap := (at[i] - at[i-1]).Seconds(); gap < min || gap > max {
				t.Errorf("gap %d is %.1f s, want %.1f to %.1f", i, gap, min, max)
			}
			if min, max = min*2, max*2; min > 48 {
				min, max = 48, 72
			}
		}
		if len(at) < 50 {
			t.Errorf("%d requests in an hour", len(at))
		}
		a.Close()
	})
}

func TestRetryAfterIsRespected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(429)
		})
		stop := running(t, a)
		time.Sleep(590 * time.Second)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(20 * time.Second)
		if n := calls.Load(); n != 2 {
			t.Errorf("%d requests after the pause", n)
		}
		stop()
		a.Close()
	})
}

// TestRunRefreshes: Run asks again when the lifetime is over, with the ETag,
// and takes a changed card; an unchanged one changes nothing.
func TestRunRefreshes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, changes atomic.Int32
		var url atomic.Value
		url.Store("http://agent.test/one")
		a := memoryAgent(t, AgentConfig{OnChange: func() { changes.Add(1) }}, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			etag := fmt.Sprintf("%q", url.Load())
			w.Header().Set("ETag", etag)
			w.Header().Set("Cache-Control", "max-age=600")
			if r.Header.Get("If-None-Match") == etag {
				w.WriteHeader(304)
				return
			}
			serveCard(url.Load().(string))(w, r)
		})
		stop := running(t, a)
		time.Sleep(time.Second)
		client, err := a.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(700 * time.Second)
		if n := calls.Load(); n != 2 {
			t.Errorf("%d requests after one lifetime", n)
		}
		if again, _ := a.Client(t.Context()); again != client || changes.Load() != 1 {
			t.Errorf("an unchanged card made %d changes", changes.Load())
		}
		url.Store("http://agent.test/two")
		time.Sleep(700 * time.Second)
		if again, _ := a.Client(t.Context()); again == client || changes.Load() != 2 {
			t.Errorf("a changed card made %d changes", changes.Load())
		}
		if got := a.Status().URL; got != "http://agent.test/two" {
			t.Errorf("the interface is %s", got)
		}
		stop()
		a.Close()
	})
}

// TestDownAndUpByCalls: a call that cannot connect makes the agent down, one
// that gets through makes it ready; the client stays the same.
func TestDownAndUpByCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var observed atomic.Int32
		var dead atomic.Bool
		a := memoryAgent(t, AgentConfig{Observe: func(Exchange) { observed.Add(1) }}, nil)
		a.transport = roundTripper(func(req *http.Request) (*http.Response, error) {
			if dead.Load() {
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			}
			return handlerTransport{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					serveCard("http://agent.test/a2a")(w, r)
					return
				}
				var call struct{ ID json.RawMessage }
				_ = json.NewDecoder(r.Body).Decode(&call)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`, call.ID)
			})}.RoundTrip(req)
		})
		client, err := a.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		dead.Store(true)
		if _, err := client.GetTask(t.Context(), "t", nil); err == nil {
			t.Fatal("the dead agent answered")
		}
		wantState(t, a, AgentDown, "the last call could not connect to http://agent.test/a2a")
		synctest.Wait()
		time.Sleep(trialGap)
		start := time.Now()
		again, err := a.Client(t.Context())
		if err != nil || again != client || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		synctest.Wait()
		dead.Store(false)
		if _, err := client.GetTask(t.Context(), "t", nil); err != nil {
			t.Fatal(err)
		}
		wantState(t, a, AgentReady, "")
		if observed.Load() < 2 {
			t.Errorf("the observer saw %d exchanges", observed.Load())
		}
		a.Close()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestReachedAtOnceWhenBack: without Run, an agent that was down is found by
// the next call.
func TestReachedAtOnceWhenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, r *http.Request) {
			if !up.Load() {
				w.WriteHeader(404)
				return
			}
			serveCard("http://agent.test/")(w, r)
		})
		if _, err := a.Upstream(t.Context()); err == nil {
			t.Fatal("there is a client")
		}
		up.Store(true)
		time.Sleep(2 * time.Second)
		if _, err := a.Upstream(t.Context()); err != nil {
			t.Error(err)
		}
		a.Close()
	})
}

// TestHangingAgentDoesNotHold: the first caller waits for its context only, a
// later one a few seconds.
func TestHangingAgentDoesNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memoryAgent(t, AgentConfig{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := a.Client(ctx)
		var coded *Error
		if !errors.As(err, &coded) || coded.Cause != CauseTimeout || coded.Message != "the agent's card did not arrive in time" || !coded.Unsent || time.Since(start) != 2*time.Second {
			t.Errorf("after %v: %+v", time.Since(start), err)
		}
		_, err = a.FetchCard(t.Context())
		if !errors.As(err, &coded) || coded.Message != "agent.test:80 did not answer within 30s" && coded.Message != "no connection to agent.test:80 within 30s" {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		time.Sleep(40 * time.Second)
		start = time.Now()
		if _, err := a.Client(t.Context()); err == nil || time.Since(start) != demandWait {
			t.Errorf("a later caller waited %v: %v", time.Since(start), err)
		}
		cancelled, stop := context.WithCancel(t.Context())
		stop()
		if _, err := a.Client(cancelled); !errors.As(err, &coded) || coded.Cause != CauseCanceled {
			t.Errorf("cancelled: %v", err)
		}
		a.Close()
	})
}

// TestCloseEndsADiscovery: a discovery under way ends with the agent, and says
// nothing about it.
func TestCloseEndsADiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memoryAgent(t, AgentConfig{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		stop := running(t, a)
		synctest.Wait()
		start := time.Now()
		a.Close()
		stop()
		if waited := time.Since(start); waited != 0 || a.Status().State != AgentConnecting {
			t.Errorf("after %v the state is %s", waited, a.Status().State)
		}
	})
}

// TestFiftyAgentsTenDead: the dead ones, which accept and say nothing, delay
// nobody; real sockets.
func TestFiftyAgentsTenDead(t *testing.T) {
	s := newCardServer(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	runs, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var agents []*Agent
	for i := range 50 {
		url := fmt.Sprintf("%s/agents/%d", s.URL, i)
		if i%5 == 0 {
			url = fmt.Sprintf("http://%s/%d", silent.Addr(), i)
		} else {
			s.on(fmt.Sprintf("/agents/%d%s", i, current), serveCard(url))
		}
		a := newAgent(t, AgentConfig{Alias: fmt.Sprintf("a%d", i), URL: url})
		agents = append(agents, a)
		wg.Go(func() { _ = a.Run(runs) })
	}
	for i, a := range agents {
		if i%5 == 0 {
			continue
		}
		if _, err := a.Client(ctx); err != nil {
			t.Errorf("agent %d: %v", i, err)
		}
	}
	for i, a := range agents {
		if i%5 == 0 && a.Status().State != AgentConnecting {
			t.Errorf("silent agent %d is %s", i, a.Status().State)
		}
	}
	stop()
	wg.Wait()
}

// TestStates has what the choice of an interface makes of a good card.
func TestStates(t *testing.T) {
	s := newCardServer(t)
	tests := []struct {
		name, card string
		cfg        AgentConfig
		state      AgentState
		reason     string
	}{
		{"grpc only", `{"name":"x","supportedInterfaces":[{"url":"h:1","protocolBinding":"GRPC","protocolVersion":"1.0"}]}`, AgentConfig{},
			AgentNoInterface, "the agent offers only GRPC 1.0 at h:1; the gateway speaks JSONRPC and HTTP+JSON of A2A 1.0 and 0.3"},
		{"foreign", cardFor("http://other.test/a2a"), AgentConfig{},
			AgentBlockedOrigin, "the card's interface http://other.test/a2a is not on the configured origin " + s.URL + `: list "other.test" in allowHosts to call it, without credentials`},
		{"foreign, allowed", cardFor("http://other.test/a2a"), AgentConfig{AllowHosts: []string{"other.test"}}, AgentReady, ""},
		{"required extension", `{"name":"x","url":"/","capabilities":{"extensions":[{"uri":"urn:pay","required":true}]}}`, AgentConfig{},
			AgentNoInterface, `the agent requires the extension "urn:pay", which the gateway does not speak`},
		{"required extension, spoken", `{"name":"x","url":"/","capabilities":{"extensions":[{"uri":"urn:pay","required":true}]}}`, AgentConfig{Extensions: []string{"urn:pay"}}, AgentReady, ""},
		{"no address", `{"name":"x"}`, AgentConfig{}, AgentReady, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.on(current, serve(200, "application/json", tt.card))
			tt.cfg.URL = s.URL
			a := newAgent(t, tt.cfg)
			card, err := a.FetchCard(t.Context())
			if err != nil || string(card.Raw) != tt.card || a.Card() != card {
				t.Fatalf("card %+v: %v", card, err)
			}
			wantState(t, a, tt.state, tt.reason)
			client, err := a.Client(t.Context())
			var coded *Error
			if tt.state == AgentReady {
				if err != nil || client == nil {
					t.Errorf("no client: %v", err)
				}
			} else if !errors.As(err, &coded) || coded.Message != tt.reason || coded.Cause != CauseUnavailable || !coded.Unsent {
				t.Errorf("error is %+v", err)
			}
		})
	}
}

// TestExtendedCard: fetched only when declared and with a credential, replaces
// the card, and is kept apart from the public one (checklist 14).
func TestExtendedCard(t *testing.T) {
	public := func(s *cardServer, declared bool) string {
		return fmt.Sprintf(`{"name":"Public","supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{"extendedAgentCard":%v}}`, s.URL+"/a2a", declared)
	}
	extended := func(s *cardServer) string {
		return fmt.Sprintf(`{"name":"Extended", "supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"skills":[{"id":"inner"}]}`, s.URL+"/inner")
	}
	rpc := func(s *cardServer, answer string) {
		s.on("/a2a", func(w http.ResponseWriter, r *http.Request) {
			var call struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.NewDecoder(r.Body).Decode(&call)
			if call.Method != "GetExtendedAgentCard" || r.Header.Get("Authorization") != "Bearer k" {
				w.WriteHeader(401)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, call.ID, answer)
		})
	}
	t.Run("declared and authenticated", func(t *testing.T) {
		s := newCardServer(t)
		s.on(current, serve(200, "application/json", public(s, true)))
		rpc(s, `"result":`+extended(s))
		a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: bearer(t, "k")})
		card, err := a.FetchCard(t.Context())
		if err != nil || string(card.Raw) != extended(s) || a.PublicCard().Name != "Public" || len(card.Skills) != 1 {
			t.Fatalf("card is %+v: %v", card, err)
		}
		if got := a.Status(); got.URL != s.URL+"/inner" || got.CardURL != s.URL+current {
			t.Errorf("status is %+v", got)
		}
	})
	for name, tt := range map[string]struct {
		declared bool
		auth     Authorizer
	}{"not declared": {false, bearer(t, "k")}, "no credential": {true, nil}} {
		t.Run(name, func(t *testing.T) {
			s := newCardServer(t)
			s.on(current, serve(200, "application/json", public(s, tt.declared)))
			rpc(s, `"result":`+extended(s))
			a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: tt.auth})
			if card, err := a.FetchCard(t.Context()); err != nil || card.Name != "Public" {
				t.Errorf("card is %+v: %v", card, err)
			}
			if got := s.take(); !slices.Equal(got, []string{current}) {
				t.Errorf("asked %q", got)
			}
		})
	}
	t.Run("absent", func(t *testing.T) {
		s := newCardServer(t)
		s.on(current, serve(200, "application/json", public(s, true)))
		rpc(s, `"error":{"code":-32007,"message":"none"}`)
		a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: bearer(t, "k")})
		if card, err := a.FetchCard(t.Context()); err != nil || card.Name != "Public" {
			t.Errorf("card is %+v: %v", card, err)
		}
		wantState(t, a, AgentReady, "")
		wantNote(t, a, "the extended card could not be had: none (code -32007)")
	})
}

// TestUnmetDemand has the warning for each mismatch of what a card demands
// and what is configured.
func TestUnmetDemand(t *testing.T) {
	schemes := `"securitySchemes":{"b":{"type":"http","scheme":"bearer"},"c":{"type":"http","scheme":"basic"},"k":{"type":"apiKey","in":"header","name":"X-K"},"m":{"type":"mutualTLS"},"o":{"type":"oauth2","flows":{}}}`
	key := credential.Spec{Type: "apikey", Key: credential.NewSecret("k")}
	basic := credential.Spec{Type: "basic", Username: "u", Password: credential.NewSecret("p")}
	token := credential.Spec{Type: "bearer", Token: credential.NewSecret("t")}
	tests := []struct {
		security string
		spec     credential.Spec
		headers  http.Header
		want     string
	}{
		{`[]`, credential.Spec{}, nil, ""},
		{`[{}]`, credential.Spec{}, nil, ""},
		{`[{"b":[]}]`, token, nil, ""},
		{`[{"b":[]}]`, credential.Spec{}, nil, "the agent demands b (http bearer), and no auth is configured"},
		{`[{"b":[]}]`, credential.Spec{}, http.Header{"Authorization": {"x"}}, ""},
		{`[{"b":[]}]`, key, nil, "the agent demands b (http bearer), and the configured auth is apikey"},
		{`[{"b":[]},{"k":[]}]`, key, nil, ""},
		{`[{"b":[],"k":[]}]`, key, nil, "the agent demands b (http bearer) with k (apiKey), and the configured auth is apikey"},
		{`[{"b":[],"k":[]}]`, token, http.Header{"x-k": {"x"}}, ""},
		{`[{"c":[]}]`, basic, nil, ""},
		{`[{"c":[]}]`, token, nil, "the agent demands c (http basic), and the configured auth is bearer"},
		{`[{"b":[]}]`, basic, nil, "the agent demands b (http bearer), and the configured auth is basic"},
		{`[{"o":["a"]}]`, token, nil, ""},
		{`[{"m":[]}]`, token, nil, "the agent demands m (mutualTLS), and the configured auth is bearer"},
		{`[{"unknown":[]}]`, token, nil, "the agent demands unknown, and the configured auth is bearer"},
	}
	for _, tt := range tests {
		card := parse(t, `{"name":"x","url":"/",`+schemes+`,"security":`+tt.security+`}`)
		cfg := AgentConfig{Headers: tt.headers}
		if tt.spec.Type != "" {
			cfg.Authorizer = auth(t, tt.spec)
		}
		if got := cfg.unmetDemand(card); got != tt.want {
			t.Errorf("%s with %s\ngot  %q\nwant %q", tt.security, tt.spec.Type, got, tt.want)
		}
	}
}

// TestCardPlacesTheCredential: the card decides where a key goes when the
// configuration does not, and the token endpoint only where it may.
func TestCardPlacesTheCredential(t *testing.T) {
	s := newCardServer(t)
	login := httptest.NewServer(serve(200, "application/json", `{"access_token":"T"}`))
	defer login.Close()
	oauthCard := func(tokenURL string) string {
		return fmt.Sprintf(`{"name":"x","url":"/a2a","securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":%q,"scopes":{}}}}},"security":[{"o":[]}]}`, tokenURL)
	}
	oauth := credential.Spec{Type: "oauth2", ClientID: "i", ClientSecret: credential.NewSecret("s")}
	fromCard := oauth
	fromCard.TokenURL = credential.TokenURLFromCard
	key := credential.Spec{Type: "apikey", Key: credential.NewSecret("k")}
	tests := []struct {
		name, card string
		spec       credential.Spec
		allow      []string
		sent       string // what the agent gets: "header: value" or "?query"
		problem    string // or why the call fails
		note       string
	}{
		{"key in the query", `{"name":"x","url":"/a2a","securitySchemes":{"a":{"apiKeySecurityScheme":{"location":"query","name":"other"}},"b":{"apiKeySecurityScheme":{"location":"query","name":"key"}}},"securityRequirements":[{"schemes":{"b":{}}}]}`, key, nil, "?key=k", "", ""},
		{"key without a scheme", `{"name":"x","url":"/a2a"}`, key, nil, "X-Api-Key: k", "", ""},
		{"token endpoint, by configuration", oauthCard(login.URL), fromCard, nil, "Authorization: Bearer T", "", ""},
		{"token endpoint, allowed host", oauthCard(login.URL), oauth, []string{strings.TrimPrefix(login.URL, "http://")}, "Authorization: Bearer T", "", ""},
		{"token endpoint, not allowed", oauthCard(login.URL), oauth, nil, "", `oauth2 has no tokenUrl: set it, or set it to "fromCard" to use the one in the agent's card`, "the card names the token endpoint " + login.URL + ": set auth.tokenUrl to it, or to fromCard"},
		{"token endpoint, metadata service", oauthCard("http://169.254.169.254/token"), fromCard, nil, "", "token endpoint http://169.254.169.254/token is not allowed: 169.254.169.254 is a metadata service address, which is not called unless it is configured as an address", ""},
		{"token endpoint, a file", oauthCard("file:///etc/passwd"), fromCard, nil, "", "oauth2 takes its tokenUrl from the agent's card, and the card names none that can be used", "the card's tokenUrl file:///etc/passwd is not an http(s) URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.on(current, serve(200, "application/json", tt.card))
			s.on("/a2a", serve(500, "", ""))
			a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: auth(t, tt.spec), AllowHosts: tt.allow})
			client, err := a.Client(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.take()
			_, err = client.CancelTask(t.Context(), "t")
			if tt.problem != "" {
				var coded *Error
				if !errors.As(err, &coded) || coded.Message != tt.problem || coded.Cause != CauseAuth {
					t.Errorf("got  %v\nwant %s", err, tt.problem)
				}
			}
			for _, r := range s.requests() {
				got := "?" + r.URL.RawQuery
				if name, _, ok := strings.Cut(tt.sent, ": "); ok {
					got = name + ": " + r.Header.Get(name)
				}
				if tt.problem != "" || got != tt.sent {
					t.Errorf("sent %s %q, want %q", r.URL, got, tt.sent)
				}
			}
			if tt.note != "" {
				wantNote(t, a, tt.note)
			}
		})
	}
}

// TestTokenOutlivesARefresh: the card is fetched again; the credential that it
// places is the same one, with its token.
func TestTokenOutlivesARefresh(t *testing.T) {
	var tokens atomic.Int32
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(200, "application/json", fmt.Sprintf(`{"access_token":"T%d"}`, tokens.Add(1)))(w, r)
	}))
	defer login.Close()
	s := newCardServer(t)
	s.on("/a2a", serve(500, "", ""))
	spec := credential.Spec{Type: "oauth2", ClientID: "i", ClientSecret: credential.NewSecret("s"), TokenURL: credential.TokenURLFromCard}
	a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: auth(t, spec)})
	for i := range 3 {
		s.on(current, serve(200, "application/json", fmt.Sprintf(`{"name":"x%d","url":"/a2a","securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":%q}}}}}`, i, login.URL)))
		a.mu.Lock()
		a.checked, a.fresh = time.Time{}, time.Time{}
		a.mu.Unlock()
		if card, err := a.FetchCard(t.Context()); err != nil || card.Name != fmt.Sprintf("x%d", i) {
			t.Fatal(err)
		}
		client, err := a.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.CancelTask(t.Context(), "t")
	}
	if n := tokens.Load(); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

// TestLogHoldsNoSecret: what the agent logs and shows over a life with a
// refused credential and a key in its address.
func TestLogHoldsNoSecret(t *testing.T) {
	s := newCardServer(t)
	s.on("/a"+current, serve(401, "", ""))
	var logged bytes.Buffer
	a := newAgent(t, AgentConfig{URL: s.URL + "/a?key=s3cr3t-query", Authorizer: auth(t, credential.Spec{Type: "apikey", Key: credential.NewSecret("s3cr3t-key"), In: "query", Name: "k"}),
		Headers: http.Header{"X-Token": {"s3cr3t-header"}}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	_, err := a.FetchCard(t.Context())
	a.Close() // waits for the log
	shown := fmt.Sprintf("%s %v %+v %+v", logged.String(), err, a.Status(), a.Attempts())
	if len(logged.String()) == 0 || strings.Contains(shown, "s3cr3t") {
		t.Errorf("shown: %s", shown)
	}
	attempts := a.Attempts()
	if len(attempts) != 5 || attempts[0].Status != 401 || attempts[0].Authorized || !attempts[1].Authorized || attempts[2].Status != 404 {
		t.Errorf("attempts are %+v", attempts)
	}
}

// TestP04OnTheWire: tenant and version go with every request of every
// operation, over the interface that was chosen.
func TestP04OnTheWire(t *testing.T) {
	for _, tt := range []struct {
		binding Binding
		path    string
	}{{"", "/rpc"}, {REST, "/rest"}} {
		t.Run(tt.path, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == current {
					fmt.Fprintf(w, `{"name":"x","capabilities":{"streaming":true},"supportedInterfaces":[
						{"url":"grpc.acme.test:443","protocolBinding":"GRPC","protocolVersion":"1.0"},
						{"url":"/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"acme"},
						{"url":"/rest","protocolBinding":"HTTP+JSON","protocolVersion":"1.0","tenant":"acme"},
						{"url":"/old","protocolBinding":"JSONRPC","protocolVersion":"0.3"}]}`)
					return
				}
				body := make([]byte, 4096)
				n, _ := r.Body.Read(body)
				tenant := strings.Contains(string(body[:n]), `"tenant":"acme"`) || strings.HasPrefix(r.URL.Path, "/rest/acme/")
				mu.Lock()
				seen = append(seen, fmt.Sprintf("%v %v %s", strings.HasPrefix(r.URL.Path, tt.path), tenant, r.Header.Get("A2A-Version")))
				mu.Unlock()
				w.WriteHeader(http.StatusTeapot)
			}))
			defer s.Close()
			a := newAgent(t, AgentConfig{URL: s.URL, Binding: tt.binding})
			client, err := a.Client(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Status(); got.URL != s.URL+tt.path || got.Version != V10 {
				t.Errorf("status shows %+v", got)
			}
			send := SendRequest{Message: Message{MessageID: "m", Role: RoleUser, Parts: []Part{{Kind: PartText, Text: "hi"}}}}
			_, _ = client.Send(t.Context(), send)
			_, _ = client.Stream(t.Context(), send)
			_, _ = client.GetTask(t.Context(), "t", nil)
			_, _ = client.CancelTask(t.Context(), "t")
			_, _ = client.Subscribe(t.Context(), "t")
			if len(seen) < 5 {
				t.Fatalf("only %d requests", len(seen))
			}
			for i, got := range seen {
				if got != "true true 1.0" {
					t.Errorf("request %d: right path, tenant, version are %s", i, got)
				}
			}
		})
	}
}

// TestMTLSAgent: the certificate of the credential is shown when the card is
// fetched; no option but the credential is needed.
func TestMTLSAgent(t *testing.T) {
	var shown atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown.Add(int32(len(r.TLS.PeerCertificates)))
		serveCard("https://"+r.Host+"/")(w, r)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	der, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: s.Certificate().Raw}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := newAgent(t, AgentConfig{URL: s.URL, Authorizer: auth(t, credential.Spec{Type: "mtls", CertFile: cert, KeyFile: key, CAFile: cert})})
	if _, err := a.Client(t.Context()); err != nil || shown.Load() == 0 {
		t.Errorf("%d certificates shown: %v", shown.Load(), err)
	}
	plain := newAgent(t, AgentConfig{URL: s.URL})
	_, err = plain.Client(t.Context())
	var coded *Error
	if !errors.As(err, &coded) || coded.Cause != CauseTLS || !strings.HasSuffix(coded.Message, "its certificate is signed by an unknown authority") {
		t.Errorf("without the authority: %v", err)
	}
}

// TestFreshCardWithoutInterfaceIsNotAskedAgain: calls to an agent that cannot
// be called do not fetch its card over and over.
func TestFreshCardWithoutInterfaceIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			serveCard("http://elsewhere.test/")(w, r)
		})
		for range 60 {
			if _, err := a.Client(t.Context()); err == nil {
				t.Fatal("there is a client")
			}
			time.Sleep(2 * time.Second)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
		a.Close()
	})
}

// TestOtherOriginOfCardPathMayBeDown: a cardPath on a dead host does not keep
// the agent's own addresses from being tried.
func TestOtherOriginOfCardPathMayBeDown(t *testing.T) {
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	s := newCardServer(t)
	s.on(current, serveCard(s.URL+"/"))
	if _, err := newAgent(t, AgentConfig{URL: s.URL, CardPath: dead.URL + "/card"}).FetchCard(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestDeadAgentInPlainWords has the reason for an agent that cannot be reached.
func TestDeadAgentInPlainWords(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	host := strings.TrimPrefix(gone.URL, "http://")
	a := newAgent(t, AgentConfig{URL: gone.URL})
	_, err := a.Client(t.Context())
	wantState(t, a, AgentDown, host+" refused the connection: nothing listens there")
	var coded *Error
	if !errors.As(err, &coded) || coded.Cause != CauseDial || !coded.Unsent || coded.Op != "connect" {
		t.Errorf("error is %+v", err)
	}
}

// TestCloseWhileCalled is for the race detector.
func TestCloseWhileCalled(t *testing.T) {
	s := newCardServer(t)
	s.on(current, serveCard(s.URL+"/"))
	for range 20 {
		a := newAgent(t, AgentConfig{URL: s.URL, OnChange: func() {}})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _, _ = a.FetchCard(t.Context()) })
			wg.Go(func() { _, _ = a.Client(t.Context()) })
			wg.Go(func() { a.ReportDown("x"); a.ReportUp(); _ = a.Status() })
		}
		a.Close()
		wg.Wait()
	}
}
