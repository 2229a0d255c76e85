package main

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"a2agate/internal/telemetry"
)

// Profiles are for whoever is on this machine, not for a web page that gives
// its own name to this address.
func TestDebugListenerIsGuarded(t *testing.T) {
	t.Parallel()
	levels := telemetry.NewLevels(slog.LevelInfo)
	d, err := newDebugServer("127.0.0.1:0", levels, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.run(ctx) }()
	defer func() { stop(); <-ended }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, tt := range []struct {
		method, host, origin string
		want                 int
	}{
		{http.MethodGet, "", "", 200},
		{http.MethodGet, "localhost", "", 200},
		{http.MethodGet, "evil.test", "", 421},
		{http.MethodPut, "evil.test", "", 421},
		{http.MethodGet, "", "https://evil.test", 403},
		{http.MethodGet, "", "null", 403},
	} {
		for _, path := range []string{"/debug/pprof/cmdline", "/debug/log?level=debug"} {
			if tt.method == http.MethodGet && path != "/debug/pprof/cmdline" {
				path = "/debug/log"
			}
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://"+d.ln.Addr().String()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = tt.host
			if tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("%s %s, host %q, origin %q: %d, want %d", tt.method, path, tt.host, tt.origin, resp.StatusCode, tt.want)
			}
		}
	}
}
