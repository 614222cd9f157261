package tracing

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"sluice/proxy/metrics"
)

// collect is a collector; each span that it is sent goes to the channel.
func collect(t *testing.T) (url string, spans chan *wire.Span) {
	t.Helper()
	spans = make(chan *wire.Span, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("traces come to %s as %s", r.URL.Path, r.Header.Get("Content-Type"))
		}
		body, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(body)
		var message collector.ExportTraceServiceRequest
		if err == nil {
			err = protojson.Unmarshal(inBase64(text), &message)
		}
		if err != nil {
			t.Error(err)
		}
		for _, of := range message.ResourceSpans {
			for _, s := range of.ScopeSpans {
				for _, span := range s.Spans {
					spans <- span
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, spans
}

// inBase64 is a message as the library of protocol buffers reads JSON. It is strict with all other fields; OTLP has
// identities in hexadecimal.
func inBase64(text []byte) []byte {
	identity := regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"`)
	return identity.ReplaceAllFunc(text, func(b []byte) []byte {
		m := identity.FindSubmatch(b)
		id, _ := hex.DecodeString(string(m[2]))
		return fmt.Appendf(nil, "%q:%q", m[1], base64.StdEncoding.EncodeToString(id))
	})
}

func tracer(t *testing.T, url string, ratio float64) *Tracer {
	t.Helper()
	tr, err := New(Options{Endpoint: url, SampleRatio: ratio, Service: "shop", Version: "v0",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

func TestTracer_CollectorGetsTheSpansSentUpstream(t *testing.T) {
	url, spans := collect(t)
	tr := tracer(t, url, 1)
	trace, ok := tr.Begin([]byte(sampled))
	if !ok {
		t.Fatal("a sampled parent is not traced")
	}
	tr.End(trace, metrics.AccessRecord{
		Method: []byte("POST"), Path: []byte("/api/seckill/1001/order"), Route: "order", SKU: []byte("1001"),
		User: []byte("secret-user"), Status: 200, Sent: true, Target: "http://shop",
		Arrived: 1000, Decided: 2000, Answered: 5000, Done: 6000,
	})
	tr.Close()
	byID := map[string]*wire.Span{}
	for range 2 {
		s := <-spans
		byID[hex.EncodeToString(s.SpanId)] = s
	}
	here, shop := byID[hex.EncodeToString(trace.Span[:])], byID[hex.EncodeToString(trace.Upstream[:])]
	if here == nil || shop == nil {
		t.Fatalf("the spans %v are not those of %+v", byID, trace)
	}
	if hex.EncodeToString(here.ParentSpanId) != "b7ad6b7169203331" ||
		hex.EncodeToString(here.TraceId) != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the gate's span %v does not hang on its parent", here)
	}
	if string(shop.ParentSpanId) != string(here.SpanId) || shop.EndTimeUnixNano-shop.StartTimeUnixNano != 3000 {
		t.Errorf("the shop's span %v does not hang on the gate's, for 3 µs", shop)
	}
	if here.Name != "POST order" || here.Kind != wire.Span_SPAN_KIND_SERVER ||
		here.EndTimeUnixNano-here.StartTimeUnixNano != 5000 {
		t.Errorf("the gate's span is %v", here)
	}
	for _, a := range append(here.Attributes, shop.Attributes...) {
		if a.Value.GetStringValue() == "secret-user" {
			t.Error("a trace contains the user")
		}
	}
	if tr.sent.Load() != 1 || tr.dropped.Load() != 0 || tr.failed.Load() != 0 {
		t.Errorf("%d sent, %d dropped, %d failed", tr.sent.Load(), tr.dropped.Load(), tr.failed.Load())
	}
}

func TestTracer_TrustedParentDecidesSampling(t *testing.T) {
	never, always := tracer(t, "http://127.0.0.1:1", 0), tracer(t, "http://127.0.0.1:1", 1)
	defer never.Close()
	defer always.Close()
	if _, ok := always.Begin([]byte(unsampled)); ok {
		t.Error("traced against the parent's decision")
	}
	if trace, ok := never.Begin([]byte(sampled)); !ok || trace.Parent == [8]byte{} {
		t.Error("not traced, against the parent's decision")
	}
	one, ok := always.Begin(nil)
	two, _ := always.Begin([]byte("garbage"))
	if !ok || one.ID == [16]byte{} || one.ID == two.ID || one.Span == one.Upstream || one.Parent != [8]byte{} {
		t.Errorf("new traces %+v and %+v", one, two)
	}
}

// A collector that takes the message and says nothing costs traces, and no request a moment.
func TestTracer_HangingCollectorDelaysNoRequest(t *testing.T) {
	hangs, came := make(chan struct{}), make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-hangs
	}))
	defer server.Close()
	tr := tracer(t, server.URL, 1)
	for range batchSize {
		tr.End(metrics.Trace{ID: [16]byte{1}}, metrics.AccessRecord{})
	}
	<-came // the writer waits now; on a busy machine some of the batch may be in the queue
	for len(tr.queue) < queueSize {
		tr.End(metrics.Trace{ID: [16]byte{1}}, metrics.AccessRecord{})
	}
	for range 5 {
		tr.End(metrics.Trace{ID: [16]byte{1}}, metrics.AccessRecord{})
	}
	if n := tr.dropped.Load(); n != 5 {
		t.Errorf("%d dropped beyond a full queue, want 5", n)
	}
	close(hangs)
	tr.Close()
}

func TestTracer_UnreachableCollectorIsCounted(t *testing.T) {
	tr := tracer(t, "http://127.0.0.1:1", 1)
	for range 3 {
		tr.End(metrics.Trace{ID: [16]byte{1}}, metrics.AccessRecord{})
	}
	tr.Close()
	if n := tr.failed.Load(); n != 3 {
		t.Errorf("%d failed, want 3", n)
	}
}

func TestTracer_UnsampledRequestAllocatesNothing(t *testing.T) {
	tr := tracer(t, "http://127.0.0.1:1", 0)
	defer tr.Close()
	parent := []byte(unsampled)
	if n := testing.AllocsPerRun(1000, func() { tr.Begin(nil); tr.Begin(parent) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSender_ReadsTheEnvironment(t *testing.T) {
	environment := map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20eA==, x-tenant=7"}
	s, err := newSender("http://c/v1/traces", func(name string) string { return environment[name] })
	if err != nil || s.header.Get("Authorization") != "Basic eA==" || s.header.Get("X-Tenant") != "7" {
		t.Errorf("%v, %v", s, err)
	}
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "secret",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"} {
		_, err := newSender("http://c/v1/traces", func(asked string) string { return map[string]string{name: value}[asked] })
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestTracer_RejectingCollectorIsCounted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	tr := tracer(t, server.URL, 1)
	tr.End(metrics.Trace{ID: [16]byte{1}}, metrics.AccessRecord{})
	tr.Close()
	if n := tr.failed.Load(); n != 1 {
		t.Errorf("%d failed, want 1", n)
	}
}

func TestEndpoint_IsAWholeURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:4318": "http://127.0.0.1:4318/v1/traces", "https://c/": "https://c/v1/traces",
		"http://c/otlp/v1/traces": "http://c/otlp/v1/traces",
		"127.0.0.1:4318":          "", "": "", "ftp://c": "",
	} {
		if got, err := endpoint(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParent(f *testing.F) {
	for _, text := range []string{sampled, unsampled, "", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var trace metrics.Trace
		known, _ := parse(text, &trace)
		if !known {
			if trace != (metrics.Trace{}) {
				t.Fatalf("%q is no parent, and yet %+v", text, trace)
			}
			return
		}
		if string(text[3:35]) != hex.EncodeToString(trace.ID[:]) ||
			string(text[36:52]) != hex.EncodeToString(trace.Parent[:]) || trace.ID == [16]byte{} {
			t.Fatalf("%q is read as %+v", text, trace)
		}
	})
}

func BenchmarkBegin(b *testing.B) {
	tr, err := New(Options{Endpoint: "http://127.0.0.1:1", Service: "shop",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	b.ReportAllocs()
	for b.Loop() {
		tr.Begin(nil)
	}
}

func BenchmarkEnd(b *testing.B) {
	tr, err := New(Options{Endpoint: "http://127.0.0.1:1", SampleRatio: 1, Service: "shop",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	e := metrics.AccessRecord{
		Method: []byte("POST"), Path: []byte("/api/seckill/1001/order"), Route: "order", Done: int64(time.Second),
	}
	b.ReportAllocs()
	for b.Loop() {
		tr.End(metrics.Trace{}, e)
	}
}
