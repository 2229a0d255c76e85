package a2a

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkRevisitsTheCard: an agent that says its card is not to be kept is
// asked again after it has worked, and a card that has changed is taken; one
// that gave its card a lifetime is not asked.
func TestWorkRevisitsTheCard(t *testing.T) {
	const worked = "http://agent.test/rpc"
	for _, tt := range []struct {
		name, cacheControl string
		after              []Exchange // one second apart
		looks              int32      // requests for the card besides the first
	}{
		{"a message", "no-cache", []Exchange{{Op: "send", Status: 200}}, 1},
		{"a stream", "max-age=0", []Exchange{{Op: "stream", Status: 200}}, 1},
		{"each second", "no-cache", []Exchange{{Op: "send", Status: 200}, {Op: "send", Status: 200}, {Op: "send", Status: 200}}, 3},
		{"a fresh card", "max-age=600", []Exchange{{Op: "send", Status: 200}}, 0},
		{"a card without a word", "", []Exchange{{Op: "send", Status: 200}}, 0},
		{"a look at a task", "no-cache", []Exchange{{Op: "get", Status: 200}}, 0},
		{"a failure", "no-cache", []Exchange{{Op: "send", Status: 500, Cause: CauseHTTP}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var looks, changes atomic.Int32
				var version atomic.Int32
				a := memoryAgent(t, AgentConfig{OnChange: func() { changes.Add(1) }}, func(w http.ResponseWriter, r *http.Request) {
					looks.Add(1)
					etag := fmt.Sprintf("%q", fmt.Sprint(version.Load()))
					w.Header().Set("ETag", etag)
					if tt.cacheControl != "" {
						w.Header().Set("Cache-Control", tt.cacheControl)
					}
					if r.Header.Get("If-None-Match") == etag {
						w.WriteHeader(http.StatusNotModified)
						return
					}
					serveCard(worked)(w, r)
				})
				stop := running(t, a)
				time.Sleep(2 * time.Second)
				for _, x := range tt.after {
					a.observe(x)
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if n := looks.Load() - 1; n != tt.looks {
					t.Errorf("%d requests for the card after the work, want %d", n, tt.looks)
				}
				if n := changes.Load(); n != 1 {
					t.Errorf("an unchanged card made %d changes", n)
				}
				stop()
				a.Close()
			})
		})
	}
}

// TestRecheck: who asks for it has the card read again at once, a fresh one and
// that of an agent in trouble alike.
func TestRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		var broken atomic.Bool
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, r *http.Request) {
			looks.Add(1)
			if broken.Load() {
				w.WriteHeader(http.StatusNotImplemented)
				return
			}
			w.Header().Set("Cache-Control", "max-age=3600")
			serveCard("http://agent.test/rpc")(w, r)
		})
		stop := running(t, a)
		synctest.Wait()
		for i := range 10 {
			broken.Store(i < 9)
			before := looks.Load()
			a.Recheck()
			synctest.Wait()
			if n := looks.Load() - before; n != 1 {
				t.Errorf("look %d: %d requests for the card", i+1, n)
			}
		}
		if notes := a.Status().Notes; len(notes) > 0 {
			t.Errorf("notes %q", notes)
		}
		stop()
		a.Close()
	})
}

// TestRecheckDuringALook: a look that has begun before somebody asks may have
// the old card, so another one follows.
func TestRecheckDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var url atomic.Value
		url.Store("http://agent.test/one")
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=3600")
			serveCard(url.Load().(string))(w, r)
			time.Sleep(300 * time.Millisecond) // the answer is made, and on its way
		})
		stop := running(t, a)
		time.Sleep(time.Second)
		a.Recheck()
		time.Sleep(100 * time.Millisecond) // in the middle of that look
		url.Store("http://agent.test/two")
		a.Recheck()
		time.Sleep(time.Second)
		if got := a.Status().URL; got != "http://agent.test/two" {
			t.Errorf("the interface is %s", got)
		}
		stop()
		a.Close()
	})
}

// TestManyMessagesRevisitOnce: however busy an agent is, its card is asked for
// twice a second at most.
func TestManyMessagesRevisitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, r *http.Request) {
			looks.Add(1)
			w.Header().Set("Cache-Control", "no-cache")
			serveCard("http://agent.test/rpc")(w, r)
		})
		stop := running(t, a)
		time.Sleep(2 * time.Second)
		for range 1000 {
			a.observe(Exchange{Op: "send", Status: 200})
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if n := looks.Load() - 1; n < 18 || n > 21 {
			t.Errorf("%d requests for the card in ten seconds, want two a second", n)
		}
		stop()
		a.Close()
	})
}

// TestWorkShowsANewCard: what the agent changed of its card by its work is
// known within two seconds, however long the next look was off.
func TestWorkShowsANewCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var url atomic.Value
		url.Store("http://agent.test/one")
		changed := make(chan struct{}, 8)
		a := memoryAgent(t, AgentConfig{OnChange: func() { changed <- struct{}{} }}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-cache")
			serveCard(url.Load().(string))(w, r)
		})
		stop := running(t, a)
		<-changed
		url.Store("http://agent.test/two")
		began := time.Now()
		a.observe(Exchange{Op: "send", Status: 200})
		<-changed
		if waited := time.Since(began); waited > 2*time.Second {
			t.Errorf("the new card was known after %s", waited)
		}
		if got := a.Status().URL; got != "http://agent.test/two" {
			t.Errorf("the interface is %s", got)
		}
		stop()
		a.Close()
	})
}

// TestWorkDuringALook: work that ends while the card is being fetched may have
// come too late for that look, so another one follows.
func TestWorkDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		a := memoryAgent(t, AgentConfig{}, func(w http.ResponseWriter, r *http.Request) {
			looks.Add(1)
			w.Header().Set("Cache-Control", "no-cache")
			serveCard("http://agent.test/rpc")(w, r)
			time.Sleep(300 * time.Millisecond) // the answer is made, and on its way
		})
		stop := running(t, a)
		time.Sleep(2 * time.Second)
		a.observe(Exchange{Op: "send", Status: 200})
		time.Sleep(100 * time.Millisecond) // in the middle of the look
		a.observe(Exchange{Op: "send", Status: 200})
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if n := looks.Load() - 1; n != 2 {
			t.Errorf("%d looks, want one after each piece of work", n)
		}
		stop()
		a.Close()
	})
}
