package server

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/tools"
)

// New settings are in force for the next request: hosts, origins, sizes and
// rates; wrong ones change nothing.
func TestReconfigure(t *testing.T) {
	s := newServer(t, echo, nil)
	status := func(host, origin, body string) int {
		r := modernPost(body)
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		return do(s, r).Code
	}
	list, call := modernBody("1", "tools/list", ""), modernBody("1", "tools/call", callTool)
	check := func(what string, host, origin, large, second int) {
		t.Helper()
		got := [4]int{status("gw.acme.test", "", list), status("localhost", "https://app.example.com", list),
			status("localhost", "", strings.Replace(list, "{", "{"+strings.Repeat(" ", 10_000), 1)), 0}
		status("localhost", "", call)
		got[3] = status("localhost", "", call)
		if want := [4]int{host, origin, large, second}; got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	apply := func(set Settings) {
		t.Helper()
		if err := s.Reconfigure(set); err != nil {
			t.Fatal(err)
		}
	}
	check("as made", 421, 403, 200, 200)
	tight := Settings{
		Guard:  GuardOptions{AllowedHosts: []string{"gw.acme.test"}, AllowedOrigins: []string{"https://app.example.com"}},
		Limits: Limits{BodyBytes: 5000, CallsPerSecond: 0.01},
	}
	apply(tight)
	check("reconfigured", 200, 200, 413, 429)
	err := s.Reconfigure(Settings{Guard: GuardOptions{AllowedHosts: []string{"a b"}}})
	if err == nil || !strings.Contains(err.Error(), `allowedHosts[0]: "a b"`) {
		t.Errorf("%v", err)
	}
	check("after wrong settings", 200, 200, 413, 429)
	tight.Limits.CallsPerSecond = 1000
	apply(tight)
	check("another rate", 200, 200, 413, 200)
	apply(Settings{})
	check("back again", 421, 403, 200, 200)
}

// A rate that begins while calls run counts from then on, and what runs is let
// go of once.
func TestMeterChangesItsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meter{of: map[string]*meterEntry{}}
		take := func(l Limits) bool { _, ok := m.take("a", l); return ok }
		none, one, rated := Limits{}, Limits{ConcurrentCalls: 1}, Limits{CallsPerSecond: 2}
		for i, tt := range []struct {
			l    Limits
			want bool
		}{{one, true}, {one, false}, {none, true}, {rated, true}, {rated, true}, {rated, false}, {none, true}, {one, false}} {
			if got := take(tt.l); got != tt.want {
				t.Errorf("%d: %+v: %t", i, tt.l, got)
			}
		}
		for range 5 {
			m.release("a")
		}
		time.Sleep(2 * time.Minute)
		m.forget(time.Now())
		if len(m.of) != 0 {
			t.Errorf("%+v", m.of["a"])
		}
	})
}

// A listen ends when its caller is let in no more, or is shown something else.
func TestListenRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		revoked := make(chan struct{})
		s := newServer(t, echo, func(o *Options) {
			o.Authenticate = func(*http.Request) (Identity, *Denied) {
				return Identity{Principal: "one", Revoked: revoked}, nil
			}
		})
		l := listen(t, s, "1", `{"toolsListChanged":true}`, "{}")
		time.Sleep(time.Minute)
		select {
		case <-l.done:
			t.Error("it has ended before")
		default:
		}
		close(revoked)
		<-l.done
		late := listen(t, s, "2", `{"toolsListChanged":true}`, "{}") // let in just before
		<-late.done
		if n := s.Counts().Listens; n != 0 {
			t.Errorf("%d are counted", n)
		}
	})
}

// What has changed by the time that a caller is let in no more is not for that
// caller.
func TestListenRevokedHearsOfNothing(t *testing.T) {
	for range 30 {
		cats := newCatalogues(basicCatalogue())
		s := newServer(t, echo, func(o *Options) { o.Catalogues = cats })
		revoked := make(chan struct{})
		l := &listener{c: s.core, req: &Request{Envelope: &Envelope{}}, filter: listenFilter{tools: true}, revoked: revoked}
		var heard []string
		l.run(t.Context(), nil, time.Hour, func(msg []byte) error {
			if heard = append(heard, string(msg)); len(heard) == 1 {
				cats.change(func(f *fakeCatalogues) {
					next := basicCatalogue()
					next.Tools = next.Tools[:1]
					f.cats[tools.View{}] = next
				})
				close(revoked)
			}
			return nil
		})
		if len(heard) != 1 {
			t.Fatalf("after the acknowledgement it heard of %q", heard[1:])
		}
	}
}
