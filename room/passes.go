package room

import (
	"context"

	"sluice/proxy/reject"
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

// Admits implements proxy.Room, from memory: user may order with a good pass, or where the room is not in force.
func (r *Room) Admits(unixMS int64, sku, user, pass []byte) (reject.Reason, reject.Cause) {
	v := r.view.Load()
	if !r.sells(sku) || v.state.Phase == Off {
		return reject.Admitted, reject.NoCause
	}
	ends := r.passes.Ends(pass, v.passes, user)
	switch {
	case unixMS < ends:
		return reject.Admitted, reject.NoCause
	case v.state.Phase == Over:
		return r.notJoined(v, unixMS).Rejection, reject.NoCause
	case len(pass) == 0:
		return reject.Room, reject.PassMissing
	case ends > 0:
		return reject.Room, reject.PassExpired
	}
	return reject.Room, reject.PassWrong
}

// Joinable implements proxy.Room.
func (r *Room) Joinable(sku []byte) bool { return r.sells(sku) && r.view.Load().state.Phase.Admits() }

// sells reports whether orders of sku need a pass.
func (r *Room) sells(sku []byte) bool { return r.o.Sells == nil || r.o.Sells(sku) }
