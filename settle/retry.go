package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/internal/periodic"
)

const (
	retryTries = 100
	retryPause = 50 * time.Millisecond // while a settler works on the SKU
)

// Retry settles an entry that was parked, and solves the conflict, in one transaction. Orders that have changed since
// stay as they are: the entry has the version that it had.
func Retry(ctx context.Context, db Database, c Conflict) (Outcome, error) {
	if c.Kind != "entry" {
		return Outcome{}, fmt.Errorf("conflict %d is of kind %q: only entries are retried", c.ID, c.Kind)
	}
	e := Entry{Position: c.Position}
	words, err := unquoted(c.Entry)
	if err == nil {
		r := replyOf(words)
		e.decode(&r, len(words))
		err = e.Fault
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("conflict %d: the entry cannot be read: %w; sluice-settle rebuild %q reads "+
			"all orders anew", c.ID, err, c.SKU)
	}
	var o Outcome
	err = again(ctx, func() (err error) {
		o, err = retry(ctx, db, c, fold([]Entry{e}))
		return err
	})
	return o, err
}

// Solver is a database in which an operator solves conflicts.
type Solver interface {
	// Solve ends a conflict by the word of an operator, who has put right what it is about. After one of kind "stock"
	// every booked order of the SKU counts as deducted. Its error wraps ErrElsewhere if another settler works on the SKU.
	Solve(ctx context.Context, id int64) (Conflict, error)
}

// Solve solves a conflict by the word of an operator.
func Solve(ctx context.Context, db Solver, id int64) (c Conflict, err error) {
	err = again(ctx, func() (err error) {
		c, err = db.Solve(ctx, id)
		return err
	})
	return c, err
}

// again repeats f while another settler works on the SKU, for some seconds.
func again(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if !errors.Is(err, ErrElsewhere) || try == retryTries {
			return err
		}
		if !periodic.Pause(ctx, retryPause) {
			return ctx.Err()
		}
	}
}

func retry(ctx context.Context, db Database, c Conflict, records []Record) (Outcome, error) {
	cursor, ok, err := db.Cursor(ctx, c.SKU)
	switch {
	case err != nil:
		return Outcome{}, err
	case !ok || c.Epoch < cursor.Born:
		return Outcome{}, fmt.Errorf(
			"conflict %d belongs to an earlier ledger of %q: its stock is not counted any more",
			c.ID,
			c.SKU,
		)
	}
	return db.Settle(ctx, Batch{SKU: c.SKU, From: &cursor, To: cursor, Records: records, Solved: c.ID})
}
