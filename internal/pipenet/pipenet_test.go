package pipenet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Fake time passes while an HTTP client waits for a server over the network.
func TestHTTPInFakeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Hour)
			_, _ = io.WriteString(w, "late")
		})}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(n) })
		transport := &http.Transport{DialContext: n.Dial}
		began := time.Now()
		resp, err := (&http.Client{Transport: transport}).Get("http://agent.test/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != "late" || err != nil || time.Since(began) != time.Hour {
			t.Errorf("%q, %v after %s", body, err, time.Since(began))
		}
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	})
}

func TestDialWaitsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := n.Dial(ctx, "tcp", "agent.test:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody accepts: %v", err)
		}
		for range 2 {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := n.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after the end: %v", err)
		}
		var refused *net.OpError
		if _, err := n.Dial(t.Context(), "tcp", "agent.test:80"); !errors.As(err, &refused) || refused.Op != "dial" {
			t.Errorf("dial after the end: %v", err)
		}
	})
}
