package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
)

// Ledger is the stock of one SKU that the gate keeps itself, in numbers.
type Ledger struct {
	Total int64  `json:"total"` // for sale in all
	Held  int64  `json:"held"`  // held, and not decided
	Sold  int64  `json:"sold"`
	Free  int64  `json:"free"`          // total − held − sold; below 0 when more was adopted than there is
	Limit int64  `json:"limit"`         // units a person; 0 = no limit
	State string `json:"state"`         // "on" "waiting" "over" "paused" "ended" "verifying" "frozen"
	Why   string `json:"why,omitempty"` // of "frozen": what told that something was lost, or "operator"

	// Untold counts the instances that have not told a frozen ledger all that they know of its orders.
	Untold int64 `json:"untold,omitempty"`
	Epoch  int64 `json:"epoch"` // rises when its history may have been lost
	Ver    int64 `json:"ver"`   // rises with each change, and never falls within an epoch
}

// LogValue is the ledger as the log tells it.
func (l *Ledger) LogValue() slog.Value {
	if l == nil {
		return slog.StringValue("none")
	}
	return slog.StringValue(fmt.Sprintf("total %d, held %d, sold %d, limit %d, %s, %d-%d", l.Total, l.Held, l.Sold,
		l.Limit, l.State, l.Epoch, l.Ver))
}

const frozen = "frozen"

// Ledgers is the stock that the gate keeps, one ledger a SKU, and the reservations in it. Its errors may be ErrNoSKU,
// ErrInvalid and ErrConflict; after any other it is unknown whether the call was done, and the same call finds out.
type Ledgers interface {
	// Stock reads the numbers.
	Stock(ctx context.Context, sku string) (Stock, error)

	// SKUs names at most limit SKUs that have a ledger.
	SKUs(ctx context.Context, limit int) ([]string, error)

	// Lost names at most limit SKUs whose ledger is gone.
	Lost(ctx context.Context, limit int) ([]string, error)

	// List reads at most limit ledgers, and first those that are lost: they have the state "lost", and Why says the way
	// out.
	List(ctx context.Context, limit int) ([]Stock, error)

	// SetTotal makes the ledger, which is then on sale, or changes its total. limit is what one person may have: 0 =
	// no limit, below 0 = what it was, or what is configured.
	SetTotal(ctx context.Context, sku string, total, limit int64) (Stock, error)

	// Recreate makes a ledger again that is gone, frozen. limit is as in SetTotal; none says that it has no orders.
	Recreate(ctx context.Context, sku string, total, limit int64, none bool) (Stock, error)

	// Add changes the total, once a key; "" = each time.
	Add(ctx context.Context, sku string, delta int64, key string) (Stock, error)

	// SetState opens, pauses, ends or freezes. Freezing raises the epoch, each time.
	SetState(ctx context.Context, sku, state string) (Stock, error)

	// Reservation looks a serial up; ok is false when that SKU does not know it.
	Reservation(ctx context.Context, sku, serial string) (r Reservation, ok bool, err error)

	// Lacks is an error unless it is certain that sku has no such order.
	Lacks(ctx context.Context, sku, serial string) error

	// Reservations reads at most limit of those of sku, in no order.
	Reservations(ctx context.Context, sku string, limit int) ([]Reservation, error)

	// Stuck reads at most limit orders of sku that wait for a person; see package queue.
	Stuck(ctx context.Context, sku string, limit int) ([]Reservation, error)

	// Settle does op to r: "confirm" "release" "refund" "adopt" "requeue". It is idempotent by serial. User and Quantity
	// are needed for "adopt" alone. A state of "" is that of an unknown serial.
	Settle(ctx context.Context, op string, r Reservation) (Outcome, error)
}

// ErrConflict is what a Ledgers says of a change that contradicts what it holds; its text says what to do instead.
var ErrConflict = errors.New("rejected")

func (a *API) listLedgers(w http.ResponseWriter, r *http.Request) (any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	all, err := a.Ledgers.List(r.Context(), limit)
	return map[string]any{"stock": all}, err
}

func (a *API) readLedger(w http.ResponseWriter, r *http.Request) (any, error) {
	return a.readNamedLedger(r)
}

// readNamedLedger reads the ledger that r names.
func (a *API) readNamedLedger(r *http.Request) (Stock, error) {
	sku := r.PathValue("sku")
	if err := CheckSKU(sku); err != nil {
		return Stock{}, err
	}
	s, err := a.Ledgers.Stock(r.Context(), sku)
	if errors.Is(err, ErrNoSKU) && a.Store != nil {
		err = fmt.Errorf("%w; the shop's own stock is asked for by --kind layout (in the API: ?kind=layout)", err)
	}
	return s, err
}

// changeLedger sets the total, adds to it, or turns the SKU on and off.
func (a *API) changeLedger(w http.ResponseWriter, r *http.Request) (any, error) {
	want, err := changeOf(w, r)
	if err == nil {
		err = want.fitsLedger()
	}
	if err != nil {
		return nil, err
	}
	sku := r.PathValue("sku")
	before, err := a.readNamedLedger(r)
	if errors.Is(err, ErrNoSKU) && want.Set != nil {
		err = a.mayMake(r, sku)
	}
	if err != nil {
		return nil, err
	}
	now, err := a.apply(r.Context(), sku, &want, before)
	if err != nil {
		return nil, err
	}
	if want.State != "" && a.Controller != nil {
		a.Controller.Leave(sku) // paused for a while, and now for good: it must not open by itself
	}
	a.record(r, AuditEntry{What: "ledger.change", Object: sku, Detail: want.String(), Before: before.Ledger,
		After: now.Ledger},
		"admin: ledger changed", "sku", sku, "change", want.String(), "before", before.Ledger, "after", now.Ledger)
	return now, nil
}

// mayMake wants to be told which kind of stock is meant where both are kept: a ledger that was made by mistake would
// be ignored by the routes that look at the shop's own stock, which then is not what the operator believes.
func (a *API) mayMake(r *http.Request, sku string) error {
	if a.Store == nil || r.URL.Query().Get("kind") == "ledger" {
		return nil
	}
	return fmt.Errorf("set %q: %w: it has no ledger, and some routes look at the shop's own stock; say --kind ledger "+
		"to make one, or --kind layout (in the API: ?kind=)", sku, ErrConflict)
}

func (a *API) apply(ctx context.Context, sku string, want *change, before Stock) (Stock, error) {
	switch {
	case want.Set != nil && want.Limit != nil:
		return a.Ledgers.SetTotal(ctx, sku, *want.Set, *want.Limit)
	case want.Set != nil:
		return a.Ledgers.SetTotal(ctx, sku, *want.Set, -1)
	case want.Add != nil:
		return a.Ledgers.Add(ctx, sku, *want.Add, want.key)
	case before.Ledger.State == want.State:
		return before, nil // asking twice to freeze must not raise the epoch twice
	case before.Ledger.State == frozen:
		return Stock{}, fmt.Errorf("%q is frozen: %w: orders of the shop may be missing in its ledger; sluice stock recover "+
			"%s shows both books, and with --from FILE --apply opens it", sku, ErrConflict, sku)
	}
	return a.Ledgers.SetState(ctx, sku, want.State)
}
