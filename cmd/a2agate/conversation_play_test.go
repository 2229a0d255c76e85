package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"a2agate/fixtures"
	"a2agate/internal/schematest"
)

// conversation is a gateway with one agent, and what has been said so far.
type conversation struct {
	g       *gate
	agent   agentServer
	step    chan struct{}
	begun   atomic.Int32 // how much work has been held
	session string
	// names are the names that handles have in answers.
	names  map[string]string
	opened map[string]*openCall
	// seen is how many of the agent's requests saw has told.
	seen int
}

func newConversation(t *testing.T, options []string) *conversation {
	t.Helper()
	c := &conversation{
		step: make(chan struct{}), names: map[string]string{}, opened: map[string]*openCall{},
	}
	opt := fixtures.Options{Name: "Demo", IDPrefix: "P"}
	agent := map[string]any{}
	wait := map[string]string{"taskGrace": "0s", "firstByte": "20s", "progress": "20s"}
	cfg := map[string]any{"wait": wait}
	for _, line := range options {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "auth":
			cfg["auth"] = map[string]any{"tokens": []map[string]string{{"name": "ann", "token": "ann-token"}, {"name": "bob", "token": "bob-token"}}}
		case "handleTtlMs":
			cfg["handleTtlMs"], _ = strconv.Atoi(value)
		case "listens":
			n, _ := strconv.Atoi(value)
			cfg["limits"] = map[string]int{"listens": n}
		case "tasks":
			agent["tasks"] = value
		case "unary":
			opt.Unary = true
		case "taskGrace", "without", "withProgress":
			wait[key] = value
		case "expose":
			cfg["expose"] = strings.Fields(value)
		default:
			t.Fatalf("unknown option %q", line)
		}
	}
	c.agent = newAgentServer(t, opt)
	c.commands()
	agent["url"] = c.agent.url
	cfg["agents"] = map[string]any{"demo": agent}
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.g = newGate(t, string(raw))
	if cfg["auth"] != nil {
		c.g.token = "ann-token"
	}
	t.Cleanup(func() {
		for _, o := range c.opened {
			o.cancel()
			<-o.done
		}
	})
	until(t, "the tools know the card", func() bool {
		a, err := c.g.ask(t.Context(), "server/discover", "", "", "")
		return err == nil && strings.Contains(string(a.Result), "(Demo)")
	})
	c.g.token = ""
	return c
}

// openCall is a request whose answer is read on the side.
type openCall struct {
	messages chan string
	cancel   context.CancelFunc
	done     chan struct{}
	status   int
	sent     *sending
}

// sending is a request as a conversation has it.
type sending struct {
	modern               bool
	method, name, params string
	revision, id, until  string
	body                 []byte
	header               http.Header
}

// wire reads the first line of a request: "modern" or "legacy", and
//
//	tasks, form, url  what the request declares (initialize, on the legacy wire)
//	progress          it asks for progress
//	as NAME           whose token goes with it
//	id X              its id, raw JSON; 1 otherwise
//	session           the session id of the last initialize goes with it
//	version X         the revision in header and _meta; jsonrpc X: that version
//	until STATUS      it is sent again until the answer has that status
//	saying WORD       … until that word is in it
func (c *conversation) wire(t *testing.T, text string) *sending {
	t.Helper()
	for handle, name := range c.names {
		text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, handle)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	s := &sending{id: "1", revision: "2025-11-25", header: http.Header{}}
	s.header.Set("Content-Type", "application/json")
	s.header.Set("Accept", "application/json, text/event-stream")
	caps, elicit := []string{}, []string{}
	progress, isLegacy, rpc, version := "", false, "2.0", ""
	words := strings.Fields(lines[0])
	for i := 0; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch words[i] {
		case "modern":
			s.modern, s.revision = true, "2026-07-28"
		case "legacy":
			isLegacy = true
		case "tasks":
			caps = append(caps, tasksCapability)
		case "form", "url":
			elicit = append(elicit, `"`+words[i]+`":{}`)
		case "progress":
			progress = `"progressToken":"p",`
		case "as":
			s.header.Set("Authorization", "Bearer "+next+"-token")
			i++
		case "id":
			s.id = next
			i++
		case "until":
			s.until = `"status":"` + next + `"`
			i++
		case "saying":
			s.until = next
			i++
		case "version":
			version = next
			i++
		case "jsonrpc":
			rpc = next
			i++
		case "session":
			s.header.Set("Mcp-Session-Id", c.session)
		default:
			t.Fatalf("unknown word %q in %q", words[i], lines[0])
		}
	}
	if s.modern == isLegacy {
		t.Fatalf("modern or legacy? %q", lines[0])
	}
	if len(elicit) > 0 {
		caps = append(caps, `"elicitation":{`+strings.Join(elicit, ",")+`}`)
	}
	s.method, s.params, _ = strings.Cut(lines[len(lines)-1], " ")
	c.finish(t, s, strings.Join(caps, ","), progress)
	s.body = bytes.Replace(s.body, []byte(`"jsonrpc":"2.0"`), []byte(`"jsonrpc":"`+rpc+`"`), 1)
	if version != "" {
		s.body = bytes.ReplaceAll(s.body, []byte(s.revision), []byte(version))
		s.header.Set("MCP-Protocol-Version", version)
	}
	for _, line := range lines[1 : len(lines)-1] {
		if name, ok := strings.CutPrefix(line, "-"); ok {
			s.header.Del(name)
			continue
		}
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("%q is no header", line)
		}
		s.header.Set(name, value)
	}
	return s
}

