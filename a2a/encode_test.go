package a2a

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fullRequest uses every field of a SendRequest.
func fullRequest() SendRequest {
	zero := 0
	return SendRequest{
		Message: Message{
			MessageID: "m-1", ContextID: "c-1", TaskID: "t-1", Role: RoleUser,
			Parts: []Part{
				{Kind: PartText, Text: "say \"hi\"\n<b>\u2028\x01", MediaType: "text/plain", Metadata: json.RawMessage(`{"m": 1}`)},
				{Kind: PartData, Data: json.RawMessage(`{"n":9007199254740993, "a":[null]}`)},
				{Kind: PartData, Data: json.RawMessage(`[1, "two"]`)},
				{Kind: PartURL, URL: "https://files.example/a.png", Filename: "a.png", MediaType: "image/png"},
				{Kind: PartRaw, Base64: "aGVsbG8=", Filename: "h.bin", MediaType: "application/octet-stream"},
			},
			Metadata: json.RawMessage(`{"who":"me"}`), Extensions: []string{"urn:x"}, ReferenceTaskIDs: []string{"t-0"},
		},
		AcceptedOutputModes: []string{"text/plain", "image/*"},
		HistoryLength:       &zero,
		ReturnImmediately:   true,
		Metadata:            json.RawMessage(`{"req":true}`),
		Trace:               Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "k=v"},
	}
}

// Every request in every version and binding, with the headers that the
// protocol asks for: version, extensions, media types, tenant (specification
// 1.0.1, 3.2.6, 5.3, 9, 11; 0.3.0, 3.5 and 7).
func TestRequestsGolden(t *testing.T) {
	three := 3
	minimal := SendRequest{Message: Message{MessageID: "m-2", Parts: []Part{{Kind: PartText, Text: ""}}}}
	ops := []struct {
		name string
		do   func(*Client, *testing.T)
	}{
		{"send", func(c *Client, t *testing.T) { _, _ = c.Send(testContext(t), fullRequest()) }},
		{"send_minimal", func(c *Client, t *testing.T) { _, _ = c.Send(testContext(t), minimal) }},
		{"stream", func(c *Client, t *testing.T) { closeStream(c.Stream(testContext(t), minimal)) }},
		{"get", func(c *Client, t *testing.T) { _, _ = c.GetTask(testContext(t), "t-1", &three) }},
		{"get_plain", func(c *Client, t *testing.T) { _, _ = c.GetTask(testContext(t), "t-1", nil) }},
		{"cancel", func(c *Client, t *testing.T) { _, _ = c.CancelTask(testContext(t), "t-1") }},
		{"subscribe", func(c *Client, t *testing.T) { closeStream(c.Subscribe(testContext(t), "t-1")) }},
		{"list", func(c *Client, t *testing.T) {
			_, _ = c.ListTasks(testContext(t), ListRequest{ContextID: "c 1", Status: StateWorking, PageSize: 10, PageToken: "p&q", HistoryLength: new(int), StatusTimestampAfter: "2026-01-02T03:04:05Z", IncludeArtifacts: true})
		}},
		{"card", func(c *Client, t *testing.T) { _, _ = c.ExtendedCard(testContext(t)) }},
		{"query", func(c *Client, t *testing.T) {
			_, _ = c.Query(testContext(t), "x/custom", json.RawMessage(`{"a": [1]}`))
		}},
	}
	for _, in := range []struct {
		file string
		Interface
	}{
		{"rpc10", Interface{Version: V10, Binding: JSONRPC, Tenant: "team/1"}},
		{"rest10", Interface{Version: V10, Binding: REST, Tenant: "team/1"}},
		{"rpc10_plain", Interface{Version: V10, Binding: JSONRPC}},
		{"rest10_plain", Interface{Version: V10, Binding: REST}},
		{"rpc03", Interface{Version: V03, Binding: JSONRPC, Tenant: "team/1"}},
		{"rest03", Interface{Version: V03, Binding: REST, Tenant: "team/1"}},
	} {
		t.Run(in.file, func(t *testing.T) {
			var out bytes.Buffer
			for _, op := range ops {
				rec := &recorder{}
				in := in.Interface
				in.URL = "https://agent.example/a2a"
				o := ClientOptions{Alias: "alpha", Interfaces: []Interface{in}, HTTP: &http.Client{Transport: rec}}
				if in.Tenant != "" {
					o.Extensions = []string{"urn:ext:one", "urn:ext:two"}
				}
				c, err := NewClient(o)
				if err != nil {
					t.Fatal(err)
				}
				op.do(c, t)
				fmt.Fprintf(&out, "== %s\n", op.name)
				if len(rec.seen) == 0 {
					fmt.Fprintln(&out, "(no request)")
				}
				for _, r := range rec.seen {
					out.WriteString(r)
				}
			}
			golden(t, filepath.Join("testdata", "requests", in.file+".golden"), out.Bytes())
		})
	}
}

