package limiter

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestConnLimiter_ConnectionsOfOneClientAreCountedTogether(t *testing.T) {
	for _, c := range []struct {
		first, second string
		same          bool
	}{
		{"203.0.113.9", "203.0.113.9", true},
		{"203.0.113.9", "::ffff:203.0.113.9", true},
		{"203.0.113.9", "203.0.113.10", false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
		{"0.0.0.0", "::", false},
		{"0.0.0.1", "0:0:0:1::", false},
	} {
		conns := NewConnLimiter(0, 1)
		conns.Open(addr(c.first))
		if got := conns.Open(addr(c.second)); (got == ClientFull) != c.same {
			t.Errorf("%s and %s: %v; the same client: %v", c.first, c.second, got, c.same)
		}
	}
}

func TestConnLimiter_NoMoreConnectionsThanTheMaxima(t *testing.T) {
	c := NewConnLimiter(3, 2)
	for i, want := range []struct {
		from string
		got  Verdict
	}{
		{"192.0.2.1", Admitted}, {"192.0.2.1", Admitted}, {"192.0.2.1", ClientFull},
		{"192.0.2.2", Admitted}, {"192.0.2.2", TotalFull}, {"192.0.2.1", TotalFull},
	} {
		if got := c.Open(addr(want.from)); got != want.got {
			t.Errorf("connection %d: %v, want %v", i, got, want.got)
		}
	}
	c.Close(addr("192.0.2.1"))
	if got := c.Open(addr("192.0.2.1")); got != Admitted {
		t.Errorf("%v after a close, want admitted", got)
	}
}

// entries is how many clients are remembered.
func (c *ConnLimiter) entries() int { return len(c.clients) }

func TestConnLimiter_ConnectionWithoutAddressCountsInAllAlone(t *testing.T) {
	c := NewConnLimiter(2, 1)
	for _, want := range []Verdict{Admitted, Admitted, TotalFull} {
		if got := c.Open(netip.Addr{}); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	c.Close(netip.Addr{})
	if c.Count() != 1 {
		t.Errorf("%d open, want 1", c.Count())
	}
}

func TestConnLimiter_OpenAndCloseRaceWithinTheMaxima(t *testing.T) {
	const maxOpen, maxPerClient = 7, 3
	c := NewConnLimiter(maxOpen, maxPerClient)
	var total, rejected atomic.Int64
	var each [4]atomic.Int64
	var all sync.WaitGroup
	for g := range 12 {
		all.Go(func() {
			from := netip.AddrFrom4([4]byte{10, 0, 0, byte(g % len(each))})
			for range 2000 {
				if c.Open(from) != Admitted {
					rejected.Add(1)
					continue
				}
				if n := total.Add(1); n > maxOpen {
					t.Errorf("%d open, want at most %d", n, maxOpen)
				}
				if n := each[g%len(each)].Add(1); n > maxPerClient {
					t.Errorf("%d open of one client, want at most %d", n, maxPerClient)
				}
				each[g%len(each)].Add(-1)
				total.Add(-1)
				c.Close(from)
			}
		})
	}
	all.Wait()
	if c.Count() != 0 || c.entries() != 0 {
		t.Errorf("%d connections of %d clients left, want none", c.Count(), c.entries())
	}
}

func TestConnLimiter_CloseWithoutOpenIsAMistake(t *testing.T) {
	for _, from := range []netip.Addr{addr("192.0.2.1"), {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Close(%v) without Open passed in silence", from)
				}
			}()
			NewConnLimiter(1, 1).Close(from)
		}()
	}
}

func TestConnLimiter_LoweredMaximaCountWhatIsOpen(t *testing.T) {
	c := NewConnLimiter(0, 0)
	for range 3 {
		c.Open(addr("192.0.2.1"))
	}
	c.SetMax(0, 3)
	if got := c.Open(addr("192.0.2.1")); got != ClientFull {
		t.Errorf("%v, want client full", got)
	}
	c.SetMax(3, 0)
	if got := c.Open(addr("192.0.2.2")); got != TotalFull {
		t.Errorf("%v, want total full", got)
	}
}

func TestConnLimiter_ConnsAllocateNothing(t *testing.T) {
	c, from := NewConnLimiter(10, 1), addr("2001:db8::1")
	if n := testing.AllocsPerRun(1000, func() { c.Open(from); c.Open(from); c.Close(from) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
