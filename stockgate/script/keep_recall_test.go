package script

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// again asks for one unit as the proxy does: from memory, by a look-up if memory says so, and else by the script.
func again(r *Reserver, sku, user, key string) proxy.Reservation {
	o := proxy.Order{SKU: []byte(sku), User: []byte(user), Key: []byte(key), Quantity: 1}
	out, decided := r.Decided(r.o.Now(), o)
	if !decided && out.LookUp {
		out, decided = r.LookUp(r.o.Now(), o)
	}
	if !decided {
		out = r.Reserve(r.o.Now(), o)
	}
	return out
}

// A winner who repeats its order by its key hears of that order after the sell-out, from memory and by the script.
func TestKeep_WinnerWithAKeyNeverHearsSoldOut(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range shops() {
		for name, memory := range map[string]time.Duration{"memory": time.Hour, "script": time.Nanosecond} {
			t.Run(s.def.Preset+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := redistest.Start(t)
				s.stock(t, r.Client, 1)
				d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}),
					func(o *Options) { o.Memory, o.MaxMemory = memory, memory })
				hears := func(user, key string, want reject.Reason) {
					t.Helper()
					if got := again(d, s.sku, user, key); got.Reason != want {
						t.Errorf("user %s with key %q hears %s, want %s", user, key, got.Reason, want)
					}
				}
				hears("7", "mine", reject.Admitted)
				hears("7", "mine", reject.InProgress) // it is under way here
				for i := range 3 {
					hears(fmt.Sprint(i), "", reject.SoldOut)
				}
				d.Settle([]byte(s.sku), "mine", metrics.OrderConfirmed)
				testkit.Eventually(t, "it is confirmed", func() bool { return kept(d, s.sku, "mine") == "confirmed" })
				hears("7", "mine", reject.Confirmed)
				hears("8", "mine", reject.KeyReused)
				hears("8", "other", reject.SoldOut)
				later := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
				if got := again(later, s.sku, "7", "mine"); got.Reason != reject.Confirmed {
					t.Errorf("at another instance it hears %s", got.Reason)
				}
				if left := s.left(t, r.Client); left != 0 {
					t.Errorf("%d left", left)
				}
			})
		}
	}
}

// A sold-out order without a key is answered from memory: nothing is asked. One with a key is asked for, and where that
// is not possible it may ask again.
func TestKeep_SoldOutWithoutAKeyAsksNothing(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 1)
	d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}), func(o *Options) { o.Memory = time.Hour })
	if got := again(d, s.sku, "7", "mine"); got.Reason != reject.Admitted {
		t.Fatal(got.Reason)
	}
	again(d, s.sku, "8", "")
	before := r.Calls("hmget")
	for range 100 {
		if got := again(d, s.sku, "9", ""); got.Reason != reject.SoldOut {
			t.Fatal(got.Reason)
		}
	}
	if n := r.Calls("hmget"); n != before {
		t.Errorf("%d look-ups for orders without a key", n-before)
	}
	r.Kill()
	if got := again(d, s.sku, "9", "other"); got.Reason != reject.SoldOut || got.Wait != recallAgain {
		t.Errorf("with Redis away: %+v", got)
	}
	if got := again(d, s.sku, "9", ""); got.Reason != reject.SoldOut || got.Wait != 0 {
		t.Errorf("with Redis away, without a key: %+v", got)
	}
}
