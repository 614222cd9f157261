package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sluice/stockgate/ledger"
)

// Outcome is what came of settling one reservation.
type Outcome struct {
	Changed bool          `json:"changed"` // false: it had been done before
	State   ledger.Status `json:"state"`   // of the reservation now; none = the ledger does not know it
}

// settled is an Outcome as it is answered.
type settled struct {
	SKU    string `json:"sku"`
	Serial string `json:"serial"`
	Outcome
}

// settleHandler handles an op that needs nothing but the serial.
func (a *API) settleHandler(op string) handler {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if skus := r.URL.Query()["sku"]; len(skus) > 1 {
			return a.settleLines(r, op, skus)
		}
		before, err := a.locate(r)
		if sku := r.URL.Query().Get("sku"); errors.Is(err, errNoSerial) && sku != "" {
			before, err = Reservation{SKU: sku, Serial: r.PathValue("serial")}, nil // the ledger decides
		}
		if err != nil {
			return nil, a.lacking(r, op, nil, err)
		}
		return a.settle(r, op, before)
	}
}

// lacking is err, of a serial that none of some SKUs knows (nil = all SKUs), unless the ledger of one of them may lack
// its last orders: the order may come back as it was, and the caller must say it again then.
func (a *API) lacking(r *http.Request, op string, skus []string, err error) error {
	if !errors.Is(err, errNoSerial) {
		return err
	}
	if skus == nil {
		var fault error
		if skus, fault = a.Ledgers.SKUs(r.Context(), maxAsked); fault != nil {
			return fault
		}
		lost, fault := a.Ledgers.Lost(r.Context(), 1)
		if fault != nil {
			return fault
		}
		skus = append(skus, lost...)
	}
	for _, sku := range skus {
		if fault := a.Ledgers.Lacks(r.Context(), sku, r.PathValue("serial")); fault != nil {
			return fmt.Errorf("%s %q: %s does not know it, and may have lost it: if the shop has that order, say it again once "+
				"the SKU is open: %w", op, r.PathValue("serial"), sku, fault)
		}
	}
	return err
}

// maxLines is how many SKUs one order may be of.
const maxLines = 16

// settleLines does op to all lines of an order over several SKUs, which sku= names one by one. Where a line contradicts
// it, nothing is done. It may be repeated: each line is settled once.
func (a *API) settleLines(r *http.Request, op string, skus []string) (any, error) {
	lines, err := a.lines(r, op, skus)
	if err != nil {
		return nil, err
	}
	all := settled{SKU: strings.Join(skus, " "), Serial: r.PathValue("serial")}
	for _, one := range lines {
		out, err := a.Ledgers.Settle(r.Context(), op, one)
		if err == nil && out.State == ledger.StatusNone {
			err = fmt.Errorf("%s %q of %q: %w", op, one.Serial, one.SKU, errNoSerial)
		}
		if err != nil {
			return nil, a.lacking(r, op, []string{one.SKU}, err)
		}
		all.Changed, all.State = all.Changed || out.Changed, out.State
	}
	a.record(r, AuditEntry{What: "reservation.settle", Object: all.SKU + " " + all.Serial, Detail: op,
		Before: lines[0].State, After: all.Outcome}, "admin: all lines of an order settled", "skus", all.SKU, "serial",
		all.Serial, "op", op, "after", all.State, "changed", all.Changed)
	return all, nil
}

// lines finds the lines of an order, and rejects an op that one of them contradicts.
func (a *API) lines(r *http.Request, op string, skus []string) (lines []Reservation, err error) {
	if len(skus) > maxLines || op == "requeue" {
		return nil, fmt.Errorf("%s of %d SKUs: %w: confirm, release and refund take at most %d", op, len(skus), ErrInvalid,
			maxLines)
	}
	for _, sku := range skus {
		if err := CheckSKU(sku); err != nil {
			return nil, err
		}
		found, ok, err := a.Ledgers.Reservation(r.Context(), sku, r.PathValue("serial"))
		switch {
		case err != nil:
			return nil, err
		case !ok && op != "release":
			err = fmt.Errorf("%s %q of %q: %w; no line was settled", op, r.PathValue("serial"), sku, errNoSerial)
			return nil, a.lacking(r, op, []string{sku}, err)
		case op == "confirm" && found.State.Final(), op == "release" && found.State == ledger.StatusSold,
			op == "refund" && found.State == ledger.StatusReleased:
			return nil, fmt.Errorf("%s %q of %q: %w: it is %s; no line was settled", op, found.Serial, sku, ErrConflict,
				found.State)
		}
		lines = append(lines, Reservation{SKU: sku, Serial: r.PathValue("serial"), State: found.State})
	}
	return lines, nil
}

// settle does op to what was found before.
func (a *API) settle(r *http.Request, op string, before Reservation) (any, error) {
	out, err := a.Ledgers.Settle(r.Context(), op, before)
	if err == nil && out.State == ledger.StatusNone {
		err = fmt.Errorf("%s %q of %q: %w; if the shop has that order: sluice stock recover %s --from FILE", op,
			before.Serial, before.SKU, errNoSerial, before.SKU)
	}
	if err != nil {
		return nil, a.lacking(r, op, []string{before.SKU}, err)
	}
	a.record(r, AuditEntry{What: "reservation.settle", Object: before.SKU + " " + before.Serial, Detail: op,
		Before: before.State, After: out},
		"admin: reservation settled", "sku", before.SKU, "serial", before.Serial, "op", op,
		"before", before.State, "after", out.State, "changed", out.Changed)
	return settled{before.SKU, before.Serial, out}, nil
}

// Settlement is what a settler has told last of one home. The gate never opens its database.
type Settlement struct {
	Home          string               `json:"home"`
	At            int64                `json:"at"`     // Unix ms, of the settler's clock
	AgeMS         int64                `json:"age_ms"` // by this instance's clock
	Up            bool                 `json:"up"`     // the database answers
	Database      string               `json:"database"`
	LagSeconds    float64              `json:"lag_seconds"`    // of the last transaction
	Behind        int64                `json:"behind"`         // changes that wait
	BehindSeconds float64              `json:"behind_seconds"` // since when changes have waited without end
	Conflicts     []SettlementConflict `json:"conflicts"`      // the oldest ones that are not solved
	More          int64                `json:"more"`           // conflicts beyond these
}

// SettlementConflict is what an operator must look at.
type SettlementConflict struct {
	ID     int64  `json:"id"`
	Kind   string `json:"kind"`
	SKU    string `json:"sku"`
	Detail string `json:"detail"` // printable ASCII
	Next   string `json:"next"`   // the command that ends it, for sh
}

// listSettlements lists the homes by name.
func (a *API) listSettlements(w http.ResponseWriter, r *http.Request) (any, error) {
	all := []Settlement{}
	if a.Settlements != nil {
		told, err := a.Settlements(r.Context())
		if err != nil {
			return nil, err
		}
		for _, one := range told {
			one.AgeMS = max(time.Now().UnixMilli()-one.At, 0)
			all = append(all, one)
		}
	}
	return map[string]any{"configured": a.Settlements != nil, "settlements": all}, nil
}
