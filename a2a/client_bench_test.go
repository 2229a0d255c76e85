package a2a

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The plain side of each comparison: what a client without leniency, limits or
// versions would do. Its structs keep raw data as ours do.
type barePart struct {
	Text      *string         `json:"text"`
	Data      json.RawMessage `json:"data"`
	MediaType string          `json:"mediaType"`
	Metadata  json.RawMessage `json:"metadata"`
}

type bareMessage struct {
	MessageID string     `json:"messageId"`
	Role      string     `json:"role"`
	Parts     []barePart `json:"parts"`
}

type bareArtifact struct {
	ArtifactID string          `json:"artifactId"`
	Name       string          `json:"name"`
	Parts      []barePart      `json:"parts"`
	Metadata   json.RawMessage `json:"metadata"`
}

type bareStatus struct {
	State     string       `json:"state"`
	Message   *bareMessage `json:"message"`
	Timestamp string       `json:"timestamp"`
}

type bareTask struct {
	ID        string         `json:"id"`
	ContextID string         `json:"contextId"`
	Status    bareStatus     `json:"status"`
	Artifacts []bareArtifact `json:"artifacts"`
	History   []bareMessage  `json:"history"`
}

type bareReply struct {
	ID     string `json:"id"`
	Result struct {
		Task           *bareTask    `json:"task"`
		Message        *bareMessage `json:"message"`
		ArtifactUpdate *struct {
			TaskID    string       `json:"taskId"`
			ContextID string       `json:"contextId"`
			Artifact  bareArtifact `json:"artifact"`
			Append    bool         `json:"append"`
		} `json:"artifactUpdate"`
		StatusUpdate *struct {
			TaskID string     `json:"taskId"`
			Status bareStatus `json:"status"`
		} `json:"statusUpdate"`
	} `json:"result"`
}

// largeTask is a completed task of about 52 KB: 20 artifacts, text and data.
func largeTask() string {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 35)
	data := `{"rows":[` + strings.TrimSuffix(strings.Repeat(`{"id":1234,"name":"a row of data","value":98.765,"tags":["x","y"]},`, 13), ",") + `]}`
	var b strings.Builder
	b.WriteString(`{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-02T03:04:05.678Z"},"artifacts":[`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"artifactId":"a%d","name":"artifact %d","parts":[{"text":"%s","mediaType":"text/plain"},{"data":%s}]}`, i, i, text, data)
	}
	b.WriteString(`]}}`)
	return b.String()
}

// perOp reports the CPU time of an operation, the agent's share included: it
// holds on a busy machine, where the clock does not. Call it around the loop.
func perOp(b *testing.B) (done func()) {
	b.ReportAllocs()
	began := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op") }
}

const smallMessage = `{"message":{"messageId":"m1","contextId":"c1","role":"ROLE_AGENT","parts":[{"text":"hello back"}]}}`

// benchAgent answers every request with the same result.
func benchAgent(b *testing.B, result string) *httptest.Server {
	body := []byte(`{"jsonrpc":"2.0","id":null,"result":` + result + `}`)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	b.Cleanup(srv.Close)
	return srv
}

func benchClient(b *testing.B, srv *httptest.Server) *Client {
	c, err := NewClient(ClientOptions{
		Alias: "alpha", Streaming: true, HTTP: srv.Client(),
		Interfaces: []Interface{{URL: srv.URL, Version: V10, Binding: JSONRPC}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func plainSend(b testing.TB, client *http.Client, url string) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": map[string]any{
		"message": map[string]any{"messageId": "m", "role": "ROLE_USER", "parts": []any{map[string]any{"text": "hello"}}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	var reply bareReply
	if err := json.Unmarshal(all, &reply); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSend compares a send with a plain POST and json.Unmarshal. Aim:
// small within 1.2x, the 52 KB task within 1.5x.
func BenchmarkSend(b *testing.B) {
	for _, bb := range []struct{ name, result string }{{"small", smallMessage}, {"52KB", largeTask()}} {
		srv := benchAgent(b, bb.result)
		b.Run(bb.name+"/plain", func(b *testing.B) {
			defer perOp(b)()
			for b.Loop() {
				plainSend(b, srv.Client(), srv.URL)
			}
		})
		b.Run(bb.name+"/client", func(b *testing.B) {
			c := benchClient(b, srv)
			defer perOp(b)()
			for b.Loop() {
				if _, err := c.Send(b.Context(), hello()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecode compares decoding alone.
func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":null,"result":` + largeTask() + `}`)
	b.Run("plain", func(b *testing.B) {
		defer perOp(b)()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var reply bareReply
			if err := json.Unmarshal(body, &reply); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decoder", func(b *testing.B) {
		scratch := new(replyScratch)
		defer perOp(b)()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := (decoder{id: "1", scratch: scratch}).event(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	odd := bytes.Replace(body, []byte(`"id":"t1"`), []byte(`"id":17`), 1)
	b.Run("lenient", func(b *testing.B) {
		defer perOp(b)()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := (decoder{id: "1"}).event(odd); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkStream compares a stream of 201 events with scanning lines and
// json.Unmarshal. Aim: within 1.5x.
func BenchmarkStream(b *testing.B) {
	var body bytes.Buffer
	event := func(result string) {
		fmt.Fprintf(&body, "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"result\":%s}\n\n", result)
	}
	event(taskWorking)
	for range 199 {
		event(`{"artifactUpdate":{"taskId":"t1","contextId":"c1","append":true,"artifact":{"artifactId":"a1","name":"answer","parts":[{"text":"some words of the answer that comes piece by piece, "}]}}}`)
	}
	event(statusDone)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(body.Bytes())
	}))
	b.Cleanup(srv.Close)
	b.Run("plain", func(b *testing.B) {
		defer perOp(b)()
		for b.Loop() {
			plainStream(b, srv.Client(), srv.URL)
		}
	})
	for _, folded := range []bool{false, true} {
		b.Run(map[bool]string{false: "client", true: "client_folded"}[folded], func(b *testing.B) {
			c := benchClient(b, srv)
			defer perOp(b)()
			for b.Loop() {
				s, err := c.Stream(b.Context(), hello())
				if err != nil {
					b.Fatal(err)
				}
				n, agg := 0, NewAggregate(0)
				for {
					ev, err := s.Next()
					if err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
					n++
					if folded {
						if err := agg.Add(ev); err != nil {
							b.Fatal(err)
						}
						agg.Task()
					}
				}
				s.Close()
				if n != 201 {
					b.Fatalf("%d events", n)
				}
			}
		})
	}
}
