package proxy

import (
	"net/netip"
	"strings"
	"sync"
	"testing"

	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// keepingTracer traces every request, and keeps what it is told.
type keepingTracer struct {
	mu      sync.Mutex
	parents []string
	ended   []metrics.AccessRecord
}

func (k *keepingTracer) Begin(parent []byte) (metrics.Trace, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parents = append(k.parents, string(parent))
	return metrics.Trace{ID: [16]byte{1}, Span: [8]byte{2}, Upstream: [8]byte{3}}, true
}

func (k *keepingTracer) End(t metrics.Trace, e metrics.AccessRecord) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.Upstream == [8]byte{3} {
		k.ended = append(k.ended, metrics.AccessRecord{Route: e.Route, Status: e.Status, Sent: e.Sent})
	}
}

// hasEnded reports that a request's trace was ended.
func (k *keepingTracer) hasEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ended) > 0
}

const (
	clientsParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	tracedOrder   = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 0\r\n" +
		"traceparent: " + clientsParent + "\r\ntracestate: a=b\r\nConnection: close\r\n\r\n"
)

// traced sends an order through a proxy with a tracer, and returns what arrived at the upstream.
func traced(t *testing.T, trusted bool) (k *keepingTracer, arrived string) {
	t.Helper()
	to := new(recorder)
	k = new(keepingTracer)
	o := options(to)
	o.Tracer = k
	if trusted {
		o.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	addr, _ := gateway(t, o)
	talk(t, addr, tracedOrder)
	testkit.Eventually(t, "the trace is ended", k.hasEnded)
	return k, strings.Join(to.all(), "")
}

func TestTracer_UpstreamIsTheTracesChild(t *testing.T) {
	k, arrived := traced(t, true)
	ours := "traceparent: 00-01" + strings.Repeat("00", 15) + "-03" + strings.Repeat("00", 7) + "-01\r\n"
	state := strings.Contains(strings.ToLower(arrived), "tracestate: a=b\r\n")
	if !strings.Contains(arrived, ours) || strings.Contains(arrived, clientsParent) || !state {
		t.Errorf("the upstream got %q, want in it %q", arrived, ours)
	}
	if len(k.parents) != 1 || k.parents[0] != clientsParent {
		t.Errorf("the tracer was told the parents %q", k.parents)
	}
	if len(k.ended) != 1 || k.ended[0].Route != "order" || k.ended[0].Status != 200 || !k.ended[0].Sent {
		t.Errorf("the tracer was told %+v", k.ended)
	}
}

// An untrusted client does not choose what is sampled, nor in whose trace it is recorded.
func TestTracer_UntrustedParentIsNotBelieved(t *testing.T) {
	k, arrived := traced(t, false)
	if len(k.parents) != 1 || k.parents[0] != "" {
		t.Errorf("the tracer was told the parents %q", k.parents)
	}
	theirs := strings.Contains(arrived, clientsParent) || strings.Contains(arrived, "a=b")
	if theirs || !strings.Contains(arrived, "traceparent: 00-01") {
		t.Errorf("the upstream got %q", arrived)
	}
}

func TestTracer_RejectedRequestIsNotTraced(t *testing.T) {
	k := new(keepingTracer)
	o := options(&recorder{})
	o.Stock.(*stockMap).closed["1001"] = reject.SoldOut
	o.Tracer = k
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	x := requested(t, p, tracedOrder)
	p.serve(x.Ctx(), x)
	if len(k.parents) != 0 || len(k.ended) != 0 {
		t.Errorf("the tracer was told of a rejection: %q %v", k.parents, k.ended)
	}
}

// Without a tracer the proxy takes no part in traces: the client's fields are forwarded.
func TestTracer_WithoutOneTheFieldsAreForwarded(t *testing.T) {
	to := new(recorder)
	addr, _ := gateway(t, options(to))
	talk(t, addr, tracedOrder)
	want := "traceparent: " + clientsParent + "\r\ntracestate: a=b\r\n"
	if got := strings.Join(to.all(), ""); !strings.Contains(got, want) {
		t.Errorf("the upstream got %q", got)
	}
}

// idleTracer traces no request.
type idleTracer struct{}

func (idleTracer) Begin([]byte) (metrics.Trace, bool)      { return metrics.Trace{}, false }
func (idleTracer) End(metrics.Trace, metrics.AccessRecord) {}

var tracers = map[string]metrics.Tracer{"off": nil, "idle": idleTracer{}}

// untraced returns a function that handles one request, which is admitted.
func untraced(t testing.TB, tracer metrics.Tracer) (handle func()) {
	t.Helper()
	o := options(emptyUpstream)
	o.Tracer = tracer
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return repeated(p, tracedOrder)
}

func TestTracer_ThatTracesNothingDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, tracer := range tracers {
		handle := untraced(t, tracer)
		for range 100 {
			handle()
		}
		if n := testing.AllocsPerRun(1000, handle); n != 0 {
			t.Errorf("%s: %v allocations a request", name, n)
		}
	}
}

func BenchmarkTracer(b *testing.B) {
	for name, tracer := range tracers {
		b.Run(name, func(b *testing.B) {
			handle := untraced(b, tracer)
			b.ReportAllocs()
			for b.Loop() {
				handle()
			}
		})
	}
}
