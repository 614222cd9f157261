package proxy

import (
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// marked is a tracer that traces all, and keeps what it is told.
type marked struct {
	mu      sync.Mutex
	parents []string
	ended   []Entry
}

func (m *marked) Begin(parent []byte) (Trace, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parents = append(m.parents, string(parent))
	return Trace{ID: [16]byte{1}, Span: [8]byte{2}, Shop: [8]byte{3}}, true
}

func (m *marked) End(t Trace, e Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.Shop == [8]byte{3} {
		m.ended = append(m.ended, Entry{Route: e.Route, Status: e.Status, Sent: e.Sent})
	}
}

const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func tracedOrder(t *testing.T, trusted bool) (m *marked, arrived string) {
	t.Helper()
	shop := new(seen)
	m = new(marked)
	o := options(shop)
	o.Tracer = m
	if trusted {
		o.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	addr, _ := gate(t, o)
	talk(t, addr, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 0\r\ntraceparent: "+theirs+"\r\ntracestate: a=b\r\nConnection: close\r\n\r\n")
	return m, strings.Join(shop.all(), "")
}

func TestShopStandsInTheTrace(t *testing.T) {
	m, arrived := tracedOrder(t, true)
	ours := "traceparent: 00-01" + strings.Repeat("00", 15) + "-03" + strings.Repeat("00", 7) + "-01\r\n"
	if !strings.Contains(arrived, ours) || strings.Contains(arrived, theirs) || !strings.Contains(strings.ToLower(arrived), "tracestate: a=b\r\n") {
		t.Errorf("the shop got %q, want in it %q", arrived, ours)
	}
	if len(m.parents) != 1 || m.parents[0] != theirs {
		t.Errorf("the tracer heard of the parents %q", m.parents)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ended) != 1 || m.ended[0].Route != "order" || m.ended[0].Status != 200 || !m.ended[0].Sent {
		t.Errorf("the tracer was told %+v", m.ended)
	}
}

// Who is not trusted does not choose what is sampled, nor in whose trace it stands.
func TestUntrustedParentIsNotBelieved(t *testing.T) {
	m, arrived := tracedOrder(t, false)
	if len(m.parents) != 1 || m.parents[0] != "" {
		t.Errorf("the tracer heard of the parents %q", m.parents)
	}
	if strings.Contains(arrived, theirs) || strings.Contains(arrived, "a=b") || !strings.Contains(arrived, "traceparent: 00-01") {
		t.Errorf("the shop got %q", arrived)
	}
}

func TestRefusedRequestIsNotTraced(t *testing.T) {
	m := new(marked)
	o := SoldOutNow()
	o.Tracer = m
	addr, _ := gate(t, o)
	talk(t, addr, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	if len(m.parents) != 0 || len(m.ended) != 0 {
		t.Errorf("the tracer heard of a refusal: %q %v", m.parents, m.ended)
	}
}

// Without a tracer the gate takes no part: what came goes on.
func TestWithoutATracerTheFieldPasses(t *testing.T) {
	shop := new(seen)
	addr, _ := gate(t, options(shop))
	talk(t, addr, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\nContent-Length: 0\r\nTraceparent: "+theirs+"\r\nConnection: close\r\n\r\n")
	if got := strings.Join(shop.all(), ""); !strings.Contains(got, "Traceparent: "+theirs+"\r\n") {
		t.Errorf("the shop got %q", got)
	}
}

// seldom is a tracer that traces nothing.
type seldom struct{}

func (seldom) Begin([]byte) (Trace, bool) { return Trace{}, false }
func (seldom) End(Trace, Entry)           {}

func TestTracerThatTracesNothingCostsNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, tracer := range map[string]Tracer{"off": nil, "seldom": seldom{}} {
		o := Admitting()
		o.Tracer = tracer
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		turn := Loop(p)
		for range 100 {
			turn()
		}
		if n := testing.AllocsPerRun(1000, turn); n != 0 {
			t.Errorf("%s: %v allocations a request", name, n)
		}
	}
}

func BenchmarkTracer(b *testing.B) {
	for name, tracer := range map[string]Tracer{"off": nil, "seldom": seldom{}} {
		b.Run(name, func(b *testing.B) {
			o := Admitting()
			o.Tracer = tracer
			p, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			turn := Loop(p)
			b.ReportAllocs()
			for b.Loop() {
				turn()
			}
		})
	}
}
