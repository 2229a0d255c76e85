package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// The five debug levels, from the coarsest to the finest. Each includes those
// before it.
const (
	LevelFlow    = slog.LevelDebug     // 1: discovery, requests to agents, fallbacks
	LevelSummary = slog.LevelDebug - 1 // 2: requests and answers in a line each
	LevelPayload = slog.LevelDebug - 2 // 3: the shape of what is sent and answered
	LevelShape   = slog.LevelDebug - 3 // 4: the shape of every stream event
	LevelRaw     = slog.LevelDebug - 4 // 5: bodies and events as they are, credentials masked
)

// LevelFromDebug returns the level of a debug number, 1 to 5; for 0 and less
// it returns info.
func LevelFromDebug(n int) slog.Level {
	if n <= 0 {
		return slog.LevelInfo
	}
	return LevelFlow - slog.Level(min(n, 5)-1)
}

// ParseLevel reads error, warn, info, debug or a debug number from 0 to 5.
func ParseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "error":
		return slog.LevelError, nil
	case "warn":
		return slog.LevelWarn, nil
	case "info":
		return slog.LevelInfo, nil
	case "debug":
		return slog.LevelDebug, nil
	}
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n <= 5 {
		return LevelFromDebug(n), nil
	}
	return 0, fmt.Errorf("level %q is none of error, warn, info, debug, 0 to 5", s)
}

// levelName is what ParseLevel reads back.
func levelName(l slog.Level) string {
	if l < slog.LevelDebug {
		return strconv.Itoa(int(LevelFlow-l) + 1)
	}
	return strings.ToLower(l.String())
}

// Levels holds the least severe level that is logged of each kind. It may be
// read and changed concurrently.
type Levels struct{ of [kinds]atomic.Int64 }

// NewLevels returns Levels that are the same for all kinds.
func NewLevels(l slog.Level) *Levels {
	v := &Levels{}
	v.SetAll(l)
	return v
}

// Level returns the level of a kind.
func (v *Levels) Level(k Kind) slog.Level { return slog.Level(v.of[k].Load()) }

// Set changes the level of a kind.
func (v *Levels) Set(k Kind, l slog.Level) { v.of[k].Store(int64(l)) }

// SetAll changes the level of every kind.
func (v *Levels) SetAll(l slog.Level) {
	for k := range kinds {
		v.Set(k, l)
	}
}

// SetDebug makes a debug number hold for what goes to the agents and comes
// from them; 0 changes nothing. The other kinds go to debug at most: they have
// no finer levels.
func (v *Levels) SetDebug(n int) {
	if n <= 0 {
		return
	}
	for k := range kinds {
		v.Set(k, min(v.Level(k), slog.LevelDebug))
	}
	v.Set(KindAgents, LevelFromDebug(n))
}

// ServeHTTP shows the levels (GET) and changes them (PUT ?level=…&kind=…;
// without kind all of them). It is for the debug listener, which only this
// machine reaches; a web page cannot send a PUT there without asking first.
func (v *Levels) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPut:
		if problem := v.change(r); problem != "" {
			http.Error(w, problem, http.StatusBadRequest)
			return
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, PUT")
		http.Error(w, "use GET, or PUT with ?level=…&kind=…", http.StatusMethodNotAllowed)
		return
	}
	now := map[string]string{}
	for k := range kinds {
		now[k.String()] = levelName(v.Level(k))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(now) // a client that is gone needs no answer
}

func (v *Levels) change(r *http.Request) (problem string) {
	q := r.URL.Query()
	for name := range q {
		if name != "level" && name != "kind" {
			return fmt.Sprintf("parameter %q is unknown; there are level and kind", name)
		}
	}
	level, err := ParseLevel(q.Get("level"))
	if err != nil {
		return err.Error()
	}
	if !q.Has("kind") {
		v.SetAll(level)
		return ""
	}
	kind, ok := KindFromName(q.Get("kind"))
	if !ok {
		return fmt.Sprintf("kind %q is none of %s", q.Get("kind"), strings.Join(kindNames[:], ", "))
	}
	v.Set(kind, level)
	return ""
}

// NewLogger returns a logger on w, JSON or text, that goes by levels and puts
// the id and the kind of the request into every line that is logged with the
// request's context.
func NewLogger(w io.Writer, asJSON bool, levels *Levels) *slog.Logger {
	o := &slog.HandlerOptions{Level: LevelRaw, ReplaceAttr: nameLevel}
	var inner slog.Handler = slog.NewTextHandler(w, o)
	if asJSON {
		inner = slog.NewJSONHandler(w, o)
	}
	return slog.New(&handler{inner: inner, levels: levels})
}

// nameLevel writes the finer levels as debug2 to debug5.
func nameLevel(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 || a.Key != slog.LevelKey {
		return a
	}
	if l, ok := a.Value.Any().(slog.Level); ok && l < slog.LevelDebug {
		return slog.String(slog.LevelKey, "DEBUG"+levelName(l))
	}
	return a
}

// handler decides by kind what is logged.
type handler struct {
	inner  slog.Handler
	levels *Levels
	// kind is that of lines without a request.
	kind Kind
}

// OfKind returns log for lines of one kind, where the context says nothing
// else. A logger that is not of NewLogger is returned as it is.
func OfKind(log *slog.Logger, kind Kind) *slog.Logger {
	h, ok := log.Handler().(*handler)
	if !ok {
		return log
	}
	own := *h
	own.kind = kind
	return slog.New(&own)
}

func (h *handler) kindOf(ctx context.Context) (Kind, *Request) {
	r := FromContext(ctx)
	if r != nil && h.kind == KindGateway {
		return r.Kind, r
	}
	return h.kind, r
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, l slog.Level) bool {
	kind, _ := h.kindOf(ctx)
	return l >= h.levels.Level(kind)
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	kind, r := h.kindOf(ctx)
	rec.AddAttrs(slog.String("kind", kind.String()))
	if r != nil && r.ID() != "" {
		rec.AddAttrs(slog.String("request", r.ID()))
	}
	return h.inner.Handle(ctx, rec)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	own := *h
	own.inner = h.inner.WithAttrs(attrs)
	return &own
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	own := *h
	own.inner = h.inner.WithGroup(name)
	return &own
}
