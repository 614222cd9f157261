//go:build failpoints

package gateway

// A build with the tag failpoints kills itself at chosen places, and its wall clock can be set wrong. Tests of crashes
// use it. Every other build has nothing of this.

import (
	"bytes"
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/stockgate/ledger"
)

// failpoint is the place at which this process kills itself, without any word: "place:N" of SLUICE_FAILPOINT, at the
// N-th time that an order comes there. The places stand in the order in which an order comes by them.
type failpoint struct {
	name string
	left atomic.Int64
}

var failpoints = []string{
	"before-reserve", "after-reserve",
	"before-first-byte", "after-first-byte", // of the order to the shop
	"before-last-byte", "after-last-byte",
	"before-answer", "after-answer", // its first bytes from the shop
	"before-settle", "after-settle",
	"before-client", "after-client", // the answer to the client
}

var chosenFailpoint = func() *failpoint {
	name, count, _ := strings.Cut(os.Getenv("SLUICE_FAILPOINT"), ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if name == "" {
		return &failpoint{}
	}
	for _, known := range failpoints {
		if known == name && err == nil && n > 0 {
			f := &failpoint{name: name}
			f.left.Store(n)
			return f
		}
	}
	panic("SLUICE_FAILPOINT: want place:N, with a place out of " + strings.Join(failpoints, " "))
}()

// failsAt reports whether this is the place and the time.
func failsAt(name string) bool {
	return chosenFailpoint.name == name && chosenFailpoint.left.Add(-1) == 0
}

func hit(name string) {
	if failsAt(name) {
		die()
	}
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

type failpointStore struct{ *ledger.Store }

func failStore(s *ledger.Store) ledger.Calls { return failpointStore{s} }

func (s failpointStore) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []ledger.Item,
	codes []ledger.Code,
) (ledger.StockVersion, error) {
	hit("before-reserve")
	hint, err := s.Store.Reserve(ctx, sku, epoch, now, deadline, items, codes)
	hit("after-reserve")
	return hint, err
}

func (s failpointStore) Finish(ctx context.Context, sku string, now, keep int64, op ledger.Op, items []ledger.Item,
	done []ledger.Done,
) (ledger.StockVersion, error) {
	hit("before-settle")
	hint, err := s.Store.Finish(ctx, sku, now, keep, op, items, done)
	hit("after-settle")
	return hint, err
}

// failpointConn is a connection to the shop, or to a shopper.
type failpointConn struct {
	*net.TCPConn
	shop bool
}

// failUpstream leaves connections to the upstream outside of the event loops: what is written is looked at here.
func failUpstream(func(net.Conn) net.Conn) func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn { return failpointConn{c.(*net.TCPConn), true} }
}

func (c failpointConn) Write(p []byte) (int, error) {
	switch {
	case !c.shop && bytes.HasPrefix(p, []byte("HTTP/1.1 200")):
		hit("before-client")
		n, err := c.TCPConn.Write(p)
		hit("after-client")
		return n, err
	case !c.shop || !bytes.HasPrefix(p, []byte("POST ")):
		return c.TCPConn.Write(p)
	}
	hit("before-first-byte")
	if failsAt("after-first-byte") {
		_, _ = c.TCPConn.Write(p[:1])
		die()
	}
	if failsAt("before-last-byte") {
		_, _ = c.TCPConn.Write(p[:len(p)-1])
		die()
	}
	n, err := c.TCPConn.Write(p)
	hit("after-last-byte")
	return n, err
}

func (c failpointConn) Read(p []byte) (int, error) {
	if !c.shop {
		return c.TCPConn.Read(p)
	}
	hit("before-answer")
	n, err := c.TCPConn.Read(p)
	if n > 0 {
		hit("after-answer")
	}
	return n, err
}

type failpointListener struct{ net.Listener }

// failListener leaves a listener as it is where nothing is to break: what dies has no deadline to drain by.
func failListener(ln net.Listener) net.Listener {
	if chosenFailpoint.name == "" {
		return ln
	}
	return failpointListener{ln}
}

func (l failpointListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return failpointConn{tcp, false}, err
	}
	return c, err
}

// wallClock is this machine's own, wrong by SLUICE_CLOCK_AHEAD, like "400ms" or "-1h".
func wallClock() func() time.Time {
	by, err := time.ParseDuration(os.Getenv("SLUICE_CLOCK_AHEAD"))
	if err != nil {
		return nil
	}
	return func() time.Time { return time.Now().Add(by) }
}
