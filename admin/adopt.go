package admin

import (
	"context"
	"fmt"
	"net/http"
)

// Adoption is what adopting orders of a shop came to, or would come to.
type Adoption struct {
	SKU       string   `json:"sku"`
	Applied   bool     `json:"applied"`   // false: nothing was changed
	Unknown   int      `json:"unknown"`   // orders that the ledger does not know: sold now
	Held      int      `json:"held"`      // that it holds: sold now
	Sold      int      `json:"sold"`      // that it has as sold already; with "missing", in any state
	Returned  int      `json:"returned"`  // that were released or refunded in it: sold again
	Units     int64    `json:"units"`     // by which sold rises
	Conflicts []string `json:"conflicts"` // orders that were passed over, and why
	Stock     *Stock   `json:"stock"`     // as it is afterwards

	missing bool // only what the ledger does not know is sold
}

const (
	mostAdopted   = 1000    // orders of one request
	maxAdoptBytes = 1 << 20 // of its body
)

// wantedOrder is one order that the shop has.
type wantedOrder struct {
	Serial, User string
	Quantity     int64
}

// adoptAll takes orders into a ledger that the shop has: {"orders": [{"serial": "…", "user": "7", "quantity": 1}],
// "apply": true}. Without apply it says what would change.
func (a *API) adoptAll(w http.ResponseWriter, r *http.Request) (any, error) {
	var want struct {
		Orders  []wantedOrder
		Apply   bool
		Missing bool // only orders that the ledger does not know
	}
	err := decodeLarge(w, r, maxAdoptBytes, &want)
	if err != nil || len(want.Orders) == 0 || len(want.Orders) > mostAdopted {
		return nil, fmt.Errorf(`%w: the body must be {"orders": [{"serial": "…", "user": "…", "quantity": N}], "apply": `+
			`false, "missing": false}, with 1 to %d orders`, ErrInvalid, mostAdopted)
	}
	if _, err := a.readNamedLedger(r); err != nil {
		return nil, err
	}
	done := Adoption{SKU: r.PathValue("sku"), Applied: want.Apply, Conflicts: []string{}, missing: want.Missing}
	for _, o := range want.Orders {
		if err := a.adoptOne(r.Context(), &done, o); err != nil {
			return nil, err
		}
	}
	now, err := a.Ledgers.Stock(r.Context(), done.SKU)
	if err != nil {
		return nil, err
	}
	done.Stock = &now
	if want.Apply {
		a.record(r, AuditEntry{What: "orders.adopt", Object: done.SKU, After: now.Ledger,
			Detail: fmt.Sprintf("%d orders, %d units", len(want.Orders), done.Units)},
			"admin: orders adopted", "sku", done.SKU, "unknown", done.Unknown, "held", done.Held,
			"returned", done.Returned, "units", done.Units, "conflicts", len(done.Conflicts), "after", now.Ledger)
	}
	return done, nil
}

// adoptOne adopts one order where done is to be applied, and counts it.
func (a *API) adoptOne(ctx context.Context, done *Adoption, o wantedOrder) error {
	want := Reservation{SKU: done.SKU, Serial: o.Serial, User: o.User, Quantity: o.Quantity}
	if o.Quantity < 1 || o.Quantity > maxQuantity || o.Serial == "" {
		return fmt.Errorf("adopt %.40q: %w: quantity %d; an order has a serial, and 1 to %d units", o.Serial, ErrInvalid,
			o.Quantity, maxQuantity)
	}
	before, ok, err := a.Ledgers.Reservation(ctx, done.SKU, o.Serial)
	if err != nil {
		return err
	}
	if ok {
		if done.missing {
			done.Sold++
			return nil
		}
		if err := before.agrees(want); err != nil {
			done.Conflicts = append(done.Conflicts, err.Error())
			return nil
		}
	}
	if done.counts(before.State, o.Quantity) && done.Applied {
		want.State = before.State
		_, err = a.Ledgers.Settle(ctx, "adopt", want)
	}
	return err
}

// counts notes an order that is in a state now, and reports whether adopting changes anything.
func (d *Adoption) counts(state string, quantity int64) bool {
	switch state {
	case "confirmed":
		d.Sold++
		return false
	case held:
		d.Held++
	case "":
		d.Unknown++
	default:
		d.Returned++
	}
	d.Units += quantity
	return true
}

const recreateForm = `the body must be {"total": N}, with "limit": M for the units that one person may have, ` +
	`and "none": true if the shop has no order of this SKU`

// recreate makes a ledger again that is gone, whole or in part. It is frozen until it has the orders of before: those
// that instances know, which they tell by themselves, and those that the caller adopts. The state "on" then opens it.
func (a *API) recreate(w http.ResponseWriter, r *http.Request) (any, error) {
	var want struct {
		Total, Limit *int64
		None         bool
	}
	sku, limit := r.PathValue("sku"), int64(-1)
	if err := CheckSKU(sku); err != nil {
		return nil, err
	}
	if decode(w, r, &want) != nil || want.Total == nil {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, recreateForm)
	}
	if err := (&change{Set: want.Total, Limit: want.Limit}).fitsLedger(); err != nil {
		return nil, err
	}
	if want.Limit != nil {
		limit = *want.Limit
	}
	now, err := a.Ledgers.Recreate(r.Context(), sku, *want.Total, limit, want.None)
	if err != nil {
		return nil, err
	}
	detail := fmt.Sprintf("total %d", *want.Total)
	a.record(r, AuditEntry{What: "ledger.recreate", Object: sku, Detail: detail, After: now.Ledger},
		"admin: ledger recreated", "sku", sku, "total", *want.Total, "none", want.None, "after", now.Ledger)
	return now, nil
}
