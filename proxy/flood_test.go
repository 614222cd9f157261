package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/proxy/keyed"
	"sluice/proxy/reject"
	"sluice/upstream"
)

// askingFrom returns what has p handle one request from an address, and tells the status of its response. It allocates
// nothing: the address is written over that of the request before.
func askingFrom(t *testing.T, p *Proxy) func(from netip.Addr) (status int) {
	full := strings.TrimSuffix(strings.Repeat("0000:", 8), ":")
	x := requested(t, p, "GET /search/ HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: "+full+"\r\n\r\n")
	written := x.Request.Peek("X-Forwarded-For")
	return func(from netip.Addr) int {
		sixteen := from.As16()
		for group := range 8 {
			hex.Encode(written[5*group:], sixteen[2*group:2*group+2])
		}
		p.serveExchange(x)
		status := x.Status()
		x.Local.Reset()
		x.Forwarded.Reset()
		return status
	}
}

// Two million addresses come within 20 seconds, each once. Nothing grows beyond the table that max_keys fixes; a client
// that keeps to the rate is not affected, and one that exceeds it gains nothing.
func TestKeyedRate_FloodOfAddressesAffectsNoOtherClient(t *testing.T) {
	addresses, over := 2_000_000, 20*time.Second
	if raceEnabled {
		addresses /= 20
	}
	const perSecond, burst, maxKeys = 20, 40, 1_000_000
	o := options(upstreamFunc(func(_ *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
		resp.SetStatusCode(200)
		return upstream.Answered
	}))
	now := int64(0)
	o.Now = func() int64 { return now }
	o.Trusted = prefixes(clientAddress + "/32") // the peer of requested
	o.Rates = []keyed.Rate{{
		Name: "per-ip", Key: "$remote_addr", IPv4Prefix: 32, IPv6Prefix: 64, Burst: burst, PerSecond: perSecond,
		Limiter: limiter.NewRateLimiter(limiter.RateSpec{PerSecond: perSecond, Burst: burst, MaxKeys: maxKeys}),
	}}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	askFrom, random := askingFrom(t, p), rand.New(rand.NewPCG(1, 2))
	honest, greedy := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::1")
	sent, admitted := map[netip.Addr]int{}, map[netip.Addr]int{}
	count := func(from netip.Addr) {
		sent[from]++
		if askFrom(from) == 200 {
			admitted[from]++
		}
	}
	count(honest)
	count(greedy)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range addresses {
		now = int64(over) * int64(i) / int64(addresses)
		var sixteen [16]byte
		binary.NativeEndian.PutUint64(sixteen[:], random.Uint64())
		sixteen[0] = 0x20
		askFrom(netip.AddrFrom16(sixteen))
		for sent[honest] < int(now/int64(time.Second/10)) { // half of the rate
			count(honest)
		}
		for sent[greedy] < int(now/int64(time.Second/200)) { // ten times the rate
			count(greedy)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*maxKeys/4 && !raceEnabled {
		t.Errorf("%d bytes were allocated beside the table", grown)
	}
	if n, of := admitted[honest], sent[honest]; of < 100 || n*100 < of*99 {
		t.Errorf("of %d requests of a client that keeps to the rate %d were admitted", of, n)
	}
	most := perSecond*int(over/time.Second) + burst
	if n := admitted[greedy]; n > most || n < most*98/100 {
		t.Errorf("of %d requests of a client that exceeds the rate %d were admitted; it has %d", sent[greedy], n, most)
	}
}

// Requests that are rejected leave nothing behind, however much they differ. Each is answered and counted, and none
// reaches the upstream.
func TestHandle_FloodOfRejectedRequestsLeavesNothingBehind(t *testing.T) {
	const clients, batches, batch = 4, 50, 100
	to := &recorder{}
	o := options(to)
	o.Stock = decidingStock{o.Stock.(*stockMap), reject.SoldOut}
	addr, p := gateway(t, o)
	talk(t, addr, order)
	heap, goroutines := heapInUse(), runtime.NumGoroutine()
	var all sync.WaitGroup
	for i := range clients {
		c := connect(t, addr)
		all.Go(func() {
			var raw strings.Builder
			for j := range batches {
				raw.Reset()
				for k := range batch {
					id := fmt.Sprintf("%d-%d-%d", i, j, k)
					fmt.Fprintf(&raw, "POST /api/seckill/%s/order HTTP/1.1\r\nHost: %s.example\r\nCookie: uid=%s\r\n"+
						"X-Request-Id: %s\r\nX-%s: %s\r\nContent-Length: %d\r\n\r\n%s", id, id, id, id, id, id, len(id), id)
				}
				if _, err := c.Write([]byte(raw.String())); err != nil {
					t.Error(err)
					return
				}
				for k := range batch {
					resp, err := readResponse(c)
					id := fmt.Sprintf("%d-%d-%d", i, j, k)
					if err != nil || resp.StatusCode() != 409 || string(resp.Header.Peek("X-Request-Id")) != id {
						t.Errorf("%s: %v, %v", id, resp, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if n := rejections(p)["sold_out"]; n != clients*batches*batch+1 || len(to.all()) > 0 {
		t.Errorf("%d rejections are counted, want %d; the upstream saw %q", n, clients*batches*batch+1, to.all())
	}
	if grown := heapInUse() - heap; grown > 1<<20 && !raceEnabled {
		t.Errorf("%d bytes are still in use", grown)
	}
	if n := runtime.NumGoroutine(); n > goroutines+clients+5 {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
}

// readResponse reads one response. Any goroutine of a test may call it.
func readResponse(c *clientConn) (*fasthttp.Response, error) {
	resp := new(fasthttp.Response)
	return resp, resp.Read(c.in)
}

// heapInUse is how many bytes are reachable.
func heapInUse() int {
	runtime.GC()
	runtime.GC() // the first moves what is in a sync.Pool aside
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// firstConnection admits one connection and rejects the others.
type firstConnection struct{ opened atomic.Int64 }

func (f *firstConnection) Open(netip.Addr, bool) reject.Reason {
	if f.opened.Add(1) > 1 {
		return reject.ConnOpen
	}
	return reject.Admitted
}

func (*firstConnection) Close(netip.Addr, bool) {}

// Connections that are rejected cost a bounded number of goroutines, also when their clients keep them open, and do not
// disturb the one that was admitted. Each of them reads a whole response.
func TestConnectionLimit_FloodOfRejectedConnectionsIsBounded(t *testing.T) {
	const flood, most = 400, 256 // goroutines that wait for clients to read their response
	p, err := New(options(&recorder{}))
	if err != nil {
		t.Fatal(err)
	}
	s, addr := serveWith(t, p, ServerOptions{Connections: &firstConnection{}})
	admitted := connect(t, addr)
	served := func() {
		admitted.send("GET /page HTTP/1.1\r\nHost: shop\r\n\r\n")
		if resp, body := admitted.receive("GET"); resp.StatusCode != 200 {
			t.Fatalf("the admitted connection: %d %s", resp.StatusCode, body)
		}
	}
	served()
	before, peak := runtime.NumGoroutine(), 0
	conns := make([]*clientConn, flood)
	for i := range conns {
		conns[i] = connect(t, addr)
		peak = max(peak, runtime.NumGoroutine())
	}
	served()
	for i, c := range conns {
		resp, body := c.receive("GET")
		if reasonOrStatus(resp) != "conn_open" || !resp.Close || !strings.Contains(body, "conn_open") || c.rest() != "" {
			t.Fatalf("connection %d: %d %v %q", i, resp.StatusCode, resp.Header, body)
		}
	}
	if peak > before+most+10 {
		t.Errorf("%d goroutines for %d rejected connections, want %d at most", peak-before, flood, most)
	}
	testkit.Eventually(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+5 })
	if n := s.Totals().Rejected[reject.ConnOpen]; n != flood || s.Stats().Connections != 1 {
		t.Errorf("%d rejections are counted, want %d; %d connections are open", n, flood, s.Stats().Connections)
	}
	served()
}
