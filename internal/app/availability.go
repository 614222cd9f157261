package app

import (
	"sluice/config"
	"sluice/internal/app/orders"
	"sluice/proxy/stockstatus"
	"sluice/stockgate"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/sale"
)

// availability is what every client may know of a SKU, from wherever this gate knows it.
type availability struct {
	schedule *sale.Schedule
	feedback *stockgate.SoldOutFeedback
	orders   *orders.Ledger  // nil = no ledgers
	stock    *stockgate.Gate // nil = no route reads the shop's own stock
}

func (g *Gateway) availability(c *config.Config) availability {
	s := availability{schedule: g.schedule, feedback: g.feedback, orders: g.Orders}
	if g.looksAtShopStock(c) {
		s.stock = g.Stock
	}
	return s
}

// looksAtShopStock reports whether the routes of c look at the shop's own keys.
func (g *Gateway) looksAtShopStock(c *config.Config) bool {
	return g.Stock != nil && c.HasGate("check")
}

// Time implements proxy.Availability.
func (s availability) Time(now int64) int64 { return s.schedule.Time(now) / 1e6 }

// Status implements proxy.Availability: the schedule comes first, then the stock.
func (s availability) Status(now int64, sku []byte) stockstatus.Status {
	shown := s.left(now, sku)
	p, ok := s.schedule.At(now, sku)
	if !ok {
		return shown
	}
	shown.Closes = p.Closes
	switch p.State {
	case sale.Ended:
		shown.Phase, shown.Free = stockstatus.Ended, -1
	case sale.Waiting:
		shown.Phase, shown.Opens = stockstatus.NotStarted, p.Opens
	case sale.Paused:
		shown.Phase = stockstatus.Paused
	case sale.On:
		if shown.Phase == stockstatus.Unknown && s.orders == nil && s.stock == nil {
			shown.Phase = stockstatus.InStock // the schedule is all there is
		}
	}
	return shown
}

// left is what is known without the schedule.
func (s availability) left(now int64, sku []byte) stockstatus.Status {
	if s.feedback.SoldOut(now, sku) {
		return stockstatus.Status{Phase: stockstatus.SoldOut}
	}
	if s.orders != nil {
		if d := s.orders.Reserver(); d != nil {
			if found, ok := d.Status(now, sku); ok {
				return s.inLedger(now, found)
			}
			s.orders.NoteUnknown()
		}
	}
	if s.stock == nil {
		return stockstatus.Status{Free: -1}
	}
	phase, free := s.stock.StockStatus(now, sku)
	return stockstatus.Status{Phase: phase, Free: free}
}

// inLedger says in the gate's words what a ledger says of its SKU.
func (s availability) inLedger(now int64, l protocol.StockVersion) stockstatus.Status {
	shown := stockstatus.Status{Free: max(l.Free, 0), Closes: l.Closes}
	switch l.At(s.Time(now)) {
	case protocol.On:
		shown.Phase = stockstatus.InStock
		if l.Free <= 0 {
			shown.Phase = stockstatus.SoldOut
		}
		if l.Free <= 0 && l.Held == 0 {
			shown.Phase = stockstatus.Ended // all is sold, and nothing comes back unless the shop cancels an order
		}
	case protocol.Waiting:
		shown.Phase, shown.Opens = stockstatus.NotStarted, l.Opens
	case protocol.Ended, protocol.Over:
		shown.Phase, shown.Free = stockstatus.Ended, -1
	case protocol.Paused:
		shown.Phase = stockstatus.Paused
	default:
		shown.Free = -1
	}
	return shown
}

// shows is how much of it is told.
func stockStatus(c *config.Stock) stockstatus.Options {
	switch c.Detail {
	case "exact":
		return stockstatus.Options{Exact: true, Few: int64(c.LowStock)}
	case "level":
		return stockstatus.Options{Few: int64(c.LowStock)}
	}
	return stockstatus.Options{Few: -1}
}
