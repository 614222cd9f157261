package stockgate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

// fields is a script over a hash of one shop: what is left is its own affair, and whether it is on sale too.
const fields = `
local all = redis.call('HMGET', KEYS[1], 'stock', 'locked', 'on')
if not all[1] then return nil end
return {all[1] - (all[2] or 0), all[3] == 'yes' and 1 or 0}`

// shape is a layout beside what a shop does to its SKU x.
type shape struct {
	layout                         layout.Options
	fill, leavesOne, leavesNothing string
	back, spoil                    string // give one unit back; put something else into the key
	deep                           string // as far below nothing as this shop's own code lets it fall; "" = never
}

// shapes are all layouts.
func shapes() map[string]shape {
	return map[string]shape{
		"counter": {layout: layout.Options{Type: layout.Counter, Key: "stock:$sku", Prefix: "laravel_database_"},
			fill: "SET laravel_database_stock:x 3", leavesOne: "DECRBY laravel_database_stock:x 2",
			leavesNothing: "DECR laravel_database_stock:x",
			back:          "INCR laravel_database_stock:x", spoil: "HSET laravel_database_stock:x a 1",
			deep: "DECRBY laravel_database_stock:x 5000"},
		"counter down to −1": {layout: layout.Options{Type: layout.Counter, Key: "stock:$sku", SoldOutAt: -1},
			fill: "SET stock:x 2", leavesOne: "DECRBY stock:x 2", leavesNothing: "DECR stock:x",
			back: "INCR stock:x", spoil: "LPUSH stock:x 1", deep: "DECRBY stock:x 5000"},
		"counter_users": {layout: layout.Options{Type: layout.CounterUsers, Key: "{$sku}:{88}:stock",
			UsersKey: "{$sku}:{88}:uids", Prefix: "p:"},
			fill: "SET p:{x}:{88}:stock 3", leavesOne: "DECRBY p:{x}:{88}:stock 2", leavesNothing: "DECR p:{x}:{88}:stock",
			back: "INCR p:{x}:{88}:stock", spoil: "SADD p:{x}:{88}:stock 1", deep: "DECRBY p:{x}:{88}:stock 9"},
		"hash_sold": {layout: layout.Options{Type: layout.HashSold, Key: "$sku", TotalField: "Total", SoldField: "Booked"},
			fill: "HSET x Total 3 Booked 0", leavesOne: "HINCRBY x Booked 2", leavesNothing: "HINCRBY x Booked 1",
			back: "HINCRBY x Booked -1", spoil: "SET x 3", deep: "HINCRBY x Booked 5000"},
		"hash_left": {layout: layout.Options{Type: layout.HashLeft, Key: "$sku", LeftField: "inStock", Prefix: "p:"},
			fill: "HSET p:x inStock 3", leavesOne: "HINCRBY p:x inStock -2", leavesNothing: "HINCRBY p:x inStock -1",
			back: "HINCRBY p:x inStock 1", spoil: "SET p:x 3", deep: "HINCRBY p:x inStock -5000"},
		"list": {layout: layout.Options{Type: layout.List, Key: "goods:$sku", Prefix: "p:"},
			fill: "RPUSH p:goods:x 1 1 1", leavesOne: "LPOP p:goods:x 2", leavesNothing: "LPOP p:goods:x",
			back: "RPUSH p:goods:x 1", spoil: "SET p:goods:x 3"},
		"script": {layout: layout.Options{Type: layout.Script, Key: "goods:$sku", Prefix: "p:", Script: fields},
			fill: "HSET p:goods:x stock 4 locked 1 on yes", leavesOne: "HINCRBY p:goods:x locked 2",
			leavesNothing: "HINCRBY p:goods:x stock -1",
			back:          "HINCRBY p:goods:x locked -1", spoil: "SET p:goods:x 3", deep: "HINCRBY p:goods:x locked 5000"},
	}
}

