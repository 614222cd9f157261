package e2e

import (
	"path/filepath"
	"testing"

	"sluice/internal/redistest"
)

// Every example is held against keys that the shop's own script has made and sold from.
func TestCheckOnline_EveryLayoutExamplePassesOnTheShopsOwnKeys(t *testing.T) {
	t.Parallel()
	shops := append(knownShops(), knownShop{
		example: "spikesystem", fill: "HSET ticket_hash_key ticket_total_nums 3 ticket_sold_nums 0",
		keys: []string{"ticket_hash_key"},
		decide: `
local total, sold = unpack(redis.call('HMGET', KEYS[1], 'ticket_total_nums', 'ticket_sold_nums'))
if tonumber(total) < tonumber(sold) then return 0 end
redis.call('HINCRBY', KEYS[1], 'ticket_sold_nums', 1)
return 1`,
	})
	covered := map[string]bool{}
	for _, k := range shops {
		covered[k.example+".toml"] = true
		t.Run(k.example, func(t *testing.T) {
			t.Parallel()
			stock := redistest.Start(t)
			environment := []string{"SHOP_URL=" + k.open(t, stock.Client).url, "REDIS_ADDR=" + stock.Addr}
			path, err := filepath.Abs(filepath.Join(layoutsFolder, k.example+".toml"))
			if err != nil {
				t.Fatal(err)
			}
			before := runWith(t, "", environment, "check", "--online", path)
			wants(t, before.out, "this database has no key at all")
			does(t, stock.Client, k.fill)
			if !k.sellsTo(t, stock.Client, "7") {
				t.Fatal("the shop's own script does not sell")
			}
			after := runWith(t, "", environment, "check", "--online", path)
			if after.code != 0 {
				t.Errorf("exit code %d: %s%s", after.code, after.out, after.complaint)
			}
			wants(t, after.out, "ok   layout", ": 2 left in ", "ok   target", "ok   redis")
		})
	}
	all, err := filepath.Glob(filepath.Join(layoutsFolder, "*.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if !covered[filepath.Base(path)] {
			t.Errorf("%s is not tried", filepath.Base(path))
		}
	}
}

func TestCheckOnline_ReportsToOtherPrograms(t *testing.T) {
	t.Parallel()
	stock := redistest.Start(t)
	path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\nstock.source = \"redis\"\nstock.redis.addresses = [\""+
		stock.Addr+"\"]\n"+routes)
	s := run(t, "", "check", "--online", "--json", path)
	if s.code != 3 {
		t.Errorf("exit code %d: %s", s.code, s.complaint)
	}
	wants(t, s.out, `"ok": false`, `"status": "fail"`, `"check": "target"`, `"status": "ok"`)
	s = run(t, "", "check", "--json", path)
	if s.code != 0 {
		t.Errorf("--json alone: exit code %d", s.code)
	}
	wants(t, s.out, `"ok": true`, `"status": "info"`, `"check": "window"`, `"status": "warning"`)
	s = run(t, "", "check", "--json", file(t, "limits.window.maxx = 1\n"))
	if s.code != 1 {
		t.Errorf("a bad file: exit code %d", s.code)
	}
	wants(t, s.out, `"ok": false`, `"check": "config"`, "limits.window.maxx")
}
