package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/internal/periodic"
	"sluice/stockgate/ledger"
)

const (
	firstPass    = time.Minute // at most, of frozen ledgers alone: then all are verified
	verifyAgain  = time.Second // until a SKU is looked at again that is not settled yet, or that is being repaired
	unmovedEvery = 60          // a SKU that has not moved is verified with each so many times
	maxRepairs   = 3           // one after another, of a SKU that does not become equal
	shownOrders  = 20          // of a conflict
)

// Auditor is what verifying needs of a database beside its orders.
type Auditor interface {
	// Explain returns what explains differences of a SKU.
	Explain(ctx context.Context, sku string) (Explanation, error)

	// OwnStock returns the units left by Sluice's own stock table, and how many there should be: the total without what
	// is booked; left is below 0 where there is no row. ok is false where the shop has a table of its own, which it
	// changes itself.
	OwnStock(ctx context.Context, sku string) (left, want int64, ok bool, err error)

	// Verified writes the conflicts that verifying a ledger has found, instead of those that it has found before. It
	// solves conflicts of kind "missing" where no order is missing any more, and with healed those of kind "lost".
	Verified(ctx context.Context, sku string, born int64, healed bool, found []Conflict) error
}

// ShopOrder is an order that only one of two books has, the shop's and the ledger's, or has with another quantity.
type ShopOrder struct {
	Serial string
	Shop   int64 // units; 0 = the shop has no such order
	Booked int64 // units that it has taken of the ledger, sold or held; 0 = none
}

// Explanation is what a database knows about the differences of a SKU.
type Explanation struct {
	Givebacks map[string]bool // orders that are given back, and not done
	Parked    bool            // there is an entry that was not settled
	Open      bool            // there are conflicts that Verified may solve
}

// explains reports whether a difference is one that is on its way, or that a conflict has already.
func (e Explanation) explains(row, r Record, ok bool) bool {
	return row.Missing && !ok ||
		row.Status == ledger.StatusRefunded && ok && r.Status == ledger.StatusSold && e.Givebacks[row.Serial]
}

// look is what a settler remembers of the SKU that it has verified.
type look struct {
	at          Position // zero = it is to be verified
	server      string
	when        time.Time
	suspect     bool            // the last look has found a difference: a second look must show it too
	repairs     int             // one after another
	closed      bool            // it was told what it had lost, and opens when every instance has told
	differences int             // that stay
	extra       map[string]bool // orders of the shop that took no unit, as the last look has seen them
	said        string          // what was logged last
	trouble     string          // of the last look
}

// isDue says whether the ledger has moved or gone to another server since the last look, or that was before old.
func (k *look) isDue(l Ledger, old time.Time) bool {
	return k.at != l.Position || k.server != l.server || !k.when.After(old)
}

// verifyAll verifies SKUs until ctx ends: those that have moved, and now and then the others. The first pass is of
// frozen ledgers alone: one may wait for what the settler before this one did not say, and sells nothing until then. A
// settler that starts again and again does not read all SKUs each time.
func (s *Settler) verifyAll(ctx context.Context) {
	first := true
	for trouble := ""; ctx.Err() == nil; first = false {
		end := s.now().Add(s.o.Verify)
		if first {
			end = s.now().Add(min(s.o.Verify, firstPass))
		}
		due, err := s.due(ctx, first)
		if err != nil && err.Error() != trouble && ctx.Err() == nil {
			s.log.Warn("settle: SKUs are not verified; they are tried again", "err", err)
		}
		if trouble = ""; err != nil {
			trouble = err.Error()
		}
		failed := 0
		for {
			var faults int
			due, faults = s.verifySome(ctx, due)
			failed += faults
			wait := end.Sub(s.now())
			if len(due) > 0 {
				wait = min(wait, verifyAgain)
			} else if err == nil && failed == 0 && !first {
				s.counts.verified.Store(s.now().UnixNano())
			}
			if !periodic.Pause(ctx, wait) {
				return
			}
			if !s.now().Before(end) {
				break
			}
		}
		s.counts.unverified.Store(int64(len(due) + failed))
	}
}

