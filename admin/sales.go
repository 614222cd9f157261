package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Sale is one schedule in the API.
type Sale struct {
	Name   string    `json:"name"`
	SKUs   []string  `json:"skus"`
	Starts time.Time `json:"starts"`
	Ends   time.Time `json:"ends"`
	State  string    `json:"state"` // "waiting" "on" "paused" "ended"
}

// Sales are the schedules, and what operators say of them. Its errors may be ErrNoSale.
type Sales interface {
	// All lists the sales as they stand, in the order of the configuration.
	All() []Sale

	// Set says for all instances where a sale stands from now on: "on" "paused" "ended".
	Set(ctx context.Context, name, state string) error
}

// ErrNoSale is what a Sales says of a sale that is not configured.
var ErrNoSale = errors.New("no such sale")

func (a *API) listSales(w http.ResponseWriter, _ *http.Request) {
	all := []Sale{}
	if a.Sales != nil {
		all = append(all, a.Sales.All()...)
	}
	answer(w, struct {
		Sales []Sale `json:"sales"`
	}{all})
}

// changeSale pauses a sale, resumes it, or ends it for good: {"state": "paused"}.
func (a *API) changeSale(w http.ResponseWriter, r *http.Request) {
	var want struct {
		State string `json:"state"`
	}
	err := decode(w, r, &want)
	name := r.PathValue("name")
	switch {
	case a.Sales == nil:
		fail(w, http.StatusNotFound, "no sales are known")
		return
	case err != nil || !slices.Contains([]string{"on", "paused", "ended"}, want.State):
		a.fault(w, fmt.Errorf(`%w: the body must be {"state": "on", "paused" or "ended"}`, ErrInvalid))
		return
	}
	before := a.sale(name)
	if err := a.Sales.Set(r.Context(), name, want.State); err != nil {
		a.fault(w, err)
		return
	}
	now := a.sale(name)
	a.record(r, AuditEntry{What: "sale.change", Object: name, Before: before.State, After: want.State},
		"admin: sale changed", "sale", name, "state", want.State)
	answer(w, now)
}

// sale is one of the schedules as it stands.
func (a *API) sale(name string) Sale {
	for _, s := range a.Sales.All() {
		if s.Name == name {
			return s
		}
	}
	return Sale{}
}
