package script

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
)

// shopStatus is what a shop knows of every order: a ledger.OrderStatus.
type shopStatus struct{ atomic.Int32 }

func (s *shopStatus) Ask(context.Context, string, string) (ledger.OrderStatus, error) {
	return ledger.OrderStatus(s.Load()), nil
}

// keeping has orders kept for ttl, beside a shop that marks the serials that it does not know.
func keeping(ttl time.Duration, status *shopStatus) func(*Options) {
	return func(o *Options) {
		o.Hold, o.Keep = ttl, &Keep{Status: status, OnNotFound: "cancel_then_release", Timeout: 5 * time.Second}
	}
}

// kept is the state of an order as clients hear it.
func kept(d *Reserver, sku, serial string) string {
	s, _ := d.State(0, []byte(sku), []byte(serial))
	return s.State
}

// finish does op to an order, as the control API does.
func finish(t *testing.T, d *Reserver, op protocol.Op, sku, serial string) protocol.Done {
	t.Helper()
	store, _ := d.Records()
	now, done := time.Now(), make([]protocol.Done, 1)
	_, err := store.Finish(background, sku, now.UnixMilli(), now.Add(time.Hour).UnixMilli(), op,
		[]protocol.Item{{Serial: serial}}, done)
	check(t, err)
	return done[0]
}

func TestKeep_OrderThatIsNotConfirmedInTimeIsGivenBack(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, preset := range []string{"counter_codes", "hash_instock", "list_users", "hash_bought"} {
		t.Run(preset, func(t *testing.T) {
			s, r, status := shopOf(preset), redistest.Start(t), &shopStatus{}
			s.stock(t, r.Client, 3)
			d := reserver(t, r.Addr, s.def, keeping(50*time.Millisecond, status))
			reason, serial := take(d, s.sku, "7", "mine", 1)
			if reason != reject.Admitted || kept(d, s.sku, serial) != "held" {
				t.Fatalf("heard %s, it is %s", reason, kept(d, s.sku, serial))
			}
			d.Settle([]byte(s.sku), serial, metrics.OrderUnknown)
			time.Sleep(1500 * time.Millisecond) // several runs of the resolver: the shop does not know yet
			if left := s.left(t, r.Client); left != 2 {
				t.Fatalf("%d left while the shop does not know", left)
			}
			status.Store(int32(ledger.OrderNotFound))
			testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 3 })
			if state := kept(d, s.sku, serial); state != "released" {
				t.Errorf("the order is %s", state)
			}
			if done := finish(t, d, protocol.Release, s.sku, serial); done != protocol.Already {
				t.Errorf("a second release: %d", done)
			}
		})
	}
}

// An instance that dies after it has forwarded an order leaves the decision to another one.
func TestKeep_AnotherInstanceDecidesTheOrdersOfOneThatDied(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for status, left := range map[ledger.OrderStatus]int64{ledger.OrderExists: 2, ledger.OrderNotFound: 3} {
		s, r, shop := counterShop(), redistest.Start(t), &shopStatus{}
		s.stock(t, r.Client, 3)
		one := reserver(t, r.Addr, s.def, keeping(50*time.Millisecond, &shopStatus{}))
		_, serial := take(one, s.sku, "7", "mine", 1) // and never settles it
		one.keeper.orders.Close(t.Context())
		shop.Store(int32(status))
		two := reserver(t, r.Addr, s.def, keeping(time.Minute, shop))
		testkit.Eventually(t, "the order is decided", func() bool { return kept(two, s.sku, serial) != "held" })
		testkit.Eventually(t, "the stock is right", func() bool { return s.left(t, r.Client) == left })
	}
}

