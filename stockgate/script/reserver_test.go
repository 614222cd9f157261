package script

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
	"sluice/internal/testkit"
	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// clock is a time that a test sets.
type clock struct{ ns atomic.Int64 }

func (c *clock) use(o *Options) { o.Now, o.Memory = c.ns.Load, 10*time.Millisecond }

// scripts is how many scripts Redis has run.
func scripts(r *redistest.Server) int64 { return r.Calls("evalsha") + r.Calls("eval") }

// A unit that one instance gives back is sold by another one as soon as Memory is over.
func TestReserver_OtherInstancesSeeAGiveBack(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			r, now := redistest.Start(t), &clock{}
			s.stock(t, r.Client, 1)
			one, two := reserver(t, r.Addr, s.def, now.use), reserver(t, r.Addr, s.def, now.use)
			_, serial := take(one, s.sku, "1", "", 1)
			if reason, _ := take(two, s.sku, "2", "", 1); reason != reject.SoldOut {
				t.Fatalf("heard %s", reason)
			}
			one.Settle([]byte(s.sku), serial, metrics.OrderRejected)
			one.Close(t.Context())
			now.ns.Add(int64(10*time.Millisecond) + 1)
			if reason, _ := take(two, s.sku, "3", "", 1); reason != reject.Admitted {
				t.Errorf("heard %s", reason)
			}
		})
	}
}

func TestReserver_FewerUnitsCanBeHadWhenManyCannot(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 2)
	d := reserver(t, r.Addr, s.def, now.use)
	for _, c := range []struct {
		units int64
		want  reject.Reason
	}{{3, reject.SoldOut}, {5, reject.SoldOut}, {2, reject.Admitted}, {1, reject.SoldOut}} {
		if reason, _ := take(d, s.sku, "1", "", c.units); reason != c.want {
			t.Errorf("%d units: %s, want %s", c.units, reason, c.want)
		}
	}
}

func TestReserver_UnitsOfARejectedOrderAreForSaleAgain(t *testing.T) {
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			r, now := redistest.Start(t), &clock{}
			s.stock(t, r.Client, 1)
			d := reserver(t, r.Addr, s.def, now.use)
			_, serial := take(d, s.sku, "1", "order-1", 1)
			if reason, _ := take(d, s.sku, "2", "", 1); reason != reject.SoldOut {
				t.Fatalf("the second heard %s", reason)
			}
			d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
			testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 1 })
			testkit.Eventually(t, "the cache opens, though Memory is not over", func() bool {
				_, closed := d.Decided(0, proxy.Order{SKU: []byte(s.sku), Quantity: 1})
				return !closed
			})
			if reason, _ := take(d, s.sku, "3", "", 1); reason != reject.Admitted {
				t.Errorf("the third heard %s", reason)
			}
		})
	}
}

func TestReserver_UnitsOfAnUnknownOutcomeStayTaken(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def)
	for _, f := range []metrics.OrderOutcome{metrics.OrderConfirmed, metrics.OrderUnknown} {
		_, serial := take(d, s.sku, "1", "", 2)
		d.Settle([]byte(s.sku), serial, f)
		d.Settle([]byte(s.sku), serial, metrics.OrderRejected) // it is settled already
	}
	d.Close(t.Context())
	if left, kept := s.left(t, r.Client), d.counts.sum(unitsOpen); left != 1 || kept != 2 {
		t.Errorf("%d left, %d counted", left, kept)
	}
}

func TestReserver_OrderUnderWayIsNotTakenTwice(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def)
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

