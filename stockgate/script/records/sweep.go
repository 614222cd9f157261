package records

import (
	"context"
	"fmt"

	"sluice/stockgate/ledger/protocol"
)

// leased is an overdue order that no other instance is handed until then (Unix ms).
type leased struct {
	protocol.Record
	until int64
}

// maxOthers bounds the orders of one SKU that wait until it is swept. Further ones are due again after their lease.
const maxOthers = 10_000

// Track has found be told of each SKU of which a sweep of other SKUs has found orders: it is to be swept, too.
func (s *Store) Track(found func(sku string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.track = found
}

// Sweep implements protocol.Store.
func (s *Store) Sweep(ctx context.Context, sku string, now, lease int64, limit int) ([]protocol.Record, error) {
	found := s.sweep(ctx, []string{sku}, now, lease, limit)
	return found[0].Holds, found[0].Err
}

// SweepAll implements protocol.Store.
func (s *Store) SweepAll(ctx context.Context, skus []string, now, lease int64) []protocol.Swept {
	return s.sweep(ctx, skus, now, lease, protocol.MaxItems)
}

// sweep leases what is due, whichever SKU it is of: orders of SKUs that nothing asks for would stand before all others.
// Those of other SKUs than skus wait until theirs is swept.
func (s *Store) sweep(ctx context.Context, skus []string, now, lease int64, limit int) []protocol.Swept {
	due, err := s.lease(ctx, now, lease, limit)
	s.mu.Lock()
	for sku, some := range due {
		if room := maxOthers - len(s.others[sku]); room > 0 {
			s.others[sku] = append(s.others[sku], some[:min(len(some), room)]...)
		}
	}
	found := make([]protocol.Swept, len(skus))
	for i, sku := range skus {
		found[i].Err = err
		if err == nil {
			found[i].Holds = s.handOut(sku, now, limit)
		}
	}
	var others []string
	for sku := range s.others {
		if s.forgetOver(sku, now); len(s.others[sku]) > 0 {
			others = append(others, sku)
		}
	}
	track := s.track
	s.mu.Unlock()
	for _, sku := range others {
		track(sku)
	}
	return found
}

// lease leases at most limit orders that are due, by SKU.
func (s *Store) lease(ctx context.Context, now, lease int64, limit int) (map[string][]leased, error) {
	reply, err := s.run(ctx, "sweep", now, lease, limit)
	due := map[string][]leased{}
	for i := 0; i+2 < len(reply) && err == nil; i += 3 {
		sku, r := fmt.Sprint(reply[i]), protocol.Record{}
		if r, err = protocol.DecodeRecord(fmt.Sprint(reply[i+1]), fmt.Sprint(reply[i+2])); err == nil {
			due[sku] = append(due[sku], leased{r, lease})
		}
	}
	return due, err
}

// handOut takes out at most limit orders of a SKU, the oldest first. mu is held.
func (s *Store) handOut(sku string, now int64, limit int) (all []protocol.Record) {
	s.forgetOver(sku, now)
	n := min(len(s.others[sku]), limit)
	for _, l := range s.others[sku][:n] {
		all = append(all, l.Record)
	}
	s.others[sku] = s.others[sku][n:]
	return all
}

// forgetOver forgets the orders of a SKU whose lease is over: they are due again. mu is held.
func (s *Store) forgetOver(sku string, now int64) {
	waiting := s.others[sku]
	for len(waiting) > 0 && waiting[0].until <= now {
		waiting = waiting[1:]
	}
	if s.others[sku] = waiting; len(waiting) == 0 {
		delete(s.others, sku)
	}
}