func closeStream(s EventStream, err error) {
	if err == nil {
		s.Close()
	}
}

// recorder answers nothing and keeps what it was asked, as text.
type recorder struct{ seen []string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", req.Method, req.URL)
	names := make([]string, 0, len(req.Header))
	for name := range req.Header {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(req.Header[name], " | "))
	}
	if req.Body != nil {
		var body bytes.Buffer
		_, _ = body.ReadFrom(req.Body)
		if !json.Valid(body.Bytes()) {
			b.WriteString("INVALID JSON ")
		}
		b.Write(body.Bytes())
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	r.seen = append(r.seen, b.String())
	return &http.Response{StatusCode: 403, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (run with -update to accept):\n%s", file, got)
	}
}

// Task ids and tenants cannot name another path (specification 1.0.1, 11.3).
func TestRESTEscaping(t *testing.T) {
	for id, path := range map[string]string{
		"a/b":        "/a2a/tasks/a%2Fb",
		"a?b":        "/a2a/tasks/a%3Fb",
		"a#b":        "/a2a/tasks/a%23b",
		"a%2Fb":      "/a2a/tasks/a%252Fb",
		"a:cancel":   "/a2a/tasks/a%3Acancel",
		"../x":       "/a2a/tasks/..%2Fx",
		"ü ß":        "/a2a/tasks/%C3%BC%20%C3%9F",
		"...":        "/a2a/tasks/...",
		"a b;c,d&e=": "/a2a/tasks/a%20b%3Bc%2Cd&e=",
	} {
		agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { fmt.Fprint(w, bareCompleted) })
		if _, err := agent.client(V10, REST).GetTask(testContext(t), id, nil); err != nil {
			t.Fatal(err)
		}
		if got := agent.requests()[0].URI; got != path {
			t.Errorf("id %q: path %s, want %s", id, got, path)
		}
	}
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { fmt.Fprint(w, bareCompleted) })
	for _, id := range []string{"", ".", ".."} {
		for _, op := range []func(*Client) error{
			func(c *Client) error { _, err := c.GetTask(testContext(t), id, nil); return err },
			func(c *Client) error { _, err := c.CancelTask(testContext(t), id); return err },
			func(c *Client) error { _, err := c.Subscribe(testContext(t), id); return err },
		} {
			e := wantError(t, op(agent.client(V10, REST)), CauseInvalid)
			if !e.Unsent {
				t.Error("not marked unsent")
			}
		}
	}
	if n := len(agent.requests()); n != 0 {
		t.Errorf("%d requests were sent for ids that are none", n)
	}
}

// The interface's address stays as the card has it (specification 1.0.1, 8.3).
func TestRequestURLs(t *testing.T) {
	tests := []struct {
		url  string
		v    Version
		b    Binding
		flip bool
		want string
	}{
		{"https://h/a2a", V10, JSONRPC, false, "https://h/a2a"},
		{"https://h/a2a/", V10, JSONRPC, false, "https://h/a2a/"},
		{"https://h/a2a/?k=v", V10, JSONRPC, false, "https://h/a2a/?k=v"},
		{"https://h", V10, JSONRPC, false, "https://h"},
		{"https://h/a2a", V10, REST, false, "https://h/a2a/message:send"},
		{"https://h/a2a/", V10, REST, false, "https://h/a2a/message:send"},
		{"https://h/a2a?k=v", V10, REST, false, "https://h/a2a/message:send?k=v"},
		{"https://h/a2a/message:send", V10, REST, false, "https://h/a2a/message:send"},
		{"https://h/a2a/v1/message:stream", V10, REST, false, "https://h/a2a/v1/message:send"},
		{"https://h/.well-known/agent-card.json", V10, REST, false, "https://h/message:send"},
		{"https://h/a2a", V10, REST, true, "https://h/a2a/v1/message:send"},
		{"https://h/a2a/v1", V10, REST, true, "https://h/a2a/message:send"},
		{"https://h/a2a", V03, REST, false, "https://h/a2a/v1/message:send"},
		{"https://h/a2a/v1", V03, REST, false, "https://h/a2a/v1/message:send"},
		{"https://h/a2a/v1/message:send", V03, REST, false, "https://h/a2a/v1/message:send"},
		{"https://h/a2a", V03, REST, true, "https://h/a2a/message:send"},
		{"https://h/a2a/v1", V03, REST, true, "https://h/a2a/message:send"},
	}
	req := hello()
	for _, tt := range tests {
		r := &route{Interface: Interface{URL: tt.url, Version: tt.v, Binding: tt.b}, FlipV1: tt.flip}
		w, err := r.restRequest(&operation{kind: opSend, send: &req})
		if tt.b == JSONRPC {
			w, err = r.rpcRequest(&operation{kind: opSend, send: &req}, "1")
		}
		if err != nil {
			t.Fatal(err)
		}
		if w.url != tt.want {
			t.Errorf("%s %s %s flip %v: %s, want %s", tt.url, tt.v, tt.b, tt.flip, w.url, tt.want)
		}
	}
}

