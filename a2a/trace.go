package a2a

import "context"

type traceKey struct{}

// WithTrace returns a context whose upstream requests carry t where their
// operation has no trace context of its own.
func WithTrace(ctx context.Context, t Trace) context.Context {
	if t == (Trace{}) {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, t)
}

func traceFromContext(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
