package driver

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/proxy/reject"

	"sluice/stockgate/link"
)

func TestKeysAreBuiltFromTheSKU(t *testing.T) {
	for _, c := range []struct{ text, sku, want string }{
		{"seckill:stock:$sku", "1001", "p:seckill:stock:1001"},
		{"$sku:$sku", "a", "p:a:a"},
		{"$$$sku", "1", "p:$1"},
		{"{$sku_1}:{$sku_2}:stock", "good:activity", "p:{good}:{activity}:stock"},
		{"{$sku_1}:{$sku_2}:stock", "good:activity:more", "p:{good}:{activity:more}:stock"},
		{"{$sku_1}:{$sku_2}:stock", "good", "p:{good}:{}:stock"},
		{"$sku_1_0:$sku_2", "a:b", "p:a_0:b"},
	} {
		k, err := compileKeys(Layout{Driver: counterCodes, Prefix: "p:", Key: c.text}, false)
		check(t, err)
		if got := k.stock.of(&order{sku: c.sku}); got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.text, c.sku, got, c.want)
		}
	}
}

func TestKeysThatCouldNotWorkAreRefused(t *testing.T) {
	for _, c := range []struct {
		l   Layout
		say string
	}{
		{Layout{Driver: counterCodes}, "key: driver"},
		{Layout{Driver: counterCodes, Key: "stock"}, "key: it names no $sku"},
		{Layout{Driver: counterCodes, Key: "$sku:$serial"}, "key \"$sku:$serial\": after a dollar sign"},
		{Layout{Driver: counterUsers, Key: "$sku"}, "users_key: driver"},
		{Layout{Driver: listUsers, Key: "$sku", UsersKey: "u"}, "users_key: it names no $sku"},
		{Layout{Driver: locked, Key: "$sku"}, "lock_key: driver"},
		{Layout{Driver: variants, Key: "$sku", ParentKey: "$what"}, "parent_key \"$what\""},
		{Layout{Driver: hashInStock, Key: "$sku", MarkKey: "m:$sku", MarkTTL: 1}, "mark_key: it names no $serial"},
		{Layout{Driver: hashInStock, Key: "$sku", MarkKey: "m:$sku:$serial"}, "mark_ttl"},
		{Layout{Driver: hashInStock, Key: "$sku", MarkKey: "m:$serial"}, "mark_key: it names no $sku"},
		{Layout{Driver: hashInStock, Key: "$sku", MarkKey: "$sku:$serial:back"}, "ends in :back"},
		{Layout{Driver: hashInStock, Key: "$sku_1:$sku_2", MarkKey: "$sku_1:$serial", MarkTTL: time.Second}, "mark_key: several SKUs would share it"},
		{Layout{Driver: counterCodes, Key: "{$sku_2}"}, "key: several SKUs would share it"},
		{Layout{Driver: counterUsers, Key: "stock:$sku_1", UsersKey: "uids:$sku_1:$sku_2"}, "it names part 2 of the SKU, and key does not"},
		{Layout{Driver: variants, Key: "stock:$sku", ParentKey: "stock:$sku"}, "parent_key: it is the same as key"},
	} {
		if err := c.l.Check(false); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v: %v, want %q", c.l, err, c.say)
		}
	}
}

// Requests have no SKU with braces; a mark whose SKU stands in braces belongs to one order.
func FuzzMarksOfTwoOrdersDiffer(f *testing.F) {
	f.Add("1001", "a", "1001", "b")
	f.Add("1:2", "a", "1", "2}:a")
	f.Fuzz(func(t *testing.T, sku1, serial1, sku2, serial2 string) {
		if strings.ContainsAny(sku1+sku2, "{}") || sku1 == sku2 && serial1 == serial2 {
			return
		}
		k, err := compileKeys(shopOf(hashInStock).layout, true)
		check(t, err)
		a, b := &order{sku: sku1, serial: serial1}, &order{sku: sku2, serial: serial2}
		if k.mark.of(a) == k.mark.of(b) {
			t.Errorf("%q %q and %q %q share a mark", sku1, serial1, sku2, serial2)
		}
		if link.Slot(k.mark.of(a)) != link.Slot(k.stock.of(a)) && sku1 != "" {
			t.Errorf("%q %q leaves its slot", sku1, serial1)
		}
	})
}