// finish makes the body and the headers that follow from it.
func (c *conversation) finish(t *testing.T, s *sending, caps, progress string) {
	t.Helper()
	var named struct{ Name, TaskID string }
	if err := json.Unmarshal([]byte(s.params), &named); err != nil {
		t.Fatalf("params %q: %v", s.params, err)
	}
	inner := strings.TrimSuffix(s.params, "}")
	if strings.TrimSpace(inner) != "{" {
		inner += ","
	}
	switch {
	case s.modern:
		s.header.Set("MCP-Protocol-Version", s.revision)
		s.header.Set("Mcp-Method", s.method)
		if s.name = named.Name + named.TaskID; s.name != "" {
			s.header.Set("Mcp-Name", s.name)
		}
		inner += strings.Replace(meta(caps), "{", "{"+progress, 1)
	case s.method == "initialize":
		inner += `"protocolVersion":"2025-11-25","clientInfo":{"name":"t","version":"1"},"capabilities":{` + caps + `}`
	default:
		s.header.Set("MCP-Protocol-Version", s.revision)
		inner = strings.TrimSuffix(inner, ",")
	}
	switch {
	case s.id == "none":
		s.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}}`, s.method, inner)
	case s.method == "answer": // a response to the gateway's own request
		s.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, s.id, s.params)
	default:
		s.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}}`, s.id, s.method, inner)
	}
}

func (c *conversation) post(ctx context.Context, s *sending) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.g.url, bytes.NewReader(s.body))
	if err != nil {
		return nil, err
	}
	req.Header = s.header.Clone()
	return c.g.client.Do(req)
}

// ask sends a request and returns its answer in the form of the file.
func (c *conversation) ask(t *testing.T, from step) string {
	t.Helper()
	s := c.wire(t, from.text)
	ctx, cancel := context.WithTimeout(t.Context(), forever)
	defer cancel()
	var status int
	var messages []string
	once := func() bool {
		resp, err := c.post(ctx, s)
		if err != nil {
			t.Fatalf("%s: %v", from.name, err)
		}
		defer resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			c.session = id
		}
		messages = nil
		if err := eachMessage(resp, func(m string) { messages = append(messages, m) }); err != nil {
			t.Fatalf("%s: %v", from.name, err)
		}
		status = resp.StatusCode
		last := ""
		if len(messages) > 0 {
			last = messages[len(messages)-1]
		}
		return strings.Contains(last, s.until)
	}
	until(t, from.name+" until "+s.until, once)
	out := strconv.Itoa(status) + "\n"
	for _, m := range messages {
		out += c.show(t, s, m)
	}
	return out
}

// eachMessage reads the messages of an answer, a stream or not.
func eachMessage(resp *http.Response, f func(string)) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw, err := io.ReadAll(resp.Body)
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			f(string(raw))
		}
		return err
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			f(data)
		}
	}
	return lines.Err()
}

func (c *conversation) open(t *testing.T, from step) {
	t.Helper()
	s := c.wire(t, from.text)
	ctx, cancel := context.WithCancel(context.Background())
	o := &openCall{sent: s, messages: make(chan string, 1000), cancel: cancel, done: make(chan struct{})}
	c.opened[from.name] = o
	go func() {
		defer close(o.done)
		defer close(o.messages)
		resp, err := c.post(ctx, s)
		if err != nil {
			return // the client has left
		}
		defer resp.Body.Close()
		o.status = resp.StatusCode
		_ = eachMessage(resp, func(m string) { o.messages <- m }) // the end of the stream is its end
	}()
}

