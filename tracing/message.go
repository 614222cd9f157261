package tracing

import (
	"encoding/hex"
	"strconv"
	"time"

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

func instant(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// messageOf makes two spans of each request: one at Sluice and one at the upstream.
func messageOf(o *Options, batch []record) message {
	spans := make([]span, 0, 2*len(batch))
	for i := range batch {
		spans = append(spans, batch[i].span())
		if batch[i].sent {
			spans = append(spans, batch[i].upstreamSpan())
		}
	}
	return message{[1]resourceSpans{{
		Resource:   resource{[]attribute{text("service.name", o.Service), text("service.version", o.Version)}},
		ScopeSpans: [1]scopeSpans{{scope{"sluice"}, spans}},
	}}}
}

func (r *record) span() span {
	s := span{
		TraceID: hex.EncodeToString(r.ID[:]), SpanID: hex.EncodeToString(r.Span[:]),
		Name: r.method + " " + r.route, Kind: server,
		Start: instant(r.came), End: instant(r.done),
		Attributes: []attribute{
			text("http.request.method", r.method), text("url.path", r.path), number("http.response.status_code", r.status),
			text("sluice.route", r.route), text("sluice.gate", r.gate.String()), text("sluice.request_id", r.id),
		},
	}
	if r.Parent != [8]byte{} {
		s.ParentID = hex.EncodeToString(r.Parent[:])
	}
	if r.sku != "" {
		s.Attributes = append(s.Attributes, text("sluice.sku", r.sku))
	}
	if r.reason != reject.Admitted {
		s.Attributes = append(s.Attributes, text("sluice.reason", r.reason.String()))
	}
	if r.status >= 500 {
		s.Status = &status{r.reason.String(), failed}
	}
	return s
}

func (r *record) upstreamSpan() span {
	s := span{
		TraceID: hex.EncodeToString(r.ID[:]), SpanID: hex.EncodeToString(r.Upstream[:]),
		ParentID: hex.EncodeToString(r.Span[:]), Name: r.method, Kind: client,
		Start: instant(r.decided), End: instant(r.answered),
		Attributes: []attribute{text("server.address", r.target), text("sluice.outcome", r.outcome.String())},
	}
	if r.outcome != upstream.Answered {
		s.Status = &status{r.outcome.String(), failed}
	}
	return s
}
