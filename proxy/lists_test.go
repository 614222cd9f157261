package proxy

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
)

// networks is a list of n networks in which no address of the tests is.
func networks(n int) []netip.Prefix {
	all := make([]netip.Prefix, n)
	for i := range all {
		var four [4]byte
		binary.BigEndian.PutUint32(four[:], 100<<24|uint32(i)<<8)
		all[i] = netip.PrefixFrom(netip.AddrFrom4(four), 24)
	}
	return all
}

func prefixes(list ...string) (all []netip.Prefix) {
	for _, text := range list {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestDeniedClientsReachNothing(t *testing.T) {
	for _, c := range []struct {
		deny, bypass []netip.Prefix
		from, want   string
	}{
		{nil, nil, someone, "200"},
		{prefixes("203.0.113.0/24"), nil, someone, "denied_ip"},
		{prefixes("203.0.113.0/24"), nil, "::ffff:203.0.113.9", "denied_ip"},
		{prefixes("::ffff:203.0.113.0/120"), nil, someone, "denied_ip"},
		{prefixes("203.0.112.0/24"), nil, someone, "200"},
		{prefixes("2001:db8::/32"), nil, "2001:db8:1::7", "denied_ip"},
		{prefixes("0.0.0.0/0"), nil, "2001:db8:1::7", "200"},
		{append(networks(5000), prefixes("203.0.113.9/32")...), nil, someone, "denied_ip"},
		{networks(5000), nil, someone, "200"},
		{prefixes("203.0.113.0/24"), prefixes("203.0.113.9/32"), someone, "denied_ip"},
		{prefixes("203.0.113.0/24"), nil, someone + ", 127.0.0.2", "denied_ip"}, // behind two proxies
		{prefixes("198.51.100.1/32"), nil, "198.51.100.1, " + someone, "200"},   // what a client says of itself
	} {
		ask, _, shop := trustedGate(t, func(o *Options) { o.Deny, o.Bypass = c.deny, c.bypass })
		requests := []string{"GET /page", "GET /search/", "POST /api/seckill/1001/order\r\nCookie: uid=7\r\n"}
		for _, request := range requests {
			if got := ask(c.from, request); got != c.want {
				t.Errorf("deny %d networks, bypass %v: %s from %s: %s, want %s", len(c.deny), c.bypass, request, c.from, got, c.want)
			}
		}
		if n := len(shop.all()); c.want != "200" && n != 0 {
			t.Errorf("%d requests of a denied client reached the shop", n)
		}
	}
}

// stingy is a gate on which every limit refuses.
func stingy(o *Options) {
	o.Pace = func() Pace { return never{} }
	o.Rates = []KeyedRate{keyed("r", "$host", 1)}
	o.Rates[0].Tokens.Take(int64(time.Hour), []byte("shop\x04\x00\x00\x00"))
	o.Windows = windowsFunc(func(int64, []byte) (time.Duration, bool) { return time.Millisecond, false })
	o.Places = placesFunc(func() Reason { return Concurrency })
}

type never struct{}

func (never) Allow(time.Time) (time.Duration, bool) { return time.Second, false }

func TestBypassedClientsMeetNoLimitButTheStock(t *testing.T) {
	for from, want := range map[string][2]string{someone: {"200", "sold_out"}, "203.0.113.10": {"rate", "sold_out"}} {
		ask, _, _ := trustedGate(t, func(o *Options) {
			stingy(o)
			soldOut(o)
			o.Bypass = prefixes("203.0.113.9/32")
		})
		order := func(sku string) string { return ask(from, "POST /api/seckill/"+sku+"/order\r\nCookie: uid=7\r\n") }
		if got := order("2"); got != want[0] {
			t.Errorf("%s: %s, want %s", from, got, want[0])
		}
		if got := order("1001"); got != want[1] {
			t.Errorf("%s, sold out: %s, want %s", from, got, want[1])
		}
	}
}

// Connections of a bypassed peer have no rate, no last request, and are not counted against their client.
func TestConnectionsOfBypassedPeersAreNotLimited(t *testing.T) {
	for _, listed := range []bool{true, false} {
		o := options(&seen{})
		o.Pace, o.MaxRequests = func() Pace { return never{} }, 1
		if listed {
			o.Bypass = prefixes("127.0.0.0/8")
		}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		clients := &perClientOnly{}
		addr := serve(t, p, ServerOptions{Connections: clients})
		resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\n\r\nGET /search/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
		want := "conn_rate"
		if listed {
			want = "200"
		}
		if got := verdict(resp); got != want || resp.Close == listed {
			t.Errorf("listed %v: %s, closed %v; want %s, %v", listed, got, resp.Close, want, !listed)
		}
		if got := clients.asked.Load(); got != !listed {
			t.Errorf("listed %v: counted for its client: %v", listed, got)
		}
	}
}
