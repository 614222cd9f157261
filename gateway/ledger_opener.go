package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/periodic"
	"sluice/room"
	"sluice/stockgate/ledger"
	"sluice/stockgate/sale"
)

// ledgerOpener tells the ledgers their hours, and writes the stock of sales that have none yet. Every instance does,
// and it does not matter which one is first. Each tells a ledger its hours once, and again in each later epoch: Redis
// may have lost them with the epoch before. In one epoch the last instance that tells them has the last word, so
// instances with different files do not overwrite each other for ever. An instance that finds other hours than its own
// says so, and tells its own again when they change or it starts: a reload of anything else must not take back what
// another instance has told since.
//
// Stock is written before the start and at no other time. A ledger that is missing later may have been lost with what
// was sold out of it, and must not be made anew with all that there was.
type ledgerOpener struct {
	schedule *sale.Schedule
	orders   *orderLedger
	log      *slog.Logger

	skus map[string]*openedSKU // of the goroutine alone

	stop context.CancelFunc
	done sync.WaitGroup
}

// saleHours are what the ledger of a SKU goes by, with the units and the limit that the configuration has for it.
type saleHours struct {
	opens, closes int64
	units, limit  int
}

// openedSKU is a SKU of a sale, with what its ledger was told, and in which epoch.
type openedSKU struct {
	told  saleHours
	epoch int64

	otherSince  int64 // ns: since then the ledger has other hours than it was told here; 0 = it has not
	otherLogged bool
	retryAt     int64 // ns: it is not tried before
	reported    bool  // the log knows that it has no ledger
	missed      bool  // its ledger was lost at the last try; another instance may be making it
}

const (
	scheduleEvery = 250 * time.Millisecond
	scheduleRest  = int64(2 * time.Second) // for a SKU that has no ledger, or whose ledger could not be told
	tellTimeout   = time.Second
	otherFor      = int64(5 * time.Second) // other hours are reported then: not all instances are reloaded at once
)

