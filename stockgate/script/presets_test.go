package script

import (
	"bytes"
	"errors"
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
)

func TestHashBought_OrderIsListedAsTheShopsConsumerReadsIt(t *testing.T) {
	s, r := hashBoughtShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def)
	takeOne(d, &order{sku: "1001", user: "7", quantity: 2, at: 1794265200})
	takeOne(d, &order{sku: "1001", user: "007", quantity: 1})
	takeOne(d, &order{sku: "1001", user: `a"1`, quantity: 1})
	want := []string{`{"uid":"a\"1","goods_id":1001,"buy_num":1,"order_time":0}`,
		`{"uid":"007","goods_id":1001,"buy_num":1,"order_time":0}`,
		`{"uid":7,"goods_id":1001,"buy_num":2,"order_time":1794265200}`}
	if got := r.Client.LRange(background, "order_list:{1001}", 0, -1).Val(); !slices.Equal(got, want) {
		t.Errorf("the list holds %q", got)
	}
}

func TestHashBought_NeedsNoStatusField(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t)
	check(t, r.Client.HSet(background, "seckill:stock:1001", "goods_count", 2, "goods_bought_num", 0).Err())
	d := reserver(t, r.Addr, Definition{Preset: "hash_bought"})
	for i, want := range []reject.Reason{reject.Admitted, reject.Admitted, reject.SoldOut} {
		if reason, _ := take(d, "1001", "", "", 1); reason != want {
			t.Errorf("order %d: %s", i, reason)
		}
	}
}

func TestHashBought_OrderThatHasLeftTheListIsNotGivenBack(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := hashBoughtShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def)
	_, serial := take(d, s.sku, "7", "", 1)
	check(t, r.Client.RPop(background, "order_list:{1001}").Err()) // the shop makes it
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	d.Close(t.Context())
	if left, rejected := s.left(t, r.Client), d.counts.sum(unitsNotGivenBack); left != 4 || rejected != 1 {
		t.Errorf("%d left, %d not given back", left, rejected)
	}
}

func TestHashBought_StatusThatIsNotOpenIsPaused(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := hashBoughtShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	check(t, r.Client.HSet(background, "goods:{1001}", "goods_status", 2).Err())
	d := reserver(t, r.Addr, s.def)
	if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Paused {
		t.Errorf("heard %s", reason)
	}
	if n := r.Client.Exists(background, "order_list:{1001}").Val(); n != 0 {
		t.Error("an order was listed")
	}
}

func TestListUsers_EmptyListIsSoldOutWhereAUserHasBought(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := listShop(), redistest.Start(t)
	s.stock(t, r.Client, 1)
	s.buy(t, r.Client, "1")
	if reason, _ := take(reserver(t, r.Addr, s.def), s.sku, "2", "", 1); reason != reject.SoldOut {
		t.Errorf("heard %s", reason)
	}
}

func TestListUsers_UnitItselfIsGivenBack(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := listShop(), redistest.Start(t)
	s.stock(t, r.Client, 2)
	d := reserver(t, r.Addr, s.def)
	_, serial := take(d, s.sku, "7", "", 1)
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	d.Close(t.Context())
	if got := r.Client.LRange(background, "units:{1001}", 0, -1).Val(); len(got) != 2 || got[0] != "unit-1" ||
		got[1] != "unit-0" {
		t.Errorf("the list holds %q", got)
	}
}

