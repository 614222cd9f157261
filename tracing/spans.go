package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"sluice/proxy"
)

// told is what is kept of a request until the collector hears of it.
type told struct {
	proxy.Trace
	came, decided, answered, done time.Time

	method, path, id, sku string // copies
	route, target         string
	gate                  proxy.Gate
	reason                proxy.Reason
	outcome               proxy.Outcome
	status                int
	sent                  bool
}

// keep copies what lasts for no longer than the request. now is e.Done by the clock on the wall.
func keep(t proxy.Trace, e proxy.Entry, now time.Time) told {
	at := func(ns int64) time.Time { return now.Add(time.Duration(ns - e.Done)) }
	return told{
		Trace: t, came: at(e.Came), decided: at(e.Decided), answered: at(e.Answered), done: now,
		method: string(e.Method), path: string(e.Path), id: string(e.ID), sku: string(e.SKU),
		route: e.Route, target: e.Target, gate: e.Gate, reason: e.Reason, outcome: e.Outcome, status: e.Status, sent: e.Sent,
	}
}

// spans turns requests into what the exporter takes. It belongs to one goroutine.
type spans struct {
	tracer trace.Tracer
	ended  []sdk.ReadOnlySpan
}

func newSpans(o Options) *spans {
	s := &spans{}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(s), sdk.WithIDGenerator(chosen{}), sdk.WithSampler(sdk.AlwaysSample()),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", o.Service), attribute.String("service.version", o.Version))))
	s.tracer = provider.Tracer("sluice")
	return s
}

// of makes two spans of each request: at the gate, and at the shop.
func (s *spans) of(batch []told) []sdk.ReadOnlySpan {
	s.ended = s.ended[:0]
	for i := range batch {
		s.tell(&batch[i])
	}
	return s.ended
}

func (s *spans) tell(r *told) {
	ctx := context.Background()
	if r.Parent != [8]byte{} {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: r.ID, SpanID: r.Parent, TraceFlags: trace.FlagsSampled, Remote: true}))
	}
	here := context.WithValue(ctx, place{}, ids{r.ID, r.Span})
	here, span := s.tracer.Start(here, r.method+" "+r.route, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(r.came))
	span.SetAttributes(attribute.String("http.request.method", r.method), attribute.String("url.path", r.path),
		attribute.Int("http.response.status_code", r.status), attribute.String("sluice.route", r.route),
		attribute.String("sluice.gate", r.gate.String()), attribute.String("sluice.request_id", r.id))
	if r.sku != "" {
		span.SetAttributes(attribute.String("sluice.sku", r.sku))
	}
	if r.reason != proxy.Admitted {
		span.SetAttributes(attribute.String("sluice.reason", r.reason.String()))
	}
	if r.status >= 500 {
		span.SetStatus(codes.Error, r.reason.String())
	}
	if r.sent {
		_, shop := s.tracer.Start(context.WithValue(here, place{}, ids{r.ID, r.Shop}), r.method, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(r.decided))
		shop.SetAttributes(attribute.String("server.address", r.target), attribute.String("sluice.outcome", r.outcome.String()))
		if r.outcome != proxy.Answered {
			shop.SetStatus(codes.Error, r.outcome.String())
		}
		shop.End(trace.WithTimestamp(r.answered))
	}
	span.End(trace.WithTimestamp(r.done))
}

// spans is the only [sdk.SpanProcessor]: it hands ended spans back to of.

func (s *spans) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (s *spans) OnEnd(span sdk.ReadOnlySpan)                { s.ended = append(s.ended, span) }
func (s *spans) Shutdown(context.Context) error             { return nil }
func (s *spans) ForceFlush(context.Context) error           { return nil }

// chosen hands out the identities that were chosen when the request was forwarded: the shop has heard of them.
type chosen struct{}

type place struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

func (chosen) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	i, _ := ctx.Value(place{}).(ids)
	return i.trace, i.span
}

func (c chosen) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, span := c.NewIDs(ctx)
	return span
}
