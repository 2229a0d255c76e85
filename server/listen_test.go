package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"a2agate/internal/schematest"
	"a2agate/tools"
	"a2agate/translate"
)

// listening is one open listen stream in a synctest bubble.
type listening struct {
	t    *testing.T
	w    *timedWriter
	stop context.CancelFunc
	done chan struct{}
	seen int
}

const withTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

func listen(t *testing.T, s *Server, id, filter, caps string) *listening {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &listening{t: t, w: newTimedWriter(), stop: cancel, done: make(chan struct{})}
	r := modernPost(modernBodyWith(id, "subscriptions/listen", `"notifications":`+filter, metaOf(caps, ""))).WithContext(ctx)
	go func() {
		defer close(l.done)
		s.Handler().ServeHTTP(l.w, r)
	}()
	synctest.Wait()
	return l
}

// news returns what came since the last time, each checked for its tag and
// against the schema.
func (l *listening) news(id string) []timedEvent {
	l.t.Helper()
	synctest.Wait()
	events, _ := l.w.events(l.t)
	news := events[l.seen:]
	l.seen = len(events)
	for _, e := range news {
		if !strings.Contains(e.raw, `"io.modelcontextprotocol/subscriptionId":`+id) {
			l.t.Errorf("not tagged with %s: %s", id, e.raw)
		}
		if schematest.Available() {
			schematest.Message(l.t, "2026-07-28", "subscriptions/listen", []byte(e.raw))
		}
	}
	return news
}

func (l *listening) leave() {
	l.stop()
	<-l.done
}

func methodsOf(events []timedEvent) string {
	var m []string
	for _, e := range events {
		m = append(m, strings.TrimPrefix(e.msg.Method, "notifications/"))
	}
	return strings.Join(m, " ")
}

// The acknowledgement is first and lists what is honoured; then only what was
// asked for comes, once per real change (MCP
// 2026-07-28, subscriptions).
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cats := newCatalogues(basicCatalogue())
		cats.versions = map[string]string{"a2a://agents/invoice_helper/card": "1"}
		s := newServer(t, echo, func(o *Options) { o.Catalogues = cats })
		all := listen(t, s, `"listen:0"`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a2a://agents/invoice_helper/card","a2a://nowhere"],"other":true}`, "{}")
		onlyTools := listen(t, s, "7", `{"toolsListChanged":true,"promptsListChanged":false}`, "{}")
		onlyPrompts := listen(t, s, `"7"`, `{"promptsListChanged":true}`, "{}")
		empty := listen(t, s, "8", `{}`, "{}")
		for _, tt := range []struct {
			l        *listening
			id, want string
		}{
			{all, `"listen:0"`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a2a://agents/invoice_helper/card"]}`},
			{onlyTools, "7", `{"toolsListChanged":true}`},
			{onlyPrompts, `"7"`, `{"promptsListChanged":true}`},
			{empty, "8", `{}`},
		} {
			first := tt.l.news(tt.id)
			var p struct{ Notifications json.RawMessage }
			if len(first) != 1 || first[0].msg.Method != "notifications/subscriptions/acknowledged" || json.Unmarshal(first[0].msg.Params, &p) != nil || string(p.Notifications) != tt.want {
				t.Fatalf("%s: %s", tt.id, tt.l.w.all())
			}
			if h := tt.l.w.header; h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%v", h)
			}
		}
		check := func(what, wantAll, wantTools, wantPrompts string) {
			t.Helper()
			if got := methodsOf(all.news(`"listen:0"`)); got != wantAll {
				t.Errorf("%s: all: %q, want %q", what, got, wantAll)
			}
			if got := methodsOf(onlyTools.news("7")); got != wantTools {
				t.Errorf("%s: tools: %q, want %q", what, got, wantTools)
			}
			if got := methodsOf(onlyPrompts.news(`"7"`)); got != wantPrompts {
				t.Errorf("%s: prompts: %q, want %q", what, got, wantPrompts)
			}
			if got := methodsOf(empty.news("8")); got != "" {
				t.Errorf("%s: empty: %q", what, got)
			}
		}
		edit := func(change func(c *tools.Catalogue)) {
			cats.change(func(f *fakeCatalogues) {
				next := basicCatalogue()
				change(next)
				f.cats[tools.View{}] = next
			})
		}
		edit(func(*tools.Catalogue) {})
		check("nothing changed", "", "", "")
		edit(func(c *tools.Catalogue) { c.Tools[0].Description = "New." })
		check("tools", "tools/list_changed", "tools/list_changed", "")
		edit(func(c *tools.Catalogue) { c.Tools[0].Description = "New."; c.Prompts = nil })
		check("prompts", "prompts/list_changed", "", "prompts/list_changed")
		edit(func(c *tools.Catalogue) { c.Tools[0].Description = "New."; c.Prompts = nil; c.Templates = nil })
		check("templates", "resources/list_changed", "", "")
		cats.change(func(f *fakeCatalogues) { f.versions["a2a://agents/invoice_helper/card"] = "2" })
		check("content", "resources/updated", "", "")
		cats.change(func(f *fakeCatalogues) { f.versions["a2a://nowhere"] = "2" })
		check("content nobody watches", "", "", "")
		for _, l := range []*listening{all, onlyTools, onlyPrompts, empty} {
			l.leave()
		}
		if n := cats.subscribers(); n != 0 {
			t.Errorf("%d subscribers left", n)
		}
	})
}

