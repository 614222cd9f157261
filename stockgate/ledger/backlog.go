package ledger

import (
	"context"
	"errors"
)

// backlogged is a store whose changes wait for somebody to acknowledge them.
type backlogged interface {
	behind(ctx context.Context, sku string) error
}

// heed raises the alarm when the consumers of a SKU's changes are too far behind, and ends it when they are not any
// more. An error of the store says neither. Only the watch calls it.
func (d *Desk) heed(ctx context.Context, l *line) {
	store, ok := d.store.(backlogged)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	err := store.behind(ctx, l.sku)
	late := errors.Is(err, errBehind)
	switch {
	case late && !l.behind:
		d.behind.Add(1)
		d.o.Log.Error("the ledger's changes are not acknowledged, and fill Redis' memory", "sku", l.sku, "cause", err)
	case err == nil && l.behind:
		d.behind.Add(-1)
		d.o.Log.Info("the ledger's changes are acknowledged again", "sku", l.sku)
	default:
		return
	}
	l.behind = late
}
