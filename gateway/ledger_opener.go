package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"sluice/config"
	"sluice/internal/periodic"
	"sluice/stockgate/ledger"
	"sluice/stockgate/sale"
)

// ledgerOpener tells the ledgers their hours, and writes the stock of sales that have none yet. Every instance does,
// and it does not matter which one is first. What is said to a ledger is said once by each: an operator, or an instance
// with a newer schedule, has the last word.
//
// Stock is written before the start and at no other time. A ledger that is missing later may have been lost with what
// was sold out of it, and must not be made anew with all that there was.
type ledgerOpener struct {
	schedule *sale.Schedule
	orders   *orderLedger
	log      *slog.Logger

	written  map[string]saleHours // by SKU: what its ledger was told; of the goroutine alone
	retryAt  map[string]int64     // by SKU: it is not tried before (ns)
	reported map[string]bool      // by SKU: the log knows that it has no ledger
	missed   map[string]bool      // by SKU: its ledger was lost at the last try; another instance may be making it

	stop context.CancelFunc
	done sync.WaitGroup
}

// saleHours are what the ledger of a SKU goes by, with the units and the limit that the configuration has for it.
type saleHours struct {
	opens, closes int64
	units, limit  int
}

const (
	scheduleEvery = 250 * time.Millisecond
	scheduleRest  = int64(2 * time.Second) // for a SKU that has no ledger, or whose ledger could not be told
	tellTimeout   = time.Second
)

// openBySales keeps the ledgers of orders to the sales in force.
func openBySales(board *sale.Schedule, orders *orderLedger, log *slog.Logger) *ledgerOpener {
	o := &ledgerOpener{schedule: board, orders: orders, log: log, written: map[string]saleHours{},
		retryAt: map[string]int64{}, reported: map[string]bool{}, missed: map[string]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	o.done.Go(func() { o.run(ctx) })
	return o
}

// Close ends that.
func (o *ledgerOpener) Close() {
	o.stop()
	o.done.Wait()
}

func (o *ledgerOpener) run(ctx context.Context) { periodic.Now(ctx, scheduleEvery, o.openDue) }

// openDue visits every SKU whose hours its ledger does not know yet. It gives up for now when the ledgers cannot be
// reached.
func (o *ledgerOpener) openDue(ctx context.Context) {
	c, now := o.orders.now.Load().Config, o.orders.clocks.Now()
	if o.orders.Reserver() == nil {
		return // not before Redis is known to be fit
	}
	for i := range c.Sales {
		for _, sku := range c.Sales[i].SKUs {
			p, ok := o.schedule.At(now, []byte(sku))
			p.Closes = lastClose(c, sku, p.Closes)
			told := saleHours{p.Opens, p.Closes, c.Sales[i].Stock[sku], c.Stock.Reserve.MaxPerUser}
			if !ok || p.Sale != c.Sales[i].Name || o.written[sku] == told || now < o.retryAt[sku] {
				continue
			}
			if err := o.open(ctx, &c.Sales[i], sku, p, told.limit); err != nil {
				o.retryAt[sku] = now + scheduleRest
				if ctx.Err() != nil || !errors.Is(err, ledger.ErrUnknownSKU) && !errors.Is(err, ledger.ErrLost) {
					return
				}
			}
		}
	}
}

// lastClose is when the sales of sku that follow each other without a pause have all ended, of which the first ends at
// closes (Unix ms): between two of them no client may hear that all is over.
func lastClose(c *config.Config, sku string, closes int64) int64 {
	for again := true; again; {
		again = false
		for i := range c.Sales {
			s := &c.Sales[i]
			if s.Starts.UnixMilli() == closes && slices.Contains(s.SKUs, sku) {
				closes, again = s.Ends.UnixMilli(), true
			}
		}
	}
	return closes
}

// open says its hours to the ledger of sku, and makes it where it is time to.
func (o *ledgerOpener) open(ctx context.Context, s *config.Sale, sku string, p sale.Phase, limit int) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	has, err := o.orders.Store.SetSchedule(ctx, sku, p.Opens, p.Closes)
	units, stocked := s.Stock[sku]
	if err == nil && stocked && p.Wait > 0 && has.Total != int64(units) {
		o.log.Warn("sale: this SKU has a ledger, with another total; a sale's stock makes new ledgers alone, and nothing is "+
			"added", "sale", s.Name, "sku", sku, "stock", units, "total", has.Total, "sold", has.Sold,
			"next", "sluice stock add "+sku+" UNITS")
	}
	if err == nil && has.Limit != int64(limit) {
		o.log.Warn("sale: this SKU has a ledger, with another limit of units for each user; stock.reserve.max_per_user is "+
			"for new ledgers", "sku", sku, "max_per_user", limit, "limit", has.Limit,
			"next", fmt.Sprintf("sluice stock set %s %d --limit %d", sku, has.Total, limit))
	}
	if _, wrong := o.schedule.Skew(); stocked && !wrong && errors.Is(err, ledger.ErrUnknownSKU) && p.Wait > 0 {
		var made bool
		begin := ledger.Opening{Total: int64(units), Limit: int64(limit),
			Opens: p.Opens, Closes: p.Closes}
		if _, made, err = o.orders.Store.Create(ctx, sku, begin); err == nil && !made {
			_, err = o.orders.Store.SetSchedule(ctx, sku, p.Opens,
				p.Closes) // another instance was first, perhaps by an older schedule
		}
		if made {
			o.log.Info("sale: stock written", "sale", s.Name, "sku", sku, "units", units)
		}
	}
	if err == nil {
		o.written[sku] = saleHours{p.Opens, p.Closes, units, limit}
		o.track(sku)
		return nil
	}
	lost, again := errors.Is(err, ledger.ErrLost), o.missed[sku]
	o.missed[sku] = lost
	if (lost && again || !lost && stocked && p.State != sale.Waiting) && !o.reported[sku] {
		o.reported[sku] = true
		next := ledger.RecoverLost(sku)
		if !lost {
			next = "if it was ever sold: " + next + "; if it is new: sluice stock set " + sku + " UNITS"
		}
		o.log.Error("sale: this SKU has no ledger, and stock is written before the start alone, since one that was sold "+
			"from may have been lost", "sale", s.Name, "sku", sku, "cause", err, "next", next)
	}
	return err
}

// track lets the reserver know of a ledger without requests: what is left of it can then be shown.
func (o *ledgerOpener) track(sku string) {
	if d := o.orders.Reserver(); d != nil {
		d.Track(sku)
	}
}