// openBySales keeps the ledgers of orders to the sales in force.
func openBySales(schedule *sale.Schedule, orders *orderLedger, log *slog.Logger) *ledgerOpener {
	o := &ledgerOpener{schedule: schedule, orders: orders, log: log, skus: map[string]*openedSKU{}}
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
// reached. While the clocks differ it tells the hours of sales that have begun alone: by a wrong clock another sale of
// the SKU could be next.
func (o *ledgerOpener) openDue(ctx context.Context) {
	c, now := o.orders.now.Load().Config, o.orders.clocks.Now()
	if o.orders.Reserver() == nil {
		return // not before Redis is known to be fit
	}
	_, wrong := o.schedule.Skew()
	other, away := "", false
	for i := range c.Sales {
		for _, sku := range c.Sales[i].SKUs {
			p, ok := o.schedule.At(now, []byte(sku))
			p.Closes = stores.LastClose(c, sku, p.Closes)
			told := saleHours{p.Opens, p.Closes, c.Sales[i].Stock[sku], c.Stock.Reserve.MaxPerUser}
			if o.skus[sku] == nil {
				o.skus[sku] = &openedSKU{}
			}
			was := o.skus[sku]
			if !ok || p.Sale != c.Sales[i].Name || now < was.retryAt {
				continue
			}
			if was.told == told && o.seenEpoch(sku) <= was.epoch {
				other = cmp.Or(other, o.compare(now, p.Sale, sku, was))
				continue
			}
			if away || wrong && !p.Begun {
				continue
			}
			if err := o.open(ctx, c, &c.Sales[i], sku, p, was); err != nil {
				was.retryAt = now + scheduleRest
				away = !errors.Is(err, ledger.ErrUnknownSKU) && !errors.Is(err, ledger.ErrLost)
			}
		}
	}
	o.orders.otherHours.Store(&other)
}

// seenEpoch is the latest epoch of the ledger of sku that this instance has seen.
func (o *ledgerOpener) seenEpoch(sku string) int64 {
	return o.orders.Store.Seen.Find(sku).Claim().Epoch
}

// compare tells of a ledger that has had other hours than told for a while; "" = it has not. The log has it once.
func (o *ledgerOpener) compare(now int64, name, sku string, s *openedSKU) string {
	h, ok := o.orders.Reserver().Last(sku)
	switch {
	case !ok:
		return ""
	case h.Opens == s.told.opens && h.Closes == s.told.closes:
		s.otherSince, s.otherLogged = 0, false
		return ""
	case s.otherSince == 0:
		s.otherSince = now
	}
	text := ""
	if now-s.otherSince >= otherFor {
		text = fmt.Sprintf("the ledger of %q sells from %s, and [[sale]] %q of this instance says from %s: another instance "+
			"has told it other hours: make the files the same, and restart this instance", sku, room.HoursText(h.Opens, h.Closes),
			name, room.HoursText(s.told.opens, s.told.closes))
		if !s.otherLogged {
			s.otherLogged = true
			o.log.Warn("sale: " + text)
		}
	}
	return text
}

// open says its hours to the ledger of sku, and makes it where it is time to.
func (o *ledgerOpener) open(ctx context.Context, c *config.Config, s *config.Sale, sku string, p sale.Phase,
	was *openedSKU) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	limit := c.Stock.Reserve.MaxPerUser
	has, err := o.orders.Store.SetSchedule(ctx, sku, p.Opens, p.Closes)
	units, stocked := s.Stock[sku]
	if err == nil && stocked && p.Wait > 0 && has.Total != int64(units) {
		o.log.Warn("sale: this SKU has a ledger, with another total; a sale's stock makes new ledgers alone, and nothing is "+
			"added", "sale", s.Name, "sku", sku, "stock", units, "total", has.Total, "sold", has.Sold,
			"fix", "sluice stock add "+sku+" UNITS")
	}
	if err == nil && has.Limit != int64(limit) {
		o.log.Warn("sale: this SKU has a ledger, with another limit of units for each user; stock.reserve.max_per_user is "+
			"for new ledgers", "sku", sku, "max_per_user", limit, "limit", has.Limit,
			"fix", fmt.Sprintf("sluice stock set %s %d --limit %d", sku, has.Total, limit))
	}
	if err == nil && p.State != sale.Ended && has.Free > 0 && (has.State == ledger.Paused || has.State == ledger.Ended) {
		o.log.Warn("sale: this SKU has a ledger that was "+string(has.State)+" by itself: its orders are rejected also "+
			"while the sale is on", "sale", s.Name, "sku", sku, "fix", "sluice stock resume "+sku)
	}
	if stocked && errors.Is(err, ledger.ErrUnknownSKU) && p.Wait > 0 {
		var made bool
		begin := ledger.Opening{Total: int64(units), Limit: int64(limit),
			Opens: p.Opens, Closes: p.Closes}
		if has, made, err = o.orders.Store.Create(ctx, sku, begin); err == nil && !made {
			has, err = o.orders.Store.SetSchedule(ctx, sku, p.Opens,
				p.Closes) // another instance was first, perhaps by an older schedule
		}
		if made {
			o.log.Info("sale: stock written", "sale", s.Name, "sku", sku, "units", units)
		}
	}
	if err == nil {
		if was.epoch > 0 && was.epoch < has.Epoch {
			o.log.Info("sale: the ledger has a new epoch, and was told its hours again", "sale", s.Name, "sku", sku, "epoch",
				has.Epoch, "hours", room.HoursText(p.Opens, p.Closes))
		}
		// A ledger that is behind what was seen of it begins a later epoch when it opens.
		was.told, was.epoch = saleHours{p.Opens, p.Closes, units, limit}, max(has.Epoch, o.seenEpoch(sku))
		was.missed, was.reported = false, false
		o.track(sku, has.StockVersion)
		return nil
	}
	lost, again := errors.Is(err, ledger.ErrLost), was.missed
	was.missed = lost
	if (lost && again || !lost && stocked && p.State != sale.Waiting) && !was.reported {
		was.reported = true
		next := ledger.RecoverLost(sku)
		if !lost {
			next = "if it was ever sold: " + next + "; if it is new: sluice stock set " + sku + " UNITS"
		}
		o.log.Error("sale: this SKU has no ledger, and stock is written before the start alone, since one that was sold "+
			"from may have been lost", "sale", s.Name, "sku", sku, "err", err, "fix", next)
	}
	return err
}

// track lets the reserver know of a ledger without requests: what is left of it can then be shown.
func (o *ledgerOpener) track(sku string, h ledger.StockVersion) {
	o.orders.none.Store(false)
	if d := o.orders.Reserver(); d != nil && d.Track(sku) {
		d.Learn(sku, h)
	}
}
