package a2a

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// movable is an agent whose JSON-RPC interface may move: its card names one
// path, it serves another or none, and counts.
type movable struct {
	named, served atomic.Value // path
	cards, calls  atomic.Int32
	answer        http.HandlerFunc // where nothing is served; nil for a plain 404
	slow          time.Duration    // of the card
}

func newMovable(path string) *movable {
	m := &movable{}
	m.named.Store(path)
	m.served.Store(path)
	return m
}

func (m *movable) move(path string) {
	m.named.Store(path)
	m.served.Store(path)
}

func (m *movable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/card.json":
		m.cards.Add(1)
		card := m.named.Load().(string)
		time.Sleep(m.slow)
		w.Header().Set("Cache-Control", "max-age=3600")
		serveCard("http://agent.test"+card)(w, r)
	case r.URL.Path == m.served.Load():
		m.calls.Add(1)
		serve(200, "application/json", `{"jsonrpc":"2.0","result":`+taskCompleted+`}`)(w, r)
	case m.answer != nil:
		m.answer(w, r)
	default:
		http.NotFound(w, r)
	}
}

// moving runs test in fake time against an agent that has been called once at
// /one. Of the card's requests only those after that count.
func moving(t *testing.T, test func(t *testing.T, m *movable, call func() error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMovable("/one")
		a := memoryAgent(t, AgentConfig{}, m.ServeHTTP)
		stop := running(t, a)
		call := func() error {
			c, err := a.Client(t.Context())
			if err != nil {
				return err
			}
			_, err = c.Send(t.Context(), hello())
			return err
		}
		if err := call(); err != nil {
			t.Fatal(err)
		}
		m.cards.Store(0)
		m.calls.Store(0)
		test(t, m, call)
		stop()
		a.Close()
	})
}

// refused is the error of a call that found nothing.
func refused(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Cause != CauseHTTP {
		t.Fatalf("%v, want an *Error with cause http", err)
	}
	return e
}

// TestMovedForAll: of many callers that find nothing, one reads the card, and
// each has its message done once.
func TestMovedForAll(t *testing.T) {
	moving(t, func(t *testing.T, m *movable, call func() error) {
		m.slow = time.Second
		m.move("/two")
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if err := call(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if cards, calls := m.cards.Load(), m.calls.Load(); cards != 1 || calls != 50 {
			t.Errorf("%d requests for the card, want 1; %d messages done, want 50", cards, calls)
		}
		m.move("/three") // at once again: the limit is on looks in vain
		time.Sleep(movedGap)
		if err := call(); err != nil {
			t.Error(err)
		}
	})
}

// TestBrokenAgentIsNotHammered: an agent that is not where its card says costs
// one request for the card in movedGap, and its callers are told.
func TestBrokenAgentIsNotHammered(t *testing.T) {
	moving(t, func(t *testing.T, m *movable, call func() error) {
		m.served.Store("nowhere")
		const gaps = 4
		for began := time.Now(); time.Since(began) < gaps*movedGap; time.Sleep(100 * time.Millisecond) {
			e := refused(t, call())
			if e.HTTPStatus != http.StatusNotFound || !strings.Contains(e.Message, "its card was read again and still names this address") {
				t.Fatalf("%d: %s", e.HTTPStatus, e.Message)
			}
		}
		if n := m.cards.Load(); n != gaps {
			t.Errorf("%d requests for the card in %s, want %d", n, gaps*movedGap, gaps)
		}
		m.served.Store("/one")
		if err := call(); err != nil {
			t.Error(err)
		}
	})
}

// TestMovedDuringALook: a look that began before the agent moved says nothing.
func TestMovedDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMovable("/one")
		a := memoryAgent(t, AgentConfig{}, m.ServeHTTP)
		stop := running(t, a)
		c, err := a.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.slow = time.Second
		a.mu.Lock()
		a.startLocked()
		a.mu.Unlock()
		synctest.Wait() // the old card is on its way
		m.move("/two")
		if _, err := c.Send(t.Context(), hello()); err != nil {
			t.Error(err)
		}
		stop()
		a.Close()
	})
}

// TestNotMoved: an agent that answers is where its card says, and one that may
// have acted is not sent the message again.
func TestNotMoved(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"task not found": serve(404, "application/json", `{"error":{"code":404,"status":"NOT_FOUND","message":"no such task","details":[{"reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}]}}`),
		"a JSON-RPC error": serve(404, "application/json",
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32004,"message":"not supported"}}`),
		"500": serve(500, "", "broken"),
		"401": serve(401, "", "who?"),
	} {
		t.Run(name, func(t *testing.T) {
			moving(t, func(t *testing.T, m *movable, call func() error) {
				m.answer = answer
				m.move("/two")
				if err := call(); err == nil {
					t.Error("no error")
				}
				if cards, calls := m.cards.Load(), m.calls.Load(); cards != 0 || calls != 0 {
					t.Errorf("%d requests for the card, %d messages done", cards, calls)
				}
			})
		})
	}
}

// TestMovedStatuses: each status that says nothing is there leads to the card.
func TestMovedStatuses(t *testing.T) {
	for _, status := range []int{404, 405, 410} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			moving(t, func(t *testing.T, m *movable, call func() error) {
				m.answer = serve(status, "text/plain", "nothing")
				m.move("/two")
				if err := call(); err != nil {
					t.Error(err)
				}
				if cards, calls := m.cards.Load(), m.calls.Load(); cards != 1 || calls != 1 {
					t.Errorf("%d requests for the card, %d messages done", cards, calls)
				}
			})
		})
	}
}

// TestMovedAndGone: what the card says then is the reason that callers get.
func TestMovedAndGone(t *testing.T) {
	moving(t, func(t *testing.T, m *movable, call func() error) {
		m.served.Store("nowhere")
		m.named.Store("\x00")
		e := refused(t, call())
		if e.HTTPStatus != http.StatusNotFound || !strings.Contains(e.Message, "its card") {
			t.Error(e.Message)
		}
	})
}

// TestNotReadAgain: of a card that was not read nothing is claimed.
func TestNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMovable("/one")
		a := memoryAgent(t, AgentConfig{}, m.ServeHTTP)
		c, err := a.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.Close() // it has left the configuration, with a call on its way
		m.served.Store("nowhere")
		_, err = c.Send(t.Context(), hello())
		if e := refused(t, err); !strings.Contains(e.Message, "its card could not be read again") || m.cards.Load() != 1 {
			t.Errorf("%d requests for the card: %s", m.cards.Load(), e.Message)
		}
	})
}

// TestExtendedCardElsewhere: a look at the card does not wait for itself where
// nothing is at the interface that it asks for the extended card.
func TestExtendedCardElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memoryAgent(t, AgentConfig{Authorizer: bearer(t, "s3cr3t")}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/card.json" {
				http.NotFound(w, r)
				return
			}
			serve(200, "application/json", `{"name":"x","supportedInterfaces":[{"url":"http://agent.test/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{"extendedAgentCard":true}}`)(w, r)
		})
		began := time.Now()
		if _, err := a.FetchCard(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("took %s", took)
		}
		wantNote(t, a, "the extended card could not be had")
		a.Close()
	})
}
