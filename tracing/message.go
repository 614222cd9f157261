package tracing

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"time"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/upstream"
)

// The message is an ExportTraceServiceRequest in OTLP's JSON form (opentelemetry.io/docs/specs/otlp, "JSON Protobuf
// Encoding"): identities in hexadecimal, enumerations as numbers, 64-bit integers as text. The protocol-buffer form
// needs a library as large as the rest of Sluice.

type message struct {
	ResourceSpans [1]resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource      `json:"resource"`
	ScopeSpans [1]scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type scope struct {
	Name string `json:"name"`
}

type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	ParentID   string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes"`
	Status     *status     `json:"status,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// value has one of its fields.
type value struct {
	Text   *string `json:"stringValue,omitempty"`
	Number string  `json:"intValue,omitempty"`
}

type status struct {
	Message string `json:"message,omitempty"`
	Code    int    `json:"code"`
}

const (
	server = 2 // SPAN_KIND_SERVER
	client = 3 // SPAN_KIND_CLIENT
	failed = 2 // STATUS_CODE_ERROR
)

func text(key, v string) attribute { return attribute{key, value{Text: &v}} }

func number(key string, n int) attribute { return attribute{key, value{Number: strconv.Itoa(n)}} }

// messageOf makes two spans of each request: one at Sluice and one at the upstream.
func messageOf(o *Options, batch []record) message {
	spans := make([]span, 0, 2*len(batch))
	for i := range batch {
		spans = append(spans, batch[i].span())
		if batch[i].of.Sent {
			spans = append(spans, batch[i].upstreamSpan())
		}
	}
	return message{[1]resourceSpans{{
		Resource:   resource{[]attribute{text("service.name", o.Service), text("service.version", o.Version)}},
		ScopeSpans: [1]scopeSpans{{scope{"sluice"}, spans}},
	}}}
}

// record is a request that is sent to the collector.
type record struct {
	trace metrics.Trace
	of    metrics.AccessRecord // its texts are copies
	done  time.Time            // of.Done by the wall clock
}

// newRecord copies what belongs to the request. now is e.Done by the wall clock.
func newRecord(t metrics.Trace, e metrics.AccessRecord, now time.Time) record {
	e.Method, e.Path, e.ID, e.SKU = bytes.Clone(e.Method), bytes.Clone(e.Path), bytes.Clone(e.ID), bytes.Clone(e.SKU)
	e.User = nil
	return record{t, e, now}
}

// instant is a time of the record's clock, as Unix ns.
func (r *record) instant(ns int64) string {
	return strconv.FormatInt(r.done.Add(time.Duration(ns-r.of.Done)).UnixNano(), 10)
}

func (r *record) span() span {
	t, e := &r.trace, &r.of
	s := span{
		TraceID: hex.EncodeToString(t.ID[:]), SpanID: hex.EncodeToString(t.Span[:]),
		Name: string(e.Method) + " " + e.Route, Kind: server,
		Start: r.instant(e.Arrived), End: r.instant(e.Done),
		Attributes: []attribute{
			text("http.request.method", string(e.Method)), text("url.path", string(e.Path)),
			number("http.response.status_code", e.Status), text("sluice.route", e.Route),
			text("sluice.gate", e.Gate.String()), text("sluice.request_id", string(e.ID)),
		},
	}
	if t.Parent != [8]byte{} {
		s.ParentID = hex.EncodeToString(t.Parent[:])
	}
	if len(e.SKU) > 0 {
		s.Attributes = append(s.Attributes, text("sluice.sku", string(e.SKU)))
	}
	if e.Reason != reject.Admitted {
		s.Attributes = append(s.Attributes, text("sluice.reason", e.Reason.String()))
	}
	if e.Status >= 500 {
		s.Status = &status{e.Reason.String(), failed}
	}
	return s
}

func (r *record) upstreamSpan() span {
	t, e := &r.trace, &r.of
	s := span{
		TraceID: hex.EncodeToString(t.ID[:]), SpanID: hex.EncodeToString(t.Upstream[:]),
		ParentID: hex.EncodeToString(t.Span[:]), Name: string(e.Method), Kind: client,
		Start: r.instant(e.Decided), End: r.instant(e.Answered),
		Attributes: []attribute{text("server.address", e.Target), text("sluice.outcome", e.Outcome.String())},
	}
	if e.Outcome != upstream.Answered {
		s.Status = &status{e.Outcome.String(), failed}
	}
	return s
}
