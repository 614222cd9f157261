package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sluice/gateway/stores"
	"sluice/internal/load"
	"sluice/room"
)

// roomConfig is a sale with a waiting room before it. One who is called is called for one free unit: with a higher
// overshoot, some of the called would find nothing left.
const roomConfig = `
[auth]
room_key_file = %q
[stock.redis]
addresses = [%q]
[[sale]]
name = "demo"
skus = [%q]
starts = %s
ends = %s
stock = { %s = %d }
[[room]]
name = "demo"
sale = "demo"
order = "draw"
opens = "1h"
overshoot = 1.0
claim_within = "5s"
poll_ceiling = "2s"
per_second = 50
`

// roomOpens is how long people join before the start.
const roomOpens = 4 * time.Second

// inRoom is a sale with a waiting room, which instances share through Redis: a redis-server runs while it lasts.
func (d *Options) inRoom(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if _, err := exec.LookPath("redis-server"); err != nil {
		return errors.New("--room: instances share a waiting room through Redis, and there is no redis-server in PATH; " +
			"install it")
	}
	redis, addr, err := load.StartRedis(ctx, folder, "--maxmemory-policy", "noeviction")
	if err != nil {
		return fmt.Errorf("--room: %w", err)
	}
	defer redis.Stop()
	shop, err := OpenShop(demoStock{}.shopOptions(d))
	if err != nil {
		return err
	}
	defer shop.Close()
	starts := time.Now().Add(roomOpens)
	text, err := d.roomText(folder, addr, starts)
	if err != nil {
		return err
	}
	g, front, err := d.openGateBy(text, shop, "reserve", nil)
	if err != nil {
		return err
	}
	defer g.stop()
	books, err := stores.OpenLedger(g.Config, true, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer books.Close()
	d.introduce(shop, g, "reserve", front)
	fmt.Printf("room   http://%s/.sluice/room/demo/me\ncrowd  %d people, who join within %s; then the draw is made\n\n",
		front, d.Shoppers, roomOpens)
	crowd := Crowd{Front: front, Shoppers: d.Shoppers, GiveUpAfter: d.GiveUpAfter,
		Ledger: booksOf(books, g.Orders()), Room: &Room{Name: "demo", Starts: starts}}
	r, err := crowd.Run(ctx, shop, os.Stdout)
	if err == nil {
		r.Audit, err = d.audit(ctx, books, shop.Orders())
	}
	if err != nil {
		return err
	}
	fmt.Println()
	return errors.Join(writeResults(os.Stdout, r), r.Err())
}

// roomText is the text of the configuration, whose keys are in folder.
func (d *Options) roomText(folder, redis string, starts time.Time) (string, error) {
	key := filepath.Join(folder, "room.key")
	if err := os.WriteFile(key, []byte(rand.Text()), 0o600); err != nil {
		return "", err
	}
	text := strings.NewReplacer(`source = "memory"`, `source = "redis"`,
		`user = "$cookie_uid"`, "user = \"$cookie_uid\"\nroom = \"demo\"").Replace(demoConfig)
	return text + fmt.Sprintf(roomConfig, key, redis, SKU, starts.Format(time.RFC3339Nano),
		starts.Add(time.Hour).Format(time.RFC3339Nano), SKU, d.Units), nil
}

// verifyPlace computes from the published record alone when a user was called, in Unix ms; 0 = the user was not.
func verifyPlace(record []byte, user string) (calledAt int64, err error) {
	var rec room.Record
	if err := json.Unmarshal(record, &rec); err != nil {
		return 0, err
	}
	v, err := rec.Verify(user)
	return v.CalledAt, err
}
