package settler

import (
	"context"
	"errors"
	"slices"
	"time"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

// Ledgers are the ledgers of one Redis, as the settlers of one home change them.
type Ledgers struct {
	store *ledger.Store
	home  string
	hold  time.Duration // for which an undecided order is held
}

// NewLedgers returns the ledgers of store for a home. hold is for how long an undecided order is held.
func NewLedgers(store *ledger.Store, home string, hold time.Duration) *Ledgers {
	return &Ledgers{store: store, home: home, hold: hold}
}

// Acknowledge implements settle.ChangeableLedger.
func (l *Ledgers) Acknowledge(ctx context.Context, sku, id string) error {
	_, err := l.store.Acknowledge(ctx, sku, id)
	return err
}

// JoinRecovery implements settle.ChangeableLedger.
func (l *Ledgers) JoinRecovery(ctx context.Context, sku string, at settle.Ledger) error {
	return l.store.JoinRecovery(ctx, l.home, sku,
		ledger.StockVersion{Epoch: at.Epoch, Ver: at.Ver, State: ledger.State(at.State)}, at.Born)
}

// Outrun implements settle.ChangeableLedger.
func (l *Ledgers) Outrun(ctx context.Context, sku string, at settle.Position) error {
	return l.store.Outrun(ctx, l.home, sku, ledger.StockVersion{Epoch: at.Epoch, Ver: at.Ver})
}

// Told implements settle.ChangeableLedger.
func (l *Ledgers) Told(ctx context.Context, sku string, epoch int64) (opened bool, err error) {
	done, err := l.store.ToldSettled(ctx, l.home, sku, epoch)
	return done.Opened, err
}

// End implements settle.ChangeableLedger.
func (l *Ledgers) End(ctx context.Context, sku string) error {
	done, err := l.store.SetPaid(ctx, sku, ledger.Ended)
	if err == nil && !done {
		err = errors.New("it is not on sale any more, or a unit is free again; it is looked at again")
	}
	return err
}

// Reopen implements settle.ChangeableLedger.
func (l *Ledgers) Reopen(ctx context.Context, sku string) (ok bool, err error) {
	return l.store.SetPaid(ctx, sku, ledger.On)
}

// Refund implements settle.ChangeableLedger. A ledger that is gone may come back.
func (l *Ledgers) Refund(ctx context.Context, sku, serial string) (ok bool, err error) {
	now, done := time.Now(), make([]ledger.Done, 1)
	_, err = l.store.Finish(ctx, sku, now.UnixMilli(), now.Add(ledger.KeepReleased).UnixMilli(), ledger.Refund,
		[]ledger.Item{{Serial: serial}}, done)
	if errors.Is(err, ledger.ErrUnknownSKU) {
		return false, nil
	}
	return err == nil && done[0] != ledger.NotFound && done[0] != ledger.NoLedger, err
}

// PutBack implements settle.ChangeableLedger. The resolver asks about a held order when its time is over, as it
// would have done: before, the shop may not have the order yet.
func (l *Ledgers) PutBack(ctx context.Context, sku string, orders []settle.Record) error {
	for some := range slices.Chunk(orders, putBackAtOnce) {
		now := time.Now()
		known := make([]ledger.Known, len(some))
		for i, r := range some {
			known[i] = ledger.Known{
				Item: ledger.Item{Serial: r.Serial, User: r.User, Quantity: r.Quantity}, Status: r.Status,
				Due: l.due(r, now.UnixMilli()), Done: ledger.StockVersion{Epoch: r.Epoch, Ver: r.Ver},
			}
		}
		err := l.store.PutBack(ctx, sku, now.UnixMilli(), now.Add(ledger.KeepReleased).UnixMilli(), known)
		if err != nil {
			return err
		}
	}
	return nil
}

// due is when the time of a held order is over, Unix ms, where it is not known since when it is held: as of now.
func (l *Ledgers) due(r settle.Record, now int64) int64 {
	if r.At < 1 || r.At > now {
		return now + l.hold.Milliseconds()
	}
	return r.At + l.hold.Milliseconds()
}

// Archive implements settle.ArchivedLedger.
func (l *Ledgers) Archive(ctx context.Context, sku string, epoch, ver int64) error {
	return l.store.Archive(ctx, sku, epoch, ver)
}

// putBackAtOnce is how many orders one call to the ledger tells.
const putBackAtOnce = 100
