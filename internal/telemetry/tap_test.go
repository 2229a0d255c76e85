package telemetry

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const (
	bearerToken = "s3cr3t-bearer-token"
	apiKey      = "k3y-with-\"quote\"/slash"
	queryKey    = "qu3ry-key-value"
	password    = "p4ssw0rd!"
	contents    = "the quick brown fox"
)

// lockedBuffer is written by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tapClient is a client with a tap at a level, and what it logs.
func tapClient(t *testing.T, level slog.Level) (*http.Client, *lockedBuffer) {
	t.Helper()
	out := &lockedBuffer{}
	levels := NewLevels(slog.LevelInfo)
	levels.Set(KindAgents, level)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	tap := Tap{Log: OfKind(NewLogger(out, false, levels), KindAgents)}
	return &http.Client{Transport: tap.Around("billing", base)}, out
}

// gossip is an agent that repeats every secret it is told.
func gossip(t *testing.T, events bool) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","result":{"kind":"message","role":"ROLE_AGENT","parts":[{"text":%q},{"text":%q},{"text":%q},{"text":%q}],"access_token":"other-token"}}`,
			contents, "you sent "+r.Header.Get("Authorization"), r.Header.Get("X-Custom"), r.URL.RawQuery+" "+password)
		if !events {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{"event: message\ndata: ", body[:40], body[40:] + "\n", "\n: comment\n\n", "data: " + body + "\r\n\r\n"} {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

func ask(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/rpc?key="+queryKey,
		strings.NewReader(`{"jsonrpc":"2.0","method":"SendMessage","params":{"message":{"role":"ROLE_USER","parts":[{"text":"`+contents+`"}]},"password":"x1y2"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+bearerToken)
	req.Header.Set("X-Custom", apiKey)
	req.Header.Add("X-Basic", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:"+password)))
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestTapLevels: each debug level shows what it says, contents only at the
// last one, and a credential at none.
func TestTapLevels(t *testing.T) {
	t.Parallel()
	for _, events := range []bool{false, true} {
		srv := gossip(t, events)
		for n := range 6 {
			c, out := tapClient(t, LevelFromDebug(n))
			body := ask(t, c, srv.URL)
			if !strings.Contains(body, contents) || !strings.Contains(body, bearerToken) {
				t.Fatalf("the tap changed the answer: %s", body)
			}
			log := out.String()
			for _, secret := range []string{bearerToken, apiKey, "k3y-with", queryKey, password, "other-token", "x1y2"} {
				if strings.Contains(log, secret) {
					t.Errorf("events %v, level %d: the secret %q is in the log:\n%s", events, n, secret, log)
				}
			}
			if has := strings.Contains(log, contents); has != (n == 5) {
				t.Errorf("events %v, level %d: contents in the log: %v\n%s", events, n, has, log)
			}
			for text, from := range map[string]int{`msg="agent request" `: 2, `msg="agent answer" `: 2, "agent request body": 3, "SendMessage": 3} {
				if has := strings.Contains(log, text); has != (n >= from) {
					t.Errorf("events %v, level %d: %q in the log: %v\n%s", events, n, text, has, log)
				}
			}
			bodyFrom, what, count := 3, "agent answer body", 1
			if events {
				bodyFrom, what, count = 4, `msg="agent event"`, 2
			}
			want := 0
			if n >= bodyFrom {
				want = count
			}
			if events && n == 5 {
				want++ // the comment is raw traffic too
			}
			if got := strings.Count(log, what); got != want {
				t.Errorf("events %v, level %d: %d times %q, want %d\n%s", events, n, got, what, want, log)
			}
		}
	}
}

// TestTapHoldsBack: requests for tokens are never shown.
func TestTapHoldsBack(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"fresh","opaque":"fresh2"}`)
	}))
	t.Cleanup(srv.Close)
	c, out := tapClient(t, LevelRaw)
	resp, err := c.Post(srv.URL, "application/x-www-form-urlencoded", strings.NewReader("grant_type=client_credentials&client_secret=abc"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if out.String() != "" {
		t.Errorf("logged:\n%s", out)
	}
}

// TestTapBounds: a huge event costs bounded memory and is shown cut; what
// follows is shown again, and no secret survives the cut.
func TestTapBounds(t *testing.T) {
	t.Parallel()
	const secret = "the-secret-of-this-request"
	event := "data: " + strings.Repeat("x", tapBytes-len("data: ")-len(secret)/2) + secret + strings.Repeat("y", 3*tapBytes) + "\n\n"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, event+"data: {\"kind\":\"last\"}\n\n")
	}))
	t.Cleanup(srv.Close)
	c, out := tapClient(t, LevelRaw)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < int64(len(event)) {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	resp.Body.Close()
	log := out.String()
	if n := strings.Count(log, `msg="agent event"`); n != 2 || !strings.Contains(log, "last") || !strings.Contains(log, "cut=true") {
		t.Errorf("%d events, want the cut one and the last", n)
	}
	if strings.Contains(log, secret[:len(secret)/2]) || strings.Contains(log, secret[len(secret)/2:]) {
		t.Error("half of the secret is in the log")
	}
}

