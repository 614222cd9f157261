package admin

import (
	"fmt"
	"net/http"
)

const recreateForm = `the body must be {"total": N}, with "limit": M for the units that one person may have, ` +
	`and "none": true if the shop has no order of this SKU`

// recreate makes a ledger again that is gone, whole or in part. It is frozen until it has the orders of before: those
// that instances know, which they tell by themselves, and those that the caller adopts. The state "on" then opens it.
func (a *API) recreate(w http.ResponseWriter, r *http.Request) {
	var want struct {
		Total, Limit *int64
		None         bool
	}
	sku, limit := r.PathValue("sku"), int64(-1)
	err := checkSKU(sku)
	if err == nil && (decode(w, r, &want) != nil || want.Total == nil) {
		err = fmt.Errorf("%w: %s", ErrInvalid, recreateForm)
	}
	if err == nil {
		err = (&change{Set: want.Total, Limit: want.Limit}).fitsLedger()
	}
	if err == nil && want.Limit != nil {
		limit = *want.Limit
	}
	var now Stock
	if err == nil {
		now, err = a.Ledgers.Recreate(r.Context(), sku, *want.Total, limit, want.None)
	}
	if err != nil {
		a.fault(w, err)
		return
	}
	detail := fmt.Sprintf("total %d", *want.Total)
	a.record(r, AuditEntry{What: "ledger.recreate", Object: sku, Detail: detail, After: now.Ledger},
		"admin: ledger recreated", "sku", sku, "total", *want.Total, "none", want.None, "after", now.Ledger)
	answer(w, now)
}
