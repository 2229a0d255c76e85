package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"a2agate/a2a"
	"a2agate/config"
	"a2agate/internal/telemetry"
)

// newLogger makes the log of a configuration, and its levels, which can change.
func newLogger(w io.Writer, cfg config.Log) (*slog.Logger, *telemetry.Levels) {
	levels := telemetry.NewLevels(slog.LevelInfo)
	setLevels(levels, cfg)
	return telemetry.NewLogger(w, cfg.Format == config.FormatJSON, levels), levels
}

// setLevels makes the levels those of a configuration.
func setLevels(levels *telemetry.Levels, cfg config.Log) {
	level, err := telemetry.ParseLevel(string(cfg.Level))
	if err != nil {
		level = slog.LevelInfo // a checked configuration has no other words
	}
	levels.SetAll(level)
	levels.SetDebug(cfg.Debug)
}

// flow logs each call to an agent with the correction that led to it, from
// debug level 1 on, and tells observe, which may be nil.
func flow(log *slog.Logger, observe func(a2a.Exchange)) func(a2a.Exchange) {
	log = telemetry.OfKind(log, telemetry.KindAgents)
	return func(x a2a.Exchange) {
		if ctx := context.Background(); log.Enabled(ctx, telemetry.LevelFlow) {
			log.Log(ctx, telemetry.LevelFlow, "agent call", "agent", x.Alias, "op", x.Op, "version", x.Version, "binding", x.Binding,
				"status", x.Status, "cause", x.Cause, "fallback", x.Fallback, "retry", x.Retry, "took", x.Duration.Round(time.Millisecond))
		}
		if observe != nil {
			observe(x)
		}
	}
}
