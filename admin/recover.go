package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sluice/stockgate/ledger"
)

// Recovery is what recovering a SKU came to, or would come to.
type Recovery struct {
	SKU       string   `json:"sku"`
	Applied   bool     `json:"applied"`         // false: nothing was changed
	Unknown   int      `json:"unknown"`         // orders that the ledger does not know: sold now
	Held      int      `json:"held"`            // that it holds: sold now
	Sold      int      `json:"sold"`            // that it has as sold already; with "missing", in any state
	Returned  int      `json:"returned"`        // that were released or refunded in it: sold again
	Units     int64    `json:"units"`           // by which sold rises
	Conflicts []string `json:"conflicts"`       // orders that were passed over, and why
	Stock     *Stock   `json:"stock,omitempty"` // as it is afterwards; none = its ledger is gone
}

// Order is one order that the shop has.
type Order struct {
	Serial   string `json:"serial"`
	User     string `json:"user"`
	Quantity int64  `json:"quantity"`
}

const (
	mostRecovered = 1000    // orders of one request
	maxOrdersBody = 1 << 20 // bytes of it
	maxQuantity   = 1_000_000_000
	maxUser       = 256 // bytes
)

// recovery is what is asked for.
type recovery struct {
	Orders       []Order // that exist
	Missing      bool    // of them, only those that the ledger does not know
	Total, Limit *int64  // the ledger is gone, and is made again, frozen
	None         bool    // with total: the shop has no order of this SKU
	State        string  // of a frozen SKU in the end: nothing is missing in its ledger; "" = it stays frozen
	Apply        bool    // do it; else it is said what would change
}

const recoveryForm = `the body must be {"orders": [{"serial": "…", "user": "…", "quantity": N}], "missing": false, ` +
	`"state": "on", "apply": false}, with at most 1000 orders; state is on, paused, ended or left ` +
	`out; "total": N, "limit": M and "none": false belong to a ledger that is gone`

// check rejects what no ledger could take.
func (want *recovery) check() error {
	stays := want.State == ""
	if len(want.Orders) > mostRecovered || want.Total == nil && (want.None || want.Limit != nil) ||
		!stays && want.State != "on" && want.State != "paused" && want.State != "ended" {
		return fmt.Errorf("%w: %s", ErrInvalid, recoveryForm)
	}
	if want.Total != nil && !stays {
		return fmt.Errorf("%w: a ledger that is made again stays frozen: send the state when its \"untold\" is 0", ErrInvalid)
	}
	for _, o := range want.Orders {
		if o.Quantity < 1 || o.Quantity > maxQuantity || o.Serial == "" {
			return fmt.Errorf("order %.40q: %w: quantity %d; an order has a serial, and 1 to %d units", o.Serial, ErrInvalid,
				o.Quantity, maxQuantity)
		}
		if !nameable(o.User) {
			return fmt.Errorf("order %.40q: user %.300q: %w: no request can name it; at most %d bytes without control "+
				"characters, as the gateway identifies users", o.Serial, o.User, ErrInvalid, maxUser)
		}
	}
	return (&change{Set: want.Total, Limit: want.Limit}).fitsLedger()
}

// nameable reports whether a request can name a user so; "" is no user.
func nameable(user string) bool {
	for i := range len(user) {
		if user[i] < ' ' || user[i] == 0x7f {
			return false
		}
	}
	return len(user) <= maxUser
}

// recover puts a ledger back: it makes one again that is gone, takes orders that the shop has, and opens the SKU, or
// pauses or ends it, each where it is asked for. Instances tell by themselves what they know of a frozen ledger's orders.
func (a *API) recover(w http.ResponseWriter, r *http.Request) (any, error) {
	sku, want := r.PathValue("sku"), recovery{}
	if err := decodeLarge(w, r, maxOrdersBody, &want); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, recoveryForm)
	}
	err := want.check()
	if err == nil {
		err = CheckSKU(sku)
	}
	if err != nil {
		return nil, err
	}
	done := Recovery{SKU: sku, Applied: want.Apply, Conflicts: []string{}}
	if want.Total == nil || !want.Apply {
		_, err = a.readNamedLedger(r)
	} else {
		err = a.recreate(r.Context(), sku, &want)
	}
	if err != nil && want.Total != nil && !want.Apply && (errors.Is(err, ErrNoSKU) || errors.Is(err, ErrConflict)) {
		for _, o := range want.Orders { // its ledger is gone: it knows none of them
			done.counts(ledger.StatusNone, o.Quantity)
		}
		return done, nil
	}
	for i := 0; i < len(want.Orders) && err == nil; i++ {
		err = a.adopt(r.Context(), &done, want.Orders[i], want.Missing)
	}
	if err == nil {
		err = a.finishRecovery(r, &done, &want)
	}
	return done, err
}

