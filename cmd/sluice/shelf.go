package main

import (
	"sluice/config"
	"sluice/proxy"
	"sluice/stockgate"
	"sluice/stockgate/ledger"
	"sluice/stockgate/sale"
)

// shelf is what everybody may know of a SKU, from wherever this gate knows it.
type shelf struct {
	board   *sale.Board
	lessons *stockgate.Lessons
	orders  *orders         // nil = no ledgers
	stock   *stockgate.Gate // nil = no route reads the shop's own stock
}

func (g *gate) shelf(c *config.Config) shelf {
	s := shelf{board: g.board, lessons: g.lessons, orders: g.orders}
	if hasGate(c, "check") || g.driver != nil {
		s.stock = g.stock
	}
	return s
}

// Time implements proxy.Shelf.
func (s shelf) Time(now int64) int64 { return s.board.Time(now) / 1e6 }

// Show implements proxy.Shelf: the schedule comes first, then the stock.
func (s shelf) Show(now int64, sku []byte) proxy.Shown {
	shown := s.left(now, sku)
	p, ok := s.board.At(now, sku)
	if !ok {
		return shown
	}
	shown.Closes = p.Closes
	switch p.State {
	case sale.Ended:
		shown.Phase, shown.Free = proxy.Over, -1
	case sale.Waiting:
		shown.Phase, shown.Opens = proxy.Waiting, p.Opens
	case sale.Paused:
		shown.Phase = proxy.Halted
	case sale.On:
		if shown.Phase == proxy.Unknown && s.orders == nil && s.stock == nil {
			shown.Phase = proxy.Open // the schedule is all there is
		}
	}
	return shown
}

// left is what is known without the schedule.
func (s shelf) left(now int64, sku []byte) proxy.Shown {
	if s.lessons.SoldOut(now, sku) {
		return proxy.Shown{Phase: proxy.Gone}
	}
	if s.orders != nil {
		if d := s.orders.desk.Load(); d != nil {
			if found, ok := d.Show(now, sku); ok {
				return s.inLedger(now, found)
			}
		}
	}
	if s.stock == nil {
		return proxy.Shown{Free: -1}
	}
	phase, free := s.stock.Show(now, sku)
	return proxy.Shown{Phase: phase, Free: free}
}

// inLedger says in the gate's words what a ledger says of its SKU.
func (s shelf) inLedger(now int64, l ledger.Shown) proxy.Shown {
	shown := proxy.Shown{Free: max(l.Free, 0), Closes: l.Closes}
	switch l.At(s.Time(now)) {
	case ledger.On:
		shown.Phase = proxy.Open
		if l.Free <= 0 {
			shown.Phase = proxy.Gone
		}
		if l.Free <= 0 && l.Held == 0 {
			shown.Phase = proxy.Over // all is sold, and nothing comes back unless the shop cancels an order
		}
	case ledger.Waiting:
		shown.Phase, shown.Opens = proxy.Waiting, l.Opens
	case ledger.Ended, ledger.Over:
		shown.Phase, shown.Free = proxy.Over, -1
	case ledger.Paused:
		shown.Phase = proxy.Halted
	default:
		shown.Free = -1
	}
	return shown
}

// shows is how much of it is told.
func shows(c *config.Stock) proxy.Show {
	switch c.Show {
	case "exact":
		return proxy.Show{Exact: true, Few: int64(c.Few)}
	case "few":
		return proxy.Show{Few: int64(c.Few)}
	}
	return proxy.Show{Few: -1}
}
