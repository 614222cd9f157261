package proxy

import (
	"net/netip"
	"testing"

	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// What stands below /.sluice/ is Sluice's. An address that it does not have is no page of the shop, unless a route
// names it, as where another Sluice is behind this one.
func TestEndpoint_UnknownOneIsNoPageOfTheShop(t *testing.T) {
	up := &recorder{}
	o := options(up)
	o.Routes = []Route{{Name: "behind", Match: "GET /.sluice/room/{room}/{action}", Gate: route.Pass},
		{Name: "pages", Match: "/", Gate: route.Pass}}
	addr, p := gateway(t, o)
	for _, c := range []struct {
		head string
		want string
	}{
		{"GET /.sluice/nope", "no_route"}, {"POST /.sluice/room/x/join", "no_route"}, {"POST /.sluice/client.js", "no_route"},
		{"GET /.sluice/room/x/me", "200"}, {"GET /.sluices", "200"}, {"GET /.sluice/client.js", "200"},
	} {
		before := len(up.all())
		resp, body := talk(t, addr, c.head+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		if got := reasonOrStatus(resp); got != c.want {
			t.Errorf("%s: %s, want %s: %s", c.head, got, c.want, body)
		}
		forwarded := c.want == "200" && c.head != "GET /.sluice/client.js"
		if got := len(up.all()) > before; got != forwarded {
			t.Errorf("%s: forwarded is %v", c.head, got)
		}
		found := p.Explain(c.head+" HTTP/1.1\r\nHost: x\r\n\r\n", netip.MustParseAddr("192.0.2.1"), 8<<10, false)
		if found.Internal == forwarded || found.Reason != reject.Admitted {
			t.Errorf("%s is explained as %+v", c.head, found)
		}
	}
}