// notifications/tasks: the present state after the acknowledgement, then every
// change, only of the caller's own tasks (tasks extension 3.5).
func TestListenToTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks()
		s := newServer(t, echo, func(o *Options) { o.Tasks = tasks })
		l := listen(t, s, "1", `{"taskIds":["tk_1","tk_2","nope"]}`, withTasks)
		first := l.news("1")
		if methodsOf(first) != "subscriptions/acknowledged tasks" || !strings.Contains(first[0].raw, `"taskIds":["tk_1"]`) || !strings.Contains(first[1].raw, `"status":"working"`) {
			t.Fatalf("%s", l.w.all())
		}
		tasks.set("tk_1", translate.TaskCompleted)
		if got := l.news("1"); methodsOf(got) != "tasks" || !strings.Contains(got[0].raw, `"status":"completed"`) {
			t.Errorf("%s", l.w.all())
		}
		l.leave()
		if len(tasks.watches) != 0 {
			t.Error("a watch is left")
		}
	})
}

func TestListenWithoutTasksExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, echo, func(o *Options) { o.Tasks, o.Prompts, o.Resources = nil, nil, nil })
		l := listen(t, s, "1", `{"taskIds":["tk_1"],"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["x"]}`, withTasks)
		if got := l.news("1"); len(got) != 1 || !strings.Contains(got[0].raw, `"notifications":{}`) {
			t.Errorf("%s", l.w.all())
		}
		l.leave()
	})
}

func TestListenKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, echo, nil)
		l := listen(t, s, "1", `{"toolsListChanged":true}`, "{}")
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		_, comments := l.w.events(t)
		if len(comments) != 4 || comments[0] != 15*time.Second {
			t.Errorf("%v", comments)
		}
		l.leave()
	})
}

// The caps, and that a place is free as soon as its client leaves: thousands
// of opened and dropped listens change nothing.
func TestListenCaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, echo, func(o *Options) {
			o.Limits.Listens, o.Limits.ListensPerPrincipal = 3, 2
			o.Authenticate = tokenAuth
		})
		open := func(token string) (*listening, bool) {
			ctx, cancel := context.WithCancel(context.Background())
			l := &listening{t: t, w: newTimedWriter(), stop: cancel, done: make(chan struct{})}
			r := modernPost(modernBody("1", "subscriptions/listen", `"notifications":{}`), "Authorization", "Bearer "+token).WithContext(ctx)
			go func() {
				defer close(l.done)
				s.Handler().ServeHTTP(l.w, r)
			}()
			synctest.Wait()
			if l.w.status == 429 {
				if !strings.Contains(l.w.all(), "limits.listens") || l.w.header.Get("Retry-After") == "" || !strings.Contains(l.w.all(), `"id":1`) {
					t.Errorf("%s", l.w.all())
				}
				cancel()
				return l, false
			}
			return l, true
		}
		a, _ := open("one")
		b, _ := open("one")
		if _, ok := open("one"); ok {
			t.Error("a third of one principal")
		}
		c, ok := open("two")
		if !ok {
			t.Error("another principal is refused")
		}
		if _, ok := open("two"); ok {
			t.Error("a fourth in all")
		}
		b.leave()
		d, ok := open("two")
		if !ok {
			t.Error("a place that is free is refused")
		}
		for _, l := range []*listening{a, c, d} {
			l.leave()
		}
		for range 3000 {
			l, ok := open("one")
			if !ok {
				t.Fatal("a place was not freed")
			}
			l.leave()
		}
		if s.listens.total != 0 || len(s.listens.of) != 0 {
			t.Errorf("%+v", s.listens.of)
		}
	})
}

// Everybody is "local" without authentication, so that principal has all.
func TestListenLocalHasAll(t *testing.T) {
	var c listenCount
	c.of = map[string]int{}
	l := Limits{Listens: 10, ListensPerPrincipal: 2}
	for range 10 {
		if !c.take(Local, l) {
			t.Fatal("refused")
		}
	}
	if c.take(Local, l) {
		t.Error("an eleventh")
	}
}

// A listen ends with its caller's authentication.
func TestListenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, echo, func(o *Options) {
			end := time.Now().Add(time.Minute)
			o.Authenticate = func(*http.Request) (Identity, *Denied) {
				return Identity{Principal: "one", Expires: end}, nil
			}
		})
		l := listen(t, s, "1", `{}`, "{}")
		<-l.done
		if d := time.Since(l.w.start); d != time.Minute {
			t.Errorf("ended after %v", d)
		}
	})
}

// A panic on a listen stream ends it with an error, not with silence.
func TestListenPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, echo, func(o *Options) { o.Tasks = panicTasks{newTasks()} })
		l := listen(t, s, "1", `{"taskIds":["tk_1"]}`, withTasks)
		<-l.done
		if !strings.Contains(l.w.all(), `"code":-32603`) {
			t.Errorf("%s", l.w.all())
		}
	})
}

// panicTasks panics when somebody watches.
type panicTasks struct{ *fakeTasks }

func (panicTasks) Watch(TaskCall, []string) TaskWatch { panic("watching") }
