package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/stockgate"
	"sluice/stockgate/ledger"
	"sluice/stockgate/sale"
)

// schedule are the sales of c.
func schedule(c *config.Config) (sales []sale.Sale) {
	for _, s := range c.Sales {
		sales = append(sales, sale.Sale{Name: s.Name, SKUs: s.SKUs, Starts: s.Starts, Ends: s.Ends, Pass: s.Before == "pass"})
	}
	return sales
}

// newBoard opens a board for a command, which has no clock of its own.
func newBoard(c *config.Config, log *slog.Logger) (*sale.Board, error) {
	start := time.Now()
	return boardOf(c, func() int64 { return int64(time.Since(start)) }, log)
}

// boardOf keeps the sales of c, on Redis' clock where there is one.
func boardOf(c *config.Config, now func() int64, log *slog.Logger) (*sale.Board, error) {
	o := sale.Options{MaxSkew: c.Stock.MaxSkew, Now: now, Wall: machineClock(), Log: log}
	if c.Stock.Source == "redis" {
		way := linkOptions(c)
		way.Log = slog.New(slog.DiscardHandler) // others say what Redis is
		o.Redis = &way
	}
	b, err := sale.New(o, schedule(c))
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return b, nil
}

// openSales makes what decides by time, and by what the shop has taught.
func (g *gate) openSales() (err error) {
	if g.board, err = boardOf(g.config, g.now, g.log); err != nil {
		return err
	}
	g.lessons = stockgate.NewLessons(g.config.Stock.SoldOutMemory, mostLessons, g.log)
	g.metrics.MustRegister(g.board, g.lessons)
	return nil
}

// clockCheck tells of the clocks. It is never a reason to send shoppers elsewhere: all instances may have the same.
func (g *gate) clockCheck() (string, bool) {
	skew, wrong := g.board.Skew()
	if wrong {
		return fmt.Sprintf("Redis' clock is %s ahead of this machine's, beyond stock.max_skew: no sale begins here", skew.Round(time.Millisecond)), true
	}
	return fmt.Sprintf("Redis' clock is %s ahead of this machine's", skew.Round(time.Microsecond)), true
}

// salesOf are the sales as the control API wants them. What is said of one is said of its SKUs' ledgers too, which know
// who has won and must hear of it.
type salesOf struct {
	board   *sale.Board
	ledgers *ledgers // nil = none
}

// sales are those of a gate.
func (g *gate) sales() salesOf {
	s := salesOf{board: g.board}
	if g.orders != nil {
		l := ledgersOf(g.config, g.orders.store, g.orders.desk.Load)
		s.ledgers = &l
	}
	return s
}

// All implements admin.Sales.
func (s salesOf) All() (all []admin.Sale) {
	all = []admin.Sale{}
	for _, one := range s.board.All() {
		all = append(all, admin.Sale{Name: one.Name, SKUs: one.SKUs, Starts: one.Starts, Ends: one.Ends, State: one.State.String()})
	}
	return all
}

// Set implements admin.Sales. The board comes first, so that an instance hears of the whole sale at once.
func (s salesOf) Set(ctx context.Context, name, state string) error {
	to := map[string]sale.State{"on": sale.On, "paused": sale.Paused, "ended": sale.Ended}[state]
	if err := s.board.Set(ctx, name, to); errors.Is(err, sale.ErrNoSale) {
		return fmt.Errorf("%q: %w", name, admin.ErrNoSale)
	} else if err != nil {
		return err
	}
	if s.ledgers == nil {
		return nil
	}
	for _, one := range s.board.All() {
		if one.Name != name {
			continue
		}
		for _, sku := range one.SKUs {
			if !s.board.Sells(name, sku) {
				continue // its ledger serves another sale now
			}
			if err := s.turn(ctx, sku, ledger.State(state)); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn brings one ledger along. One that is frozen stays so, and one that was ended by itself is not opened.
func (s salesOf) turn(ctx context.Context, sku string, to ledger.State) error {
	now, ok, err := s.ledgers.store.Look(ctx, sku)
	if err != nil {
		return fmt.Errorf("the sale is %s, but not yet the ledger of %q: %w", to, sku, err)
	}
	if !ok || now.State != ledger.On && now.State != ledger.Paused || now.State == to {
		return nil
	}
	_, err = s.ledgers.SetState(ctx, sku, string(to))
	return err
}

// tellSales says when what is sold.
func tellSales(w io.Writer, c *config.Config) {
	for i := range c.Sales {
		s := &c.Sales[i]
		early := map[string]string{"refuse": "early requests are refused", "pass": "early requests go on to the shop"}[s.Before]
		fmt.Fprintf(w, "sale      %-18s %d SKUs, %s to %s (%s); %s\n", s.Name, len(s.SKUs), s.Starts.Format(time.RFC3339), s.Ends.Format(time.RFC3339), s.Ends.Sub(s.Starts), early)
	}
	if len(c.Sales) > 0 && c.Stock.Source != "redis" {
		fmt.Fprintf(w, "warning   sales are kept by this machine's own clock, and a pause is known to one instance alone: stock.source is %q\n", c.Stock.Source)
	}
}
