package driver

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

func TestAnOrderIsListedAsTheShopsConsumerReadsIt(t *testing.T) {
	s, r := hashBoughtShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := desk(t, r.Addr, s.layout)
	o := &order{sku: "1001", user: "7", quantity: 2, at: 1794265200}
	d.decision.take(background, []*order{o})
	const want = `{"uid":7,"goods_id":1001,"buy_num":2,"order_time":1794265200}`
	if got := r.Client.LRange(background, "order_list:{1001}", 0, -1).Val(); len(got) != 1 || got[0] != want {
		t.Errorf("the list holds %q", got)
	}
	if got := listed(&order{sku: "a-1", user: "007", quantity: 1}); got != `{"uid":"007","goods_id":"a-1","buy_num":1,"order_time":0}` {
		t.Errorf("text that is no number: %s", got)
	}
}

func TestAnOrderThatHasLeftTheListIsNotGivenBack(t *testing.T) {
	s, r := hashBoughtShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := desk(t, r.Addr, s.layout)
	_, serial := take(d, s.sku, "7", "", 1)
	check(t, r.Client.RPop(background, "order_list:{1001}").Err()) // the shop makes it
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	d.Close(t.Context())
	if left, refused := s.left(t, r.Client), d.counts.refused.Load(); left != 4 || refused != 1 {
		t.Errorf("%d left, %d refused", left, refused)
	}
}

func TestAStatusThatIsNotOpenIsPaused(t *testing.T) {
	s, r := hashBoughtShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	check(t, r.Client.HSet(background, "goods:{1001}", "goods_status", 2).Err())
	d := desk(t, r.Addr, s.layout)
	if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Paused {
		t.Errorf("heard %s", reason)
	}
	if n := r.Client.Exists(background, "order_list:{1001}").Val(); n != 0 {
		t.Error("an order was listed")
	}
}

func TestAnEmptyListIsSoldOutWhereSomebodyHasBought(t *testing.T) {
	s, r := listShop(), redistest.Start(t)
	s.stock(t, r.Client, 1)
	s.buy(t, r.Client, "1")
	if reason, _ := take(desk(t, r.Addr, s.layout), s.sku, "2", "", 1); reason != reject.SoldOut {
		t.Errorf("heard %s", reason)
	}
}

func TestTheUnitItselfIsGivenBack(t *testing.T) {
	s, r := listShop(), redistest.Start(t)
	s.stock(t, r.Client, 2)
	d := desk(t, r.Addr, s.layout)
	_, serial := take(d, s.sku, "7", "", 1)
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	d.Close(t.Context())
	if got := r.Client.LRange(background, "units:{1001}", 0, -1).Val(); len(got) != 2 || got[0] != "unit-1" || got[1] != "unit-0" {
		t.Errorf("the list holds %q", got)
	}
}

func TestTheProductFollowsItsVariantAndNeverAdmits(t *testing.T) {
	s, r := variantsShop(), redistest.Start(t)
	check(t, r.Client.MSet(background, "stock:{1001}:red", 1, "stock:{1001}", 0, "stock:{1001}:blue", 0).Err())
	d := desk(t, r.Addr, s.layout)
	_, serial := take(d, "1001:red", "1", "", 1)
	if n := get("stock:{1001}")(t, r.Client); serial == "" || n != -1 {
		t.Errorf("serial %q, the product has %d", serial, n)
	}
	check(t, r.Client.Set(background, "stock:{1001}", 100, 0).Err())
	if reason, _ := take(d, "1001:blue", "2", "", 1); reason != reject.SoldOut {
		t.Errorf("a variant without units: %s", reason)
	}
	d.Settle([]byte("1001:red"), serial, metrics.OrderRejected)
	d.Close(t.Context())
	if red, product := s.left(t, r.Client), get("stock:{1001}")(t, r.Client); red != 1 || product != 101 {
		t.Errorf("given back: %d and %d", red, product)
	}
}

