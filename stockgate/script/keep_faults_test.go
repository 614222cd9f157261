package script

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/script/records"
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

// The user of Redis may touch the shop's keys alone.
func TestKeep_NoUnitIsTakenWhileOrdersCannotBeKept(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, rule := range [][]any{{"resetkeys", "~seckill:*"}, {"-sadd"}} {
		s, r := counterShop(), redistest.Start(t)
		s.stock(t, r.Client, 20)
		d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
		if reason, _ := take(d, s.sku, "0", "first", 1); reason != reject.Admitted {
			t.Fatalf("the first heard %s", reason)
		}
		acl := func(rule ...any) {
			check(t, r.Client.Do(background, append([]any{"ACL", "SETUSER", "default"}, rule...)...).Err())
		}
		acl(rule...)
		for i := range 30 {
			if reason, _ := take(d, s.sku, "7", fmt.Sprint("key", i), 1); reason != reject.StockError {
				t.Errorf("%v: heard %s", rule, reason)
			}
		}
		testkit.Eventually(t, "what was taken is back", func() bool { return s.left(t, r.Client) == 19 })
		if n := d.counts.ended(taken); n != 2 {
			t.Errorf("%v: %d orders took units", rule, n)
		}
		acl("~*", "+@all")
		reason, serial := take(d, s.sku, "8", "last", 1)
		if reason != reject.Admitted || kept(d, s.sku, serial) != "held" {
			t.Errorf("%v: the last heard %s", rule, reason)
		}
		for i := range 30 {
			if state := kept(d, s.sku, fmt.Sprint("key", i)); state != "none" {
				t.Errorf("%v: key %d is %s", rule, i, state)
			}
		}
		if n, err := r.Client.HLen(background, "sluice:{script}:r").Result(); n != 2 || err != nil {
			t.Errorf("%v: %d records, %v", rule, n, err)
		}
	}
}

// The reply to a write is lost: the order may be kept, so its unit stays taken until it is decided.
func TestKeep_OrderOfALostReplyIsDecidedByTheShop(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r, status := counterShop(), redistest.Start(t), &shopStatus{}
	s.stock(t, r.Client, 5)
	status.Store(int32(ledger.OrderNotFound))
	w := between(t, r.Addr)
	d := reserver(t, w.addr, s.def, keeping(50*time.Millisecond, status))
	store, _ := d.Records()
	check(t, store.Probe(background))
	_, err := store.Write(background, s.sku, time.Now().Add(time.Hour).UnixMilli(), nil) // Redis knows it from now on
	check(t, err)
	w.lose(s.sku)
	if reason, _ := take(d, s.sku, "7", "mine", 1); reason != reject.StockError {
		t.Errorf("heard %s", reason)
	}
	testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 5 })
}

// Sale 2 sells from other keys: what is owed of sale 1 waits until its keys are back.
func TestKeep_UnitsThatOtherKeysTookAreListedAndNotGivenBack(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
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
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
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

// What a script has returned behind its code is given to the one that gives back, also after a record of it was read.
func TestKeep_ValuesBehindTheCodeAreKeptAsTheyAre(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s := compiled(t, counterShop().def)
	o := &order{sku: "1001", serial: "mine", quantity: 1, extra: []any{int64(0), "", "unit-7", int64(-3), nil}}
	kept, _, err := orderOf(records.Owed{SKU: "1001", Serial: "mine", Payload: s.payload(o)})
	check(t, err)
	if want := []any{int64(0), "", "unit-7", int64(-3), ""}; !slices.Equal(kept.extra, want) {
		t.Errorf("kept are %q, want %q", kept.extra, want)
	}
}

// Redis does the give-back, and rejects the note of it for a while.
func TestKeep_ResultThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := counterShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	_, serial := take(d, s.sku, "7", "mine", 1)
	check(t, r.Client.Do(background, "ACL", "SETUSER", "default", "-zrem").Err())
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 5 })
	if n, _ := owed(t, d); n != 1 {
		t.Fatalf("%d are owed", n)
	}
	name := s.sku + " " + serial // a minute later it is due again, as one that was begun
	check(t, r.Client.ZAdd(background, "sluice:{script}:owed", redis.Z{Score: 1, Member: name}).Err())
	check(t, r.Client.Do(background, "ACL", "SETUSER", "default", "+zrem").Err())
	testkit.Eventually(t, "nothing is owed", func() bool {
		n, _ := owed(t, d)
		return n == 0
	})
	if left, lost := s.left(t, r.Client), d.counts.sum(unitsLost); left != 5 || lost != 0 {
		t.Errorf("%d left, %d lost", left, lost)
	}
}

// What may be back is not told as missing.
func TestKeep_LogOfUnitsThatMayBeBackSaysToCompareFirst(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := counterShop(), redistest.Start(t)
	var text bytes.Buffer
	d := reserver(t, r.Addr, s.def, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&text, nil)) })
	d.countLost(&order{sku: s.sku, serial: "mine", quantity: 1, err: errLostGiveBack})
	for _, want := range []string{"is not known", "compare the shop's stock with its orders", "serial=mine", "units=1"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in %s", want, text.String())
		}
	}
}

func TestKeep_OverdueOrdersOfOtherSKUsKeepNoneFromBeingFound(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := counterShop(), redistest.Start(t)
	d := reserver(t, r.Addr, s.def, keeping(time.Minute, &shopStatus{}))
	d.keeper.orders.Close(background)
	store, now := records.New(d.way.Client, ""), time.Now().UnixMilli()
	tracked := map[string]int{}
	store.Track(func(sku string) { tracked[sku]++ })
	var many []records.Order
	for i := range 256 {
		many = append(many, records.Order{Serial: fmt.Sprint("s", i), Quantity: 1, Payload: "{}"})
	}
	_, err := store.Write(background, "other", now-2000, many)
	check(t, err)
	_, err = store.Write(background, "1001", now-1000, []records.Order{{Serial: "mine", Quantity: 1, Payload: "{}"}})
	check(t, err)
	sweep := func(sku string, limit int) int {
		found, err := store.Sweep(background, sku, now, now+60_000, limit)
		check(t, err)
		return len(found)
	}
	if n := sweep("1001", 256) + sweep("1001", 256); n != 1 || len(tracked) != 1 || tracked["other"] != 2 {
		t.Errorf("found %d, tracked %v", n, tracked)
	}
	if a, b, c := sweep("other", 200), sweep("other", 200), sweep("other", 200); a != 200 || b != 56 || c != 0 {
		t.Errorf("found %d, %d and %d of the other SKU", a, b, c)
	}
	now += 60_000 // the leases are over: all are due again
	if n, again := sweep("other", 300), sweep("1001", 300); n != 256 || again != 1 {
		t.Errorf("found %d and %d when they were due again", n, again)
	}
}
