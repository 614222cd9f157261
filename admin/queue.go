package admin

import (
	"net/http"
)

// QueueState is the orders that wait until they are delivered, as this instance sees them.
type QueueState struct {
	Enabled     bool              `json:"enabled"` // false: no route lets orders wait, and all else is 0
	Waiting     int64             `json:"waiting"`
	Delivering  int64             `json:"delivering"` // the shop has them, of all instances
	Unknown     int64             `json:"unknown"`    // an attempt has no known outcome
	Stuck       int64             `json:"stuck"`      // a person must decide
	OldestMS    int64             `json:"oldest_ms"`  // since the oldest that waits was accepted; 0 = none waits
	PerSecond   float64           `json:"per_second"` // attempts of all instances, smoothed
	Limit       int               `json:"limit"`      // orders that this instance lets the shop have at once now
	MaxInFlight int               `json:"max_in_flight"`
	Rate        int               `json:"rate"`     // orders a second that may begin; 0 = no limit
	Attempts    map[string]uint64 `json:"attempts"` // of this instance, by outcome
	Expired     uint64            `json:"expired"`  // orders that this instance released
	SKUs        []QueueOfSKU      `json:"skus"`     // most that wait first
	More        bool              `json:"more"`     // there are other SKUs with orders
}

// QueueOfSKU is the queue of one SKU.
type QueueOfSKU struct {
	SKU        string  `json:"sku"`
	Waiting    int64   `json:"waiting"`
	Delivering int64   `json:"delivering"`
	Unknown    int64   `json:"unknown"`
	Stuck      int64   `json:"stuck"`
	Delivered  int64   `json:"delivered"` // attempts since the ledger was made
	OldestMS   int64   `json:"oldest_ms"`
	PerSecond  float64 `json:"per_second"` // 0 = not known
	ETAMS      int64   `json:"eta_ms"`     // of an order that comes now; 0 = not known
}

// Queue is the orders of a gate that wait.
type Queue interface {
	// State tells what waits. It names at most limit SKUs.
	State(limit int) QueueState
}

// queueState answers with what waits; ?limit= bounds the SKUs.
func (a *API) queueState(w http.ResponseWriter, r *http.Request) {
	limit, err := limitOf(r)
	if err != nil {
		a.fault(w, err)
		return
	}
	s := QueueState{}
	if a.Queue != nil {
		s = a.Queue.State(limit)
	}
	if s.SKUs == nil {
		s.SKUs = []QueueOfSKU{}
	}
	if s.Attempts == nil {
		s.Attempts = map[string]uint64{}
	}
	answer(w, s)
}
