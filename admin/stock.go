package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sluice/proxy/param"
)

// Stock is one SKU in the API.
type Stock struct {
	SKU    string  `json:"sku"`
	Left   int64   `json:"left"` // what the shop's key says, or what is free in the ledger; below 0 when it is oversold
	OnSale bool    `json:"on_sale"`
	Ledger *Ledger `json:"ledger,omitempty"` // nil: the shop keeps this stock, in its own layout
	Fault  string  `json:"fault,omitempty"`  // in a list: why the shop's key cannot be read; Left is 0 then
}

// Store is the stock that the shop keeps and the API shows and sets. Its errors may be ErrNoSKU and ErrInvalid.
type Store interface {
	Read(ctx context.Context, sku string) (Stock, error)
	Set(ctx context.Context, sku string, left int64) (Stock, error)
	Add(ctx context.Context, sku string, delta int64) (Stock, error)
	List(ctx context.Context, limit int) ([]Stock, error)
}

// ErrNoSKU is what a store says of a SKU that it does not hold.
var ErrNoSKU = errors.New("no such SKU")

// ErrInvalid is what a store says of a change that could never be made.
var ErrInvalid = errors.New("not valid")

// kept chooses between the two kinds of stock. Where any route reserves, the ledger is the stock unless the caller
// says ?kind=layout: what the shop's key says then decides nothing on those routes.
func (a *API) kept(layout, ledger handler) handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		kind := r.URL.Query().Get("kind")
		switch {
		case kind != "" && kind != "ledger" && kind != "layout":
			return nil, statusError{http.StatusBadRequest, fmt.Sprintf(`kind %.20q: it is "ledger" or "layout"`, kind)}
		case a.Store == nil && a.Ledgers == nil:
			return nil, statusError{http.StatusNotFound, `no stock is kept: stock.source is "off"`}
		case kind == "ledger" && a.Ledgers == nil:
			return nil, statusError{http.StatusNotFound, noLedgers}
		case kind == "layout" && a.Store == nil:
			return nil, statusError{http.StatusNotFound, `no route looks at the shop's own stock: all of them reserve`}
		case kind == "ledger" || kind == "" && a.Ledgers != nil && !(a.LayoutFirst && a.Store != nil):
			return ledger(w, r)
		}
		return layout(w, r)
	}
}

// kinds are those of stock that are kept.
func (a *API) kinds() []string {
	kinds := []string{}
	if a.Ledgers != nil {
		kinds = append(kinds, "ledger")
	}
	if a.Store != nil {
		kinds = append(kinds, "layout")
	}
	return kinds
}

// noLedgers is the answer where nothing is ever reserved.
const noLedgers = `no ledger is kept: no route has gate = "reserve"`

func (a *API) list(w http.ResponseWriter, r *http.Request) (any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	all, err := a.Store.List(r.Context(), limit)
	return map[string]any{"stock": all}, err
}

func (a *API) read(w http.ResponseWriter, r *http.Request) (any, error) {
	return a.Store.Read(r.Context(), r.PathValue("sku"))
}

// change sets the stock, or adds to it: {"set": 100} or {"add": -3}.
func (a *API) change(w http.ResponseWriter, r *http.Request) (any, error) {
	want, err := changeOf(w, r)
	if err == nil {
		err = want.fitsLayout()
	}
	if err != nil {
		return nil, err
	}
	ctx, sku := r.Context(), r.PathValue("sku")
	before, none := a.Store.Read(ctx, sku) // for the log alone: what cannot be read may be set all the same
	var now Stock
	if want.Set != nil {
		now, err = a.Store.Set(ctx, sku, *want.Set)
	} else {
		now, err = a.Store.Add(ctx, sku, *want.Add)
	}
	if err != nil {
		return nil, err
	}
	a.record(r, AuditEntry{What: "stock.change", Object: sku, Detail: want.String(), Before: before.Left, After: now.Left},
		"admin: stock changed", "sku", sku, "change", want.String(), "existed", none == nil, "left_before", before.Left,
		"left", now.Left)
	return now, nil
}

// CheckSKU rejects what no request could name.
func CheckSKU(sku string) error {
	if param.ValidSKU([]byte(sku)) {
		return nil
	}
	return fmt.Errorf("SKU %.140q: %w: no request can name it; 1 to 128 bytes of UTF-8 without spaces, braces and "+
		"control characters", sku, ErrInvalid)
}
