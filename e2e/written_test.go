package e2e

import (
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// What an operator may write depends on the layout; what may not be is said in words and not done.
func TestLayouts_OperatorsReadAllAndWriteWhatCanBeWritten(t *testing.T) {
	t.Parallel()
	for _, k := range knownShops() {
		t.Run(k.example, func(t *testing.T) {
			t.Parallel()
			stock := redistest.Start(t)
			does(t, stock.Client, k.fill)
			g := k.guard(t, k.open(t, stock.Client), stock)
			sku := map[string]string{"gulimall": "c0de", "goods-and-activity": "10:88"}[k.example]
			if sku == "" {
				sku = "10"
			}
			at := "http://" + g.admin
			says := func(command string, args ...string) said {
				return run(t, "", append([]string{"stock", "--admin", at, command, sku}, args...)...)
			}
			if s := says("get"); s.code != 0 || strings.Fields(s.out)[1] != "3" {
				t.Errorf("get: %+v, want 3", s)
			}
			set := says("set", "5")
			if k.example == "stock-minus-locked" {
				if set.code == 0 || !strings.Contains(set.complaint, "only the shop can change this stock") {
					t.Errorf("set behind a script: %+v", set)
				}
				return
			}
			if set.code != 0 || strings.Fields(set.out)[1] != "5" {
				t.Errorf("set: %+v, want 5", set)
			}
			if s := says("add", "--", "-1"); s.code != 0 || strings.Fields(s.out)[1] != "4" {
				t.Errorf("add -1: %+v, want 4", s)
			}
			for user := range 4 {
				if !k.sellsTo(t, stock.Client, string(rune('a'+user))) {
					t.Errorf("the shop does not sell unit %d of what was set", user+1)
				}
			}
			if k.sellsTo(t, stock.Client, "z") {
				t.Error("the shop sells more than was set")
			}
		})
	}
}
