package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

const (
	mixupClients = 32      // connections at a time
	mixupMaxBody = 8 << 10 // bytes of an order
)

// Requests of all kinds are sent over connections that are pipelined, half-closed, slow or reset, through a real server
// and a real pool to an upstream that answers in all forms. Each response is that of its own request; none is lost
// before the connection has ended as the server said; no request arrives twice; all that was acquired is given back.
//
// SLUICE_MIXUP is the number of requests; a million need -timeout 1h. SLUICE_MIXUP_SEED repeats a run's connections.
func TestServer_NeverMixesUpResponses(t *testing.T) { neverMixesUp(t, 2000, true) }

func TestServer_NeverMixesUpManyResponses(t *testing.T) {
	testkit.Nightly(t, "it runs for a minute, and on both engines")
	neverMixesUp(t, 20_000, true, false)
}

// neverMixesUp sends total requests, with and without event loops.
func neverMixesUp(t *testing.T, total uint64, engines ...bool) {
	seed := uint64(time.Now().UnixNano())
	for name, value := range map[string]*uint64{"SLUICE_MIXUP": &total, "SLUICE_MIXUP_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*value = n
		}
	}
	for _, loops := range engines {
		t.Run(fmt.Sprintf("event loops %v", loops), func(t *testing.T) {
			t.Logf("SLUICE_MIXUP=%d SLUICE_MIXUP_SEED=%d", total, seed)
			m := &mixup{t: t, seed: seed, total: int64(total), loops: loops}
			m.run()
		})
	}
}

// mixup is one run.
type mixup struct {
	t       *testing.T
	seed    uint64
	total   int64 // requests
	loops   bool  // connections wait in event loops
	figures mixupFigures
	owed    mixupOwed
	next    atomic.Uint64 // connection
}

func (m *mixup) run() {
	begun := time.Now()
	far := newMixupUpstream(m.t, m.seed, maxMixupRequests*(int(m.total)+mixupClients))
	defer far.close()
	s, pool, addr := m.start(far.targets())
	defer pool.Close()
	var clients sync.WaitGroup
	for range mixupClients {
		clients.Go(func() {
			for m.figures.requests.Load() < m.total && !m.t.Failed() {
				n := m.next.Add(1) - 1
				v := newMixupVisit(m, n)
				if err := v.visit(addr); err != nil {
					m.t.Errorf("connection %d, %s: %v", n, v.mode, err)
				}
			}
		})
	}
	clients.Wait()
	m.t.Logf("%s in %v", &m.figures, time.Since(begun).Round(time.Millisecond))
	m.t.Logf("%d admissions, %d slots, %d reservations", m.owed.entered.Load(), m.owed.acquired.Load(),
		m.owed.reserved.Load())
	if m.t.Failed() {
		return
	}
	testkit.Eventually(m.t, "all connections have ended", func() bool { return s.Stats().Connections == 0 })
	m.owed.check(m.t)
	for _, target := range pool.Targets() {
		if target.InFlight != 0 || target.Open != target.Idle {
			m.t.Errorf("the pool is left with %+v", target)
		}
	}
	if faults, all := m.figures.faults.Load(), m.figures.upstream.Load(); faults > all/100+5 {
		m.t.Errorf("%d requests were answered with 502 or 503 without need, %d by the upstream", faults, all)
	}
}

// start starts a server as the program does: the connections to the upstream wait in the server's event loops.
func (m *mixup) start(targets []string) (s *Server, pool *upstream.Pool, addr string) {
	var adopter atomic.Pointer[Server]
	pool, err := upstream.New(upstream.Options{
		Targets: targets, Policy: "least_conn", MaxConns: 256, ConnectTimeout: time.Minute,
		ResponseTimeout: time.Minute, Timeout: time.Minute, IdleConnTimeout: time.Minute, Retry: "connect",
		Wrap: func(c net.Conn) net.Conn {
			if s := adopter.Load(); s != nil {
				return s.Adopt(c)
			}
			return c
		},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	o := options(pool)
	o.MaxBody, o.Routes = mixupMaxBody, []Route{
		{Name: "check", Match: "POST /check/{sku}", Gate: route.Check, SKU: "$path_sku", User: "$cookie_uid"},
		{Name: "reserve", Match: "POST /reserve/{sku}", Gate: route.Reserve, SKU: "$path_sku", User: "$cookie_uid"},
		{Name: "search", Match: "/search/", Gate: route.Limit},
		{Name: "rest", Match: "/", Gate: route.Pass},
	}
	o.Outcomes = OutcomeRules{ConfirmOn: []string{"2xx"}, ReleaseOn: []string{"304"}}
	o.Stock, o.Orders, o.Concurrency = &m.owed, &mixupOrders{owed: &m.owed}, mixupSlots{&m.owed}
	var booked atomic.Uint64
	o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) {
		if booked.Add(1)%16 == 0 {
			return 200 * time.Microsecond, true
		}
		return 0, true
	})
	p, err := New(o)
	if err != nil {
		m.t.Fatal(err)
	}
	s = NewServer(p, ServerOptions{ReadHeaderTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		IdleTimeout: time.Minute, MaxHeader: 16 << 10, Connections: unlimited{}, Log: slog.New(slog.DiscardHandler)})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	addr = ln.Addr().String()
	if m.loops {
		adopter.Store(s)
	} else {
		ln = struct{ net.Listener }{ln} // which the server does not know for TCP
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(ln) }()
	m.t.Cleanup(func() { ln.Close(); s.Drain(context.Background()); <-served })
	return s, pool, addr
}

