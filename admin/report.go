package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"sluice/config"
	"sluice/stockgate/ledger/protocol"
)

// Report is what became of a sale, or of everything since the start.
type Report struct {
	At      time.Time `json:"at"`
	From    time.Time `json:"from"` // of Traffic, by whole minutes
	To      time.Time `json:"to"`
	Host    string    `json:"host"`
	Version string    `json:"version"`
	Config  string    `json:"config"`

	Sale     *Sale          `json:"sale"` // null: it is of everything
	Stock    []LedgerTotals `json:"stock"`
	More     bool           `json:"more"`     // there are other ledgers: too many for one report
	Balances *bool          `json:"balances"` // each Book does; null: there is none, so that nothing is counted
	Unknown  int64          `json:"unknown"`  // reservations whose outcome is unknown
	Traffic  Tally          `json:"traffic"`  // of this instance alone

	NotCounted []NotCounted `json:"not_counted"` // SKUs without a ledger: the shop takes their units
}

// LedgerTotals is the ledger of one SKU, and whether it balances: total = held + sold + free with nothing oversold, and
// where the orders could be counted one by one, those that are held and sold come to the same.
type LedgerTotals struct {
	SKU       string    `json:"sku"`
	Total     int64     `json:"total"`
	Held      int64     `json:"held"`
	Sold      int64     `json:"sold"`
	Free      int64     `json:"free"`
	State     string    `json:"state"`
	Counted   bool      `json:"counted"` // the orders were; not while others come in, nor where there are too many
	Balances  bool      `json:"balances"`
	Fault     string    `json:"fault,omitempty"`
	FirstSold time.Time `json:"first_sold,omitzero"` // seen by this instance, as is SoldOut
	SoldOut   time.Time `json:"sold_out,omitzero"`
}

const maxBooks = 5000 // of one report

const countTries = 3 // of the orders of a SKU, before it is said that others come in

func (a *API) report(w http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	form := q.Get("format")
	if form != "" && form != "json" && form != "csv" {
		return nil, statusError{http.StatusBadRequest, fmt.Sprintf(`format %.20q: it is "json" or "csv"`, form)}
	}
	done, err := a.reported(r.Context(), q.Get("sale"), q.Get("sku"))
	if err != nil {
		return nil, err
	}
	if form != "" {
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "sluice-report-"+
			done.At.Format("20060102-150405")+"."+form))
	}
	if form == "csv" {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_ = done.writeCSV(w) // a client that has gone needs no answer
		return nil, nil
	}
	return done, nil
}

// reported is the report of a sale, or of a SKU; "" = of all.
func (a *API) reported(ctx context.Context, sale, sku string) (*Report, error) {
	s := a.Gate.Status()
	r := &Report{At: time.Now().UTC().Truncate(time.Second), From: s.Started, Version: s.Version, Config: s.Config,
		Stock: []LedgerTotals{}, NotCounted: []NotCounted{}}
	r.To = r.At
	r.Host, _ = os.Hostname() // for people alone
	var skus []string
	if sale != "" {
		one, err := a.saleNamed(sale)
		if err != nil {
			return nil, err
		}
		r.Sale, skus = &one, one.SKUs
		if starts := one.Starts.UTC(); starts.After(r.From) { // what came before this process began it has not counted
			r.From = starts
		}
		if one.Ends.Before(r.To) {
			r.To = one.Ends.UTC()
		}
	}
	if sku != "" {
		if err := CheckSKU(sku); err != nil {
			return nil, err
		}
		skus = []string{sku}
	}
	if oldest := r.At.Add(-keptMinutes * time.Minute); r.From.Before(oldest) {
		r.From = oldest
	}
	var seen map[string]moments
	r.Traffic, seen = a.History.since(r.From.Unix(), r.To.Unix())
	latest := a.History.latest()
	if latest != nil {
		r.Unknown = latest.Unknown
	}
	if err := a.audited(ctx, r, skus, sku != "" && a.Store == nil, seen); err != nil {
		return r, err
	}
	if skus == nil && latest != nil {
		for _, one := range latest.NotCounted {
			skus = append(skus, one.SKU)
		}
	}
	return r, a.addNotCounted(ctx, r, skus, sku != "")
}