func TestAVariantWithoutAProductIsSoldAllTheSame(t *testing.T) {
	s, r := variantsShop(), redistest.Start(t)
	check(t, r.Client.Set(background, "stock:{1001}:red", 1, 0).Err())
	if reason, _ := take(desk(t, r.Addr, s.layout), "1001:red", "1", "", 1); reason != reject.Admitted {
		t.Errorf("heard %s", reason)
	}
	if n := r.Client.Exists(background, "stock:{1001}").Val(); n != 0 {
		t.Error("a product's counter was made")
	}
}

// The mark is asked, and no unit is taken again.
func TestTheMarkDecidesAfterALostAnswer(t *testing.T) {
	s, r := shopOf(hashInStock), redistest.Start(t)
	s.stock(t, r.Client, 5)
	w := between(t, r.Addr)
	d := desk(t, w.addr, s.layout)
	w.lose("nx") // the mark is set, and nobody hears it
	if reason, _ := take(d, s.sku, "7", "key", 1); reason != reject.Admitted || w.cut.Load() != nil {
		t.Errorf("heard %s", reason)
	}
	if left := s.left(t, r.Client); left != 4 || d.counts.unsure.Load() != 0 {
		t.Errorf("%d left", left)
	}
}

// What was on its way when its answer was given up finds that it has come too late.
func TestAnOrderThatWasGivenUpTakesNothingLater(t *testing.T) {
	s, r := shopOf(hashInStockOnce), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := desk(t, r.Addr, s.layout)
	m := d.decision.(*markedOnce)
	o := &order{sku: s.sku, serial: "key", quantity: 1, why: unsure, token: "mine"}
	m.m.decide(background, []*order{o}, notSent)
	if o.why != notSent {
		t.Fatalf("without a mark: %s", o.why)
	}
	m.scripted.take(background, []*order{o})
	if left := s.left(t, r.Client); o.why != repeated || left != 5 {
		t.Errorf("%s, %d left", o.why, left)
	}
	if reason, _ := take(d, s.sku, "7", "key", 1); reason != reject.Released {
		t.Errorf("the same order hears %s", reason)
	}
}

func TestWatchGivesUpAfterBoundedTries(t *testing.T) {
	s, r := watchShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	w := between(t, r.Addr)
	var tries atomic.Int64
	meddle := func(text string) {
		if strings.Contains(text, "multi") {
			tries.Add(1)
			r.Client.Incr(background, "seckill:{1001}:stock")
		}
	}
	w.seen.Store(&meddle)
	if reason, _ := take(desk(t, w.addr, s.layout), s.sku, "7", "", 1); reason != reject.Concurrency || tries.Load() != watchTries {
		t.Errorf("heard %s after %d tries", reason, tries.Load())
	}
	if left := s.left(t, r.Client); left != 5+watchTries {
		t.Errorf("%d left", left)
	}
}

func TestALockOfOthersIsWaitedForAndLeftAlone(t *testing.T) {
	s, r := lockShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	check(t, r.Client.Set(background, lockKey, "theirs", time.Hour).Err())
	d := desk(t, r.Addr, s.layout)
	if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Concurrency {
		t.Errorf("heard %s", reason)
	}
	if got := r.Client.Get(background, lockKey).Val(); got != "theirs" {
		t.Errorf("the lock is %q", got)
	}
	check(t, r.Client.Del(background, lockKey).Err())
	if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Admitted {
		t.Errorf("then: %s", reason)
	}
	if n := r.Client.Exists(background, lockKey).Val(); n != 0 {
		t.Error("the lock is still held")
	}
}

// A holder who slept until others have drawn a number writes nothing, neither taking nor giving.
func TestAHolderWhoseLockHasEndedWritesNothing(t *testing.T) {
	s, r := lockShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	l := desk(t, r.Addr, s.layout).decision.(*lock)
	o := &order{sku: s.sku, quantity: 1}
	number, found, err := l.hold(background, o, "mine")
	if found != taken || err != nil {
		t.Fatalf("%s %v", found, err)
	}
	check(t, r.Client.Incr(background, lockKey+":fence").Err())
	for _, sign := range []int64{1, -1} {
		l.write(background, []*order{o}, number, sign, func(_ *order, w why, _ error) { found = w })
		if left := s.left(t, r.Client); found != contended || left != 5 {
			t.Errorf("%s, %d left", found, left)
		}
	}
}
