package ledger

import (
	"context"
	"errors"
)

// backlogged is a store whose changes wait for somebody to acknowledge them.
type backlogged interface {
	// behind tells by position of which SKUs too many changes wait, or could not be counted; nil = of none.
	behind(ctx context.Context, skus []string) []error
}

// heed raises the alarm when the consumers of a SKU's changes are too far behind, and ends it when they are not any
// more. An error of the store says neither. Only the watch calls it.
func (d *Desk) heed(ctx context.Context, some []*line, skus []string) {
	store, ok := d.store.(backlogged)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	errs := store.behind(ctx, skus)
	for i, l := range some {
		var err error
		if errs != nil {
			err = errs[i]
		}
		d.heedOne(l, err)
	}
}

// heedOne takes in whether the consumers of one SKU are behind.
func (d *Desk) heedOne(l *line, err error) {
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
