package driver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"sluice/internal/redistest"
	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// clock is a time that a test sets.
type clock struct{ ns atomic.Int64 }

func (c *clock) use(o *Options) { o.Now, o.SoldOutMemory = c.ns.Load, time.Second }

// scripts is how many scripts Redis has run.
func scripts(r *redistest.Server) int64 { return r.Calls("evalsha") + r.Calls("eval") }

func TestWhatIsSoldOutCostsRedisNothing(t *testing.T) {
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 1)
	d := desk(t, r.Addr, s.layout, now.use)
	for i, want := range []reject.Reason{reject.Admitted, reject.SoldOut} {
		if reason, _ := take(d, s.sku, fmt.Sprint(i), "", 1); reason != want {
			t.Fatalf("shopper %d heard %s", i, reason)
		}
	}
	before := scripts(r)
	for i := range 100 {
		o := proxy.Order{SKU: []byte(s.sku), User: fmt.Append(nil, i), Quantity: 1}
		if found, closed := d.Decided(now.ns.Load(), o); !closed || found.Reason != reject.SoldOut {
			t.Fatalf("closed %v, %s", closed, found.Reason)
		}
		if reason, _ := take(d, s.sku, "x", "", 1); reason != reject.SoldOut {
			t.Fatalf("heard %s", reason)
		}
	}
	if n := scripts(r) - before; n != 0 {
		t.Errorf("%d scripts ran", n)
	}
}

func TestAUnitThatTheShopAddsIsFoundAfterSoldOutMemory(t *testing.T) {
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 0)
	d := desk(t, r.Addr, s.layout, now.use)
	take(d, s.sku, "1", "", 1)
	s.stock(t, r.Client, 1)
	now.ns.Store(int64(time.Second))
	if reason, _ := take(d, s.sku, "2", "", 1); reason != reject.SoldOut {
		t.Fatalf("before its time the latch opens: %s", reason)
	}
	now.ns.Store(int64(time.Second) + 1)
	if _, closed := d.Decided(now.ns.Load(), proxy.Order{SKU: []byte(s.sku), Quantity: 1}); closed {
		t.Fatal("nobody may look whether the latch is still right")
	}
	if reason, _ := take(d, s.sku, "3", "", 1); reason != reject.Admitted {
		t.Fatalf("heard %s", reason)
	}
}

func TestFewerUnitsThanAreLeftCanBeHadWhenManyCannot(t *testing.T) {
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 2)
	d := desk(t, r.Addr, s.layout, now.use)
	for _, c := range []struct {
		units int64
		want  reject.Reason
	}{{3, reject.SoldOut}, {5, reject.SoldOut}, {2, reject.Admitted}, {1, reject.SoldOut}} {
		if reason, _ := take(d, s.sku, "1", "", c.units); reason != c.want {
			t.Errorf("%d units: %s, want %s", c.units, reason, c.want)
		}
	}
}

func TestWhatTheShopRefusesIsForSaleAgain(t *testing.T) {
	for _, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			r, now := redistest.Start(t), &clock{}
			s.stock(t, r.Client, 1)
			d := desk(t, r.Addr, s.layout, now.use)
			_, serial := take(d, s.sku, "1", "order-1", 1)
			if reason, _ := take(d, s.sku, "2", "", 1); reason != reject.SoldOut {
				t.Fatalf("the second heard %s", reason)
			}
			d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
			eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 1 })
			eventually(t, "the latch opens, though its time is not over", func() bool {
				_, closed := d.Decided(0, proxy.Order{SKU: []byte(s.sku), Quantity: 1})
				return !closed
			})
			if reason, _ := take(d, s.sku, "3", "", 1); reason != reject.Admitted {
				t.Errorf("the third heard %s", reason)
			}
			if p, _ := promiseOf(s.layout.Driver); p.Marks {
				if reason, _ := take(d, s.sku, "1", "order-1", 1); reason != reject.SoldOut && reason != reject.Released {
					t.Errorf("the order that was given back hears %s", reason)
				}
			}
		})
	}
}

func TestWhatNobodyKnowsStaysTaken(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := desk(t, r.Addr, s.layout)
	for _, f := range []metrics.OrderOutcome{metrics.OrderConfirmed, metrics.OrderUnknown} {
		_, serial := take(d, s.sku, "1", "", 2)
		d.Settle([]byte(s.sku), serial, f)
		d.Settle([]byte(s.sku), serial, metrics.OrderRejected) // it is settled already
	}
	d.Close(t.Context())
	if left, kept := s.left(t, r.Client), d.counts.kept.Load(); left != 1 || kept != 2 {
		t.Errorf("%d left, %d counted", left, kept)
	}
}

func TestAnOrderUnderWayIsNotTakenTwice(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := desk(t, r.Addr, s.layout)
	_, serial := take(d, s.sku, "1", "key", 1)
	if serial != "key" {
		t.Errorf("the shop is told %q", serial)
	}
	if reason, _ := take(d, s.sku, "1", "key", 1); reason != reject.InProgress {
		t.Errorf("heard %s", reason)
	}
	if reason, _ := take(d, s.sku+"9", "1", "key", 1); reason != reject.UnknownSKU {
		t.Errorf("of another SKU: %s", reason)
	}
	d.Settle([]byte(s.sku), serial, metrics.OrderConfirmed)
	if reason, _ := take(d, s.sku, "1", "key", 1); reason != reject.Admitted {
		t.Errorf("afterwards: %s", reason)
	}
}

func TestNothingIsCountedAsLostWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	for _, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			s.stock(t, r.Client, 1)
			w := between(t, r.Addr)
			d := desk(t, w.addr, s.layout)
			_, serial := take(d, s.sku, "1", "", 1)
			w.unplug()
			eventually(t, "the connections are known to be gone", func() bool {
				reason, _ := take(d, s.sku+"9", "2", "", 1)
				return reason == reject.StockError && d.counts.orders[notSent].Load() > 0
			})
			unanswered := d.counts.unsure.Load()
			if reason, _ := take(d, s.sku, "3", "", 1); reason != reject.StockError || d.counts.unsure.Load() != unanswered {
				t.Errorf("heard %s, %d more counted", reason, d.counts.unsure.Load()-unanswered)
			}
			d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
			w.plug(t)
			eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 1 })
		})
	}
}

func TestNoGivingBackIsRepeatedWhoseAnswerWasLost(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	learnt(t, r)
	s.stock(t, r.Client, 5)
	w := between(t, r.Addr)
	d := desk(t, w.addr, s.layout)
	_, serial := take(d, s.sku, "1", "", 1)
	w.lose("evalsha")
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	d.Close(t.Context())
	if left, lost := s.left(t, r.Client), d.counts.lost.Load(); left != 5 || lost != 1 {
		t.Errorf("%d left, %d counted", left, lost)
	}
}

func TestWhatCannotBeGivenBackUntilTheEndIsCountedAndSaid(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	w := between(t, r.Addr)
	var said bytes.Buffer
	d := desk(t, w.addr, s.layout, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
	_, serial := take(d, s.sku, "1", "key", 2)
	w.unplug()
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Close(ctx)
	if lost := d.counts.lost.Load(); lost != 2 || !strings.Contains(said.String(), "serial=key") {
		t.Errorf("%d counted, and said: %s", lost, said.String())
	}
	if reason, _ := take(d, s.sku, "1", "", 1); reason != reject.ShuttingDown {
		t.Errorf("after the end: %s", reason)
	}
}

func TestOrdersThatADriverCannotTakeAreRefused(t *testing.T) {
	r := redistest.Start(t)
	for _, s := range shops() {
		p, _ := promiseOf(s.layout.Driver)
		d := desk(t, r.Addr, s.layout)
		if reason, _ := take(d, s.sku, "", "", 1); (reason == reject.BadRequest) != p.Users {
			t.Errorf("%s, nobody identified: %s", p.Driver, reason)
		}
		if reason, _ := take(d, s.sku, "7", "", 2); (reason == reject.BadRequest) != p.Single {
			t.Errorf("%s, two units: %s", p.Driver, reason)
		}
		if reason, _ := take(d, s.sku, "7", "", 0); reason != reject.BadRequest {
			t.Errorf("%s, no unit: %s", p.Driver, reason)
		}
	}
}

func TestClosedAllocatesNothing(t *testing.T) {
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 0)
	d := desk(t, r.Addr, s.layout, now.use)
	take(d, s.sku, "1", "", 1)
	o := proxy.Order{SKU: []byte(s.sku), User: []byte("7"), Key: []byte("key"), Quantity: 1}
	if n := testing.AllocsPerRun(100, func() {
		if _, closed := d.Decided(0, o); !closed {
			t.Fatal("it is open")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMetricsPassTheLinterAndTellOutcomes(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 1)
	d := desk(t, r.Addr, s.layout)
	take(d, s.sku, "1", "", 1)
	registry := prometheus.NewPedanticRegistry()
	check(t, registry.Register(d))
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	text := answer.Body.String()
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Error(err, problems)
	}
	for _, line := range []string{
		`sluice_driver_orders_total{driver="counter_codes",outcome="taken"} 1`,
		`sluice_driver_units_total{driver="counter_codes",event="unanswered"} 0`,
		`sluice_driver_under_way 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func BenchmarkClosed(b *testing.B) {
	s, r, now := counterShop(), redistest.Start(b), &clock{}
	s.stock(b, r.Client, 0)
	d := desk(b, r.Addr, s.layout, now.use)
	take(d, s.sku, "1", "", 1)
	o := proxy.Order{SKU: []byte(s.sku), Quantity: 1}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			d.Decided(0, o)
		}
	})
}

// BenchmarkTake lets 64 shoppers at a time take from a stock that does not end.
func BenchmarkTake(b *testing.B) {
	for _, s := range shops() {
		b.Run(s.layout.Driver, func(b *testing.B) {
			r := redistest.Start(b)
			if s.layout.Driver == listUsers {
				s.stock(b, r.Client, min(int64(b.N), 1_000_000)+1)
			} else {
				s.stock(b, r.Client, 1_000_000_000)
			}
			d := desk(b, r.Addr, s.layout)
			b.ResetTimer()
			var users atomic.Int64
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					user := fmt.Sprint(users.Add(1))
					if reason, serial := take(d, s.sku, user, "", 1); reason == reject.Admitted {
						d.Settle([]byte(s.sku), serial, metrics.OrderConfirmed)
					} else {
						b.Errorf("heard %s", reason)
						return
					}
				}
			})
		})
	}
}
