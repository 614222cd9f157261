package proxy

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"sluice/proxy/reject"
	"sluice/proxy/route"
)

const clientAddress = "203.0.113.9"

// networkList is a list of n networks in which no address of the tests is.
func networkList(n int) []netip.Prefix {
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

func TestDenyList_DeniedClientReachesNothing(t *testing.T) {
	for _, c := range []struct {
		deny, bypass []netip.Prefix
		from, want   string
	}{
		{nil, nil, clientAddress, "200"},
		{prefixes("203.0.113.0/24"), nil, clientAddress, "denied_ip"},
		{prefixes("203.0.113.0/24"), nil, "::ffff:203.0.113.9", "denied_ip"},
		{prefixes("::ffff:203.0.113.0/120"), nil, clientAddress, "denied_ip"},
		{prefixes("203.0.112.0/24"), nil, clientAddress, "200"},
		{prefixes("2001:db8::/32"), nil, "2001:db8:1::7", "denied_ip"},
		{prefixes("0.0.0.0/0"), nil, "2001:db8:1::7", "200"},
		{append(networkList(5000), prefixes("203.0.113.9/32")...), nil, clientAddress, "denied_ip"},
		{networkList(5000), nil, clientAddress, "200"},
		{prefixes("203.0.113.0/24"), prefixes("203.0.113.9/32"), clientAddress, "denied_ip"},
		{prefixes("203.0.113.0/24"), nil, clientAddress + ", 127.0.0.2", "denied_ip"}, // behind two proxies
		{prefixes("198.51.100.1/32"), nil, "198.51.100.1, " + clientAddress, "200"},   // what a client says of itself
	} {
		ask, _, to := trustedGateway(t, func(o *Options) { o.Deny, o.Bypass = c.deny, c.bypass })
		requests := []string{"GET /page", "GET /search/", "POST /api/seckill/1001/order\r\nCookie: uid=7\r\n"}
		for _, request := range requests {
			if got := ask(c.from, request); got != c.want {
				t.Errorf("deny %d networks, bypass %v: %s from %s: %s, want %s",
					len(c.deny), c.bypass, request, c.from, got, c.want)
			}
		}
		if n := len(to.all()); c.want != "200" && n != 0 {
			t.Errorf("%d requests of a denied client reached the upstream", n)
		}
	}
}

func TestBypassList_NoLimitAppliesButTheStock(t *testing.T) {
	for from, want := range map[string][2]string{
		clientAddress: {"200", "sold_out"}, "203.0.113.10": {"rate", "sold_out"},
	} {
		ask, _, _ := trustedGateway(t, func(o *Options) {
			fillLimits(o)
			closedFor(reject.SoldOut)(o)
			o.Bypass = prefixes("203.0.113.9/32")
		})
		buy := func(sku string) string { return ask(from, "POST /api/seckill/"+sku+"/order\r\nCookie: uid=7\r\n") }
		if got := buy("2"); got != want[0] {
			t.Errorf("%s: %s, want %s", from, got, want[0])
		}
		if got := buy("1001"); got != want[1] {
			t.Errorf("%s, sold out: %s, want %s", from, got, want[1])
		}
	}
}

func TestBypassList_RowsOfAllLimitsDoNotMeetIt(t *testing.T) {
	for gate := range tables {
		for _, row := range tables[gate] {
			limit := strings.HasPrefix(row.config, "limits.") && row.name != denyList.name || row.name == waitingRoom.name
			if row.bypass != limit {
				t.Errorf("%s, %s: bypass %v, want %v", route.Gate(gate), row.name, row.bypass, limit)
			}
		}
	}
}

// perClientFlag notes whether the last connection is counted for its client.
type perClientFlag struct{ set atomic.Bool }

func (c *perClientFlag) Open(_ netip.Addr, perClient bool) reject.Reason {
	c.set.Store(perClient)
	return reject.Admitted
}
func (c *perClientFlag) Close(netip.Addr, bool) {}

// Connections of a bypassed peer have no request rate, no last request, and do not count as one client.
func TestBypassList_ConnectionsOfItsPeersAreNotLimited(t *testing.T) {
	for _, listed := range []bool{true, false} {
		o := options(&recorder{})
		o.ConnRate, o.MaxRequests = func() ConnRateLimiter { return exhaustedRate{} }, 1
		if listed {
			o.Bypass = prefixes("127.0.0.0/8")
		}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		perClient := &perClientFlag{}
		addr := serve(t, p, ServerOptions{Connections: perClient})
		resp, _ := talk(t, addr, "GET /search/ HTTP/1.1\r\nHost: shop\r\n\r\n"+search)
		want := "conn_rate"
		if listed {
			want = "200"
		}
		if got := reasonOrStatus(resp); got != want || resp.Close == listed {
			t.Errorf("listed %v: %s, closed %v; want %s, %v", listed, got, resp.Close, want, !listed)
		}
		if got := perClient.set.Load(); got != !listed {
			t.Errorf("listed %v: counted for its client: %v", listed, got)
		}
	}
}
