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
	"sluice/proxy/reject"
)

// askingFrom returns what has p handle one request from an address, and tells the status of its response. It allocates
// nothing: the address is written over that of the request before.
func askingFrom(t *testing.T, p *Proxy) func(from netip.Addr) (status int) {
	full := strings.TrimSuffix(strings.Repeat("0000:", 8), ":")
	x := requested(t, p, "GET /search/ HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: "+full+"\r\n\r\n")
	written := x.Request().Peek("X-Forwarded-For")
	return func(from netip.Addr) int {
		sixteen := from.As16()
		for group := range 8 {
			hex.Encode(written[5*group:], sixteen[2*group:2*group+2])
		}
		p.serve(x.Ctx(), x)
		status := x.Ctx().Response.StatusCode()
		x.Ctx().Response.Reset()
		return status
	}
}

// Each of many addresses comes once. Nothing is allocated beside the table that max_keys fixes; a client that keeps to
// the rate is not affected, and one that exceeds it gains nothing.
func TestKeyedRate_FloodOfAddressesAffectsNoOtherClient(t *testing.T) {
	const addresses, over, perSecond, burst, maxKeys = 50_000, 10 * time.Second, 20, 40, 50_000
	o := options(upstreamFunc(answerAtOnce))
	now := int64(0)
	o.Now = func() int64 { return now }
	o.Trusted = prefixes(clientAddress + "/32") // the peer of requested
	o.Rates = []Rate{{
		Name: "per-ip", Key: "$remote_addr", IPv4Prefix: 32, IPv6Prefix: 64, Burst: burst, PerSecond: perSecond,
		Limiter: limiter.NewRateLimiter(limiter.RateSpec{PerSecond: perSecond, Burst: burst, MaxKeys: maxKeys}),
	}}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	askFrom, random := askingFrom(t, p), rand.New(rand.NewPCG(1, 2))
	honest, greedy := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::1")
	var sent, admitted struct{ honest, greedy int }
	allocations := testing.AllocsPerRun(1, func() { // two runs, one after the other
		start := now
		for i := range addresses {
			now = start + int64(over)*int64(i)/addresses
			var sixteen [16]byte
			binary.NativeEndian.PutUint64(sixteen[:], random.Uint64())
			sixteen[0] = 0x20
			askFrom(netip.AddrFrom16(sixteen))
			for ; sent.honest < int(now/int64(time.Second/10)); sent.honest++ { // half of the rate
				admitted.honest += oneIf(askFrom(honest) == 200)
			}
			for ; sent.greedy < int(now/int64(time.Second/200)); sent.greedy++ { // ten times the rate
				admitted.greedy += oneIf(askFrom(greedy) == 200)
			}
		}
		now = start + int64(over)
	})
	if allocations > addresses/100 && !raceEnabled { // a collection empties pools
		t.Errorf("%v allocations for %d addresses", allocations, addresses)
	}
	if n, of := admitted.honest, sent.honest; of < 100 || n*100 < of*99 {
		t.Errorf("of %d requests of a client that keeps to the rate %d were admitted", of, n)
	}
	most := perSecond*int(2*over/time.Second) + burst
	if n := admitted.greedy; n > most || n < most*98/100 {
		t.Errorf("of %d requests of a client that exceeds the rate %d were admitted; it has %d", sent.greedy, n, most)
	}
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

const floodBatch = 100

// floodOfOrders has each client send batches of orders, no two of them alike, and checks that each is answered.
func floodOfOrders(t *testing.T, addr string, clients, batches int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range clients {
		c := connect(t, addr)
		all.Go(func() {
			var raw strings.Builder
			for j := range batches {
				raw.Reset()
				for k := range floodBatch {
					id := fmt.Sprintf("%d-%d-%d", i, j, k)
					fmt.Fprintf(&raw, "POST /api/seckill/%s/order HTTP/1.1\r\nHost: %s.example\r\nCookie: uid=%s\r\n"+
						"X-Request-Id: %s\r\nX-%s: %s\r\nContent-Length: %d\r\n\r\n%s", id, id, id, id, id, id, len(id), id)
				}
				if _, err := c.Write([]byte(raw.String())); err != nil {
					t.Error(err)
					return
				}
				for k := range floodBatch {
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
}

// Requests that are rejected, however much they differ, are each answered and counted, and none reaches the upstream.
func TestHandle_FloodOfRejectedRequestsIsAnswered(t *testing.T) {
	const clients, batches = 4, 5
	to := &recorder{}
	o := options(to)
	o.Stock = decidingStock{o.Stock.(*stockMap), reject.SoldOut}
	addr, p := gateway(t, o)
	floodOfOrders(t, addr, clients, batches)
	if n := rejections(p)["sold_out"]; n != clients*batches*floodBatch || len(to.all()) > 0 {
		t.Errorf("%d rejections are counted, want %d; the upstream saw %q", n, clients*batches*floodBatch, to.all())
	}
}

func TestHandle_FloodOfRejectedRequestsLeavesNothingBehind(t *testing.T) {
	testkit.Nightly(t, "it measures memory and goroutines")
	o := options(&recorder{})
	o.Stock = decidingStock{o.Stock.(*stockMap), reject.SoldOut}
	addr, p := gateway(t, o)
	talk(t, addr, order)
	heap, goroutines := heapInUse(), runtime.NumGoroutine()
	const clients, batches = 4, 50
	floodOfOrders(t, addr, clients, batches)
	if n := rejections(p)["sold_out"]; n != clients*batches*floodBatch+1 {
		t.Errorf("%d rejections are counted", n)
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

// Connections that are rejected, also those that their clients keep open, do not disturb the one that was admitted.
// Each of them reads a whole response.
func TestConnectionLimit_FloodOfRejectedConnectionsIsAnswered(t *testing.T) {
	floodOfConnections(t, func() {})
}

func TestConnectionLimit_FloodOfRejectedConnectionsIsBounded(t *testing.T) {
	testkit.Nightly(t, "it counts goroutines")
	const most = 256 // goroutines that wait for clients to read their response
	before, peak := 0, 0
	floodOfConnections(t, func() {
		if before == 0 {
			before = runtime.NumGoroutine()
		}
		peak = max(peak, runtime.NumGoroutine())
	})
	if peak > before+most+10 {
		t.Errorf("%d goroutines for the rejected connections, want %d at most", peak-before, most)
	}
}

// floodOfConnections opens connections beside the only one that is admitted. opened is called before the first and
// after each of them.
func floodOfConnections(t *testing.T, opened func()) {
	const flood = 400
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
	opened()
	conns := make([]*clientConn, flood)
	for i := range conns {
		conns[i] = connect(t, addr)
		opened()
	}
	served()
	for i, c := range conns {
		resp, body := c.receive("GET")
		if reasonOrStatus(resp) != "conn_open" || !resp.Close || !strings.Contains(body, "conn_open") || c.rest() != "" {
			t.Fatalf("connection %d: %d %v %q", i, resp.StatusCode, resp.Header, body)
		}
	}
	if n := s.Totals().Rejected[reject.ConnOpen]; n != flood {
		t.Errorf("%d rejections are counted, want %d", n, flood)
	}
	testkit.Eventually(t, "one connection is open", func() bool { return s.Stats().Connections == 1 })
	served()
}