func TestShapes_EveryLayoutFollowsTheShopFromTheFirstUnitToTheLastAndBack(t *testing.T) {
	for name, c := range shapes() {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := dial(t, server, c.layout)
			o := options()
			now := int64(0)
			o.Now = func() int64 { return now }
			g := stepped(t, o, s)
			x := []byte("x")
			turn := func(want reject.Reason, commands ...string) {
				t.Helper()
				setUp(t, server, commands...)
				now += int64(o.SoldOutMemory) + int64(10*time.Second)
				if got := firstLook(t, g, now, x); got != want {
					t.Errorf("after %q: %v, want %v; read %+v", commands, got, want, readOne(t, s, "x"))
				}
			}
			turn(reject.UnknownSKU)
			turn(reject.Admitted, c.fill)
			turn(reject.Admitted, c.leavesOne)
			turn(reject.SoldOut, c.leavesNothing)
			turn(reject.SoldOut)
			turn(reject.Admitted, c.back)
			turn(reject.SoldOut, c.leavesNothing)
			if c.deep != "" {
				turn(reject.SoldOut, c.deep)
				turn(reject.SoldOut, c.back)
			}
			turn(reject.StockError, "DEL "+s.layout.Load().Key("x"), c.spoil)
			if r := readOne(t, s, "x"); r.Fault == nil || !strings.Contains(r.Fault.Error(), s.layout.Load().Key("x")) {
				t.Errorf("a key of the wrong type reads %+v, want a fault that names it", r)
			}
		})
	}
}

func TestShapes_ListThatWasSeenIsSoldOutAndOneThatNeverWasIsUnknown(t *testing.T) {
	server := redistest.Start(t)
	o := layout.Options{Type: layout.List, Key: "goods:$sku"}
	s := dial(t, server, o)
	setUp(t, server, "RPUSH goods:x 1")
	readOne(t, s, "x")
	setUp(t, server, "LPOP goods:x")
	if r := readOne(t, s, "x"); !r.Exists || r.Left != 0 || r.Free != 0 || r.Fault != nil {
		t.Errorf("a list that was emptied reads %+v", r)
	}
	for range 2 {
		if r := readOne(t, s, "y"); r.Exists || r.Fault != nil {
			t.Errorf("a list that never was reads %+v", r)
		}
	}
	again := dial(t, server, o) // as after a restart
	if r := readOne(t, again, "x"); r.Exists {
		t.Errorf("a restarted instance, to which nothing tells of the list, reads %+v", r)
	}
}

func TestShapes_BuyersOrAStatusTellARestartedInstanceOfAnEmptiedList(t *testing.T) {
	for trace, set := range map[string]string{"users": "SADD users:x 7", "status": "SET status:x 1"} {
		server := redistest.Start(t)
		s := dial(t, server, layout.Options{Type: layout.List, Key: "goods:$sku", UsersKey: "users:$sku",
			StatusKey: "status:$sku", StatusOpen: []string{"1"}, SoldOutAt: -1})
		setUp(t, server, set)
		out := make([]layout.Reading, 2)
		testkit.Check(t, s.Read(t.Context(), []string{"y", "x"}, out))
		if r := out[1]; !r.Exists || r.Free != 0 || r.Fault != nil {
			t.Errorf("%s: read %+v, want sold out", trace, r)
		}
		if r := out[0]; r.Exists {
			t.Errorf("%s: another SKU reads %+v", trace, r)
		}
	}
}

func TestShapes_MemoryOfListsIsBounded(t *testing.T) {
	var m emptiedLists
	l, err := layout.New(layout.Options{Type: layout.List, Key: "$sku"})
	testkit.Check(t, err)
	out := []layout.Reading{reading(1)}
	for i := range mostLists + 5 {
		m.markEmptied(l, []string{string(name(i))}, out)
	}
	if n := len(m.held); n != mostLists {
		t.Fatalf("%d lists are remembered, want %d", n, mostLists)
	}
	another, gone := *l, []layout.Reading{{}}
	if m.markEmptied(&another, []string{string(name(1))}, gone); gone[0].Exists {
		t.Error("a list of another layout is taken for one that was emptied")
	}
}

