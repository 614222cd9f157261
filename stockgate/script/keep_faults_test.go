package script

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/stockgate/ledger/protocol"
)

// owed is how many orders are to be given back, and whether each of them was tried.
func owed(t *testing.T, d *Reserver) (n int, tried bool) {
	t.Helper()
	store, _ := d.Records()
	all, err := store.Owed(background)
	check(t, err)
	tried = true
	for _, o := range all {
		tried = tried && o.Tries > 0 && !o.Begun
	}
	return len(all), tried
}

// Sale 2 sells from other keys: what is owed of sale 1 waits until its keys are back.
func TestKeep_UnitsThatOtherKeysTookAreListedAndNotGivenBack(t *testing.T) {
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	one := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	_, serial := take(one, s.sku, "7", "mine", 2)
	one.Settle([]byte(s.sku), serial, metrics.OrderConfirmed)
	testkit.Eventually(t, "it is confirmed", func() bool { return kept(one, s.sku, serial) == "confirmed" })
	one.Close(background)

	check(t, r.Client.Set(background, "sale2:{1001}:stock", 100, 0).Err())
	def := s.def
	def.Keys = []string{"sale2:{$sku}:stock"}
	two := reserver(t, r.Addr, def, keeping(time.Minute, &shopStatus{}))
	finish(t, two, protocol.Refund, s.sku, serial)
	testkit.Eventually(t, "it is looked at and listed", func() bool {
		n, tried := owed(t, two)
		return n == 1 && tried
	})
	n, _ := r.Client.Get(background, "sale2:{1001}:stock").Int64()
	if left := s.left(t, r.Client); left != 3 || n != 100 || two.counts.sum(unitsLost) != 0 {
		t.Errorf("sale 1 has %d of 3, sale 2 has %d of 100, %d are lost", left, n, two.counts.sum(unitsLost))
	}
	two.Close(background)

	three := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	testkit.Eventually(t, "the units are back", func() bool { return s.left(t, r.Client) == 5 })
	testkit.Eventually(t, "nothing is owed", func() bool {
		n, _ := owed(t, three)
		return n == 0
	})
}

// Of the arguments and of the script that gives back, too.
func TestKeep_UnitsThatOtherArgumentsTookHaveAnotherFingerprint(t *testing.T) {
	o, s := &order{sku: "1001", user: "7", serial: "mine", quantity: 2, at: 3}, counterShop()
	by := compiled(t, s.def).fingerprint(o)
	for name, change := range map[string]func(*Definition){
		"keys": func(d *Definition) { d.Keys = []string{"other:{$sku}"} },
		"args": func(d *Definition) { d.Args = []string{"1"} },
		"back": func(d *Definition) { d.GiveBack = "lock" },
		"same": func(*Definition) {},
	} {
		def := s.def
		change(&def)
		if now := compiled(t, def).fingerprint(o); (now == by) != (name == "same") {
			t.Errorf("%s: %s, before %s", name, now, by)
		}
	}
}
