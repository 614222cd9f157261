package app

import (
	"log/slog"
	"strings"
	"testing"

	"sluice/internal/app/stores"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

func TestScript_TakesTheLedgersPlace(t *testing.T) {
	c := testkit.ScriptConfig("counter_codes")
	if c.UsesLedger() || !c.UsesScript() {
		t.Error("the ledger would be opened beside the script")
	}
	c.Stock.Script.Preset = ""
	if !c.UsesLedger() || c.UsesScript() {
		t.Error("without a script there is no ledger")
	}
}

func TestScript_KeysWithoutATagOnAClusterAreRejectedWithTheKeyThatWouldWork(t *testing.T) {
	c := testkit.ScriptConfig("counter_users")
	c.Stock.Redis.Topology = "cluster"
	_, errs := stores.CompileScript(c)
	if len(errs) != 1 {
		t.Fatal(errs)
	}
	contains(t, errs[0].Error(), "stock.script.keys", `keys[1] = "seckill:stock:{$sku}", keys[2] = "seckill:users:{$sku}"`)
	c.Stock.Script.Keys = []string{"{$sku}:stock", "{$sku}:uids"}
	if _, errs := stores.CompileScript(c); len(errs) != 0 {
		t.Error(errs)
	}
}

func TestScript_ThatNamesAUserWantsARouteThatDoes(t *testing.T) {
	for preset, wanted := range map[string]bool{"counter_users": true, "list_users": true, "counter_codes": false,
		"hash_bought": false} {
		c := testkit.ScriptConfig(preset)
		c.Routes[0].User = ""
		_, errs := stores.CompileScript(c)
		if (len(errs) == 1) != wanted || wanted && !strings.Contains(errs[0].Error(), "route[1].user: is missing") {
			t.Errorf("%s: %v", preset, errs)
		}
	}
}

func TestOpenScript_LogsItsLimitations(t *testing.T) {
	c := testkit.ScriptConfig("lock")
	c.Stock.Redis.Addresses = []string{redistest.Start(t).Addr}
	var said strings.Builder
	r, err := openScript(c, nil, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.Close(t.Context())
	contains(t, said.String(), "preset", "lock", "docs/scripts.md")
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s\ndoes not say %s", text, word)
		}
	}
}
