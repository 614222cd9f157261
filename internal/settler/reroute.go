package settler

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"sluice/settle"
)

// rerouter moves the SKUs of homes whose databases are away to another home. Every settler may do so: a move compares
// the mark in Redis, so that a SKU has one home.
type rerouter struct {
	homes   Homes
	workers []worker
	to      int // of homes
	after   time.Duration
	log     *slog.Logger
}

func (r *rerouter) run(ctx context.Context) {
	if _, up, _ := r.workers[r.to].watch.last(); !up {
		return
	}
	for i, s := range r.homes {
		if away := r.workers[i].watch.away(); i != r.to && away >= r.after {
			if err := r.reroute(ctx, s, away); err != nil && ctx.Err() == nil {
				r.log.Error("settle: SKUs wait for a database that is away, and cannot be moved; they are tried again",
					"home", s.home.Name, "reroute_to", r.homes[r.to].home.Name, "err", err)
			}
		}
	}
}

// reroute moves every SKU of a home that has a ledger, but those whose ledger cannot be read now. Its settlers mark the
// rows that are left behind when the database is back.
func (r *rerouter) reroute(ctx context.Context, s *Settlement, away time.Duration) (first error) {
	for l, err := range s.Stream.All(ctx) {
		if err == nil && (l.Epoch == 0 || !s.Has(l.SKU, l.Ledger)) {
			continue
		}
		if err == nil {
			_, err = settle.Move(ctx, s.Stream, r.workers[r.to].orders, nil, l.SKU)
		}
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		r.log.Warn("settle: the SKU is settled in another home: its database is away", "sku", l.SKU,
			"home", s.home.Name, "moved_to", r.homes[r.to].home.Name, "away", away.Round(time.Second).String())
	}
	return first
}
