package ledger

import (
	"context"
	"fmt"
	"time"
)

const maxTries = 20

// Audit is what an audit of one ledger found.
type Audit struct {
	Broken                          []string
	Whole                           bool // all invariants were looked at
	HeldUnits, SoldUnits, UserUnits int64
	Holds, Due                      int
}

func (t *auditRun) audit() Audit {
	return Audit{(t.found & t.covered()).names(), t.done, t.held, t.sold, t.units, t.holds, len(t.due)}
}

// auditOf looks whether every invariant of a ledger holds. It reads only, a page at a time, and begins again when the
// ledger changes meanwhile, a few times, so that what it finds is never half of a change. ok is false when there is
// nothing at all.
func auditOf(ctx context.Context, s Calls, sku string) (a Audit, ok bool, err error) {
	for try := range maxTries {
		t := &auditRun{}
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
		case <-time.After(time.Duration(try) * 5 * time.Millisecond): // back-off: the ledger changes all the time
		}
	}
	return a, true, nil
}

// walk turns pages until the end, or until the ledger changes.
func (t *auditRun) walk(ctx context.Context, s Calls, sku string) error {
	for {
		p, err := s.Inspect(ctx, sku, t.part, t.cursor(), pageSize)
		if err != nil {
			return err
		}
		if !t.add(&p) {
			return nil
		}
	}
}
