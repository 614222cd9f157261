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

// Time implements proxy.Availability.
func (s shelf) Time(now int64) int64 { return s.board.Time(now) / 1e6 }

// Status implements proxy.Availability: the schedule comes first, then the stock.
func (s shelf) Status(now int64, sku []byte) proxy.StockStatus {
	shown := s.left(now, sku)
	p, ok := s.board.At(now, sku)
	if !ok {
		return shown
	}
	shown.Closes = p.Closes
	switch p.State {
	case sale.Ended:
		shown.Phase, shown.Free = proxy.Ended, -1
	case sale.Waiting:
		shown.Phase, shown.Opens = proxy.NotStarted, p.Opens
	case sale.Paused:
		shown.Phase = proxy.Paused
	case sale.On:
		if shown.Phase == proxy.Unknown && s.orders == nil && s.stock == nil {
			shown.Phase = proxy.InStock // the schedule is all there is
		}
	}
	return shown
}

// left is what is known without the schedule.
func (s shelf) left(now int64, sku []byte) proxy.StockStatus {
	if s.lessons.SoldOut(now, sku) {
		return proxy.StockStatus{Phase: proxy.SoldOut}
	}
	if s.orders != nil {
		if d := s.orders.desk.Load(); d != nil {
			if found, ok := d.Show(now, sku); ok {
				return s.inLedger(now, found)
			}
		}
	}
	if s.stock == nil {
		return proxy.StockStatus{Free: -1}
	}
	phase, free := s.stock.Show(now, sku)
	return proxy.StockStatus{Phase: phase, Free: free}
}

// inLedger says in the gate's words what a ledger says of its SKU.
func (s shelf) inLedger(now int64, l ledger.Shown) proxy.StockStatus {
	shown := proxy.StockStatus{Free: max(l.Free, 0), Closes: l.Closes}
	switch l.At(s.Time(now)) {
	case ledger.On:
		shown.Phase = proxy.InStock
		if l.Free <= 0 {
			shown.Phase = proxy.SoldOut
		}
		if l.Free <= 0 && l.Held == 0 {
			shown.Phase = proxy.Ended // all is sold, and nothing comes back unless the shop cancels an order
		}
	case ledger.Waiting:
		shown.Phase, shown.Opens = proxy.NotStarted, l.Opens
	case ledger.Ended, ledger.Over:
		shown.Phase, shown.Free = proxy.Ended, -1
	case ledger.Paused:
		shown.Phase = proxy.Paused
	default:
		shown.Free = -1
	}
	return shown
}

// shows is how much of it is told.
func stockStatus(c *config.Stock) proxy.StockStatusOptions {
	switch c.Show {
	case "exact":
		return proxy.StockStatusOptions{Exact: true, Few: int64(c.Few)}
	case "few":
		return proxy.StockStatusOptions{Few: int64(c.Few)}
	}
	return proxy.StockStatusOptions{Few: -1}
}
