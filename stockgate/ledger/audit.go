package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// invariant is what is true of every ledger at every moment.
type invariant int

const (
	typedKeys     invariant = iota // the keys are what they should be, and none of them is alone
	readable                       // the numbers are numbers, and not negative
	knownState                     // the state is one of the four
	withinTotal                    // held + sold <= total; to adopt more than that breaks it too
	recordsRead                    // every record can be read
	heldAddsUp                     // held is the sum of the records that are held
	soldAddsUp                     // sold is the sum of those that are sold
	usersAddUp                     // held + sold is the sum of what the users have, and each of them has some
	holdsAreDue                    // a sweep looks at every hold, and at nothing that is sold or not there
	numInvariants                  // of which the first sumsFrom need the numbers alone
	sumsFrom      = recordsRead
)

func (i invariant) String() string {
	return [...]string{"keys", "numbers", "state", "over_total", "records", "held", "sold", "users", "holds"}[i]
}

// findings are the invariants that are broken.
type findings uint16

func (f *findings) add(i invariant, broken bool) {
	if broken {
		*f |= 1 << i
	}
}

func (f findings) has(i invariant) bool { return f&(1<<i) != 0 }

func (f findings) names() (all []string) {
	for i := range numInvariants {
		if f.has(i) {
			all = append(all, i.String())
		}
	}
	return all
}

// numbered judges what the numbers alone show. Nothing at all breaks nothing.
func (p *page) numbered() (f findings) {
	if p.wrong || p.raw == (raw{}) {
		f.add(typedKeys, !p.none())
		return f
	}
	var n [6]int64
	for i, text := range []string{p.total, p.held, p.sold, p.epoch, p.limit, p.ver} {
		v, err := digits(text)
		n[i] = v
		f.add(readable, err != nil)
	}
	f.add(knownState, checkState(State(p.state)) != nil)
	f.add(withinTotal, !f.has(readable) && n[1]+n[2] > n[0])
	return f
}

// Audit is what an audit of one ledger found.
type Audit struct {
	Broken []string // the invariants that do not hold: keys numbers state over_total records held sold users holds
	Whole  bool     // all of them were looked at; false = it changed too often meanwhile, or is too large

	Total, Held, Sold, State, Epoch, Ver string // as they lie there, "" = missing

	// What was counted, where Whole is true: units and holds by the records, units by the users, serials that are due.
	HeldUnits, SoldUnits, UserUnits int64
	Holds, Due                      int
}

// attrs are the numbers, for the log.
func (a *Audit) attrs(sku string) []any {
	return []any{"sku", sku, "broken", a.Broken, "total", a.Total, "held", a.Held, "sold", a.Sold, "state", a.State,
		"epoch", a.Epoch, "ver", a.Ver, slog.Group("counted", "whole", a.Whole, "held", a.HeldUnits, "sold", a.SoldUnits,
			"users", a.UserUnits, "holds", a.Holds, "due", a.Due)}
}

// Audit looks whether every invariant of a ledger holds. It reads only, a page at a time, and begins again when the
// ledger changes meanwhile, a few times, so that what it finds is never half of a change. ok is false when there is
// nothing at all.
func (r *Redis) Audit(ctx context.Context, sku string) (a Audit, ok bool, err error) {
	return audit(ctx, r, sku)
}

// Audit is what Redis.Audit is.
func (m *Memory) Audit(ctx context.Context, sku string) (a Audit, ok bool, err error) {
	return audit(ctx, m, sku)
}

const auditTries = 20

func audit(ctx context.Context, s inspected, sku string) (a Audit, ok bool, err error) {
	for try := range auditTries {
		t := &tally{}
		err := t.walk(ctx, s, sku)
		if err != nil {
			return Audit{}, false, fmt.Errorf("audit: %w", err)
		}
		a = t.audit()
		if t.done || t.large || t.none {
			return a, !t.none, nil
		}
		select {
		case <-ctx.Done():
			return a, true, nil
		case <-time.After(time.Duration(try) * 5 * time.Millisecond):
		}
	}
	return a, true, nil
}

// walk turns pages until the end, or until the ledger changes.
func (t *tally) walk(ctx context.Context, s inspected, sku string) error {
	for {
		p, err := s.inspect(ctx, sku, t.part, t.cursor(), pageSize)
		if err != nil {
			return err
		}
		if !t.turn(&p) {
			return nil
		}
	}
}