func (a *API) recreate(ctx context.Context, sku string, want *recovery) error {
	limit := int64(-1)
	if want.Limit != nil {
		limit = *want.Limit
	}
	_, err := a.Ledgers.Recreate(ctx, sku, *want.Total, limit, want.None)
	return err
}

// adopt takes one order into the ledger where done is to be applied, and counts it.
func (a *API) adopt(ctx context.Context, done *Recovery, o Order, missing bool) error {
	before, ok, err := a.Ledgers.Reservation(ctx, done.SKU, o.Serial)
	if err != nil {
		return err
	}
	switch {
	case ok && missing:
		done.Sold++
		return nil
	case ok && !before.State.Final() &&
		(before.User != o.User || before.Quantity != o.Quantity):
		done.Conflicts = append(done.Conflicts, fmt.Sprintf("order %q is %s already, %d for user %q: confirm it if that is "+
			"the order, else correct what you sent", o.Serial, before.State, before.Quantity, before.User))
		return nil
	}
	if done.counts(before.State, o.Quantity) && done.Applied {
		_, err = a.Ledgers.Settle(ctx, "adopt", Reservation{SKU: done.SKU, Serial: o.Serial, User: o.User,
			Quantity: o.Quantity, State: before.State})
	}
	return err
}

// counts notes an order that is in a state now, and reports whether adopting changes anything.
func (d *Recovery) counts(state ledger.Status, quantity int64) bool {
	switch state {
	case ledger.StatusSold:
		d.Sold++
		return false
	case ledger.StatusHeld:
		d.Held++
	case ledger.StatusNone:
		d.Unknown++
	default:
		d.Returned++
	}
	d.Units += quantity
	return true
}

// finishRecovery brings a frozen SKU into the state that is wanted, unless an order was passed over, and notes what was
// done.
func (a *API) finishRecovery(r *http.Request, done *Recovery, want *recovery) error {
	now, err := a.Ledgers.Stock(r.Context(), done.SKU)
	closed := err == nil && (now.Ledger.State == frozen || now.Ledger.State == "verifying")
	if closed && want.Apply && want.State != "" && len(done.Conflicts) == 0 {
		if now, err = a.Ledgers.SetState(r.Context(), done.SKU, want.State); err == nil && a.Controller != nil {
			a.Controller.Leave(done.SKU) // paused for a while, and now in this state for good
		}
		if err == nil && now.Ledger.State == frozen {
			err = fmt.Errorf("%q froze again meanwhile: %w: its ledger has lost more; recover it once more", done.SKU,
				ErrConflict)
		}
	}
	if err != nil {
		return err
	}
	done.Stock = &now
	if !want.Apply {
		return nil
	}
	detail := fmt.Sprintf("%d orders, %d units, state %q", len(want.Orders), done.Units, want.State)
	if want.Total != nil {
		detail += fmt.Sprintf(", made again with total %d, none %v", *want.Total, want.None)
	}
	a.record(r, AuditEntry{What: "ledger.recover", Object: done.SKU, Detail: detail, After: now.Ledger},
		"admin: ledger recovered", "sku", done.SKU, "unknown", done.Unknown, "held", done.Held, "returned", done.Returned,
		"units", done.Units, "conflicts", len(done.Conflicts), "total", want.Total, "none", want.None, "state", want.State,
		"after", now.Ledger)
	if now.Ledger.Free < 0 && done.Units > 0 {
		a.Log.Error("admin: more is sold than there is", "sku", done.SKU)
	}
	return nil
}
