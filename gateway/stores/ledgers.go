package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/stockgate/ledger"
)

// Ledgers is our own protocol as admin wants it, whichever store it is on.
type Ledgers struct {
	store    *ledger.Store
	config   *config.Config          // what a ledger is made with where that is not said
	reserver func() *ledger.Reserver // of this gate, which must not believe what it remembers; it may return nil
}

// Stock implements admin.Ledgers.
func (l *Ledgers) Stock(ctx context.Context, sku string) (admin.Stock, error) {
	s, ok, err := l.store.ReadStock(ctx, sku)
	if err == nil && !ok {
		err = ledger.ErrUnknownSKU
	}
	if err != nil {
		return admin.Stock{}, unledgered(sku, err)
	}
	return inNumbers(sku, s), nil
}

func inNumbers(sku string, s ledger.Stock) admin.Stock {
	state := s.At(time.Now().UnixMilli())
	return admin.Stock{SKU: sku, Left: s.Free, OnSale: state == ledger.On, Ledger: &admin.Ledger{
		Total: s.Total, Held: s.Held, Sold: s.Sold, Free: s.Free, Limit: s.Limit, State: string(state),
		Epoch: s.Epoch, Ver: s.Ver, Why: s.Why, Untold: s.Untold,
	}}
}

// unledgered lets admin recognise that there is no ledger.
func unledgered(sku string, err error) error {
	switch {
	case errors.Is(err, ledger.ErrUnknownSKU):
		return fmt.Errorf("%q: %w: it has no ledger, and nothing here remembers one; if it was ever sold: %s; if it is new: "+
			"sluice stock set %s UNITS", sku, admin.ErrNoSKU, ledger.RecoverLost(sku), sku)
	case errors.Is(err, ledger.ErrLost), errors.Is(err, ledger.ErrExists), errors.Is(err, ledger.ErrOrdersLeft):
		return told{err, admin.ErrConflict}
	}
	return err
}

// SetTotal implements admin.Ledgers.
func (l *Ledgers) SetTotal(ctx context.Context, sku string, total, limit int64) (admin.Stock, error) {
	if limit < 0 {
		limit = ledger.KeepLimit
	}
	s, err := l.store.SetTotal(ctx, sku, total, limit)
	if limit == ledger.KeepLimit && errors.Is(err, ledger.ErrUnknownSKU) {
		s, err = l.store.SetTotal(ctx, sku, total, l.perUser())
	}
	return l.changed(sku, s, err)
}

// perUser is how many units a person may have of a ledger that is made without saying so; 0 = no limit.
func (l *Ledgers) perUser() int64 { return int64(l.config.Stock.Reserve.MaxPerUser) }

// Recreate makes a ledger again, frozen, with the hours of its sale: it must not sell before the start when it opens.
func (l *Ledgers) Recreate(ctx context.Context, sku string, total, limit int64, none bool) (admin.Stock, error) {
	if limit < 0 {
		limit = l.perUser()
	}
	s, err := l.store.Recreate(ctx, sku, total, limit, none)
	if opens, closes, ok := hoursOf(l.config, sku, time.Now()); err == nil && ok {
		s, err = l.store.SetSchedule(ctx, sku, opens, closes)
	}
	if err != nil {
		s = ledger.Stock{} // what is there is not what was asked for
	}
	return l.changed(sku, s, err)
}

// Add implements admin.Ledgers.
func (l *Ledgers) Add(ctx context.Context, sku string, delta int64, key string) (admin.Stock, error) {
	s, err := l.store.Add(ctx, sku, delta, key)
	return l.changed(sku, s, err)
}

// SetState implements admin.Ledgers.
func (l *Ledgers) SetState(ctx context.Context, sku, state string) (admin.Stock, error) {
	s, err := l.store.SetState(ctx, sku, ledger.State(state))
	return l.changed(sku, s, err)
}

// Overrule puts a SKU into a state for a while, as Store.Overrule does. A ledger that sells nothing by itself is
// admin.ErrConflict.
func (l *Ledgers) Overrule(ctx context.Context, sku, state string, number int64) (
	before string, inForce bool, err error,
) {
	s, was, inForce, err := l.store.Overrule(ctx, sku, ledger.State(state), number)
	now, err := l.changed(sku, s, err)
	if err == nil && !inForce && (s.State == ledger.Frozen || s.State == ledger.Verifying) {
		err = fmt.Errorf("override %q: %w: it is %s, and sells nothing", sku, admin.ErrConflict, now.Ledger.State)
	}
	return string(was), inForce, err
}

// Reinstate ends what Overrule has done. Where there is no ledger, there is nothing to be done.
func (l *Ledgers) Reinstate(ctx context.Context, sku string, number int64) error {
	s, err := l.store.Reinstate(ctx, sku, number)
	if _, err = l.changed(sku, s, err); errors.Is(err, admin.ErrNoSKU) || errors.Is(err, ledger.ErrLost) {
		return nil
	}
	return err
}

// changed is the answer to a change. A store that rejects one for what it holds says with its error what that is.
func (l *Ledgers) changed(sku string, s ledger.Stock, err error) (admin.Stock, error) {
	switch {
	case err == nil:
		if d := l.reserver(); d != nil {
			d.Learn(sku, s.StockVersion)
		}
		return inNumbers(sku, s), nil
	case s != ledger.Stock{}:
		return admin.Stock{}, told{err, admin.ErrConflict}
	}
	return admin.Stock{}, unledgered(sku, err)
}

func (l *Ledgers) SKUs(ctx context.Context, limit int) ([]string, error) {
	return l.store.SKUs(ctx, limit)
}

// List reads at most limit ledgers, after those that are lost.
func (l *Ledgers) List(ctx context.Context, limit int) ([]admin.Stock, error) {
	lost, err := l.Lost(ctx, limit)
	if err != nil {
		return nil, err
	}
	all := make([]admin.Stock, 0, len(lost))
	for _, sku := range lost {
		all = append(all, admin.Stock{SKU: sku,
			Ledger: &admin.Ledger{State: string(ledger.Lost), Why: ledger.RecoverLost(sku)}})
	}
	if limit -= len(lost); limit == 0 {
		return all, nil
	}
	skus, err := l.store.SKUs(ctx, limit)
	for _, sku := range skus {
		s, err := l.Stock(ctx, sku)
		switch {
		case err == nil:
			all = append(all, s)
		case !errors.Is(err, admin.ErrNoSKU) && !errors.Is(err, ledger.ErrLost): // gone meanwhile: the next list has it
			return nil, err
		}
	}
	return all, err
}

// Lost reads the names of at most limit SKUs that Redis lists, and that have no ledger.
func (l *Ledgers) Lost(ctx context.Context, limit int) ([]string, error) {
	return l.store.LostSKUs(ctx, limit)
}

// Settlements reads what settlers have told of each home, by name.
func Settlements(store *ledger.Store) func(context.Context) ([]admin.Settlement, error) {
	return func(ctx context.Context) (all []admin.Settlement, err error) {
		homes, err := store.Settlements(ctx)
		for _, name := range slices.Sorted(maps.Keys(homes)) {
			var one admin.Settlement
			if json.Unmarshal([]byte(homes[name]), &one) == nil { // another version may have written it
				all = append(all, one)
			}
		}
		return all, err
	}
}
