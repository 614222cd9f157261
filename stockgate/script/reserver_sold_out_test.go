package script

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy"
	"sluice/proxy/reject"
)

func TestReserver_SoldOutSKUCostsRedisNothing(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 1)
	d := reserver(t, r.Addr, s.def, now.use)
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

// Behind a reading that is older than Memory one order asks, and the others wait for what it finds.
func TestReserver_UnitsThatTheShopAddsAreFoundAfterMemory(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 0)
	d := reserver(t, r.Addr, s.def, now.use)
	take(d, s.sku, "1", "", 1)
	s.stock(t, r.Client, 1)
	now.ns.Store(int64(10 * time.Millisecond))
	if reason, _ := take(d, s.sku, "2", "", 1); reason != reject.SoldOut {
		t.Fatalf("within Memory: %s", reason)
	}
	now.ns.Add(1)
	if _, closed := d.Decided(now.ns.Load(), proxy.Order{SKU: []byte(s.sku), Quantity: 1}); closed {
		t.Fatal("an old reading decides")
	}
	if reason, _ := take(d, s.sku, "3", "", 1); reason != reject.Admitted {
		t.Fatalf("heard %s", reason)
	}
}

// 500 orders come right after a restock of 500 units: none of them is told that it is sold out.
func TestReserver_NoOrderAfterARestockIsSoldOut(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			r, now := redistest.Start(t), &clock{}
			s.stock(t, r.Client, 1)
			d := reserver(t, r.Addr, s.def, now.use)
			for _, want := range []reject.Reason{reject.Admitted, reject.SoldOut} {
				if reason, _ := take(d, s.sku, "first-"+want.String(), "", 1); reason != want {
					t.Fatalf("before: %s", reason)
				}
			}
			s.stock(t, r.Client, 500) // a total of 500, of which none is sold
			now.ns.Add(int64(10*time.Millisecond) + 1)
			var all sync.WaitGroup
			for i := range 500 {
				all.Go(func() {
					o := proxy.Order{SKU: []byte(s.sku), User: fmt.Append(nil, i), Quantity: 1}
					if found, closed := d.Decided(now.ns.Load(), o); closed {
						t.Errorf("order %d: %s from memory", i, found.Reason)
					}
					if found := d.Reserve(now.ns.Load(), o); found.Reason != reject.Admitted {
						t.Errorf("order %d: %s", i, found.Reason)
					}
				})
			}
			all.Wait()
			if left := s.left(t, r.Client); left != 0 {
				t.Errorf("%d left", left)
			}
		})
	}
}

// A crowd at a sold-out SKU costs one script in each Memory, however many orders come.
func TestReserver_CrowdAtASoldOutSKUSharesOneReading(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	s.stock(t, r.Client, 0)
	d := reserver(t, r.Addr, s.def, now.use, func(o *Options) { o.Redis.Timeout = time.Minute }) // it hangs for a while
	take(d, s.sku, "0", "", 1)
	before := scripts(r)
	r.Pause() // so that all of them come while the first one asks
	now.ns.Add(int64(time.Hour))
	d.o.MaxWait = 24 * time.Hour
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			if reason, _ := take(d, s.sku, fmt.Sprint(i), "", 1); reason != reject.SoldOut {
				t.Errorf("heard %s", reason)
			}
		})
	}
	testkit.Eventually(t, "one is in flight and the others wait", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.queue) == 299
	})
	r.Resume()
	all.Wait()
	if n := scripts(r) - before; n != 1 {
		t.Errorf("%d scripts ran", n)
	}
}

// Many sold-out SKUs cost Redis a bounded number of scripts in each Memory; after MaxMemory each is asked for.
func TestReserver_ManySoldOutSKUsCostABoundedNumberOfReadings(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r, now := counterShop(), redistest.Start(t), &clock{}
	d := reserver(t, r.Addr, s.def, now.use)
	skus := make([]string, 200)
	for i := range skus {
		skus[i] = fmt.Sprint("sku-", i)
		check(t, r.Client.Set(background, "seckill:{"+skus[i]+"}:stock", 0, 0).Err())
		take(d, skus[i], "1", "", 1)
	}
	for _, c := range []struct {
		later time.Duration
		want  int64
	}{{11 * time.Millisecond, 64}, {11 * time.Millisecond, 64}, {2 * time.Second, 200}} {
		before := scripts(r)
		now.ns.Add(int64(c.later))
		for _, sku := range skus {
			if reason, _ := take(d, sku, "2", "", 1); reason != reject.SoldOut {
				t.Errorf("%s: %s", sku, reason)
			}
		}
		if n := scripts(r) - before; n < c.want ||
			n > c.want+12 { // two SKUs of one slot of the cache are asked for each time
			t.Errorf("%s later: %d scripts ran, want about %d", c.later, n, c.want)
		}
	}
}
