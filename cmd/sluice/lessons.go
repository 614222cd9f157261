package main

import (
	"strings"

	"sluice/config"
	"sluice/proxy"
	"sluice/stockgate"
)

// mostLessons is how many SKUs the shop can say to be sold out at a time.
const mostLessons = 10_000

// taught hears what the shop says of its stock.
type taught struct {
	lessons *stockgate.Lessons
	orders  *orders // nil = no ledger
}

// SoldOut implements proxy.SoldOutFeedback.
func (t taught) SoldOut(now int64, sku []byte) bool { return t.lessons.SoldOut(now, sku) }

// Record implements proxy.SoldOutFeedback.
func (t taught) Record(now int64, sku []byte, reserved bool) {
	t.lessons.Learn(now, sku, reserved)
	if !reserved || t.orders == nil {
		return
	}
	if d := t.orders.desk.Load(); d != nil {
		d.Shut(now, sku)
	}
}

// soldOutOn is by what answer the shop says that a SKU is sold out; nil = by none.
func soldOutOn(a *config.Answer) *proxy.SoldOutOn {
	if a == nil {
		return nil
	}
	s := &proxy.SoldOutOn{Status: a.Status}
	name, value, _ := strings.Cut(a.Header, ":")
	s.Header, s.Value = strings.TrimSpace(name), strings.TrimSpace(value)
	if a.JSON != "" {
		s.JSON = inJSON(a.JSON, a.Values)
	}
	return s
}
