package ledger

import (
	"context"
	"errors"
	"time"
)

// ErrTooMany is the cause when a look into the store was not made, since too many were lately.
var ErrTooMany = errors.New("too many looks")

// Looks for the state of one order, which anybody may ask for.
const (
	lookEvery   = int64(2 * time.Millisecond)
	looksAtOnce = 500
	mostLooked  = 64 // SKUs that one look without a SKU is worth
	lookers     = 4  // at a time: orders need the connections more
)

// State looks up what is known of a serial; without a SKU, among the SKUs that this desk works for, at most 64 of them.
// It makes at most 500 looks a second, each of one SKU, and a few at a time; who would wait for longer than MaxWait, or
// comes beyond them, hears ErrTooMany.
func (d *Desk) State(now int64, sku, serial string) (r Record, of string, ok bool, err error) {
	wait, cancel := context.WithTimeout(d.ctx, d.o.MaxWait)
	defer cancel()
	select {
	case d.lookers <- struct{}{}:
		defer func() { <-d.lookers }()
	case <-wait.Done():
		return Record{}, "", false, ErrTooMany
	}
	skus := []string{sku}
	if sku == "" {
		skus = d.known()
	}
	for _, sku := range skus {
		if !d.askers.take(now) {
			return Record{}, "", false, ErrTooMany
		}
		ctx, cancel := context.WithTimeout(d.ctx, d.o.Timeout)
		d.calls.note(callFind, 1)
		r, ok, err = d.store.Find(ctx, sku, serial)
		cancel()
		if ok || err != nil {
			return r, sku, ok, err
		}
	}
	return Record{}, "", false, nil
}

// known are SKUs that have a ledger, as far as this desk has seen.
func (d *Desk) known() (skus []string) {
	for _, l := range d.lines.each() {
		if v := l.view.Load(); v != nil && !v.absent {
			if skus = append(skus, l.sku); len(skus) == mostLooked {
				break
			}
		}
	}
	return skus
}
