package doctor

import (
	"strings"
	"testing"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/adminclient"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
)

// tried is what the online checks say of c, and whether one failed.
func tried(t *testing.T, c *config.Config, skus ...string) (text string, failed bool) {
	t.Helper()
	var out strings.Builder
	o := Report{File: "shop one.toml", SKUs: skus, Each: func(f admin.Finding) { out.WriteString(Line(f)) }}
	if err := o.Try(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return out.String(), o.Failed()
}

// examined is what checks of a configuration alone say of it: all of them, or the given ones.
func examined(c *config.Config, run ...func(*Report, *config.Config)) string {
	var out strings.Builder
	o := Report{Each: func(f admin.Finding) { out.WriteString(Line(f)) }}
	if len(run) == 0 {
		o.Examine(c)
	}
	for _, one := range run {
		one(&o, c)
	}
	return out.String()
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s\ndoes not say %s", text, word)
		}
	}
}

func TestOnline_SKUWithoutALedgerIsToldWithTheCommandThatMakesIt(t *testing.T) {
	c := storetest.Reserving(redistest.Start(t).Addr)
	c.Stock.Reserve.MaxPerUser = 2
	c.Sales = []config.Sale{{Name: "night", SKUs: []string{"1001", "1003"}, Stock: map[string]int{"1001": 500}}}
	text, failed := tried(t, c, "1002")
	if !failed {
		t.Error("nothing failed")
	}
	contains(t, text, "ok   redis",
		"FAIL ledger    1001 has none: its orders would be rejected as unknown_sku; make it: sluice stock set 1001 500 "+
			"--limit 2 --config 'shop one.toml'; if it was ever sold: sluice stock recover 1001 --total N --from",
		"make it: sluice stock set 1002 UNITS --limit 2", "stock set 1003 UNITS")

	c.Routes = append(c.Routes, config.Route{Name: "other", Match: "POST /other/{sku}", Gate: "check", SKU: "$path_sku",
		Quantity: "1"})
	text, _ = tried(t, c)
	contains(t, text, "sluice stock set 1001 500 --limit 2 --kind ledger --config")

	to, done, err := adminclient.Local(c)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for _, sku := range []string{"1001", "1002", "1003"} {
		var now map[string]any
		if err := to.Call(t.Context(), "POST", "/stock/"+sku+"?kind=ledger", map[string]int{"set": 5, "limit": 2},
			&now); err != nil {
			t.Fatal(err)
		}
	}
	if text, failed = tried(t, c, "1002"); failed {
		t.Errorf("all is well, but: %s", text)
	}
	contains(t, text, "ok   ledger    1001 5 free of 5: 0 held, 0 sold; 2 a person\n", "1002 5 free", "1003 5 free")
}

func TestOnline_LedgerThatCannotSellFailsTheCheck(t *testing.T) {
	c := storetest.Reserving(redistest.Start(t).Addr)
	to, done, err := adminclient.Local(c)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	var now map[string]any
	for path, change := range map[string]any{"/stock/none": map[string]int{"set": 0},
		"/stock/lost": map[string]int{"set": 5}} {
		if err := to.Call(t.Context(), "POST", path, change, &now); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Call(t.Context(), "POST", "/stock/lost", map[string]string{"state": "frozen"}, &now); err != nil {
		t.Fatal(err)
	}
	text, failed := tried(t, c, "none", "lost", "a b")
	if !failed {
		t.Error("nothing failed")
	}
	contains(t, text, "FAIL ledger    none has no units", "FAIL ledger    lost", "(frozen)", "sluice stock recover lost",
		`FAIL ledger    SKU "a b"`)
}

// A Redis that has lost a ledger answers: there is nothing to start.
func TestOnline_LedgerThatIsGoneIsRecovered(t *testing.T) {
	server := redistest.Start(t)
	c := storetest.Reserving(server.Addr)
	to, done, err := adminclient.Local(c)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	var now map[string]any
	if err := to.Call(t.Context(), "POST", "/stock/1001", map[string]int{"set": 5}, &now); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Del(t.Context(), "sluice:shop:{1001}:s", "sluice:shop:{1001}:q").Err(); err != nil {
		t.Fatal(err)
	}
	for _, skus := range [][]string{{"1001"}, nil} {
		text, failed := tried(t, c, skus...)
		contains(t, text, "FAIL ledger    1001: its ledger is gone",
			"sluice stock recover 1001 --total N --from FILE|settle|none --apply --config 'shop one.toml'\n")
		if !failed || strings.Contains(text, "start Redis") {
			t.Errorf("Redis answers, but: %s", text)
		}
	}
}

func TestOnline_RedisThatEvictsFailsTheCheck(t *testing.T) {
	c := storetest.Reserving(redistest.Start(t, "--maxmemory-policy", "allkeys-lru").Addr)
	text, failed := tried(t, c, "1001")
	if !failed {
		t.Error("nothing failed")
	}
	contains(t, text, "FAIL redis", "allkeys-lru", "redis-cli CONFIG SET maxmemory-policy noeviction",
		"FAIL ledger    1001")
	c.Routes[0].Gate = "check"
	if text, failed = tried(t, c); failed {
		t.Errorf("the shop's own stock may lie in any Redis, but: %s", text)
	}
}

func TestOnline_RedisThatIsAwayIsSaidOnce(t *testing.T) {
	server := redistest.Start(t)
	c := storetest.Reserving(server.Addr)
	server.Kill()
	for _, gate := range []string{"reserve", "check"} {
		c.Routes[0].Gate = gate
		text, failed := tried(t, c, "1001", "1002")
		if !failed || strings.Count(text, "FAIL") != 1 {
			t.Errorf("%s: %s", gate, text)
		}
	}
}

func TestOnline_WordsThatAShellWouldSplitAreQuoted(t *testing.T) {
	for text, want := range map[string]string{"1001": "1001", "a b.toml": "'a b.toml'", "it's": `'it'\''s'`,
		"$HOME": "'$HOME'", "大闸": "'大闸'"} {
		if got := Quoted(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Orders of the queue are beside the concurrency limit: both together need connections.
func TestCheck_ConnectionsAreForTheQueueToo(t *testing.T) {
	c := testkit.LimitConfig(t, "limits.concurrency.max_in_flight = 80\nupstream.max_conns = 100\nqueue.max_in_flight = 9")
	const warning = "queue.max_in_flight together allow 89 requests a target"
	if said := examined(c, (*Report).sizeInFlight); strings.Contains(said, warning) {
		t.Errorf("no route has a queue: %s", said)
	}
	c.Routes[0].Delivery = "queue"
	contains(t, examined(c, (*Report).sizeInFlight), warning, "only 88 connections")
}
