package upstream

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// The last known addresses stand also where the resolver does not fail but hang: a dial that had spent its time in waiting for it
// would be a connect error, and three of them put a healthy target out.
func TestAResolverThatHangsLeavesTimeForTheKnownAddresses(t *testing.T) {
	l, _ := silentShop(t)
	asked := stalled(t)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	a, err := parseAddress("http://shop.example.:" + port)
	if err != nil {
		t.Fatal(err)
	}
	d := newDialer(a, 2*time.Second, nil, nil)
	d.names.known = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	heard := make(chan error)
	const dials = 5
	for range dials {
		go func() {
			c, err := d.dial(t.Context(), 2*time.Second)
			if err == nil {
				c.Close()
			}
			heard <- err
		}()
	}
	for range dials {
		if err := <-heard; err != nil {
			t.Error(err)
		}
	}
	if asked.Load() == 0 {
		t.Error("nobody has asked the resolver: this has tried nothing")
	}
}
