package config

import (
	"strings"
	"testing"
)

func TestSettleWebhook_MistakesNameTheirKey(t *testing.T) {
	for text, want := range map[string]string{
		`url = "ftp://shop.example"`:        "settle.webhook.url: cannot be read",
		`url = "https://:443/x"`:            "settle.webhook.url: cannot be read",
		`url = "https://shop.example/#top"`: "settle.webhook.url: cannot be read",
		`url = "https://me:pa55@shop"`:      "settle.webhook.url: holds a user",
		`url = "https://shop.example"`:      "settle.webhook.url: needs a database",
		`url = "http://shop.example"`:       "settle.webhook.key_file: is empty",
		`key_file = "no-such-file"`:         "settle.webhook.key_file: ",
		`retries = 3`:                       "settle.webhook.retries: ",
	} {
		_, err := Parse("config.toml", []byte(whole("[settle.webhook]\n"+text+"\n")), environment)
		if err == nil || !strings.Contains(err.Error(), ":2: "+want) && !strings.Contains(err.Error(), ":1: "+want) {
			t.Errorf("%s: %v: want %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "pa55") {
			t.Errorf("%s: the error shows the password: %v", text, err)
		}
	}
}

func TestSettleHome_MistakesNameTheirKey(t *testing.T) {
	const east = "[settle]\ndatabase = \"sqlite:a.db\"\n[[settle.home]]\nname = \"east\"\ndatabase = \"sqlite:b.db\"\n"
	for text, want := range map[string]string{
		east + `skus = ["*2"]`:                                `settle.home[1].skus: "*2" is not a SKU or its beginning`,
		east + `skus = [""]`:                                  `settle.home[1].skus: "" is not`,
		strings.Replace(east, "east", "main", 1):              `settle.home[1].name: `,
		strings.Replace(east, "east", "East 1", 1):            `settle.home[1].name: "East 1" is not a name`,
		strings.Replace(east, "sqlite:b.db", "b.db", 1):       `settle.home[1].database: `,
		strings.Replace(east, "sqlite:b.db", "", 1):           `settle.home[1].database: `,
		east + "[settle.jobs]\nkinds = [\"order.new\"]":       `settle.jobs.kinds: "order.new" is not known`,
		east + "[settle.jobs]\nkinds = [\"order.reserved\"]":  `settle.jobs.kinds: "order.reserved" is now "order.held"`,
		east + "[settle.jobs]\nkinds = [\"order.confirmed\"]": `settle.jobs.kinds: "order.confirmed" is now "order.sold"`,
		east + "[settle.jobs]\nkinds = [\"order.sold\"]": `settle.jobs.kinds: needs PostgreSQL, which keeps the jobs, ` +
			`but settle.database is "sqlite:a.db"`,
		east + "[settle.jobs]\nurl = \"https://shop/x\"\n": `settle.jobs.key_file: is empty`,
		"[settle]\nverify = \"999ms\"":                     `settle.verify: 999ms is too short`,
		"[settle]\nverify = \"25h\"":                       `settle.verify: `,
	} {
		_, err := Parse("config.toml", []byte(whole(text+"\n")), environment)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: want %s", text, err, want)
		}
	}
}

func TestSettle_ChangesAreKeptWhereOrdersAreSettled(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "stream_keep_unread = true\n": true, "[settle]\ndatabase = \"sqlite:a.db\"\n": true,
		"stream_keep_unread = false\n[settle]\ndatabase = \"sqlite:a.db\"\n": true,
	} {
		c, err := Parse("config.toml", []byte("name = \"shop\"\nupstream.targets = [\"http://127.0.0.1:9\"]\n"+
			"stock.source = \"redis\"\n[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n[stock.reserve]\n"+text),
			NoEnvironment)
		if err != nil || c.KeepsUnread() != want {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestSettle_HomeOfASKUIsTheFirstThatNamesIt(t *testing.T) {
	s := Settle{Homes: []SettleHome{{Name: "east", SKUs: []string{"2*", "1001"}}, {Name: "west", SKUs: []string{"20*",
		"3"}}}}
	for sku, want := range map[string]string{"2": "east", "2001": "east", "1001": "east", "10011": MainHome, "3": "west",
		"31": MainHome, "": MainHome} {
		if home := s.HomeOf(sku); home != want {
			t.Errorf("%q is settled in %s: want %s", sku, home, want)
		}
	}
}