func TestVariants_ProductFollowsItsVariantAndNeverAdmits(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := variantsShop(), redistest.Start(t)
	check(t, r.Client.MSet(background, "stock:{1001}:red", 1, "stock:{1001}", 0, "stock:{1001}:blue", 0).Err())
	d := reserver(t, r.Addr, s.def)
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

func TestVariants_VariantWithoutAProductIsSoldAllTheSame(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := variantsShop(), redistest.Start(t)
	check(t, r.Client.Set(background, "stock:{1001}:red", 1, 0).Err())
	if reason, _ := take(reserver(t, r.Addr, s.def), "1001:red", "1", "", 1); reason != reject.Admitted {
		t.Errorf("heard %s", reason)
	}
	if n := r.Client.Exists(background, "stock:{1001}").Val(); n != 0 {
		t.Error("a product's counter was made")
	}
}

// The script finds its own mark, and no unit is taken again.
func TestHashInStock_SecondRunAfterALostReplyTakesNothingMore(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range []shop{inStockShop(), inStockScriptShop()} {
		r := redistest.Start(t)
		learnt(t, r)
		s.stock(t, r.Client, 5)
		w := between(t, r.Addr)
		d := reserver(t, w.addr, s.def)
		w.lose("evalsha")
		if reason, _ := take(d, s.sku, "7", "key", 1); reason != reject.Admitted || w.cut.Load() != nil {
			t.Errorf("heard %s", reason)
		}
		if left := s.left(t, r.Client); left != 4 || d.counts.sum(unitsUnanswered) != 0 || scripts(r) != 2 {
			t.Errorf("%d left, %d scripts ran", left, scripts(r))
		}
		if reason, _ := take(d, s.sku, "7", "key", 1); reason != reject.InProgress {
			t.Errorf("the same order meanwhile: %s", reason)
		}
	}
}

// Where a second run is not known to be harmless there is none.
func TestScript_LostReplyIsNotRunAgain(t *testing.T) {
	for _, s := range shops() {
		if compiled(t, s.def).repeatable {
			continue
		}
		r := redistest.Start(t)
		learnt(t, r)
		s.stock(t, r.Client, 5)
		w := between(t, r.Addr)
		d := reserver(t, w.addr, s.def)
		w.lose("evalsha")
		reason, _ := take(d, s.sku, "7", "key", 1)
		if left := s.left(t, r.Client); reason != reject.StockError || scripts(r) != 1 || left != 4 ||
			d.counts.sum(unitsUnanswered) != 1 {
			t.Errorf("%s: heard %s, %d scripts ran, %d left, %d counted", s.def.Preset, reason, scripts(r), left,
				d.counts.sum(unitsUnanswered))
		}
	}
}

func TestHashInStock_MarkIsAbsentAfterAGiveBack(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, s := range []shop{inStockShop(), inStockScriptShop()} {
		r := redistest.Start(t)
		s.stock(t, r.Client, 5)
		d := reserver(t, r.Addr, s.def)
		_, serial := take(d, s.sku, "7", "key", 1)
		if n := r.Client.Exists(background, "mark:{1001}:key").Val(); n != 1 {
			t.Fatal("the order has no mark")
		}
		d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
		d.Close(t.Context())
		if n := r.Client.Exists(background, "mark:{1001}:key").Val(); n != 0 || s.left(t, r.Client) != 5 {
			t.Errorf("the mark is %q, %d left", r.Client.Get(background, "mark:{1001}:key").Val(), s.left(t, r.Client))
		}
		if reason, _ := take(reserver(t, r.Addr, s.def), s.sku, "7", "key", 1); reason != reject.Admitted {
			t.Errorf("the same order later: %s", reason)
		}
	}
}

func TestLock_IsBusyWhileTheLockIsHeld(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := lockShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def)
	_, serial := take(d, s.sku, "6", "", 1)
	check(t, r.Client.Set(background, lockKey, "theirs", time.Hour).Err())
	if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Concurrency {
		t.Errorf("heard %s", reason)
	}
	before := scripts(r)
	d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
	testkit.Eventually(t, "giving back is tried", func() bool { return scripts(r) > before })
	if got := r.Client.Get(background, lockKey).Val(); got != "theirs" || s.left(t, r.Client) != 4 {
		t.Errorf("the lock is %q, %d left", got, s.left(t, r.Client))
	}
	check(t, r.Client.Del(background, lockKey).Err())
	if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Admitted {
		t.Errorf("then: %s", reason)
	}
	testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 4 })
	if n := r.Client.Exists(background, lockKey).Val(); n != 0 {
		t.Error("the lock is held")
	}
}

// A shop that watches the counter finds that it changed, as after any other write, and never half of a change.
func TestWatch_ScriptIsOneChange(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	s, r := watchShop(), redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := reserver(t, r.Addr, s.def)
	err := r.Client.Watch(background, func(tx *redis.Tx) error {
		if reason, _ := take(d, s.sku, "7", "", 2); reason != reject.Admitted {
			t.Errorf("heard %s", reason)
		}
		_, err := tx.TxPipelined(background, func(p redis.Pipeliner) error {
			return p.Decr(background,
				"seckill:{1001}:stock").Err()
		})
		return err
	}, "seckill:{1001}:stock")
	if !errors.Is(err, redis.TxFailedErr) || s.left(t, r.Client) != 3 {
		t.Errorf("%v, %d left", err, s.left(t, r.Client))
	}
	check(t, r.Client.Watch(background, func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(background, func(p redis.Pipeliner) error {
			return p.Decr(background,
				"seckill:{1001}:stock").Err()
		})
		return err
	}, "seckill:{1001}:stock"))
	if left := s.left(t, r.Client); left != 2 {
		t.Errorf("%d left", left)
	}
}

