package proxy

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

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
