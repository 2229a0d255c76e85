package telemetry

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Trace is a W3C trace context: the values of the headers traceparent and
// tracestate.
type Trace struct{ Parent, State string }

// ValidTrace returns t where its parts are what the headers may hold (W3C
// Trace Context, 3.2 and 3.3), the parent alone where only that is, and
// nothing otherwise. Callers choose these values; agents get them.
func ValidTrace(t Trace) Trace {
	if _, ok := parseParent(t.Parent); !ok {
		return Trace{}
	}
	if len(t.State) > 512 || strings.ContainsFunc(t.State, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		t.State = ""
	}
	return t
}

// parseParent reads a traceparent. Later versions may be longer.
func parseParent(s string) (trace.SpanContextConfig, bool) {
	var c trace.SpanContextConfig
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || !lowerHex(s[:2]) || s[:2] == "ff" {
		return c, false
	}
	if len(s) > 55 && (s[:2] == "00" || s[55] != '-' || len(s) > 200 || strings.ContainsFunc(s[55:], func(r rune) bool { return r < 0x21 || r > 0x7e })) {
		return c, false
	}
	if !lowerHex(s[3:35]) || !lowerHex(s[36:52]) || !lowerHex(s[53:55]) {
		return c, false
	}
	var flags [1]byte
	_, err1 := hex.Decode(c.TraceID[:], []byte(s[3:35]))
	_, err2 := hex.Decode(c.SpanID[:], []byte(s[36:52]))
	_, err3 := hex.Decode(flags[:], []byte(s[53:55]))
	c.TraceFlags, c.Remote = trace.TraceFlags(flags[0])&trace.FlagsSampled, true
	return c, err1 == nil && err2 == nil && err3 == nil && c.TraceID.IsValid() && c.SpanID.IsValid()
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// traceOf writes the context of a span, which carries on the state.
func traceOf(c trace.SpanContext) Trace {
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	id, span := c.TraceID(), c.SpanID()
	b = hex.AppendEncode(b, id[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	b = append(b, '-', '0', '0'+byte(c.TraceFlags()&trace.FlagsSampled))
	return Trace{Parent: string(b), State: c.TraceState().String()}
}

// TraceOptions say where traces go. NewTracing reads them from the standard
// variables of OpenTelemetry.
type TraceOptions struct {
	// Endpoint is the URL for traces.
	Endpoint string
	Service  string
	Version  string
	// Log is told when traces cannot be delivered.
	Log *slog.Logger
	// Exporter, where not nil, takes the spans in place of OTLP.
	Exporter sdktrace.SpanExporter
}

// TraceOptionsFromEnv reads the standard variables through getenv. ok is false
// where they ask for no traces: then nothing is to be set up. An error names
// the variable that asks for what is not offered.
//
// The exporter and the SDK read the rest themselves: headers, timeouts,
// certificates, sampler, limits and resource attributes.
func TraceOptionsFromEnv(getenv func(string) (string, bool)) (o TraceOptions, ok bool, err error) {
	get := func(names ...string) (value, name string) {
		for _, n := range names {
			if v, set := getenv(n); set && v != "" {
				return v, n
			}
		}
		return "", ""
	}
	if off, _ := get("OTEL_SDK_DISABLED"); strings.EqualFold(off, "true") {
		return o, false, nil
	}
	exporter, _ := get("OTEL_TRACES_EXPORTER")
	switch exporter {
	case "", "otlp":
	case "none":
		return o, false, nil
	default:
		return o, false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; traces go out as otlp, or not at all with none", exporter)
	}
	endpoint, name := get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" {
		return o, false, nil
	}
	if protocol, name := get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return o, false, fmt.Errorf("%s is %q; traces go out as http/protobuf only", name, protocol)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return o, false, fmt.Errorf("%s %q is not an http(s) URL; for example http://127.0.0.1:4318", name, endpoint)
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", "traces") // the general address is a base
	}
	o.Endpoint = u.String()
	o.Service, _ = get("OTEL_SERVICE_NAME")
	return o, true, nil
}

// Tracing makes spans of what the gateway does. A nil *Tracing is off and
// hands every trace context on as it came. Its methods may be called
// concurrently.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// NewTracing starts the export of spans; Shutdown ends it.
func NewTracing(ctx context.Context, o TraceOptions) (*Tracing, error) {
	exporter := o.Exporter
	if exporter == nil {
		var err error
		if exporter, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint)); err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Service == "" {
		o.Service = "a2agate"
	}
	res, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", o.Service), attribute.String("service.version", o.Version)))
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("traces: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(&patientExporter{SpanExporter: exporter, log: o.Log}))
	return &Tracing{provider: p, tracer: p.Tracer("a2agate", trace.WithInstrumentationVersion(o.Version))}, nil
}

// Shutdown delivers what is left, within ctx, and ends the export.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// patientExporter logs that spans could not be delivered, at most once a
// minute, where the SDK would write to stderr.
type patientExporter struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	last time.Time // the batch processor exports from one goroutine at a time
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *patientExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && time.Since(e.last) > time.Minute {
		e.last = time.Now()
		e.log.Warn("traces not delivered", "spans", len(spans), "err", err)
	}
	return nil
}