// mixupOwed counts what the proxy acquires and gives back. It is the stock of the run.
type mixupOwed struct {
	entered, left, acquired, released, reserved, settled atomic.Int64
	orders                                               sync.Map // serial → times it was settled
}

func (*mixupOwed) Closed(int64, []byte) reject.Reason { return reject.Admitted }

func (o *mixupOwed) Enter(_ int64, sku, _ []byte) reject.Reason {
	if string(sku) == "sold-out" {
		return reject.SoldOut
	}
	o.entered.Add(1)
	return reject.Admitted
}

func (*mixupOwed) AwaitReading(int64, []byte, interface{ StepAside() }) (reject.Reason, bool) {
	return reject.Admitted, false
}

func (o *mixupOwed) EnterAtOnce(now int64, sku, user []byte) (reject.Reason, bool) {
	return o.Enter(now, sku, user), true
}

func (o *mixupOwed) Leave([]byte) { o.left.Add(1) }

func (o *mixupOwed) check(t *testing.T) {
	testkit.Eventually(t, "all that was acquired is given back", func() bool {
		return o.entered.Load() == o.left.Load() && o.acquired.Load() == o.released.Load() &&
			o.reserved.Load() == o.settled.Load()
	})
	o.orders.Range(func(serial, times any) bool {
		if n := times.(*atomic.Int64).Load(); n != 1 {
			t.Errorf("%s was settled %d times", serial, n)
		}
		return true
	})
}

// mixupSlots are slots without a bound.
type mixupSlots struct{ *mixupOwed }

func (s mixupSlots) Acquire(limiter.Client, bool) reject.Reason {
	s.acquired.Add(1)
	return reject.Admitted
}
func (s mixupSlots) TryAcquire() bool      { s.acquired.Add(1); return true }
func (mixupSlots) Peek(bool) bool          { return false }
func (s mixupSlots) Release(time.Duration) { s.released.Add(1) }

// mixupOrders reserves for each Idempotency-Key a serial of the same name.
type mixupOrders struct {
	Orders
	owed *mixupOwed
}

func (*mixupOrders) Decided(int64, ledger.Order) (Reservation, bool) { return Reservation{}, false }
func (*mixupOrders) LookUp(int64, ledger.Order) (Reservation, bool)  { return Reservation{}, false }

func (o *mixupOrders) Reserve(_ int64, order ledger.Order) Reservation {
	if string(order.SKU) == "sold-out" {
		return Reservation{Reason: reject.SoldOut}
	}
	if user := strings.TrimPrefix(string(order.User), "u-"); user != string(order.Key) {
		panic(fmt.Sprintf("the order %q is of user %q", order.Key, order.User))
	}
	serial := "serial-" + string(order.Key)
	if _, known := o.owed.orders.LoadOrStore(serial, new(atomic.Int64)); known {
		panic("reserved twice: " + serial)
	}
	o.owed.reserved.Add(1)
	return Reservation{Serial: serial, Deadline: time.Now().Add(time.Minute).UnixMilli()}
}

func (o *mixupOrders) Settle(_ ledger.Order, serial string, _ metrics.OrderOutcome) {
	times, known := o.owed.orders.Load(serial)
	if !known {
		panic("settled without a reservation: " + serial)
	}
	times.(*atomic.Int64).Add(1)
	o.owed.settled.Add(1)
}
