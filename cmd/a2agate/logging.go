package main

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"

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

// debugFromEnv takes the debug level from A2A_DEBUG_LEVEL, which wins over the
// file.
func debugFromEnv(cfg *config.Config, getenv func(string) (string, bool)) error {
	const name = "A2A_DEBUG_LEVEL"
	v, _ := getenv(name)
	if v == "" {
		return nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 5 {
		return usageError{fmt.Errorf("%s %q is not a number from 0 to 5", name, v)}
	}
	cfg.Log.Debug = n
	return nil
}