func TestWrongKeysAreAnErrorAndNeverZeroOrPlenty(t *testing.T) {
	spoils := map[string]func(c *redis.Client, s shop){
		"another type": func(c *redis.Client, s shop) {
			for _, key := range c.Keys(background, "*").Val() {
				c.Del(background, key)
				c.ZAdd(background, key, redis.Z{Member: "a"})
			}
		},
		"no number": func(c *redis.Client, s shop) {
			for _, key := range c.Keys(background, "*").Val() {
				switch c.Type(background, key).Val() {
				case "string":
					c.Set(background, key, "1e9", 0)
				case "hash":
					for field := range c.HGetAll(background, key).Val() {
						if field != s.layout.StatusField {
							c.HSet(background, key, field, "0x7fff")
						}
					}
				case "list":
					c.Del(background, key)
					c.Set(background, key, "no list", 0)
				}
			}
		},
	}
	for _, s := range shops() {
		for what, spoil := range spoils {
			t.Run(s.layout.Driver+" "+what, func(t *testing.T) {
				r := redistest.Start(t)
				s.stock(t, r.Client, 5)
				spoil(r.Client, s)
				var said bytes.Buffer
				d := desk(t, r.Addr, s.layout, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
				before := fmt.Sprint(r.Client.Keys(background, "*").Val())
				for i := range 3 {
					if reason, _ := take(d, s.sku, fmt.Sprint(i), "", 1); reason != reject.StockError {
						t.Errorf("heard %s", reason)
					}
				}
				if n := strings.Count(said.String(), "a key is not what"); n != 1 {
					t.Errorf("said %d times: %s", n, said.String())
				}
				if s.layout.Driver != locked { // which has a fence now
					if after := fmt.Sprint(r.Client.Keys(background, "*").Val()); after != before {
						t.Errorf("keys were %s and are %s", before, after)
					}
				}
			})
		}
	}
}

func TestWhatIsNotThereIsUnknownAndStaysSo(t *testing.T) {
	for _, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			r := redistest.Start(t)
			d := desk(t, r.Addr, s.layout)
			if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.UnknownSKU {
				t.Errorf("heard %s", reason)
			}
			d.decision.giveBack(background, []*order{{sku: s.sku, user: "7", serial: "a", quantity: 1, unit: "u"}})
			if n := r.Client.Exists(background, d.keysOf(t, s.sku)).Val(); n != 0 {
				t.Error("a stock was made")
			}
		})
	}
}

// keysOf is the key of a stock.
func (d *Desk) keysOf(t *testing.T, sku string) string {
	k, err := compileKeys(d.o.Layout, false)
	check(t, err)
	return k.stock.of(&order{sku: sku})
}

func TestHashesWithoutTheirFieldsAreAnError(t *testing.T) {
	for _, s := range []shop{hashOrderedShop(), hashBoughtShop()} {
		r := redistest.Start(t)
		s.stock(t, r.Client, 5)
		check(t, r.Client.HDel(background, "goods:{1001}", s.layout.SoldField).Err())
		d := desk(t, r.Addr, s.layout)
		if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.StockError {
			t.Errorf("%s: %s", s.layout.Driver, reason)
		}
	}
}

func TestUndocumentedRepliesAreFaults(t *testing.T) {
	o := &order{sku: "1001", quantity: 2}
	reading := codes(map[int64]why{1: taken})
	for _, reply := range []any{nil, "1", int64(3), int64(-1), []any{}, []any{int64(1)}, true, 1.0} {
		if w, err := reading(o, reply); w != faulty || err == nil {
			t.Errorf("code %v: %s %v", reply, w, err)
		}
		if w, err := units(o, reply); w != faulty || err == nil {
			t.Errorf("units %v: %s %v", reply, w, err)
		}
	}
	for _, reply := range []any{nil, int64(1), []any{}, []any{"1"}, []any{int64(7)}} {
		if w, err := popped(o, reply); w != faulty || err == nil {
			t.Errorf("popped %v: %s %v", reply, w, err)
		}
	}
}

func TestScriptsAreKnownAgainAfterAFlush(t *testing.T) {
	for _, s := range shops() {
		r := redistest.Start(t)
		s.stock(t, r.Client, 5)
		d := desk(t, r.Addr, s.layout)
		for i := range 3 {
			check(t, r.Client.ScriptFlush(background).Err())
			if reason, _ := take(d, s.sku, fmt.Sprint(i), "", 1); reason != reject.Admitted {
				t.Errorf("%s: %s", s.layout.Driver, reason)
			}
		}
		if left := s.left(t, r.Client); left != 2 {
			t.Errorf("%s: %d left", s.layout.Driver, left)
		}
	}
}

func TestMarksEnd(t *testing.T) {
	for _, name := range []string{hashInStock, hashInStockOnce} {
		s, r := inStockShop(name), redistest.Start(t)
		s.layout.MarkTTL = time.Minute
		s.stock(t, r.Client, 5)
		d := desk(t, r.Addr, s.layout)
		take(d, s.sku, "7", "key", 1)
		if ttl := r.Client.TTL(background, "mark:{1001}:key").Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s: the mark ends in %s", name, ttl)
		}
	}
}
