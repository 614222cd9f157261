package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stocked is a gate with a stock of its own, which never runs out.
func stocked(t *testing.T, settings ...string) *running {
	t.Helper()
	g := gate(t, settings...)
	ok(t, "stock", "set", "1001", "1000000", "--admin", "http://"+g.admin)
	return g
}

func TestShutdown_UnderLoadLeavesNoOrderWithoutAnswer(t *testing.T) {
	t.Parallel()
	const delay, slow = 300 * time.Millisecond, 5
	var slowOnes atomic.Int64
	shop := open(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "slow" {
			slowOnes.Add(1)
			time.Sleep(time.Second) // beyond the delay: it is answered while the gate drains
			return
		}
		time.Sleep(5 * time.Millisecond) // the shop's work
	})
	g := stocked(t, shop.setting(), unlimited, "limits.window.max_per_sku = 0", `server.shutdown_delay = "300ms"`)

	var all sync.WaitGroup
	for range slow {
		all.Go(func() { g.ask("POST", "/api/seckill/1001/order?slow", "Cookie: uid=8").must(t, 200, "") })
	}
	crowd := departing{address: g.front}
	for range 24 {
		all.Go(func() { crowd.shop(t) })
	}
	soon(t, "the load is there", func() bool { return slowOnes.Load() == slow && crowd.answered.Load() > 500 })
	end := time.Now().Add(delay)
	crowd.end.Store(&end) // what is sent before that must be answered
	g.terminate()
	all.Wait()
	if code := g.stopped(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.Logf("%d answered, %d sent too late", crowd.answered.Load(), crowd.late.Load())
	if n := crowd.lost.Load(); n > 0 {
		t.Errorf("%d orders were sent in good time and got no whole answer", n)
	}
	if n, want := shop.arrivals.Load(), slow+crowd.answered.Load(); n != want {
		t.Errorf("the shop took %d orders, %d were answered", n, want)
	}
}

// departing is a crowd that orders without a pause until the gateway does not take it any more.
type departing struct {
	address              string
	end                  atomic.Pointer[time.Time] // when listening may end; nil = not known yet
	answered, late, lost atomic.Int64
}

func (d *departing) over() bool {
	end := d.end.Load()
	return end != nil && !time.Now().Before(*end)
}

// shop orders on one connection after the other.
func (d *departing) shop(t *testing.T) {
	for !d.over() {
		c, err := net.DialTimeout("tcp", d.address, long)
		if err != nil {
			if !d.over() {
				t.Error(err)
			}
			return
		}
		_ = c.SetDeadline(time.Now().Add(2 * long))
		l := listener{bufio.NewReader(c)}
		for closes := false; !closes; {
			_, err := io.WriteString(c, orderText)
			late := d.over()
			var kind string
			if err == nil {
				kind, closes, err = l.hear()
			}
			switch {
			case err == nil && kind == "200 ":
				d.answered.Add(1)
			case err == nil:
				t.Errorf("answered %s", kind)
			case late:
				d.late.Add(1)
				closes = true
			default:
				d.lost.Add(1)
				closes = true
			}
		}
		c.Close()
	}
}