// addNotCounted adds those of skus that have no ledger, as the shop's own keys tell of them. One that has no stock
// either is left out, unless it must be there.
func (a *API) addNotCounted(ctx context.Context, r *Report, skus []string, must bool) error {
	if a.Store == nil {
		return nil
	}
	for _, sku := range slices.Sorted(slices.Values(skus)) {
		if slices.ContainsFunc(r.Stock, func(b LedgerTotals) bool { return b.SKU == sku }) {
			continue
		}
		s, err := a.Store.Read(ctx, sku)
		switch {
		case err == nil:
			r.NotCounted = append(r.NotCounted, NotCounted{sku, s.Left})
		case must || !errors.Is(err, ErrNoSKU):
			return err
		}
		if len(r.NotCounted) == maxBooks {
			break
		}
	}
	return nil
}

func (a *API) saleNamed(name string) (Sale, error) {
	var names []string
	if a.Sales != nil {
		for _, s := range a.Sales.All() {
			if s.Name == name {
				return s, nil
			}
			names = append(names, s.Name)
		}
	}
	return Sale{}, fmt.Errorf("sale %.40q %w; %s", name, ErrNotConfigured, config.Meant(name, names))
}

// audited adds the books of skus, nil = of all. One that has no ledger is left out, unless it must be there.
func (a *API) audited(ctx context.Context, r *Report, skus []string, must bool, seen map[string]moments) (err error) {
	if a.Ledgers == nil {
		return nil
	}
	if skus == nil {
		if skus, err = a.Ledgers.SKUs(ctx, maxBooks+1); err != nil {
			return err
		}
		if r.More = len(skus) > maxBooks; r.More {
			skus = skus[:maxBooks]
		}
	}
	balances := true
	orders := maxRead // that are counted, of all SKUs together
	for _, sku := range slices.Sorted(slices.Values(skus)) {
		b, err := a.book(ctx, sku, &orders)
		if errors.Is(err, ErrNoSKU) && !must {
			continue
		}
		if err != nil {
			return err
		}
		if m := seen[sku]; m.firstSold != 0 {
			b.FirstSold = time.Unix(m.firstSold, 0).UTC()
		}
		if m := seen[sku]; m.soldOut != 0 {
			b.SoldOut = time.Unix(m.soldOut, 0).UTC()
		}
		r.Stock = append(r.Stock, b)
		balances = balances && b.Balances
		r.Balances = &balances
	}
	return nil
}

// book reads one ledger, and counts its orders where nothing changes meanwhile.
func (a *API) book(ctx context.Context, sku string, orders *int) (b LedgerTotals, err error) {
	for try := 0; ; try++ {
		before, err := a.Ledgers.Stock(ctx, sku)
		if err != nil {
			return b, err
		}
		l := before.Ledger
		b = LedgerTotals{SKU: sku, Total: l.Total, Held: l.Held, Sold: l.Sold, Free: l.Free, State: l.State}
		b.checkNumbers()
		if *orders <= 0 || try == countTries {
			return b, nil
		}
		all, err := a.Ledgers.Reservations(ctx, sku, *orders)
		if err != nil {
			return b, err
		}
		after, err := a.Ledgers.Stock(ctx, sku)
		if err != nil {
			return b, err
		}
		if after.Ledger.Epoch == l.Epoch && after.Ledger.Ver == l.Ver {
			if len(all) < *orders {
				b.count(all)
			}
			*orders -= len(all)
			return b, nil
		}
	}
}

// checkNumbers looks at the numbers themselves.
func (b *LedgerTotals) checkNumbers() {
	switch {
	case b.Total != b.Held+b.Sold+b.Free:
		b.Fault = fmt.Sprintf("%d is not %d + %d + %d", b.Total, b.Held, b.Sold, b.Free)
	case b.Free < 0:
		b.Fault = fmt.Sprintf("%d more are held and sold than there are", -b.Free)
	case b.Held < 0 || b.Sold < 0:
		b.Fault = "a number is below 0"
	}
	b.Balances = b.Fault == ""
}

// count holds the numbers against the orders.
func (b *LedgerTotals) count(all []Reservation) {
	var held, sold int64
	for _, one := range all {
		switch one.State {
		case protocol.StatusHeld:
			held += one.Quantity
		case protocol.StatusSold:
			sold += one.Quantity
		}
	}
	b.Counted = true
	if (held != b.Held || sold != b.Sold) && b.Balances {
		b.Balances, b.Fault = false, fmt.Sprintf("the orders come to %d held and %d sold", held, sold)
	}
}
