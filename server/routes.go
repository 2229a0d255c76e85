package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"a2agate/internal/telemetry"
	"a2agate/tools"
	"a2agate/translate"
)

// Options is what a Server is made of. Core's part is needed; zero fields of
// the others take the defaults.
type Options struct {
	CoreOptions
	Guard GuardOptions
	// Authenticate says who calls; nil makes everybody "local".
	Authenticate Authenticator
	Limits       Limits
	Pace         Pace
	// SessionKey signs legacy session ids; several replicas share it. nil
	// makes one that ends with the process.
	SessionKey []byte
	// OptionalTaskName accepts tasks/* requests without Mcp-Name, which one
	// SDK does not send.
	OptionalTaskName bool
	// WellKnown serves /.well-known/…, without authentication; nil is 404,
	// which tells clients that there is no OAuth here.
	WellKnown http.Handler
	// Routes are further paths, such as "/metrics", behind the guard and the
	// authentication; IdentityFrom tells them who calls.
	Routes map[string]http.Handler
	// Page is what a browser gets at "/"; nil is not found.
	Page *Page
	// Ready is asked by /readyz; an error is 503. nil is always ready.
	Ready func() error
	// Observe is told of each MCP request when it is over; may be nil.
	Observe func(Exchange)
	// Refused is told the HTTP status of each request that the guard or the
	// authentication has refused; may be nil.
	Refused func(status int)
	// Trace begins the trace of each MCP request; may be nil.
	Trace TraceFunc
	// Grace is how long Serve waits for calls in flight (30 s).
	Grace time.Duration
}

// Limits bound what a client can make the gateway hold; zero fields take the
// defaults.
type Limits struct {
	BodyBytes   int64         // 4 MiB, one request body
	Depth       int           // 500 levels of nesting in a body
	Batch       int           // 64 messages in a batch
	HeaderBytes int           // 64 KiB, all request headers
	HeaderTime  time.Duration // 10 s to read the headers
	BodyTime    time.Duration // 30 s to read the body
	IdleTime    time.Duration // 120 s between two requests on a connection
	// LegacyCall bounds a call whose client cannot cancel by leaving (10 min).
	LegacyCall time.Duration
	// Listens bounds open subscriptions/listen streams (1024), and
	// ListensPerPrincipal those of one authenticated principal (a quarter).
	Listens             int
	ListensPerPrincipal int
	// CallsPerSecond and ConcurrentCalls bound the tool calls of one
	// principal; 0 is no bound.
	CallsPerSecond  float64
	ConcurrentCalls int
}

func (l Limits) withDefaults() Limits {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	orTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if l.BodyBytes == 0 {
		l.BodyBytes = 4 << 20
	}
	or(&l.Depth, DefaultDepth)
	or(&l.Batch, 64)
	or(&l.HeaderBytes, 64<<10)
	or(&l.Listens, 1024)
	or(&l.ListensPerPrincipal, max(1, l.Listens/4))
	orTime(&l.HeaderTime, 10*time.Second)
	orTime(&l.BodyTime, 30*time.Second)
	orTime(&l.IdleTime, 2*time.Minute)
	orTime(&l.LegacyCall, 10*time.Minute)
	return l
}

// Identity is who calls and what they may see.
type Identity struct {
	Principal string
	View      tools.View
	// Expires ends an open listen stream; zero is never.
	Expires time.Time
	// Revoked is closed when the caller is let in no more, or may see something
	// else than View; it ends an open listen stream. nil is never.
	Revoked <-chan struct{}
}

// Local is the principal of everybody when there is no authentication.
const Local = "local"

// Denied is a refused authentication.
type Denied struct {
	Status int // 400, 401, 403 or 503; 0 is 401
	// Challenge is the WWW-Authenticate header, "" for none.
	Challenge string
	// Reason is for the caller and names the remedy; it holds no secret.
	Reason string
	// RetryAfter is when to try again, 0 for nothing said.
	RetryAfter time.Duration
}

func (d *Denied) status() int {
	if d.Status == 0 {
		return http.StatusUnauthorized
	}
	return d.Status
}

// Authenticator says who makes a request. It is called concurrently.
type Authenticator func(*http.Request) (Identity, *Denied)

// Exchange is one MCP request that is over, for metrics and the log. It holds
// no contents.
type Exchange struct {
	Method    string // "" when it was not legible
	Tool      string
	Principal string
	Revision  translate.Revision
	Status    int // HTTP
	Code      int // JSON-RPC error code, 0 for a result
	Streamed  bool
	Duration  time.Duration
	// Request is what else is known of it. It must not be kept.
	Request *telemetry.Request
}

// Server is the HTTP edge. Handler serves it under any http.Server; Serve
// runs it to an orderly end.
type Server struct {
	o        Options
	core     *Core
	now      atomic.Pointer[inForce]
	sessions sessions
	running  running
	listens  listenCount
	meter    meter
	handler  http.Handler
	active   activeStreams

	// base is the parent of all calls; its end is the end of their time.
	base    context.Context
	endBase context.CancelCauseFunc
	// drain is closed when the server goes down, cut when it shall hurry.
	drain, cut         chan struct{}
	drainOnce, cutOnce sync.Once
	draining           atomic.Bool
}

