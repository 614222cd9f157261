package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// silentServer is a listener that writes nothing, and hands out the connections that it accepted.
func silentServer(t *testing.T) (l net.Listener, came chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	came = make(chan net.Conn, 64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			came <- c
		}
	}()
	return l, came
}

// A request that takes a returned connection needs its dial no more, even in the handshake.
func TestPool_CancelledDialEndsInItsHandshake(t *testing.T) {
	l, came := silentServer(t)
	a, err := parseAddress("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	go func() { <-came; end() }()
	secured := &settings{tls: &tls.Config{ServerName: "shop"}}
	if _, err := newDialer(a, secured, nil).dial(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("the handshake ended by: %v", err)
	}
}

// stalled has the resolver ask a server that says nothing until the test ends, and counts the questions.
func stalled(t *testing.T) (asked *atomic.Int64) {
	was := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = was })
	asked = new(atomic.Int64)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		asked.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	return asked
}

// The first caller starts a look-up for all. When it is cancelled, the others get the result.
func TestResolver_CancelledCallerFailsNoOther(t *testing.T) {
	say := make(chan bool)
	asked := knowing(t, func() { <-say })
	var n resolver
	defer n.close()
	lookUp := func(ctx context.Context) chan error {
		heard := make(chan error, 1)
		go func() {
			found, err := n.lookUp(ctx, "shop.example.")
			if err == nil && len(found) != 1 {
				err = fmt.Errorf("found %v", found)
			}
			heard <- err
		}()
		return heard
	}
	first, leave := context.WithCancel(t.Context())
	second, leaveToo := context.WithCancel(t.Context())
	a := lookUp(first)
	testkit.Eventually(t, "the first asks", func() bool { return asked.Load() > 0 })
	b, c := lookUp(second), lookUp(t.Context())
	leaveToo()
	if err := <-b; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled caller that waits for the first got: %v", err)
	}
	leave()
	if err := <-a; !errors.Is(err, context.Canceled) {
		t.Errorf("the first got: %v", err)
	}
	close(say)
	if err := <-c; err != nil {
		t.Errorf("the caller that was not cancelled got: %v", err)
	}
}

// Connections that the upstream has closed are put back. A request whose dial is slow meets one of them, and then
// waits for its own.
func TestPool_SlowDialMeetsOneStaleConnectionAtMost(t *testing.T) {
	l, came := silentServer(t)
	p := newPool(t, options("http://"+l.Addr().String()))
	only := p.targets.Load().all[0]
	var given atomic.Int64
	give := func() { // one that the server has closed
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		(<-came).Close()
		s, err := newSocket(c, false)
		if err != nil {
			t.Error(err)
			return
		}
		dead := newConn(s, s)
		testkit.Eventually(t, "it has ended", func() bool { return !dead.fresh() })
		only.mu.Lock()
		only.open++
		*only.inUse(false)++
		only.mu.Unlock()
		given.Add(1)
		only.release(dead, mayReuse, only.clock.now())
	}
	// The look-up does not end, so that the dial is slow.
	stalled(t)
	defer p.Close()
	only.address.host = "shop.example."
	slow := *only.settings.Load()
	slow.connectTimeout = 200 * time.Millisecond
	only.settings.Store(&slow)
	var ended atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		defer ended.Store(true)
		if outcome, _ := sendOrder(p, "POST", "/order"); outcome != NotSent {
			t.Errorf("outcome %v", outcome)
		}
	})
	for !ended.Load() && given.Load() < 10 {
		only.mu.Lock()
		waits := len(only.waiting) > 0
		only.mu.Unlock()
		if waits {
			give()
		}
		time.Sleep(time.Millisecond) // until it waits or has ended
	}
	all.Wait()
	if given.Load() > 1 {
		t.Errorf("it waited for %d connections, one after the other", given.Load())
	}
	if st := p.Targets()[0]; st.InFlight != 0 || st.Open != st.Idle ||
		len(only.waiting) != 0 || only.orders+only.pages != 0 {
		t.Errorf("%+v, %d slow, %d orders, %d pages", st, len(only.waiting), only.orders, only.pages)
	}
}