// due are the SKUs that are settled here, and that have moved or gone to another server since they were verified, or
// were verified long ago; of these only the frozen ones, or all. A server that takes over may have lost what came after
// the last look, and stands where it was looked at.
func (s *Settler) due(ctx context.Context, onlyFrozen bool) (due []string, err error) {
	for l, fault := range s.stream.All(ctx) {
		switch {
		case fault != nil: // of one server that is away
			err = fault
		case l.Epoch == 0 || !s.o.Home.has(l.SKU, l.Ledger):
			delete(s.looks, l.SKU)
		case onlyFrozen && l.State != frozen:
		case s.look(l.SKU).isDue(l.Ledger, s.now().Add(-unmovedEvery*s.o.Verify)):
			due = append(due, l.SKU)
		}
	}
	return due, err
}

// verifySome verifies SKUs, and returns those that are to be looked at again soon, and how many were not verified by a
// fault: these are tried again in the next pass.
func (s *Settler) verifySome(ctx context.Context, due []string) (again []string, failed int) {
	for _, sku := range due {
		k := s.look(sku)
		more, err := s.VerifySKU(ctx, sku)
		text := ""
		switch {
		case err != nil:
			text = err.Error()
			failed++
		case more:
			again = append(again, sku)
		}
		if text != k.trouble && text != "" && ctx.Err() == nil {
			s.log.Error("settle: a SKU cannot be verified; it is tried again", "sku", sku, "err", err)
		}
		k.trouble = text
	}
	var differences int64
	for _, k := range s.looks {
		differences += int64(k.differences)
	}
	s.counts.differences.Store(differences)
	return again, failed
}

func (s *Settler) look(sku string) *look {
	k := s.looks[sku]
	if k == nil {
		k = &look{}
		s.looks[sku] = k
	}
	return k
}

// VerifySKU compares a SKU at one position, repairs what can never oversell, and writes a conflict of the rest. A
// difference counts when two calls have seen it: one alone may be a change on its way. again means that the SKU is to
// be verified again soon. It needs an Auditor, and is not to be called beside itself, nor beside Run with Verify.
func (s *Settler) VerifySKU(ctx context.Context, sku string) (again bool, err error) {
	k := s.look(sku)
	k.at = Position{}
	e, err := s.o.Auditor.Explain(ctx, sku)
	if err != nil {
		return false, err
	}
	c, found, err := compareOnce(ctx, s.stream, s.db, sku, e.explains)
	if err != nil || found != compared {
		return found == lagging, err
	}
	differ := len(c.Differences) + c.More
	open := differ - c.final // to be repaired
	follow := c.unproven == 0 && !e.Parked
	switch repairable := k.repairs < maxRepairs; {
	case differ > 0 && !k.suspect:
		k.suspect = true
		return true, nil
	case repairable && (c.lost > 0 || open > 0 && follow && c.ledger.State != frozen):
		return true, s.repair(ctx, k, c, follow)
	case c.ledger.State == frozen && c.lost == 0:
		if again, err = s.tellAgain(ctx, k, c); err != nil || again || differ > 0 {
			return again, err
		}
	}
	if k.suspect, k.differences = false, differ; open == 0 {
		k.repairs = 0
	}
	waits, err := s.conclude(ctx, k, c, e)
	if err == nil && !waits && !e.Open { // else each pass looks whether it is put right
		k.at, k.server, k.when = c.At, c.ledger.server, s.now()
	}
	return false, err
}

// tellAgain says that a frozen ledger has all that is settled. It reports whether it is to be said again.
func (s *Settler) tellAgain(ctx context.Context, k *look, c Comparison) (bool, error) {
	opened, err := s.o.Ledger.Told(ctx, c.SKU, c.At.Epoch)
	if opened {
		s.log.Info("settle: the ledger has its orders again: the SKU goes on", "sku", c.SKU)
	}
	k.closed = k.closed && !opened
	return k.closed, err
}

// repair has the ledger told what it has lost, or else the database follow the ledger. Both leave the free units of the
// ledger as they are, or lower them; and the stock table gets no unit back, but for an order that is given back.
func (s *Settler) repair(ctx context.Context, k *look, c Comparison, follow bool) error {
	first := c.Differences[0]
	s.log.Warn("settle: ledger and database differ, and are repaired", "sku", c.SKU, "at", c.At.String(),
		"orders", len(c.Differences)+c.More, "told_to_the_ledger", c.lost, "first", first.Serial, "ledger", first.Ledger,
		"database", first.Database)
	told, err := s.reread(ctx, &skuCursor{sku: c.SKU, stays: !follow})
	if err != nil {
		return err
	}
	k.repairs++
	k.closed = k.closed || told
	s.counts.repairs.Add(1)
	return nil
}