// What cannot be sent is refused with the field's name, before a request.
func TestSendRefuses(t *testing.T) {
	text := []Part{{Kind: PartText, Text: "x"}}
	tests := []struct {
		name string
		req  SendRequest
		want string
	}{
		{"no id", SendRequest{Message: Message{Parts: text}}, "messageId"},
		{"no parts", SendRequest{Message: Message{MessageID: "m"}}, "no parts"},
		{"bad data", SendRequest{Message: Message{MessageID: "m", Parts: []Part{{Kind: PartText}, {Kind: PartData, Data: json.RawMessage(`{`)}}}}, "part 1: data"},
		{"no data", SendRequest{Message: Message{MessageID: "m", Parts: []Part{{Kind: PartData}}}}, "part 0: data"},
		{"no url", SendRequest{Message: Message{MessageID: "m", Parts: []Part{{Kind: PartURL}}}}, "part 0: url"},
		{"bad bytes", SendRequest{Message: Message{MessageID: "m", Parts: []Part{{Kind: PartRaw, Base64: "?"}}}}, "part 0: bytes"},
		{"unknown", SendRequest{Message: Message{MessageID: "m", Parts: []Part{{}}}}, "part 0"},
		{"part metadata", SendRequest{Message: Message{MessageID: "m", Parts: []Part{{Kind: PartText, Metadata: json.RawMessage(`1`)}}}}, "part 0: metadata"},
		{"metadata", SendRequest{Metadata: json.RawMessage(`[]`), Message: Message{MessageID: "m", Parts: text}}, "request metadata"},
		{"message metadata", SendRequest{Message: Message{MessageID: "m", Parts: text, Metadata: json.RawMessage(`{,}`)}}, "message metadata"},
	}
	agent := newScriptedAgent(t, func(w http.ResponseWriter, r seenRequest) { reply(w, r, taskCompleted) })
	c := agent.client(V10, JSONRPC)
	for _, tt := range tests {
		_, err := c.Send(testContext(t), tt.req)
		e := wantError(t, err, CauseInvalid)
		if !strings.Contains(e.Message, tt.want) || !e.Unsent {
			t.Errorf("%s: %q, unsent %v", tt.name, e.Message, e.Unsent)
		}
		if _, err := c.Stream(testContext(t), tt.req); err == nil {
			t.Errorf("%s: Stream takes it", tt.name)
		}
	}
	for _, params := range []string{`1`, `{`, `"x"`} {
		_, err := c.Query(testContext(t), "m", json.RawMessage(params))
		wantError(t, err, CauseInvalid)
	}
	if n := len(agent.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// Message ids are UUIDs, a new one each time (RFC 9562, 5.4).
func TestNewMessageID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewMessageID()
		if len(id) != 36 || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
			t.Fatalf("not a version 4 UUID: %s", id)
		}
		if seen[id] {
			t.Fatalf("twice: %s", id)
		}
		seen[id] = true
	}
}

// Quoting is JSON and keeps the text.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "\"\\\n\r\t\x00\x1f", "\u2028ü😀", "\xff\xc0x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		if err := json.Unmarshal(appendQuoted(nil, s), &back); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); utf8.ValidString(s) && back != want {
			t.Fatalf("%q became %q", s, back)
		}
	})
}
