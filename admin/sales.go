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
	if a.Sales == nil {
		fail(w, http.StatusNotFound, "no sales are known")
		return
	}
	answer(w, struct {
		Sales []Sale `json:"sales"`
	}{a.Sales.All()})
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
	if err := a.Sales.Set(r.Context(), name, want.State); err != nil {
		if errors.Is(err, ErrNoSale) {
			fail(w, http.StatusNotFound, err.Error())
			return
		}
		a.fault(w, err)
		return
	}
	a.Log.Info("admin: sale changed", "from", r.RemoteAddr, "sale", name, "state", want.State)
	for _, s := range a.Sales.All() {
		if s.Name == name {
			answer(w, s)
		}
	}
}