func TestShapes_UnitsOfAListAreCopiedOnlyWhereTheyAreAllTheSame(t *testing.T) {
	for _, c := range []struct {
		fill string
		set  int64
		want int64 // −1 = only the shop can
	}{
		{"RPUSH x 1 1 1", 5, 5}, {"RPUSH x 1 1 1", 3, 3}, {"RPUSH x 1 1 1", 2, 2}, {"RPUSH x 1 1 1", 0, 0},
		{"RPUSH x a b", 3, -1}, {"RPUSH x a b", 1, -1}, {"RPUSH x a b", 2, 2},
		{"RPUSH x 1", 2, -1}, {"RPUSH x 1", 0, 0}, {"SET other 1", 2, -1}, {"RPUSH x 1 1", mostListsPushed, -1},
	} {
		server := redistest.Start(t)
		s := dial(t, server, layout.Options{Type: layout.List, Key: "$sku"})
		setUp(t, server, c.fill)
		before := server.Client.LLen(t.Context(), "x").Val()
		err := s.Set(t.Context(), "x", c.set)
		after := server.Client.LLen(t.Context(), "x").Val()
		switch {
		case c.want < 0 && (!errors.Is(err, layout.ErrNotWritable) || after != before):
			t.Errorf("%s, set %d: %v, %d units; want a rejection in words", c.fill, c.set, err, after)
		case c.want >= 0 && (err != nil || after != c.want):
			t.Errorf("%s, set %d: %v, %d units, want %d", c.fill, c.set, err, after, c.want)
		}
	}
}

// mostListsPushed is more than one command of an operator may push.
const mostListsPushed = 100_001

func TestShapes_AddToAListNeedsAsManyUnitsAsItTakes(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.List, Key: "$sku"})
	setUp(t, server, "RPUSH x u u")
	for _, step := range []struct {
		delta, left int64
		ok          bool
	}{{3, 5, true}, {-6, 5, false}, {-5, 0, true}, {1, 0, false}} {
		left, err := s.Add(t.Context(), "x", step.delta)
		if (err == nil) != step.ok || step.ok && left != step.left {
			t.Errorf("add %d: %d, %v", step.delta, left, err)
		}
		if n := server.Client.LLen(t.Context(), "x").Val(); n != step.left {
			t.Errorf("after add %d: %d units, want %d", step.delta, n, step.left)
		}
	}
	setUp(t, server, "SET y 1")
	if err := s.Set(t.Context(), "y", 1); err == nil || server.Client.Get(t.Context(), "y").Val() != "1" {
		t.Errorf("set replaced a string: %v", err)
	}
}

func TestShapes_CountersKeepTheirBuyersWhenTheyAreSet(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, shapes()["counter_users"].layout)
	setUp(t, server, "SADD p:{x}:{88}:uids 7")
	testkit.Check(t, s.Set(t.Context(), "x", 5))
	if n := server.Client.SCard(t.Context(), "p:{x}:{88}:uids").Val(); n != 1 {
		t.Fatalf("%d buyers after a set, want 1", n)
	}
}

func TestShapes_ListOfStockFindsPartsOfSKUs(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.Counter, Key: "{$sku_1}:{$sku_2}:stock"})
	setUp(t, server, "SET {7}:{88}:stock 5", "SET {7}:{88}:uids 5")
	rows := testkit.Must[[]Stock](t)(s.List(t.Context(), 10))
	if len(rows) != 1 || rows[0].SKU != "7:88" || rows[0].Left != 5 {
		t.Fatalf("list %+v", rows)
	}
	if got := fmt.Sprint(readOne(t, s, "7:89").Exists, readOne(t, s, "7").Exists); got != "false false" {
		t.Fatalf("other SKUs exist: %s", got)
	}
}

func TestShapes_KeyThatMayNotBeReadIsAFaultOfItsSKUAlone(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.CounterUsers, Key: "stock:$sku", UsersKey: "uids:$sku"})
	setUp(t, server, "SET stock:x 5", "SET stock:y 5", "SADD uids:x 7")
	testkit.Check(t, server.Client.Do(t.Context(), "ACL", "SETUSER", "default", "resetkeys", "~stock:x").Err())
	if r := readOne(t, s, "x"); r != reading(5) {
		t.Errorf("a key that may be read: %+v", r)
	}
	if r := readOne(t, s, "y"); r.Fault == nil || !strings.Contains(r.Fault.Error(), "NOPERM") || !s.metrics.up.Load() {
		t.Errorf("a key that may not be read: %+v; Redis is there: %v", r, s.metrics.up.Load())
	}
	all := []Buyer{{SKU: "x", User: []byte("7")}}
	testkit.Check(t, s.Bought(t.Context(), all))
	if all[0].Fault == nil || all[0].Bought {
		t.Errorf("a set that may not be read: %+v", all[0])
	}
}
