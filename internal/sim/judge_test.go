package sim

// Time in this file is virtual (testing/synctest).

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

// calm waits until nothing is wrong, or until an operator has to open the SKU.
func (w *world) calm(ctx context.Context) (faults []string) {
	pause, began := time.Second, time.Now()
	for time.Since(began) < quietEnd {
		if w.paused { // as instances do that find an override in Redis which is over
			w.reinstate()
		}
		if faults = w.judge(ctx); len(faults) == 0 ||
			w.closed && w.acts(time.Since(began)) {
			break
		}
		time.Sleep(pause + time.Millisecond/3)
		pause = min(pause+time.Second/10, 4*time.Second)
	}
	return faults
}

// acts reports whether an operator opens a SKU that is closed for so long: in a hurry, since the log names what to do,
// or since the dashboard still shows it as frozen.
func (w *world) acts(closed time.Duration) bool {
	return w.named.Load() || (w.hurried || w.gone) && closed > hurry || closed > patience
}

// operate does what an operator does who sees the books of ledger and shop: what the shop has is sold, what it gave
// back is refunded, and the SKU is on sale again. A ledger that is gone is made again before.
func (w *world) operate(ctx context.Context) error {
	store := w.at(0).store
	if w.gone {
		if _, err := store.Recreate(ctx, sku, w.total, w.perUser, false); err != nil {
			return err
		}
		time.Sleep(8 * time.Second) // as sluice stock recover does: instances tell what they know
	}
	w.shop.mu.Lock()
	var sold, back []ledger.Item
	for _, serial := range slices.Sorted(maps.Keys(w.shop.orders)) {
		o := w.shop.orders[serial]
		it := ledger.Item{Serial: serial, User: o.user, Quantity: o.quantity}
		switch {
		case o.made && !o.cancelled:
			sold = append(sold, it)
		case o.cancelled:
			back = append(back, it)
		}
	}
	w.shop.mu.Unlock()
	lost, err := w.tellLedger(ctx, store, ledger.Refund, back) // of which it knows nothing
	for _, act := range []struct {
		op    ledger.Op
		items []ledger.Item
	}{{ledger.Adopt, append(sold, lost...)}, {ledger.Refund, lost}} {
		if err == nil {
			_, err = w.tellLedger(ctx, store, act.op, act.items)
		}
	}
	if err != nil {
		return err
	}
	_, err = store.SetState(ctx, sku, ledger.On)
	return err
}

// tellLedger tells the ledger what an operator knows of orders, and returns those that it does not know.
func (w *world) tellLedger(ctx context.Context, store *ledger.Store, op ledger.Op, items []ledger.Item) (
	unknown []ledger.Item, err error) {
	if len(items) == 0 {
		return nil, nil
	}
	done, now := make([]ledger.Done, len(items)), time.Now().UnixMilli()
	_, err = store.Finish(ctx, sku, now, now+keep, op, items, done)
	for i, it := range items {
		if done[i] == ledger.NotFound {
			unknown = append(unknown, it)
		}
	}
	return unknown, err
}

// keep is for how long a released serial is remembered, in ms.
const keep = 24 * 3600 * 1000

// judge compares ledger, shop and database.
func (w *world) judge(ctx context.Context) (faults []string) {
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	store := w.at(0).store
	w.closed, w.gone = false, false
	stock, ok, err := store.ReadStock(ctx, sku)
	if err != nil || !ok {
		w.gone = errors.Is(err, ledger.ErrLost) || err == nil
		w.closed = w.gone
		wrong("the ledger cannot be read: %v %t", err, ok)
		return faults
	}
	records := make(map[string]ledger.Record)
	if err := store.Records(ctx, sku, func(r ledger.Record) bool { records[r.Serial] = r; return true }); err != nil {
		wrong("the records cannot be read: %v", err)
		return faults
	}
	faults = append(faults, w.addUp(ctx, store, stock, records)...)
	if w.settles { // no lock is held while Redis is asked: only what waits for time lets time pass
		c, _, err := settle.Verify(ctx, w.stream, w.database, sku)
		c.Differences = slices.DeleteFunc(c.Differences, func(d settle.Difference) bool {
			// An order that never came to be, and that a ledger which was made again does not know: the row stays as missing.
			return w.emptied && d.Ledger == "" && strings.HasPrefix(d.Database, "held ") && !w.shop.stands(d.Serial)
		})
		if err != nil || !c.Equal() {
			wrong("ledger and database: %v %+v", err, c.Differences)
		}
		for _, b := range w.database.backs {
			if b.done == "" {
				wrong("give-back of %s is not done", b.Serial)
			}
		}
	}
	w.shop.mu.Lock()
	defer w.shop.mu.Unlock()
	units := make(map[string]int64)
	for _, o := range w.shop.orders {
		if o.made && !o.cancelled {
			units[o.user] += o.quantity
		}
	}
	for user, n := range units {
		if w.perUser > 0 && n > w.perUser {
			wrong("%s has %d units", user, n)
		}
	}
	if len(w.shop.twice) > 0 {
		wrong("the shop got orders twice: %v", w.shop.twice)
	}
	if sold := w.shop.sold(); sold > w.total {
		wrong("oversold: %d of %d", sold, w.total)
	}
	if w.closed = stock.State != ledger.On; w.closed {
		wrong("the SKU is %s", stock.State)
	}
	if stock.Held > 0 {
		wrong("%d units are still held", stock.Held)
	}
	if sold := w.shop.sold(); stock.Sold != sold {
		wrong("the ledger has %d units sold, the shop %d", stock.Sold, sold)
	}
	for serial, o := range w.shop.orders {
		r := records[serial]
		if stands := o.made && !o.cancelled; stands != (r.Status == ledger.StatusSold) {
			wrong("%s: shop: %s; ledger: %c", serial, o, r.Status)
		}
	}
	for serial, r := range records {
		if r.Status == ledger.StatusSold && w.shop.orders[serial] == nil {
			wrong("%s is sold, and the shop does not know it", serial)
		}
	}
	slices.Sort(faults)
	return faults
}

// addUp compares the numbers of the ledger with its records: they are the scripts' own sums.
func (w *world) addUp(ctx context.Context, store *ledger.Store, stock ledger.Stock,
	records map[string]ledger.Record) (faults []string) {
	var held, sold int64
	units := make(map[string]int64)
	for _, r := range records {
		switch r.Status {
		case ledger.StatusHeld:
			held += r.Quantity
		case ledger.StatusSold:
			sold += r.Quantity
		default:
			r.Quantity = 0
		}
		units[r.User] += r.Quantity
	}
	if held != stock.Held || sold != stock.Sold {
		faults = append(faults, fmt.Sprintf("the ledger has %d units held and %d sold, its records %d and %d", stock.Held,
			stock.Sold, held, sold))
	}
	users := slices.Sorted(maps.Keys(units))
	if len(users) == 0 {
		return faults
	}
	own := store.UnitsOf(ctx, []string{sku}, users)[0]
	for i, user := range users {
		if own.Err != nil || len(own.Units) != len(users) || own.Units[i] != units[user] {
			return append(faults, fmt.Sprintf("the ledger has %v units of %q, its records %v: %v", own.Units, users, units,
				own.Err))
		}
	}
	return faults
}
