package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sluice/admin"
	"sluice/gateway/stores"
	"sluice/stockgate/fleet"
)

// A SKU of a ledger can be in another state for a while: see ledger.Store.
//
// A pause of the fleet is written into its list first. Each instance that reads it there overrules the ledger, and ends
// that at the time that the list says. The number of the pause begins once and ends once in the ledger. So it does not
// matter how many instances do that, how often, and how late: what the list says becomes so.

// mayShut reads what the SKU will be again, and whether it is what is wanted already, or why it cannot be overridden.
func (h *controller) mayShut(ctx context.Context, want *admin.Override) (already bool, err error) {
	l := h.g.ledgers(h.g.running.Load())
	if l == nil {
		return false, fmt.Errorf("override %q: %w: no ledger is kept here: the shop decides whether it sells", want.SKU,
			admin.ErrConflict)
	}
	s, err := l.Stock(ctx, want.SKU)
	if err != nil {
		return false, err
	}
	if s.Ledger.State == "frozen" || s.Ledger.State == "verifying" {
		return false, fmt.Errorf("override %q: %w: it is %s, and sells nothing", want.SKU, admin.ErrConflict, s.Ledger.State)
	}
	if want.Before == nil {
		want.Before = s.Ledger.State
	}
	if want.Before == "waiting" || want.Before == "over" { // its hours decide again
		want.Before = "on"
	}
	return s.Ledger.State == fmt.Sprint(want.Value), nil
}

// shut has the SKU's ledger say what is wanted. What fails is tried again by all instances that know of it, and want
// has a Fault then.
func (h *controller) shut(ctx context.Context, want *admin.Override) error {
	before, inForce, err := h.g.ledgers(h.g.running.Load()).Overrule(ctx, want.SKU, fmt.Sprint(want.Value), want.Number)
	switch {
	case err != nil:
		want.Fault = err.Error()
		h.unsettle(*want)
		return fmt.Errorf("override %s of %q is made, but it is not known whether it is in force; that is tried again until "+
			"its end (sluice override undo %s): %w", want.ID, want.SKU, want.ID, err)
	case !inForce:
		_ = h.removeFromFleet(ctx, want) // else it ends in its time, and changes nothing
		return fmt.Errorf("override %q: %w: its state was changed otherwise meanwhile, and stays so", want.SKU,
			admin.ErrConflict)
	}
	want.Before = before
	return nil
}

// open has the SKU's ledger say what it said before o.
func (h *controller) open(ctx context.Context, o *admin.Override) error {
	l := h.g.ledgers(h.g.running.Load())
	if l == nil {
		return fmt.Errorf("undo %s: %w: no ledger is kept here; undo it on an instance that takes units", o.ID,
			admin.ErrConflict)
	}
	err := l.Reinstate(ctx, o.SKU, o.Number)
	switch {
	case err == nil:
		return nil
	case fleet.Unmade(err):
		return fmt.Errorf("undo %s: nothing is changed: %w", o.ID, err)
	}
	return fmt.Errorf("undo %s: it is not known whether %q is still %v; the override stands, undo it again: %w", o.ID,
		o.SKU, o.Value, err)
}

// unsettle has settleSKUs tell the SKU's ledger of o. Without a Value it is the end of one.
func (h *controller) unsettle(o admin.Override) {
	same := func(u admin.Override) bool { return u.SKU == o.SKU && u.Number == o.Number }
	h.unsettled = append(slices.DeleteFunc(h.unsettled, same), o)
}

// settleSKUs tells ledgers what the list says of their SKUs, and returns how long it is until that is tried again.
func (h *controller) settleSKUs(ctx context.Context) time.Duration {
	l := h.g.ledgers(h.g.running.Load())
	var left []admin.Override
	var away error
	for _, o := range h.unsettled {
		if l == nil || !o.Until.After(time.Now()) {
			continue
		}
		err := away
		if err == nil {
			err = tellLedger(ctx, l, &o)
		}
		if err != nil {
			left = append(left, o)
			if !errors.Is(err, admin.ErrNoSKU) && !errors.Is(err, admin.ErrConflict) {
				away = err
			}
		}
		h.setFault(o.ID, err)
	}
	if h.unsettled = left; len(left) > 0 {
		return endAgain
	}
	return nothingEnds
}

func tellLedger(ctx context.Context, l *stores.Ledgers, o *admin.Override) error {
	if o.Value == nil {
		return l.Reinstate(ctx, o.SKU, o.Number)
	}
	_, _, err := l.Overrule(ctx, o.SKU, fmt.Sprint(o.Value), o.Number) // one that has ended is done
	return err
}

// setFault notes why an override has not begun; nil = it has.
func (h *controller) setFault(id string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.overrides {
		o := &h.overrides[i]
		switch {
		case o.ID != id:
		case err == nil:
			o.Fault = ""
		default:
			if o.Fault == "" {
				h.log.Error("an override of a SKU is not in force yet; trying again until its end", "sku", o.SKU, "err", err)
			}
			o.Fault = err.Error()
		}
	}
}
