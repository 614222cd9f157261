package gateway

import (
	"sluice/config"
	"sluice/proxy"
	"sluice/stockgate"
	"sluice/stockgate/ledger"
	"sluice/stockgate/sale"
)

// availability is what every client may know of a SKU, from wherever this gate knows it.
type availability struct {
	schedule *sale.Schedule
	feedback *stockgate.SoldOutFeedback
	orders   *orderLedger    // nil = no ledgers
	stock    *stockgate.Gate // nil = no route reads the shop's own stock
}

func (g *Gateway) availability(r *runtime) availability {
	s := availability{schedule: g.schedule, feedback: g.feedback, orders: r.orders}
	if g.looksAtShopStock(r.config) {
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
func (s availability) Status(now int64, sku []byte) proxy.StockStatus {
	shown := s.left(now, sku)
	p, ok := s.schedule.At(now, sku)
	if !ok {
		return shown
	}
	shown.Closes = p.Closes
	switch p.State {
	case sale.Ended:
		shown.Phase, shown.Free = proxy.PhaseEnded, -1
	case sale.Waiting:
		shown.Phase, shown.Opens = proxy.PhaseNotStarted, p.Opens
	case sale.Paused:
		shown.Phase = proxy.PhasePaused
	case sale.On:
		if shown.Phase == proxy.PhaseUnknown && s.orders == nil && s.stock == nil {
			shown.Phase = proxy.PhaseInStock // the schedule is all there is
		}
	}
	return shown
}

// left is what is known without the schedule.
func (s availability) left(now int64, sku []byte) proxy.StockStatus {
	if s.feedback.SoldOut(now, sku) {
		return proxy.StockStatus{Phase: proxy.PhaseSoldOut}
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
		return proxy.StockStatus{Free: -1}
	}
	phase, free := s.stock.StockStatus(now, sku)
	return proxy.StockStatus{Phase: phase, Free: free}
}

// inLedger says in the gate's words what a ledger says of its SKU.
func (s availability) inLedger(now int64, l ledger.StockVersion) proxy.StockStatus {
	shown := proxy.StockStatus{Free: max(l.Free, 0), Closes: l.Closes}
	switch l.At(s.Time(now)) {
	case ledger.On:
		shown.Phase = proxy.PhaseInStock
		if l.Free <= 0 {
			shown.Phase = proxy.PhaseSoldOut
		}
		if l.Free <= 0 && l.Held == 0 {
			shown.Phase = proxy.PhaseEnded // all is sold, and nothing comes back unless the shop cancels an order
		}
	case ledger.Waiting:
		shown.Phase, shown.Opens = proxy.PhaseNotStarted, l.Opens
	case ledger.Ended, ledger.Over:
		shown.Phase, shown.Free = proxy.PhaseEnded, -1
	case ledger.Paused:
		shown.Phase = proxy.PhasePaused
	default:
		shown.Free = -1
	}
	return shown
}

// stockStatus is how much of the stock clients are told.
func stockStatus(c *config.Stock) proxy.StockStatusOptions {
	switch c.Detail {
	case "exact":
		return proxy.StockStatusOptions{Exact: true, Few: int64(c.LowStock)}
	case "level":
		return proxy.StockStatusOptions{Few: int64(c.LowStock)}
	}
	return proxy.StockStatusOptions{Few: -1}
}
