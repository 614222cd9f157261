package server

import (
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// shortListener has no descriptor left for each second connection, which then waits in the kernel's queue.
type shortListener struct {
	net.Listener
	calls atomic.Int64
}

func (l *shortListener) Accept() (net.Conn, error) {
	if l.calls.Add(1)%2 == 1 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// SetDeadline lets Drain end Accept.
func (l *shortListener) SetDeadline(t time.Time) error {
	return l.Listener.(*net.TCPListener).SetDeadline(t)
}

func TestServe_GoesOnWithoutDescriptors(t *testing.T) {
	through := engine(func(ln net.Listener) net.Listener { return &shortListener{Listener: ln} })
	_, addr := through.start(t, &handler{}, Options{})
	for range 20 {
		if all := converse(t, addr, get("Connection: close")); !strings.HasSuffix(all, "GET /a ") {
			t.Fatalf("%q", all)
		}
	}
}

func TestMaxConns_RejectsWhatIsBeyond(t *testing.T) {
	eachEngine(t, func(t *testing.T, e engine) {
		s, addr := e.start(t, &handler{}, Options{MaxConns: 16})
		var open []*client
		for range 16 {
			open = append(open, connect(t, addr))
		}
		testkit.Eventually(t, "all are open", func() bool { return s.Stats().Connections == 16 })
		for range 100 {
			if all := connect(t, addr).rest(); all != fullAnswer {
				t.Fatalf("one more hears %q", all)
			}
		}
		open[0].Close()
		testkit.Eventually(t, "one has ended", func() bool { return s.Stats().Connections == 15 })
		open[15].send(get())
		open[15].expect(200, "GET /a ")
		testkit.Eventually(t, "another one is served", func() bool {
			c := connect(t, addr)
			c.send(get("Connection: close"))
			return strings.HasSuffix(c.rest(), "GET /a ")
		})
	})
}

// Connections whose PROXY header is awaited count as well.
func TestMaxConns_CountsWhatWaitsForAPROXYHeader(t *testing.T) {
	s, addr := engine(hidden).start(t, &handler{}, Options{ProxyProtocol: always, MaxConns: 16})
	for range 16 {
		connect(t, addr)
	}
	testkit.Eventually(t, "all are open", func() bool { return s.Stats().Connections == 16 })
	if all := connect(t, addr).rest(); all != fullAnswer {
		t.Errorf("one more hears %q", all)
	}
}