// TestTapOff: below its levels the tap allocates nothing and leaves the
// response alone.
func TestTapOff(t *testing.T) { // AllocsPerRun wants no company
	resp := &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}
	base := roundTripper(func(*http.Request) (*http.Response, error) { return resp, nil })
	tap := Tap{Log: OfKind(NewLogger(io.Discard, false, NewLevels(slog.LevelInfo)), KindAgents)}.Around("a", base)
	req := httptest.NewRequest(http.MethodGet, "http://agent.example.com/", nil)
	if n := testing.AllocsPerRun(100, func() {
		if got, err := tap.RoundTrip(req); err != nil || got != resp {
			t.Fatal(got, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestShape(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"kind":"task","status":{"state":"working"},"n":12,"ok":true,"x":null,"final":false}`: `{kind:"task" status:{state:"working"} n:number ok:bool x:null final:false}`,
		`{"parts":[{"text":"hello"},{"text":"äö"}]}`:                                           `{parts:[{text:text(5)} {text:text(4)}]}`,
		`[1,2,3,4,5,6,7,8,9,10]`:     `[number number number number number number number number and 2 more]`,
		`{"id":"a secret <script>"}`: `{id:text(17)}`,
		`{"the user's words":1}`:     `{name(16):number}`,
		`"text"`:                     `text(4)`,
		`{"a":1} {"b":2}`:            `{a:number} and more`,
		`<html>`:                     `6 bytes that are no JSON`,
		`{"a":`:                      `5 bytes that are no JSON`,
		``:                           `0 bytes that are no JSON`,
		`{"id":"` + strings.Repeat("a", 65) + `"}`: `{id:text(65)}`,
	} {
		if got := Shape([]byte(raw)); got != want {
			t.Errorf("%s\n got %s\nwant %s", raw, got, want)
		}
	}
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	if got := Shape([]byte(deep)); len(got) > 200 {
		t.Errorf("%d characters for a deep text", len(got))
	}
	wide := "{" + strings.Repeat(`"abcdefgh":1,`, 5000) + `"z":1}`
	if got := Shape([]byte(wide)); len(got) > maxShape+8 {
		t.Errorf("%d characters for a wide text", len(got))
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"token":"abc","Access_Token": "x\"y","text":"token"}`:               `{"token":"***","Access_Token": "***","text":"token"}`,
		`sent Authorization: Bearer abcd.efgh`:                                `sent Authorization: Bearer ***`,
		`https://x/y?api_key=abc&z=1`:                                         `https://x/y?api_key=***&z=1`,
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----": "***",
		`{"text":"nothing to hide"}`:                                          `{"text":"nothing to hide"}`,
		`say mysecretword again`:                                              `say *** again`,
	} {
		if got := string(Mask([]byte(raw), [][]byte{[]byte("mysecretword")})); got != want {
			t.Errorf("%s\n got %s\nwant %s", raw, got, want)
		}
	}
}

// FuzzShape: no input makes Shape panic, grow without bound or show a long text.
func FuzzShape(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"c"}]}`, `[[[`, `"x`, `{"id":"é"}`, "\x00", `{"":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := Shape(raw)
		if len(got) > maxShape+8 {
			t.Errorf("%d characters", len(got))
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r < 0x20 || r > 0x7e && r != '…' }) {
			t.Errorf("%q holds a strange character", got)
		}
	})
}
