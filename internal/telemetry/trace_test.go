package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestValidTrace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want Trace }{
		{Trace{parent, "a=b,c=d"}, Trace{parent, "a=b,c=d"}},
		{Trace{parent, "a=b\r\nX-Evil: 1"}, Trace{parent, ""}},
		{Trace{parent, strings.Repeat("a", 513)}, Trace{parent, ""}},
		{Trace{"01" + parent[2:] + "-more", ""}, Trace{"01" + parent[2:] + "-more", ""}},
		{Trace{"", "a=b"}, Trace{}},
		{Trace{parent + "-more", ""}, Trace{}},
		{Trace{parent + "\r\nX-Evil: 1", ""}, Trace{}},
		{Trace{"ff" + parent[2:], ""}, Trace{}},
		{Trace{strings.ToUpper(parent), ""}, Trace{}},
		{Trace{"00-00000000000000000000000000000000-b7ad6b7169203331-01", ""}, Trace{}},
		{Trace{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", ""}, Trace{}},
		{Trace{parent[:54], ""}, Trace{}},
		{Trace{"01" + parent[2:] + "-\n", ""}, Trace{}},
	} {
		if got := ValidTrace(tt.in); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzValidTrace(f *testing.F) {
	f.Add(parent, "a=b")
	f.Add("", "")
	f.Add("00-"+strings.Repeat("é", 30), "\x00")
	f.Fuzz(func(t *testing.T, p, s string) {
		got := ValidTrace(Trace{p, s})
		if got.Parent != "" && got.Parent != p || got.State != "" && got.State != s {
			t.Errorf("%q became %q", Trace{p, s}, got)
		}
		if strings.ContainsAny(got.Parent+got.State, "\r\n\x00") {
			t.Errorf("%q is no header", got)
		}
	})
}

// TestOff: without tracing contexts go on as they came.
func TestOff(t *testing.T) {
	t.Parallel()
	var off *Tracing
	in := Trace{parent, "a=b"}
	if out, end := off.Request("tools/call", in); out != in || end != nil {
		t.Errorf("%v", out)
	}
	if out, end := off.Upstream(UpstreamStart{}, in); out != in || end != nil {
		t.Errorf("%v", out)
	}
	if err := off.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// recorded returns a Tracing and what it has exported when it is shut down.
func recorded(t *testing.T) (*Tracing, func() tracetest.SpanStubs) {
	t.Helper()
	exporter := &keeping{InMemoryExporter: tracetest.NewInMemoryExporter()}
	tr, err := NewTracing(t.Context(), TraceOptions{Exporter: exporter, Version: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	return tr, func() tracetest.SpanStubs {
		if err := tr.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		return exporter.GetSpans()
	}
}

// keeping is an exporter that keeps its spans after the end.
type keeping struct{ *tracetest.InMemoryExporter }

func (keeping) Shutdown(context.Context) error { return nil }

func TestSpans(t *testing.T) {
	t.Parallel()
	tr, spans := recorded(t)
	mid, end := tr.Request("tools/call", Trace{parent, "a=b"})
	if mid.Parent == parent || mid.Parent[:36] != parent[:36] || mid.State != "a=b" {
		t.Errorf("the context for what follows is %v", mid)
	}
	sent, endUp := tr.Upstream(UpstreamStart{Agent: "billing", Op: "send", Version: "1.0", Binding: "JSONRPC", Retry: 1, Fallback: "version"}, mid)
	if sent.Parent[:36] != parent[:36] || sent.Parent == mid.Parent {
		t.Errorf("the context sent is %v", sent)
	}
	endUp(500, "http")
	end(RequestEnd{Revision: "2026-07-28", Status: 200, Request: &Request{Tool: "a2a_send_message", Agent: "billing", Outcome: "tool_error"}})
	_, end = tr.Request("made/up", Trace{})
	end(RequestEnd{Status: 404, Code: -32601})

	got := spans()
	if len(got) != 3 {
		t.Fatalf("%d spans, want 3", len(got))
	}
	up, req, odd := got[0], got[1], got[2]
	if up.Name != "a2a send" || up.SpanKind != trace.SpanKindClient || up.Parent.SpanID() != req.SpanContext.SpanID() || up.Status.Description != "http" {
		t.Errorf("upstream: %+v", up)
	}
	if req.Name != "tools/call a2a_send_message" || req.SpanKind != trace.SpanKindServer || req.Parent.SpanID().String() != parent[36:52] || !req.Parent.IsRemote() {
		t.Errorf("request: %+v", req)
	}
	if odd.Name != "other" || odd.Parent.IsValid() || odd.Status.Description != "-32601" {
		t.Errorf("a method that does not exist: %+v", odd)
	}
	if sent.Parent[36:52] != up.SpanContext.SpanID().String() {
		t.Error("the agent is not told the span of its own request")
	}
}

// TestUnsampled: a caller who does not sample is obeyed.
func TestUnsampled(t *testing.T) {
	t.Parallel()
	tr, spans := recorded(t)
	out, end := tr.Request("tools/call", Trace{Parent: parent[:54] + "0"})
	end(RequestEnd{})
	if !strings.HasSuffix(out.Parent, "-00") || len(spans()) != 0 {
		t.Errorf("%v is sampled", out)
	}
}

func TestTraceOptionsFromEnv(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		env      map[string]string
		endpoint string // "" is off
		err      string
	}{
		{name: "nothing set"},
		{name: "general address", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}, endpoint: "http://collector:4318/v1/traces"},
		{name: "own address", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://b/x"}, endpoint: "https://b/x"},
		{name: "disabled", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_SDK_DISABLED": "true"}},
		{name: "none", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_TRACES_EXPORTER": "none"}},
		{name: "zipkin", env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, err: `OTEL_TRACES_EXPORTER is "zipkin"`},
		{name: "grpc", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, err: `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"`},
		{name: "no URL", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, err: `"collector:4318"`},
	} {
		o, ok, err := TraceOptionsFromEnv(func(k string) (string, bool) { v, ok := tt.env[k]; return v, ok })
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
		case err != nil || ok != (tt.endpoint != "") || o.Endpoint != tt.endpoint:
			t.Errorf("%s: %q %v %v, want %q", tt.name, o.Endpoint, ok, err, tt.endpoint)
		}
	}
}

// TestOTLP sends a span to a collector over HTTP.
func TestOTLP(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/traces" && r.Header.Get("Content-Type") == "application/x-protobuf" && bytes.Contains(body, []byte("tools/call")) {
			got.Add(1)
		}
	}))
	t.Cleanup(collector.Close)
	tr, err := NewTracing(t.Context(), TraceOptions{Endpoint: collector.URL + "/v1/traces"})
	if err != nil {
		t.Fatal(err)
	}
	_, end := tr.Request("tools/call", Trace{})
	end(RequestEnd{})
	if err := tr.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got.Load() != 1 {
		t.Errorf("the collector got %d deliveries with the span", got.Load())
	}
}

type broken struct{}

func (broken) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("no route")
}
func (broken) Shutdown(context.Context) error { return nil }

// TestUndelivered: traces that cannot be delivered are a line in the log.
func TestUndelivered(t *testing.T) {
	t.Parallel()
	out := &lockedBuffer{}
	tr, err := NewTracing(t.Context(), TraceOptions{Exporter: broken{}, Log: slog.New(slog.NewTextHandler(out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, end := tr.Request("ping", Trace{})
		end(RequestEnd{})
	}
	if err := tr.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "traces not delivered"); n != 1 {
		t.Errorf("%d lines:\n%s", n, out)
	}
}
