package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice/internal/sorted"
	"sluice/stockgate/ledger/protocol"
)

// Reservation is one order in a ledger.
type Reservation struct {
	SKU      string          `json:"sku"`
	Serial   string          `json:"serial"`
	User     string          `json:"user"` // "" = no user was identified
	Quantity int64           `json:"quantity"`
	State    protocol.Status `json:"state"`
	Deadline time.Time       `json:"deadline,omitzero"` // of what is held: until when it must be decided
	Overdue  bool            `json:"overdue"`           // held, and not decided in time
	Unknown  bool            `json:"unknown"`           // held, and this instance asks the shop what became of it
}

const (
	stuck = "stuck" // held by an order of the queue that waits for a person

	maxAsked = 1000    // ledgers that are asked for a serial
	maxRead  = 100_000 // reservations of one SKU that a list looks at
)

// errNoSerial is the cause when no ledger that was asked knows a serial.
var errNoSerial = errors.New("no such reservation; look: sluice reservation list")

// reserved answers for a gate that never reserves.
func (a *API) reserved(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		if a.Ledgers == nil {
			return nil, statusError{http.StatusNotFound, noLedgers}
		}
		return next(w, r)
	}
}

// at is r as it stands at now.
func (r Reservation) at(now time.Time) Reservation {
	r.Overdue = r.State == protocol.StatusHeld && !r.Deadline.IsZero() && now.After(r.Deadline)
	return r
}

func (a *API) reservation(w http.ResponseWriter, r *http.Request) (any, error) {
	found, err := a.locate(r)
	return found.at(time.Now()), err
}

// locate finds the reservation that r names: of ?sku=, or of the only SKU that knows its serial. Where none does it
// is an errNoSerial.
func (a *API) locate(r *http.Request) (Reservation, error) {
	ctx, serial, sku := r.Context(), r.PathValue("serial"), r.URL.Query().Get("sku")
	skus := []string{sku}
	if sku != "" {
		if err := CheckSKU(sku); err != nil {
			return Reservation{}, err
		}
	} else {
		var err error
		if skus, err = a.Ledgers.SKUs(ctx, maxAsked+1); err != nil {
			return Reservation{}, err
		}
		if len(skus) > maxAsked {
			return Reservation{}, fmt.Errorf("find %q: %w: there are more than %d ledgers; name one with sku=", serial,
				ErrInvalid, maxAsked)
		}
	}
	found, err := a.only(ctx, serial, skus)
	if sku != "" && errors.Is(err, errNoSerial) {
		err = fmt.Errorf("%q of %q: %w", serial, sku, errNoSerial)
	}
	return found, err
}

// only finds serial in one of skus. In two it is not clear which of them is meant.
func (a *API) only(ctx context.Context, serial string, skus []string) (Reservation, error) {
	var all []Reservation
	for _, sku := range skus {
		found, ok, err := a.Ledgers.Reservation(ctx, sku, serial)
		if err != nil {
			return Reservation{}, err
		}
		if ok {
			all = append(all, found)
		}
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) > 1:
		return Reservation{}, fmt.Errorf("%q is a serial of %s and of %s: %w: name one: sku=%s", serial, all[0].SKU,
			all[1].SKU, ErrConflict, all[0].SKU)
	}
	return Reservation{}, fmt.Errorf("%q: %w", serial, errNoSerial)
}

// wanted is what a list of reservations shows.
type wanted struct {
	sku, state string
	limit      int
	held       int // counts, of a list of the unknown, what is held and does not belong into it
}

func wantedOf(r *http.Request) (want wanted, err error) {
	q := r.URL.Query()
	want.sku, want.state = q.Get("sku"), q.Get("state")
	if want.limit, err = limitOf(r); err != nil {
		return want, err
	}
	if _, err := protocol.ParseStatus(want.state); err != nil && want.state != "" && want.state != "unknown" &&
		want.state != stuck {
		return want, fmt.Errorf("state: %w: %w, or unknown or stuck", ErrInvalid, err)
	}
	if want.sku != "" {
		err = CheckSKU(want.sku)
	}
	return want, err
}

// shows reports whether r belongs into the list. What is unknown is held too.
func (want *wanted) shows(r Reservation) bool {
	return want.state == "" || want.state == stuck && r.State == protocol.StatusHeld || want.state == r.State.String() ||
		want.state == "unknown" && (r.Overdue || r.Unknown)
}

// reservations lists them, the oldest deadline first and what is decided last.
func (a *API) reservations(w http.ResponseWriter, r *http.Request) (any, error) {
	want, err := wantedOf(r)
	if err != nil {
		return nil, err
	}
	skus := []string{want.sku}
	if want.sku != "" {
		_, err = a.Ledgers.Stock(r.Context(), want.sku)
	} else {
		skus, err = a.Ledgers.SKUs(r.Context(), maxList)
	}
	all, more := []Reservation{}, len(skus) == maxList
	for i := 0; i < len(skus) && err == nil; i++ {
		var cut bool
		all, cut, err = a.gather(r.Context(), all, skus[i], &want)
		more = more || cut
	}
	// more: there may be others that belong into the list.
	return map[string]any{"reservations": all, "more": more, "held": want.held}, err
}

// gather adds those of sku that are wanted, and keeps the first so many. cut tells that it knows of others.
func (a *API) gather(ctx context.Context, all []Reservation, sku string, want *wanted) (kept []Reservation, cut bool,
	err error) {
	list := a.Ledgers.Reservations
	if want.state == stuck {
		list = a.Ledgers.Stuck
	}
	read, err := list(ctx, sku, maxRead)
	if err != nil {
		return nil, false, err
	}
	now := time.Now()
	for _, one := range read {
		if one = one.at(now); want.shows(one) {
			all = append(all, one)
		} else if want.state == "unknown" && one.State == protocol.StatusHeld {
			want.held++
		}
	}
	sorted.By(all, byDeadline)
	cut = len(read) == maxRead || len(all) > want.limit
	return slices.Clip(all[:min(len(all), want.limit)]), cut, nil
}

// byDeadline orders what is held by the time of the decision, and puts all others behind it.
func byDeadline(x, y Reservation) int {
	if held := x.State == protocol.StatusHeld; held != (y.State == protocol.StatusHeld) {
		if held {
			return -1
		}
		return 1
	}
	return cmp.Or(x.Deadline.Compare(y.Deadline), strings.Compare(x.SKU, y.SKU), strings.Compare(x.Serial, y.Serial))
}