func (c *conversation) read(t *testing.T, name string, n int) string {
	t.Helper()
	o, out := c.opened[name], ""
	for range n {
		select {
		case m, ok := <-o.messages:
			if !ok {
				t.Fatalf("%s has ended", name)
			}
			out += c.show(t, o.sent, m)
		case <-time.After(forever):
			t.Fatalf("%s: no message", name)
		}
	}
	return out
}

func (c *conversation) end(t *testing.T, name string) string {
	t.Helper()
	o, out, progress, last := c.opened[name], "", 0.0, ""
	for {
		select {
		case m, ok := <-o.messages:
			if !ok {
				<-o.done
				if strings.Contains(last, progressMethod) {
					t.Errorf("%s ends with progress: %s", name, last)
				}
				return out + strconv.Itoa(o.status) + "\n"
			}
			last = m
			if !strings.Contains(m, progressMethod) {
				out += c.show(t, o.sent, m)
				continue
			}
			// How much of it there is depends on time, how it goes does not.
			var n struct{ Params struct{ Progress float64 } }
			if err := json.Unmarshal([]byte(m), &n); err != nil || n.Params.Progress <= progress {
				t.Errorf("%s: progress does not rise: %s", name, m)
			}
			progress = n.Params.Progress
		case <-time.After(forever):
			t.Fatalf("%s does not end", name)
		}
	}
}

const progressMethod = `"method":"notifications/progress"`

func (c *conversation) leave(name string) {
	o := c.opened[name]
	o.cancel()
	<-o.done
}

var (
	handlePattern = regexp.MustCompile(`\b(tk|cx|rs)_[a-z2-7]{26}\b|"id":"[A-Z2-7]{26}"`)
	ttlPattern    = regexp.MustCompile(`"ttlMs":[0-9]+,"poll`)
	// agentIDs are ids of the agent's as values; its texts may quote them.
	agentIDs = regexp.MustCompile(`[^\\]"(task|context)-P-`)
	// varying is what differs from run to run beside the handles.
	varying = []struct {
		pattern *regexp.Regexp
		name    string
	}{
		{regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"`), `"TIME"`},
		{regexp.MustCompile(`\bmessage-P-[0-9]+`), "MESSAGE"},
		{regexp.MustCompile(`\btask-P-[0-9]+`), "TASK"},
		{regexp.MustCompile(`\([0-9]+s\)`), "(TIME)"},
		{regexp.MustCompile(`\b127\.0\.0\.1:[0-9]+`), "AGENT"},
		{regexp.MustCompile(`"requestId":"[a-z2-7]{6}-[0-9a-z]+"`), `"requestId":"REQUEST"`},
	}
)

// dayMs is the ttl of work that goes on; it grows with each use of the handle.
const dayMs = 86400000

// show checks a message against its schema and takes out of it what differs
// from run to run.
func (c *conversation) show(t *testing.T, s *sending, m string) string {
	t.Helper()
	if schematest.Available() && s.method != "answer" {
		schematest.Message(t, s.revision, s.method, []byte(m))
	}
	if agentIDs.MatchString(m) || strings.Contains(m, c.agent.url) {
		t.Errorf("an id or the address of the agent shows: %s", m)
	}
	m = handlePattern.ReplaceAllStringFunc(m, func(h string) string {
		if rest, ok := strings.CutPrefix(h, `"id":`); ok {
			return `"id":"` + c.nameOf(strings.Trim(rest, `"`), "ASK") + `"`
		}
		return c.nameOf(h, map[string]string{"tk": "TASK", "cx": "CONTEXT", "rs": "STATE"}[h[:2]])
	})
	m = ttlPattern.ReplaceAllStringFunc(m, func(ttl string) string {
		if ms, _ := strconv.Atoi(strings.Trim(ttl, `"tlMs:,po`)); ms >= dayMs && ms < dayMs+int(forever/time.Millisecond) {
			return `"ttlMs":DAY,"poll`
		}
		return `"ttlMs":TTL,"poll`
	})
	for _, v := range varying {
		m = v.pattern.ReplaceAllString(m, v.name)
	}
	return m + "\n"
}

func (c *conversation) nameOf(handle, kind string) string {
	if name := c.names[handle]; name != "" {
		return name
	}
	n := 1
	for _, name := range c.names {
		if strings.HasPrefix(name, kind) {
			n++
		}
	}
	c.names[handle] = kind + strconv.Itoa(n)
	return c.names[handle]
}
