package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/config"
	"sluice/demo"
	"sluice/stockgate"
)

type demoCommand struct {
	Shoppers    int           `default:"2000" help:"How many want it."`
	Units       int64         `default:"100" help:"How many there are."`
	Patience    time.Duration `default:"20s" help:"When the last shopper goes home."`
	WithoutGate bool          `help:"Then the same crowd at the bare shop, and both side by side."`
	Keep        bool          `help:"Leave shop and gate running for a browser, until Ctrl-C."`
	Listen      string        `default:"127.0.0.1:0" help:"Where the gate listens; any free port by default." placeholder:"127.0.0.1:8080"`
}

// Validate is called by kong; its error is one of usage.
func (d *demoCommand) Validate() error {
	switch {
	case d.Shoppers < 1:
		return fmt.Errorf("--shoppers %d: it takes 1 or more", d.Shoppers)
	case d.Units < 0:
		return fmt.Errorf("--units %d: it must not be negative", d.Units)
	case d.Patience <= 0:
		return fmt.Errorf("--patience %s: it must be above 0s", d.Patience)
	}
	return nil
}

const demoSKU = "1001"

// demoConfig is a gate in front of a shop that completes 60 orders a second, each in 40 ms: more than 60/s × 40 ms =
// 2.4 inside the shop at a time (Little's law) would only wait there. The crowd tells its addresses by
// X-Forwarded-For, since all of it really comes from this machine.
const demoConfig = `
[server]
listen = [%q]
trusted_proxies = ["127.0.0.0/8"]
shutdown_delay = "0s"
shutdown_timeout = "5s"
[upstream]
targets = ["http://%s"]
[limits.concurrency]
max_in_flight = 4
max_queue = 16
queue_timeout = "500ms"
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order"
gate = "check"
sku = "$path_sku"
user = "$cookie_uid"
[[route]]
name = "pages"
match = "/"
gate = "pass"
[stock]
source = "memory"
[admin]
listen = ""
[ops]
listen = %q
`

func (d *demoCommand) Run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	gated, err := d.sale(ctx, true)
	if err != nil {
		return err
	}
	if d.WithoutGate && ctx.Err() == nil {
		fmt.Println("\nthe same crowd at the bare shop:")
		bare, err := d.sale(ctx, false)
		if err != nil {
			return err
		}
		fmt.Println()
		if err := demo.Compare(os.Stdout, gated, bare); err != nil {
			return err
		}
	}
	if gated.Shop.Oversold != 0 {
		return fmt.Errorf("%d units were oversold", gated.Shop.Oversold)
	}
	return gated.Err()
}

// sale opens a shop, with a gate or without, lets the crowd in, and reports.
func (d *demoCommand) sale(ctx context.Context, withGate bool) (demo.Report, error) {
	stock := stockgate.NewMemory()
	if err := stock.Set(ctx, demoSKU, d.Units); err != nil {
		return demo.Report{}, err
	}
	shop, err := demo.OpenShop(demo.ShopOptions{SKU: demoSKU, Units: d.Units, Stock: stock})
	if err != nil {
		return demo.Report{}, err
	}
	defer shop.Close()
	front := shop.Addr()
	if withGate {
		g, address, err := d.openGate(shop, stock)
		if err != nil {
			return demo.Report{}, err
		}
		defer g.stop()
		front = address
		fmt.Printf("shop   http://%s  60 orders/s, 40 ms each, %d units\ngate   http://%s\ncrowd  %d shoppers\n\n", shop.Addr(), d.Units, front, d.Shoppers)
	}
	report, err := demo.Crowd{Front: front, SKU: demoSKU, Shoppers: d.Shoppers, Patience: d.Patience}.Run(ctx, shop, os.Stdout)
	if err != nil {
		return report, err
	}
	fmt.Println()
	if _, err := report.WriteTo(os.Stdout); err != nil {
		return report, err
	}
	if withGate && d.Keep && ctx.Err() == nil {
		return report, d.keep(ctx, shop, stock, front)
	}
	return report, nil
}

// keep puts ten more on the shelf for whoever looks in with a browser.
func (d *demoCommand) keep(ctx context.Context, shop *demo.Shop, stock *stockgate.Memory, front string) error {
	const more = 10
	shop.Restock(more)
	if _, err := stock.Add(ctx, demoSKU, more); err != nil {
		return err
	}
	fmt.Printf("\n%d more units are for sale: open http://%s/ in a browser. Ctrl-C ends it.\n", more, front)
	<-ctx.Done()
	return nil
}

// demoGate is a gate that listens.
type demoGate struct {
	*gate
	side aside
}

func (d *demoCommand) openGate(shop *demo.Shop, stock *stockgate.Memory) (*demoGate, string, error) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	ln, err := net.Listen("tcp", d.Listen)
	if err != nil {
		return nil, "", fmt.Errorf("--listen: %w", err)
	}
	c, err := config.Parse("demo", fmt.Appendf(nil, demoConfig, ln.Addr(), shop.Addr(), ""), noEnvironment)
	if err != nil {
		return nil, "", err
	}
	g, err := newGate(c, trial{shop: stock}, log)
	if err != nil {
		return nil, "", err
	}
	var draining atomic.Bool
	side, err := g.listenAside(&draining, false, log)
	if err != nil {
		return nil, "", err
	}
	go func(ln net.Listener) { _ = g.server.Serve(ln) }(ln) // ends with stop
	return &demoGate{g, side}, reachable(ln.Addr()), nil
}

// reachable is an address that a browser can open, also where every interface is listened on.
func reachable(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return at.String()
}

func (g *demoGate) stop() {
	g.side.close()
	g.drain(g.config.Server.ShutdownTimeout)
	g.close()
}
