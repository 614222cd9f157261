package driver

import (
	"fmt"
	"testing"

	"sluice/internal/redistest"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// What Redis itself would not count, or what Lua would round, is neither 0 nor plenty.
func TestNumbersThatAreNotPlainAreAnErrorAndStayWhole(t *testing.T) {
	values := []string{
		"007", "-0", "+5", " 5", "5 ", "5.0", "1e3", "0x10", "", "--1", "9223372036854775808", "99999999999999999999",
		"9007199254740993", "1000000000000000", "-1000000000000000", "\xac\xed\x00\x05t\x00\x015",
	}
	for _, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			if s.layout.Driver == listUsers {
				t.Skip("a list has a length")
			}
			r := redistest.Start(t)
			d := desk(t, r.Addr, s.layout)
			key := d.keysOf(t, s.sku)
			for _, value := range values {
				fields := [][2]string{{"", ""}}
				switch s.layout.Driver {
				case hashOrdered, hashBought:
					fields = [][2]string{{s.layout.TotalField, s.layout.SoldField}, {s.layout.SoldField, s.layout.TotalField}}
				case hashInStock, hashInStockOnce:
					fields = [][2]string{{s.layout.LeftField, ""}}
				}
				for _, f := range fields {
					check(t, r.Client.FlushAll(background).Err())
					if f[0] == "" {
						check(t, r.Client.Set(background, key, value, 0).Err())
					} else {
						check(t, r.Client.HSet(background, key, f[0], value).Err())
						if f[1] != "" {
							check(t, r.Client.HSet(background, key, f[1], 5, s.layout.StatusField, 1).Err())
						}
					}
					before := r.Client.Dump(background, key).Val()
					o := &order{sku: s.sku, user: "7", serial: "k", quantity: 1}
					d.decision.take(background, []*order{o})
					if o.why != faulty {
						t.Errorf("%s %q: %s %v", f[0], value, o.why, o.err)
					}
					if after := r.Client.Dump(background, key).Val(); after != before {
						t.Errorf("%s %q was changed", f[0], value)
					}
					if f[0] == s.layout.TotalField && f[0] != "" {
						continue // no giving back asks for the total
					}
					d.decision.giveBack(background, []*order{o})
					if after := r.Client.Dump(background, key).Val(); after != before {
						t.Errorf("%s %q was changed by giving back: %s", f[0], value, o.given)
					}
				}
			}
		})
	}
}

// A client's key may look like the mark of another order's giving back.
func TestNoClientsKeyIsTheMarkOfAnotherOrdersGivingBack(t *testing.T) {
	for _, name := range []string{hashInStock, hashInStockOnce} {
		s, r := shopOf(name), redistest.Start(t)
		s.stock(t, r.Client, 5)
		d := desk(t, r.Addr, s.layout)
		if reason, _ := take(d, s.sku, "evil", "key:back", 1); reason != reject.BadRequest {
			t.Errorf("%s: %s", name, reason)
		}
		_, serial := take(d, s.sku, "7", "key", 1)
		d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
		d.Close(t.Context())
		if left := s.left(t, r.Client); left != 5 {
			t.Errorf("%s: %d left of 5", name, left)
		}
	}
}

// Clients invent SKUs; Redis must not be filled with keys of them, and no invented SKU may be a key of a real one.
func TestAnInventedSKULeavesNoKeyBehind(t *testing.T) {
	for _, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			r := redistest.Start(t)
			d := desk(t, r.Addr, s.layout)
			for i, sku := range []string{s.sku, s.sku + ":fence", ":", "a::b", "*", "[a-z]?", "\\", "$sku", "x:y:z"} {
				if reason, _ := take(d, sku, "7", fmt.Sprint("key-", i), 1); reason != reject.UnknownSKU {
					t.Errorf("%q: %s", sku, reason)
				}
			}
			if keys := r.Client.Keys(background, "*").Val(); len(keys) != 0 {
				t.Errorf("%q are left", keys)
			}
		})
	}
}
