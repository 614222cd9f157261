package gateway

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice/admin"
)

// How long an end may take, and how long until it is tried again where Redis did not answer.
const (
	endWithin   = 5 * time.Second
	endAgain    = 2 * time.Second
	nothingEnds = time.Hour
)

// end ends the override at a place of the list, whose time has come. Each instance opens the SKU by itself: which one
// is first is no matter.
func (h *controller) end(ctx context.Context, at int) error {
	o := h.overrides[at]
	if l := h.g.ledgers(h.g.running.Load()); o.SKU != "" && l != nil {
		if err := l.Reinstate(ctx, o.SKU, o.Number); err != nil {
			return err
		}
		_ = h.removeFromFleet(ctx, &o) // else those that start later end it once more
	}
	return h.drop(at)
}

// drop takes the override at a place off the list of this instance. What it had overridden is as it was before.
func (h *controller) drop(at int) error {
	o, others := h.overrides[at], slices.Delete(slices.Clone(h.overrides), at, at+1)
	if o.SKU != "" {
		h.write(func() { h.overrides = others })
		return nil
	}
	next, kept, dropped := h.laidOver(h.filed, others)
	if err := h.g.swap(next); err != nil {
		return fmt.Errorf("end the override of %q: %w", o.Key, err)
	}
	h.write(func() { h.overrides = kept })
	for _, gone := range dropped { // it stood on the one that has ended
		h.recordExpiry(gone, "override.drop", "override dropped: without another it has no room")
	}
	return nil
}

// awake has keep look at the list again.
func (h *controller) awake() {
	select {
	case h.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

// attend ends each override in its time, and has orders delivered that an earlier configuration has left.
func (h *controller) attend() {
	defer close(h.stopped)
	for {
		var left <-chan struct{}
		if o := h.g.Orders(); o != nil {
			left = o.left.found
		}
		next := time.NewTimer(h.endDue())
		select {
		case <-h.stop:
			next.Stop()
			return
		case <-h.wake:
		case <-next.C:
		case <-left:
			h.deliverLeft()
		}
		next.Stop()
	}
}

// deliverLeft has the gate deliver orders that wait, although none of its routes has orders wait.
func (h *controller) deliverLeft() {
	h.changing.Lock()
	defer h.changing.Unlock()
	if err := h.g.swap(h.g.running.Load()); err != nil {
		h.log.Error("orders that wait are not delivered; the next reload tries it again", "err", err)
	}
}

// endDue ends what is due, and tells how long it is until there is something again.
func (h *controller) endDue() time.Duration {
	h.changing.Lock()
	defer h.changing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	wait := h.settleSKUs(ctx)
	for len(h.overrides) > 0 {
		o := h.overrides[0]
		if left := time.Until(o.Until); left > 0 {
			return min(wait, left)
		}
		if err := h.end(ctx, 0); err != nil {
			if o.Fault == "" {
				h.log.Error("an override could not end; trying again", "of", o.Key+o.SKU, "err", err)
			}
			h.write(func() {
				h.overrides[0].Fault, h.overrides[0].Until = err.Error(), time.Now().UTC().Add(endAgain)
				slices.SortStableFunc(h.overrides, byEnd)
			})
			continue
		}
		if !o.Unfit {
			h.recordExpiry(o, "override.end", "override ended")
		}
	}
	return wait
}

// recordExpiry puts the end of an override on record: no request stands for it.
func (h *controller) recordExpiry(o admin.Override, what, message string) {
	h.g.trail.Record(admin.AuditEntry{Role: "sluice", What: what, Object: o.Key + o.SKU, Detail: "override " + o.ID,
		Before: o.Value, After: o.Before},
		message, "of", o.Key+o.SKU, "value", o.Before, "before", o.Value)
}