func TestKeep_RefundGivesTheUnitsOfAConfirmedOrderBackOnce(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	_, serial := take(d, s.sku, "7", "mine", 2)
	d.Settle([]byte(s.sku), serial, metrics.OrderConfirmed)
	testkit.Eventually(t, "it is confirmed", func() bool { return kept(d, s.sku, serial) == "confirmed" })
	for _, want := range []struct {
		op   protocol.Op
		done protocol.Done
	}{{protocol.Release, protocol.WasSold}, {protocol.Refund, protocol.Changed}, {protocol.Refund, protocol.Already},
		{protocol.Confirm, protocol.WasReleased}} {
		if done := finish(t, d, want.op, s.sku, serial); done != want.done {
			t.Errorf("%s: %d, want %d", want.op, done, want.done)
		}
	}
	testkit.Eventually(t, "the units are back", func() bool { return s.left(t, r.Client) == 5 })
	store, _ := d.Records()
	testkit.Eventually(t, "nothing is owed", func() bool {
		o, err := store.Owed(background)
		return err == nil && len(o) == 0
	})
	if left := s.left(t, r.Client); left != 5 {
		t.Errorf("%d left", left)
	}
}

func TestKeep_ReleaseBeforeItsOrderIsAppliedWhenTheOrderComes(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	if done := finish(t, d, protocol.Release, s.sku, "mine"); done != protocol.Changed {
		t.Fatalf("the release: %d", done)
	}
	if reason, _ := take(d, s.sku, "7", "mine", 2); reason != reject.Released {
		t.Errorf("heard %s", reason)
	}
	testkit.Eventually(t, "the units are back", func() bool { return s.left(t, r.Client) == 5 })
}

func TestKeep_SerialThatComesAgainKeepsNoSecondUnit(t *testing.T) {
	for _, preset := range []string{"counter_codes", "counter_users"} {
		s, r := shopOf(preset), redistest.Start(t)
		s.stock(t, r.Client, 5)
		one := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
		two := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
		_, serial := take(one, s.sku, "7", "mine", 1)
		first, _ := take(two, s.sku, "7", "mine", 1)
		other, _ := take(two, s.sku, "8", "mine", 1)
		one.Settle([]byte(s.sku), serial, metrics.OrderConfirmed)
		testkit.Eventually(t, "it is confirmed", func() bool { return kept(two, s.sku, serial) == "confirmed" })
		second, _ := take(two, s.sku, "7", "mine", 1)
		if first != reject.InProgress || second != reject.Confirmed || other != reject.KeyReused {
			t.Errorf("%s: heard %s, %s, %s", preset, first, other, second)
		}
		testkit.Eventually(t, "one unit is taken", func() bool { return s.left(t, r.Client) == 4 })
	}
}

func TestKeep_GiveBackThatCannotBeDoneIsTriedAgainAndListed(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := lockShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	_, serial := take(d, s.sku, "7", "mine", 1)
	check(t, r.Client.Set(background, lockKey, "shop", 0).Err())
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	store, _ := d.Records()
	testkit.Eventually(t, "it is tried and listed", func() bool {
		all, err := store.Owed(background)
		return err == nil && len(all) == 1 && all[0].Serial == serial && all[0].Tries >= 2 && !all[0].Begun
	})
	check(t, r.Client.HSet(background, "sluice:{script}:tries", s.sku+" "+serial, "2|1000|0").Err()) // since 1970
	testkit.Eventually(t, "the oldest is an hour late", func() bool { return d.keeper.oldest.Load() == 1000 })
	check(t, r.Client.Del(background, lockKey).Err())
	testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 5 })
}

// A second run could give back the unit of a later order.
func TestKeep_GiveBackOfAnInstanceThatDiedIsNotRepeated(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	_, serial := take(d, s.sku, "7", "mine", 1)
	d.keeper.stop() // as one that has died
	d.keeper.work.Wait()
	if done := finish(t, d, protocol.Release, s.sku, serial); done != protocol.Changed {
		t.Fatalf("the release: %d", done)
	}
	store, _ := d.Records()
	if claimed, err := store.Claim(background, 10); err != nil || len(claimed) != 1 || claimed[0].Begun {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	if claimed, err := store.Claim(background, 10); err != nil || len(claimed) != 0 {
		t.Fatalf("claimed twice: %+v, %v", claimed, err)
	}
	check(t, r.Client.ZAdd(background, "sluice:{script}:owed", redis.Z{Score: 1, Member: s.sku + " " + serial}).Err())
	two := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	testkit.Eventually(t, "it is counted as lost", func() bool { return two.counts.sum(unitsLost) == 1 })
	if left := s.left(t, r.Client); left != 4 {
		t.Errorf("%d left", left)
	}
}
