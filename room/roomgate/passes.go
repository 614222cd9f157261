package roomgate

import (
	"context"

	"sluice/room"
)

// maxUses is how many of them wait for the next tick; those beyond it count as passes that were not used.
const maxUses = 10_000

// Used notes that user has placed an order with a pass.
func (r *Room) Used(user []byte) {
	r.usesMu.Lock()
	defer r.usesMu.Unlock()
	if len(r.uses) < maxUses {
		r.uses = append(r.uses, string(user))
	}
}

func (r *Room) flushUses(ctx context.Context) {
	r.usesMu.Lock()
	uses := r.uses
	r.uses = nil
	r.usesMu.Unlock()
	if len(uses) == 0 {
		return
	}
	if err := r.o.Store.Use(ctx, uses); err != nil { // the next tick tries again
		r.usesMu.Lock()
		r.uses = append(uses, r.uses...)
		r.uses = r.uses[:min(len(r.uses), maxUses)]
		r.usesMu.Unlock()
	}
}

// Admits reports from memory whether user may order sku at unixMS: with a good pass, or where the room is not in force.
func (r *Room) Admits(unixMS int64, sku, user, pass []byte) bool {
	v := r.view.Load()
	if r.o.Sells != nil && !r.o.Sells(sku) || v.state.Phase == room.Off {
		return true
	}
	return r.secret.passes.Valid(pass, v.passes, user, unixMS)
}
