package admin

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
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

	// Take hands out at most n orders, of sku alone unless it is "", for so long. Its errors may be ErrConflict.
	Take(ctx context.Context, sku string, n int, lease time.Duration) ([]QueuedOrder, error)

	// Settle says what became of an order that was handed out. Its errors may be ErrInvalid.
	Settle(ctx context.Context, s QueueOutcome) (done string, err error)
}

// QueuedOrder is an order that was handed out to a consumer, which must not make it after the deadline.
type QueuedOrder struct {
	SKU      string            `json:"sku"`
	Serial   string            `json:"serial"`  // one order has one, in all attempts
	Receipt  string            `json:"receipt"` // for settle
	Attempt  int64             `json:"attempt"`
	Quantity int64             `json:"quantity"`
	User     string            `json:"user"`
	Deadline time.Time         `json:"deadline"`
	Method   string            `json:"method"`
	Target   string            `json:"target"`
	Headers  map[string]string `json:"headers"`
	Body     []byte            `json:"body"` // in base64
}

// QueueOutcome is what a consumer says of an order.
type QueueOutcome struct {
	SKU     string       `json:"sku"`
	Serial  string       `json:"serial"`
	Receipt string       `json:"receipt"`
	Outcome string       `json:"outcome"` // "confirmed" "released" "again"
	After   string       `json:"after"`   // of "again": a time like "5s"
	Answer  *QueueAnswer `json:"answer"`  // for the client; nil = none
}

// QueueAnswer is what the client of an order gets to see.
type QueueAnswer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"` // Content-Type, Content-Language, Content-Encoding and Location are kept
	Body    []byte            `json:"body"`    // in base64; at most 16 KiB are kept
}

// What a consumer may ask for at once.
const (
	maxTake   = 100
	maxSettle = 2 << 20 // bytes of a request
	maxLease  = 10 * time.Minute
)

// takeQueued hands out orders: {"n": 50, "lease": "30s"}, and "sku" for one alone.
func (a *API) takeQueued(w http.ResponseWriter, r *http.Request) (any, error) {
	var want struct {
		SKU   string `json:"sku"`
		N     int    `json:"n"`
		Lease string `json:"lease"`
	}
	err := decode(w, r, &want)
	lease, fault := time.ParseDuration(want.Lease)
	switch {
	case a.Queue == nil:
		return nil, statusError{http.StatusNotFound, noQueue}
	case err != nil || fault != nil || want.N < 1 || want.N > maxTake || lease < time.Second || lease > maxLease:
		return nil, fmt.Errorf(`%w: the body must be {"n": 1 to %d, "lease": "1s" to "10m"}, with "sku" for one alone`,
			ErrInvalid, maxTake)
	case want.SKU != "":
		if err := CheckSKU(want.SKU); err != nil {
			return nil, err
		}
	}
	orders, err := a.Queue.Take(r.Context(), want.SKU, want.N, lease)
	return map[string]any{"orders": orEmpty(orders)}, err
}

const noQueue = "no order waits here: no route has delivery = \"queue\""

// queueDone is what one outcome came to.
type queueDone struct {
	SKU    string `json:"sku"`
	Serial string `json:"serial"`
	Done   string `json:"done"`            // "changed" "already" "too_late" "contradicts" "unknown" "fault"
	Error  string `json:"error,omitempty"` // of "fault": say it again, it is done once
}

// settleQueued takes outcomes: {"orders": [{"sku", "serial", "receipt", "outcome", "answer"}, …]}.
func (a *API) settleQueued(w http.ResponseWriter, r *http.Request) (any, error) {
	var said struct {
		Orders []QueueOutcome `json:"orders"`
	}
	err := decodeLarge(w, r, maxSettle, &said)
	switch {
	case a.Queue == nil:
		return nil, statusError{http.StatusNotFound, noQueue}
	case err != nil || len(said.Orders) < 1 || len(said.Orders) > maxTake:
		return nil, fmt.Errorf(`%w: the body must be {"orders": [{"sku", "serial", "receipt", "outcome", "answer"}, …]} `+
			`with 1 to %d orders and %d bytes`, ErrInvalid, maxTake, maxSettle)
	}
	all := make([]queueDone, len(said.Orders))
	var told sync.WaitGroup // together: they share their calls of the store
	for i, one := range said.Orders {
		told.Go(func() {
			done, err := a.Queue.Settle(r.Context(), one)
			if all[i] = (queueDone{SKU: one.SKU, Serial: one.Serial, Done: done}); err != nil {
				all[i].Done, all[i].Error = "fault", err.Error()
			}
		})
	}
	told.Wait()
	return map[string]any{"orders": all}, nil
}

// queueState answers with what waits; ?limit= bounds the SKUs.
func (a *API) queueState(w http.ResponseWriter, r *http.Request) (any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	s := QueueState{}
	if a.Queue != nil {
		s = a.Queue.State(limit)
	}
	s.SKUs = orEmpty(s.SKUs)
	if s.Attempts == nil {
		s.Attempts = map[string]uint64{}
	}
	return s, nil
}
