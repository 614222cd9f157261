package loadtest

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/load"
)

// quiet is a sale in which nothing stood in the way, in front of a shop that sells 3,200 a second.
func quiet() (Result, Limits) {
	r := Result{Shape: Spike, Buyers: 10_000, Addresses: 10_000, Units: 500, Took: 5, SoldOut: true, FirstUnit: 0.1,
		LastUnit: 0.27, Requests: 20_000, Rejected: map[string]int64{"sold_out": 9500}}
	r.Shop = load.Totals{Units: 500, Requests: 500, Orders: 500, PeakInFlight: 60, PeakWorking: 60, Busy: 0.95,
		Capacity: 64,
		Works:    load.Times{Count: 500, P50: 20, P99: 22, Max: 30}}
	r.Ledger = &load.Ledger{Total: 500, Sold: 500, Own: true}
	r.Redis.Command = load.Times{Count: 100, P50: 0.2, P99: 1, Max: 2}
	r.CPU.Cores, r.CPU.Used = 2, 6
	l := Limits{Window: 10 * time.Millisecond, MaxPerSKU: 32, InFlight: 64,
		InFlightKey: "limits.concurrency.max_in_flight", Queue: 512, QueueTimeout: 200 * time.Millisecond,
		MaxOpen: 50_000, Trusts: true, ResponseTimeout: 5 * time.Second, Reserves: true}
	return r, l
}

func TestAdvice_FollowsFromTheFigures(t *testing.T) {
	late := load.Times{Count: 1, P50: 1, P99: 4000, Max: 5000}
	for name, c := range map[string]struct {
		change func(*Result, *Limits)
		says   string // at the beginning of one of the texts; "" = nothing but that all is well
	}{
		"nothing": {func(*Result, *Limits) {}, ""},
		"windows": {func(r *Result, l *Limits) {
			l.MaxPerSKU, r.windows, r.LastUnit, r.Shop.Busy = 20, 1, 0.36, 0.6
		}, "limits.window.max_per_sku = 20 starves the shop: it could take 32 in each 10ms, and worked at 60 % of what it " +
			"can. With 32 sold out would come after 0.3 s instead of 0.4 s."},
		"windows of all": {func(r *Result, l *Limits) {
			l.MaxPerSKU, l.Max, r.windows, r.LastUnit, r.Shop.Busy = 0, 1, 1, 5.1, 0.03
		}, "limits.window.max = 1 starves the shop"},
		"full windows that did not decide": {func(r *Result, l *Limits) {
			l.MaxPerSKU, r.windows, r.LastUnit, r.Shop.Busy = 20, 1, 3, 0.1
		}, ""},
		"few places": {func(r *Result, l *Limits) {
			l.InFlight, r.Shop.PeakInFlight, r.Shop.Busy, r.LastUnit = 8, 8, 0.12, 1.4
		}, "limits.concurrency.max_in_flight = 8 starves the shop: it works on 64 at a time. With 64 sold out would come " +
			"after 0.3 s instead of 1.4 s."},
		"many places": {func(r *Result, l *Limits) {
			l.InFlight, r.Shop.PeakInFlight, r.Shop.Waits = 256, 250, load.Times{Count: 500, P50: 40, P99: 120, Max: 130}
		}, "limits.concurrency.max_in_flight = 256 lets more into the shop than it works on: 250"},
		"a wait in vain": {func(r *Result, l *Limits) {
			r.Rejected["queue_timeout"], r.Shop.PeakInFlight, l.MaxPerSKU = 4000, 64, 100
		}, "4000 requests passed the window and then found no place within 200ms: limits.window.max_per_sku = 100 admits " +
			"more than 64 places work off. 32 would"},
		"tries in vain": {func(r *Result, l *Limits) {
			l.Reserves, l.Checks, r.Shop.Requests = false, true, 900
		}, "The shop was asked 900 times for 500 units: stock.max_in_flight_per_unit = 2"},
		"slow Redis": {func(r *Result, l *Limits) { r.Redis.Command.P99 = 18 },
			"A command of Redis took 0.2 ms (p50) and 18.0 ms (p99)"},
		"held": {func(r *Result, l *Limits) {
			r.Ledger.Held, r.Shop.Failed = 5, 5
		}, "5 units stay held: the shop answered 5 orders with 500, and without stock.reserve.status_url"},
		"slow shop": {func(r *Result, l *Limits) { r.Shop.Works.P99 = 2600 }, "1 of 100 orders takes the shop 2.6s"},
		"rates": {func(r *Result, l *Limits) { r.Rejected["rate"] = 5000 },
			"limits.rate rejected 5000 of 20000 requests"},
		"connections": {func(r *Result, l *Limits) { l.Trusts, r.Buyers = false, 60_000 },
			"limits.connection.max_connections = 50000 on each instance: of 60000 buyers"},
		"unsold": {func(r *Result, l *Limits) {
			r.SoldOut, r.Shop.Orders, r.Rejected["window"] = false, 400,
				12_000
		}, `100 of 500 units were left when the last buyer went home; most were rejected for "window" (12000 times).`},
		"a slow machine": {func(r *Result, l *Limits) {
			r.Crowd = Load{1280, 20_000, late, true}
		},
			"This machine makes the crowd and runs the gateway, and could not do both: 1 of 100 requests was sent 4000 ms late"},
		"few connections": {func(r *Result, l *Limits) {
			r.Crowd = Load{64, 20_000, late, true}
		},
			"The gateway lets 576 requests wait, and the crowd has 64 connections"},
	} {
		r, l := quiet()
		c.change(&r, &l)
		all := advise(&r, l)
		if c.says == "" {
			c.says = "Nothing of this configuration stood in the way"
			if len(all) != 1 {
				t.Errorf("%s: %+v", name, all)
			}
		}
		found := false
		for _, a := range all {
			found = found || strings.HasPrefix(a.Text, c.says)
		}
		if !found {
			t.Errorf("%s: no %q in %+v", name, c.says, all)
		}
	}
}

func TestAdvice_BooksThatDoNotBalanceAreAnError(t *testing.T) {
	for name, spoil := range map[string]func(*Result){
		"oversold":            func(r *Result) { r.Shop.Oversold = 1 },
		"sent twice":          func(r *Result) { r.Shop.Again = 1 },
		"1 free, but total":   func(r *Result) { r.Ledger.Free = 1 },
		"501 sold in the":     func(r *Result) { r.Ledger.Sold, r.Ledger.Free = 501, -1 },
		"499 sold and 0":      func(r *Result) { r.Ledger.Sold, r.Ledger.Free = 499, 1 },
		"3 left in the stock": func(r *Result) { r.Ledger = &load.Ledger{Total: 500, Free: 3} },
	} {
		r, _ := quiet()
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		if spoil(&r); r.Err() == nil || !strings.Contains(r.Err().Error(), name) {
			t.Errorf("%s: %v", name, r.Err())
		}
	}
}
