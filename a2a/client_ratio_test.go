package a2a

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// comparison is one operation of an Agent's Client beside what a plain POST and
// json.Unmarshal do over the same wire.
type comparison struct {
	name          string
	aim           float64 // how much more the client may cost
	plain, client func()
}

// comparisons are the three of the bench gate (checklist 65). The client is the
// one of an Agent, with its transport and policies.
func comparisons(tb testing.TB) []comparison {
	tb.Helper()
	var stream bytes.Buffer
	event := func(result string) {
		fmt.Fprintf(&stream, "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":%s}\n\n", result)
	}
	event(taskWorking)
	for range 199 {
		event(`{"artifactUpdate":{"taskId":"t1","contextId":"c1","append":true,"artifact":{"artifactId":"a1","name":"answer","parts":[{"text":"some words of the answer that comes piece by piece, "}]}}}`)
	}
	event(statusDone)
	answers := map[string][]byte{
		"/small":  []byte(`{"jsonrpc":"2.0","id":null,"result":` + smallMessage + `}`),
		"/large":  []byte(`{"jsonrpc":"2.0","id":null,"result":` + largeTask() + `}`),
		"/stream": stream.Bytes(),
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			path := strings.TrimSuffix(r.URL.Path, current)
			w.Header().Set("Cache-Control", "max-age=3600")
			serveCard("http://"+r.Host+path)(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[r.URL.Path == "/stream"])
		_, _ = w.Write(answers[r.URL.Path])
	}))
	tb.Cleanup(srv.Close)
	client := func(path string) *Client {
		a, err := NewAgent(AgentConfig{Alias: "bench", URL: srv.URL + path})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(a.Close)
		c, err := a.Client(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		return c
	}
	send := func(c *Client) func() {
		return func() {
			if _, err := c.Send(tb.Context(), hello()); err != nil {
				tb.Fatal(err)
			}
		}
	}
	streamed := client("/stream")
	return []comparison{
		{"small send", 1.2, func() { plainSend(tb, srv.Client(), srv.URL+"/small") }, send(client("/small"))},
		{"52 KB task", 1.5, func() { plainSend(tb, srv.Client(), srv.URL+"/large") }, send(client("/large"))},
		{"201 events", 1.5, func() { plainStream(tb, srv.Client(), srv.URL+"/stream") }, func() {
			s, err := streamed.Stream(tb.Context(), hello())
			if err != nil {
				tb.Fatal(err)
			}
			defer s.Close()
			for n := 0; ; n++ {
				if _, err := s.Next(); err == io.EOF && n == 201 {
					return
				} else if err != nil {
					tb.Fatalf("event %d: %v", n, err)
				}
			}
		}},
	}
}

// plainStream reads a stream of 201 events by lines.
func plainStream(tb testing.TB, client *http.Client, url string) {
	tb.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	n := 0
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var reply bareReply
		if err := json.Unmarshal(data, &reply); err != nil {
			tb.Fatal(err)
		}
		n++
	}
	if n != 201 {
		tb.Fatalf("%d events", n)
	}
}

// BenchmarkRatio prints how much more the client costs than the plain side, in
// CPU time of the process, both sides in turns of one run: the median over many
// turns holds on a busy machine.
func BenchmarkRatio(b *testing.B) {
	for _, c := range comparisons(b) {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			const turn = 20
			cost := func(do func()) float64 {
				began := cpuTime()
				for range turn {
					do()
				}
				return float64(cpuTime()-began) / turn
			}
			cost(c.plain)
			cost(c.client)
			var plain, client []float64
			for b.Loop() {
				plain = append(plain, cost(c.plain))
				client = append(client, cost(c.client))
			}
			slices.Sort(plain)
			slices.Sort(client)
			middle := len(plain) / 2
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(plain[middle]/1e3, "plain-us")
			b.ReportMetric(client[middle]/1e3, "client-us")
			b.ReportMetric(client[middle]/plain[middle], "ratio")
			b.ReportMetric(c.aim, "aim")
		})
	}
	in := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
	b.Run("drip_of_1_MB", func(b *testing.B) {
		for b.Loop() {
			began := cpuTime()
			if _, err := readEvents(iotest.OneByteReader(strings.NewReader(in)), 8<<20); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(cpuTime()-began)/float64(time.Second), "cpu-s")
		}
	})
}

// TestAllocations is the part of the bench gate that no busy machine can upset:
// the client allocates no more than it may cost (checklist 65).
func TestAllocations(t *testing.T) {
	if raceSlowdown > 1 {
		t.Skip("the race detector allocates")
	}
	for _, c := range comparisons(t) {
		plain, client := testing.AllocsPerRun(50, c.plain), testing.AllocsPerRun(50, c.client)
		if client > plain*c.aim {
			t.Errorf("%s: %v allocations, %v plain, aim %v", c.name, client, plain, c.aim)
		}
		t.Logf("%s: %v allocations, %v plain: %.2f", c.name, client, plain, client/plain)
	}
}
