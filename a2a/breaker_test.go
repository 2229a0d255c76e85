package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fallingAgent is an agent that can be made unreachable; dials counts the
// calls that were made.
func fallingAgent(t *testing.T) (a *Agent, dead *atomic.Bool, dials *atomic.Int32) {
	t.Helper()
	dead, dials = new(atomic.Bool), new(atomic.Int32)
	a = memoryAgent(t, AgentConfig{}, nil)
	a.transport = roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPost {
			dials.Add(1)
		}
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
	return a, dead, dials
}

// read does what every caller does: get the client, then call.
func read(ctx context.Context, a *Agent) error {
	c, err := a.Client(ctx)
	if err != nil {
		return err
	}
	_, err = c.GetTask(ctx, "t", nil)
	return err
}

// TestBreaker: once a call could not connect, further ones fail at once and
// say since when and why, one a second tries, and the first that gets through
// lets all through again.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, dead, dials := fallingAgent(t)
		defer a.Close()
		if err := read(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		dead.Store(true)
		if err := read(t.Context(), a); err == nil {
			t.Fatal("the dead agent answered")
		}
		synctest.Wait()
		before, down := dials.Load(), time.Now()
		for range 20 {
			time.Sleep(10 * time.Millisecond)
			start := time.Now()
			err := read(t.Context(), a)
			var coded *Error
			if !errors.As(err, &coded) || coded.Cause != CauseDial || !coded.Unsent || coded.Agent == "" || time.Since(start) != 0 {
				t.Fatalf("after %v: %+v", time.Since(start), err)
			}
			for _, part := range []string{"down since " + down.UTC().Format(time.RFC3339), "could not connect to http://agent.test/a2a"} {
				if !strings.Contains(err.Error(), part) {
					t.Fatalf("%q does not say %q", err, part)
				}
			}
		}
		if n := dials.Load(); n != before {
			t.Errorf("%d calls were made to an agent that was known to be down", n-before)
		}
		time.Sleep(10 * trialGap)
		before = dials.Load()
		for range 5 {
			_ = read(t.Context(), a)
		}
		if n := dials.Load() - before; n < 1 || n > maxRoutes {
			t.Errorf("%d attempts in the same moment, want one call's", n)
		}
		dead.Store(false)
		time.Sleep(trialGap)
		for range 5 {
			if err := read(t.Context(), a); err != nil {
				t.Errorf("the agent is back: %v", err)
			}
		}
		wantState(t, a, AgentReady, "")
	})
}

// TestBreakerTrialGivenUp: a caller who leaves in the middle of its trial
// leaves the next one free to try.
func TestBreakerTrialGivenUp(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	b := breaker{}
	b.learn(Exchange{Cause: CauseDial, Duration: 3 * time.Second}, now)
	if !b.open(now.Add(2*time.Second), time.Minute) {
		t.Error("a call is let through before as long as the last took has passed")
	}
	if b.open(now.Add(3*time.Second), time.Minute) {
		t.Error("nobody may try")
	}
	if !b.open(now.Add(4*time.Second), time.Minute) {
		t.Error("a second caller tries while the first does")
	}
	b.learn(Exchange{Cause: CauseCanceled}, now.Add(5*time.Second))
	if b.open(now.Add(5*time.Second), time.Minute) {
		t.Error("nobody may try although the first has left")
	}
	if !b.open(now.Add(64*time.Second), time.Minute) || b.open(now.Add(65*time.Second), time.Minute) {
		t.Error("a trial that was never made must be forgotten after its hold")
	}
	b.learn(Exchange{Status: 500, Cause: CauseHTTP}, now.Add(66*time.Second))
	if b.open(now.Add(66*time.Second), time.Minute) {
		t.Error("an answer, whatever it says, is a connection")
	}
	b.learn(Exchange{Cause: CauseTimeout}, now)
	if b.open(now, time.Minute) {
		t.Error("a slow agent is not one that cannot be connected to")
	}
}

// TestBreakerIsNotForCards: an agent whose card is gone is called as before.
func TestBreakerIsNotForCards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := fallingAgent(t)
		defer a.Close()
		if err := read(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		inner := a.transport
		a.transport = roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodGet {
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			}
			return inner.RoundTrip(req)
		})
		time.Sleep(48 * time.Hour)
		_, _ = a.FetchCard(t.Context())
		synctest.Wait()
		for range 5 {
			if err := read(t.Context(), a); err != nil {
				t.Error(err)
			}
		}
	})
}
