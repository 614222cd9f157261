package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sluice/demo"
)

type demoCommand struct {
	Shoppers    int           `default:"2000" help:"How many want it."`
	Units       int64         `default:"100" help:"How many there are."`
	Patience    time.Duration `default:"20s" help:"When the last shopper goes home."`
	Gate        string        `default:"reserve" enum:"reserve,check" help:"Who takes the units: the gate before it forwards (reserve), or the shop (check)."`
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
	units, err := newDemoStock(ctx, withGate && d.Gate == "reserve", d.Units)
	if err != nil {
		return demo.Report{}, err
	}
	shop, err := demo.OpenShop(units.shopOptions(d.Units))
	if err != nil {
		return demo.Report{}, err
	}
	defer shop.Close()
	crowd := demo.Crowd{Front: shop.Addr(), SKU: demoSKU, Shoppers: d.Shoppers, Patience: d.Patience}
	if withGate {
		var g *demoGate
		if g, crowd.Front, err = d.openGate(shop, units); err != nil {
			return demo.Report{}, err
		}
		defer g.stop()
		crowd.Ledger = units.books(g.orders)
		fmt.Printf("shop   http://%s  60 orders/s, 40 ms each, %d units\ngate   http://%s  %s\ncrowd  %d shoppers\n\n",
			shop.Addr(), d.Units, crowd.Front, units.gate(), d.Shoppers)
	}
	report, err := crowd.Run(ctx, shop, os.Stdout)
	if err != nil {
		return report, err
	}
	fmt.Println()
	if _, err := report.WriteTo(os.Stdout); err != nil {
		return report, err
	}
	if withGate && d.Keep && ctx.Err() == nil {
		return report, keep(ctx, shop, units, crowd.Front)
	}
	return report, nil
}

// keep puts ten more on the shelf for whoever looks in with a browser.
func keep(ctx context.Context, shop *demo.Shop, units demoStock, front string) error {
	const more = 10
	shop.Restock(more)
	if err := units.add(ctx, more); err != nil {
		return err
	}
	fmt.Printf("\n%d more units are for sale: open http://%s/ in a browser. Ctrl-C ends it.\n", more, front)
	<-ctx.Done()
	return nil
}
