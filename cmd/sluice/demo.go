package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sluice/demo"
)

type demoCommand struct {
	Shoppers    *int          `help:"How many want it: 2000; or with --keep 6000, in each minute." placeholder:"N"`
	Units       *int64        `help:"How many there are: 100; or with --keep 2000." placeholder:"N"`
	Patience    time.Duration `default:"20s" help:"When the last shopper goes home."`
	Gate        string        `default:"reserve" enum:"reserve,check" help:"Who takes the units: the gate before it forwards (reserve), or the shop (check)."`
	WithoutGate bool          `help:"Then the same crowd at the bare shop, and both side by side."`
	Keep        bool          `help:"A sale to watch and to steer on the dashboard, until Ctrl-C: new shoppers come all the time, and units are sold more slowly."`
	OpensIn     time.Duration `default:"15s" help:"With --keep: when the sale opens."`
	Listen      string        `default:"127.0.0.1:0" help:"Where the gate listens; any free port by default." placeholder:"127.0.0.1:8080"`
	Dashboard   string        `default:"127.0.0.1:0" help:"Where the dashboard listens; any free port by default." placeholder:"127.0.0.1:8090"`
}

// Validate is called when the line is read; its error is one of usage.
func (d *demoCommand) Validate() error {
	if d.Shoppers == nil {
		d.Shoppers = new(usual(d.Keep, 6000, 2000))
	}
	if d.Units == nil {
		d.Units = new(usual[int64](d.Keep, 2000, 100))
	}
	switch {
	case *d.Shoppers < 1:
		return fmt.Errorf("--shoppers %d: it takes 1 or more", *d.Shoppers)
	case *d.Units < 0:
		return fmt.Errorf("--units %d: it must not be negative", *d.Units)
	case d.Keep && d.WithoutGate:
		return errors.New("--keep is a sale with the gate: it does not go with --without-gate")
	case d.OpensIn < 0:
		return fmt.Errorf("--opens-in %s: it must not be negative", d.OpensIn)
	case d.Patience <= 0:
		return fmt.Errorf("--patience %s: it must be above 0s", d.Patience)
	}
	return nil
}

// usual is what a number is when nobody says it.
func usual[N int | int64](keep bool, kept, once N) N {
	if keep {
		return kept
	}
	return once
}

const demoSKU = "1001"

func (d *demoCommand) Run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if d.Keep {
		return d.kept(ctx)
	}
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
	units, err := newDemoStock(ctx, withGate && d.Gate == "reserve", *d.Units)
	if err != nil {
		return demo.Report{}, err
	}
	shop, err := demo.OpenShop(units.shopOptions(*d.Units))
	if err != nil {
		return demo.Report{}, err
	}
	defer shop.Close()
	crowd := demo.Crowd{Front: shop.Addr(), SKU: demoSKU, Shoppers: *d.Shoppers, Patience: d.Patience}
	if withGate {
		var g *demoGate
		if g, crowd.Front, err = d.openGate(shop, units, ""); err != nil {
			return demo.Report{}, err
		}
		defer g.stop()
		crowd.Ledger = units.books(g.orders)
		d.introduce(shop, g, units, crowd.Front)
		fmt.Printf("crowd  %d shoppers\n\n", *d.Shoppers)
	}
	report, err := crowd.Run(ctx, shop, os.Stdout)
	if err != nil {
		return report, err
	}
	fmt.Println()
	_, err = report.WriteTo(os.Stdout)
	return report, err
}

// introduce says what is where.
func (d *demoCommand) introduce(shop *demo.Shop, g *demoGate, units demoStock, front string) {
	fmt.Printf("shop   http://%s  60 orders/s, 40 ms each, %d units\ngate   http://%s  %s\nwatch  %s\n", shop.Addr(), *d.Units, front, units.gate(), g.watchAt())
}
