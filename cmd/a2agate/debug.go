package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"a2agate/internal/telemetry"
	"a2agate/server"
)

// debugServer serves the profiles of the running process and the levels of its
// log, on loopback only.
type debugServer struct {
	ln     net.Listener
	levels *telemetry.Levels
	log    *slog.Logger
	// metrics are served too where they have no other place, over stdio.
	metrics http.Handler
}

func newDebugServer(address string, levels *telemetry.Levels, log *slog.Logger) (*debugServer, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError("debugListen", address, err)
	}
	return &debugServer{ln: ln, levels: levels, log: log}, nil
}

// run serves until ctx is done.
func (d *debugServer) run(ctx context.Context) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/debug/log", d.levels)
	if d.metrics != nil {
		mux.Handle("/metrics", d.metrics)
	}
	// A web page must not read profiles by a name of its own for this address.
	handler, err := server.Guarded(server.GuardOptions{}, mux)
	if err != nil { // no settings, so none is wrong
		d.log.Error("debug listener stopped", "err", err)
		return
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(d.ln); !errors.Is(err, http.ErrServerClosed) {
		d.log.Error("debug listener stopped", "err", err)
	}
}
