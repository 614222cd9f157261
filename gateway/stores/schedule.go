package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/stockgate/redisconn"
	"sluice/stockgate/sale"
)

// SalesOf are the sales of c.
func SalesOf(c *config.Config) (sales []sale.Sale) {
	for _, s := range c.Sales {
		sales = append(sales, sale.Sale{Name: s.Name, SKUs: s.SKUs, Starts: s.Starts, Ends: s.Ends,
			Pass: s.BeforeStart == "pass"})
	}
	return sales
}

// ReadsClock reports whether the shared clock is read without a sale, too: the times of a room are Redis'.
func ReadsClock(c *config.Config) bool { return len(c.Rooms) > 0 }

// LastClose is when the sales of sku that follow each other without a pause have all ended, of which the first ends at
// closes (Unix ms): between two of them no client may hear that all is over.
func LastClose(c *config.Config, sku string, closes int64) int64 {
	for again := true; again; {
		again = false
		for i := range c.Sales {
			s := &c.Sales[i]
			if s.Starts.UnixMilli() == closes && slices.Contains(s.SKUs, sku) {
				closes, again = s.Ends.UnixMilli(), true
			}
		}
	}
	return closes
}

// hoursOf are those that the sales of c have for the ledger of sku at now, in Unix ms: of the sale that is on or comes
// next, else of the last one. ok is false for a SKU that is in no sale.
func hoursOf(c *config.Config, sku string, now time.Time) (opens, closes int64, ok bool) {
	over := func(s *config.Sale) bool { return !s.Ends.After(now) }
	var found *config.Sale
	for i := range c.Sales {
		switch s := &c.Sales[i]; {
		case !slices.Contains(s.SKUs, sku):
		case found == nil, over(found) && !over(s), over(found) == over(s) && s.Starts.Before(found.Starts) != over(s):
			found = s
		}
	}
	if found == nil {
		return 0, 0, false
	}
	return found.Starts.UnixMilli(), LastClose(c, sku, found.Ends.UnixMilli()), true
}

// LabelledSKUs are those that metrics count by name: of the sales in the file, the first by name, at most
// ops.metrics_max_skus. A SKU that only a request names has no label.
func LabelledSKUs(c *config.Config) (named []string) {
	named = c.SKUsOnSale()
	slices.Sort(named)
	named = slices.Compact(named)
	return named[:min(len(named), c.Ops.MetricsMaxSKUs)]
}

// OpenCommandSchedule opens a schedule for a command, which has no clock of its own.
func OpenCommandSchedule(c *config.Config, log *slog.Logger) (*sale.Schedule, error) {
	start := time.Now()
	var link *redisconn.Client // ends with the command
	if keepsSales(c) {
		var err error
		if link, err = OpenLink(c, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
	}
	return OpenSchedule(c, link, sale.Options{Now: func() int64 { return int64(time.Since(start)) }, Log: log})
}

// keepsSales reports whether instances keep the states of sales together.
func keepsSales(c *config.Config) bool { return c.Stock.Source == "redis" && c.Name != "" }

// OpenSchedule keeps the sales of c, on Redis' clock where there is one. link stays the caller's; o has clocks and log.
func OpenSchedule(c *config.Config, link *redisconn.Client, o sale.Options) (*sale.Schedule, error) {
	if keepsSales(c) {
		o.Link, o.Name = link, Name(c)
	}
	o.Clock = ReadsClock(c)
	b, err := sale.New(o, SalesOf(c))
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return b, nil
}

// Sales are the sales as the control API wants them.
type Sales struct{ Schedule *sale.Schedule }

// All implements admin.Sales.
func (s Sales) All() (all []admin.Sale) {
	all = []admin.Sale{}
	for _, one := range s.Schedule.All() {
		state := one.State
		if one.Shut {
			state = sale.Paused
		}
		all = append(all, admin.Sale{Name: one.Name, SKUs: one.SKUs, Starts: one.Starts, Ends: one.Ends,
			State: state.String()})
	}
	return all
}

// Set implements admin.Sales.
func (s Sales) Set(ctx context.Context, name, state string) error {
	to := map[string]sale.State{"on": sale.On, "paused": sale.Paused, "ended": sale.Ended}[state]
	err := s.Schedule.Set(ctx, name, to)
	switch {
	case errors.Is(err, sale.ErrNoSale):
		return fmt.Errorf("sale %q %w", name, admin.ErrNotConfigured)
	case errors.Is(err, sale.ErrEnded):
		return told{err, admin.ErrConflict}
	}
	return err
}