// conclude writes what an operator must look at, and reports whether there is, or may be, anything.
func (s *Settler) conclude(ctx context.Context, k *look, c Comparison, e Explanation) (open bool, err error) {
	var found []Conflict
	at := Position{Epoch: c.born} // one for each ledger and kind: no entry has the version 0
	if n := len(c.Differences) + c.More; n > 0 && !e.Parked {
		found = append(found, Conflict{SKU: c.SKU, Position: at, Kind: "difference", Detail: c.detail(n)})
	}
	left, want, ok, err := s.o.Auditor.OwnStock(ctx, c.SKU)
	switch {
	case err != nil:
		return true, err
	case ok && left != want:
		has := fmt.Sprintf("%d units left", left)
		if left < 0 {
			has = "no row"
		}
		found = append(found, Conflict{SKU: c.SKU, Position: at, Kind: "stock", Detail: fmt.Sprintf(
			"sluice_stock has %s, and %d should be left: the total without what is booked", has, want)})
	}
	extra, unread := s.extra(ctx, k, c)
	if unread != nil && !errors.Is(unread, ErrShopRow) {
		return true, unread
	}
	if extra != "" {
		found = append(found, Conflict{SKU: c.SKU, Position: at, Kind: "extra", Detail: extra})
	}
	said := ""
	for _, f := range found {
		said += f.Kind + f.Detail
	}
	if said != k.said {
		for _, f := range found {
			s.log.Error("settle: conflict", "sku", f.SKU, "kind", f.Kind, "at", c.At.String(), "detail", f.Detail)
		}
	}
	k.said = said
	if open = len(found)+len(k.extra) > 0; len(found) == 0 && !e.Open {
		return open, unread
	}
	return open, cmp.Or(s.o.Auditor.Verified(ctx, c.SKU, c.born, c.healed(), found), unread)
}

// extra tells which orders of the shop took no unit of the ledger, or too few; "" = none. An order counts when two
// looks have seen it: between, it was settled, or the shop has ended it, if it was on its way. With ErrShopRow it tells
// of the other orders.
func (s *Settler) extra(ctx context.Context, k *look, c Comparison) (string, error) {
	if s.o.Shop == nil {
		return "", nil
	}
	differ, err := s.o.Shop(ctx, c.SKU, c.born)
	if err != nil && !errors.Is(err, ErrShopRow) {
		return "", err
	}
	seen, n, units := make(map[string]bool), 0, int64(0)
	var text strings.Builder
	for _, d := range differ {
		if d.Shop <= d.Booked {
			continue
		}
		if seen[d.Serial] = true; !k.extra[d.Serial] {
			continue
		}
		if units, n = units+d.Shop-d.Booked, n+1; n <= shownOrders {
			fmt.Fprintf(&text, "; %q: the shop has %d, the ledger %d", d.Serial, d.Shop, d.Booked)
		}
	}
	if k.extra = seen; n == 0 {
		return "", err
	}
	if n > shownOrders {
		fmt.Fprintf(&text, "; and %d more", n-shownOrders)
	}
	return plain(fmt.Sprintf("oversold: %d units of %d orders of the shop were taken from no ledger, which has %d units "+
		"sold and %d held of %d; cancel them at the shop, or recover them%s", units, n, c.Sold, c.ledger.Held,
		c.ledger.Total, text.String())), err
}

// detail names the numbers of both sides, and some orders.
func (c *Comparison) detail(n int) string {
	var text strings.Builder
	why := "to follow the ledger would return units that nothing shows to be free"
	switch {
	case c.unproven > 0:
	case c.final == n:
		why = "the database has them as released, and the ledger as sold; if the shop has them, sluice-settle rebuild makes " +
			"the rows those of the ledger; if not, sluice reservation refund gives the units back"
	default:
		why = "they were repaired, and differ again"
	}
	fmt.Fprintf(&text, "%d orders differ at one position: %s; %d units are sold by the ledger, %d are booked in the "+
		"database", n, why, c.Sold, c.Booked)
	for i, d := range c.Differences {
		if i == shownOrders {
			break
		}
		fmt.Fprintf(&text, "; %q: ledger %s, database %s", d.Serial, orNone(d.Ledger), orNone(d.Database))
	}
	if more := n - shownOrders; more > 0 {
		fmt.Fprintf(&text, "; and %d more", more)
	}
	return plain(text.String())
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
