package ledger

import (
	"context"
	"time"
)

// leaveWithin bounds how long Close takes the marks away.
const leaveWithin = 2 * time.Second

// meet notes which server this instance speaks to. When it is another one than before, this instance looks at
// everything that it has seen: others may wait for that, for SKUs that nobody asks this instance about.
func (r *Redis) meet(server string) {
	if before := r.server.Load(); before != nil && *before == server {
		return
	}
	if before := r.server.Swap(&server); before == nil || *before == server || r.instance == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away.Err() == nil && !r.visiting {
		r.visiting = true
		r.visits.Go(r.visit)
	}
}

// visit looks at every ledger that this instance has seen, until Redis is away, or Close wants it to end; a desk's
// sweeps do the rest then.
func (r *Redis) visit() {
	for _, sku := range r.traces.each() {
		if _, err := r.run(r.away, "visit", sku, r.events); err != nil && fault(err) != nil {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.visiting = false
}

// leave ends the visits, tells frozen ledgers what nobody else will know, and takes the marks of this instance away, where it left any.
func (r *Redis) leave() {
	r.mu.Lock()
	r.depart()
	r.mu.Unlock()
	r.visits.Wait()
	if r.instance == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	for _, sku := range r.untold() {
		if r.part(ctx, sku) != nil {
			return
		}
	}
	for _, sku := range r.traces.each() {
		if _, err := r.run(ctx, "leave", sku, r.events); err != nil && fault(err) != nil {
			return // Redis is away: the marks grow old
		}
	}
}
