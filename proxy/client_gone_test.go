//go:build linux

package proxy

import (
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/limiter"
	"sluice/proxy/reject"
)

// goneClients counts the requests whose client had left.
func goneClients(t *testing.T, p *Proxy) float64 {
	return testkit.Series(t, p.Counters())["sluice_rejected_requests_total client_gone order"]
}

const waitingOrder = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=7\r\n" +
	"Content-Length: 2\r\n\r\nhi"

// sendAndKeep sends an order on a connection of its own.
func sendAndKeep(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte(waitingOrder)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWindowLimiter_ClientThatLeftWhileItWaitedIsNotForwarded(t *testing.T) {
	to, sent := &recorder{}, make(chan net.Conn, 1)
	o := options(to)
	o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) {
		(<-sent).Close()
		return time.Second, true // the end of the connection is here long before
	})
	addr, p := gateway(t, o)
	sent <- sendAndKeep(t, addr)
	testkit.Eventually(t, "the rejection is counted", func() bool { return goneClients(t, p) == 1 })
	if all := to.all(); len(all) != 0 {
		t.Errorf("the upstream was sent %q", strings.Join(all, ""))
	}
}

// slotAfterClient has a slot for the request once its client has left.
type slotAfterClient struct{ slotFunc }

func (slotAfterClient) Acquire(c limiter.Client, _ bool) reject.Reason {
	for !c.Gone() {
		time.Sleep(time.Millisecond) // Gone can only be asked
	}
	return reject.ClientGone
}

func TestConcurrencyLimiter_KnowsWhenAWaitingClientLeft(t *testing.T) {
	to := &recorder{}
	o := options(to)
	o.Concurrency = slotAfterClient{}
	addr, p := gateway(t, o)
	sendAndKeep(t, addr).Close()
	testkit.Eventually(t, "the rejection is counted", func() bool { return goneClients(t, p) == 1 })
	if all := to.all(); len(all) != 0 {
		t.Errorf("the upstream was sent %q", strings.Join(all, ""))
	}
}
