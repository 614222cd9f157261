package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/admin"
	"sluice/stockgate/ledger"
)

func (l *Ledgers) reservation(sku string, r ledger.Record) admin.Reservation {
	out := admin.Reservation{SKU: sku, Serial: r.Serial, User: r.User, Quantity: r.Quantity, State: r.Status}
	if r.Status == ledger.StatusHeld {
		out.Deadline = time.UnixMilli(r.Deadline).UTC()
		d := l.reserver()
		out.Unknown = d != nil && d.IsUnknown(sku, r.Serial)
	}
	return out
}

func (l *Ledgers) Reservation(ctx context.Context, sku, serial string) (admin.Reservation, bool, error) {
	if err := speakable(serial); err != nil {
		return admin.Reservation{}, false, err
	}
	r, ok, err := l.store.Find(ctx, sku, serial)
	if err == nil && !ok {
		err = l.notLost(ctx, sku)
	}
	if err != nil || !ok {
		return admin.Reservation{}, false, err
	}
	return l.reservation(sku, r), true, nil
}

// Lacks implements admin.Ledgers.
func (l *Ledgers) Lacks(ctx context.Context, sku, serial string) error {
	found := l.store.FindAll(ctx, []ledger.OrderName{{SKU: sku, Serial: serial}})[0]
	if found.OK {
		return errors.New("it is there again")
	}
	return found.Err
}

// notLost is an error, with the way out, if a SKU has no ledger any more: what it does not know may be an order.
func (l *Ledgers) notLost(ctx context.Context, sku string) error {
	_, err := l.Stock(ctx, sku)
	if errors.Is(err, admin.ErrNoSKU) {
		return nil
	}
	return err
}

// speakable rejects what no order could have as its serial.
func speakable(serial string) error {
	if ledger.ValidSerial([]byte(serial)) {
		return nil
	}
	return fmt.Errorf("serial %.140q: %w: it has 1 to 128 visible ASCII characters", serial, admin.ErrInvalid)
}

// Reservations reads each of them once, though a store may show one more than once while it changes.
func (l *Ledgers) Reservations(ctx context.Context, sku string, limit int) ([]admin.Reservation, error) {
	var all []admin.Reservation
	place := make(map[string]int)
	err := l.store.Records(ctx, sku, func(r ledger.Record) bool {
		if i, seen := place[r.Serial]; seen {
			all[i] = l.reservation(sku, r)
			return true
		}
		place[r.Serial] = len(all)
		all = append(all, l.reservation(sku, r))
		return len(all) < limit
	})
	return all, err
}

func (l *Ledgers) Settle(ctx context.Context, op string, r admin.Reservation) (admin.Outcome, error) {
	if err := speakable(r.Serial); err != nil {
		return admin.Outcome{}, err
	}
	if op == string(ledger.MoveRequeue) {
		return l.requeue(ctx, r)
	}
	now, did := time.Now(), ledger.Op(op)
	item := ledger.Item{Serial: r.Serial, User: r.User, Quantity: r.Quantity}
	var done [1]ledger.Done
	h, err := l.store.Finish(ctx, r.SKU, now.UnixMilli(), now.Add(ledger.KeepReleased).UnixMilli(), did,
		[]ledger.Item{item},
		done[:])
	if err == nil && done[0] == ledger.NoLedger {
		_, err := l.Stock(ctx, r.SKU)
		return admin.Outcome{}, cmp.Or(err, unledgered(r.SKU, ledger.ErrUnknownSKU))
	}
	if err != nil {
		return admin.Outcome{}, fmt.Errorf("%w; it is unknown whether it was done: say it again, it is done once", err)
	}
	if d := l.reserver(); d != nil && (done[0] == ledger.Changed || done[0] == ledger.Already ||
		done[0] == ledger.Oversold) {
		d.Decided(r.SKU, r.Serial, did)
		d.Learn(r.SKU, h)
	}
	out, err := outcome(r, did, done[0])
	if did == ledger.Release && done[0] == ledger.Already { // it was released, or sold and refunded
		if found, known, err := l.store.Find(ctx, r.SKU, r.Serial); err == nil && known {
			out.State = found.Status
		}
	}
	return out, err
}

// requeue has an order that waits for a person be delivered again, before its reservation ends.
func (l *Ledgers) requeue(ctx context.Context, r admin.Reservation) (admin.Outcome, error) {
	found, known, err := l.store.Find(ctx, r.SKU, r.Serial)
	if err != nil || !known {
		return admin.Outcome{}, err
	}
	now := time.Now().UnixMilli()
	done, _, err := l.store.Decide(ctx, r.SKU, ledger.DecideCall{Now: now, Keep: now,
		Decisions: []ledger.Decision{{Serial: r.Serial, Move: ledger.MoveRequeue, Time: found.Deadline}}})
	switch {
	case err != nil:
		return admin.Outcome{}, err
	case done[0] == ledger.Changed:
		return admin.Outcome{Changed: true, State: ledger.StatusHeld}, nil
	}
	return admin.Outcome{}, fmt.Errorf("requeue %q of %q: %w: it does not wait for a person, or its reservation has "+
		"ended; ask the shop, then confirm or release it", r.Serial, r.SKU, admin.ErrConflict)
}

// outcome says what the ledger's answer means, and what the operator must do now.
func outcome(r admin.Reservation, op ledger.Op, done ledger.Done) (admin.Outcome, error) {
	reject := func(why string) (admin.Outcome, error) {
		return admin.Outcome{}, fmt.Errorf("%s %q of %q: %w: %s", op, r.Serial, r.SKU, admin.ErrConflict, why)
	}
	switch done {
	case ledger.Changed, ledger.Already, ledger.Oversold:
		to, _ := ledger.Next(op, ledger.StatusHeld)
		return admin.Outcome{Changed: done != ledger.Already, State: to}, nil
	case ledger.NotFound:
		return admin.Outcome{}, nil
	case ledger.WasSold:
		return reject("it is sold; refund it if its units are to be sold again")
	case ledger.WasRefunded:
		return reject("it was refunded since, so that its units are free; nothing is left to do")
	case ledger.WasReleased:
		if op == ledger.Refund {
			return reject("it was released before, so that its units are free already; nothing is left to do")
		}
		return reject("it was released before, and its units may be sold to another user; cancel the order at the shop, " +
			"or, if it must stand: sluice stock recover " + r.SKU + " --from FILE")
	}
	return admin.Outcome{}, fmt.Errorf("%s %q of %q: the ledger answers %d, which means nothing", op, r.Serial, r.SKU,
		done)
}

// Stuck reads the orders of the queue that wait for a person.
func (l *Ledgers) Stuck(ctx context.Context, sku string, limit int) (all []admin.Reservation, err error) {
	serials, err := l.store.Stuck(ctx, sku, limit)
	for some := range slices.Chunk(serials, ledger.MaxItems) {
		places, err := l.store.Positions(ctx, sku, some)
		if err != nil {
			return nil, err
		}
		for i := range places {
			if places[i].Where == ledger.ForAPerson { // and not decided meanwhile
				all = append(all, l.reservation(sku, places[i].Record))
			}
		}
	}
	return all, err
}
