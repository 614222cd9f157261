package browser

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// Each class of rejection that a client can cause is a page that every user can read and leave: docs/pages.md.
func TestPages_RejectionsInABrowser(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), trade(t)
	play(t, "pages.mjs", func() any {
		now := time.Now()
		settings := []string{
			redisAt(redis),
			`server.trusted_proxies = ["127.0.0.0/8"]`, `limits.deny = ["192.0.2.0/24"]`,
		}
		rest := strings.Join([]string{
			schedule("later", now.Add(time.Hour), now.Add(2*time.Hour), "stock = { later = 5 }"),
			schedule("over", now.Add(-2*time.Hour), now.Add(-time.Hour), ""),
			schedule("held", now.Add(-time.Hour), now.Add(time.Hour), ""),
			"[[limits.rate]]\nname = \"slow\"\nkey = \"$remote_addr\"\nrate = \"1/h\"\nburst = 1\nroutes = [\"slow\"]",
			"[[route]]\nname = \"slow\"\nmatch = \"GET /item/slow\"\ngate = \"limit\"", routes,
		}, "\n")
		g := open(t, append(settings, shop.settings(), rest)...)
		deserted := open(t, append(settings, `upstream.targets = ["http://127.0.0.1:1"]`, rest)...)
		for sku, units := range map[string]string{"gone": "0", "one": "1000", "broken": "1000", "held": "5", "over": "5"} {
			sluice(t, "stock", "set", "--config", g.file, sku, units)
		}
		sluice(t, "sale", "pause", "--config", g.file, "held")
		return map[string]any{"gate": "http://" + g.front, "deserted": "http://" + deserted.front}
	})
}
