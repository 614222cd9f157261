package demo

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"sluice/config"
	"sluice/gateway"
	"sluice/internal/adminclient"
	"sluice/internal/embedredis"
	"sluice/internal/load"
)

// demoConfig is a gate in front of a shop that works on 3 orders at a time, each for 50 ms, or on 4, each for 200 ms:
// more than 4 inside the shop would only wait there. The crowd tells its
// addresses by X-Forwarded-For, since all of it really comes from this machine. Where the gate reserves, the shop is
// asked about what is unknown, and has cancelled what it does not know.
const demoConfig = `name = "demo"
[server]
listen = [%q]
trusted_proxies = ["127.0.0.0/8"]
shutdown_delay = "0s"
shutdown_timeout = "5s"
[upstream]
targets = ["http://%s"]
response_header_timeout = "1s"
timeout = "1s"
[limits.concurrency]
max_in_flight = 4
max_queue = 16
queue_timeout = "500ms"
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order"
gate = %q
sku = "$path_sku"
user = "$cookie_uid"
[[route]]
name = "pages"
match = "/"
gate = "pass"
[stock]
source = "memory"
[access_log]
output = "off"
buffer_size = "0B"
[admin]
listen = %q
[ops]
listen = %q
[queue]
max_in_flight = 4
grace = "1s"
[stock.reserve]
status_url = "http://%s/orders/by-serial/{serial}"
on_not_found = "cancel_then_release"
`

// demoGate is a gate that listens.
type demoGate struct {
	*gateway.Gateway
	side gateway.AdminServers
}

// openGate opens a gate with more in its configuration. Its dashboard asks for a token, as everybody's does who has
// another user on the machine.
func (d *Options) openGate(shop *load.Shop, units demoStock, more string) (*demoGate, string, error) {
	text := demoConfig
	if d.Queue {
		text = strings.Replace(text, `gate = %q`, "gate = %q\ndelivery = \"queue\"", 1)
	}
	return d.openGateBy(text+more, shop, units.gate(), units.memory)
}

// openGateBy opens a gate by the text of a configuration like demoConfig.
func (d *Options) openGateBy(text string, shop *load.Shop, gate string, memory *embedredis.Server) (
	*demoGate, string, error,
) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	ln, err := net.Listen("tcp", d.Listen)
	if err != nil {
		return nil, "", fmt.Errorf("--listen: %w", err)
	}
	c, err := config.Parse("demo", fmt.Appendf(nil, text, ln.Addr(), shop.Addr(), gate, d.Dashboard, "", shop.Addr()),
		config.NoEnvironment)
	if err != nil {
		return nil, "", err
	}
	c.Admin.Token = config.Secret(rand.Text())
	g, err := gateway.New(c, gateway.Options{Version: d.Version, Memory: memory}, log)
	if err != nil {
		return nil, "", err
	}
	side, err := g.ListenAdmin(false, log)
	if err != nil {
		return nil, "", err
	}
	go func(ln net.Listener) { _ = g.Server.Serve(ln) }(ln) // ends with stop
	return &demoGate{g, side}, adminclient.LocalAddress(ln.Addr().String()), nil
}

// watchAt is the link to the dashboard. The token is behind the #, which no browser sends anywhere.
func (g *demoGate) watchAt() string {
	if len(g.side) == 0 {
		return "no dashboard: --dashboard is empty"
	}
	return fmt.Sprintf("http://%s/#token=%s", g.side[len(g.side)-1].Addr, string(g.Config.Admin.Token))
}

func (g *demoGate) stop() {
	g.side.Close()
	g.Drain(g.Config.Server.ShutdownTimeout)
	g.Close()
}
