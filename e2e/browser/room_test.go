package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// Two people wait for one unit on a phone: they join, are drawn, one buys, and the other reads that all is sold.
func TestRoom_InABrowser(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), trade(t)
	key := filepath.Join(t.TempDir(), "room.key")
	if err := os.WriteFile(key, []byte("0123456789abcdef-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const room = "[[room]]\nname = \"rush\"\nsale = \"1001\"\norder = \"draw\"\nopens = \"1h\"\novershoot = 1.0\n" +
		"claim_within = \"60s\"\npoll_ceiling = \"2s\"\n"
	play(t, "room.mjs", func() any {
		begins := time.Now().Add(30 * time.Minute) // the scenario moves it when both have joined
		g := open(t, redisAt(redis), "auth.room_key_file = \""+key+"\"", shop.settings(),
			schedule("1001", begins, begins.Add(time.Hour), "stock = { 1001 = 1 }"), room,
			strings.Replace(routes, "user = ", "room = \"rush\"\nuser = ", 1))
		return map[string]any{"gate": "http://" + g.front, "admin": "http://" + g.admin, "config": g.file}
	})
	if orders := shop.booked(); len(orders) != 1 || orders[0].times != 1 {
		t.Errorf("the shop has %d orders", len(orders))
	}
}
