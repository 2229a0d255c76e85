package a2a

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func response(status int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

func fakeClient(t testing.TB, rt http.RoundTripper, edit ...func(*ClientOptions)) *Client {
	t.Helper()
	o := ClientOptions{
		Alias: "alpha", Streaming: true, EmptyStreamFallback: true, HTTP: &http.Client{Transport: rt},
		Interfaces: []Interface{{URL: "http://agent.test/a2a", Version: V10, Binding: JSONRPC}},
	}
	for _, e := range edit {
		e(&o)
	}
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pipeBody is a response body that the test writes.
type pipeBody struct {
	*io.PipeReader
	closed func()
}

func (p pipeBody) Close() error { p.closed(); return p.PipeReader.Close() }

// pipeClient returns a client whose every stream answers with what is written
// to w; cancelling the request breaks it, as net/http does.
func pipeClient(t testing.TB, edit ...func(*ClientOptions)) (c *Client, w *io.PipeWriter) {
	r, w := io.Pipe()
	return fakeClient(t, roundTripFunc(func(req *http.Request) (*http.Response, error) {
		stop := context.AfterFunc(req.Context(), func() { w.CloseWithError(context.Cause(req.Context())) })
		resp := response(200, "text/event-stream", "")
		resp.Body = pipeBody{r, func() { stop() }}
		return resp, nil
	}), edit...), w
}

// A stream is given up after a time without any byte; comments are bytes.
func TestStreamIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := pipeClient(t, func(o *ClientOptions) { o.Timeouts.StreamIdle = time.Minute })
		go func() {
			fmt.Fprintf(w, "data: {\"result\":%s}\n\n", taskWorking)
			for range 10 { // ten minutes of keep-alives
				time.Sleep(59 * time.Second)
				fmt.Fprint(w, ":\n")
			}
			fmt.Fprintf(w, "data: {\"result\":%s}\n\n", textDelta)
		}()
		s, err := c.Stream(t.Context(), hello())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
		if ev, err := s.Next(); err != nil || ev.Artifact == nil {
			t.Fatalf("keep-alives do not count: %+v %v", ev, err)
		}
		began := time.Now()
		_, err = s.Next()
		e := wantError(t, err, CauseTimeout)
		if waited := time.Since(began); waited < time.Minute || waited > 61*time.Second {
			t.Errorf("given up after %v", waited)
		}
		if e.Unsent {
			t.Error("marked unsent")
		}
	})
}

// A slow consumer is not a silent agent.
func TestStreamIdleSlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := pipeClient(t, func(o *ClientOptions) { o.Timeouts.StreamIdle = time.Minute })
		go func() {
			for range 3 {
				fmt.Fprintf(w, "data: {\"result\":%s}\n\n", taskWorking)
			}
			w.Close()
		}()
		s, err := c.Stream(t.Context(), hello())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 3 {
			time.Sleep(10 * time.Minute)
			if _, err := s.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Next(); err != io.EOF {
			t.Fatal(err)
		}
	})
}

// A stream that never answers its request is given up as well, and one whose
// agent says nothing after the header.
func TestStreamSilentFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeClient(t, roundTripFunc(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}))
		began := time.Now()
		_, err := c.Stream(t.Context(), hello())
		wantError(t, err, CauseTimeout)
		if time.Since(began) != 120*time.Second {
			t.Errorf("given up after %v", time.Since(began))
		}
		c, _ = pipeClient(t)
		began = time.Now()
		_, err = c.Stream(t.Context(), hello())
		wantError(t, err, CauseTimeout)
		if time.Since(began) != 120*time.Second {
			t.Errorf("given up after %v", time.Since(began))
		}
	})
}

// Close, the caller's cancellation and its deadline all end a stream whose
// agent holds it open, and free the connection. TestMain looks for goroutines
// left behind.
func TestStreamCloseFrees(t *testing.T) {
	gone := make(chan struct{}, 3)
	release := make(chan struct{})
	agent := newScriptedAgent(t, nil)
	agent.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"result\":%s}\n\n", taskWorking)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-release:
		}
		gone <- struct{}{}
	})
	defer close(release)
	c := agent.client(V10, JSONRPC)
	for _, tt := range []struct {
		cause Cause
		end   func(s EventStream, cancel func())
	}{
		{CauseCanceled, func(s EventStream, cancel func()) { s.Close() }},
		{CauseCanceled, func(s EventStream, cancel func()) { cancel() }},
	} {
		ctx, cancel := context.WithCancel(testContext(t))
		s, err := c.Stream(ctx, hello())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := s.Next()
			ended <- err
		}()
		tt.end(s, cancel)
		wantError(t, <-ended, tt.cause)
		s.Close()
		cancel()
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			t.Fatal("the agent's connection stayed open")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	s, err := c.Stream(ctx, hello())
	if err != nil {
		t.Fatal(err)
	}
	_, err = drain(s)
	wantError(t, err, CauseTimeout)
	<-gone
	for _, r := range agent.requests() {
		if r.RPC == "CancelTask" {
			t.Error("the task was cancelled without being asked")
		}
	}
}

// Ten thousand events pass, and an agent that writes faster than the consumer
// reads is held back: nothing is read ahead of it but one chunk.
func TestStreamBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 10000
		event := []byte("data: {\"result\":{\"artifactUpdate\":{\"taskId\":\"t\",\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"" + strings.Repeat("x", 2000) + "\"}]}}}}\n\n")
		c, w := pipeClient(t)
		written := 0
		go func() {
			for range events {
				if _, err := w.Write(event); err != nil {
					return
				}
				written++
			}
			w.Close()
		}()
		s, err := c.Stream(t.Context(), hello())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for n := 1; ; n++ {
			if _, err := s.Next(); err == io.EOF {
				if n != events+1 {
					t.Errorf("%d events", n-1)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if ahead := written - n; ahead > streamChunk/len(event)+1 {
				t.Fatalf("%d events were read ahead of the consumer", ahead)
			}
		}
	})
}
