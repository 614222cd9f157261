package doctor

import (
	"testing"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
)

func TestOnlineLayout_KeysOfAShopThatCannotBeReadAreToldWithTheWayOut(t *testing.T) {
	counter := func(l *config.Layout) {}
	for name, c := range map[string]struct {
		layout func(*config.Layout)
		fill   []any
		fails  bool
		says   []string
	}{
		"well": {counter, []any{"set", "seckill:stock:10", 3}, false,
			[]string{"ok   layout    10: 3 left in seckill:stock:10"}},
		"nothing at all": {counter, []any{"del", "x"}, true,
			[]string{"FAIL layout    10: the key \"seckill:stock:10\" is not there", "no key at all", "addresses and db"}},
		"nothing": {counter, []any{"set", "x", 1}, true, []string{"stock it as the shop does"}},
		"another type": {counter, []any{"hset", "seckill:stock:10", "total", 3}, true,
			[]string{"it is a hash with the fields \"total\": correct stock.layout.type"}},
		"no number": {counter, []any{"set", "seckill:stock:10", "many"}, true,
			[]string{"is not an integer", "it is a string"}},
		"a Java value": {counter, []any{"set", "seckill:stock:10", "\xac\xed\x00\x05t\x00\x013"}, true,
			[]string{"Java has serialized", "StringRedisTemplate"}},
		"a Java key": {counter, []any{"set", "\xac\xed\x00\x05t\x00\x10seckill:stock:10", 3}, true,
			[]string{"Spring's default serializer", "keySerializer"}},
		"a missing prefix": {counter, []any{"set", "laravel_database_seckill:stock:10", 3}, true,
			[]string{"write prefix = \"laravel_database_\""}},
		"a wrong prefix": {func(l *config.Layout) { l.Prefix = "shop_" }, []any{"set", "laravel_database_seckill:stock:10",
			3}, true, []string{"write prefix = \"laravel_database_\""}},
		"too much prefix": {func(l *config.Layout) { l.Prefix = "shop_" }, []any{"set", "seckill:stock:10", 3}, true,
			[]string{"write prefix = \"\""}},
		"no field": {func(l *config.Layout) { l.Type = "hash_sold" }, []any{"hset", "seckill:stock:10", "Total", 3, "Booked",
			0}, true,
			[]string{"\"Total\" \"Booked\"", "correct stock.layout.type and its fields"}},
		"off sale": {func(l *config.Layout) { l.Type, l.LeftField, l.StatusField = "hash_left", "n", "s" },
			[]any{"hset", "seckill:stock:10", "n", 3, "s", 0}, false,
			[]string{"warn layout    10: 3 left", "status_open"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			server.Client.Do(t.Context(), c.fill...)
			conf := storetest.Reserving(server.Addr)
			conf.Routes[0].Gate = "check"
			c.layout(&conf.Stock.Layout)
			text, failed := tried(t, conf, "10")
			contains(t, text, c.says...)
			if failed != c.fails {
				t.Errorf("failed is %v:\n%s", failed, text)
			}
		})
	}
}

func TestOnlineLayout_AnyKeyOfTheLayoutIsLookedAtWhereNoSKUIsNamed(t *testing.T) {
	server := redistest.Start(t)
	c := storetest.Reserving(server.Addr)
	c.Routes[0].Gate = "check"
	server.Client.Set(t.Context(), "laravel_database_seckill:stock:10", 3, 0)
	text, _ := tried(t, c)
	contains(t, text, "warn layout    no key looks like", "write prefix = \"laravel_database_\"")
	server.Client.Set(t.Context(), "seckill:stock:11", 4, 0)
	text, _ = tried(t, c)
	contains(t, text, "ok   layout    11: 4 left")
}