// New makes a Server. The error names every wrong setting.
func New(o Options) (*Server, error) {
	if o.Authenticate != nil {
		o.Private = true
	} else {
		o.Authenticate = func(*http.Request) (Identity, *Denied) { return Identity{Principal: Local}, nil }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Grace == 0 {
		o.Grace = 30 * time.Second
	}
	s := &Server{
		o: o, core: NewCore(o.CoreOptions), sessions: newSessions(o.SessionKey),
		drain: make(chan struct{}), cut: make(chan struct{}),
	}
	if err := s.Reconfigure(Settings{Guard: o.Guard, Limits: o.Limits, Pace: o.Pace}); err != nil {
		return nil, err
	}
	s.listens.of = make(map[string]int)
	s.meter.of = make(map[string]*meterEntry)
	s.base, s.endBase = context.WithCancelCause(context.Background())
	s.handler = s.routes()
	return s, nil
}

// Core returns the server's Core, for a second transport beside HTTP.
func (s *Server) Core() *Core { return s.core }

// Handler returns the whole HTTP surface. A middleware around it must let
// http.ResponseController through (an Unwrap method), or streams cannot be
// flushed.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	for _, path := range []string{"/mcp", "/mcp/", "/mcp/p/{profile}", "/mcp/p/{profile}/"} {
		r.HandleFunc(path, s.serveMCP)
	}
	r.HandleFunc("/healthz", s.healthz)
	r.HandleFunc("/readyz", s.readyz)
	if s.o.WellKnown != nil {
		r.Handle("/.well-known/*", s.o.WellKnown)
	}
	for path, h := range s.o.Routes {
		r.Handle(path, s.authenticated(h, nil))
	}
	if s.o.Page != nil {
		s.routePage(r, s.o.Page)
	}
	r.NotFound(s.notFound)
	r.MethodNotAllowed(func(w http.ResponseWriter, _ *http.Request) { // a method without a name in HTTP
		w.Header().Set("Allow", "POST")
		refuseHTTP(w, http.StatusMethodNotAllowed, "unknown HTTP method")
	})
	return s.guarded(r)
}

// guarded lets in what the guard lets in. The time of a body is bounded here,
// for net/http waits for one that no handler reads, too.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		set := s.now.Load()
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(set.limits.BodyTime)) // not every writer has deadlines
		}
		origin, no := set.guard.check(r)
		if no != nil {
			s.turnedAway(no.status)
			refuseHTTP(w, no.status, no.reason)
			return
		}
		if origin != "" {
			corsHeaders(w.Header(), origin)
			if r.Method == http.MethodOptions {
				preflight(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func writeDenied(w http.ResponseWriter, d *Denied) {
	if d.Challenge != "" {
		w.Header().Set("WWW-Authenticate", d.Challenge)
	}
	if d.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((d.RetryAfter+time.Second-1)/time.Second)))
	}
	refuseHTTP(w, d.status(), d.Reason)
}

// refuseHTTP answers with a JSON-RPC error without an id: nothing of the
// request has been read.
func refuseHTTP(w http.ResponseWriter, status int, reason string) {
	text := errorResponse(nil, &translate.Error{Code: translate.CodeInvalidRequest, Message: reason})
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(text))}
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone needs no answer
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	path, err := json.Marshal(r.URL.Path)
	if err != nil {
		path = []byte(`""`)
	}
	h := w.Header()
	h["Content-Type"] = jsonType
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"error":"not found: the MCP endpoint is /mcp","path":` + string(path) + `,"endpoint":"/mcp"}`))
}

func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	probe(w, r, http.StatusOK, `{"status":"ok"}`)
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		probe(w, r, http.StatusServiceUnavailable, `{"status":"draining"}`)
		return
	}
	if s.o.Ready != nil {
		if err := s.o.Ready(); err != nil {
			body := append([]byte(`{"status":"not ready","reason":`), translate.AppendString(nil, err.Error())...)
			probe(w, r, http.StatusServiceUnavailable, string(append(body, '}')))
			return
		}
	}
	probe(w, r, http.StatusOK, `{"status":"ready"}`)
}

func probe(w http.ResponseWriter, r *http.Request, status int, body string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuseHTTP(w, http.StatusMethodNotAllowed, "use GET or HEAD")
		return
	}
	w.Header()["Content-Type"] = jsonType
	w.Header()["Cache-Control"] = noStore
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte(body))
	}
}

// view joins what the identity may see with the profile of the path. An
// identity that is held to one profile has no other.
func view(r *http.Request, id Identity) (tools.View, bool) {
	v := id.View
	profile := chi.URLParam(r, "profile")
	if profile == "" {
		return v, true
	}
	if p, err := url.PathUnescape(profile); err == nil {
		profile = p
	}
	if v.Profile != "" && v.Profile != profile {
		return v, false
	}
	v.Profile = profile
	return v, true
}