func TestReserver_NothingIsLostWhileRedisIsAway(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	t.Parallel()
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			s.stock(t, r.Client, 1)
			w := between(t, r.Addr)
			d := reserver(t, w.addr, s.def)
			_, serial := take(d, s.sku, "1", "", 1)
			w.unplug()
			testkit.Eventually(t, "a call is not sent", func() bool {
				before, unanswered := d.counts.ended(notSent), d.counts.sum(unitsUnanswered)
				reason, _ := take(d, s.sku, "3", "", 1)
				notSent, counted := d.counts.ended(notSent)-before, d.counts.sum(unitsUnanswered)-unanswered
				if reason != reject.StockError || notSent+counted != 1 {
					t.Fatalf("heard %s, %d not sent, %d counted", reason, notSent, counted)
				}
				return notSent == 1
			})
			d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
			w.plug(t)
			testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 1 })
		})
	}
}

func TestGiveBack_IsNotRepeatedWhenItsReplyWasLost(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	learnt(t, r)
	s.stock(t, r.Client, 5)
	w := between(t, r.Addr)
	d := reserver(t, w.addr, s.def)
	_, serial := take(d, s.sku, "1", "", 1)
	w.lose("evalsha")
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	d.Close(t.Context())
	if left, lost := s.left(t, r.Client), d.counts.sum(unitsLost); left != 5 || lost != 1 {
		t.Errorf("%d left, %d counted", left, lost)
	}
}

func TestGiveBack_UnitsThatAreOwedAtTheEndAreCountedAndLogged(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	w := between(t, r.Addr)
	var said bytes.Buffer
	d := reserver(t, w.addr, s.def, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
	_, serial := take(d, s.sku, "1", "key", 2)
	w.unplug()
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Close(ctx)
	if lost := d.counts.sum(unitsLost); lost != 2 || !strings.Contains(said.String(), "serial=key") {
		t.Errorf("%d counted, and said: %s", lost, said.String())
	}
	if reason, _ := take(d, s.sku, "1", "", 1); reason != reject.ShuttingDown {
		t.Errorf("after the end: %s", reason)
	}
}

func TestReserver_OrdersThatAScriptCannotTakeAreRejected(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t)
	for _, s := range shops() {
		single := s.def.Preset == "counter_users" || s.def.Preset == "list_users"
		d := reserver(t, r.Addr, s.def)
		if reason, _ := take(d, s.sku, "", "", 1); (reason == reject.BadRequest) != (single ||
			s.def.Preset == "hash_bought") {
			t.Errorf("%s, no user: %s", s.def.Preset, reason)
		}
		if reason, _ := take(d, s.sku, "7", "", 2); (reason == reject.BadRequest) != single {
			t.Errorf("%s, two units: %s", s.def.Preset, reason)
		}
		if reason, _ := take(d, s.sku, "7", "", 0); reason != reject.BadRequest {
			t.Errorf("%s, no unit: %s", s.def.Preset, reason)
		}
	}
}

func TestReserver_DecidedAllocatesNothing(t *testing.T) {
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 0)
	d := reserver(t, r.Addr, s.def, now.use)
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

func TestMetrics_PassTheLinterAndTellOutcomes(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 1)
	d := reserver(t, r.Addr, s.def, func(o *Options) { o.MetricSKUs = 1 })
	take(d, "invented", "1", "", 1)
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
		`sluice_script_orders_total{outcome="taken",script="counter_codes",sku="` + s.sku + `"} 1`,
		`sluice_script_orders_total{outcome="unknown_sku",script="counter_codes",sku="_other"} 1`,
		`sluice_script_units_total{event="unanswered",script="counter_codes",sku="_other"} 0`,
		`sluice_script_under_way 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func BenchmarkDecided(b *testing.B) {
	s, r, now := counterShop(), redistest.Start(b), &clock{}
	s.stock(b, r.Client, 0)
	d := reserver(b, r.Addr, s.def, now.use)
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
		b.Run(s.def.Preset, func(b *testing.B) {
			r := redistest.Start(b)
			if s.def.Preset == "list_users" {
				s.stock(b, r.Client, min(int64(b.N), 1_000_000)+1)
			} else {
				s.stock(b, r.Client, 1_000_000_000)
			}
			d := reserver(b, r.Addr, s.def)
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
