package e2e

import (
	"bufio"
	"net"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
)

const windowSize = 10 * time.Millisecond

// An open loop: a rejection makes no client slower.
func TestWindowLimit_AdmitsItsMaxAndUsesIt(t *testing.T) {
	const maxPerSKU, plan, connections = 2, 10_000, 16 // plan: orders a second
	redis := redistest.Start(t)
	redis.Client.Set(t.Context(), key, 1_000_000, 0)
	shop := open(t, nil)
	g := gate(t, shop.setting(), redisAt(redis), unlimited, "limits.window.max_per_sku = 2",
		"limits.window.max_delay = \"0s\"")
	g.order("1001").must(t, 200, "") // the first look at a SKU is not what is measured

	before := shop.arrivals.Load()
	start := time.Now()
	m := meter{t: t, length: 4 * time.Second, rate: plan / connections, start: start,
		busy: make([]int, 4*time.Second/windowSize)}
	got := m.run(g.front, connections)
	elapsed := time.Since(start)

	admitted := int(shop.arrivals.Load() - before)
	windows := int(elapsed/windowSize) + 2 // an interval touches so many at most
	used := g.metric("sluice_windows_total", `of="sku"`)
	full := g.metric("sluice_windows_saturated_total", `of="sku"`)
	t.Logf("%d orders in %v, %d of them admitted: %.1f%% of %d a window; %d windows, %.0f used, %.0f full; %v",
		got.total(), elapsed, admitted, 100*float64(admitted)/float64(maxPerSKU*windows), maxPerSKU, windows, used, full, got)

	if admitted > maxPerSKU*windows {
		t.Errorf("%d admitted in %d windows of %d", admitted, windows, maxPerSKU)
	}
	if all := int(shop.arrivals.Load()); all > maxPerSKU*int(used) {
		t.Errorf("%d admitted in %.0f windows that were used at all", all, used)
	}
	if got["200 "] != admitted || got["200 "]+got["429 window"] != got.total() {
		t.Errorf("%d orders reached the shop; the answers are %v", admitted, got)
	}
	g.wantMetric(float64(got["429 window"]), "sluice_rejected_requests_total", `reason="window"`)
	if share := m.steady(); share < 0.97 || got.total() < plan*4*95/100 {
		t.Logf("whether all room is used cannot be told: this machine could answer in %.1f%% of the windows", 100*share)
	} else if admitted < maxPerSKU*windows*8/10 {
		t.Errorf("only %d admitted in %d windows of %d", admitted, windows, maxPerSKU)
	}
}

// meter sends orders at a fixed rate, whatever the answers.
type meter struct {
	t      *testing.T
	length time.Duration
	rate   int // orders a second on each connection
	start  time.Time

	mu   sync.Mutex
	sum  tally
	busy []int // answers in each stretch of windowSize
}

func (m *meter) run(address string, connections int) tally {
	m.sum = tally{}
	var all sync.WaitGroup
	for range connections {
		c := dial(m.t, address)
		if c == nil {
			break
		}
		sent := make(chan int, 1)
		all.Go(func() { sent <- m.send(c) })
		all.Go(func() { m.listen(c, sent) })
	}
	all.Wait()
	return m.sum
}

// send writes what is due every millisecond, and returns how many orders that were.
func (m *meter) send(c net.Conn) (sent int) {
	for {
		passed := min(time.Since(m.start), m.length)
		due := int(passed.Seconds()*float64(m.rate)) - sent
		if due > 0 {
			if _, err := c.Write(repeated(due)); err != nil {
				m.t.Errorf("send orders: %v", err)
				return sent
			}
			sent += due
		}
		if passed == m.length {
			return sent
		}
		time.Sleep(time.Millisecond)
	}
}

// listen reads an answer to each order that is sent.
func (m *meter) listen(c net.Conn, sent chan int) {
	l := listener{bufio.NewReader(c)}
	most := int(m.length.Seconds() * float64(m.rate))
	for range most {
		kind, _, err := l.hear()
		if err != nil {
			m.t.Errorf("read answer: %v", err)
			break
		}
		at := int(time.Since(m.start) / windowSize)
		m.mu.Lock()
		m.sum[kind]++
		if at < len(m.busy) {
			m.busy[at]++
		}
		m.mu.Unlock()
	}
	if n := <-sent; n != most {
		m.t.Errorf("%d orders sent on a connection, want %d", n, most)
	}
}

// steady is the share of the windows in which the gate gave enough answers to have had orders to admit.
func (m *meter) steady() float64 {
	enough := 0
	for _, n := range m.busy {
		if n >= 20 {
			enough++
		}
	}
	return float64(enough) / float64(len(m.busy))
}