// own is a script that a shop wrote: it returns what is left, or -1.
func own() Definition {
	return Definition{
		File: "take.lua", Keys: []string{"goods_$(sku)_stock"}, Args: []string{"$quantity"}, GiveBack: "back.lua",
		Take: `local left = redis.call('get', KEYS[1])
			if not left then return false end
			if tonumber(left) < tonumber(ARGV[1]) then return -1 end
			return redis.call('decrby', KEYS[1], ARGV[1])`,
		Back:  "return redis.call('incrby', KEYS[1], ARGV[1])",
		Codes: map[string]string{">=0": "taken", "-1": "sold_out", "nil": "unknown_sku"},
	}
}

func TestFile_ShopsOwnScriptTakesAndGivesBack(t *testing.T) {
	r := redistest.Start(t)
	set("goods_1001_stock")(t, r.Client, 3)
	d := reserver(t, r.Addr, own())
	for _, c := range []struct {
		sku   string
		units int64
		want  reject.Reason
	}{{"1001", 4, reject.SoldOut}, {"1001", 2, reject.Admitted}, {"1001", 1, reject.Admitted}, {"1001", 1,
		reject.SoldOut}, {"9", 1, reject.UnknownSKU}} {
		if reason, serial := take(d, c.sku, "7", "", c.units); reason != c.want {
			t.Errorf("%d units of %s: %s", c.units, c.sku, reason)
		} else if c.units == 2 {
			d.Settle([]byte("1001"), serial, metrics.OrderRejected)
			testkit.Eventually(t, "they are back", func() bool { return get("goods_1001_stock")(t, r.Client) == 3 })
			set("goods_1001_stock")(t, r.Client, 1)
		}
	}
}

// The error names script, value and the key to change. Units may be gone, so that they are counted.
func TestFile_ValueThatIsNotInCodesIsAnError(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for value, want := range map[string]string{"return 'DONE'": "DONE", "return 7": "7", "return false": "nil",
		"return {-5, 1}": "[-5 1]"} {
		r := redistest.Start(t)
		def := own()
		def.Take, def.Codes = value, map[string]string{"1": "taken"}
		var said bytes.Buffer
		d := reserver(t, r.Addr, def, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
		for range 2 {
			if reason, _ := take(d, "1001", "7", "", 1); reason != reject.StockError {
				t.Errorf("%s: heard %s", value, reason)
			}
		}
		text := "script take.lua returned " + want + ", which is not in codes: add it to stock.script.codes"
		if strings.Count(said.String(), text) != 1 {
			t.Errorf("%s: %s", value, said.String())
		}
		if n := d.counts.sum(unitsUnanswered); n != 2 {
			t.Errorf("%s: %d counted", value, n)
		}
	}
}

// Lua undoes nothing: a script that fails may have taken units.
func TestFile_UnitsOfAScriptThatFailsAreCounted(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t)
	set("goods_1001_stock")(t, r.Client, 3)
	def := own()
	def.Take = "redis.call('decr', KEYS[1]) return redis.call('lpush', KEYS[1], 1)"
	d := reserver(t, r.Addr, def)
	if reason, _ := take(d, "1001", "7", "", 1); reason != reject.StockError || d.counts.sum(unitsUnanswered) != 1 {
		t.Errorf("heard %s, %d counted", reason, d.counts.sum(unitsUnanswered))
	}
}

func TestGiveBack_NoneLeavesItToTheShop(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	r := redistest.Start(t)
	set("goods_1001_stock")(t, r.Client, 3)
	def := own()
	def.GiveBack, def.Back = None, ""
	d := reserver(t, r.Addr, def)
	_, serial := take(d, "1001", "7", "", 1)
	d.Settle([]byte("1001"), serial, metrics.OrderRejected)
	d.Close(t.Context())
	if left := get("goods_1001_stock")(t, r.Client); left != 2 || d.counts.sum(unitsLost) != 0 {
		t.Errorf("%d left, %d lost", left, d.counts.sum(unitsLost))
	}
}
