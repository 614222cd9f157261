package config

import (
	"strings"
	"testing"
)

// driven is a configuration with a driver and the lines of its layout.
func driven(layout string, others ...string) string {
	lines := append([]string{"[[route]]", `name = "order"`, `match = "POST /{sku}"`, `gate = "reserve"`, `sku = "$path_sku"`, "[stock]", `source = "redis"`}, others...)
	return strings.Join(append(lines, "[stock.layout]", layout), "\n")
}

func TestDriversThatCanWorkAreAccepted(t *testing.T) {
	for _, layout := range []string{
		`driver = "counter_codes"`, `driver = "watch"`,
		"type = \"hash_sold\"\ndriver = \"hash_ordered\"",
		"type = \"hash_sold\"\ndriver = \"hash_bought\"\nstatus_field = \"goods_status\"\norders_key = \"order_list:$sku\"",
		"type = \"hash_left\"\ndriver = \"hash_instock\"\nmark_key = \"mark:{$sku}:$serial:$user\"",
		"type = \"hash_left\"\ndriver = \"hash_instock_script\"\nmark_key = \"mark:{$sku}:$serial\"\nmark_ttl = \"1h\"",
		"driver = \"lock\"\nlock_key = \"lock:$sku\"",
		"driver = \"variants\"\nkey = \"stock:$sku_1:$sku_2\"\nparent_key = \"stock:$sku_1\"",
	} {
		if _, err := Parse("config.toml", []byte(whole(driven(layout))), nil); err != nil {
			t.Errorf("%s:\n%v", layout, err)
		}
	}
}

func TestDriversThatCouldNotWorkNameTheirLineKeyAndWayOut(t *testing.T) {
	for _, m := range []mistake{
		{driven(`driver = "hash"`), `:9: stock.layout.driver: "hash" is not known; write "hash_ordered", "hash_bought", "counter_codes", "counter_users", "hash_instock", "hash_instock_script", "watch", "lock", "list_users" or "variants"`},
		{driven(`driver = "hash_ordered"`), `:9: stock.layout.driver: "hash_ordered" takes from a layout of another type than "counter"; write type = "hash_sold"`},
		{driven(`driver = "lock"`), `:8: stock.layout.lock_key: is missing: driver "lock" needs it`},
		{driven("driver = \"watch\"\nstatus_key = \"on:$sku\"\nsold_out_at = 3\nlock_key = \"lock\""),
			`:10: stock.layout.status_key: is not read by driver "watch"; drop it
:11: stock.layout.sold_out_at: is not read by driver "watch", which sells down to 0; drop it
:12: stock.layout.lock_key: "lock" has no $sku: all SKUs would share it; write it like "seckill:stock:$sku"
:12: stock.layout.lock_key: is not read by driver "watch"; drop it`},
		{driven("type = \"hash_left\"\ndriver = \"hash_instock\"\nmark_key = \"mark:$sku:$order\"\nmark_ttl = \"1ms\""),
			`:11: stock.layout.mark_key: $order is not known; here may stand $sku $sku_1 $sku_2 $sku_3 $serial $user, and $$ for a dollar sign
:11: stock.layout.mark_key: "mark:$sku:$order" has no $serial: all orders would share it; write it like "mark:{$sku}:$serial"
:12: stock.layout.mark_ttl: 1ms must be from 1s to 8760h0m0s`},
		{driven(`driver = "watch"`, "reserve.status_url = \"http://shop/{serial}\"", "reserve.fence = \"hold\""),
			`:8: stock.reserve.status_url: is asked for orders of the ledger, and driver "watch" keeps none; drop one
:9: stock.reserve.fence: is for orders of the ledger, and driver "watch" keeps none; drop one`},
		{"[stock.layout]\ndriver = \"watch\"", `:2: stock.layout.driver: "watch" works in Redis, but stock.source is "memory"; write source = "redis"`},
	} {
		_, err := Parse("config.toml", []byte(whole(m.text)), nil)
		if err == nil {
			t.Errorf("accepted:\n%s", m.text)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), "config.toml", ""); got != m.want {
			t.Errorf("\n%s\n got %s\nwant %s", m.text, got, m.want)
		}
	}
}

func TestDriversThatTakeForKnownUsersWantARouteThatNamesThem(t *testing.T) {
	for _, name := range []string{"counter_users", "list_users"} {
		c := Default()
		c.Stock.Layout.Driver = name
		r := &report{}
		c.checkGate(r, &Route{Gate: "reserve", SKU: "$path_sku"}, "route[1]")
		if len(r.problems) != 1 || r.problems[0].Key != "route[1].user" {
			t.Errorf("%s: %v", name, r.problems)
		}
	}
}
