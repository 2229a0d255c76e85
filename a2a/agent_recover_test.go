package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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
