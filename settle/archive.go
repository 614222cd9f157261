package settle

import (
	"context"
	"fmt"
)

// ArchivedLedger is a ledger whose orders can be forgotten.
type ArchivedLedger interface {
	// Archive forgets the orders of a ledger whose sale is over, if it is still at a position.
	Archive(ctx context.Context, sku string, epoch, ver int64) error
}

// Archive frees the memory of a SKU in Redis, if its sale is over and the database has every order. It compares each
// order, and the ledger forgets them only if nothing has changed since. ok is false if the SKU has no ledger.
func Archive(ctx context.Context, stream Stream, db Database, ledger ArchivedLedger, sku string) (c Comparison, ok bool,
	err error) {
	c, ok, err = Verify(ctx, stream, db, sku)
	if err != nil || !ok {
		return c, ok, err
	}
	if !c.Equal() {
		return c, true, fmt.Errorf("archive %q: ledger and database differ, and nothing was freed; see sluice-settle verify",
			sku)
	}
	settled, err := db.Settled(ctx, sku)
	if err != nil {
		return c, true, err
	}
	if settled != c.At {
		return c, true, fmt.Errorf("archive %q: a target has only settled up to %s of %s, and nothing was freed; see "+
			"sluice-settle status", sku, settled, c.At)
	}
	return c, true, ledger.Archive(ctx, sku, c.At.Epoch, c.At.Ver)
}