// start begins a span under a trace context.
func (t *Tracing) start(in Trace, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) trace.Span {
	ctx := context.Background()
	if c, ok := parseParent(in.Parent); ok {
		if state, err := trace.ParseTraceState(in.State); err == nil {
			c.TraceState = state
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(c))
	}
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return span
}

// RequestEnd is what is known of an MCP request when it is over.
type RequestEnd struct {
	Revision string
	// Status is the HTTP status, 0 where there is none, Code the JSON-RPC error code, 0 for a result.
	Status, Code int
	Request      *Request // may be nil
}

// Request begins the span of an MCP request and returns the trace context for
// what is done for it, and what ends the span. Off, it returns in and nil.
func (t *Tracing) Request(method string, in Trace) (Trace, func(RequestEnd)) {
	if t == nil {
		return in, nil
	}
	method = label(methodLabels, method)
	span := t.start(in, method, trace.SpanKindServer, attribute.String("mcp.method.name", method))
	return traceOf(span.SpanContext()), func(e RequestEnd) {
		span.SetAttributes(attribute.String("mcp.protocol.version", label(revisionLabels, e.Revision)))
		if e.Status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", e.Status))
		}
		if r := e.Request; r != nil {
			if r.Tool != "" {
				span.SetName(method + " " + r.Tool)
				span.SetAttributes(attribute.String("gen_ai.tool.name", r.Tool))
			}
			if r.Agent != "" {
				span.SetAttributes(attribute.String("a2agate.agent", r.Agent))
			}
			if r.Outcome != "" {
				span.SetAttributes(attribute.String("a2agate.outcome", r.Outcome))
			}
			span.SetAttributes(attribute.String("a2agate.request", r.ID()))
			if r.Outcome == "tool_error" {
				span.SetStatus(codes.Error, "tool_error")
			}
		}
		if e.Code != 0 {
			span.SetAttributes(attribute.String("rpc.response.status_code", codeLabel(e.Code)))
			span.SetStatus(codes.Error, codeLabel(e.Code))
		}
		span.End()
	}
}

// UpstreamStart is what is known of a request to an agent when it begins.
type UpstreamStart struct {
	Agent, Op, Version, Binding string
	Retry                       int
	Fallback                    string
}

// Upstream begins the span of one request to an agent and returns the trace
// context to send, and what ends the span with the HTTP status and the cause
// of a failure. Off, it returns in and nil.
func (t *Tracing) Upstream(s UpstreamStart, in Trace) (Trace, func(status int, cause string)) {
	if t == nil {
		return in, nil
	}
	span := t.start(in, "a2a "+label(opLabels, s.Op), trace.SpanKindClient,
		attribute.String("a2agate.agent", s.Agent), attribute.String("a2a.version", s.Version), attribute.String("a2a.binding", s.Binding))
	if s.Retry > 0 {
		span.SetAttributes(attribute.Int("http.request.resend_count", s.Retry))
	}
	if s.Fallback != "" {
		span.SetAttributes(attribute.String("a2agate.fallback", s.Fallback))
	}
	return traceOf(span.SpanContext()), func(status int, cause string) {
		if status > 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if cause != "" {
			span.SetAttributes(attribute.String("error.type", cause))
			span.SetStatus(codes.Error, cause)
		}
		span.End()
	}
}
