package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"sluice/internal/load"
	"sluice/internal/periodic"
)

// keepConfig is what a sale with spectators has besides: hours, so that it can be waited for and paused; a window that
// lets half of what the shop bears through, so that a limit can be raised; and a rate, so that one client is loud.
const keepConfig = `
[[sale]]
name = "demo"
skus = [%q]
starts = %s
ends = %s
[limits.window]
size = "100ms"
max = 3
max_per_sku = 0
[[limits.rate]]
name = "per-address"
key = "$remote_addr"
rate = "1/s"
burst = 3
`

// How the crowd comes with spectators: as many as --shoppers say within a minute, in waves, for as long as it is
// wanted.
const (
	waveEvery = 5 * time.Second
	waves     = int(time.Minute / waveEvery)
	longSale  = 12 * time.Hour
)

// keepText is keepConfig of a sale that opens at opens.
func keepText(opens time.Time) string {
	return fmt.Sprintf(keepConfig, SKU, opens.Format(time.RFC3339), opens.Add(longSale).Format(time.RFC3339))
}

// kept is a sale until Ctrl-C, which is steered on the dashboard.
func (d *Options) kept(ctx context.Context) error {
	units, err := newDemoStock(ctx, d.Gate == "reserve", d.Units)
	if err != nil {
		return err
	}
	defer units.close()
	shop, err := OpenShop(units.shopOptions(d))
	if err != nil {
		return err
	}
	defer shop.Close()
	opens := time.Now().Add(d.OpensIn).Truncate(time.Second)
	g, front, err := d.openGate(shop, units, keepText(opens))
	if err != nil {
		return err
	}
	defer g.stop()
	d.introduce(shop, g, units.gate(), front)
	fmt.Printf("crowd  %d shoppers a minute; the sale opens at %s\n\nOpen the link behind \"watch\" in a browser. To "+
		"buy one yourself: http://%s/  Ctrl-C ends it.\n",
		d.Shoppers, opens.Local().Format(time.TimeOnly), front)
	if units.Ledger == nil {
		d.crowds(ctx, shop, front)
		fmt.Printf("\nsold   %d\n", shop.Totals().Orders)
		return nil
	}
	d.crowds(ctx, shop, front)
	audited, err := d.audit(ctx, units.Ledger, shop.Orders())
	if err != nil {
		return err
	}
	return tellKept(units.books(g.Orders())(), audited)
}

// crowds lets one wave of shoppers in after the other, and returns when all have gone home.
func (d *Options) crowds(ctx context.Context, shop *load.Shop, front string) {
	var all sync.WaitGroup
	defer all.Wait()
	each, first := max(1, d.Shoppers/waves), 0
	periodic.Now(ctx, waveEvery, func(ctx context.Context) {
		crowd := Crowd{Front: front, Shoppers: each, First: first,
			Spread: waveEvery, GiveUpAfter: d.GiveUpAfter}
		first += each
		all.Go(func() {
			if _, err := crowd.Run(ctx, shop, io.Discard); err != nil && crowd.First == 0 {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	})
}

// tellKept says how the books stand at the end.
func tellKept(l load.Ledger, a *Audit) error {
	fmt.Printf("\nledger %d total = %d held + %d sold + %d free\nshop   %d orders, %d oversold, %d shoppers with two\n%s",
		l.Total, l.Held, l.Sold, l.Free, a.Orders, a.Oversold, a.Twice, a)
	if a.Oversold != 0 {
		return fmt.Errorf("%d units were oversold", a.Oversold)
	}
	return nil
}
