package doctor

import (
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/script"
)

func TestCheck_SaysWhatAScriptCannotPromise(t *testing.T) {
	said := examined(testkit.ScriptConfig("counter_codes"), (*Report).checkScript)
	contains(t, said, `preset "counter_codes": undersell possible`, "docs/scripts.md")
	if strings.Contains(said, "another key") {
		t.Error(said)
	}
	c := testkit.ScriptConfig("counter_codes")
	c.Stock.Script.Keys = []string{"goods:$sku"}
	contains(t, examined(c, (*Report).checkScript),
		`stock.layout.key = "seckill:stock:$sku" is none of the script's keys (goods:$sku)`)
}

func TestCheckOnline_LoadsTheScript(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := selling(server.Addr)
	c.Routes[0].Gate = "reserve"
	c.Stock.Script = config.Script{File: "take.lua", Take: "return redis.call('decr', KEYS[1]",
		Keys:  []string{c.Stock.Layout.Key},
		Codes: map[string]string{">=0": "taken"}, Release: script.None}
	if err := server.Client.Set(t.Context(), "seckill:stock:10", 3, 0).Err(); err != nil {
		t.Fatal(err)
	}
	text, failed := tried(t, c, "10")
	if !failed {
		t.Error("Lua that does not compile passes")
	}
	contains(t, text, "FAIL script", "Redis does not load script take.lua", "Error compiling script", "take.lua")
	c.Stock.Script.Take += ")"
	text, failed = tried(t, c, "10")
	if failed {
		t.Error(text)
	}
	contains(t, text, "ok   script", "Redis has loaded take.lua", "ok   layout    10: 3 left")
	if n := server.Calls("evalsha") + server.Calls("eval"); n != 0 {
		t.Errorf("%d scripts ran", n)
	}
}

// Orders that a script takes units for are kept in Redis, where they must not be evicted.
func TestCheckOnline_RedisThatEvictsTheOrdersOfAScriptFails(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	c := selling(server.Addr)
	c.Routes[0].Gate = "reserve"
	c.Stock.Script = config.Script{Preset: "counter_codes", Keys: []string{c.Stock.Layout.Key}, TTL: time.Minute}
	if err := server.Client.Set(t.Context(), "seckill:stock:10", 3, 0).Err(); err != nil {
		t.Fatal(err)
	}
	text, failed := tried(t, c, "10")
	if !failed {
		t.Error("nothing failed")
	}
	contains(t, text, "FAIL redis", "allkeys-lru", "stock.script.ttl", "CONFIG SET maxmemory-policy noeviction")
	c.Stock.Script.TTL = 0 // no order is kept
	if text, failed = tried(t, c, "10"); failed {
		t.Error(text)
	}
}
