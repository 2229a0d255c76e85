package translate

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"a2agate/a2a"
)

// wireBody answers every request with the same bytes.
type wireBody []byte

func (b wireBody) RoundTrip(req *http.Request) (*http.Response, error) {
	kind := "application/json"
	if bytes.HasPrefix(b, []byte("data:")) {
		kind = "text/event-stream"
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(b)), Request: req,
	}, nil
}

// FuzzWire: whatever an agent's bytes are taken for by the A2A client, on either
// version and binding, streamed or not, renders as a result that every
// revision's schema takes; and so does the error where they are taken for none.
func FuzzWire(f *testing.F) {
	answers, err := filepath.Glob("../a2a/testdata/answers/*.json")
	if err != nil || len(answers) < 10 {
		f.Fatalf("%d answers, %v", len(answers), err)
	}
	for i, name := range answers {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, uint8(i))
		f.Add(append([]byte("data: "), raw...), uint8(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, way uint8) {
		in := a2a.Interface{URL: "http://agent.test/a2a", Version: a2a.V10, Binding: a2a.JSONRPC}
		if way&1 != 0 {
			in.Version = a2a.V03
		}
		if way&2 != 0 {
			in.Binding = a2a.REST
		}
		client, err := a2a.NewClient(a2a.ClientOptions{
			Alias: "x", Interfaces: []a2a.Interface{in}, HTTP: &http.Client{Transport: wireBody(body)}, Streaming: true,
			Limits: a2a.Limits{ReplyBytes: 1 << 20, EventBytes: 1 << 20, StreamBytes: 1 << 20}, Timeouts: a2a.Timeouts{StreamIdle: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		req := a2a.SendRequest{Message: a2a.Message{MessageID: "m", Role: a2a.RoleUser, Parts: []a2a.Part{{Kind: a2a.PartText, Text: "x"}}}}
		agg := a2a.NewAggregate(0)
		if way&4 != 0 {
			s, e := client.Stream(t.Context(), req)
			for err = e; err == nil; {
				var ev a2a.Event
				if ev, err = s.Next(); err == nil {
					err = agg.Add(ev)
				}
			}
			if e == nil {
				s.Close()
			}
		} else if ev, e := client.Send(t.Context(), req); e == nil {
			err = agg.Add(ev)
		} else {
			err = e
		}
		o := Options{Agent: "x", Title: "X", Handles: Handles{Context: "cx_1", Task: "tk_1"}, ResultChars: 400, MediaBytes: 200, HistoryLength: AllHistory}
		var results []Result
		if task := agg.Task(); task != nil {
			results = append(results, ResultFromTask(task, o))
		}
		if m := agg.Message(); m != nil {
			results = append(results, ResultFromMessage(m, o))
		}
		var coded *a2a.Error
		if errors.As(err, &coded) {
			results = append(results, ResultFromError(coded, o))
		}
		if len(results) == 0 && !errors.Is(err, io.EOF) {
			t.Fatalf("neither an answer nor an error: %v", err)
		}
		for _, r := range results {
			for _, rev := range revisions {
				checkResult(t, AppendResult(nil, r, rev, serverInfo), rev)
			}
		}
	})
}
