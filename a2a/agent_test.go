package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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
	if a.Card() != nil || a.Alias() != "echo" {
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
		if err != nil || string(card.Raw) != extended(s) || len(card.Skills) != 1 {
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
