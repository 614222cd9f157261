package admin

import (
	"net/http"
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

// Sales are the schedules.
type Sales interface {
	// All lists the sales as they stand, in the order of the configuration.
	All() []Sale
}

func (a *API) listSales(w http.ResponseWriter, _ *http.Request) {
	all := []Sale{}
	if a.Sales != nil {
		all = append(all, a.Sales.All()...)
	}
	answer(w, struct {
		Sales []Sale `json:"sales"`
	}{all})
}
