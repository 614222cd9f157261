package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sluice/internal/load"
	"sluice/stockgate/ledger"
)

// Options are the size of a sale, and where it can be watched.
type Options struct {
	Shoppers    int
	Units       int64
	GiveUpAfter time.Duration // after which the last shopper gives up
	Gate        string        // "reserve" or "check": who takes the units
	WithoutGate bool          // then the same crowd at the bare shop
	Queue       bool          // orders wait for a slow shop; then the same crowd without a queue
	Keep        bool          // until the context ends
	Room        bool          // with a waiting room before it
	OpensIn     time.Duration // with Keep: when the sale opens
	Listen      string        // address of the gateway
	Dashboard   string        // address of the dashboard; "" = none
	Version     string        // of the program

	// Audit counts what the ledger has sold beside the shop's orders, which are buyers by serial, when a sale with a
	// ledger is over; nil = by the ledger's own records.
	Audit func(ctx context.Context, store *ledger.Store, orders map[string]string) (*Audit, error)

	slow bool // the shop is that of a queue, and no order waits
}

// pace is what the shop can bear: orders at a time, and how long one takes.
func (d *Options) pace() (capacity int, latency time.Duration) {
	if d.Queue || d.slow {
		return 4, 200 * time.Millisecond
	}
	return 3, 50 * time.Millisecond
}

// maxPatience bounds the memory of a crowd, which has a page for each millisecond.
const maxPatience = 15 * time.Minute

// Check reports what is out of range, by the name of its flag.
func (d *Options) Check() error {
	switch {
	case d.Shoppers < 1:
		return fmt.Errorf("--shoppers %d: it takes 1 or more", d.Shoppers)
	case d.Units < 0:
		return fmt.Errorf("--units %d: it must not be negative", d.Units)
	case d.Keep && d.WithoutGate:
		return errors.New("--keep is a sale with the gateway: it does not go with --without-gate")
	case d.Room && (d.Keep || d.WithoutGate || d.Gate == "check"):
		return errors.New("--room is a sale of its own, whose units the gateway takes: it does not go with --keep, " +
			"--without-gate and --gate=check")
	case d.Queue && (d.Keep || d.WithoutGate || d.Room || d.Gate == "check"):
		return errors.New("--queue is a sale of its own, whose gateway reserves: it does not go with --keep, " +
			"--without-gate, --room and --gate=check")
	case d.OpensIn < 0:
		return fmt.Errorf("--opens-in %s: it must not be negative", d.OpensIn)
	case d.GiveUpAfter <= 0 || d.GiveUpAfter > maxPatience:
		return fmt.Errorf("--patience %s: it must be above 0s, and at most %s", d.GiveUpAfter, maxPatience)
	}
	return nil
}

// Run holds the sale and prints what happens, until it is over or ctx ends.
func (d *Options) Run(ctx context.Context) error {
	switch {
	case d.Keep:
		return d.kept(ctx)
	case d.Room:
		return d.inRoom(ctx)
	}
	gated, err := d.sale(ctx, true)
	if err != nil {
		return err
	}
	results := []Report{gated}
	if d.Queue && ctx.Err() == nil {
		fmt.Println("\nthe same crowd and shop, and no order waits")
		direct := *d
		direct.Queue, direct.slow = false, true
		without, err := direct.sale(ctx, true)
		if err != nil {
			return err
		}
		results = append(results, without)
	}
	if d.WithoutGate && ctx.Err() == nil {
		fmt.Println("\nthe same crowd at a naive shop: it reads the stock when a request arrives, and takes the unit when " +
			"it is paid")
		bare, err := d.sale(ctx, false)
		if err != nil {
			return err
		}
		results = append(results, bare)
	}
	fmt.Println()
	if err := writeResults(os.Stdout, results...); err != nil {
		return err
	}
	return gated.Err()
}

// sale opens a shop, with a gate or without, lets the crowd in, and reports.
func (d *Options) sale(ctx context.Context, withGate bool) (Report, error) {
	units, err := newDemoStock(ctx, withGate && d.Gate == "reserve", d.Units)
	if err != nil {
		return Report{}, err
	}
	defer units.close()
	options := units.shopOptions(d)
	if !withGate {
		options.Naive, options.Reserved, options.Take = true, false, nil
	}
	shop, err := OpenShop(options)
	if err != nil {
		return Report{}, err
	}
	defer shop.Close()
	crowd := Crowd{Front: shop.Addr(), Shoppers: d.Shoppers, GiveUpAfter: d.GiveUpAfter, Waits: d.Queue}
	if withGate {
		var g *demoGate
		if g, crowd.Front, err = d.openGate(shop, units, ""); err != nil {
			return Report{}, err
		}
		defer g.stop()
		crowd.Ledger = units.books(g.Orders())
		d.introduce(shop, g, units.gate(), crowd.Front)
		fmt.Printf("crowd  %s shoppers\n\n", count(int64(d.Shoppers)))
	}
	if crowd.Ledger == nil {
		return crowd.Run(ctx, shop, os.Stdout)
	}
	r, err := crowd.Run(ctx, shop, os.Stdout)
	if err == nil {
		r.Audit, err = d.audit(ctx, units.Ledger, shop.Orders())
	}
	return r, err
}

// introduce says what is where.
func (d *Options) introduce(shop *load.Shop, g *demoGate, gate, front string) {
	capacity, latency := d.pace()
	delivery := ""
	if d.Queue {
		delivery = ", delivery queue"
	}
	fmt.Printf("shop   http://%s  %d orders/s, %d ms each, %d units\ngate   http://%s  %s%s\nwatch  %s\n", shop.Addr(),
		int(float64(capacity)/latency.Seconds()), latency.Milliseconds(), d.Units, front, gate, delivery, g.watchAt())
}
